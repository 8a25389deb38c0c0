// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>

#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/sched_util.h"
#include "tests/unit/simple.h"

#define NEAR(value, want, tolerance)                                                               \
	CU_ASSERT_TRUE((int64_t)(value) - (int64_t)(want) <= (int64_t)(tolerance) &&               \
		       (int64_t)(want) - (int64_t)(value) <= (int64_t)(tolerance))

static const struct sched_opts one_cpu = {.cpus = 1};
static const struct sched_opts two_cpus = {.cpus = 2};

/* By hand: starts at 5, works 300, alone. */
static void one_thread_has_the_cpu(void)
{
	struct worker w = {.work = 300};
	struct host h;

	host_open(&h, &one_cpu, "", false);
	worker_add(&h, &w, &(struct sched_thread_opts){.name = "w", .pin = -1}, 5);
	CU_ASSERT_EQUAL(sim_run(h.sim, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(task_now(w.task), 305);
	CU_ASSERT_EQUAL(sched_thread_stats(w.th).exec, 300);
	CU_ASSERT_EQUAL(sched_thread_stats(w.th).run_delay, 0);
	CU_ASSERT_EQUAL(sched_idle_cycles(h.sched, 0), 5);
	host_close(&h);
}

static void two_busy_threads_have_half_each(void)
{
	struct worker w[2] = {{.work = FOREVER}, {.work = FOREVER}};
	struct host h;

	host_open(&h, &one_cpu, "", false);
	for (int i = 0; i < 2; i++)
		worker_add(&h, &w[i], &(struct sched_thread_opts){.name = "w", .pin = -1}, 0);
	host_run(&h, 1000 * MS);
	for (int i = 0; i < 2; i++) {
		struct sched_thread_stats st = sched_thread_stats(w[i].th);

		NEAR(worker_share(&w[i], 0), 500, 10);
		CU_ASSERT_EQUAL(st.exec + st.run_delay, 1000 * MS);
		CU_ASSERT_TRUE(st.involuntary > 0 && !st.voluntary);
	}
	CU_ASSERT_EQUAL(sched_idle_cycles(h.sched, 0), 0);
	host_close(&h);
}

/* Each level is worth 10 % of the CPU: shares are as the weights of kernel/sched/core.c. */
static void nice_levels_have_their_weights(void)
{
	static const struct {
		int nice[2];
		unsigned weight[2];
	} row[] = {{{0, 5}, {1024, 335}},
		   {{-5, 0}, {3121, 1024}},
		   {{19, 0}, {15, 1024}},
		   {{-20, 19}, {88761, 15}},
		   {{10, 11}, {110, 87}}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct worker w[2] = {{.work = FOREVER}, {.work = FOREVER}};
		unsigned sum = row[i].weight[0] + row[i].weight[1];
		struct host h;

		host_open(&h, &one_cpu, "", false);
		for (int j = 0; j < 2; j++)
			worker_add(&h, &w[j],
				   &(struct sched_thread_opts){
					   .name = "w", .pin = -1, .nice = row[i].nice[j]},
				   0);
		host_run(&h, 20000 * MS);
		for (int j = 0; j < 2; j++)
			NEAR(worker_share(&w[j], 0), row[i].weight[j] * 1000 / sum, 10);
		host_close(&h);
	}
}

struct pair {
	struct worker *sleeper;
	cycles_t woken_at, ran_at, sent_at;
};

static struct pair pair;

static int sleeper(struct worker *w)
{
	int r = sched_sleep(w->th, WAIT_idle);

	pair.ran_at = task_now(w->task);
	return r;
}

static int waker(struct worker *w)
{
	int r = worker_work(w, 2000);

	if (r)
		return r;
	pair.sent_at = task_now(w->task);
	sched_wake(w->task, w->th, pair.sleeper->th);
	pair.woken_at = task_now(w->task);
	return worker_work(w, 5000);
}

/* By hand: the wake-up takes 40, the interrupt 1000, the switch 7. */
static void a_wake_up_of_an_idle_cpu(void)
{
	for (int reference = 0; reference < 2; reference++) {
		struct worker s = {.fn = sleeper}, w = {.fn = waker};
		struct host h;

		host_open(&h, &two_cpus, "wake_up = 40\ncontext_switch = 7\n", reference);
		pair.sleeper = &s;
		worker_add(&h, &s, &(struct sched_thread_opts){.name = "s", .pin = 0}, 0);
		worker_add(&h, &w, &(struct sched_thread_opts){.name = "w", .pin = 1}, 0);
		CU_ASSERT_EQUAL(sim_run(h.sim, CYCLES_MAX), 0);
		CU_ASSERT_EQUAL(pair.sent_at, 2007);
		CU_ASSERT_EQUAL(pair.woken_at, 2047);
		CU_ASSERT_EQUAL(pair.ran_at, 2047 + IPI + 7);
		CU_ASSERT_EQUAL(task_now(w.task), 2047 + 5000);
		CU_ASSERT_EQUAL(sched_thread_stats(s.th).run_delay, IPI);
		CU_ASSERT_EQUAL(sched_thread_stats(s.th).exec, 7 + 7);
		/* From its sleep to its wake-up, and from its end to the other's. */
		CU_ASSERT_EQUAL(sched_idle_cycles(h.sched, 0),
				2047 + IPI - 7 + 2047 + 5000 - (2047 + IPI + 7));
		host_close(&h);
	}
}

/* On one CPU it preempts its waker, which has run for long: at once. */
static void a_wake_up_on_its_own_cpu(void)
{
	struct worker s = {.fn = sleeper}, w = {.fn = waker};
	struct host h;

	host_open(
		&h,
		&(struct sched_opts){.cpus = 1, .wakeup_granularity_ns = 500, .latency_ns = 100000},
		"", false);
	pair.sleeper = &s;
	worker_add(&h, &s, &(struct sched_thread_opts){.name = "s", .pin = -1}, 0);
	worker_add(&h, &w, &(struct sched_thread_opts){.name = "w", .pin = -1}, 1);
	CU_ASSERT_EQUAL(sim_run(h.sim, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(pair.woken_at, 2001);
	CU_ASSERT_EQUAL(pair.ran_at, 2001);
	CU_ASSERT_EQUAL(sched_thread_stats(w.th).involuntary, 1);
	CU_ASSERT_EQUAL(sched_thread_stats(w.th).wakeup_preempted, 1);
	host_close(&h);
}

static int early(struct worker *w)
{
	int r = worker_work(w, 10000);

	return r ? r : sched_sleep(w->th, WAIT_idle);
}

/* A wake-up before the sleep ends it: nothing is lost. */
static void a_wake_up_before_the_sleep_counts(void)
{
	struct worker s = {.fn = early}, w = {.fn = waker};
	struct host h;

	host_open(&h, &two_cpus, "", false);
	pair.sleeper = &s;
	worker_add(&h, &s, &(struct sched_thread_opts){.name = "s", .pin = 0}, 0);
	worker_add(&h, &w, &(struct sched_thread_opts){.name = "w", .pin = 1}, 0);
	CU_ASSERT_EQUAL(sim_run(h.sim, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(task_now(s.task), 10000);
	host_close(&h);
}

/* A timer's wake-up on an idle CPU is punctual. */
static void a_timer_wakes(void)
{
	struct worker w = {.work = 1000, .burst = 100, .pause = 900};
	struct host h;

	host_open(&h, &one_cpu, "", false);
	worker_add(&h, &w, &(struct sched_thread_opts){.name = "w", .pin = -1}, 0);
	CU_ASSERT_EQUAL(sim_run(h.sim, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(task_now(w.task), 10000);
	CU_ASSERT_EQUAL(w.latest, 0);
	CU_ASSERT_EQUAL(sched_idle_cycles(h.sched, 0), 9000);
	host_close(&h);
}

/* A sleeper that uses a tenth of a CPU gets it beside three busy threads, soon after it wakes. */
static void a_sleeper_is_not_starved(void)
{
	struct worker busy[3] = {{.work = FOREVER}, {.work = FOREVER}, {.work = FOREVER}};
	struct worker w = {.work = FOREVER, .burst = MS, .pause = 9 * MS};
	struct host h;

	host_open(&h, &one_cpu, "", false);
	for (int i = 0; i < 3; i++)
		worker_add(&h, &busy[i], &(struct sched_thread_opts){.name = "b", .pin = -1}, 0);
	worker_add(&h, &w, &(struct sched_thread_opts){.name = "w", .pin = -1}, 0);
	host_run(&h, 5000 * MS);
	CU_ASSERT_TRUE(worker_share(&w, 0) > 90);
	/* It preempts whoever runs unless that one is behind by less than a wake-up granularity:
	 * then it waits for the next tick that finds more than the least slice gone. */
	CU_ASSERT_TRUE(w.latest < 6 * MS);
	host_close(&h);
}

static cycles_t first_preempted;

static void sched_out(struct sched_thread *th, bool preempted)
{
	if (preempted && !first_preempted)
		first_preempted = task_now(sched_task(th));
}

static int sleeps_once(struct worker *w)
{
	int r = sched_sleep_until(w->th, WAIT_idle, 100 * MS);

	return r < 0 ? r : worker_work(w, 50 * MS);
}

/*
 * By hand: who has slept for 100 ms wakes 3 ms behind a busy thread, half a latency, and preempts
 * it. Its slice of 3 ms is over at the tick at 104 ms, where it is 1 ms ahead. With a whole latency
 * it is behind still, and is picked again up to the tick at 107 ms.
 */
static void sleepers_are_gentle(void)
{
	for (int whole = 0; whole < 2; whole++) {
		struct worker s = {.fn = sleeps_once}, b = {.work = FOREVER};
		struct host h;

		host_open(&h, &(struct sched_opts){.cpus = 1, .no_gentle_sleepers = whole}, "",
			  false);
		worker_add(
			&h, &s,
			&(struct sched_thread_opts){.name = "s", .pin = -1, .sched_out = sched_out},
			0);
		worker_add(&h, &b, &(struct sched_thread_opts){.name = "b", .pin = -1}, 1);
		first_preempted = 0;
		host_run(&h, 300 * MS);
		CU_ASSERT_EQUAL(first_preempted, whole ? 107 * MS : 104 * MS);
		CU_ASSERT_EQUAL(sched_thread_stats(b.th).wakeup_preempted, 1);
		host_close(&h);
	}
}

static int notifier(struct worker *w)
{
	int r = worker_work(w, 100);

	sched_notify(w->task, pair.sleeper->th, 0);
	return r;
}

static int spinner(struct worker *w)
{
	int r = sched_spin(w->th, WAIT_spin, 1000000);

	CU_ASSERT_EQUAL(r, 1);
	pair.ran_at = task_now(w->task);
	return 0;
}

static int working(struct worker *w)
{
	uint64_t done;
	int r = sched_work(w->th, COUNT_insn, 1000000, &done);

	CU_ASSERT_EQUAL(done, 100 + IPI);
	pair.ran_at = task_now(w->task);
	return r;
}

/* A busy wait sees a line change at once, work is interrupted. */
static void notified(void)
{
	for (int spins = 0; spins < 2; spins++) {
		struct worker s = {.fn = spins ? spinner : working}, w = {.fn = notifier};
		struct host h;

		host_open(&h, &two_cpus, "", false);
		pair.sleeper = &s;
		worker_add(&h, &s, &(struct sched_thread_opts){.name = "s", .pin = 0}, 0);
		worker_add(&h, &w, &(struct sched_thread_opts){.name = "w", .pin = 1}, 0);
		CU_ASSERT_EQUAL(sim_run(h.sim, CYCLES_MAX), 0);
		CU_ASSERT_EQUAL(pair.ran_at, spins ? 100 : 100 + IPI);
		host_close(&h);
	}
}

static void what_cannot_be(void)
{
	struct sched_thread *th;
	struct host h;
	struct sched *s;

	host_open(&h, &two_cpus, "", false);
	CU_ASSERT_EQUAL(sched_create(h.sim, &(struct sched_opts){.cpus = 0}, &s), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(sched_create(h.sim, &(struct sched_opts){.cpus = 513}, &s), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(sched_create(h.sim, &(struct sched_opts){.cpus = 6, .cpus_per_llc = 4}, &s),
			KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(sched_thread_create(
				h.sched, &(struct sched_thread_opts){.name = "w", .nice = 20}, &th),
			KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(sched_thread_create(
				h.sched, &(struct sched_thread_opts){.name = "w", .pin = 2}, &th),
			KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(simple_messages, 5);
	host_close(&h);
}

static CU_TestInfo tests[] = {
	{"one_thread_has_the_cpu", one_thread_has_the_cpu},
	{"two_busy_threads_have_half_each", two_busy_threads_have_half_each},
	{"nice_levels_have_their_weights", nice_levels_have_their_weights},
	{"a_wake_up_of_an_idle_cpu", a_wake_up_of_an_idle_cpu},
	{"a_wake_up_on_its_own_cpu", a_wake_up_on_its_own_cpu},
	{"a_wake_up_before_the_sleep_counts", a_wake_up_before_the_sleep_counts},
	{"a_timer_wakes", a_timer_wakes},
	{"a_sleeper_is_not_starved", a_sleeper_is_not_starved},
	{"sleepers_are_gentle", sleepers_are_gentle},
	{"notified", notified},
	{"what_cannot_be", what_cannot_be},
	CU_TEST_INFO_NULL};
TEST_MAIN("sched", tests)
