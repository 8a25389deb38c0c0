// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * ebizzy: threads of one process which look up records. For each, memory is mapped, a chunk copied
 * to it and searched, and the memory unmapped, as malloc() and free() do with chunks of this size:
 * mmap_sem is taken for writing twice, the chunk's pages are faulted in and given back, and all
 * vCPUs that the process's other threads run on flush their TLBs.
 *
 * mmap_sem is a sleeping lock with optimistic spinning, as rwsems have it since 3.16 (spin=0: none,
 * as before); page faults, which take it for reading, go on beside each other and are not held up
 * but by the lock of the zone's free pages.
 */
#include "workloads/smp_workload.h"

enum { THREADS, INSNS, PAGES, SPIN };

#define MMAP_INSNS  2500 /* with the lock held: a vma is made, or taken out */
#define FAULT_INSNS 2000
#define TABLE_HOLD  600
#define BATCH	    31		  /* pages of a list of free pages, filled at once */
#define ZONE_HOLD   (BATCH * 100) /* as kernbench.c has it */
#define FLUSH_INSNS 400		  /* in a flush's handler */

struct process {
	struct smp_load *load;
	struct guest_mutex *mmap_sem;
	struct smp_lock zone;
	uint32_t *on; /* [vcpu] threads that were on it last */
	struct smp_vcpu **targets;
};

struct searcher {
	struct process *p;
	struct smp_lock table;
	struct rng rng;
	uint32_t vcpu; /* that it was on last; UINT32_MAX: none yet */
	uint64_t pages;
};

/* Notes which vCPU the thread is on. */
static int where(struct guest_thread *g, struct searcher *s)
{
	uint32_t v = smp_vcpu_id(guest_vcpu(g));
	int err;

	if (v == s->vcpu)
		return 0;
	err = sync(smp_task(guest_vcpu(g)));
	if (err)
		return err;
	if (s->vcpu != UINT32_MAX)
		s->p->on[s->vcpu]--;
	s->p->on[v]++;
	s->vcpu = v;
	return 0;
}

static int flush(struct guest_thread *g, struct process *p)
{
	struct smp_vcpu *self;
	size_t n = 0;
	int err;

	guest_preempt_disable(guest_vcpu(g));
	self = guest_vcpu(g);
	err = sync(smp_task(self));
	for (uint32_t i = 0; i < smp_load_vcpus(p->load); i++)
		if (p->on[i] && i != smp_vcpu_id(self))
			p->targets[n++] = smp_vcpu(p->load->vm, i);
	if (!err && n)
		err = smp_call_function_many(self, p->targets, n, FLUSH_INSNS, true);
	return err ? err : guest_preempt_enable(self);
}

static int change_map(struct guest_thread *g, struct searcher *s, bool unmap)
{
	struct process *p = s->p;
	int err = guest_mutex_lock(g, p->mmap_sem);

	err = err ? err : where(g, s);
	err = err ? err : guest_work(g, MMAP_INSNS);
	if (!err && unmap)
		err = flush(g, p);
	return err ? err : guest_mutex_unlock(g, p->mmap_sem);
}

/* A page from the list of free ones, or one back: a batch from the zone now and then. */
static int zone(struct guest_thread *g, struct searcher *s)
{
	return ++s->pages % BATCH ? 0 : smp_load_hold(g, &s->p->zone, ZONE_HOLD, true);
}

static int lookup(struct guest_thread *g, struct searcher *s)
{
	const uint64_t *p = s->p->load->param;
	int err = change_map(g, s, false);

	for (uint64_t i = 0; !err && i < p[PAGES]; i++) {
		err = guest_work(g, FAULT_INSNS);
		err = err ? err : zone(g, s);
		err = err ? err : smp_load_hold(g, &s->table, TABLE_HOLD, false);
	}
	err = err ? err : guest_work(g, p[INSNS] * 1000);
	err = err ? err : where(g, s);
	err = err ? err : change_map(g, s, true);
	for (uint64_t i = 0; !err && i < p[PAGES]; i++)
		err = zone(g, s);
	return err ? err : smp_load_done(s->p->load, g);
}

static int searcher(struct guest_thread *g, void *arg)
{
	int err = 0;

	while (!err)
		err = lookup(g, arg);
	return err;
}

static int start(struct smp_load *l)
{
	static const struct smp_lock_class zone_class = {"zone", "rmqueue_bulk"},
					   table_class = {"page table", "__handle_mm_fault"};
	uint32_t vcpus = smp_load_vcpus(l);
	uint64_t n = l->param[THREADS] ? l->param[THREADS] : vcpus;
	struct process *p = smp_load_alloc(l, 1, sizeof(*p));
	struct searcher *s = smp_load_alloc(l, n, sizeof(*s));
	int err = p && s ? 0 : KVMSIM_ENOMEM;

	if (err)
		return err;
	p->load = l;
	p->on = smp_load_alloc(l, vcpus, sizeof(*p->on));
	p->targets = smp_load_alloc(l, vcpus, sizeof(struct smp_vcpu *));
	err = p->on && p->targets ? 0 : KVMSIM_ENOMEM;
	err = err ? err : smp_load_lock(l, &p->zone, &zone_class);
	err = err ? err : smp_load_mutex(l, "mmap_sem", l->param[SPIN], &p->mmap_sem);
	for (uint64_t i = 0; !err && i < n; i++) {
		s[i].p = p;
		s[i].vcpu = UINT32_MAX;
		err = smp_load_lock(l, &s[i].table, &table_class);
		err = err ? err : smp_load_thread(l, searcher, &s[i], UINT32_MAX, &s[i].rng);
	}
	return err;
}

const struct smp_workload smp_workload_ebizzy = {
	.name = "ebizzy",
	.summary = "threads of a process that map, search and unmap memory: TLBs are flushed",
	.operation = "records",
	.params =
		(const struct workload_param[]){
			{"threads", 0, 0, 8192, "0: one for each vCPU"},
			{"insns", 200, 1, 1000000, "thousands of instructions to search a chunk"},
			{"pages", 64, 0, 100000, "of a chunk"},
			{"spin", 0, 0, 1, "whether who waits for mmap_sem spins first"},
			{0}},
	.start = start,
};
