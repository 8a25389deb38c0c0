/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_QUANTILES_H
#define KVMSIM_WORKLOADS_QUANTILES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A distribution of whole numbers of which the quantiles of a recording are known, and the mean.
 *
 * Between two of the quantiles the inverse of its distribution function is piecewise linear: it
 * stays at the lower one for a part of the way and rises to the upper one then, or rises first and
 * stays there. That part is the same between all of them, and such that the mean is the recorded
 * one. Times of code that runs through without a loop are all the same: so is most of what is
 * drawn. Integers only: the same numbers on every machine.
 */
#define QUANTILES_KNOTS 9

struct quantiles {
	uint64_t knot[QUANTILES_KNOTS]; /* minimum, 10, 25, 50, 75, 90, 99, 99.9%, maximum */
	uint32_t bend;			/* where between two knots, of 2^32 */
	bool early;			/* rises up to there; else from there on */
	uint64_t inverse;		/* of the part in which it rises, 2^64 by that of 2^32 */
};

/* In thousandths. */
extern const uint16_t quantiles_at[QUANTILES_KNOTS];

/* @mean10: ten times the mean, as recordings have it. False: the knots fall, or no distribution
 * with them has that mean (a tenth is allowed for rounding). */
bool quantiles_init(struct quantiles *q, const uint64_t knot[QUANTILES_KNOTS], uint64_t mean10);
/* The value below which the part @u / 2^64 lies. */
uint64_t quantiles_value(const struct quantiles *q, uint64_t u);

#endif
