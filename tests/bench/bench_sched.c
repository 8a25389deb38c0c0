// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>

#include "model/sim/rng.h"
#include "tests/bench/bench.h"
#include "tests/unit/sched_util.h"

/*
 * What the host's scheduler can do: context switches of threads that wake each other, wake-ups of
 * idle CPUs, busy threads that share a large host.
 */
#define MAX_THREADS 4000

static struct worker w[MAX_THREADS];
static struct rng rng[MAX_THREADS];

static int ping(struct worker *x)
{
	struct worker *other = &w[(x - w) ^ 1];
	int r = 0;

	for (int i = 0; i < 300000 && !r; i++) {
		r = worker_work(x, 1000);
		sched_wake(x->task, x->th, other->th);
		if (!r)
			r = sched_sleep(x->th, WAIT_idle);
	}
	sched_wake(x->task, x->th, other->th);
	return r;
}

static uint64_t switches(uint32_t threads)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < threads; i++) {
		struct sched_thread_stats st = sched_thread_stats(w[i].th);

		n += st.voluntary + st.involuntary;
	}
	return n;
}

/* @arg: CPUs. */
static uint64_t two_that_wake_each_other(void *arg)
{
	uint32_t cpus = *(const uint32_t *)arg;
	struct host h;
	uint64_t n;

	host_open(&h, &(struct sched_opts){.cpus = cpus}, "", false);
	for (uint32_t i = 0; i < 2; i++) {
		w[i] = (struct worker){.fn = ping};
		worker_add(&h, &w[i],
			   &(struct sched_thread_opts){.name = "w", .pin = (int32_t)(i % cpus)}, 0);
	}
	if (sim_run(h.sim, CYCLES_MAX))
		abort();
	n = switches(2);
	host_close(&h);
	return n;
}

static int comes_and_goes(struct worker *x)
{
	struct rng *g = &rng[x - w];
	int r = 0;

	while (r >= 0) {
		r = worker_work(x, rng_below(g, 200 * US));
		if (r >= 0)
			r = sched_sleep_until(x->th, WAIT_idle,
					      task_now(x->task) + rng_below(g, 200 * US));
	}
	return r;
}

struct crowd {
	uint32_t cpus, threads;
	bool busy;
	cycles_t time;
};

static uint64_t crowd(void *arg)
{
	const struct crowd *c = arg;
	struct host h;
	uint64_t n;

	host_open(&h, &(struct sched_opts){.cpus = c->cpus}, "", false);
	for (uint32_t i = 0; i < c->threads; i++) {
		w[i] = (struct worker){.work = FOREVER, .fn = c->busy ? NULL : comes_and_goes};
		rng_init(&rng[i], 1, i, "bench");
		worker_add(&h, &w[i], &(struct sched_thread_opts){.name = "w", .pin = -1}, 0);
	}
	host_run(&h, c->time);
	n = switches(c->threads);
	host_close(&h);
	return n;
}

int main(void)
{
	static uint32_t one = 1, two = 2;
	static struct crowd sleepers = {32, 96, false, 500 * MS},
			    large = {512, 4000, true, 2000 * MS};

	bench_run("2 threads wake each other, 1 CPU", "context switches", two_that_wake_each_other,
		  &one, "three events and as many coroutine switches in each");
	bench_run("2 threads wake each other, 2 CPUs", "context switches", two_that_wake_each_other,
		  &two, "the same");
	bench_run("96 threads come and go, 32 CPUs", "context switches", crowd, &sleepers,
		  "looks for idle CPUs and busy ones, over 32 run queues");
	bench_run("4000 busy threads, 512 CPUs", "context switches", crowd, &large,
		  "ticks: four of them for each switch, balancing over 512 run queues");
	return 0;
}
