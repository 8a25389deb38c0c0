// SPDX-License-Identifier: GPL-3.0-or-later
#include "workloads/quantiles.h"

#include <stddef.h>
#include <string.h>

const uint16_t quantiles_at[QUANTILES_KNOTS] = {0, 100, 250, 500, 750, 900, 990, 999, 1000};

#define ONE   ((uint64_t)1 << 32)
#define PARTS 10000 /* thousandths of tenths */

bool quantiles_init(struct quantiles *q, const uint64_t knot[QUANTILES_KNOTS], uint64_t mean10)
{
	unsigned __int128 low = 0, range = 0, mean = (unsigned __int128)mean10 * 1000;
	uint64_t part; /* of the range that the mean lies above the lowest possible one, of 2^32 */

	for (size_t i = 1; i < QUANTILES_KNOTS; i++) {
		uint64_t w = 10 * (uint64_t)(quantiles_at[i] - quantiles_at[i - 1]);

		if (knot[i] < knot[i - 1])
			return false;
		low += (unsigned __int128)w * knot[i - 1];
		range += (unsigned __int128)w * (knot[i] - knot[i - 1]);
	}
	if (mean + PARTS / 10 < low || mean > low + range + PARTS / 10)
		return false;
	memcpy(q->knot, knot, sizeof(q->knot));
	if (mean <= low || !range)
		part = 0;
	else if (mean >= low + range)
		part = ONE;
	else
		part = (uint64_t)((mean - low) * ONE / range);
	/* A rise in the last x of the way has a mean of x / 2 of its height, one in the first x of
	 * 1 - x / 2. */
	q->early = part > ONE / 2;
	part = q->early ? 2 * (ONE - part) : ONE - 2 * part;
	q->bend = part < ONE ? (uint32_t)part : UINT32_MAX;
	part = q->early ? q->bend : ONE - q->bend;
	q->inverse = part > 1 ? UINT64_MAX / part : UINT64_MAX;
	return true;
}

/* Of a thousandth the knot above it. */
static const uint8_t knot_above[1000] = {
	[0 ... 99] = 1,	   [100 ... 249] = 2, [250 ... 499] = 3, [500 ... 749] = 4,
	[750 ... 899] = 5, [900 ... 989] = 6, [990 ... 998] = 7, [999] = 8,
};

/* 2^32 by the thousandths from the knot before, rounded down: never past the knot. */
#define INVERSE(from, to) (uint32_t)(ONE / ((to) - (from)))
static const uint32_t width_inverse[QUANTILES_KNOTS] = {
	0,
	INVERSE(0, 100),
	INVERSE(100, 250),
	INVERSE(250, 500),
	INVERSE(500, 750),
	INVERSE(750, 900),
	INVERSE(900, 990),
	INVERSE(990, 999),
	UINT32_MAX,
};

/* Called for each acquisition: multiplications instead of divisions. */
uint64_t quantiles_value(const struct quantiles *q, uint64_t u)
{
	unsigned __int128 thousandths = (unsigned __int128)u * 1000;
	unsigned whole = (unsigned)(thousandths >> 64), i = knot_above[whole];
	/* How far between the knots, of 2^32. */
	uint64_t past = (uint64_t)(whole - quantiles_at[i - 1]) << 32 | (uint64_t)thousandths >> 32;
	uint64_t at = (uint64_t)((unsigned __int128)past * width_inverse[i] >> 32);
	uint64_t height = q->knot[i] - q->knot[i - 1], part;

	if (q->early ? at >= q->bend : at < q->bend)
		return q->knot[q->early ? i : i - 1];
	part = (uint64_t)((unsigned __int128)(q->early ? at : at - q->bend) * q->inverse >> 32);
	return q->knot[i - 1] + (uint64_t)(((unsigned __int128)height * part + ONE / 2) >> 32);
}
