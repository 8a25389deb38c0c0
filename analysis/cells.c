// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cells.h"
#include "analysis/lock_file.h"
#include "analysis/overcommit_report.h"
#include "analysis/run.h"

/* A run: its options as a command's, parsed. */
#define MAX_WORDS 48
struct cell_point {
	char *text, *words, *argv[MAX_WORDS + 1];
	struct overcommit_args a;
	double rate, sd; /* sd: relative, of the mean over replicates */
};
struct points {
	struct cell_point **all;
	size_t n;
};

static void free_points(struct points *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->all[i]->text);
		free(p->all[i]->words);
		overcommit_args_free(&p->all[i]->a);
		free(p->all[i]);
	}
	free(p->all);
}

/* The options with the number that the row's x begins with in the place of "{x}". */
static char *fill_in(const struct cells *c, const struct cell_row *row, const char *options)
{
	const char *common = c->options ? c->options : "", *at = strstr(options, "{x}");
	char *text = NULL;
	int n = at ? asprintf(&text, "%s %.*s%.0f%s", common, (int)(at - options), options,
			      row->x_number, at + 3)
		   : asprintf(&text, "%s %s", common, options);

	return n < 0 ? NULL : text;
}

static int parse_point(const struct cells *c, const struct cell_row *row, struct cell_point *p)
{
	int argc = 1;
	char *save;

	p->words = strdup(p->text);
	if (!p->words)
		return KVMSIM_ENOMEM;
	p->argv[0] = (char *)"overcommit";
	for (char *w = strtok_r(p->words, " ", &save); w && argc < MAX_WORDS - 2;
	     w = strtok_r(NULL, " ", &save))
		p->argv[argc++] = w;
	p->argv[argc++] = (char *)"--profile";
	p->argv[argc++] = c->profile;
	p->a.verb = &verb_overcommit;
	p->a.replicates = (uint32_t)c->replicates;
	if (overcommit_args_parse(&p->a, argc, p->argv) || p->a.help || p->a.n_points != 1 ||
	    !p->a.points_are_vms)
		return kvmsim_err(&cli_errors, KVMSIM_EPARSE,
				  "%s:%lu: these are no options of one run with --vms: %s",
				  c->runs_file, row->run->line, p->text);
	return overcommit_args_load(&p->a) ? KVMSIM_EPARSE : 0;
}

static const struct cell_point *find_point(const struct points *p, const char *text)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->all[i]->text, text))
			return p->all[i];
	return NULL;
}

static int add_point(const struct cells *c, struct points *p, const struct cell_row *row,
		     const char *options)
{
	struct cell_point **grown, *point;
	char *text = fill_in(c, row, options);

	if (!text)
		return KVMSIM_ENOMEM;
	if (find_point(p, text)) {
		free(text);
		return 0;
	}
	point = calloc(1, sizeof(*point));
	grown = realloc(p->all, (p->n + 1) * sizeof(struct cell_point *));
	if (grown)
		p->all = grown;
	if (!grown || !point) {
		free(text);
		free(point);
		return KVMSIM_ENOMEM;
	}
	point->text = text;
	p->all[p->n++] = point;
	return parse_point(c, row, point);
}

static int run_points(const struct cells *c, struct points *p, unsigned workers)
{
	struct overcommit_point *at = calloc(p->n, sizeof(*at));
	uint32_t n = (uint32_t)c->replicates;
	int err = at ? 0 : KVMSIM_ENOMEM;

	for (size_t i = 0; i < p->n && !err; i++) {
		at[i].opts = p->all[i]->a.o;
		at[i].opts.vms = p->all[i]->a.point[0];
		at[i].opts.interrupted = &run_interrupted;
	}
	err = err ? err : overcommit_points_run(at, p->n, n, workers);
	for (size_t i = 0; i < p->n && !err; i++) {
		struct stats_estimate e = overcommit_mean(&at[i], n);

		p->all[i]->rate = e.value;
		p->all[i]->sd = n > 1 && e.value > 0 ? e.se / e.value : 0;
	}
	if (at)
		overcommit_points_free(at, p->n);
	free(at);
	return err;
}

static const struct cell_point *point_of(const struct cells *c, const struct points *p,
					 const struct cell_row *row, const char *options)
{
	char *text = fill_in(c, row, options);
	const struct cell_point *found = text ? find_point(p, text) : NULL;

	free(text);
	return found;
}

static void take_rates(const struct cells *c, const struct points *p, struct cell_row *row)
{
	const struct cell_point *run, *base;

	if (row->run->kind != CELL_MODELLED)
		return;
	run = point_of(c, p, row, row->run->options);
	if (!run || !(run->rate > 0))
		return;
	row->predicted = run->rate / (row->run->per_task ? row->x_number : 1);
	row->predicted_sd = run->sd;
	if (row->run->what != CELL_GAIN)
		return;
	base = point_of(c, p, row, row->run->base);
	row->predicted = base && base->rate > 0 ? run->rate / base->rate : 0;
	row->predicted_sd = base ? hypot(run->sd, base->sd) : 0;
}

/* ---- rows that follow from others ---- */

static const struct cell_row *other(const struct cells *c, const struct cell_row *row,
				    const char *policy)
{
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct cell_row *r = &c->rows[i];

		if (r->run->kind == CELL_MODELLED && !strcmp(r->series, row->series) &&
		    !strcmp(r->policy, policy) && !strcmp(r->x, row->x))
			return r;
	}
	return NULL;
}

/* Of the values that the series' rows with a unit like this one's have, scaled. */
static void mean_of_rows(const struct cells *c, struct cell_row *row)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < c->n_rows; i++) {
		const struct cell_row *r = &c->rows[i];

		if (r == row || strcmp(r->series, row->series) || strcmp(r->policy, row->policy) ||
		    !(r->predicted > 0) || !(r->scale > 0))
			continue;
		sum += log(r->predicted * r->scale / r->measured);
		n++;
	}
	/* The others' errors are its own: an index is the geometric mean of ratios to a machine. */
	if (n)
		row->predicted = row->measured * exp(sum / (double)n);
}

/* The part of a row's holds that is below @insns, of 2^64. */
static uint64_t part_below(const struct quantiles *q, uint64_t insns)
{
	uint64_t lo = 0;

	for (uint64_t bit = 1ull << 63; bit; bit >>= 1)
		if (quantiles_value(q, lo | bit) <= insns)
			lo |= bit;
	return lo;
}

/* Instructions below which 99 in 100 of the recorded guest's holds are. */
static int recorded_hold(struct cell_row *row)
{
	struct lock_set set = {0};
	int err = lock_file_read(NULL, &cli_errors, &set);
	uint64_t insns = 0;

	for (uint64_t bit = 1ull << 40; bit && !err; bit >>= 1) {
		double below = 0;

		for (size_t i = 0; i < set.n_rows; i++)
			below += ldexp((double)part_below(&set.rows[i].hold, insns | bit), -64) *
				 (double)set.rows[i].taken;
		if (below < 0.99 * (double)set.taken)
			insns |= bit;
	}
	if (!err)
		row->predicted = (double)insns + 1;
	lock_set_free(&set);
	return err;
}

static int derive(const struct cells *c, struct cell_row *row)
{
	const struct cell_row *a, *b;

	if (row->run->kind != CELL_DERIVED)
		return 0;
	if (row->run->what == CELL_HOLD)
		return recorded_hold(row);
	if (row->run->what == CELL_MEAN) {
		mean_of_rows(c, row);
		return 0;
	}
	a = other(c, row, row->run->a);
	b = other(c, row, row->run->b);
	if (a && b && a->predicted > 0 && b->predicted > 0)
		row->predicted = a->predicted / b->predicted;
	return 0;
}

/* One factor per series and metric, of its first row; gains and what is derived are what they are.
 */
static void scale(const struct cells *c, struct cell_row *row)
{
	if (!(row->predicted > 0))
		return;
	row->scale = 1;
	if (row->run->kind != CELL_MODELLED || row->run->what == CELL_GAIN)
		return;
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct cell_row *r = &c->rows[i];

		if (r->run->kind != CELL_MODELLED || !(r->predicted > 0) ||
		    strcmp(r->series, row->series) || strcmp(r->metric, row->metric))
			continue;
		row->scale = r->run->what == CELL_TIME ? r->measured * r->predicted
						       : r->measured / r->predicted;
		return;
	}
}

int cells_predict(struct cells *c, unsigned workers)
{
	struct points p = {0};
	int err = 0;

	for (size_t i = 0; i < c->n_rows && !err; i++) {
		const struct cell_row *row = &c->rows[i];

		if (row->run->kind != CELL_MODELLED)
			continue;
		err = add_point(c, &p, row, row->run->options);
		if (!err && row->run->what == CELL_GAIN)
			err = add_point(c, &p, row, row->run->base);
	}
	if (!err && p.n)
		err = run_points(c, &p, workers);
	for (size_t i = 0; i < c->n_rows && !err; i++)
		take_rates(c, &p, &c->rows[i]);
	for (size_t i = 0; i < c->n_rows && !err; i++)
		scale(c, &c->rows[i]);
	for (size_t i = 0; i < c->n_rows && !err; i++) {
		err = derive(c, &c->rows[i]);
		if (c->rows[i].run->kind == CELL_DERIVED && c->rows[i].predicted > 0)
			c->rows[i].scale = 1;
	}
	free_points(&p);
	return err;
}
