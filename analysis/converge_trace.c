// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/converge_trace.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/facts_util.h"
#include "analysis/host_threads.h"
#include "analysis/run.h"
#include "model/mmu/trace.h"

#define PAGE	      4096.0
#define APIC_GFN      0xfee00
#define DEVICE_PAGES  65536
#define SLOT_SHIFT    48 /* of a ring's page: its slot above, its offset below */
#define NPF_CODE_BITS (PFERR_GUEST_FINAL | PFERR_GUEST_PAGE)
#define EPT_MAPPED    (EPT_VIOLATION_READABLE | EPT_VIOLATION_WRITABLE | EPT_VIOLATION_EXECUTABLE)

struct store {
	uint64_t time, page; /* page: from trace_dirty_judge() on its number */
};
struct stores {
	struct vec all; /* struct store */
	uint64_t n;
};

struct trace_dirty {
	struct host_threads_sink nothing;
	struct host_threads *threads;
	struct stores of[3]; /* by enum trace_stores_of */
	struct tally devices;
	uint64_t left_out;
	uint64_t *stamp; /* by page's number */
};

/* ---- reading ---- */

static int add(struct stores *s, uint64_t time, uint64_t page)
{
	void *item;

	if (time == HOST_NO_TIME)
		return 0;
	s->n++;
	if (vec_push(&s->all, sizeof(struct store), TRACE_STORES, &item))
		return KVMSIM_ENOMEM;
	if (item)
		*(struct store *)item = (struct store){time, page};
	return 0;
}

/* A write to a page that the host's tables had, without W. */
static bool write_protected(const struct host_thread *th, uint64_t code)
{
	bool ept = th && th->exited ? th->ept : !(code & NPF_CODE_BITS) && code & EPT_MAPPED;

	if (ept)
		return code & EPT_MAPPED && !(code & EPT_VIOLATION_WRITABLE);
	return code & PFERR_PRESENT && !(code & PFERR_RSVD);
}

static int on_fault(struct trace_dirty *d, const struct host_event *e, enum host_field address)
{
	const struct host_thread *th = host_threads_current(d->threads);
	uint64_t code;

	if (!host_has(e, address) || !host_has(e, HOST_F_error_code))
		return 0;
	code = e->v[HOST_F_error_code];
	if (!(code & PFERR_WRITE) || e->v[address] >> 12 == APIC_GFN)
		return 0;
	if (th && th->page_fault) {
		d->left_out++;
		return 0;
	}
	return add(&d->of[write_protected(th, code) ? TRACE_PROTECTED : TRACE_FIRST], e->time_ns,
		   e->v[address] >> 12);
}

static int on_event(void *ctx, const struct host_event *e)
{
	struct trace_dirty *d = ctx;
	int err = host_threads_event(d->threads, e);

	if (err)
		return err;
	switch (e->id) {
	case HOST_kvm_page_fault:
		return on_fault(d, e, HOST_F_address);
	case HOST_fast_page_fault: /* of direct MMUs alone: its gva is a GPA */
		return on_fault(d, e, HOST_F_gva);
	case HOST_kvm_dirty_ring_push:
		if (!host_has(e, HOST_F_slot) || !host_has(e, HOST_F_offset))
			return 0;
		return add(&d->of[TRACE_PUSHES], e->time_ns,
			   e->v[HOST_F_slot] << SLOT_SHIFT | e->v[HOST_F_offset]);
	case HOST_kvm_mmio:
	case HOST_kvm_fast_mmio:
	case HOST_vcpu_match_mmio:
		if (!host_has(e, HOST_F_gpa))
			return 0;
		return tally_add(&d->devices, e->v[HOST_F_gpa] >> 12, DEVICE_PAGES);
	case HOST_mark_mmio_spte:
	case HOST_handle_mmio_page_fault:
		if (!host_has(e, HOST_F_gfn))
			return 0;
		return tally_add(&d->devices, e->v[HOST_F_gfn], DEVICE_PAGES);
	default:
		return 0;
	}
}

struct trace_dirty *trace_dirty_begin(struct host_sink *sink)
{
	struct trace_dirty *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->threads = host_threads_create(&d->nothing);
	if (!d->threads) {
		free(d);
		return NULL;
	}
	*sink = (struct host_sink){.ctx = d, .event = on_event};
	return d;
}

void trace_dirty_free(struct trace_dirty *d)
{
	if (!d)
		return;
	host_threads_free(d->threads);
	for (int i = 0; i < 3; i++)
		free(d->of[i].all.at);
	tally_free(&d->devices);
	free(d->stamp);
	free(d);
}

/* ---- pages by number, stores by time ---- */

static int by_page(const void *a, const void *b)
{
	const struct store *x = a, *y = b;

	return (x->page > y->page) - (x->page < y->page);
}

static int by_time(const void *a, const void *b)
{
	const struct store *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return by_page(a, b);
}

static void without_devices(struct trace_dirty *d, struct stores *s)
{
	struct store *at = s->all.at;
	size_t kept = 0;

	for (size_t i = 0; i < s->all.n; i++) {
		struct tally_item *item;

		HASH_FIND(hh, d->devices.items, &at[i].page, sizeof(at[i].page), item);
		if (!item)
			at[kept++] = at[i];
	}
	s->n -= s->all.n - kept;
	s->all.n = kept;
}

/* How many pages there are. */
static uint64_t number_pages(struct stores *s)
{
	struct store *at = s->all.at;
	uint64_t n = 0, last = 0;

	if (!s->all.n)
		return 0;
	qsort(at, s->all.n, sizeof(*at), by_page);
	for (size_t i = 0; i < s->all.n; i++) {
		n += !i || at[i].page != last;
		last = at[i].page;
		at[i].page = n - 1;
	}
	qsort(at, s->all.n, sizeof(*at), by_time);
	return n;
}

/* Stretches of @ns; when not one is complete, all is one. */
static struct trace_stretches stretches(struct trace_dirty *d, const struct stores *s,
					uint64_t pages, uint64_t ns)
{
	const struct store *at = s->all.at;
	uint64_t begin = at[0].time, span = at[s->all.n - 1].time - begin;
	struct trace_stretches r = {.ns = ns, .n = ns ? span / ns : 0};
	size_t i = 0;

	if (!r.n)
		return (struct trace_stretches){span, 1, pages, pages, pages};
	memset(d->stamp, 0, pages * sizeof(*d->stamp));
	for (uint64_t k = 0; k < r.n; k++) {
		uint64_t n = 0;

		/* nobody stored for a long time: none of those are counted one by one */
		if (i < s->all.n && at[i].time - begin >= (k + 1) * ns) {
			r.least = 0;
			k = (at[i].time - begin) / ns;
			if (k >= r.n)
				break;
		}
		for (; i < s->all.n && at[i].time - begin < (k + 1) * ns; i++) {
			n += d->stamp[at[i].page] != k + 1;
			d->stamp[at[i].page] = k + 1;
		}
		r.least = k && n > r.least ? r.least : n;
		r.most = n > r.most ? n : r.most;
		r.all += n;
	}
	return r;
}

/* ---- rounds ---- */

/* From below; true: it does not converge. KVMSIM_EINTR ends it early. */
static bool stuck(struct trace_dirty *d, const struct stores *s, uint64_t pages,
		  const struct rounds_goal *goal, uint64_t *rounds, uint64_t *left)
{
	double bytes_s = goal->bandwidth * (1 << 20), fits = bytes_s * goal->downtime / PAGE;

	*left = pages;
	for (*rounds = 0; (double)*left > fits; ++*rounds) {
		double ns = (double)*left * PAGE / bytes_s * 1e9;
		uint64_t next;

		if (*rounds == goal->max_rounds || run_interrupted)
			return true;
		next = stretches(d, s, pages, ns < 1e18 ? (uint64_t)ns : (uint64_t)1e18).least;
		if (next >= *left) { /* and so for ever */
			++*rounds;
			return true;
		}
		*left = next;
	}
	return false;
}

static double least_bandwidth(struct trace_dirty *d, const struct stores *s, uint64_t pages,
			      const struct rounds_goal *goal)
{
	struct rounds_goal g = *goal;
	double low = goal->bandwidth, high = (double)pages * PAGE / (1 << 20) / goal->downtime;
	uint64_t rounds, left;

	for (int i = 0; i < 30 && !run_interrupted; i++) {
		g.bandwidth = (low + high) / 2;
		if (stuck(d, s, pages, &g, &rounds, &left))
			low = g.bandwidth;
		else
			high = g.bandwidth;
	}
	return low;
}

int trace_dirty_judge(struct trace_dirty *d, const struct rounds_goal *goal,
		      struct trace_dirty_result *out)
{
	static const uint64_t lengths[TRACE_STRETCHES] = {0, 10000000000, 1000000000, 100000000,
							  10000000};
	struct stores *s = &d->of[TRACE_PUSHES];

	*out = (struct trace_dirty_result){.left_out = d->left_out, .goal = *goal};
	without_devices(d, &d->of[TRACE_PROTECTED]);
	without_devices(d, &d->of[TRACE_FIRST]);
	for (int i = 0; i < 2 && !s->all.n; i++)
		s++;
	if (!s->all.n)
		return KVMSIM_ENOENT;
	out->of_what = (enum trace_stores_of)(s - d->of);
	out->stores = s->n;
	out->cut = s->all.truncated;
	out->pages = number_pages(s);
	out->span_ns = ((struct store *)s->all.at)[s->all.n - 1].time -
		       ((struct store *)s->all.at)[0].time;
	d->stamp = calloc(out->pages, sizeof(*d->stamp));
	if (!d->stamp)
		return KVMSIM_ENOMEM;
	for (unsigned i = 0; i < TRACE_STRETCHES; i++)
		if (!i || out->span_ns / lengths[i] > 1)
			out->of[out->n_of++] = stretches(d, s, out->pages, lengths[i]);
	if (goal->bandwidth > 0 && out->of_what != TRACE_FIRST) {
		out->known = stuck(d, s, out->pages, goal, &out->rounds, &out->left);
		out->stop_s = (double)out->left * PAGE / (goal->bandwidth * (1 << 20));
		if (out->known && goal->downtime > 0)
			out->bandwidth = least_bandwidth(d, s, out->pages, goal);
	}
	return run_interrupted ? KVMSIM_EINTR : 0;
}
