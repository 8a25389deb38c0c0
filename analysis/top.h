/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_TOP_H
#define KVMSIM_ANALYSIS_TOP_H

#include <stddef.h>

/* The first @room of any number of items in an order, in constant memory. */
struct top {
	size_t size, room, n;
	/* As for qsort(); never 0 for two items of one stream, where the order is to be the same
	 * whatever came first. Of equal ones those that came first stay. */
	int (*order)(const void *a, const void *b);
	char *items;
};

/* 0 or KVMSIM_ENOMEM. */
int top_init(struct top *t, size_t size, size_t room, int (*order)(const void *, const void *));
void top_free(struct top *t);
/* Copies the item, if it is one of the first. */
void top_offer(struct top *t, const void *item);
const void *top_item(const struct top *t, size_t i);

#endif
