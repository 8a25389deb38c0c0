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
	return true;
}

uint64_t quantiles_value(const struct quantiles *q, uint64_t u)
{
	unsigned __int128 thousandths = (unsigned __int128)u * 1000;
	unsigned whole = (unsigned)(thousandths >> 64);
	size_t i = 1;
	uint64_t at, part, height;

	while (whole >= quantiles_at[i])
		i++;
	/* How far between the knots, of 2^32. */
	at = (((uint64_t)(whole - quantiles_at[i - 1]) << 32) | (uint64_t)thousandths >> 32) /
	     (unsigned)(quantiles_at[i] - quantiles_at[i - 1]);
	height = q->knot[i] - q->knot[i - 1];
	if (q->early)
		part = at < q->bend ? (at << 32) / q->bend : ONE;
	else
		part = at < q->bend ? 0 : ((at - q->bend) << 32) / (ONE - q->bend);
	return q->knot[i - 1] + (uint64_t)(((unsigned __int128)height * part + ONE / 2) >> 32);
}
