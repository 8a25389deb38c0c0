// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/median.h"

#include <stdlib.h>
#include <string.h>

#include "model/sim/error.h"

/* Numbers below 16 have a class each; then eight for each power of two. */
#define SMALL	16
#define CLASSES (SMALL + (64 - 4) * 8)

static unsigned class_of(uint64_t v)
{
	unsigned e;

	if (v < SMALL)
		return (unsigned)v;
	e = 63 - (unsigned)__builtin_clzll(v);
	return SMALL + (e - 4) * 8 + (unsigned)(v >> (e - 3) & 7);
}

static uint64_t middle_of(unsigned c)
{
	unsigned e, sub;

	if (c < SMALL)
		return c;
	e = 4 + (c - SMALL) / 8;
	sub = (c - SMALL) % 8;
	return (1ull << e) + ((uint64_t)sub << (e - 3)) + (1ull << (e - 3)) / 2;
}

static void count(struct median *m, uint64_t v)
{
	uint32_t *n = &m->histogram[class_of(v)];

	if (*n != UINT32_MAX)
		++*n;
}

int median_add(struct median *m, uint64_t v)
{
	if (!m->exact && !m->histogram) {
		m->exact = calloc(MEDIAN_EXACT, sizeof(*m->exact));
		if (!m->exact)
			return KVMSIM_ENOMEM;
	}
	if (!m->histogram && m->n == MEDIAN_EXACT) {
		m->histogram = calloc(CLASSES, sizeof(*m->histogram));
		if (!m->histogram)
			return KVMSIM_ENOMEM;
		for (uint64_t i = 0; i < m->n; i++)
			count(m, m->exact[i]);
		free(m->exact);
		m->exact = NULL;
	}
	if (m->histogram)
		count(m, v);
	else
		m->exact[m->n] = v;
	m->n++;
	return 0;
}

void median_free(struct median *m)
{
	free(m->exact);
	free(m->histogram);
	*m = (struct median){0};
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t from_histogram(const struct median *m)
{
	uint64_t all = 0, seen = 0;
	unsigned c = 0;

	for (unsigned i = 0; i < CLASSES; i++)
		all += m->histogram[i];
	while (seen + m->histogram[c] <= (all - 1) / 2)
		seen += m->histogram[c++];
	return middle_of(c);
}

uint64_t median_get(const struct median *m)
{
	uint64_t sorted[MEDIAN_EXACT], a, b;

	if (!m->n)
		return 0;
	if (m->histogram)
		return from_histogram(m);
	memcpy(sorted, m->exact, m->n * sizeof(*sorted));
	qsort(sorted, m->n, sizeof(*sorted), by_size);
	a = sorted[(m->n - 1) / 2];
	b = sorted[m->n / 2];
	return a + (b - a) / 2;
}
