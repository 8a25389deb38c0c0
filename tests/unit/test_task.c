// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/sim/ledger.h"
#include "model/sim/profile.h"
#include "model/sim/rng.h"
#include "model/sim/sim.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

/* What tasks leave behind, in the order of execution. */
static struct entry {
	uint32_t task;
	cycles_t time;
	uint64_t what;
} entries[4096];
static size_t n_entries;

static void note(const struct task *t, uint64_t what)
{
	if (n_entries < sizeof(entries) / sizeof(entries[0]))
		entries[n_entries++] = (struct entry){task_id(t), task_now(t), what};
}

/* ---- waking ---- */

static struct task *pair[2];

static int ping(struct task *t, void *arg)
{
	int other = *(int *)arg;

	for (int i = 0; i < 2; i++) {
		if (other == 1) {
			charge(t, SIMPLE_ONE, 10);
			if (sync(t))
				return KVMSIM_ECANCELED;
			task_wake(pair[1], task_now(t));
		}
		if (task_block(t, SIMPLE_IDLE))
			return KVMSIM_ECANCELED;
		note(t, 0);
		if (other == 0) {
			charge(t, SIMPLE_ONE, 3);
			if (sync(t))
				return KVMSIM_ECANCELED;
			task_wake(pair[0], task_now(t));
		}
	}
	return 0;
}

static void two_tasks_take_turns(void)
{
	struct sim *s = simple_sim(NULL);
	int one = 1, zero = 0;

	n_entries = 0;
	pair[0] = simple_task(s, "a", ping, &one, 0);
	pair[1] = simple_task(s, "b", ping, &zero, 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(n_entries, 4);
	CU_ASSERT_EQUAL(entries[0].time, 10); /* b */
	CU_ASSERT_EQUAL(entries[1].time, 13); /* a */
	CU_ASSERT_EQUAL(entries[2].time, 23);
	CU_ASSERT_EQUAL(entries[3].time, 26);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	CU_ASSERT_EQUAL(ledger_sum_wait(sim_ledger(s), 1, 0, SIMPLE_IDLE).cycles, 20);
	simple_end(s);
}

static int waker(struct task *t, void *arg)
{
	(void)arg;
	task_wake(pair[1], 5);
	task_wake(pair[1], 7); /* both are due when it blocks: one return */
	task_wake(pair[1], 40);
	task_wake(pair[1], 30); /* each of these ends a block of its own */
	task_wake(pair[1], 30);
	if (task_block_until(t, SIMPLE_IDLE, 60) < 0 || sync(t))
		return KVMSIM_ECANCELED;
	task_wake(pair[1], 60);
	return 0;
}

static int sleeper(struct task *t, void *arg)
{
	(void)arg;
	charge(t, SIMPLE_ONE, 10);
	for (int i = 0; i < 3; i++) {
		if (task_block(t, SIMPLE_IDLE))
			return KVMSIM_ECANCELED;
		note(t, 0);
	}
	note(t, (uint64_t)task_block_until(t, SIMPLE_IDLE, 50)); /* 0: the time came */
	note(t, (uint64_t)task_block_until(t, SIMPLE_IDLE, 20)); /* 0 at once */
	note(t, (uint64_t)task_block_until(t, SIMPLE_IDLE, 90)); /* 1: woken at 60 */
	return 0;
}

static void no_wakeup_is_lost(void)
{
	static const struct entry expected[] = {{1, 10, 0}, {1, 30, 0}, {1, 40, 0},
						{1, 50, 0}, {1, 50, 0}, {1, 60, 1}};
	struct sim *s = simple_sim(NULL);

	n_entries = 0;
	pair[0] = simple_task(s, "waker", waker, NULL, 0);
	pair[1] = simple_task(s, "sleeper", sleeper, NULL, 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL_FATAL(n_entries, 6);
	for (size_t i = 0; i < 6; i++) {
		CU_ASSERT_EQUAL(entries[i].time, expected[i].time);
		CU_ASSERT_EQUAL(entries[i].what, expected[i].what);
	}
	/* The first block returned at once: nothing was waited for. */
	CU_ASSERT_EQUAL(ledger_sum_wait(sim_ledger(s), 1, 0, SIMPLE_IDLE).n, 5);
	CU_ASSERT_EQUAL(ledger_sum_wait(sim_ledger(s), 1, 0, SIMPLE_IDLE).cycles, 50);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	simple_end(s);
}

/* ---- the total order ---- */

static int steps(struct task *t, void *arg)
{
	struct rng r;
	int n = *(int *)arg;

	rng_init(&r, (uint64_t)n, task_id(t), "steps");
	for (int i = 0; i < n; i++) {
		charge(t, SIMPLE_ONE, rng_below(&r, 4));
		if (rng_below(&r, 2) && task_block_until(t, SIMPLE_IDLE, task_now(t) + 2) < 0)
			return KVMSIM_ECANCELED;
		if (sync(t))
			return KVMSIM_ECANCELED;
		note(t, 0);
	}
	return 0;
}

/* What tasks do when synced comes in order of (time, priority, task), and every task comes as often
 * as it should. */
static void synced_work_is_in_order(void)
{
	static const int priority[8] = {0, 5, -3, 0, -3, 2147483647, 0, -2147483647 - 1};
	int n = 50;

	for (unsigned round = 0; round < 20; round++) {
		struct sim *s = simple_sim(NULL);
		unsigned wrong = 0;

		n_entries = 0;
		for (unsigned i = 0; i < 8; i++) {
			struct task_opts o = {.name = "t",
					      .fn = steps,
					      .arg = &n,
					      .priority = priority[(i + round) % 8]};
			struct task *t;

			CU_ASSERT_EQUAL(task_create(s, &o, &t), 0);
		}
		CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
		CU_ASSERT_EQUAL(n_entries, 400);
		for (size_t i = 1; i < n_entries; i++) {
			const struct entry *a = &entries[i - 1], *b = &entries[i];
			int pa = priority[(a->task + round) % 8],
			    pb = priority[(b->task + round) % 8];

			if (a->time != b->time)
				wrong += a->time > b->time;
			else if (a->task != b->task)
				wrong += pa != pb ? pa > pb : a->task > b->task;
		}
		CU_ASSERT_EQUAL(wrong, 0);
		CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
		simple_end(s);
	}
}

/* ---- a queue, against Lindley's recursion ---- */

#define CUSTOMERS 2000
struct queue {
	struct task *server;
	cycles_t gap[CUSTOMERS], service[CUSTOMERS], arrived[CUSTOMERS], left[CUSTOMERS];
	unsigned in, out;
	bool idle;
};

static int arrivals(struct task *t, void *arg)
{
	struct queue *q = arg;

	for (unsigned i = 0; i < CUSTOMERS; i++) {
		if (task_block_until(t, SIMPLE_IDLE, task_now(t) + q->gap[i]) < 0)
			return KVMSIM_ECANCELED;
		q->arrived[q->in++] = task_now(t);
		if (q->idle) {
			q->idle = false;
			task_wake(q->server, task_now(t));
		}
	}
	return 0;
}

static int serve(struct task *t, void *arg)
{
	struct queue *q = arg;

	while (q->out < CUSTOMERS) {
		if (sync(t))
			return KVMSIM_ECANCELED;
		if (q->in == q->out) {
			q->idle = true;
			if (task_block(t, SIMPLE_IDLE))
				return KVMSIM_ECANCELED;
			continue;
		}
		charge(t, SIMPLE_ONE, q->service[q->out]);
		q->left[q->out++] = task_now(t);
	}
	return 0;
}

/* @gap and @service: mean in random queues, constant otherwise. */
static void run_queue(uint64_t gap, uint64_t service, bool random)
{
	struct sim *s = simple_sim(NULL);
	struct queue *q = calloc(1, sizeof(*q));
	cycles_t arrived = 0, left = 0;
	unsigned wrong = 0;
	struct rng r;

	CU_ASSERT_PTR_NOT_NULL_FATAL(q);
	rng_init(&r, gap, 0, "queue");
	for (unsigned i = 0; i < CUSTOMERS; i++) {
		q->gap[i] = random ? rng_below(&r, 2 * gap + 1) : gap;
		q->service[i] = random ? rng_below(&r, 2 * service + 1) : service;
	}
	q->server = simple_task(s, "server", serve, q, 0);
	simple_task(s, "arrivals", arrivals, q, 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(q->out, CUSTOMERS);
	for (unsigned i = 0; i < CUSTOMERS; i++) {
		arrived += q->gap[i];
		left = (left > arrived ? left : arrived) + q->service[i];
		wrong += q->arrived[i] != arrived || q->left[i] != left;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	simple_end(s);
	free(q);
}

static void queues_have_exact_times(void)
{
	run_queue(10, 9, false);
	run_queue(10, 10, false);
	run_queue(10, 13, false);
	run_queue(100, 90, true);
	run_queue(3, 3, true);
}

/* ---- ends ---- */

static int ended, destroyed;

static int inner(struct task *t, int depth)
{
	int r = depth ? inner(t, depth - 1) : task_block(t, SIMPLE_IDLE);

	destroyed += r == KVMSIM_ECANCELED;
	return r;
}

static int blocks_deep(struct task *t, void *arg)
{
	int r = inner(t, 9);

	(void)arg;
	ended++;
	return r;
}

static int syncs(struct task *t, void *arg)
{
	int r = 0;

	(void)arg;
	while (!r) {
		charge(t, SIMPLE_ONE, 1);
		r = sync(t);
	}
	ended++;
	return r;
}

static int works(struct task *t, void *arg)
{
	uint64_t done;
	int r = 0;

	(void)arg;
	while (!r)
		r = charge_interruptible(t, SIMPLE_ONE, 10, &done);
	/* Cancelled, nothing blocks any more. */
	CU_ASSERT_EQUAL(sync(t), KVMSIM_ECANCELED);
	CU_ASSERT_EQUAL(task_block(t, SIMPLE_IDLE), KVMSIM_ECANCELED);
	CU_ASSERT_EQUAL(task_block_until(t, SIMPLE_IDLE, 1), KVMSIM_ECANCELED);
	CU_ASSERT_TRUE(task_canceled(t));
	ended++;
	return r;
}

static void cancellation_unwinds_every_task(void)
{
	struct sim *s = simple_sim(NULL);

	ended = destroyed = 0;
	for (int i = 0; i < 5; i++)
		simple_task(s, "blocks", blocks_deep, NULL, (cycles_t)i);
	simple_task(s, "syncs", syncs, NULL, 0);
	simple_task(s, "syncs too", syncs, NULL, 1);
	simple_task(s, "works", works, NULL, 0);
	simple_task(s, "never started", blocks_deep, NULL, 1000000);
	CU_ASSERT_EQUAL(sim_run(s, 500), 0);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	CU_ASSERT_EQUAL(ended, 0);
	CU_ASSERT_TRUE(sim_now(s) > 500);
	simple_end(s);
	CU_ASSERT_EQUAL(ended, 9);
	CU_ASSERT_EQUAL(destroyed, 60);
}

static int stops(struct task *t, void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		charge(t, SIMPLE_ONE, 100);
		sim_stop(task_sim(t));
		if (sync(t))
			return KVMSIM_ECANCELED;
		note(t, 0);
	}
	return 0;
}

static void a_run_goes_on_after_a_stop(void)
{
	struct sim *s = simple_sim(NULL);

	n_entries = 0;
	simple_task(s, "stops", stops, NULL, 0);
	for (size_t i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(n_entries, i ? i - 1 : 0);
		CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	}
	CU_ASSERT_EQUAL(n_entries, 3);
	CU_ASSERT_EQUAL(sim_now(s), CYCLES_MAX);
	simple_end(s);
}

static void a_run_ends_at_a_time(void)
{
	struct sim *s = simple_sim(NULL);
	int n = 100;

	n_entries = 0;
	simple_task(s, "a", steps, &n, 0);
	simple_task(s, "b", steps, &n, 0);
	for (cycles_t until = 0; until < 100; until += 7) {
		CU_ASSERT_EQUAL(sim_run(s, until), 0);
		CU_ASSERT_TRUE(!n_entries || entries[n_entries - 1].time <= until);
		CU_ASSERT_TRUE(sim_now(s) > until);
	}
	CU_ASSERT_TRUE(n_entries > 20 && n_entries < 200);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(n_entries, 200);
	simple_end(s);
}

static int fails(struct task *t, void *arg)
{
	charge(t, SIMPLE_ONE, 50);
	if (sync(t))
		return KVMSIM_ECANCELED;
	return *(int *)arg;
}

static void a_tasks_error_ends_the_run(void)
{
	struct sim *s = simple_sim(NULL);
	int error = KVMSIM_EUNSUPPORTED, canceled = KVMSIM_ECANCELED;
	struct task_opts late = {.name = "late", .fn = fails, .arg = &error, .start = 20};
	struct task *t;

	simple_task(s, "gives up", fails, &canceled, 0);
	simple_task(s, "fails", fails, &error, 10);
	simple_task(s, "syncs", syncs, NULL, 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), KVMSIM_EUNSUPPORTED);
	CU_ASSERT_EQUAL(sim_now(s), 60);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), KVMSIM_EUNSUPPORTED);
	late.start = CYCLES_MAX;
	CU_ASSERT_EQUAL(task_create(s, &late, &t), KVMSIM_EINVAL);
	late.fn = NULL;
	CU_ASSERT_EQUAL(task_create(s, &late, &t), KVMSIM_EINVAL);
	simple_end(s);
}

static int blocks(struct task *t, void *arg)
{
	charge(t, SIMPLE_ONE, *(unsigned *)arg);
	return task_block(t, SIMPLE_CPU);
}

static void deadlock_names_the_tasks(void)
{
	static const char long_name[] = "a name so long that it takes more room than is left";
	unsigned work[2] = {3, 4};
	struct sim *s = simple_sim(NULL);
	struct task_opts daemon = {.name = "daemon", .fn = blocks, .arg = &work[0], .daemon = true};
	struct task *t;

	CU_ASSERT_EQUAL(task_create(s, &daemon, &t), 0);
	simple_task(s, "vcpu0", blocks, &work[0], 0);
	simple_task(s, "migration", blocks, &work[1], 2);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), KVMSIM_EDEADLOCK);
	CU_ASSERT_STRING_EQUAL(simple_message,
			       "deadlock: nothing is pending and these tasks are blocked: "
			       "vcpu0 (cpu since 3), migration (cpu since 6)");
	simple_end(s);

	s = simple_sim(NULL);
	for (int i = 0; i < 20; i++)
		simple_task(s, long_name, blocks, &work[0], 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), KVMSIM_EDEADLOCK);
	CU_ASSERT_EQUAL(simple_messages, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(simple_message, " and 9 more"));
	simple_end(s);

	/* A daemon alone is no deadlock. */
	s = simple_sim(NULL);
	CU_ASSERT_EQUAL(task_create(s, &daemon, &t), 0);
	simple_task(s, "a", fails, &(int){0}, 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(simple_messages, 0);
	simple_end(s);
}

/* ---- the end of time ---- */

static int work_to_the_end(struct task *t, void *arg)
{
	uint64_t done;

	charge_cycles(t, SIMPLE_ONE, 1,
		      CYCLES_MAX - 1 - task_now(t)); /* the last moment there is */
	note(t, 0);
	if (*(int *)arg)
		return charge_interruptible(t, SIMPLE_ONE, UINT64_MAX, &done);
	charge(t, SIMPLE_ONE, 1);
	charge(t, SIMPLE_ONE, UINT64_MAX);
	note(t, 1);
	return 0;
}

static void a_clock_does_not_wrap(void)
{
	for (int way = 0; way < 2; way++) {
		struct sim *s = simple_sim(NULL);

		n_entries = 0;
		simple_task(s, "eternal", work_to_the_end, &way, 7);
		CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), KVMSIM_EINVAL);
		CU_ASSERT_EQUAL(simple_messages, 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(simple_message, "clock of task eternal"));
		CU_ASSERT_EQUAL(n_entries, way ? 1 : 2);
		CU_ASSERT_EQUAL(entries[n_entries - 1].time, CYCLES_MAX - 1);
		CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
		simple_end(s);
	}
}

static CU_TestInfo tests[] = {{"two_tasks_take_turns", two_tasks_take_turns},
			      {"no_wakeup_is_lost", no_wakeup_is_lost},
			      {"synced_work_is_in_order", synced_work_is_in_order},
			      {"queues_have_exact_times", queues_have_exact_times},
			      {"cancellation_unwinds_every_task", cancellation_unwinds_every_task},
			      {"a_run_goes_on_after_a_stop", a_run_goes_on_after_a_stop},
			      {"a_run_ends_at_a_time", a_run_ends_at_a_time},
			      {"a_tasks_error_ends_the_run", a_tasks_error_ends_the_run},
			      {"a_clock_does_not_wrap", a_clock_does_not_wrap},
			      {"deadlock_names_the_tasks", deadlock_names_the_tasks},
			      CU_TEST_INFO_NULL};
TEST_MAIN("task", tests)
