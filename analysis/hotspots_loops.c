// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Loops without progress: three or more faults for one page by one instruction with one error code,
 * one vCPU at least twice among them, and no spte of that page changed in between.
 *
 * What changed is kept as the number of the last change by level and page, in tables of a fixed
 * size: two pages of one place are taken for one, which may hide a loop, never make one.
 */
#define HASH_NONFATAL_OOM 1
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "analysis/hotspots_priv.h"

#define MAX_GROUPS  16384
#define MAX_LEVELS  5
#define PLACES_BITS 16
#define VCPUS	    1024 /* places of what each faulted for last */

struct group_key {
	uint64_t gva, gfn, rip, code;
};

struct group {
	struct group_key key;
	struct hot_loop loop;
	uint64_t change; /* number of the last change when it was last met */
	uint64_t mark;
	struct group *prev, *next; /* longest not met first */
	UT_hash_handle hh;
};

struct loops {
	struct top *found;
	uint64_t *n_found, *n_elsewhere;
	struct last {
		bool there;
		int64_t vcpu;
		uint64_t gva, gfn;
	} last[VCPUS];
	struct group *by_key, *oldest;
	uint64_t changes;
	uint64_t changed[MAX_LEVELS][1 << PLACES_BITS];
};

struct loops *loops_create(struct top *found, uint64_t *n_found, uint64_t *n_elsewhere)
{
	struct loops *l = calloc(1, sizeof(*l));

	if (l) {
		l->found = found;
		l->n_found = n_found;
		l->n_elsewhere = n_elsewhere;
	}
	return l;
}

void loops_free(struct loops *l)
{
	struct group *g, *next;

	if (!l)
		return;
	HASH_CLEAR(hh, l->by_key);
	DL_FOREACH_SAFE(l->oldest, g, next)
	free(g);
	free(l);
}

static uint64_t *place(struct loops *l, uint64_t gfn, unsigned level)
{
	uint64_t page = gfn >> (level - 1) * 9;

	return &l->changed[level - 1][page * 0x9e3779b97f4a7c15ull >> (64 - PLACES_BITS)];
}

void loops_change(struct loops *l, uint64_t gfn, unsigned level)
{
	level = level < 1 ? 1 : level > MAX_LEVELS ? MAX_LEVELS : level;
	*place(l, gfn, level) = ++l->changes;
}

/* Of a virtual page the frame is not known: any change may be its. */
static uint64_t last_change(struct loops *l, const struct hot_fault *f)
{
	uint64_t last = 0;

	if (f->gva)
		return l->changes;
	for (unsigned level = 1; level <= MAX_LEVELS; level++) {
		uint64_t n = *place(l, f->gfn, level);

		last = n > last ? n : last;
	}
	return last;
}

static bool is_loop(const struct hot_loop *l)
{
	if (l->faults < 3)
		return false;
	for (unsigned i = 0; i < l->n_vcpus; i++)
		if (l->times[i] >= 2)
			return true;
	return false;
}

static void tell(struct loops *l, const struct group *g)
{
	if (!is_loop(&g->loop))
		return;
	++*l->n_found;
	*l->n_elsewhere += g->loop.elsewhere > 0;
	top_offer(l->found, &g->loop);
}

static void begin(struct group *g, const struct hot_fault *f)
{
	g->loop = (struct hot_loop){.gva = f->gva,
				    .gfn = f->gfn,
				    .rip = f->rip,
				    .code = f->code,
				    .begin = f->e->time_ns,
				    .line = f->e->line};
}

/* Whether the vCPU's last fault was for another page; this one is the last from now on. Two vCPUs
 * of one place are each other's elsewhere. */
static bool was_elsewhere(struct loops *l, const struct hot_fault *f)
{
	struct last *last = &l->last[(uint64_t)f->vcpu % VCPUS];
	bool same =
		last->there && last->vcpu == f->vcpu && last->gva == f->gva && last->gfn == f->gfn;

	*last = (struct last){true, f->vcpu, f->gva, f->gfn};
	return !same;
}

static void take_part(struct hot_loop *l, int64_t vcpu, bool elsewhere)
{
	unsigned i = 0;

	while (i < l->n_vcpus && l->vcpu[i] != vcpu)
		i++;
	if (i == HOT_VCPUS) {
		l->more_vcpus = true;
		return;
	}
	if (i == l->n_vcpus)
		l->vcpu[l->n_vcpus++] = vcpu;
	else
		l->elsewhere += elsewhere;
	l->times[i]++;
}

static struct group *get_group(struct loops *l, const struct hot_fault *f)
{
	const struct group_key key = {f->gva, f->gfn, f->rip, f->code};
	struct group *g;

	/* The analyser loses sight of the bytes that are hashed. */
	// NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
	HASH_FIND(hh, l->by_key, &key, sizeof(key), g);
	if (g) {
		DL_DELETE(l->oldest, g);
		DL_APPEND(l->oldest, g);
		return g;
	}
	if (HASH_COUNT(l->by_key) < MAX_GROUPS) {
		g = calloc(1, sizeof(*g));
		if (!g)
			return NULL;
	} else {
		g = l->oldest;
		tell(l, g);
		DL_DELETE(l->oldest, g);
		HASH_DEL(l->by_key, g);
		memset(g, 0, sizeof(*g));
	}
	g->key = key;
	HASH_ADD(hh, l->by_key, key, sizeof(g->key), g);
	if (!g->hh.tbl) {
		free(g);
		return NULL;
	}
	DL_APPEND(l->oldest, g);
	begin(g, f);
	return g;
}

int loops_fault(struct loops *l, const struct host_threads *t, const struct hot_fault *f)
{
	struct group *g = get_group(l, f);
	uint64_t change = last_change(l, f);

	if (!g)
		return KVMSIM_ENOMEM;
	if (g->loop.faults && change != g->change) {
		tell(l, g);
		begin(g, f);
	} else if (g->loop.faults && host_threads_lost_since(t, g->mark, -1)) {
		/* what is a loop by itself is told; what is one only over the loss, is unsure */
		if (is_loop(&g->loop)) {
			tell(l, g);
			begin(g, f);
		} else {
			g->loop.unsure = true;
		}
	}
	g->loop.faults++;
	take_part(&g->loop, f->vcpu, was_elsewhere(l, f));
	g->loop.end = f->e->time_ns;
	g->change = change;
	g->mark = host_threads_mark(t);
	return 0;
}

void loops_end(struct loops *l)
{
	struct group *g;

	DL_FOREACH(l->oldest, g)
	tell(l, g);
}
