// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/facts_priv.h"

#include <stdlib.h>
#include <string.h>

/* ---- losses ---- */

static struct facts_cpu *cpu_of(struct facts *f, int64_t cpu)
{
	if (cpu < 0 || cpu >= FACTS_MAX_CPUS)
		return NULL;
	if ((size_t)cpu >= f->n_cpus) {
		size_t n = f->n_cpus ? f->n_cpus : 64;
		struct facts_cpu *grown;

		while (n <= (size_t)cpu)
			n *= 2;
		grown = realloc(f->cpu, n * sizeof(*grown));
		if (!grown)
			return NULL;
		for (size_t i = f->n_cpus; i < n; i++)
			grown[i] = (struct facts_cpu){.last_time = HOST_NO_TIME};
		f->cpu = grown;
		f->n_cpus = n;
	}
	return &f->cpu[cpu];
}

static int on_loss(void *ctx, const struct host_loss *l)
{
	struct facts *f = ctx;
	struct facts_cpu *c;

	if (l->header) {
		f->has_header_loss = true;
		if (l->count == UINT64_MAX)
			f->uncounted = true;
		else
			f->header_lost += l->count;
		return 0;
	}
	f->lost_chunks += l->chunks;
	if (l->count == UINT64_MAX)
		f->uncounted = true;
	else
		f->lost += l->count;
	/* a tool's closing words on its chunks say nothing of where they were lost */
	if (l->chunks)
		return 0;
	f->mark++;
	c = cpu_of(f, l->cpu);
	if (!c) {
		f->mark_anywhere = f->mark;
		return 0;
	}
	c->loss_mark = f->mark;
	c->marked = true;
	if (l->count == UINT64_MAX)
		c->uncounted = true;
	else
		c->lost += l->count;
	return 0;
}

bool facts_lost_since(const struct facts *f, uint64_t mark, int64_t cpu)
{
	if (f->mark_anywhere > mark)
		return true;
	if (cpu < 0)
		return f->mark > mark;
	return (size_t)cpu < f->n_cpus && f->cpu[cpu].loss_mark > mark;
}

static int on_elision(void *ctx)
{
	struct facts *f = ctx;

	f->elisions++;
	return 0;
}

static int on_cpus(void *ctx, uint64_t n, bool empty)
{
	struct facts *f = ctx;

	if (empty)
		return tally_add(&f->empty_cpus, n, FACTS_MAX_CPUS);
	f->has_header_cpus = true;
	f->header_cpus = n;
	return 0;
}

/* ---- what all records have ---- */

static int count_name(struct facts *f, const struct host_event *e)
{
	f->records_of[e->id]++;
	switch (e->id) {
	case HOST_OTHER:
		return names_add(&f->other, e->name.at, e->name.len, FACTS_MAX_NAMES);
	case HOST_UNKNOWN_KVM:
		return names_add(&f->unknown, e->name.at, e->name.len, FACTS_MAX_NAMES);
	case HOST_KVM_REST:
		return names_add(&f->rest, e->name.at, e->name.len, FACTS_MAX_NAMES);
	default:
		return 0;
	}
}

static void count_head(struct facts *f, const struct host_event *e)
{
	struct facts_cpu *c = cpu_of(f, e->cpu);

	f->has_cpu |= e->cpu >= 0;
	f->has_tid |= e->tid >= 0;
	f->has_tgid |= e->tgid >= 0;
	if (e->flags_width > f->flags_width)
		f->flags_width = e->flags_width;
	if (!facts_timed(e))
		return;
	f->timed_records++;
	if (e->time_decimals > f->time_decimals)
		f->time_decimals = e->time_decimals;
	if (f->first_time == HOST_NO_TIME || e->time_ns < f->first_time)
		f->first_time = e->time_ns;
	if (f->last_time == HOST_NO_TIME || e->time_ns > f->last_time)
		f->last_time = e->time_ns;
	if (!c)
		return;
	f->out_of_order += c->last_time != HOST_NO_TIME && e->time_ns < c->last_time;
	c->last_time = e->time_ns;
}

static int count_comm(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	if (!e->comm.len)
		return 0;
	f->has_comm = true;
	if (t) {
		if (t->comm_len == e->comm.len && !memcmp(t->comm, e->comm.at, e->comm.len))
			return 0;
		t->comm_len = e->comm.len <= sizeof(t->comm) ? e->comm.len : 0;
		memcpy(t->comm, e->comm.at, t->comm_len);
	}
	return names_add(&f->comms, e->comm.at, e->comm.len, FACTS_MAX_NAMES);
}

/* NULL in @out: there are too many already. */
static int thread_of(struct facts *f, int64_t tid, struct facts_thread **out)
{
	struct facts_thread **recent = &f->recent[(uint64_t)tid % FACTS_RECENT], *t = *recent;

	if (!t || t->tid != tid)
		HASH_FIND(hh, f->threads, &tid, sizeof(tid), t);
	*out = t;
	if (t) {
		*recent = t;
		return 0;
	}
	if (HASH_COUNT(f->threads) >= FACTS_MAX_THREADS) {
		f->threads_truncated = true;
		return 0;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return KVMSIM_ENOMEM;
	t->tid = tid;
	t->vcpu = t->tgid = t->last_cpu = t->counted_vcpu = -1;
	t->last_time = HOST_NO_TIME;
	HASH_ADD(hh, f->threads, tid, sizeof(t->tid), t);
	if (!t->hh.tbl) {
		free(t);
		return KVMSIM_ENOMEM;
	}
	*out = *recent = t;
	return 0;
}

#define HOLE_NS 1000000000

static void count_gap(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	uint64_t gap;

	if (!facts_timed(e))
		return;
	if (t->last_time == HOST_NO_TIME) {
		t->last_time = e->time_ns;
		return;
	}
	if (e->time_ns < t->last_time)
		return;
	gap = e->time_ns - t->last_time;
	t->last_time = e->time_ns;
	if (t->tid < 0)
		return;
	f->has_gap = true;
	if (gap > f->largest_gap)
		f->largest_gap = gap;
	/* a vCPU that waits for an interrupt has not stopped on the way */
	if (gap > HOLE_NS && t->faulted && !(t->open && t->halted))
		t->hole = true;
}

static int add_cpu(struct facts_thread *t, int64_t cpu)
{
	const int64_t *have = t->cpus.at;
	void *item;

	if (cpu < 0 || cpu == t->last_cpu)
		return 0;
	t->last_cpu = cpu;
	for (size_t i = 0; i < t->cpus.n; i++)
		if (have[i] == cpu)
			return 0;
	if (vec_push(&t->cpus, sizeof(int64_t), 4096, &item))
		return KVMSIM_ENOMEM;
	if (item)
		*(int64_t *)item = cpu;
	return 0;
}

static int count_thread(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	facts_ring_end(f, t, e);
	count_gap(f, t, e);
	t->kvm |= !facts_other_system(e->id);
	if (e->tgid >= 0)
		t->tgid = e->tgid;
	if (host_has(e, HOST_F_vcpu) && !facts_other_system(e->id))
		t->vcpu = (int64_t)e->v[HOST_F_vcpu];
	return add_cpu(t, e->cpu);
}

static int on_event(void *ctx, const struct host_event *e)
{
	struct facts *f = ctx;
	struct facts_thread *t;
	int err = count_name(f, e);

	f->records++;
	count_head(f, e);
	if (!err)
		err = thread_of(f, e->tid, &t);
	if (!err)
		err = count_comm(f, t, e);
	if (!err && t)
		err = count_thread(f, t, e);
	if (err || facts_other_system(e->id))
		return err;
	if (host_has(e, HOST_F_vcpu)) {
		f->has_vcpu = true;
		if (!t || t->counted_vcpu != (int64_t)e->v[HOST_F_vcpu])
			err = tally_add(&f->vcpus, e->v[HOST_F_vcpu], FACTS_MAX_LIST);
		if (t)
			t->counted_vcpu = (int64_t)e->v[HOST_F_vcpu];
	}
	if (!err)
		err = facts_exit_event(f, t, e);
	return err ? err : facts_mmu_event(f, t, e);
}

int64_t facts_vcpu(const struct facts_thread *t, const struct host_event *e)
{
	if (host_has(e, HOST_F_vcpu))
		return (int64_t)e->v[HOST_F_vcpu];
	return t && t->tid >= 0 ? t->vcpu : -1;
}

bool facts_other_system(enum host_event_id id)
{
	switch (id) {
	case HOST_OTHER:
	case HOST_contention_begin:
	case HOST_contention_end:
	case HOST_sched_switch:
	case HOST_sched_wakeup:
	case HOST_sched_waking:
	case HOST_sched_wakeup_new:
		return true;
	default:
		return false;
	}
}

uint64_t facts_kvm_records(const struct facts *f)
{
	uint64_t n = 0;

	for (int id = 0; id < HOST_N_EVENTS; id++)
		if (id != HOST_UNKNOWN_KVM && !facts_other_system(id))
			n += f->records_of[id];
	return n;
}

bool facts_usable(const struct facts *f)
{
	static const enum host_event_id used[] = {
		HOST_kvm_entry,
		HOST_kvm_exit,
		HOST_kvm_nested_vmexit,
		HOST_kvm_userspace_exit,
		HOST_kvm_page_fault,
		HOST_fast_page_fault,
		HOST_kvm_tdp_mmu_spte_changed,
		HOST_kvm_mmu_set_spte,
		HOST_kvm_mmu_get_page,
		HOST_kvm_mmio,
		HOST_vcpu_match_mmio,
		HOST_kvm_mmu_walker_error,
		HOST_kvm_dirty_ring_push,
		HOST_kvm_dirty_ring_reset,
		HOST_kvm_dirty_ring_exit,
		HOST_kvm_ple_window,
		HOST_kvm_ple_window_update,
	};

	for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++)
		if (f->records_of[used[i]])
			return true;
	return false;
}

/* ---- */

struct facts *facts_create(void)
{
	struct facts *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->sink = (struct host_sink){f, on_event, on_loss, on_elision, on_cpus};
	f->first_time = f->last_time = HOST_NO_TIME;
	return f;
}

void facts_free(struct facts *f)
{
	struct facts_thread *t, *next;

	if (!f)
		return;
	t = f->threads;
	HASH_CLEAR(hh, f->threads);
	for (; t; t = next) {
		next = t->hh.next;
		free(t->cpus.at);
		free(t);
	}
	names_free(&f->rest);
	names_free(&f->unknown);
	names_free(&f->other);
	names_free(&f->comms);
	tally_free(&f->vcpus);
	tally_free(&f->empty_cpus);
	facts_exits_free(f);
	facts_mmu_free(f);
	free(f->cpu);
	free(f);
}

const struct host_sink *facts_sink(const struct facts *f)
{
	return &f->sink;
}

static int by_tid(const struct facts_thread *a, const struct facts_thread *b)
{
	return (a->tid > b->tid) - (a->tid < b->tid);
}

static int by_exit(const void *a, const void *b)
{
	const struct facts_pair *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static int by_ring(const struct facts_ring *a, const struct facts_ring *b)
{
	return (a->vcpu > b->vcpu) - (a->vcpu < b->vcpu);
}

static int by_vcpu(const void *a, const void *b)
{
	const struct facts_who *x = a, *y = b;

	return (x->vcpu > y->vcpu) - (x->vcpu < y->vcpu);
}

void facts_finish(struct facts *f)
{
	for (struct facts_thread *t = f->threads; t; t = t->hh.next) {
		facts_exit_close(f, t);
		facts_mmu_close(f, t);
	}
	HASH_SORT(f->threads, by_tid);
	HASH_SORT(f->rings, by_ring);
	for (struct facts_ring *r = f->rings; r; r = r->hh.next)
		tally_sort(&r->reset_tids);
	for (struct facts_loop *l = f->loops; l; l = l->hh.next)
		if (l->by.n)
			qsort(l->by.at, l->by.n, sizeof(struct facts_who), by_vcpu);
	names_sort(&f->rest);
	names_sort(&f->unknown);
	names_sort(&f->other);
	names_sort(&f->comms);
	tally_sort(&f->vcpus);
	tally_sort(&f->empty_cpus);
	tally_sort(&f->gpas);
	if (f->pair.n)
		qsort(f->pair.at, f->pair.n, sizeof(struct facts_pair), by_exit);
}
