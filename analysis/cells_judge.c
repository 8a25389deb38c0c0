// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cells.h"
#include "analysis/stats.h"

static bool told(const struct cell_row *r)
{
	return r->run->kind == CELL_MODELLED && r->predicted > 0;
}

static bool same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static bool one_series(const struct cell_row *a, const struct cell_row *b)
{
	return same(a->series, b->series) && same(a->metric, b->metric);
}

/* Measured, as what is predicted: more is better. */
static double rate(const struct cell_row *r)
{
	return r->run->what == CELL_TIME ? 1 / r->measured : r->measured;
}

struct errors {
	double *all;
	size_t n;
};

static void ratio(struct errors *e, const struct cell_row *a, const struct cell_row *b)
{
	double measured = rate(a) / (b ? rate(b) : 1);
	double predicted = a->predicted / (b ? b->predicted : 1);

	e->all[e->n++] = fabs(predicted / measured - 1);
}

/* A difference counts where it exceeds two standard deviations of the two together. */
static void sign(struct cells_judgement *j, const struct cell_row *a, const struct cell_row *b)
{
	double measured = log(rate(a) / (b ? rate(b) : 1));
	double predicted = log(a->predicted / (b ? b->predicted : 1));
	double sd = b ? hypot(a->sd, b->sd) : a->sd;

	if (fabs(measured) <= 2 * sd)
		return;
	j->n_signs++;
	j->n_right += measured > 0 ? predicted > 0 : predicted < 0;
}

/* The row of the same policy with the least x. */
static const struct cell_row *least(const struct cells *c, const struct cell_row *row)
{
	const struct cell_row *best = row;

	for (size_t i = 0; i < c->n_rows; i++) {
		const struct cell_row *r = &c->rows[i];

		if (told(r) && one_series(r, row) && !strcmp(r->policy, row->policy) &&
		    r->x_number < best->x_number)
			best = r;
	}
	return best;
}

static bool both_fitted(const struct cell_row *a, const struct cell_row *b)
{
	return a->run->fit && b->run->fit;
}

static void look_at(const struct cells *c, size_t i, struct cells_judgement *j, struct errors *e)
{
	const struct cell_row *a = &c->rows[i], *first = least(c, a);

	if (a->run->what == CELL_GAIN) {
		if (!a->run->fit) {
			ratio(e, a, NULL);
			sign(j, a, NULL);
		}
		return;
	}
	if (first != a && !both_fitted(a, first))
		ratio(e, a, first);
	for (size_t k = i + 1; k < c->n_rows; k++) {
		const struct cell_row *b = &c->rows[k];

		if (!told(b) || !one_series(a, b) || strcmp(a->x, b->x) || both_fitted(a, b))
			continue;
		ratio(e, a, b);
		sign(j, a, b);
	}
}

static const char *miss(const struct cells *c, const char *series)
{
	for (size_t i = 0; series && i < c->n_miss; i++)
		if (!strcmp(c->miss[i].series, series))
			return c->miss[i].why;
	return NULL;
}

static int judge(const struct cells *c, const char *series, double *room, struct cells_judgement *j)
{
	struct errors e = {.all = room};
	int err = 0;

	*j = (struct cells_judgement){.series = series};
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct cell_row *r = &c->rows[i];

		if (series && strcmp(r->series, series))
			continue;
		j->n_rows++;
		j->n_modelled += r->run->kind == CELL_MODELLED;
		j->n_derived += r->run->kind == CELL_DERIVED;
		j->n_out += r->run->kind == CELL_OUT;
		j->n_fitted += r->run->fit;
		j->n_told += told(r);
		if (told(r))
			look_at(c, i, j, &e);
	}
	j->n_ratios = e.n;
	for (size_t i = 0; i < e.n; i++)
		j->worst = fmax(j->worst, e.all[i]);
	if (e.n)
		err = stats_median(e.all, e.n, &j->median);
	j->miss = miss(c, series);
	j->pass = 100 * j->median <= c->median &&
		  100.0 * (double)j->n_right >= c->signs * (double)j->n_signs;
	return err;
}

static bool seen(const struct cells *c, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(c->rows[k].series, c->rows[i].series))
			return true;
	return false;
}

int cells_judge(const struct cells *c, struct cells_judgement **out, size_t *n)
{
	double *room = calloc(c->n_rows * (c->n_rows + 1), sizeof(*room));
	int err = 0;

	*n = 0;
	*out = calloc(c->n_rows + 1, sizeof(**out));
	if (!room || !*out)
		err = KVMSIM_ENOMEM;
	for (size_t i = 0; i < c->n_rows && !err; i++)
		if (!seen(c, i))
			err = judge(c, c->rows[i].series, room, &(*out)[(*n)++]);
	err = err ? err : judge(c, NULL, room, &(*out)[(*n)++]);
	free(room);
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}

bool cells_pass(const struct cells_judgement *j, size_t n)
{
	bool pass = true;

	for (size_t i = 0; i < n; i++)
		pass &= !j[i].series || j[i].pass || j[i].miss || !j[i].n_ratios;
	return pass;
}
