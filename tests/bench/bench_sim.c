// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/sim/evq.h"
#include "model/sim/profile.h"
#include "model/sim/rng.h"
#include "model/sim/sim.h"
#include "tests/bench/bench.h"
#include "tests/unit/simple.h"

/*
 * What the simulator's core can do: the event queue alone (hold model: take the first event, put it
 * back an exponential time later; Jones 1986), tasks that switch, and an M/M/1 queue of two tasks.
 */

#define N_INCREMENTS (1u << 20)
static uint32_t increment[N_INCREMENTS]; /* exponential, mean 1000000 */

static void fill_increments(void)
{
	struct rng r;

	rng_init(&r, 1, 0, "bench");
	for (uint32_t i = 0; i < N_INCREMENTS; i++)
		increment[i] =
			(uint32_t)(-log(((double)(rng_u64(&r) >> 11) + 0.5) * 0x1p-53) * 1e6);
}

struct hold {
	uint32_t pending;
	struct evq q;
};

static uint64_t hold(void *arg)
{
	struct hold *h = arg;
	const uint64_t events = 10 * 1000 * 1000;

	for (uint64_t i = 0; i < events; i++) {
		struct evq_key key = evq_first(&h->q);

		key.time += increment[i % N_INCREMENTS];
		evq_set(&h->q, evq_slot(key), key);
	}
	return events;
}

static void bench_hold(uint32_t pending, const char *bound)
{
	struct hold h = {.pending = pending};
	char name[64];

	if (evq_reserve(&h.q, pending))
		abort();
	for (uint32_t i = 0; i < pending; i++)
		evq_set(&h.q, i, (struct evq_key){increment[i % N_INCREMENTS], i});
	snprintf(name, sizeof(name), "event queue, %u pending", pending);
	bench_run(name, "events", hold, &h, bound);
	evq_free(&h.q);
}

/* ---- tasks ---- */

#define CUSTOMERS (2 * 1000 * 1000)
#define QUEUE	  4096u

struct mm1 {
	struct task *server;
	cycles_t arrived[QUEUE];
	uint32_t head, tail, draw;
	uint64_t served;
	cycles_t sojourn;
	bool idle;
};

/* Load 0.9: arrivals 1 / 0.9 of a service time apart. */
static int source(struct task *t, void *arg)
{
	struct mm1 *q = arg;

	for (uint32_t i = 0; i < CUSTOMERS; i++) {
		cycles_t next = task_now(t) + increment[q->draw++ % N_INCREMENTS] * 10ull / 9;

		if (task_block_until(t, SIMPLE_IDLE, next) < 0)
			return KVMSIM_ECANCELED;
		if (q->tail - q->head < QUEUE)
			q->arrived[q->tail++ % QUEUE] = task_now(t);
		if (q->idle) {
			q->idle = false;
			task_wake(q->server, task_now(t));
		}
	}
	return 0;
}

static int server(struct task *t, void *arg)
{
	struct mm1 *q = arg;

	for (;;) {
		while (q->head == q->tail) {
			q->idle = true;
			if (task_block(t, SIMPLE_IDLE))
				return KVMSIM_ECANCELED;
		}
		if (task_block_until(t, SIMPLE_IDLE,
				     task_now(t) + increment[q->draw++ % N_INCREMENTS]) < 0)
			return KVMSIM_ECANCELED;
		q->sojourn += task_now(t) - q->arrived[q->head++ % QUEUE];
		q->served++;
	}
}

static double sojourn;

static uint64_t mm1(void *arg)
{
	struct sim *s = simple_sim(NULL);
	struct mm1 *q = calloc(1, sizeof(*q));
	struct task_opts server_opts = {.name = "server", .fn = server, .arg = q, .daemon = true};
	uint64_t events;

	(void)arg;
	if (!q || task_create(s, &server_opts, &q->server))
		abort();
	simple_task(s, "source", source, q, 0);
	if (sim_run(s, CYCLES_MAX))
		abort();
	events = sim_events(s);
	sojourn = (double)q->sojourn / (double)q->served / 1e6;
	simple_end(s);
	free(q);
	return events;
}

/* Tasks that take turns: each event is a switch. */
#define TURNS 1000000

static int turn(struct task *t, void *arg)
{
	uint32_t n = *(const uint32_t *)arg;

	for (uint32_t i = 0; i < TURNS / n; i++)
		if (task_block_until(t, SIMPLE_IDLE, task_now(t) + n) < 0)
			return KVMSIM_ECANCELED;
	return 0;
}

static uint64_t turns(void *arg)
{
	uint32_t n = *(const uint32_t *)arg;
	struct sim *s = simple_sim(NULL);
	uint64_t switches;

	for (uint32_t i = 0; i < n; i++)
		simple_task(s, "turn", turn, arg, i);
	if (sim_run(s, CYCLES_MAX))
		abort();
	switches = sim_switches(s);
	simple_end(s);
	return switches;
}

static int charges(struct task *t, void *arg)
{
	uint64_t n = *(const uint64_t *)arg;

	for (uint64_t i = 0; i < n; i++) {
		charge(t, SIMPLE_THIRD, 1);
		if (sync(t))
			return KVMSIM_ECANCELED;
	}
	return 0;
}

static uint64_t one_task(void *arg)
{
	struct sim *s = simple_sim(NULL);

	simple_task(s, "task", charges, arg, 0);
	if (sim_run(s, CYCLES_MAX))
		abort();
	simple_end(s);
	return *(const uint64_t *)arg;
}

int main(void)
{
	static uint32_t two = 2, many = 1000;
	static uint64_t n = 50 * 1000 * 1000;

	fill_increments();
	bench_hold(64, "latency of 6 dependent compares and moves");
	bench_hold(10240, "latency of 14 of them, and L2 accesses near the leaves");
	bench_run("M/M/1 of two tasks", "events", mm1, NULL,
		  "one replay in the queue and half a switch per event");
	printf("%-36s %.3f service times (theory at load 0.9: 10)\n", "  its mean sojourn",
	       sojourn);
	bench_run("2 tasks taking turns", "switches", turns, &two,
		  "the return of fcontext's jump, which no CPU predicts");
	bench_run("1000 tasks taking turns", "switches", turns, &many,
		  "10 levels of the queue and the tasks' lines in L2");
	bench_run("charge and sync", "pairs", one_task, &n,
		  "stores to the ledger's entry, forwarded to the next load");
	return 0;
}
