// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>

#include "tests/unit/harness.h"
#include "tests/unit/sched_util.h"

#define NEAR(value, want, tolerance)                                                               \
	CU_ASSERT_TRUE((int64_t)(value) - (int64_t)(want) <= (int64_t)(tolerance) &&               \
		       (int64_t)(want) - (int64_t)(value) <= (int64_t)(tolerance))

static struct worker w[64];

/* @n groups of @threads each with @shares on @cpus: permille of the host that each has. */
static void run(uint32_t cpus, const uint32_t *threads, const uint64_t *shares, uint32_t n,
		unsigned *permille)
{
	struct host h;
	uint32_t k = 0;

	host_open(&h, &(struct sched_opts){.cpus = cpus}, "", false);
	for (uint32_t i = 0; i < n; i++) {
		struct sched_group *g;

		if (sched_group_create(h.sched, "vm", shares[i], &g))
			abort();
		for (uint32_t j = 0; j < threads[i]; j++, k++) {
			w[k] = (struct worker){.work = FOREVER};
			worker_add(&h, &w[k],
				   &(struct sched_thread_opts){.name = "w", .group = g, .pin = -1},
				   0);
		}
	}
	host_run(&h, 20000 * MS);
	k = 0;
	for (uint32_t i = 0; i < n; i++) {
		permille[i] = 0;
		for (uint32_t j = 0; j < threads[i]; j++)
			permille[i] += worker_share(&w[k++], 0);
		permille[i] /= cpus;
	}
	host_close(&h);
}

static void groups_have_their_shares(void)
{
	unsigned p[3];

	run(1, (const uint32_t[]){1, 4}, (const uint64_t[]){1024, 1024}, 2, p);
	NEAR(p[0], 500, 10);
	NEAR(p[1], 500, 10);
	run(1, (const uint32_t[]){2, 2}, (const uint64_t[]){1024, 3072}, 2, p);
	NEAR(p[0], 250, 10);
	NEAR(p[1], 750, 10);
	/* On four CPUs each has threads enough to use its part. */
	run(4, (const uint32_t[]){4, 12}, (const uint64_t[]){1024, 1024}, 2, p);
	NEAR(p[0], 500, 50);
	NEAR(p[1], 500, 50);
	run(4, (const uint32_t[]){8, 8, 8}, (const uint64_t[]){1024, 1024, 2048}, 3, p);
	NEAR(p[0], 250, 40);
	NEAR(p[1], 250, 40);
	NEAR(p[2], 500, 40);
	/* One thread cannot use more than a CPU. */
	run(4, (const uint32_t[]){1, 8}, (const uint64_t[]){1024, 1024}, 2, p);
	NEAR(p[0], 250, 10);
	NEAR(p[1], 750, 10);
}

/* A group weighs as much as a single thread of nice 0. */
static void a_group_beside_a_thread(void)
{
	struct sched_group *g;
	struct host h;

	host_open(&h, &(struct sched_opts){.cpus = 1}, "", false);
	if (sched_group_create(h.sched, "vm", 1024, &g))
		abort();
	for (int i = 0; i < 5; i++) {
		w[i] = (struct worker){.work = FOREVER};
		worker_add(
			&h, &w[i],
			&(struct sched_thread_opts){.name = "w", .group = i ? g : NULL, .pin = -1},
			0);
	}
	host_run(&h, 10000 * MS);
	NEAR(worker_share(&w[0], 0), 500, 10);
	for (int i = 1; i < 5; i++)
		NEAR(worker_share(&w[i], 0), 125, 10);
	host_close(&h);
}

/* A group's threads on four CPUs have a quarter of its shares on each: against another group's only
 * thread, 256 to 1024. */
static void shares_are_divided_by_cpus(void)
{
	struct sched_group *g[2];
	struct host h;

	host_open(&h, &(struct sched_opts){.cpus = 4}, "", false);
	for (int i = 0; i < 2; i++)
		if (sched_group_create(h.sched, "vm", 1024, &g[i]))
			abort();
	for (int i = 0; i < 5; i++) {
		w[i] = (struct worker){.work = FOREVER};
		worker_add(
			&h, &w[i],
			&(struct sched_thread_opts){.name = "w", .group = g[i / 4], .pin = i % 4},
			0);
	}
	host_run(&h, 10000 * MS);
	NEAR(worker_share(&w[0], 0), 200, 10);
	NEAR(worker_share(&w[4], 0), 800, 10);
	for (int i = 1; i < 4; i++)
		CU_ASSERT_EQUAL(worker_share(&w[i], 0), 1000);
	host_close(&h);
}

/* ---- yields ---- */

static struct worker *target;
static int result;
static bool alone;
static cycles_t yields_after, yielded_at, ran_at;

static int yields(struct worker *x)
{
	int r = worker_work(x, yields_after);

	if (r)
		return r;
	yielded_at = task_now(x->task);
	result = sched_yield_to(x->th, target->th, true, &alone);
	return worker_work(x, MS);
}

static int notes_the_start(struct worker *x)
{
	ran_at = task_now(x->task);
	return worker_work(x, 100 * MS);
}

/* Five others wait, all equal; the last of them runs next. */
static void a_yield_to_on_one_cpu(void)
{
	struct host h;

	host_open(&h, &(struct sched_opts){.cpus = 1}, "", false);
	w[0] = (struct worker){.fn = yields};
	worker_add(&h, &w[0], &(struct sched_thread_opts){.name = "y", .pin = -1}, 0);
	for (int i = 1; i < 6; i++) {
		w[i] = (struct worker){.fn = notes_the_start};
		worker_add(&h, &w[i], &(struct sched_thread_opts){.name = "w", .pin = -1}, 10);
	}
	target = &w[5];
	yields_after = MS;
	ran_at = 0;
	host_run(&h, 1100 * US);
	CU_ASSERT_EQUAL(yielded_at, MS);
	CU_ASSERT_EQUAL(ran_at, MS);
	CU_ASSERT_TRUE(sched_on_cpu(w[5].th));
	CU_ASSERT_FALSE(alone);
	host_run(&h, 1000 * MS);
	CU_ASSERT_EQUAL(result, 1);
	CU_ASSERT_EQUAL(sched_thread_stats(w[0].th).yields_to, 1);
	host_close(&h);
}

/* The target waits on another CPU, which is interrupted and takes it unless it is ahead by more
 * than the wake-up granularity, 2 ms on two CPUs. It is new there, and so starts a slice behind,
 * half of a latency of 12 ms: yields after 1 ms are too early, after 5 ms not. */
static void a_yield_to_another_cpu(void)
{
	for (int late = 0; late < 2; late++) {
		struct host h;

		host_open(&h, &(struct sched_opts){.cpus = 2}, "", false);
		w[0] = (struct worker){.fn = yields};
		worker_add(&h, &w[0], &(struct sched_thread_opts){.name = "y", .pin = 0}, 0);
		w[1] = (struct worker){.work = FOREVER};
		worker_add(&h, &w[1], &(struct sched_thread_opts){.name = "a", .pin = 1}, 0);
		w[2] = (struct worker){.fn = notes_the_start};
		worker_add(&h, &w[2], &(struct sched_thread_opts){.name = "b", .pin = 1}, 10);
		target = &w[2];
		ran_at = 0;
		yields_after = late ? 5 * MS : MS;
		host_run(&h, 1000 * MS);
		CU_ASSERT_EQUAL(result, 1);
		CU_ASSERT_EQUAL(ran_at == yields_after + IPI, late);
		host_close(&h);
	}
}

/* Nobody else waits on either CPU: the kernel says -ESRCH. A target that runs is not yielded to. */
static void a_yield_to_in_vain(void)
{
	for (int others = 0; others < 2; others++) {
		struct host h;

		host_open(&h, &(struct sched_opts){.cpus = 2}, "", false);
		w[0] = (struct worker){.fn = yields};
		w[1] = (struct worker){.work = FOREVER};
		worker_add(&h, &w[0], &(struct sched_thread_opts){.name = "y", .pin = 0}, 0);
		worker_add(&h, &w[1], &(struct sched_thread_opts){.name = "a", .pin = 1}, 0);
		w[2] = (struct worker){.work = FOREVER};
		if (others)
			worker_add(&h, &w[2], &(struct sched_thread_opts){.name = "b", .pin = 0},
				   0);
		target = &w[1];
		yields_after = MS;
		result = -1;
		host_run(&h, 100 * MS);
		CU_ASSERT_EQUAL(result, 0);
		CU_ASSERT_EQUAL(alone, !others);
		CU_ASSERT_EQUAL(sched_thread_stats(w[0].th).yields_to, 0);
		host_close(&h);
	}
}

static int yields_once(struct worker *x)
{
	int r = worker_work(x, yields_after);

	r = r ? r : sched_yield(x->th);
	return r ? r : worker_work(x, 100 * MS);
}

/* By hand: on one CPU a latency is 6 ms, a wake-up granularity 1 ms. The other one, new at 10 us,
 * is 3 ms ahead of the one that runs. Who yields 0.5 ms before it would be ahead itself is skipped,
 * who yields 1.5 ms before that goes on: up to the tick that finds it ahead. */
static void a_yield_skips_its_caller(void)
{
	for (int late = 0; late < 2; late++) {
		struct host h;

		host_open(&h, &(struct sched_opts){.cpus = 1}, "", false);
		w[0] = (struct worker){.fn = yields_once};
		w[1] = (struct worker){.fn = notes_the_start};
		worker_add(&h, &w[0], &(struct sched_thread_opts){.name = "y", .pin = -1}, 0);
		worker_add(&h, &w[1], &(struct sched_thread_opts){.name = "b", .pin = -1}, 10 * US);
		yields_after = late ? 2500 * US : 1500 * US;
		host_run(&h, 1000 * MS);
		CU_ASSERT_EQUAL(ran_at, late ? 2500 * US : 4000 * US);
		host_close(&h);
	}
}

static CU_TestInfo tests[] = {{"groups_have_their_shares", groups_have_their_shares},
			      {"a_group_beside_a_thread", a_group_beside_a_thread},
			      {"shares_are_divided_by_cpus", shares_are_divided_by_cpus},
			      {"a_yield_to_on_one_cpu", a_yield_to_on_one_cpu},
			      {"a_yield_to_another_cpu", a_yield_to_another_cpu},
			      {"a_yield_to_in_vain", a_yield_to_in_vain},
			      {"a_yield_skips_its_caller", a_yield_skips_its_caller},
			      CU_TEST_INFO_NULL};
TEST_MAIN("sched_groups", tests)
