/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_MEDIAN_H
#define KVMSIM_ANALYSIS_MEDIAN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The median of a stream of numbers in constant memory: exact up to MEDIAN_EXACT of them, from then
 * on off by at most a sixteenth (a histogram with eight classes for each power of two).
 */
#define MEDIAN_EXACT 64

struct median {
	uint64_t n;
	uint64_t *exact; /* while there are few */
	uint32_t *histogram;
};

/* 0 or KVMSIM_ENOMEM. */
int median_add(struct median *m, uint64_t v);
void median_free(struct median *m);
/* 0 without numbers. Of an even number of them the mean of the two in the middle, rounded down. */
uint64_t median_get(const struct median *m);
static inline bool median_is_exact(const struct median *m)
{
	return !m->histogram;
}

#endif
