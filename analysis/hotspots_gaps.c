// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The longest time in which a thread took no fault in a range: in one that was given, or, of a
 * thread, in a run of pages that it faulted for, each within 2 MiB (one large mapping) of another.
 * A gap is of the run as it was then: what later proves to be one run may have been two.
 */
#define HASH_NONFATAL_OOM 1
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "analysis/hotspots_priv.h"

#define NEIGHBOUR   512 /* pages */
#define MAX_THREADS 1024
#define MAX_RUNS    8 /* of a thread, at a time */

struct run {
	bool there;
	struct hot_gap gap;
	uint64_t last_time, mark, used;
	int64_t cpu;
};

struct fault_thread {
	int64_t tid;
	uint64_t used;
	struct run run[HOT_MAX_RANGES > MAX_RUNS ? HOT_MAX_RANGES : MAX_RUNS];
	struct fault_thread *prev, *next; /* silent for longest first */
	UT_hash_handle hh;
};

struct gaps {
	const struct hot_opts *opts;
	struct top *found;
	struct fault_thread *by_tid, *oldest;
};

struct gaps *gaps_create(const struct hot_opts *opts, struct top *found)
{
	struct gaps *g = calloc(1, sizeof(*g));

	if (g) {
		g->opts = opts;
		g->found = found;
	}
	return g;
}

void gaps_free(struct gaps *g)
{
	struct fault_thread *t, *next;

	if (!g)
		return;
	HASH_CLEAR(hh, g->by_tid);
	DL_FOREACH_SAFE(g->oldest, t, next)
	free(t);
	free(g);
}

static size_t n_runs(const struct gaps *g)
{
	return g->opts->n_ranges ? g->opts->n_ranges : MAX_RUNS;
}

static void tell(struct gaps *g, struct run *r)
{
	if (r->there && r->gap.gap.end > r->gap.gap.begin)
		top_offer(g->found, &r->gap);
	r->there = false;
}

static void forget(struct gaps *g, struct fault_thread *t)
{
	for (size_t i = 0; i < n_runs(g); i++)
		tell(g, &t->run[i]);
	/* The analyser knows neither that it is in the table nor that it is in the list. */
	HASH_DEL(g->by_tid, t); // NOLINT(clang-analyzer-core.NullDereference)
	DL_DELETE(g->oldest, t);
	free(t);
}

static struct fault_thread *get_thread(struct gaps *g, int64_t tid)
{
	struct fault_thread *t;

	HASH_FIND(hh, g->by_tid, &tid, sizeof(tid), t);
	if (t) {
		DL_DELETE(g->oldest, t);
		DL_APPEND(g->oldest, t);
		return t;
	}
	if (HASH_COUNT(g->by_tid) >= MAX_THREADS)
		forget(g, g->oldest);
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->tid = tid;
	HASH_ADD(hh, g->by_tid, tid, sizeof(t->tid), t);
	if (!t->hh.tbl) {
		free(t);
		return NULL;
	}
	DL_APPEND(g->oldest, t);
	return t;
}

static bool near(const struct run *r, uint64_t gva, uint64_t first, uint64_t last)
{
	return r->there && r->gap.gva == gva && first <= r->gap.last + NEIGHBOUR &&
	       r->gap.first <= last + NEIGHBOUR;
}

/* @from is a part of @into from now on. */
static void merge(struct run *into, struct run *from)
{
	struct hot_gap *a = &into->gap, *b = &from->gap;

	if (b->gap.end - b->gap.begin > a->gap.end - a->gap.begin)
		a->gap = b->gap;
	a->first = b->first < a->first ? b->first : a->first;
	a->last = b->last > a->last ? b->last : a->last;
	a->faults += b->faults;
	if (from->last_time > into->last_time) {
		into->last_time = from->last_time;
		into->mark = from->mark;
		into->cpu = from->cpu;
	}
	from->there = false;
}

/* The thread's run that the page is of; others that it joins are merged into it. */
static struct run *find_run(struct gaps *g, struct fault_thread *t, const struct hot_fault *f)
{
	struct run *found = NULL, *old = &t->run[0];

	for (unsigned i = 0; i < MAX_RUNS; i++) {
		struct run *r = &t->run[i];

		if (near(r, f->gva, f->gfn, f->gfn)) {
			if (found)
				merge(found, r);
			else
				found = r;
		}
	}
	if (found)
		return found;
	for (unsigned i = 0; i < MAX_RUNS; i++) {
		struct run *r = &t->run[i];

		if (!r->there)
			return r;
		if (r->used < old->used)
			old = r;
	}
	tell(g, old);
	return old;
}

static struct run *given_run(const struct gaps *g, struct fault_thread *t,
			     const struct hot_fault *f)
{
	for (size_t i = 0; i < g->opts->n_ranges; i++) {
		const struct hot_range *r = &g->opts->ranges[i];

		if (!f->gva && f->gfn >= r->first && f->gfn <= r->last)
			return &t->run[i];
	}
	return NULL;
}

static void begin(const struct gaps *g, const struct fault_thread *t, struct run *r,
		  const struct hot_fault *f)
{
	memset(r, 0, sizeof(*r));
	r->there = true;
	r->gap.first = r->gap.last = f->gfn;
	r->gap.gva = f->gva;
	r->last_time = HOST_NO_TIME;
	if (g->opts->n_ranges)
		memcpy(r->gap.name, g->opts->ranges[r - t->run].name, sizeof(r->gap.name));
}

int gaps_fault(struct gaps *g, const struct host_threads *th, const struct hot_fault *f)
{
	const struct host_thread *who = host_threads_current(th);
	uint64_t now = f->e->time_ns;
	struct fault_thread *t;
	struct run *r;

	if (!who || now == HOST_NO_TIME)
		return 0;
	t = get_thread(g, who->who.tid);
	if (!t)
		return KVMSIM_ENOMEM;
	r = g->opts->n_ranges ? given_run(g, t, f) : find_run(g, t, f);
	if (!r)
		return 0;
	if (!r->there)
		begin(g, t, r, f);
	struct hot_gap *gap = &r->gap;

	gap->first = f->gfn < gap->first ? f->gfn : gap->first;
	gap->last = f->gfn > gap->last ? f->gfn : gap->last;
	gap->faults++;
	gap->gap.who = who->who;
	if (r->last_time != HOST_NO_TIME && now > r->last_time &&
	    now - r->last_time > gap->gap.end - gap->gap.begin) {
		gap->gap.begin = r->last_time;
		gap->gap.end = now;
		gap->gap.line = f->e->line;
		gap->gap.unsure = host_threads_lost_since(th, r->mark, r->cpu) ||
				  host_threads_lost_since(th, r->mark, f->e->cpu);
	}
	r->last_time = now;
	r->mark = host_threads_mark(th);
	r->cpu = f->e->cpu;
	r->used = ++t->used;
	return 0;
}

void gaps_end(struct gaps *g)
{
	while (g->oldest)
		forget(g, g->oldest);
}
