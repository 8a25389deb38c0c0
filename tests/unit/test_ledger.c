// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/sim/ledger.h"

#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

/* 0.333333 is 21845 / 65536 in fixed point: n of it, one by one, cost floor(n * 21845 / 65536),
 * and so do n at once. */
static int thirds(struct task *t, void *arg)
{
	unsigned wrong = 0;

	(void)arg;
	for (uint64_t n = 1; n <= 70000; n++) {
		charge(t, SIMPLE_THIRD, 1);
		wrong += task_now(t) != n * 21845 / 65536;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	charge(t, SIMPLE_THIRD, 1000 * 1000 * 1000);
	CU_ASSERT_EQUAL(task_now(t), 1000070000ull * 21845 / 65536);
	/* The product needs more than 64 bits: 2^50 * 21845. */
	charge(t, SIMPLE_THIRD, 1ull << 50);
	CU_ASSERT_EQUAL(task_now(t), (1ull << 34) * 21845 + 1000070000ull * 21845 / 65536);
	return 0;
}

static void remainder_is_carried(void)
{
	struct sim *s = simple_sim(NULL);
	struct ledger_entry e;

	simple_task(s, "thirds", thirds, NULL, 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	e = ledger_sum_count(sim_ledger(s), 0, SIMPLE_ACT_A, SIMPLE_THIRD);
	CU_ASSERT_EQUAL(e.n, 1000070000ull + (1ull << 50));
	CU_ASSERT_EQUAL(e.cycles, (1ull << 34) * 21845 + 1000070000ull * 21845 / 65536);
	simple_end(s);
}

/* Counts, waits and activities of two tasks, one that starts late. */
static int busy(struct task *t, void *arg)
{
	uint16_t was;

	charge(t, SIMPLE_ONE, 5);
	was = activity_enter(t, SIMPLE_ACT_B);
	CU_ASSERT_EQUAL(was, SIMPLE_ACT_A);
	charge(t, SIMPLE_ONE, 7);
	charge(t, SIMPLE_FREE, 9);
	charge_cycles(t, SIMPLE_FREE, 2, 100);
	if (task_block_until(t, SIMPLE_CPU, task_now(t) + 30))
		return KVMSIM_ECANCELED;
	activity_leave(t, was);
	charge(t, SIMPLE_ONE, 1);
	if (arg)
		task_block_until(t, SIMPLE_IDLE, 2000);
	return 0;
}

struct row {
	uint32_t task;
	uint16_t activity;
	bool is_wait;
	uint16_t id;
	struct ledger_entry e;
};
static struct row rows[32];
static size_t n_rows;

static void collect(void *ctx, uint32_t task, uint16_t activity, bool is_wait, uint16_t id,
		    struct ledger_entry e)
{
	(void)ctx;
	if (n_rows < 32)
		rows[n_rows++] = (struct row){task, activity, is_wait, id, e};
}

static void every_cycle_once(void)
{
	static const struct row expected[] = {
		{0, SIMPLE_ACT_A, false, SIMPLE_ONE, {6, 6}},
		{0, SIMPLE_ACT_B, false, SIMPLE_ONE, {7, 7}},
		{0, SIMPLE_ACT_B, false, SIMPLE_FREE, {11, 100}},
		{0, SIMPLE_ACT_B, true, SIMPLE_CPU, {1, 30}},
		{1, SIMPLE_ACT_A, false, SIMPLE_ONE, {6, 6}},
		{1, SIMPLE_ACT_A, true, SIMPLE_IDLE, {1, 857}},
		{1, SIMPLE_ACT_B, false, SIMPLE_ONE, {7, 7}},
		{1, SIMPLE_ACT_B, false, SIMPLE_FREE, {11, 100}},
		{1, SIMPLE_ACT_B, true, SIMPLE_CPU, {1, 30}},
	};
	struct sim *s = simple_sim(NULL);
	const struct ledger *l = sim_ledger(s);
	int flag = 1;

	n_rows = 0;
	simple_task(s, "a", busy, NULL, 0);
	simple_task(s, "b", busy, &flag, 1000);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	ledger_for_each(l, collect, NULL);
	CU_ASSERT_EQUAL_FATAL(n_rows, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < n_rows; i++) {
		CU_ASSERT_EQUAL(rows[i].task, expected[i].task);
		CU_ASSERT_EQUAL(rows[i].activity, expected[i].activity);
		CU_ASSERT_EQUAL(rows[i].is_wait, expected[i].is_wait);
		CU_ASSERT_EQUAL(rows[i].id, expected[i].id);
		CU_ASSERT_EQUAL(rows[i].e.n, expected[i].e.n);
		CU_ASSERT_EQUAL(rows[i].e.cycles, expected[i].e.cycles);
	}
	CU_ASSERT_EQUAL(ledger_task_total(l, 0), 143);
	CU_ASSERT_EQUAL(ledger_task_total(l, 1), 1000);
	CU_ASSERT_EQUAL(
		ledger_sum_count(l, LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, SIMPLE_ONE).cycles,
		26);
	CU_ASSERT_EQUAL(ledger_sum_count(l, 0, LEDGER_ALL_ACTIVITIES, SIMPLE_ONE).n, 13);
	CU_ASSERT_EQUAL(ledger_sum_count(l, LEDGER_ALL_TASKS, SIMPLE_ACT_B, SIMPLE_FREE).n, 22);
	CU_ASSERT_EQUAL(ledger_sum_wait(l, LEDGER_ALL_TASKS, SIMPLE_ACT_B, SIMPLE_CPU).cycles, 60);
	CU_ASSERT_EQUAL(ledger_sum_wait(l, 1, SIMPLE_ACT_A, SIMPLE_IDLE).cycles, 857);
	/* What does not exist was not charged. */
	CU_ASSERT_EQUAL(ledger_sum_count(l, 7, SIMPLE_ACT_A, SIMPLE_ONE).n, 0);
	CU_ASSERT_EQUAL(ledger_sum_count(l, 0, SIMPLE_ACT_A, N_SIMPLE_COUNTS + SIMPLE_CPU).n, 0);
	CU_ASSERT_EQUAL(ledger_sum_wait(l, 0, N_SIMPLE_ACTIVITIES, SIMPLE_CPU).n, 0);
	simple_end(s);
}

/* The check itself can fail: time that passes outside the ledger is found. */
static int cheat(struct task *t, void *arg)
{
	(void)arg;
	task_hot(t)->now += 3;
	return 0;
}

static void the_check_can_fail(void)
{
	struct sim *s = simple_sim(NULL);

	simple_task(s, "cheat", cheat, NULL, 4);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(sim_check_ledger(s), KVMSIM_ECHECK);
	CU_ASSERT_STRING_EQUAL(simple_message, "ledger of task cheat sums to 0, but 3 have passed");
	simple_end(s);
}

static CU_TestInfo tests[] = {{"remainder_is_carried", remainder_is_carried},
			      {"every_cycle_once", every_cycle_once},
			      {"the_check_can_fail", the_check_can_fail},
			      CU_TEST_INFO_NULL};
TEST_MAIN("ledger", tests)
