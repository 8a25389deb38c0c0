// SPDX-License-Identifier: GPL-3.0-or-later
/* The pages that a host's trace has faults for. */
#define HASH_NONFATAL_OOM 1
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "analysis/hotspots_priv.h"
#include "analysis/median.h"
#include "model/mmu/trace.h"

struct spot {
	struct hot_spot s;
	struct median period;
	uint64_t mark; /* at the last fault */
	int64_t cpu;
	UT_hash_handle hh;
};

struct pages {
	const struct hot_opts *opts;
	struct hotspots *out;
	const struct host_threads *threads;
	struct loops *loops;
	struct gaps *gaps;
	struct spot *spots;
	struct hot_key last; /* of the last fault, see spot_near() */
	int64_t last_tid;
};

/* ---- what an event is about ---- */

#define EPT_CODE_BITS (EPT_VIOLATION_GVA_IS_VALID | EPT_VIOLATION_GVA_TRANSLATED)
#define NPF_CODE_BITS (PFERR_GUEST_FINAL | PFERR_GUEST_PAGE)

static void kind_of(struct hot_fault *f, const struct host_thread *th)
{
	bool ept = th && th->exited && th->ept, pferr = th && th->exited && !th->ept;

	if (!th || !th->exited) {
		ept = !(f->code & NPF_CODE_BITS) && f->code & EPT_CODE_BITS;
		pferr = f->code & NPF_CODE_BITS;
	}
	f->write = f->code & PFERR_WRITE; /* bit 1 in both */
	f->fetch = !f->write &&
		   ((ept && f->code & EPT_VIOLATION_ACC_INSTR) || (pferr && f->code & PFERR_FETCH));
	f->read = (ept || pferr) && !f->write && !f->fetch;
}

void hot_fault_of(const struct host_event *e, const struct host_thread *th, struct hot_fault *f)
{
	uint64_t code = host_has(e, HOST_F_error_code) ? e->v[HOST_F_error_code] : 0;

	*f = (struct hot_fault){.e = e, .vcpu = -1};
	if (host_has(e, HOST_F_vcpu))
		f->vcpu = (int64_t)e->v[HOST_F_vcpu];
	else if (th)
		f->vcpu = th->who.vcpu;
	f->gva = th && th->page_fault;
	f->gfn = (host_has(e, HOST_F_address) ? e->v[HOST_F_address] : 0) >> 12;
	/* kernels before 6.1 print 32 bits of it */
	if (th && th->npf && code == (uint32_t)th->exit_info1)
		code = th->exit_info1;
	f->code = code;
	f->rip = host_has(e, HOST_F_rip) ? e->v[HOST_F_rip] : th ? th->exit_rip : 0;
	kind_of(f, th);
}

bool hot_changes_spte(const struct host_event *e, uint64_t *gfn, unsigned *level)
{
	*level = host_has(e, HOST_F_level) ? (unsigned)e->v[HOST_F_level] : 1;
	if (e->id == HOST_fast_page_fault) {
		*gfn = host_has(e, HOST_F_gva) ? e->v[HOST_F_gva] >> 12 : 0;
		return host_has(e, HOST_F_fixed) && e->v[HOST_F_fixed];
	}
	*gfn = host_has(e, HOST_F_gfn) ? e->v[HOST_F_gfn] : 0;
	return e->id == HOST_kvm_tdp_mmu_spte_changed || e->id == HOST_kvm_mmu_set_spte;
}

/* ---- pages ---- */

static bool in_ranges(const struct hot_opts *o, uint64_t gva, uint64_t gfn)
{
	if (!o->n_ranges)
		return true;
	for (size_t i = 0; !gva && i < o->n_ranges; i++)
		if (gfn >= o->ranges[i].first && gfn <= o->ranges[i].last)
			return true;
	return false;
}

static int by_weight(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void drop(struct pages *r, struct spot *s)
{
	/* The analyser takes the table to be freed with an element that is not the last. */
	HASH_DEL(r->spots, s); // NOLINT(clang-analyzer-unix.Malloc)
	median_free(&s->period);
	free(s);
}

/* Lets go of the half that has the fewest faults. */
static int make_room(struct pages *r)
{
	size_t n = HASH_COUNT(r->spots), i = 0;
	uint64_t *faults = malloc(n * sizeof(*faults)), limit, most = 0;
	struct spot *s, *next;

	if (!faults)
		return KVMSIM_ENOMEM;
	HASH_ITER(hh, r->spots, s, next)
	faults[i++] = s->s.faults;
	qsort(faults, n, sizeof(*faults), by_weight);
	limit = faults[n / 2];
	free(faults);
	HASH_ITER(hh, r->spots, s, next)
	{
		uint64_t at_most = s->s.faults + s->s.missed;

		if (s->s.faults > limit)
			continue;
		most = at_most > most ? at_most : most;
		r->out->dropped_keys++;
		drop(r, s);
	}
	if (most > r->out->dropped_at_most)
		r->out->dropped_at_most = most;
	return 0;
}

static struct spot *get_spot(struct pages *r, const struct hot_key *key)
{
	struct spot *s;

	HASH_FIND(hh, r->spots, key, sizeof(*key), s);
	if (s)
		return s;
	if (HASH_COUNT(r->spots) >= r->opts->keys && make_room(r))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->s.key = *key;
	s->s.first = s->s.last = HOST_NO_TIME;
	s->s.missed = r->out->dropped_at_most;
	HASH_ADD(hh, r->spots, s.key, sizeof(s->s.key), s);
	if (!s->hh.tbl) {
		free(s);
		return NULL;
	}
	return s;
}

static int on_fault(struct pages *r, const struct host_event *e, const struct host_thread *th)
{
	struct hot_fault f;
	struct spot *s;
	int err;

	if (!host_has(e, HOST_F_address))
		return 0;
	hot_fault_of(e, th, &f);
	r->out->faults++;
	if (!in_ranges(r->opts, f.gva, f.gfn)) {
		r->out->outside++;
		return 0;
	}
	r->last = (struct hot_key){f.vcpu, f.gfn, f.gva};
	r->last_tid = e->tid;
	s = get_spot(r, &r->last);
	if (!s)
		return KVMSIM_ENOMEM;
	s->s.faults++;
	s->s.writes += f.write;
	s->s.fetches += f.fetch;
	s->s.reads += f.read;
	if (e->time_ns != HOST_NO_TIME) {
		bool whole = s->s.last != HOST_NO_TIME && e->time_ns >= s->s.last &&
			     !host_threads_lost_since(r->threads, s->mark, s->cpu) &&
			     !host_threads_lost_since(r->threads, s->mark, e->cpu);

		err = whole ? median_add(&s->period, e->time_ns - s->s.last) : 0;
		if (err)
			return err;
		s->s.last = e->time_ns;
		if (s->s.first == HOST_NO_TIME)
			s->s.first = e->time_ns;
		s->mark = host_threads_mark(r->threads);
		s->cpu = e->cpu;
	}
	err = gaps_fault(r->gaps, r->threads, &f);
	return err ? err : loops_fault(r->loops, r->threads, &f);
}

/* What follows a fault is put down to it where it is of the same thread and covers its page; else
 * to the page itself. */
static struct spot *spot_near(struct pages *r, const struct host_event *e,
			      const struct host_thread *th, uint64_t gfn, unsigned level)
{
	unsigned bits = level > 1 && level <= 5 ? (level - 1) * 9 : 0;
	struct hot_key key = {.vcpu = th ? th->who.vcpu : -1, .gfn = gfn};

	if (host_has(e, HOST_F_vcpu))
		key.vcpu = (int64_t)e->v[HOST_F_vcpu];
	if (e->tid == r->last_tid && (r->last.gva || r->last.gfn >> bits == gfn >> bits))
		key = r->last;
	return get_spot(r, &key);
}

static int on_change(struct pages *r, const struct host_event *e, const struct host_thread *th,
		     uint64_t gfn, unsigned level)
{
	struct spot *s;

	r->out->spte_events++;
	loops_change(r->loops, gfn, level);
	if (!in_ranges(r->opts, 0, gfn))
		return 0;
	s = spot_near(r, e, th, gfn, level);
	if (!s)
		return KVMSIM_ENOMEM;
	s->s.spte_changes++;
	return 0;
}

static int on_page(struct pages *r, const struct host_event *e, const struct host_thread *th,
		   uint64_t gfn, bool spurious)
{
	struct spot *s = in_ranges(r->opts, 0, gfn) ? spot_near(r, e, th, gfn, 1) : NULL;

	if (!s)
		return in_ranges(r->opts, 0, gfn) ? KVMSIM_ENOMEM : 0;
	s->s.spurious += spurious;
	s->s.mmio += !spurious;
	return 0;
}

int pages_event(struct pages *r, const struct host_event *e)
{
	const struct host_thread *th = host_threads_current(r->threads);
	unsigned level;
	uint64_t gfn;
	int err = 0;

	switch (e->id) {
	case HOST_kvm_page_fault:
		return on_fault(r, e, th);
	case HOST_kvm_mmio:
		return host_has(e, HOST_F_gpa) ? on_page(r, e, th, e->v[HOST_F_gpa] >> 12, false)
					       : 0;
	case HOST_fast_page_fault:
		if (host_has(e, HOST_F_gva) && host_has(e, HOST_F_spurious) &&
		    e->v[HOST_F_spurious])
			err = on_page(r, e, th, e->v[HOST_F_gva] >> 12, true);
		break;
	default:
		break;
	}
	if (!err && hot_changes_spte(e, &gfn, &level))
		err = on_change(r, e, th, gfn, level);
	return err;
}

struct pages *pages_create(const struct hot_opts *opts, struct hotspots *out,
			   const struct host_threads *threads, struct loops *loops,
			   struct gaps *gaps)
{
	struct pages *r = calloc(1, sizeof(*r));

	if (r)
		*r = (struct pages){.opts = opts,
				    .out = out,
				    .threads = threads,
				    .loops = loops,
				    .gaps = gaps,
				    .last_tid = HOST_NOBODY};
	return r;
}

void pages_end(struct pages *r)
{
	struct spot *s, *next;

	r->out->keys = HASH_COUNT(r->spots);
	HASH_ITER(hh, r->spots, s, next)
	{
		s->s.period_ns = median_get(&s->period);
		s->s.periods = s->period.n;
		s->s.exact = median_is_exact(&s->period);
		top_offer(&r->out->spots, &s->s);
	}
}

void pages_free(struct pages *r)
{
	struct spot *s, *next;

	if (!r)
		return;
	HASH_ITER(hh, r->spots, s, next)
	drop(r, s);
	free(r);
}
