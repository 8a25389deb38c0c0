// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>

#include "analysis/matrix_cost_priv.h"
#include "analysis/nnls.h"

/* Whether counts @a and @b come in one proportion in every fitted row. */
static bool proportional(const struct cost_result *r, int a, int b)
{
	double ratio = 0;

	for (size_t i = 0; i < r->n_rows; i++) {
		double x = r->rows[i].counts[a], y = r->rows[i].counts[b];

		if (!r->rows[i].fitted)
			continue;
		if ((x == 0) != (y == 0))
			return false;
		if (x == 0)
			continue;
		if (ratio == 0)
			ratio = y / x;
		else if (fabs(y / x - ratio) > 1e-12 * ratio)
			return false;
	}
	return ratio != 0;
}

/* The counts to be priced: of several that always come together, the first stands for all. */
static int columns(struct cost_result *r, const struct matrix_select *sel, const double *fixed)
{
	r->prices = calloc(N_COUNTS, sizeof(*r->prices));
	if (!r->prices)
		return cost_out_of_memory(sel);
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		struct cost_price *found = NULL;

		if (!proportional(r, c, c))
			continue; /* never charged */
		if (fixed && fixed[c] >= 0) {
			r->prices[r->n_prices++] =
				(struct cost_price){.count = c, .price = fixed[c], .fixed = true};
			continue;
		}
		for (size_t j = 0; j < r->n_prices && !found; j++) {
			if (!r->prices[j].fixed && proportional(r, r->prices[j].count, c))
				found = &r->prices[j];
		}
		if (!found)
			r->prices[r->n_prices++].count = c;
		else if (found->n_with < sizeof(found->with) / sizeof(*found->with))
			found->with[found->n_with++] = c;
	}
	return 0;
}

/* Columns of the free prices, rows weighted by 1/measured: relative errors are minimised. */
struct system {
	double *a, *b, *x;
	size_t m, n;
};

static void fill(const struct cost_result *r, struct system *s)
{
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct cost_row *row = &r->rows[i];
		double left = row->measured - COST_OVERHEAD;
		size_t column = 0;

		if (!row->fitted)
			continue;
		for (size_t j = 0; j < r->n_prices; j++) {
			double n = row->counts[r->prices[j].count];

			if (r->prices[j].fixed)
				left -= n * r->prices[j].price;
			else
				s->a[s->m * s->n + column++] = n / row->measured;
		}
		s->b[s->m++] = left / row->measured;
	}
}

/* Which prices the rows cannot tell apart, although their sum is known. */
#define DEPENDENT 1e-7 /* of a column's length that the others leave */
static int find_groups(struct cost_result *r, const struct system *s)
{
	size_t *group = calloc(s->n, sizeof(*group)), *price = calloc(s->n, sizeof(*price));
	size_t rank, column = 0;
	int err = group && price ? 0 : KVMSIM_ENOMEM;

	err = err ? err : nnls_rank(s->a, s->m, s->n, DEPENDENT, &rank, group);
	for (size_t j = 0; j < r->n_prices && !err; j++) {
		r->prices[j].group = j;
		if (r->prices[j].fixed)
			continue;
		price[column] = j;
		r->prices[j].group = price[group[column]];
		column++;
	}
	free(group);
	free(price);
	return err;
}

static int solve(struct cost_result *r, const struct matrix_select *sel, struct system *s)
{
	size_t column = 0;
	int err;

	fill(r, s);
	if (!s->m || !s->n)
		return kvmsim_err(sel->errors, KVMSIM_ENOENT,
				  "%s: no rows with nr_dirty <= %d to fit prices on", r->file->path,
				  COST_FITTED_MAX);
	err = nnls_solve(s->a, s->m, s->n, s->b, s->x, NULL);
	err = err ? err : find_groups(r, s);
	if (err)
		return kvmsim_err(sel->errors, (enum kvmsim_error)err, "costs: the fit failed: %s",
				  kvmsim_strerror(err));
	for (size_t j = 0; j < r->n_prices; j++) {
		if (!r->prices[j].fixed)
			r->prices[j].price = s->x[column++];
	}
	return 0;
}

int cost_fit(struct cost_result *r, const struct matrix_select *sel, const double *fixed)
{
	struct system s = {0};
	int err = columns(r, sel, fixed);

	if (err)
		return err;
	for (size_t j = 0; j < r->n_prices; j++)
		s.n += !r->prices[j].fixed;
	s.a = calloc(r->n_rows * s.n + 1, sizeof(*s.a));
	s.b = calloc(r->n_rows, sizeof(*s.b));
	s.x = calloc(s.n + 1, sizeof(*s.x));
	err = s.a && s.b && s.x ? solve(r, sel, &s) : cost_out_of_memory(sel);
	free(s.a);
	free(s.b);
	free(s.x);
	return err;
}
