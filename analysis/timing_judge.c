// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "analysis/timing_priv.h"

/* Fewer ratios of a metric say nothing of it. */
#define ENOUGH 3

struct errors {
	double *all;
	size_t n;
};

/* Errors of one judgement. */
struct lists {
	struct errors times, ratios, growths, numbers;
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

static void add(struct errors *e, double predicted, double measured)
{
	e->all[e->n++] = fabs(predicted / measured - 1);
}

static void add_ratio(struct errors *e, const struct timing_row *a, const struct timing_row *b)
{
	add(e, a->predicted / b->predicted, a->measured / b->measured);
}

static void sign(const struct timing_row *a, const struct timing_row *b, double noise,
		 struct timing_judgement *j)
{
	double measured = a->measured / b->measured;

	if (fabs(measured - 1) * 100 <= noise || fabs(1 / measured - 1) * 100 <= noise)
		return;
	j->n_signs++;
	j->n_wrong += measured > 1 ? a->predicted <= b->predicted : a->predicted >= b->predicted;
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

static bool belongs(const struct timing_row *row, const struct timing_judgement *j)
{
	return !strcmp(row->run->series, j->series) &&
	       (!j->metric || !strcmp(row->run->metric, j->metric));
}

static bool same_run(const struct timing_row *a, const struct timing_row *b)
{
	return a->x == b->x && !strcmp(a->run->options, b->run->options);
}

/* A run with several rows is counted at its first; it is fresh where none of its rows is fitted,
 * wherever, and no row of another series before comes from it. */
static void count_run(const struct timing *t, size_t i, struct timing_judgement *j)
{
	const struct timing_row *row = &t->rows[i];
	bool fresh = true;

	for (size_t k = 0; k < t->n_rows; k++) {
		const struct timing_row *other = &t->rows[k];

		if (!same_run(row, other) || !(other->predicted > 0))
			continue;
		if (k < i && belongs(other, j))
			return;
		fresh &=
			!other->fitted && (k >= i || !strcmp(other->run->series, row->run->series));
	}
	j->n_runs++;
	j->n_fresh += fresh;
}

static void look_at(const struct timing *t, size_t i, struct timing_judgement *j, struct lists *l)
{
	const struct timing_row *a = &t->rows[i], *first = least(t, a);

	j->n_rows++;
	j->n_fitted += a->fitted;
	j->n_told += a->predicted > 0;
	if (a->predicted > 0)
		count_run(t, i, j);
	if (a->predicted > 0 && !a->fitted && a->run->judge == JUDGE_TIME)
		add(timing_is_number(a->run) ? &l->numbers : &l->times, a->predicted, a->measured);
	if (first != a && judged(a, first))
		add_ratio(&l->growths, a, first);
	for (size_t k = i + 1; k < t->n_rows; k++) {
		const struct timing_row *b = &t->rows[k];

		if (!same_metric(a, b) || a->x != b->x || !judged(a, b))
			continue;
		add_ratio(&l->ratios, a, b);
		sign(a, b, t->recipe->noise, j);
	}
}

static int median(struct errors *e, size_t *n, double *out)
{
	*n = e->n;
	return e->n ? stats_median(e->all, e->n, out) : 0;
}

/* The worst of what is judged: of a metric only what there is enough of. */
static double worst(const struct timing_judgement *j)
{
	size_t enough = j->metric ? ENOUGH : 1;
	double e = j->n_numbers ? j->numbers : 0;

	if (j->n_ratios >= enough)
		e = fmax(e, j->ratios);
	if (j->n_growths >= enough)
		e = fmax(e, j->growths);
	return 100 * e;
}

static enum timing_verdict verdict_of(const struct timing *t, const struct timing_judgement *j)
{
	double e = worst(j);

	if (!j->n_ratios && !j->n_growths && !j->n_numbers)
		return TIMING_NOTHING;
	if (e <= t->recipe->median && !j->n_wrong)
		return TIMING_PASS;
	return j->miss && e <= j->miss->median && j->n_wrong <= j->miss->wrong ? TIMING_MISSED
									       : TIMING_FAIL;
}

static int judge(const struct timing *t, struct timing_judgement *j, double *room)
{
	size_t most = t->n_rows * t->n_rows;
	struct lists l = {.times = {.all = room},
			  .ratios = {.all = room + most},
			  .growths = {.all = room + 2 * most},
			  .numbers = {.all = room + 3 * most}};
	int err;

	for (size_t i = 0; i < t->n_rows; i++)
		if (belongs(&t->rows[i], j))
			look_at(t, i, j, &l);
	err = median(&l.times, &j->n_times, &j->times);
	err = err ? err : median(&l.ratios, &j->n_ratios, &j->ratios);
	err = err ? err : median(&l.growths, &j->n_growths, &j->growths);
	err = err ? err : median(&l.numbers, &j->n_numbers, &j->numbers);
	j->miss = recipe_miss(t->recipe, j->series, j->metric);
	j->verdict = verdict_of(t, j);
	return err;
}

static bool seen(const struct timing_judgement *all, size_t n, const char *series,
		 const char *metric)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(all[i].series, series) &&
		    (metric ? all[i].metric && !strcmp(all[i].metric, metric) : !all[i].metric))
			return true;
	return false;
}

/* The series, then its metrics. @out has room. */
static int judge_series(const struct timing *t, const char *series, struct timing_judgement *out,
			size_t *n, double *room)
{
	int err;

	out[*n] = (struct timing_judgement){.series = series};
	err = judge(t, &out[(*n)++], room);
	for (size_t i = 0; i < t->n_rows && !err; i++) {
		const struct timing_run *run = t->rows[i].run;
		struct timing_judgement *j = &out[*n];

		if (strcmp(run->series, series) || seen(out, *n, series, run->metric))
			continue;
		*j = (struct timing_judgement){.series = series, .metric = run->metric};
		err = judge(t, j, room);
		*n += j->n_ratios >= ENOUGH || j->n_growths >= ENOUGH;
	}
	return err;
}

int timing_judge(const struct timing *t, struct timing_judgement **out, size_t *n)
{
	double *room = calloc(4 * t->n_rows * t->n_rows, sizeof(*room));
	int err = 0;

	*n = 0;
	*out = calloc(2 * t->n_rows + 1, sizeof(**out));
	for (size_t i = 0; room && *out && i < t->n_rows && !err; i++)
		if (!seen(*out, *n, t->rows[i].run->series, NULL))
			err = judge_series(t, t->rows[i].run->series, *out, n, room);
	if (!room || !*out)
		err = KVMSIM_ENOMEM;
	free(room);
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}

enum timing_verdict timing_verdict(const struct timing_judgement *j, size_t n)
{
	enum timing_verdict all = TIMING_NOTHING;

	for (size_t i = 0; i < n; i++)
		if (j[i].verdict > all)
			all = j[i].verdict;
	return all;
}
