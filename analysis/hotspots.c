// SPDX-License-Identifier: GPL-3.0-or-later
/* The pages that a host's trace has faults for, and the stalls of its threads. */
#include "analysis/hotspots.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/hotspots_priv.h"

struct hot_reading {
	const struct hot_opts *opts;
	struct hotspots *out;
	struct host_threads *threads;
	struct loops *loops;
	struct gaps *gaps;
	struct pages *pages;
	struct culprits *culprits;
	struct hot_userspace window;
	struct host_threads_sink told;
};

/* ---- exits to user space ---- */

static void count_exit(struct hot_userspace *u, const struct host_event *e)
{
	int64_t n = host_has(e, HOST_F_reason) ? (int64_t)e->v[HOST_F_reason] : -1;

	u->exits++;
	u->by_reason[n >= 0 && n < 40 ? n : 40]++;
}

static void end_window(struct hot_reading *r)
{
	if (r->window.exits > r->out->worst.exits)
		r->out->worst = r->window;
	r->window = (struct hot_userspace){0};
}

static void on_userspace(struct hot_reading *r, const struct host_event *e)
{
	uint64_t begin;

	count_exit(&r->out->userspace, e);
	if (e->time_ns == HOST_NO_TIME)
		return;
	begin = e->time_ns - e->time_ns % HOT_WINDOW_NS;
	if (r->window.exits && begin != r->window.begin)
		end_window(r);
	r->window.begin = begin;
	r->window.end = begin + HOT_WINDOW_NS;
	count_exit(&r->window, e);
}

static uint64_t per_second(uint64_t n, uint64_t ns)
{
	return ns ? (uint64_t)((unsigned __int128)n * 1000000000u / ns) : 0;
}

static void finish_userspace(struct hot_reading *r)
{
	struct hotspots *h = r->out;

	end_window(r);
	if (h->totals.first == HOST_NO_TIME)
		return;
	h->userspace.begin = h->totals.first;
	h->userspace.end = h->totals.last;
	h->userspace.per_second = per_second(h->userspace.exits, h->totals.last - h->totals.first);
	h->worst.per_second = per_second(h->worst.exits, h->worst.end - h->worst.begin);
	h->storm = h->userspace.exits >= HOT_STORM_LEAST && h->userspace.per_second > HOT_STORM;
	h->storm_window = h->worst.per_second > HOT_STORM;
}

/* ---- orders ---- */

/* Most faults first; then by page and vCPU. */
static int spot_order(const void *a, const void *b)
{
	const struct hot_spot *x = a, *y = b;

	if (x->faults != y->faults)
		return x->faults > y->faults ? -1 : 1;
	if (x->mmio != y->mmio)
		return x->mmio > y->mmio ? -1 : 1;
	if (x->spte_changes != y->spte_changes)
		return x->spte_changes > y->spte_changes ? -1 : 1;
	if (x->key.gva != y->key.gva)
		return x->key.gva < y->key.gva ? -1 : 1;
	if (x->key.gfn != y->key.gfn)
		return x->key.gfn < y->key.gfn ? -1 : 1;
	return (x->key.vcpu > y->key.vcpu) - (x->key.vcpu < y->key.vcpu);
}

static int stall_order(const void *a, const void *b)
{
	const struct host_stall *x = a, *y = b;
	uint64_t p = x->end - x->begin, q = y->end - y->begin;

	if (p != q)
		return p > q ? -1 : 1;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

static int culprit_order(const void *a, const void *b)
{
	const struct hot_culprit *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->by.tid > y->by.tid) - (x->by.tid < y->by.tid);
}

static int gap_order(const void *a, const void *b)
{
	const struct host_gap *x = a, *y = b;
	uint64_t p = x->end - x->begin, q = y->end - y->begin;

	if (p != q)
		return p > q ? -1 : 1;
	return (x->who.tid > y->who.tid) - (x->who.tid < y->who.tid);
}

static int range_gap_order(const void *a, const void *b)
{
	const struct hot_gap *x = a, *y = b;
	int order = gap_order(&x->gap, &y->gap);

	return order ? order : (x->first > y->first) - (x->first < y->first);
}

static int loop_order(const void *a, const void *b)
{
	const struct hot_loop *x = a, *y = b;

	if (x->unsure != y->unsure)
		return x->unsure ? 1 : -1;
	if (!x->elsewhere != !y->elsewhere)
		return x->elsewhere ? 1 : -1;
	if (x->faults != y->faults)
		return x->faults > y->faults ? -1 : 1;
	if (x->gfn != y->gfn)
		return x->gfn < y->gfn ? -1 : 1;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* ---- the stream ---- */

static int on_stall(void *ctx, const struct host_stall *s)
{
	struct hot_reading *r = ctx;

	return culprits_stall(r->culprits, s);
}

static int on_gap(void *ctx, const struct host_gap *g)
{
	struct hot_reading *r = ctx;

	top_offer(&r->out->thread_gaps, g);
	return 0;
}

static int on_event(void *ctx, const struct host_event *e)
{
	struct hot_reading *r = ctx;
	struct hotspots *h = r->out;
	int err = host_threads_event(r->threads, e);

	if (err)
		return err;
	h->events++;
	h->scheduled |= e->id == HOST_sched_switch;
	h->woken |= e->id == HOST_sched_waking || e->id == HOST_sched_wakeup;
	h->contended |= e->id == HOST_contention_end;
	h->kvm_events += e->id != HOST_OTHER && e->id != HOST_UNKNOWN_KVM &&
			 (e->id < HOST_contention_begin || e->id > HOST_sched_wakeup_new);
	if (e->id == HOST_kvm_userspace_exit)
		on_userspace(r, e);
	return pages_event(r->pages, e);
}

static int on_loss(void *ctx, const struct host_loss *l)
{
	struct hot_reading *r = ctx;
	struct hotspots *h = r->out;

	if (l->header && !l->count) /* which says that nothing was lost */
		return 0;
	h->losses++;
	h->lost_chunks += l->chunks;
	if (l->header) {
		h->lost_in_all = l->count;
		h->header_loss = true;
	} else if (l->count == UINT64_MAX) {
		h->lost_unknown = true;
	} else {
		h->lost += l->count;
	}
	return host_threads_loss(r->threads, l);
}

static int on_elision(void *ctx)
{
	struct hot_reading *r = ctx;

	return host_threads_elision(r->threads);
}

static int prepare(struct hot_reading *r)
{
	struct hotspots *h = r->out;
	size_t k = r->opts->top;
	int err = top_init(&h->spots, sizeof(struct hot_spot), k, spot_order);

	err = err ? err : top_init(&h->loops, sizeof(struct hot_loop), k, loop_order);
	err = err ? err : top_init(&h->stalls, sizeof(struct host_stall), k, stall_order);
	err = err ? err : top_init(&h->range_gaps, sizeof(struct hot_gap), k, range_gap_order);
	err = err ? err : top_init(&h->thread_gaps, sizeof(struct host_gap), k, gap_order);
	err = err ? err : top_init(&h->culprits, sizeof(struct hot_culprit), k, culprit_order);
	r->threads = host_threads_create(&r->told);
	r->loops = loops_create(&h->loops, &h->n_loops, &h->n_elsewhere);
	r->gaps = gaps_create(r->opts, &h->range_gaps);
	r->pages = pages_create(r->opts, h, r->threads, r->loops, r->gaps);
	r->culprits = culprits_create(h);
	return err || !r->threads || !r->loops || !r->gaps || !r->pages || !r->culprits
		       ? KVMSIM_ENOMEM
		       : 0;
}

static void finish(struct hot_reading *r)
{
	loops_end(r->loops);
	gaps_end(r->gaps);
	pages_end(r->pages);
	culprits_end(r->culprits);
	r->out->totals = host_threads_totals(r->threads);
	finish_userspace(r);
	if (r->out->header_loss) {
		r->out->lost = r->out->lost_in_all;
		r->out->lost_unknown = false;
	}
}

static void clear(struct hot_reading *r)
{
	pages_free(r->pages);
	culprits_free(r->culprits);
	loops_free(r->loops);
	gaps_free(r->gaps);
	host_threads_free(r->threads);
	free(r);
}

struct hot_reading *hotspots_begin(const struct hot_opts *opts, struct hotspots *out,
				   struct host_sink *sink)
{
	struct hot_reading *r = calloc(1, sizeof(*r));

	memset(out, 0, sizeof(*out));
	if (!r)
		return NULL;
	r->opts = opts;
	r->out = out;
	r->told = (struct host_threads_sink){.ctx = r, .stall = on_stall, .gap = on_gap};
	*sink = (struct host_sink){
		.ctx = r, .event = on_event, .loss = on_loss, .elision = on_elision};
	if (!prepare(r))
		return r;
	clear(r);
	return NULL;
}

int hotspots_end(struct hot_reading *r)
{
	int err = host_threads_end(r->threads);

	if (!err)
		finish(r);
	return err;
}

void hotspots_abort(struct hot_reading *r)
{
	if (r)
		clear(r);
}

bool hotspots_loop_is_sure(const struct hotspots *h, const struct hot_loop *l)
{
	return !l->unsure && (h->spte_events || !l->elsewhere);
}

void hotspots_free(struct hotspots *h)
{
	struct top *all[] = {&h->spots,	     &h->loops,	      &h->stalls,
			     &h->range_gaps, &h->thread_gaps, &h->culprits};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		top_free(all[i]);
}
