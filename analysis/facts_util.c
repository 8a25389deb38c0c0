// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/facts_util.h"

#include <stdlib.h>
#include <string.h>

#include "model/sim/error.h"

int vec_push(struct vec *v, size_t size, size_t max, void **item)
{
	*item = NULL;
	if (v->n >= max) {
		v->truncated = true;
		return 0;
	}
	if (v->n == v->room) {
		size_t room = v->room ? 2 * v->room : 4;
		void *grown = realloc(v->at, room * size);

		if (!grown)
			return KVMSIM_ENOMEM;
		v->at = grown;
		v->room = room;
	}
	*item = (char *)v->at + v->n++ * size;
	memset(*item, 0, size);
	return 0;
}

int tally_count(struct tally *t, uint64_t key, size_t max, struct tally_item **out)
{
	struct tally_item *i;

	HASH_FIND(hh, t->items, &key, sizeof(key), i);
	*out = i;
	if (i) {
		i->n++;
		return 0;
	}
	if (HASH_COUNT(t->items) >= max) {
		t->truncated = true;
		return 0;
	}
	i = calloc(1, sizeof(*i));
	if (!i)
		return KVMSIM_ENOMEM;
	i->key = key;
	i->n = 1;
	HASH_ADD(hh, t->items, key, sizeof(i->key), i);
	if (!i->hh.tbl) {
		free(i);
		return KVMSIM_ENOMEM;
	}
	*out = i;
	return 0;
}

int tally_add(struct tally *t, uint64_t key, size_t max)
{
	struct tally_item *item;

	return tally_count(t, key, max, &item);
}

static int by_key(const struct tally_item *a, const struct tally_item *b)
{
	return (a->key > b->key) - (a->key < b->key);
}

void tally_sort(struct tally *t)
{
	HASH_SORT(t->items, by_key);
}

void tally_free(struct tally *t)
{
	struct tally_item *i, *next;

	i = t->items;
	HASH_CLEAR(hh, t->items);
	for (; i; i = next) {
		next = i->hh.next;
		free(i);
	}
}

int names_add(struct names *t, const char *name, size_t len, size_t max)
{
	struct name_item *i;

	HASH_FIND(hh, t->items, name, len, i);
	if (i) {
		i->n++;
		return 0;
	}
	if (HASH_COUNT(t->items) >= max) {
		t->truncated = true;
		return 0;
	}
	i = calloc(1, sizeof(*i));
	if (!i)
		return KVMSIM_ENOMEM;
	i->name = malloc(len + 1);
	if (i->name) {
		memcpy(i->name, name, len);
		i->name[len] = '\0';
		i->len = len;
		i->n = 1;
		HASH_ADD_KEYPTR(hh, t->items, i->name, len, i);
		if (i->hh.tbl)
			return 0;
	}
	free(i->name);
	free(i);
	return KVMSIM_ENOMEM;
}

static int by_name(const struct name_item *a, const struct name_item *b)
{
	int order = memcmp(a->name, b->name, a->len < b->len ? a->len : b->len);

	return order ? order : (a->len > b->len) - (a->len < b->len);
}

void names_sort(struct names *t)
{
	HASH_SORT(t->items, by_name);
}

void names_free(struct names *t)
{
	struct name_item *i, *next;

	i = t->items;
	HASH_CLEAR(hh, t->items);
	for (; i; i = next) {
		next = i->hh.next;
		free(i->name);
		free(i);
	}
}

/* Below 2 * HIST_SUB each number has a bucket of its own; above, a power of two has HIST_SUB. */
static unsigned bucket_of(uint64_t v)
{
	unsigned high;

	if (v < 2 * HIST_SUB)
		return (unsigned)v;
	high = 63 - (unsigned)__builtin_clzll(v);
	return (high - 5) * HIST_SUB + (unsigned)(v >> (high - 5));
}

void hist_add(struct hist *h, uint64_t v)
{
	h->bucket[bucket_of(v)]++;
	h->n++;
	if (v > h->max)
		h->max = v;
}

uint64_t hist_percentile(const struct hist *h, unsigned percent)
{
	uint64_t want = h->n / 100 * percent + h->n % 100 * percent / 100, seen = 0;

	for (unsigned b = 0; b < sizeof(h->bucket) / sizeof(h->bucket[0]); b++) {
		unsigned shift = b < 2 * HIST_SUB ? 0 : b / HIST_SUB - 1;
		uint64_t low = b < 2 * HIST_SUB ? b : (uint64_t)(b % HIST_SUB + HIST_SUB) << shift;
		uint64_t middle = low + ((1ull << shift) - 1) / 2;

		seen += h->bucket[b];
		if (seen > want || seen == h->n)
			return middle < h->max ? middle : h->max;
	}
	return 0;
}
