// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>

#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/sched_util.h"
#include "tests/unit/simple.h"

#define NEAR(value, want, tolerance)                                                               \
	CU_ASSERT_TRUE((int64_t)(value) - (int64_t)(want) <= (int64_t)(tolerance) &&               \
		       (int64_t)(want) - (int64_t)(value) <= (int64_t)(tolerance))
#define MAX_WORKERS 4000

static struct worker w[MAX_WORKERS];

static void busy(struct host *h, uint32_t n, struct sched_thread_opts o)
{
	for (uint32_t i = 0; i < n; i++) {
		char name[16];

		snprintf(name, sizeof(name), "w%u", i);
		o.name = name;
		w[i] = (struct worker){.work = FOREVER};
		worker_add(h, &w[i], &o, 0);
	}
}

/* Each thread gets its part of the CPUs: of three on two exactly, by changing places. Where only a
 * fraction of a thread's load is too much, CFS moves one after several vain attempts, and some keep
 * a better place for long: then it is within a fifth, and no CPU is ever idle. */
static void threads_have_equal_parts(void)
{
	static const struct {
		uint32_t cpus, llc, threads;
	} row[] = {{2, 0, 3}, {4, 0, 5}, {4, 2, 6}, {8, 4, 20}, {3, 0, 4}, {3, 1, 4}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		unsigned want = row[i].cpus * 1000 / row[i].threads;
		struct host h;

		host_open(&h, &(struct sched_opts){.cpus = row[i].cpus, .cpus_per_llc = row[i].llc},
			  "", false);
		busy(&h, row[i].threads, (struct sched_thread_opts){.pin = -1});
		host_run(&h, 20000 * MS);
		for (uint32_t j = 0; j < row[i].threads; j++)
			NEAR(worker_share(&w[j], 0), want, row[i].threads == 3 ? 7 : want / 5);
		for (uint32_t j = 0; j < row[i].cpus; j++)
			CU_ASSERT_EQUAL(sched_idle_cycles(h.sched, j), 0);
		host_close(&h);
	}
}

/* Threads begin on idle CPUs, on the cache with more of them. */
static void threads_start_apart(void)
{
	struct host h;

	host_open(&h, &(struct sched_opts){.cpus = 8, .cpus_per_llc = 4}, "", false);
	busy(&h, 4, (struct sched_thread_opts){.pin = -1});
	host_run(&h, 10);
	CU_ASSERT_EQUAL(sched_cpu(w[0].th) / 4 + sched_cpu(w[1].th) / 4, 1);
	CU_ASSERT_EQUAL(sched_cpu(w[2].th) / 4 + sched_cpu(w[3].th) / 4, 1);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(sched_thread_stats(w[i].th).run_delay, 0);
	host_close(&h);
}

static void pinned_threads_stay(void)
{
	struct host h;

	host_open(&h, &(struct sched_opts){.cpus = 4}, "", false);
	busy(&h, 4, (struct sched_thread_opts){.pin = 2});
	host_run(&h, 4000 * MS);
	for (int i = 0; i < 4; i++) {
		NEAR(worker_share(&w[i], 0), 250, 10);
		CU_ASSERT_EQUAL(sched_cpu(w[i].th), 2);
		CU_ASSERT_EQUAL(sched_thread_stats(w[i].th).migrations, 0);
	}
	CU_ASSERT_EQUAL(sched_idle_cycles(h.sched, 0), 4000 * MS);
	host_close(&h);
}

/* Two pinned to one of two CPUs, and two that are free: those end on the other CPU. */
static void the_free_ones_give_way_to_the_pinned(void)
{
	struct host h;

	host_open(&h, &(struct sched_opts){.cpus = 2}, "", false);
	for (int i = 0; i < 4; i++) {
		w[i] = (struct worker){.work = FOREVER};
		worker_add(&h, &w[i],
			   &(struct sched_thread_opts){.name = "w", .pin = i < 2 ? 0 : -1}, 0);
	}
	host_run(&h, 10000 * MS);
	for (int i = 0; i < 4; i++)
		NEAR(worker_share(&w[i], 0), 500, 50);
	host_close(&h);
}

/* Half of the threads end: the CPUs that they leave are soon used by the others. */
static void idle_cpus_pull(void)
{
	static const struct sched_opts machine[] = {
		{.cpus = 8}, {.cpus = 8, .cpus_per_llc = 4}, {.cpus = 8, .eager_newidle = true}};

	for (int m = 0; m < 3; m++) {
		struct host h;
		cycles_t idle = 0;

		host_open(&h, &machine[m], "", false);
		busy(&h, 16, (struct sched_thread_opts){.pin = -1});
		/* Those that start on CPUs 0 to 3. */
		for (int i = 0; i < 16; i++)
			w[i].work = 100 * MS;
		for (int i = 0; i < 8; i++)
			w[i].work = FOREVER;
		host_run(&h, 2000 * MS);
		for (uint32_t i = 0; i < 8; i++)
			idle += sched_idle_cycles(h.sched, i);
		/* The idle balance's interval is at most 16 ms. */
		CU_ASSERT_TRUE(idle < 8 * 20 * MS);
		for (uint32_t i = 0; i < 8; i++)
			CU_ASSERT_EQUAL(sched_nr_running(h.sched, i), 1);
		host_close(&h);
	}
}

/* Four busy threads on one of two caches: active balancing spreads them. */
static int join(struct worker *x)
{
	return worker_work(x, FOREVER);
}

static void caches_share_the_work(void)
{
	struct host h;
	unsigned first = 0;

	host_open(&h, &(struct sched_opts){.cpus = 8, .cpus_per_llc = 4}, "", false);
	/* The second cache is busy while the four start, then idle. */
	for (int i = 0; i < 8; i++) {
		w[i] = (struct worker){.work = i < 4 ? 10 * MS : FOREVER};
		worker_add(&h, &w[i],
			   &(struct sched_thread_opts){.name = "w", .pin = i < 4 ? 4 + i : -1},
			   i < 4 ? 0 : MS);
	}
	host_run(&h, 2 * MS);
	for (int i = 4; i < 8; i++)
		CU_ASSERT_TRUE(sched_cpu(w[i].th) < 4);
	/* One with two threads: CPUs with one have no tick that could kick the others. */
	w[8] = (struct worker){.fn = join};
	worker_add(&h, &w[8], &(struct sched_thread_opts){.name = "w", .pin = 0}, 3 * MS);
	host_run(&h, 3000 * MS);
	for (int i = 4; i < 9; i++)
		first += sched_cpu(w[i].th) < 4;
	CU_ASSERT_TRUE(first == 2 || first == 3);
	host_close(&h);
}

/* By hand: threads 0 and 2 share CPU 0 and change at its tick at 7 ms, after slices of 6 ms. CPU 1
 * becomes idle, at 3 ms: it pulls the one that waits, at once. At 7.2 ms: that one ran just now,
 * and is left alone; CPU 0's tick at 8 ms finds it for the idle CPU, which gets it by an interrupt.
 */
static void an_idle_cpu_pulls_at_once_or_by_a_tick(void)
{
	for (int late = 0; late < 2; late++) {
		struct host h;

		host_open(&h, &(struct sched_opts){.cpus = 2}, "", false);
		busy(&h, 3, (struct sched_thread_opts){.pin = -1});
		w[1].work = late ? 7200 * US : 3000 * US;
		host_run(&h, 100 * MS);
		CU_ASSERT_EQUAL(sched_idle_cycles(h.sched, 0), 0);
		CU_ASSERT_EQUAL(sched_idle_cycles(h.sched, 1), late ? 800 * US + IPI : 0);
		CU_ASSERT_EQUAL(sched_thread_stats(w[0].th).migrations +
					sched_thread_stats(w[2].th).migrations,
				1);
		host_close(&h);
	}
}

/* A waker and who it wakes, on two caches: the one woken comes to its waker's when its own CPU is
 * taken, or stays. Either way it has an idle CPU at once. */
static int server(struct worker *x)
{
	int r = 0;

	while (!r) {
		r = sched_sleep(x->th, WAIT_idle);
		r = r ? r : worker_work(x, 50 * US);
	}
	return r;
}

static int client(struct worker *x)
{
	int r = 0;

	for (int i = 0; i < 1000 && !r; i++) {
		r = worker_work(x, 100 * US);
		sched_wake(x->task, x->th, w[0].th);
	}
	return r ? r : 0;
}

static void who_is_woken_finds_an_idle_cpu(void)
{
	struct host h;

	host_open(&h, &(struct sched_opts){.cpus = 4, .cpus_per_llc = 2}, "", false);
	w[0] = (struct worker){.fn = server};
	w[1] = (struct worker){.fn = client};
	worker_add(&h, &w[0], &(struct sched_thread_opts){.name = "server", .pin = -1}, 0);
	worker_add(&h, &w[1], &(struct sched_thread_opts){.name = "client", .pin = -1}, 0);
	host_run(&h, 90 * MS);
	CU_ASSERT_EQUAL(sched_thread_stats(w[0].th).wakeups, 900);
	CU_ASSERT_EQUAL(sched_thread_stats(w[0].th).run_delay, 900 * IPI);
	/* Both started on the same CPU. Then the one that it was on is idle: it stays. */
	CU_ASSERT_EQUAL(sched_thread_stats(w[0].th).migrations, 1);
	host_close(&h);
}

/* 512 CPUs and 4,000 threads. */
static void a_large_host(void)
{
	struct host h;
	cycles_t sum = 0, idle = 0;

	host_open(&h, &(struct sched_opts){.cpus = 512, .cpus_per_llc = 32}, "", false);
	busy(&h, 4000, (struct sched_thread_opts){.pin = -1});
	host_run(&h, 200 * MS);
	for (int i = 0; i < 4000; i++)
		sum += sched_thread_stats(w[i].th).exec;
	for (uint32_t i = 0; i < 512; i++)
		idle += sched_idle_cycles(h.sched, i);
	CU_ASSERT_EQUAL(sum + idle, 512 * 200 * MS);
	CU_ASSERT_EQUAL(idle, 0);
	host_close(&h);
}

static CU_TestInfo tests[] = {
	{"threads_have_equal_parts", threads_have_equal_parts},
	{"threads_start_apart", threads_start_apart},
	{"pinned_threads_stay", pinned_threads_stay},
	{"the_free_ones_give_way_to_the_pinned", the_free_ones_give_way_to_the_pinned},
	{"idle_cpus_pull", idle_cpus_pull},
	{"an_idle_cpu_pulls_at_once_or_by_a_tick", an_idle_cpu_pulls_at_once_or_by_a_tick},
	{"caches_share_the_work", caches_share_the_work},
	{"who_is_woken_finds_an_idle_cpu", who_is_woken_finds_an_idle_cpu},
	{"a_large_host", a_large_host},
	CU_TEST_INFO_NULL};
TEST_MAIN("sched_balance", tests)
