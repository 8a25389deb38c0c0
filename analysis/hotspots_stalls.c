// SPDX-License-Identifier: GPL-3.0-or-later
/* Who made the threads of a host's trace stand still, and for how long. */
#define HASH_NONFATAL_OOM 1
#include <stdlib.h>
#include <uthash.h>

#include "analysis/hotspots_priv.h"

#define MAX_CULPRITS 1024

struct culprit_key {
	int64_t kind, tid;
};
struct culprit {
	struct culprit_key key;
	struct hot_culprit c;
	UT_hash_handle hh;
};
struct culprits {
	struct hotspots *out;
	struct culprit *by_key;
};

struct culprits *culprits_create(struct hotspots *out)
{
	struct culprits *r = calloc(1, sizeof(*r));

	if (r)
		r->out = out;
	return r;
}

/* Nobody's are one entry for each reason why nobody is known; so are those beyond the table. */
static struct culprit *get_culprit(struct culprits *r, const struct host_stall *s)
{
	struct culprit_key key = {.kind = s->kind, .tid = s->by.tid};
	struct culprit *c;

	if (s->blame != HOST_BLAME_KNOWN)
		key.tid = HOST_NOBODY + s->blame;
	/* The analyser loses sight of the bytes that are hashed. */
	// NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
	HASH_FIND(hh, r->by_key, &key, sizeof(key), c);
	if (!c && key.tid >= -1 && HASH_COUNT(r->by_key) >= MAX_CULPRITS) {
		key.tid = HOST_NOBODY + HOST_BLAME_KNOWN;
		HASH_FIND(hh, r->by_key, &key, sizeof(key), c);
	}
	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->key = key;
	c->c = (struct hot_culprit){.kind = s->kind, .by = s->by, .blame = s->blame};
	c->c.by.tid = key.tid;
	HASH_ADD(hh, r->by_key, key, sizeof(c->key), c);
	if (!c->hh.tbl) {
		free(c);
		return NULL;
	}
	return c;
}

int culprits_stall(struct culprits *r, const struct host_stall *s)
{
	struct hot_stalls *k = &r->out->by_kind[s->kind];
	uint64_t ns = s->end - s->begin;
	struct culprit *c;

	top_offer(&r->out->stalls, s);
	k->open += s->open;
	k->unsure += s->unsure && !s->open;
	if (s->open || s->unsure)
		return 0;
	k->n++;
	k->ns += ns;
	k->longest = ns > k->longest ? ns : k->longest;
	c = get_culprit(r, s);
	if (!c)
		return KVMSIM_ENOMEM;
	c->c.n++;
	c->c.ns += ns;
	c->c.longest = ns > c->c.longest ? ns : c->c.longest;
	return 0;
}

void culprits_end(struct culprits *r)
{
	struct culprit *c, *next;

	HASH_ITER(hh, r->by_key, c, next)
	top_offer(&r->out->culprits, &c->c);
}

void culprits_free(struct culprits *r)
{
	struct culprit *c, *next;

	if (!r)
		return;
	HASH_ITER(hh, r->by_key, c, next)
	{
		/* The analyser takes the table to be freed with an element that is not the last. */
		HASH_DEL(r->by_key, c); // NOLINT(clang-analyzer-unix.Malloc)
		free(c);
	}
	free(r);
}
