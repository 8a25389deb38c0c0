// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "analysis/timing.h"

struct errors {
	double *all;
	size_t n;
};

static bool same_metric(const struct timing_row *a, const struct timing_row *b)
{
	return !strcmp(a->run->series, b->run->series) && !strcmp(a->run->metric, b->run->metric);
}

/* Whether something can be said of what two rows say together. */
static bool judged(const struct timing_row *a, const struct timing_row *b)
{
	return a->predicted > 0 && b->predicted > 0 && !(a->fitted && b->fitted) &&
	       a->run->judge != JUDGE_NO && b->run->judge != JUDGE_NO;
}

static double ratio_error(const struct timing_row *a, const struct timing_row *b)
{
	return fabs(a->predicted / b->predicted / (a->measured / b->measured) - 1);
}

static void sign(const struct timing_row *a, const struct timing_row *b, double noise,
		 struct timing_judgement *j)
{
	double measured = a->measured / b->measured;

	if (fabs(measured - 1) * 100 <= noise || fabs(1 / measured - 1) * 100 <= noise)
		return;
	j->n_signs++;
	j->n_wrong += (a->predicted > b->predicted) != (measured > 1);
}

/* The row of the same run with the fewest vCPUs. */
static const struct timing_row *least(const struct timing *t, const struct timing_row *row)
{
	const struct timing_row *best = row;

	for (size_t i = 0; i < t->n_rows; i++)
		if (t->rows[i].run == row->run && t->rows[i].x < best->x)
			best = &t->rows[i];
	return best;
}

static int median(struct errors *e, double *out)
{
	return e->n ? stats_median(e->all, e->n, out) : 0;
}

static int judge_series(const struct timing *t, struct timing_judgement *j, double *room)
{
	struct errors times = {.all = room}, ratios, growths;
	size_t most = t->n_rows * t->n_rows;
	double *both = room + 3 * most;
	int err;

	ratios = (struct errors){.all = room + most};
	growths = (struct errors){.all = room + 2 * most};
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct timing_row *a = &t->rows[i], *first = least(t, a);

		if (strcmp(a->run->series, j->series))
			continue;
		j->n_rows++;
		j->n_fitted += a->fitted;
		j->n_told += a->predicted > 0;
		if (a->predicted > 0 && !a->fitted && a->run->judge == JUDGE_TIME)
			times.all[times.n++] = fabs(a->predicted / a->measured - 1);
		if (first != a && judged(a, first))
			growths.all[growths.n++] = ratio_error(a, first);
		for (size_t k = i + 1; k < t->n_rows; k++) {
			const struct timing_row *b = &t->rows[k];

			if (!same_metric(a, b) || a->x != b->x || !judged(a, b))
				continue;
			ratios.all[ratios.n++] = ratio_error(a, b);
			sign(a, b, t->recipe->noise, j);
		}
	}
	j->n_times = times.n;
	j->n_ratios = ratios.n;
	j->n_growths = growths.n;
	memcpy(both, ratios.all, ratios.n * sizeof(*both));
	memcpy(both + ratios.n, growths.all, growths.n * sizeof(*both));
	err = median(&times, &j->times);
	err = err ? err : median(&ratios, &j->ratios);
	err = err ? err : median(&growths, &j->growths);
	err = err ? err
		  : median(&(struct errors){.all = both, .n = ratios.n + growths.n}, &j->median);
	j->pass = 100 * j->median <= t->recipe->median && !j->n_wrong;
	return err;
}

int timing_judge(const struct timing *t, struct timing_judgement **out, size_t *n)
{
	double *room = calloc(5 * t->n_rows * t->n_rows, sizeof(*room));
	int err = 0;

	*n = 0;
	*out = calloc(t->n_rows, sizeof(**out));
	for (size_t i = 0; room && *out && i < t->n_rows && !err; i++) {
		const char *series = t->rows[i].run->series;
		size_t k = 0;

		while (k < *n && strcmp((*out)[k].series, series))
			k++;
		if (k < *n)
			continue;
		(*out)[k].series = series;
		err = judge_series(t, &(*out)[(*n)++], room);
	}
	if (!room || !*out)
		err = KVMSIM_ENOMEM;
	free(room);
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}
