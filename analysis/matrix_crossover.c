// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/matrix_cost_priv.h"

static const struct cost_row *find_round(const struct cost_result *r, size_t config, int64_t n)
{
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct cost_row *row = &r->rows[i];

		if (row->config == config && row->key.nr_dirty == n &&
		    row->key.round != MATRIX_NONE && !strcmp(row->key.phase, "get_dirty_log") &&
		    !strcmp(row->key.pattern, "even"))
			return row;
	}
	return NULL;
}

/* Where the measured curves cross, linear between the numbers of pages that both have. */
static void cross_file(const struct cost_result *r, struct cost_crossover *x)
{
	double last_n = 0, last_d = 0;

	/* rows come in rising nr_dirty only if the file has them so: look for the next one */
	for (int64_t n = 0;;) {
		int64_t next = INT64_MAX;

		for (size_t i = 0; i < r->n_rows; i++) {
			const struct cost_row *row = &r->rows[i];

			if (row->config == x->mask && row->key.nr_dirty > n &&
			    row->key.nr_dirty < next && find_round(r, x->mask, row->key.nr_dirty) &&
			    find_round(r, x->walk, row->key.nr_dirty))
				next = row->key.nr_dirty;
		}
		if (next == INT64_MAX)
			return;
		n = next;
		double d =
			find_round(r, x->walk, n)->measured - find_round(r, x->mask, n)->measured;

		if (last_d > 0 && d <= 0) {
			x->measured = true;
			x->from_file = last_n + ((double)n - last_n) * last_d / (last_d - d);
			return;
		}
		last_n = (double)n;
		last_d = d;
	}
}

static int walk_minus_mask(struct cost_result *r, const struct matrix_select *sel,
			   const struct cost_crossover *x, int64_t n, double *out)
{
	const struct matrix_round one = {MATRIX_EVEN, n, 1};
	double walk = 0, mask = 0;
	int err = cost_run(r, x->walk, sel, sel->profile, &one, 1, &walk);

	err = err ? err : cost_run(r, x->mask, sel, sel->profile, &one, 1, &mask);
	*out = walk - mask;
	return err;
}

static int cross_model(struct cost_result *r, const struct matrix_select *sel,
		       struct cost_crossover *x)
{
	int64_t lo = 1, hi = (int64_t)r->file->configs[x->mask].slot_pages;
	double at_lo, at_hi;
	int err = walk_minus_mask(r, sel, x, lo, &at_lo);

	err = err ? err : walk_minus_mask(r, sel, x, hi, &at_hi);
	if (err)
		return err;
	if (at_lo <= 0 || at_hi > 0) { /* one policy is always the cheaper one */
		x->from_model = at_lo <= 0 ? (double)lo : INFINITY;
		return 0;
	}
	while (hi - lo > 1) {
		int64_t mid = lo + (hi - lo) / 2;
		double d;

		err = walk_minus_mask(r, sel, x, mid, &d);
		if (err)
			return err;
		if (d > 0) {
			lo = mid;
			at_lo = d;
		} else {
			hi = mid;
			at_hi = d;
		}
	}
	x->from_model = (double)lo + at_lo / (at_lo - at_hi);
	return 0;
}

int cost_crossovers(struct cost_result *r, const struct matrix_select *sel)
{
	const struct matrix_file *f = r->file;
	int err = 0;

	for (size_t a = 0; a < f->n_configs && !err; a++) {
		for (size_t b = 0; b < f->n_configs && !err; b++) {
			const struct matrix_config *mask = &f->configs[a], *walk = &f->configs[b];
			struct cost_crossover x = {.mask = a, .walk = b};
			struct cost_crossover *grown;

			if (strcmp(mask->mode, "0") || strcmp(walk->mode, "2") ||
			    mask->test_case != walk->test_case || mask->mmu != walk->mmu ||
			    mask->pte != walk->pte || mask->slot_pages != walk->slot_pages)
				continue;
			cross_file(r, &x);
			if (!x.measured)
				continue;
			err = cross_model(r, sel, &x);
			grown = realloc(r->crossovers, (r->n_crossovers + 1) * sizeof(*grown));
			if (!grown)
				return cost_out_of_memory(sel);
			r->crossovers = grown;
			r->crossovers[r->n_crossovers++] = x;
		}
	}
	return err;
}
