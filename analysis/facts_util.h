/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_FACTS_UTIL_H
#define KVMSIM_ANALYSIS_FACTS_UTIL_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Lists, sets and histograms that never grow beyond a stated size, for facts of traces of any
 * length. What did not fit is told by `truncated`. Adding returns 0 or KVMSIM_ENOMEM.
 */

/* A list of items of one size. */
struct vec {
	void *at;
	size_t n, room;
	bool truncated;
};
/* *@item is where the new one is to be written, zeroed, or NULL when @max are there. */
int vec_push(struct vec *v, size_t size, size_t max, void **item);

/* How often each number was seen. */
struct tally_item {
	uint64_t key, n;
	UT_hash_handle hh;
};
struct tally {
	struct tally_item *items;
	bool truncated;
};
int tally_add(struct tally *t, uint64_t key, size_t max);
/* The same; *@out is the item, NULL when there are @max others. */
int tally_count(struct tally *t, uint64_t key, size_t max, struct tally_item **out);
/* Orders the items by key. */
void tally_sort(struct tally *t);
void tally_free(struct tally *t);

/* How often each text was seen. */
struct name_item {
	char *name;
	size_t len;
	uint64_t n;
	UT_hash_handle hh;
};
struct names {
	struct name_item *items;
	bool truncated;
};
int names_add(struct names *t, const char *name, size_t len, size_t max);
/* Orders the items by their bytes. */
void names_sort(struct names *t);
void names_free(struct names *t);

/* Numbers by their first six binary digits: a percentile is at most 1.6 % away. */
#define HIST_SUB 32
struct hist {
	uint64_t n, max, bucket[60 * HIST_SUB];
};
void hist_add(struct hist *h, uint64_t v);
/* The middle of the bucket that holds it, not above the largest; 0 when nothing is in it. */
uint64_t hist_percentile(const struct hist *h, unsigned percent);

#endif
