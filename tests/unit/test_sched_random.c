// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/sim/ledger.h"
#include "model/sim/rng.h"
#include "tests/unit/harness.h"
#include "tests/unit/sched_util.h"
#include "tests/unit/simple.h"

/*
 * Random programs of threads: they work, spin, sleep, wake, notify and yield to each other on
 * random machines. Run ahead and in the reference mode all times are the same; the books balance;
 * no CPU stays idle beside one with threads that could run on it.
 */
#define THREADS 24
#define OPS	150

struct machine {
	struct sched_opts opts;
	uint32_t threads, groups;
	bool pins;
};

static struct worker w[THREADS];
static struct rng rng[THREADS];
static uint32_t n_threads, running;
static uint64_t trace[THREADS]; /* of each one's times and CPUs */

static void mix(uint64_t *digest, uint64_t n)
{
	*digest = (*digest ^ n) * 0x100000001b3ull;
}

static void note(struct worker *x)
{
	mix(&trace[x - w], task_now(x->task));
	mix(&trace[x - w], sched_cpu(x->th));
}

static int program(struct worker *x)
{
	struct rng *g = &rng[x - w];
	int r = 0;

	for (int i = 0; i < OPS && r >= 0; i++) {
		struct worker *other = &w[rng_below(g, n_threads)];
		bool alone;

		switch (rng_below(g, 8)) {
		case 0:
			r = sched_sleep_until(x->th, WAIT_idle,
					      task_now(x->task) + rng_below(g, 3 * MS));
			break;
		case 1:
		case 2:
			sched_wake(x->task, x->th, other->th);
			break;
		case 3:
			r = sched_spin(x->th, WAIT_spin, task_now(x->task) + rng_below(g, MS));
			break;
		case 4:
			if (other != x)
				sched_notify(x->task, other->th, 0);
			break;
		case 5:
			r = sched_yield_to(x->th, other->th, rng_below(g, 2), &alone);
			break;
		case 6:
			charge(x->task, COUNT_vm_exit, rng_below(g, 3));
			r = sched_yield(x->th);
			break;
		default:
			charge(x->task, COUNT_vm_exit, rng_below(g, 3));
			r = worker_work(x, rng_below(g, 4 * MS));
		}
		if (r >= 0 && sched_need_resched(x->th))
			r = sched_schedule(x->th);
		note(x);
	}
	return r < 0 ? r : 0;
}

static void run(const struct machine *m, uint64_t seed, bool reference, uint64_t *digest)
{
	struct sched_group *group[3] = {NULL, NULL, NULL};
	cycles_t sum = 0, all = 0;
	struct rng pick;
	struct host h;

	host_open(&h, &m->opts,
		  "wake_up = 300\ncontext_switch = 700\nsched_tick = 150\nmigrate = 90\n"
		  "yield_to = 200\nvm_exit = 40000\n",
		  reference);
	rng_init(&pick, seed, 0, "machine");
	*digest = 0;
	memset(trace, 0, sizeof(trace));
	n_threads = m->threads;
	for (uint32_t i = 0; i < m->groups; i++)
		if (sched_group_create(h.sched, "vm", 1024 << i, &group[i]))
			abort();
	for (uint32_t i = 0; i < n_threads; i++) {
		char name[16];
		struct sched_thread_opts o = {
			.name = name,
			.nice = rng_below(&pick, 4) ? 0 : (int)rng_below(&pick, 40) - 20,
			.pin = m->pins && !rng_below(&pick, 3)
				       ? (int32_t)rng_below(&pick, m->opts.cpus)
				       : -1,
			.group = m->groups ? group[rng_below(&pick, m->groups)] : NULL};

		snprintf(name, sizeof(name), "w%u", i);
		rng_init(&rng[i], seed, i, "program");
		w[i] = (struct worker){.fn = program};
		worker_add(&h, &w[i], &o, rng_below(&pick, MS));
	}
	CU_ASSERT_EQUAL(sim_run(h.sim, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(sim_check_ledger(h.sim), 0);
	for (uint32_t i = 0; i < n_threads; i++) {
		struct sched_thread_stats st = sched_thread_stats(w[i].th);

		sum += st.exec;
		mix(digest, trace[i]);
		mix(digest, st.exec);
		mix(digest, st.run_delay);
		CU_ASSERT_TRUE(st.exec + st.run_delay <= task_now(w[i].task));
		if (task_now(w[i].task) > all)
			all = task_now(w[i].task);
	}
	/* What is used and what is idle is all that there is. */
	for (uint32_t i = 0; i < m->opts.cpus; i++)
		sum += sched_idle_cycles(h.sched, i);
	CU_ASSERT_EQUAL(sum, all * m->opts.cpus);
	host_close(&h);
}

static const struct machine machine[] = {
	{{.cpus = 1}, 5, 0, false},
	{{.cpus = 2}, 7, 0, false},
	{{.cpus = 4, .cpus_per_llc = 2}, 12, 2, false},
	{{.cpus = 8, .cpus_per_llc = 4}, 24, 3, true},
	{{.cpus = 6, .cpus_per_llc = 3, .eager_newidle = true, .hz = 250}, 20, 0, true},
	{{.cpus = 16}, 10, 1, true},
	{{.cpus = 3, .no_balance = true, .no_wakeup_preemption = true}, 9, 0, false},
};

static void ahead_and_reference_are_the_same(void)
{
	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++) {
		for (uint64_t seed = 1; seed <= 40; seed++) {
			uint64_t ahead, again, reference;

			run(&machine[i], seed, false, &ahead);
			run(&machine[i], seed, false, &again);
			run(&machine[i], seed, true, &reference);
			CU_ASSERT_EQUAL(ahead, again);
			CU_ASSERT_EQUAL(ahead, reference);
		}
	}
}

/* ---- work conservation ---- */

#define CPUS 6

static struct host host;
static cycles_t longest;

/* Looks each 100 us: for how long is a CPU idle while another has two threads or more? */
static int watcher(struct task *t, void *arg)
{
	cycles_t since[CPUS] = {0};
	int r = 0;

	(void)arg;
	while (!r && running) {
		bool overloaded = false;

		for (uint32_t i = 0; i < CPUS; i++)
			overloaded |= sched_nr_running(host.sched, i) > 1;
		for (uint32_t i = 0; i < CPUS; i++) {
			if (!overloaded || sched_nr_running(host.sched, i))
				since[i] = task_now(t);
			else if (task_now(t) - since[i] > longest)
				longest = task_now(t) - since[i];
		}
		r = task_block_until(t, WAIT_idle, task_now(t) + 100 * US);
	}
	return r < 0 ? r : 0;
}

static int comes_and_goes(struct worker *x)
{
	struct rng *g = &rng[x - w];
	int r = 0;

	for (int i = 0; i < 60 && r >= 0; i++) {
		r = worker_work(x, rng_below(g, 40 * MS));
		if (r >= 0)
			r = sched_sleep_until(x->th, WAIT_idle,
					      task_now(x->task) + rng_below(g, 20 * MS));
	}
	running--;
	return r < 0 ? r : 0;
}

static void no_cpu_is_idle_for_long(void)
{
	for (uint32_t llc = 3; llc <= 6; llc += 3) {
		host_open(&host, &(struct sched_opts){.cpus = CPUS, .cpus_per_llc = llc}, "",
			  false);
		longest = 0;
		running = 12;
		for (uint32_t i = 0; i < running; i++) {
			rng_init(&rng[i], 7, i, "program");
			w[i] = (struct worker){.fn = comes_and_goes};
			worker_add(&host, &w[i],
				   &(struct sched_thread_opts){.name = "w", .pin = -1}, 0);
		}
		simple_task(host.sim, "watcher", watcher, NULL, 0);
		CU_ASSERT_EQUAL(sim_run(host.sim, CYCLES_MAX), 0);
		/* An idle CPU's interval is at most 2 ms for each CPU of the domain; the kick comes
		 * with a tick, and threads that ran just now are left alone up to twice. */
		CU_ASSERT_TRUE(longest < 3 * 2 * CPUS * MS);
		CU_ASSERT_TRUE(longest > 0);
		host_close(&host);
	}
}

static CU_TestInfo tests[] = {
	{"ahead_and_reference_are_the_same", ahead_and_reference_are_the_same},
	{"no_cpu_is_idle_for_long", no_cpu_is_idle_for_long},
	CU_TEST_INFO_NULL};
TEST_MAIN("sched_random", tests)
