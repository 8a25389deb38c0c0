// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * exec: processes that replace themselves by a program again and again, as UnixBench's execl does.
 * The program and its libraries are the same files for all: each mapping of them is entered in the
 * file's tree under its i_mmap_rwsem, and taken out of it when the process's memory goes. Those are
 * sleeping locks with optimistic spinning.
 *
 * mutex-micro: threads that take a sleeping lock and give it back.
 */
#include "workloads/smp_workload.h"

/* ---- exec ---- */

enum { TASKS, INSNS, FILES, SEGMENTS, FAULTS };

#define TREE_HOLD   400		  /* instructions: a mapping entered in a tree, or taken out */
#define CALL_INSNS  1500	  /* mmap() of a segment, or its unmapping, outside of that */
#define FAULT_INSNS 2000	  /* a page of the file's mapped, outside of locks */
#define TABLE_HOLD  600		  /* page tables', as the recorded guest's __handle_mm_fault */
#define BATCH	    31		  /* pages of a list of free pages, filled at once */
#define ZONE_HOLD   (BATCH * 100) /* as kernbench.c has it */

struct files {
	struct guest_mutex **i_mmap;
	struct smp_lock zone;
};

struct process {
	struct smp_load *load;
	struct files *files;
	struct smp_lock table;
	struct rng rng;
	uint64_t pages;
};

static int mapping(struct guest_thread *g, struct guest_mutex *i_mmap)
{
	int err = guest_work(g, CALL_INSNS);

	err = err ? err : guest_mutex_lock(g, i_mmap);
	err = err ? err : guest_work(g, TREE_HOLD);
	return err ? err : guest_mutex_unlock(g, i_mmap);
}

/* All segments of all files, mapped or unmapped. */
static int mappings(struct guest_thread *g, struct process *p)
{
	const uint64_t *n = p->load->param;
	int err = 0;

	for (uint64_t i = 0; !err && i < n[FILES] * n[SEGMENTS]; i++)
		err = mapping(g, p->files->i_mmap[i / n[SEGMENTS]]);
	return err;
}

static int fault(struct guest_thread *g, struct process *p)
{
	int err = guest_work(g, FAULT_INSNS);

	if (!err && ++p->pages % BATCH == 0)
		err = smp_load_hold(g, &p->files->zone, ZONE_HOLD, true);
	return err ? err : smp_load_hold(g, &p->table, TABLE_HOLD, false);
}

static int process(struct guest_thread *g, void *arg)
{
	struct process *p = arg;
	const uint64_t *n = p->load->param;
	int err = 0;

	while (!err) {
		err = mappings(g, p);
		for (uint64_t i = 0; !err && i < n[FAULTS]; i++)
			err = fault(g, p);
		/* Programs differ a little in how long they take. */
		err = err ? err
			  : guest_work(g, n[INSNS] * 900 + rng_below(&p->rng, n[INSNS] * 200 + 1));
		err = err ? err : mappings(g, p);
		err = err ? err : smp_load_done(p->load, g);
	}
	return err;
}

static int exec_start(struct smp_load *l)
{
	static const struct smp_lock_class zone_class = {"zone", "rmqueue_bulk"},
					   table_class = {"page table", "__handle_mm_fault"};
	uint64_t n = l->param[TASKS] ? l->param[TASKS] : smp_load_vcpus(l);
	struct files *files = smp_load_alloc(l, 1, sizeof(*files));
	struct process *p = smp_load_alloc(l, n, sizeof(*p));
	int err = files && p ? 0 : KVMSIM_ENOMEM;

	if (err)
		return err;
	files->i_mmap = smp_load_alloc(l, l->param[FILES], sizeof(struct guest_mutex *));
	err = files->i_mmap ? smp_load_lock(l, &files->zone, &zone_class) : KVMSIM_ENOMEM;
	for (uint64_t i = 0; !err && i < l->param[FILES]; i++)
		err = smp_load_mutex(l, "i_mmap_rwsem", true, &files->i_mmap[i]);
	for (uint64_t i = 0; !err && i < n; i++) {
		p[i].load = l;
		p[i].files = files;
		err = smp_load_lock(l, &p[i].table, &table_class);
		err = err ? err : smp_load_thread(l, process, &p[i], UINT32_MAX, &p[i].rng);
	}
	return err;
}

const struct smp_workload smp_workload_exec = {
	.name = "exec",
	.summary = "processes that replace themselves: mappings of the same files",
	.operation = "programs executed",
	.params =
		(const struct workload_param[]){
			{"tasks", 0, 0, 8192, "threads; 0: one for each vCPU"},
			{"insns", 200, 1, 1000000, "thousands of instructions of a program"},
			{"files", 3, 1, 64, "that it maps"},
			{"segments", 4, 1, 64, "of each file"},
			{"faults", 100, 0, 100000, "page faults of a program"},
			{0}},
	.start = exec_start,
};

/* ---- mutex-micro ---- */

enum { MICRO_TASKS, HOLD, GAP, SPIN, LOCKS };

struct micro {
	struct smp_load *load;
	struct guest_mutex *m;
	struct rng rng;
};

static int micro(struct guest_thread *g, void *arg)
{
	struct micro *m = arg;
	const uint64_t *n = m->load->param;
	int err = 0;

	while (!err) {
		err = guest_mutex_lock(g, m->m);
		err = err ? err : guest_work(g, n[HOLD]);
		err = err ? err : guest_mutex_unlock(g, m->m);
		err = err ? err : guest_work(g, n[GAP]);
		err = err ? err : smp_load_done(m->load, g);
	}
	return err;
}

static int micro_start(struct smp_load *l)
{
	uint64_t n = l->param[MICRO_TASKS] ? l->param[MICRO_TASKS] : smp_load_vcpus(l);
	uint64_t locks = l->param[LOCKS] ? l->param[LOCKS] : 1;
	struct micro *m = smp_load_alloc(l, n, sizeof(*m));
	struct guest_mutex **mutex = smp_load_alloc(l, locks, sizeof(struct guest_mutex *));
	int err = m && mutex ? 0 : KVMSIM_ENOMEM;

	for (uint64_t i = 0; !err && i < locks; i++)
		err = smp_load_mutex(l, "mutex-micro", l->param[SPIN], &mutex[i]);
	for (uint64_t i = 0; !err && i < n; i++) {
		m[i].load = l;
		m[i].m = mutex[i % locks];
		err = smp_load_thread(l, micro, &m[i], UINT32_MAX, &m[i].rng);
	}
	return err;
}

const struct smp_workload smp_workload_mutex_micro = {
	.name = "mutex-micro",
	.summary = "threads that take a sleeping lock and give it back",
	.operation = "pairs of lock and unlock",
	.params =
		(const struct workload_param[]){
			{"tasks", 0, 0, 8192, "threads; 0: one for each vCPU"},
			{"hold", 1000, 0, 1u << 30, "instructions from taking to giving back"},
			{"gap", 10000, 0, 1u << 30, "instructions from giving back to taking"},
			{"spin", 1, 0, 1, "whether who waits spins while the owner runs"},
			{"locks", 1, 1, 4096, "locks, of threads by turns"},
			{0}},
	.start = micro_start,
};
