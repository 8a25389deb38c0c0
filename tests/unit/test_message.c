// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/sim/ledger.h"
#include "model/sim/rng.h"
#include "model/sim/sim.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

/* What tasks leave behind, in the order of execution. */
static struct entry {
	uint64_t task; /* no padding: compared as memory */
	cycles_t time;
	uint64_t what;
	size_t at;
} entries[4096];
static size_t n_entries;

static void note(const struct task *t, uint64_t what)
{
	if (n_entries == sizeof(entries) / sizeof(entries[0]))
		abort(); /* CUnit cannot leave a coroutine */
	entries[n_entries] = (struct entry){task_id(t), task_now(t), what, n_entries};
	n_entries++;
}

static struct task *pair[2];

static int posts(struct task *t, void *arg)
{
	(void)arg;
	task_post(t, pair[1], 30, 7, 1, NULL);
	task_post(t, pair[1], 20, 7, 2, NULL);
	task_post(t, pair[1], 20, 8, 3, NULL);
	task_post(t, t, 5, 9, 4, NULL);
	return 0;
}

static int takes(struct task *t, void *arg)
{
	struct task_message m;

	(void)arg;
	CU_ASSERT_FALSE(task_next_message(t, &m));
	charge(t, SIMPLE_ONE, 15);
	task_post(t, t, 20, 7, 0, NULL); /* of two at one time, that of the first task */
	if (sync(t))
		return KVMSIM_ECANCELED;
	CU_ASSERT_FALSE(task_message_due(t));
	CU_ASSERT_EQUAL(task_horizon(t), 20);
	charge(t, SIMPLE_ONE, 10);
	while (task_next_message(t, &m))
		note(t, m.arg);
	CU_ASSERT_FALSE(task_take_message(t, 8, &m));
	CU_ASSERT_TRUE(task_take_message(t, 7, &m)); /* still under way */
	CU_ASSERT_EQUAL(m.arrival, 30);
	CU_ASSERT_PTR_EQUAL(m.from, pair[0]);
	CU_ASSERT_EQUAL(task_horizon(t), CYCLES_MAX);
	return 0;
}

static void messages_arrive_in_order(void)
{
	static const uint64_t expected[] = {2, 3, 0};
	struct sim *s = simple_sim(NULL);

	n_entries = 0;
	pair[0] = simple_task(s, "posts", posts, NULL, 0);
	pair[1] = simple_task(s, "takes", takes, NULL, 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL_FATAL(n_entries, 3);
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(entries[i].what, expected[i]);
	simple_end(s);
}

static int far_ahead(struct task *t, void *arg)
{
	if (sync(t))
		return KVMSIM_ECANCELED;
	note(t, task_horizon(t));
	charge(t, SIMPLE_ONE, *(int *)arg);
	note(t, sim_now(task_sim(t)));
	return sync(t);
}

/* Task a at 0 runs to 50, ahead of b, which starts at 40: meanwhile it is 40, and with messages
 * that take 25 a may run until 65 without asking. */
static void ahead_of_the_others(void)
{
	for (int reference = 0; reference < 2; reference++) {
		struct sim *s = simple_sim(&(struct sim_opts){.reference = reference});
		int fifty = 50;

		n_entries = 0;
		sim_set_lookahead(s, 25);
		simple_task(s, "a", far_ahead, &fifty, 0);
		simple_task(s, "b", far_ahead, &fifty, 40);
		CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
		CU_ASSERT_EQUAL_FATAL(n_entries, 4);
		CU_ASSERT_EQUAL(entries[0].what, reference ? 0 : 65);
		CU_ASSERT_EQUAL(entries[1].what, 40);
		CU_ASSERT_EQUAL(entries[2].what, reference ? 40 : 75); /* a at 50 */
		CU_ASSERT_EQUAL(entries[3].what, 50);
		simple_end(s);
	}
}

#define PEERS 6
static struct task *peer[PEERS];
static struct {
	uint64_t seed, value;
	cycles_t latency;
	unsigned n;
} program;

/* A random mixture of private work that messages interrupt, shared work, messages and waits. The
 * price of the work is a fraction, so that boundaries fall between whole times. */
static int random_program(struct task *t, void *arg)
{
	struct rng r;
	struct task_message m;

	(void)arg;
	rng_init(&r, program.seed, task_id(t), "program");
	for (int i = 0; i < 60; i++) {
		uint64_t left = rng_below(&r, 200), done = 0;
		int res = 0;

		while (left && !res) {
			res = charge_interruptible(t, SIMPLE_THIRD, left, &done);
			left -= done;
			while (!res && task_next_message(t, &m)) {
				charge(t, SIMPLE_ONE, m.kind);
				note(t, m.arg << 32 | left);
			}
		}
		/* Short private steps up to the horizon. */
		for (uint64_t n = rng_below(&r, 20); n && !res; n--) {
			if (task_now(t) + 1 >= task_horizon(t))
				res = sync(t);
			charge(t, SIMPLE_THIRD, 1 + n % 3);
		}
		res = res ? res : sync(t);
		if (res)
			return res;
		program.value = program.value * 31 + task_id(t);
		note(t, program.value);
		switch (rng_below(&r, 4)) {
		case 0:
			task_post(t, peer[rng_below(&r, program.n)],
				  task_now(t) + program.latency + rng_below(&r, 3),
				  (uint32_t)rng_below(&r, 5), rng_below(&r, 1000), NULL);
			break;
		case 1:
			task_wake(peer[rng_below(&r, program.n)], task_now(t) + rng_below(&r, 30));
			break;
		case 2:
			res = task_block_until(t, SIMPLE_IDLE, task_now(t) + rng_below(&r, 30));
			break;
		}
		if (res < 0)
			return res;
		note(t, (uint64_t)res);
	}
	return 0;
}

static int by_task(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	if (a->task != b->task)
		return a->task < b->task ? -1 : 1;
	return a->at < b->at ? -1 : 1;
}

static size_t run_program(uint64_t seed, bool reference)
{
	struct sim *s = simple_sim(&(struct sim_opts){.reference = reference});
	struct rng r;

	n_entries = 0;
	program.seed = seed;
	program.value = 0;
	rng_init(&r, seed, 0, "shape");
	program.n = 1 + (unsigned)rng_below(&r, PEERS);
	program.latency = rng_below(&r, 3) * 20;
	sim_set_lookahead(s, program.latency);
	for (unsigned i = 0; i < program.n; i++)
		peer[i] = simple_task(s, "peer", random_program, NULL, rng_below(&r, 30));
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	/* Private work may come in any order between tasks, but not within one. */
	qsort(entries, n_entries, sizeof(entries[0]), by_task);
	for (size_t i = 0; i < n_entries; i++)
		entries[i].at = 0;
	simple_end(s);
	return n_entries;
}

static void run_ahead_changes_nothing(void)
{
	static struct entry fast[sizeof(entries) / sizeof(entries[0])];

	for (uint64_t seed = 0; seed < 300; seed++) {
		size_t n = run_program(seed, false);

		memcpy(fast, entries, n * sizeof(entries[0]));
		CU_ASSERT_EQUAL(run_program(seed, true), n);
		CU_ASSERT_EQUAL(memcmp(fast, entries, n * sizeof(entries[0])), 0);
	}
}

static CU_TestInfo tests[] = {{"messages_arrive_in_order", messages_arrive_in_order},
			      {"ahead_of_the_others", ahead_of_the_others},
			      {"run_ahead_changes_nothing", run_ahead_changes_nothing},
			      CU_TEST_INFO_NULL};
TEST_MAIN("message", tests)
