// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/gain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "analysis/cli.h"
#include "analysis/csv.h"
#include "analysis/evidence.h"
#include "analysis/run.h"
#include "model/policy/preset.h"
#include "model/sim/profile.h"

#define LEVEL 0.95

/* ---- rows ---- */

static const char *const columns[] = {"series", "metric", "policy", "value", NULL};
enum { SERIES, METRIC, POLICY, VALUE };

struct loading {
	struct gain_block *block;
	struct gain_zap *zap;
};

static int block_row(struct gain_block *b, const struct csv_row *row)
{
	const char *policy = row->field[POLICY];
	size_t len = strlen(b->policy);
	double value, *to;
	size_t *n;
	int err;

	if (strncmp(policy, b->policy, len) || policy[len] != ':')
		return 0;
	to = strcmp(policy + len, ":before") ? b->after : b->before;
	n = to == b->before ? &b->n_before : &b->n_after;
	if (to == b->after && strcmp(policy + len, ":after") != 0)
		return 0;
	if (*n == GAIN_MAX_RUNS)
		return csv_complain(row, "more than %d runs", GAIN_MAX_RUNS);
	err = csv_double(row, VALUE, &value);
	if (!err && value <= 0)
		err = csv_complain(row, "expected a value above 0");
	if (!err)
		to[(*n)++] = b->kind == GAIN_RATE ? 1 / value : value;
	return err;
}

static int take_row(void *ctx, const struct csv_row *row)
{
	struct loading *l = ctx;
	const char *series = l->block ? l->block->series : l->zap->series;
	const char *metric = l->block ? l->block->metric : l->zap->metric;
	double us = 0;
	int err;

	if (strcmp(row->field[SERIES], series) || strcmp(row->field[METRIC], metric))
		return 0;
	if (l->block)
		return block_row(l->block, row);
	if (strcmp(row->field[POLICY], l->zap->policy))
		return 0;
	err = csv_double(row, VALUE, &us);
	l->zap->seconds = us / 1e6;
	return err;
}

static int load(const struct gain *g, const char *csv, const char *file, struct loading *l,
		const struct kvmsim_errsink *errors)
{
	char *path = csv ? strdup(csv) : evidence_beside(g->name, file);
	int err = path ? csv_read(path, columns, errors, take_row, l) : KVMSIM_ENOMEM;

	free(path);
	return err;
}

int gain_load(struct gain *g, const char *csv, const struct kvmsim_errsink *errors)
{
	int err = 0;

	for (size_t i = 0; i < g->n_blocks && !err; i++) {
		struct gain_block *b = &g->block[i];
		struct loading l = {.block = b};

		err = load(g, csv, b->file, &l, errors);
		if (!err && (b->n_before < 2 || b->n_after < 2))
			err = kvmsim_err(errors, KVMSIM_EPARSE,
					 "%s: block %s: %zu runs before and %zu after: two of each "
					 "are needed",
					 csv ? csv : b->file, b->name, b->n_before, b->n_after);
	}
	for (size_t i = 0; i < g->n_zaps && !err; i++) {
		struct loading l = {.zap = &g->zap[i]};

		err = load(g, csv, g->zap[i].file, &l, errors);
	}
	return err;
}

/* ---- the model ---- */

/* Counts of one guest, and how many accesses of its devices were handed to userspace. */
static int run(const struct gain *g, const char *scenario, const char *preset, bool nested,
	       const struct profile *profile, const struct kvmsim_errsink *errors,
	       uint64_t counts[N_COUNTS])
{
	const struct kvm_preset *p = preset_find(preset);
	struct run_opts o = {.scenario = scenario,
			     .preset = preset,
			     .personality = g->cpu,
			     .profile = profile,
			     .seed = 1,
			     .long_mode = true,
			     .nested = nested,
			     .errors = errors};
	struct run_result r;
	int err;

	if (!p)
		return kvmsim_err(errors, KVMSIM_ENOENT, "%s: no preset %s; kvmsim list has them",
				  g->name, preset);
	o.dirty = p->dirty;
	err = run_model(&o, &r);
	if (!err)
		memcpy(counts, r.counts, sizeof(r.counts));
	run_result_free(&r);
	return err;
}

static int compare_kernels(struct gain *g, const char *scenario, bool nested,
			   const struct profile *profile, const struct kvmsim_errsink *errors)
{
	static uint64_t counts[2][N_COUNTS];
	double accesses;
	int err = 0;

	for (int after = 0; after < 2 && !err; after++)
		err = run(g, scenario, g->preset[after], nested, profile, errors, counts[after]);
	if (err)
		return err;
	accesses = (double)counts[0][COUNT_mmio_exit];
	if (!accesses)
		return kvmsim_err(errors, KVMSIM_EINVAL, "%s: no device is accessed", scenario);
	for (int c = 0; c < N_COUNTS; c++) {
		g->fewer[nested][c] = ((double)counts[0][c] - (double)counts[1][c]) / accesses;
		g->saved_insns[nested] += g->fewer[nested][c] * g->price[c];
	}
	return 0;
}

/* ---- what the rows say ---- */

/* Seconds that an access takes less. */
static double access_seconds(const struct gain *g, bool nested, double cycles, double hz)
{
	return g->saved_insns[nested] * cycles / hz;
}

static double gained(double before, double saved)
{
	return saved < before ? before / (before - saved) - 1 : INFINITY;
}

static struct gain_range gain_of(const struct gain *g, bool nested, double guests,
				 const struct gain_range *accesses, const double before[3])
{
	const struct gain_range *c = &g->insn_cycles, *hz = &g->hz;

	return (struct gain_range){
		gained(before[2],
		       guests * accesses->least * access_seconds(g, nested, c->least, hz->most)),
		gained(before[1], guests * accesses->middle *
					  access_seconds(g, nested, c->middle, hz->middle)),
		gained(before[0],
		       guests * accesses->most * access_seconds(g, nested, c->most, hz->least))};
}

/* Mean of @b's times before, with the runs' interval: least, middle, most. */
static int time_before(const struct gain_block *b, double out[3])
{
	struct stats_estimate e;
	int err = stats_t_interval(b->before, b->n_before, LEVEL, &e);

	out[0] = e.lo;
	out[1] = e.value;
	out[2] = e.hi;
	return err;
}

static int measured(struct gain_block *b)
{
	double before[GAIN_MAX_RUNS], after[GAIN_MAX_RUNS];
	int err = stats_welch(b->after, b->n_after, b->before, b->n_before, LEVEL, &b->saved);

	for (size_t i = 0; i < b->n_before; i++)
		before[i] = log(b->before[i]);
	for (size_t i = 0; i < b->n_after; i++)
		after[i] = log(b->after[i]);
	err = err ? err : stats_welch(after, b->n_after, before, b->n_before, LEVEL, &b->gain);
	b->gain.value = expm1(b->gain.value);
	b->gain.lo = expm1(b->gain.lo);
	b->gain.hi = expm1(b->gain.hi);
	return err;
}

static int judge_block(const struct gain *g, struct gain_block *b)
{
	double before[3], unit, per, dear, cheap;
	int err = measured(b);

	err = err ? err : time_before(b, before);
	if (err)
		return err;
	/* accesses per transaction, or per second of what was timed */
	per = b->guests * (b->kind == GAIN_TIME ? before[1] : 1);
	unit = per * access_seconds(g, b->nested, g->insn_cycles.middle, g->hz.middle);
	dear = per * access_seconds(g, b->nested, g->insn_cycles.most, g->hz.least);
	cheap = per * access_seconds(g, b->nested, g->insn_cycles.least, g->hz.most);
	b->implied = b->saved;
	b->implied.value /= unit;
	b->implied.se /= unit;
	b->implied.lo /= unit;
	b->implied.hi /= unit;
	b->implied_all = (struct gain_range){b->saved.lo / (b->saved.lo > 0 ? dear : cheap),
					     b->implied.value,
					     b->saved.hi / (b->saved.hi > 0 ? cheap : dear)};
	b->inside = true;
	if (b->kind == GAIN_TIME)
		return 0;
	b->predicted = gain_of(g, b->nested, b->guests, &g->accesses, before);
	b->inside = b->gain.hi >= b->predicted.least && b->gain.lo <= b->predicted.most;
	return 0;
}

/* Whether one number of accesses can be behind both: Welch's test of the difference. */
static void judge_agreement(struct gain_agree *a)
{
	const struct stats_estimate *x = &a->block_a->implied, *y = &a->block_b->implied;
	double vx = x->se * x->se, vy = y->se * y->se, df;

	df = (vx + vy) * (vx + vy) / (vx * vx / x->df + vy * vy / y->df);
	a->difference = y->value - x->value;
	a->half = sqrt(vx + vy) * gsl_cdf_tdist_Pinv((1 + LEVEL) / 2, df);
	a->agree = fabs(a->difference) <= a->half;
}

static void judge_zap(const struct gain *g, struct gain_zap *z)
{
	double insns = g->price[z->count];

	z->pages = (struct gain_range){z->seconds * g->hz.least / (insns * g->insn_cycles.most),
				       z->seconds * g->hz.middle / (insns * g->insn_cycles.middle),
				       z->seconds * g->hz.most / (insns * g->insn_cycles.least)};
}

static int predict_other(const struct gain *g, struct gain_other *o)
{
	for (size_t i = 0; i < g->n_blocks; i++) {
		const struct gain_block *b = &g->block[i];
		double before[3];

		if (strcmp(b->name, o->block))
			continue;
		int err = time_before(b, before);

		o->gain = gain_of(g, b->nested, b->guests, &o->accesses, before);
		return err;
	}
	return KVMSIM_ENOENT;
}

int gain_predict(struct gain *g, const struct kvmsim_errsink *errors)
{
	char *scenario = evidence_beside(g->name, g->scenario);
	struct profile *profile = NULL;
	int err = scenario ? cli_profile("unit", &profile) : KVMSIM_ENOMEM;

	for (int nested = 0; nested < 2 && !err; nested++)
		err = compare_kernels(g, scenario, nested, profile, errors);
	for (size_t i = 0; i < g->n_blocks && !err; i++)
		err = judge_block(g, &g->block[i]);
	for (size_t i = 0; i < g->n_others && !err; i++)
		err = predict_other(g, &g->other[i]);
	g->pass = true;
	for (size_t i = 0; i < g->n_blocks; i++)
		g->pass &= g->block[i].inside || *g->block[i].miss;
	for (size_t i = 0; i < g->n_agrees && !err; i++) {
		judge_agreement(&g->agree[i]);
		g->pass &= g->agree[i].agree == g->agree[i].expect;
	}
	for (size_t i = 0; i < g->n_zaps; i++) {
		judge_zap(g, &g->zap[i]);
		g->pass &= g->zap[i].pages.least <= g->zap[i].most;
	}
	if (profile)
		profile_free(profile);
	free(scenario);
	return err;
}
