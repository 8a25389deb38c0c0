// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/facts_priv.h"

#include <stdlib.h>
#include <string.h>

/* Shadow pages, changes of sptes, MMIO, walks, dirty rings, PLE windows. */

#define REMOVED_SPTE 0x5a0 /* what the TDP MMU leaves while a page table is torn down */
#define PFERR_RSVD   8

enum { MMIO_UNSATISFIED, MMIO_READ, MMIO_WRITE };

/* ---- MMIO ---- */

static void read_begun(struct facts *f, struct facts_thread *t, uint64_t gpa, uint64_t len)
{
	if (t->n_pending == FACTS_PENDING) {
		/* the oldest will hardly be answered any more */
		memmove(t->pending, t->pending + 1, sizeof(t->pending) - sizeof(t->pending[0]));
		t->n_pending--;
		f->open_reads++;
	}
	t->pending[t->n_pending].gpa = gpa;
	t->pending[t->n_pending++].len = len;
}

static void read_done(struct facts *f, struct facts_thread *t, uint64_t gpa, uint64_t len)
{
	for (unsigned i = 0; i < t->n_pending; i++) {
		if (t->pending[i].gpa != gpa || t->pending[i].len != len)
			continue;
		f->round_trips++;
		t->n_pending--;
		memmove(t->pending + i, t->pending + i + 1,
			(t->n_pending - i) * sizeof(t->pending[0]));
		return;
	}
}

static int on_mmio(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	uint64_t gpa = facts_get(e, HOST_F_gpa), len = facts_get(e, HOST_F_len);

	if (!host_has(e, HOST_F_type) || !host_has(e, HOST_F_gpa) || e->v[HOST_F_type] > MMIO_WRITE)
		return 0;
	f->mmio[e->v[HOST_F_type]]++;
	if (t) {
		t->accessed = true;
		if (e->v[HOST_F_type] == MMIO_UNSATISFIED)
			read_begun(f, t, gpa, len);
		else if (e->v[HOST_F_type] == MMIO_READ)
			read_done(f, t, gpa, len);
	}
	return tally_add(&f->gpas, gpa, FACTS_MAX_LIST);
}

static int on_walker_error(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	void *item;

	if (!host_has(e, HOST_F_error_code))
		return 0;
	if (t && t->open && e->v[HOST_F_error_code] & PFERR_RSVD)
		t->reserved = true;
	if (vec_push(&f->walker, sizeof(struct facts_walker), FACTS_MAX_LIST, &item))
		return KVMSIM_ENOMEM;
	if (item)
		((struct facts_walker *)item)->pferr = e->v[HOST_F_error_code];
	return 0;
}

/* ---- shadow pages and sptes ---- */

static int on_get_page(struct facts *f, const struct host_event *e)
{
	struct facts_sp *p;
	void *item;

	if (!host_has(e, HOST_F_gfn))
		return 0;
	if (vec_push(&f->sp, sizeof(*p), FACTS_MAX_LIST, &item))
		return KVMSIM_ENOMEM;
	p = item;
	if (!p)
		return 0;
	p->have = e->have;
	p->gfn = facts_get(e, HOST_F_gfn);
	p->level = facts_get(e, HOST_F_level);
	p->created = facts_get(e, HOST_F_created);
	p->root_count = facts_get(e, HOST_F_root_count);
	p->unsync = facts_get(e, HOST_F_unsync);
	p->reliable = !e->role_unreliable;
	p->direct = facts_get(e, HOST_F_direct);
	p->access = facts_get(e, HOST_F_access);
	p->quadrant = facts_get(e, HOST_F_quadrant);
	p->gpte_bytes = facts_get(e, HOST_F_gpte_bytes);
	return 0;
}

static uint64_t slot_pages(uint64_t level)
{
	return level >= 1 && level <= 5 ? 1ull << 9 * (level - 1) : 0;
}

static void close_run(struct facts *f, struct facts_thread *t)
{
	uint64_t pages = slot_pages(t->run_level);

	if (t->run && t->run_interrupted && pages)
		f->implied += (t->run_last - t->run_first) / pages + 1;
	t->run = t->run_interrupted = false;
}

/* A run goes from slot to slot; where the text leaves something out, to any later slot. */
static void on_spte(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	uint64_t gfn = facts_get(e, HOST_F_gfn), level = facts_get(e, HOST_F_level),
		 as = facts_get(e, HOST_F_as_id), new = facts_get(e, HOST_F_new);
	bool elided;

	f->torn_down += host_has(e, HOST_F_new) && facts_get(e, HOST_F_old) &&
			(!new || new == REMOVED_SPTE);
	if (!t || !host_has(e, HOST_F_gfn) || !slot_pages(level))
		return;
	elided = f->elisions != t->run_elisions;
	if (t->run && t->run_as == as && t->run_level == level && gfn > t->run_last &&
	    (gfn == t->run_last + slot_pages(level) || elided)) {
		t->run_interrupted |= elided;
	} else {
		close_run(f, t);
		t->run = true;
		t->run_as = as;
		t->run_level = level;
		t->run_first = gfn;
	}
	t->run_last = gfn;
	t->run_elisions = f->elisions;
}

static int on_ple(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	struct facts_ple *p;
	void *item;

	if (vec_push(&f->ple, sizeof(*p), FACTS_MAX_LIST, &item))
		return KVMSIM_ENOMEM;
	p = item;
	if (!p)
		return 0;
	p->vcpu = facts_vcpu(t, e);
	p->has_old = host_has(e, HOST_F_old);
	p->has_new = host_has(e, HOST_F_new);
	p->old = facts_get(e, HOST_F_old);
	p->new = facts_get(e, HOST_F_new);
	p->grow = host_has(e, HOST_F_grow) ? e->v[HOST_F_grow] : p->new > p->old;
	return 0;
}

/* ---- dirty rings ---- */

static int ring_of(struct facts *f, uint64_t vcpu, struct facts_ring **out)
{
	struct facts_ring *r;

	HASH_FIND(hh, f->rings, &vcpu, sizeof(vcpu), r);
	*out = r;
	if (r)
		return 0;
	if (HASH_COUNT(f->rings) >= FACTS_MAX_NAMES) {
		f->rings_truncated = true;
		return 0;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return KVMSIM_ENOMEM;
	r->vcpu = vcpu;
	HASH_ADD(hh, f->rings, vcpu, sizeof(r->vcpu), r);
	if (!r->hh.tbl) {
		free(r);
		return KVMSIM_ENOMEM;
	}
	*out = r;
	return 0;
}

static void ring_used(struct facts_ring *r, const struct host_event *e)
{
	if (!host_has(e, HOST_F_used))
		return;
	r->used_seen = true;
	if (e->v[HOST_F_used] > r->max_used)
		r->max_used = e->v[HOST_F_used];
}

static int on_ring(struct facts *f, const struct host_event *e)
{
	struct facts_ring *r;

	if (!host_has(e, HOST_F_ring))
		return 0;
	if (ring_of(f, e->v[HOST_F_ring], &r))
		return KVMSIM_ENOMEM;
	if (!r)
		return 0;
	ring_used(r, e);
	if (e->id == HOST_kvm_dirty_ring_push) {
		r->pushes++;
		r->ret_seen |= host_has(e, HOST_F_ret);
		r->soft_full += host_has(e, HOST_F_ret) && e->v[HOST_F_ret] == 1;
		return 0;
	}
	r->resets++;
	if (e->tid < 0)
		return 0;
	r->tids_seen = true;
	return tally_add(&r->reset_tids, (uint64_t)e->tid, FACTS_MAX_NAMES);
}

static int on_ring_exit(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	int64_t vcpu = facts_vcpu(t, e);
	struct facts_ring *r;

	if (vcpu < 0)
		return 0;
	if (ring_of(f, (uint64_t)vcpu, &r))
		return KVMSIM_ENOMEM;
	if (!r)
		return 0;
	r->exits++;
	if (t) {
		t->ring_state = RING_FULL;
		t->ring = r;
	}
	return 0;
}

static void on_ring_out(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	t->ring_state = RING_OUT;
	t->ring_time = e->time_ns;
	t->ring_mark = f->mark;
	t->ring_cpu = e->cpu;
}

void facts_ring_end(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	if (t->ring_state != RING_OUT)
		return;
	t->ring_state = RING_RUNS;
	if (t->tid < 0 || !facts_timed(e) || t->ring_time == HOST_NO_TIME ||
	    e->time_ns < t->ring_time || facts_lost_since(f, t->ring_mark, t->ring_cpu))
		return;
	t->ring->stalls++;
	t->ring->stall_ns += e->time_ns - t->ring_time;
}

/* ---- */

int facts_mmu_event(struct facts *f, struct facts_thread *t, const struct host_event *e)
{
	switch (e->id) {
	case HOST_kvm_mmio:
		return on_mmio(f, t, e);
	case HOST_kvm_mmu_walker_error:
		return on_walker_error(f, t, e);
	case HOST_kvm_mmu_get_page:
		return on_get_page(f, e);
	case HOST_kvm_tdp_mmu_spte_changed:
		on_spte(f, t, e);
		return 0;
	case HOST_kvm_ple_window:
	case HOST_kvm_ple_window_update:
		return on_ple(f, t, e);
	case HOST_kvm_dirty_ring_push:
	case HOST_kvm_dirty_ring_reset:
		return on_ring(f, e);
	case HOST_kvm_dirty_ring_exit:
		return on_ring_exit(f, t, e);
	case HOST_kvm_userspace_exit:
		if (t && t->ring_state == RING_FULL)
			on_ring_out(f, t, e);
		return 0;
	default:
		return 0;
	}
}

void facts_mmu_close(struct facts *f, struct facts_thread *t)
{
	close_run(f, t);
	f->open_reads += t->n_pending;
	t->n_pending = 0;
}

void facts_mmu_free(struct facts *f)
{
	struct facts_ring *r, *next;

	r = f->rings;
	HASH_CLEAR(hh, f->rings);
	for (; r; r = next) {
		next = r->hh.next;
		tally_free(&r->reset_tids);
		free(r);
	}
	tally_free(&f->gpas);
	free(f->sp.at);
	free(f->walker.at);
	free(f->ple.at);
}
