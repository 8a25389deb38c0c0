// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare_view.h"
#include "analysis/output.h"
#include "analysis/run_record.h"
#include "model/sim/profile.h"

/* For people: tables first, verdicts last, where a terminal ends. */

/* @value to the digit that @noise leaves standing; whole numbers where it leaves more. */
static const char *to_noise(char buf[OUT_TEXT], double value, double noise)
{
	double unit = noise >= 10 ? pow(10, floor(log10(noise))) : 1;

	return out_u64(buf, (uint64_t)(round(value / unit) * unit));
}

/* A signed percentage of the fraction @x, with the decimals that the noise @half leaves. */
static const char *percent(char buf[OUT_TEXT], double x, double half)
{
	int decimals = half > 0 ? (int)-floor(log10(half * 100)) : 2;

	decimals = decimals < 0 ? 0 : decimals > 2 ? 2 : decimals;
	if (fabs(x * 100) < 0.5 * pow(10, -decimals))
		x = 0; /* no "-0.0%" */
	snprintf(buf, OUT_TEXT, x ? "%+.*f%%" : "%.*f%%", decimals, x * 100);
	return buf;
}

static double sd_percent(double sd, double mean)
{
	return mean > 0 ? 100 * sd / mean : 0;
}

/* "A, B and C": the titles of the costs whose verdict is @which. Nothing: false. */
static bool print_titles(const struct compare_policy *p, bool real, enum verdict which, FILE *to)
{
	int n = 0, k = 0;

	for (int m = 0; m < N_METRICS; m++)
		n += metric_is_cost(m) && (real ? p->pair[m].real : p->pair[m].model) == which;
	for (int m = 0; m < N_METRICS; m++) {
		if (!metric_is_cost(m) || (real ? p->pair[m].real : p->pair[m].model) != which)
			continue;
		fprintf(to, "%s%s", !k ? "" : k + 1 < n ? ", " : " and ", metric_desc[m].title);
		k++;
	}
	return n > 0;
}

static void print_unpriced(const struct compare_view *v, const struct compare_policy *p, FILE *to)
{
	const int shown = 5; /* all of them are in the JSON */
	int n = 0;

	fprintf(to, "profile %s prices none of ", profile_name(v->opts->run.profile));
	for (int c = 0; c < N_COUNTS; c++) {
		if (!p->unpriced[c])
			continue;
		if (n < shown)
			fprintf(to, "%s%s", n ? ", " : "", model_vocabulary.counts[c]);
		n++;
	}
	if (n > shown)
		fprintf(to, " and %d more (--json lists all)", n - shown);
}

static void print_runs(uint64_t runs, FILE *to)
{
	char n[OUT_TEXT];

	fprintf(to, "%s runs of each", out_u64(n, runs));
}

/* That show @which in every cost that has this verdict: of all that the headline names. */
static uint64_t runs_for_all(const struct compare_policy *p, enum verdict which)
{
	uint64_t most = 0;

	for (int m = 0; m < N_METRICS; m++)
		if (metric_is_cost(m) && p->pair[m].real == which && p->pair[m].runs_needed > most)
			most = p->pair[m].runs_needed;
	return most;
}

/* Of the costs that are told. */
static double least_break_even(const struct compare_policy *p)
{
	double least = INFINITY;

	for (int m = 0; m < N_METRICS; m++)
		if (p->gap[m] == GAP_NONE)
			least = fmin(least, p->break_even[m]);
	return least;
}

static void print_verdict(const struct compare_view *v, const struct compare_policy *p, bool real,
			  FILE *to)
{
	enum verdict which = real ? p->real : p->model;

	fprintf(to, "  %s: %s", p->text, verdict_name(which));
	switch (which) {
	case VERDICT_FASTER:
	case VERDICT_SLOWER:
		fputs(" in ", to);
		print_titles(p, real, which, to);
		break;
	case VERDICT_MIXED:
		fputs(": faster in ", to);
		print_titles(p, real, VERDICT_FASTER, to);
		fputs(", slower in ", to);
		print_titles(p, real, VERDICT_SLOWER, to);
		break;
	case VERDICT_CANNOT_TELL:
		fputs(": ", to);
		if (p->any_unpriced)
			print_unpriced(v, p, to);
		else
			fputs("every cost of the baseline is 0", to);
		break;
	default:
		break;
	}
	if (real && which == VERDICT_INCONCLUSIVE) {
		if (p->runs_needed) {
			fputs("; ", to);
			print_runs(p->runs_needed, to);
			fprintf(to, " would show %s",
				p->tends == VERDICT_SAME ? "no difference worth having"
							 : verdict_name(p->tends));
		} else {
			fputs("; no number of runs would settle it", to);
		}
	} else if (real && (which == VERDICT_FASTER || which == VERDICT_SLOWER)) {
		fputs("; ", to);
		print_runs(runs_for_all(p, which), to);
		fputs(" are enough", to);
	}
	if (real && compare_depends(v->c, p))
		fputs("; depends on the number of active shadow pages", to);
	fputc('\n', to);
	if (which != VERDICT_CANNOT_TELL && real && isfinite(least_break_even(p))) {
		char price[OUT_TEXT];

		fputs("    ", to);
		print_unpriced(v, p, to);
		fprintf(to, ": this holds while they cost less than %s %s each\n",
			out_u64(price, (uint64_t)least_break_even(p)),
			profile_unit(v->opts->run.profile));
	}
}

/* What one end of the range answers: a number, or why there is none. */
static void print_edge(const struct compare_policy *p, const struct compare_edge *e, uint64_t sps,
		       const char *title, FILE *to)
{
	char at[OUT_TEXT], rel[OUT_TEXT];

	fprintf(to, " %s at %s (", verdict_name(e->real), out_u64(at, sps));
	if (e->real != VERDICT_CANNOT_TELL)
		fprintf(to, "%s%s)", title, percent(rel, e->rel, 0));
	else
		fputs(p->any_unpriced ? "not priced)" : "every cost of the baseline is 0)", to);
}

static void print_range(const struct compare_view *v, const struct compare_policy *p, FILE *to)
{
	const struct compare_opts *o = v->opts;
	char at[OUT_TEXT];

	fprintf(to, "  %s:", p->text);
	print_edge(p, &p->lo, o->shadow_lo, "GET_DIRTY_LOG mean ", to);
	fputc(',', to);
	print_edge(p, &p->hi, o->shadow_hi, "", to);
	if (compare_depends(v->c, p))
		fputs(": depends on the number of active shadow pages", to);
	if (p->crossover)
		fprintf(to, "; crossover at about %s%s", out_u64(at, p->crossover),
			p->crossover_unpriced ? " if what is not priced cost nothing" : "");
	fputc('\n', to);
}

static void value_cells(struct table *t, enum compare_gap gap, double mean, double sd)
{
	char buf[OUT_TEXT];

	if (gap == GAP_UNPRICED) {
		table_cell(t, "-");
		table_cell(t, "-");
		return;
	}

	table_cell(t, "%s", to_noise(buf, mean, sd));
	table_cell(t, "%.1f%%", sd_percent(sd, mean));
}

/* Why there is no difference to show; NULL when there is one. */
static const char *no_answer(const struct compare_policy *p, int m)
{
	if (p->gap[m] == GAP_ZERO)
		return p->pair[m].mean > 0 ? "cannot tell (baseline 0)" : "cannot tell (both 0)";
	return p->gap[m] == GAP_UNPRICED ? "cannot tell (not priced)" : NULL;
}

static int print_values(const struct compare_view *v, const struct compare_policy *p, FILE *to)
{
	const char *unit = profile_unit(v->opts->run.profile);
	struct table *t = table_create("llrrrrrr");
	char a[OUT_TEXT], b[OUT_TEXT];
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	table_cell(t, "metric");
	table_cell(t, "unit");
	table_cell(t, "baseline");
	table_cell(t, "sd");
	table_cell(t, "policy");
	table_cell(t, "sd");
	table_cell(t, "difference");
	table_cell(t, "%g%% interval", 100 * v->opts->verdict.level);
	for (int m = 0; m < N_METRICS; m++) {
		const struct verdict_pair *q = &p->pair[m];
		double half = (q->rel.hi - q->rel.lo) / 2;

		table_cell(t, "%s", metric_desc[m].title);
		table_cell(t, "%s", metric_unit(m, unit));
		value_cells(t, p->gap[m], q->base_mean, q->base_sd);
		value_cells(t, p->gap[m], q->mean, q->sd);
		if (!no_answer(p, m)) {
			table_cell(t, "%s", percent(a, q->rel.value, half));
			table_cell(t, "%s to %s", percent(a, q->rel.lo, half),
				   percent(b, q->rel.hi, half));
		}
		table_end_row(t);
	}
	err = table_print(t, to);
	table_free(t);
	return err;
}

/* Of the costs. */
static int print_judged(const struct compare_view *v, const struct compare_policy *p, FILE *to)
{
	struct table *t = table_create("lllll");
	char a[OUT_TEXT], b[OUT_TEXT];
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	table_cell(t, "verdict on");
	table_cell(t, "model");
	table_cell(t, "%" PRIu64 " runs", v->opts->verdict.runs);
	table_cell(t, "runs to settle");
	table_cell(t, "%g%% of replicates", 100 * v->opts->verdict.level);
	for (int m = 0; m < N_METRICS; m++) {
		const struct verdict_pair *q = &p->pair[m];
		double half = (q->rel_hi - q->rel_lo) / 2;

		if (!metric_is_cost(m))
			continue;
		table_cell(t, "%s", metric_desc[m].title);
		if (no_answer(p, m)) {
			table_cell(t, "%s", no_answer(p, m));
			table_end_row(t);
			continue;
		}
		table_cell(t, "%s", verdict_name(q->model));
		table_cell(t, "%s", verdict_name(q->real));
		if (q->runs_needed)
			table_cell(t, "%s (%s)", out_u64(a, q->runs_needed),
				   verdict_name(q->tends));
		else
			table_cell(t, "never");
		table_cell(t, "%s to %s", percent(a, q->rel_lo, half), percent(b, q->rel_hi, half));
	}
	err = table_print(t, to);
	table_free(t);
	return err;
}

static int print_table(const struct compare_view *v, const struct compare_policy *p, FILE *to)
{
	int err;

	fprintf(to, "\n%s against %s\n", p->text, v->c->policy[0].text);
	err = print_values(v, p, to);
	fputc('\n', to);
	return err ? err : print_judged(v, p, to);
}

static void print_head(const struct compare_view *v, FILE *to)
{
	const struct compare_opts *o = v->opts;
	const char *with = o->sptes ? o->policies[0] : o->run.spte;
	char a[OUT_TEXT], b[OUT_TEXT];

	fprintf(to, "%s, slot %s,\nkernel %s%s%s on %s, CPU %s, profile %s (%s)\n",
		o->run.trace ? o->run.trace : o->run.scenario, o->run.slot ? o->run.slot : "all",
		v->preset, with ? " with " : "", with ? with : "",
		mmu_kind_name(run_mmu(v->preset, o->run.long_mode, o->run.nested)),
		run_cpu(&o->run), profile_name(o->run.profile), profile_unit(o->run.profile));
	fprintf(to, "%" PRIu32 " replicates, seed %" PRIu64, o->replicates, o->run.seed);
	if (v->interval)
		fprintf(to, ", a collection every %s instructions%s", out_u64(a, v->interval),
			o->run.running ? " beside running vCPUs" : "");
	fprintf(to, "; active shadow pages %s", out_u64(a, o->shadow_lo));
	if (v->c->range)
		fprintf(to, " to %s", out_u64(b, o->shadow_hi));
	fprintf(to, ";\ndrawn in each: %s%s%zu price%s\n", o->n_phases > 1 ? "phase, " : "",
		v->c->range ? "shadow pages, " : "", v->c->n_prices,
		v->c->n_prices == 1 ? "" : "s");
	if (v->c->torn)
		fputs("The trace ends early: this covers what was there.\n", to);
}

/* The verdicts, and what they rest on. */
static int print_verdicts(const struct compare_view *v, FILE *to)
{
	const struct compare_opts *o = v->opts;
	int err = 0;

	fprintf(to,
		"\nOn real machines, %" PRIu64
		" runs of each against %s (run-to-run spread %g%% %s, smallest effect %g%%, "
		"power %g%%):\n",
		o->verdict.runs, v->c->policy[0].text, 100 * o->verdict.spread, v->spread_source,
		100 * o->verdict.min_effect, 100 * o->verdict.power);
	for (size_t k = 1; k < v->c->n; k++)
		print_verdict(v, &v->c->policy[k], true, to);
	fprintf(to,
		"In the model (paired replicates, %g%%, Holm's correction; below %g%% is same):\n",
		100 * o->verdict.level, 100 * o->verdict.min_effect / VERDICT_SAME_PART);
	for (size_t k = 1; k < v->c->n; k++)
		print_verdict(v, &v->c->policy[k], false, to);
	if (v->c->range) {
		fputs("By the number of active shadow pages:\n", to);
		for (size_t k = 1; k < v->c->n; k++)
			print_range(v, &v->c->policy[k], to);
	}
	fprintf(to, "Evidence with kernel %s on CPU %s:\n", v->preset, run_cpu(&o->run));
	for (size_t k = 0; !err && k < v->c->n; k++) {
		const struct run_opts run = compare_run_of(v, &v->c->policy[k]);
		char *text;

		if (o->sptes) {
			err = run_print_spte_evidence(&run, v->preset, "  spte policy ", to);
			if (err || k)
				continue;
		}
		text = run_evidence_text(&run, run.dirty, v->preset);
		if (text)
			fprintf(to, "  %s: %s\n", run.dirty, text);
		else
			err = KVMSIM_ENOMEM;
		free(text);
	}
	return err ? err : run_print_spte_evidence(&o->run, v->preset, "  spte policy ", to);
}

struct run_opts compare_run_of(const struct compare_view *v, const struct compare_policy *p)
{
	struct run_opts run = v->opts->run;

	run.dirty = p->dirty;
	run.spte = p->spte;
	return run;
}

int compare_print(const struct compare_view *v, FILE *to)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int err = f ? print_verdicts(v, f) : KVMSIM_ENOMEM;

	if (f && fclose(f))
		err = KVMSIM_ENOMEM;
	if (!err)
		print_head(v, to);
	for (size_t k = 1; !err && k < v->c->n; k++)
		err = print_table(v, &v->c->policy[k], to);
	if (!err)
		out_wrapped(text, 4, to);
	free(text);
	return err;
}
