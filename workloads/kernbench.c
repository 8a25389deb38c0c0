// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * kernbench: make -jN of a kernel. Jobs compile one file after the other: a process is forked and
 * executed, its pages are faulted in while it works, files are looked up, and it exits.
 *
 * What is its own (page-table locks, its files) is uncontended; shared are the locks of the process
 * table, of the zone's free pages, which its lists of free pages are filled from and emptied to by
 * batches of 31, and of directories' dentries. Holds are those that the recorded guest has for the
 * same functions (traces/recorded/dbench-locks.csv: copy_process and release_task 200 to 700
 * instructions, dentries' 40 to 170, page tables' 45 to 1,200; rmqueue_bulk 26,468, which moves
 * some 270 pages there: 390 times for the 105,148 pages that get_page_from_freelist gave, so 100 a
 * page).
 */
#include "workloads/smp_workload.h"

enum { JOBS, INSNS, FAULTS, LOOKUPS };

#define BATCH	     31 /* pages of a list of free pages, filled at once (mm/page_alloc.c) */
#define ZONE_HOLD    (BATCH * 100)
#define PROCESS_HOLD 450
#define DENTRY_HOLD  87
#define TABLE_HOLD   600
#define FAULT_INSNS  3000  /* of a page fault, with its page cleared, outside of locks */
#define FORK_INSNS   60000 /* fork, exec and exit, each */

struct tree {
	struct smp_lock process, zone, dentry;
};

struct job {
	struct smp_load *load;
	struct tree *tree;
	struct smp_lock table, files; /* the process's own */
	struct rng rng;
	unsigned pages; /* in the list of free ones */
};

/* fork, exec or exit: the process table is locked once. */
static int process(struct guest_thread *g, struct job *j)
{
	int err = guest_work(g, FORK_INSNS);

	return err ? err : smp_load_hold(g, &j->tree->process, PROCESS_HOLD, true);
}

static int fault(struct guest_thread *g, struct job *j)
{
	int err = guest_work(g, FAULT_INSNS);

	if (!err && !j->pages)
		err = smp_load_hold(g, &j->tree->zone, ZONE_HOLD, true);
	if (!j->pages)
		j->pages = BATCH;
	j->pages--;
	return err ? err : smp_load_hold(g, &j->table, TABLE_HOLD, false);
}

/* One component of a path is in a directory that all use, the last one is the job's. */
static int lookup(struct guest_thread *g, struct job *j)
{
	int err = smp_load_hold(g, &j->tree->dentry, DENTRY_HOLD, false);

	return err ? err : smp_load_hold(g, &j->files, DENTRY_HOLD, false);
}

/* All pages of the process go back, a batch at a time. */
static int free_pages(struct guest_thread *g, struct job *j, uint64_t pages)
{
	int err = 0;

	for (uint64_t i = 0; !err && i < pages / BATCH; i++) {
		err = smp_load_hold(g, &j->tree->zone, ZONE_HOLD, true);
		err = err ? err : guest_work(g, BATCH * FAULT_INSNS / 8);
	}
	return err;
}

static int compile(struct guest_thread *g, struct job *j)
{
	const uint64_t *p = j->load->param;
	uint64_t steps = p[FAULTS] + p[LOOKUPS], faults = 0;
	/* Files differ in size: half to one and a half times the mean. */
	uint64_t insns = p[INSNS] * 1000 / 2 + rng_below(&j->rng, p[INSNS] * 1000 + 1);
	int err = process(g, j);

	err = err ? err : process(g, j);
	for (uint64_t i = 0; !err && i < steps; i++) {
		err = guest_work(g, insns / steps);
		if (!err && rng_below(&j->rng, steps) < p[FAULTS]) {
			err = fault(g, j);
			faults++;
		} else if (!err) {
			err = lookup(g, j);
		}
	}
	err = err ? err : free_pages(g, j, faults);
	err = err ? err : process(g, j);
	return err ? err : smp_load_done(j->load, g);
}

static int job(struct guest_thread *g, void *arg)
{
	int err = 0;

	while (!err)
		err = compile(g, arg);
	return err;
}

static int start(struct smp_load *l)
{
	static const struct smp_lock_class process_class = {"tasklist", "copy_process"},
					   zone_class = {"zone", "rmqueue_bulk"},
					   dentry_class = {"dentry", "__d_lookup"},
					   table_class = {"page table", "__handle_mm_fault"},
					   files_class = {"files", "alloc_fd"};
	uint64_t n = l->param[JOBS] ? l->param[JOBS] : 2 * (uint64_t)smp_load_vcpus(l);
	struct tree *tree = smp_load_alloc(l, 1, sizeof(*tree));
	struct job *j = smp_load_alloc(l, n, sizeof(*j));
	int err = tree && j ? 0 : KVMSIM_ENOMEM;

	err = err ? err : smp_load_lock(l, &tree->process, &process_class);
	err = err ? err : smp_load_lock(l, &tree->zone, &zone_class);
	err = err ? err : smp_load_lock(l, &tree->dentry, &dentry_class);
	for (uint64_t i = 0; !err && i < n; i++) {
		j[i].load = l;
		j[i].tree = tree;
		err = smp_load_lock(l, &j[i].table, &table_class);
		err = err ? err : smp_load_lock(l, &j[i].files, &files_class);
		err = err ? err : smp_load_thread(l, job, &j[i], UINT32_MAX, &j[i].rng);
	}
	return err;
}

const struct smp_workload smp_workload_kernbench = {
	.name = "kernbench",
	.summary = "make -jN: processes that are forked, fault their pages in, compile and exit",
	.operation = "compilations",
	.params =
		(const struct workload_param[]){
			{"jobs", 0, 0, 8192, "at a time; 0: twice the vCPUs"},
			{"insns", 20000, 1, 100000000,
			 "thousands of instructions of a compilation"},
			{"faults", 2000, 0, 10000000, "page faults of one"},
			{"lookups", 1000, 0, 10000000, "files looked up by one"},
			{0}},
	.start = start,
};
