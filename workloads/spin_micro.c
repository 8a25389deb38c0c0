// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * spin-micro: tasks that take one lock and give it back, as W. Long's microbenchmark did with 5
 * million pairs each (locking/qspinlock, 2014); and what does nothing at all, or nothing but that.
 */
#include "workloads/smp_workload.h"

/* ---- spin-micro ---- */

struct spin_task {
	struct smp_load *load;
	struct smp_lock *lock;
	struct rng rng;
	uint64_t hold, gap, pairs; /* instructions; pairs that are one operation */
};

static int spin_task(struct guest_thread *g, void *arg)
{
	struct spin_task *t = arg;
	int err = 0;

	while (!err) {
		for (uint64_t i = 0; !err && i < t->pairs; i++) {
			err = smp_load_hold(g, t->lock, t->hold, false);
			err = err ? err : guest_work(g, t->gap);
		}
		err = err ? err : smp_load_done(t->load, g);
	}
	return err;
}

enum { TASKS, HOLD, GAP, PAIRS, LOCKS };

static int spin_start(struct smp_load *l)
{
	const uint64_t locks = l->param[LOCKS] ? l->param[LOCKS] : 1;
	static const struct smp_lock_class class = {"spin-micro", "spin_task"};
	uint32_t vcpus = smp_load_vcpus(l), n = l->param[TASKS] ? (uint32_t)l->param[TASKS] : vcpus;
	struct spin_task *t = smp_load_alloc(l, n, sizeof(*t));
	struct smp_lock *lock = smp_load_alloc(l, locks, sizeof(*lock));
	int err = t && lock ? 0 : KVMSIM_ENOMEM;

	for (uint64_t i = 0; !err && i < locks; i++)
		err = smp_load_lock(l, &lock[i], &class);
	for (uint32_t i = 0; !err && i < n; i++) {
		t[i] = (struct spin_task){.load = l,
					  .lock = &lock[i % locks],
					  .hold = l->param[HOLD],
					  .gap = l->param[GAP],
					  .pairs = l->param[PAIRS]};
		err = smp_load_thread(l, spin_task, &t[i], i % vcpus, &t[i].rng);
	}
	return err;
}

const struct smp_workload smp_workload_spin_micro = {
	.name = "spin-micro",
	.summary = "tasks that take a lock and give it back",
	.operation = "sets of pairs of lock and unlock",
	.params =
		(const struct workload_param[]){
			{"tasks", 0, 0, 8192, "threads, on vCPUs by turns; 0: one for each vCPU"},
			{"hold", 0, 0, 1u << 30, "instructions from taking to giving back"},
			{"gap", 0, 0, 1u << 30, "instructions from giving back to taking"},
			{"pairs", 1000, 1, 1u << 30, "pairs that count as one operation"},
			{"locks", 1, 1, 4096, "locks, of tasks by turns"},
			{0}},
	.start = spin_start,
};

/* ---- busy, idle ---- */

struct busy_task {
	struct smp_load *load;
	struct rng rng;
};

#define BUSY_INSNS 100000

static int busy_task(struct guest_thread *g, void *arg)
{
	struct busy_task *t = arg;
	int err = 0;

	while (!err) {
		err = guest_work(g, BUSY_INSNS);
		err = err ? err : smp_load_done(t->load, g);
	}
	return err;
}

static int busy_start(struct smp_load *l)
{
	uint32_t vcpus = smp_load_vcpus(l), n = l->param[TASKS] ? (uint32_t)l->param[TASKS] : vcpus;
	struct busy_task *t = smp_load_alloc(l, n, sizeof(*t));
	int err = t ? 0 : KVMSIM_ENOMEM;

	for (uint32_t i = 0; !err && i < n; i++) {
		t[i].load = l;
		err = smp_load_thread(l, busy_task, &t[i], i % vcpus, &t[i].rng);
	}
	return err;
}

const struct smp_workload smp_workload_busy = {
	.name = "busy",
	.summary = "while (1)",
	.operation = "hundreds of thousands of instructions",
	.params =
		(const struct workload_param[]){
			{"tasks", 0, 0, 8192, "threads, on vCPUs by turns; 0: one for each vCPU"},
			{0}},
	.start = busy_start,
};

static int idle_start(struct smp_load *l)
{
	(void)l;
	return 0;
}

const struct smp_workload smp_workload_idle = {
	.name = "idle",
	.summary = "vCPUs that halt",
	.operation = "operations",
	.start = idle_start,
};
