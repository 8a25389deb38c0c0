// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/timing_report.h"

#include <math.h>
#include <string.h>

#include "analysis/output.h"
#include "analysis/timing_priv.h"
#include "model/sim/profile.h"

static const char *role(const struct timing_row *row)
{
	if (timing_untold(row->run))
		return "cannot tell";
	if (!(row->predicted > 0))
		return "not run";
	if (row->calibrates)
		return "fitted";
	if (row->fitted)
		return "sets a param";
	return row->run->judge == JUDGE_NO ? "shown" : "predicted";
}

static bool comparable(const struct timing_row *row)
{
	return row->predicted > 0 && row->run->judge != JUDGE_RATIO;
}

static void row_cells(struct table *tab, const struct timing_row *row)
{
	table_cell(tab, "%s", row->run->metric);
	table_cell(tab, "%s", row->run->policy);
	if (row->x)
		table_cell(tab, "%llu", (unsigned long long)row->x);
	else
		table_cell(tab, "%s", "");
	if (row->predicted > 0)
		table_cell(tab, "%.6f", row->predicted);
	else
		table_cell(tab, "%s", "");
	table_cell(tab, "%.6f", row->measured);
	if (comparable(row))
		table_cell(tab, "%+.1f%%", 100 * (row->predicted / row->measured - 1));
	else
		table_cell(tab, "%s", "");
	table_cell(tab, "%s", role(row));
}

static int print_rows(const struct timing *t, const char *series)
{
	const char *const heads[] = {"metric",	 "policy", "vCPUs", "predicted",
				     "measured", "error",  "row"};
	struct table *tab = table_create("llrrrrl");
	const struct timing_run *said = NULL;
	int err;

	if (!tab)
		return KVMSIM_ENOMEM;
	printf("%s\n\n", series);
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		table_cell(tab, "%s", heads[i]);
	for (size_t i = 0; i < t->n_rows; i++)
		if (!strcmp(t->rows[i].run->series, series))
			row_cells(tab, &t->rows[i]);
	err = table_print(tab, stdout);
	table_free(tab);
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct timing_run *run = t->rows[i].run;

		if (strcmp(run->series, series) || !*run->note || run == said)
			continue;
		if (said && !strcmp(said->note, run->note))
			continue;
		said = run;
		printf("  %s: ", run->metric);
		out_wrapped(run->note, 4, stdout);
	}
	printf("\n");
	return err;
}

static void error_cell(struct table *tab, double error, size_t n)
{
	if (n)
		table_cell(tab, "%.1f%% of %zu", 100 * error, n);
	else
		table_cell(tab, "%s", "");
}

const char *timing_verdict_name(enum timing_verdict v)
{
	static const char *const names[] = {[TIMING_NOTHING] = "nothing judged",
					    [TIMING_PASS] = "pass",
					    [TIMING_MISSED] = "MISSED",
					    [TIMING_FAIL] = "FAILED"};

	return names[v];
}

static void judgement_cells(struct table *tab, const struct timing_judgement *j)
{
	table_cell(tab, "%s%s", j->metric ? "  " : "", j->metric ? j->metric : j->series);
	table_cell(tab, "%zu", j->n_rows);
	table_cell(tab, "%zu", j->n_fitted);
	table_cell(tab, "%zu", j->n_told);
	table_cell(tab, "%zu", j->n_runs);
	table_cell(tab, "%zu", j->n_fresh);
	error_cell(tab, j->times, j->n_times);
	error_cell(tab, j->ratios, j->n_ratios);
	error_cell(tab, j->growths, j->n_growths);
	error_cell(tab, j->numbers, j->n_numbers);
	table_cell(tab, "%zu of %zu", j->n_wrong, j->n_signs);
	table_cell(tab, "%s", timing_verdict_name(j->verdict));
}

static int print_judgements(const struct timing *t, const struct timing_judgement *j, size_t n)
{
	const char *const heads[] = {"series, metric", "rows",	 "fitted", "told",
				     "runs",	       "fresh",	 "times",  "ratios",
				     "growth",	       "number", "wrong",  "verdict"};
	struct table *tab = table_create("lrrrrrrrrrrl");
	int err;

	if (!tab)
		return KVMSIM_ENOMEM;
	printf("Median errors of what was not fitted, of a series and of its metrics with three or "
	       "more; ratios,\ngrowth and numbers aim at %g%% each, and at no wrong sign of a "
	       "difference of more than %g%%.\nFresh runs have no fitted row, and no series above "
	       "has them. Times themselves are not judged.\n\n",
	       t->recipe->median, t->recipe->noise);
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		table_cell(tab, "%s", heads[i]);
	for (size_t i = 0; i < n; i++)
		judgement_cells(tab, &j[i]);
	err = table_print(tab, stdout);
	table_free(tab);
	return err;
}

static void print_misses(const struct timing *t, const struct timing_judgement *j, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char text[4 * RECIPE_TEXT];

		if (!j[i].miss || j[i].verdict < TIMING_MISSED)
			continue;
		printf("\n%s: ", timing_verdict_name(j[i].verdict));
		snprintf(text, sizeof(text),
			 "%s%s%s (aimed at %g%% and no wrong sign, fails beyond %g%% and %llu): %s",
			 j[i].series, j[i].metric ? ", " : "", j[i].metric ? j[i].metric : "",
			 t->recipe->median, j[i].miss->median, (unsigned long long)j[i].miss->wrong,
			 j[i].miss->why);
		out_wrapped(text, 4, stdout);
	}
}

int timing_print(const struct timing *t, const struct timing_judgement *j, size_t n,
		 const struct profile *profile)
{
	const struct recipe *r = t->recipe;
	int err = 0;

	printf("%s: seconds, of %s; runs have 1/%g of the memory\n\n", t->path,
	       profile_machine(profile), (double)r->published_bytes / (double)r->bytes);
	for (size_t i = 0; i < n && !err; i++)
		if (!j[i].metric)
			err = print_rows(t, j[i].series);
	err = err ? err : print_judgements(t, j, n);
	print_misses(t, j, n);
	printf("\n%zu numbers are fitted, %llu of them on rows with contention\n", recipe_fitted(r),
	       (unsigned long long)r->contended);
	if (t->other)
		printf("%zu rows that %s says nothing of, passed over\n", t->other, r->runs);
	printf("%s: %s\n", t->path, timing_verdict_name(timing_verdict(j, n)));
	return err;
}

void timing_csv(const struct timing *t)
{
	static const char *const names[] = {"file",  "line", "series", "metric",   "policy",
					    "vcpus", "row",  "fit",    "measured", "predicted"};
	struct csv_out c = {.to = stdout};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		csv_text(&c, names[i]);
	csv_end_row(&c);
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct timing_row *row = &t->rows[i];

		csv_text(&c, t->path);
		csv_field(&c, "%lu", row->line);
		csv_text(&c, row->run->series);
		csv_text(&c, row->run->metric);
		csv_text(&c, row->run->policy);
		csv_field(&c, "%llu", (unsigned long long)row->x);
		csv_text(&c, role(row));
		csv_text(&c, row->fitted ? "yes" : "no");
		csv_field(&c, "%.9f", row->measured);
		if (row->predicted > 0)
			csv_field(&c, "%.9f", row->predicted);
		else
			csv_text(&c, NULL);
		csv_end_row(&c);
	}
}

static json_t *row_json(const struct timing_row *row)
{
	json_t *j = json_object();

	json_put(j, "line", json_u64(row->line));
	json_put(j, "series", json_string(row->run->series));
	json_put(j, "metric", json_string(row->run->metric));
	json_put(j, "policy", json_string(row->run->policy));
	json_put(j, "vcpus", json_u64(row->x));
	json_put(j, "row", json_string(role(row)));
	json_put(j, "measured", json_real(row->measured));
	if (row->predicted > 0)
		json_put(j, "predicted", json_real(row->predicted));
	if (*row->run->note)
		json_put(j, "note", json_string(row->run->note));
	return j;
}

static json_t *judgement_json(const struct timing *t, const struct timing_judgement *s)
{
	json_t *j = json_object();

	json_put(j, "series", json_string(s->series));
	if (s->metric)
		json_put(j, "metric", json_string(s->metric));
	json_put(j, "n_rows", json_u64(s->n_rows));
	json_put(j, "n_fitted", json_u64(s->n_fitted));
	json_put(j, "n_told", json_u64(s->n_told));
	json_put(j, "n_runs", json_u64(s->n_runs));
	json_put(j, "n_fresh_runs", json_u64(s->n_fresh));
	json_put(j, "median_ratio_error", json_real(s->ratios));
	json_put(j, "n_ratios", json_u64(s->n_ratios));
	json_put(j, "median_growth_error", json_real(s->growths));
	json_put(j, "n_growths", json_u64(s->n_growths));
	json_put(j, "median_number_error", json_real(s->numbers));
	json_put(j, "n_numbers", json_u64(s->n_numbers));
	json_put(j, "n_signs", json_u64(s->n_signs));
	json_put(j, "n_wrong_signs", json_u64(s->n_wrong));
	json_put(j, "aim", json_real(t->recipe->median / 100));
	json_put(j, "verdict", json_string(timing_verdict_name(s->verdict)));
	if (s->miss && s->verdict >= TIMING_MISSED) {
		json_put(j, "known_miss", json_string(s->miss->why));
		json_put(j, "fails_beyond", json_real(s->miss->median / 100));
		json_put(j, "fails_beyond_wrong_signs", json_u64(s->miss->wrong));
	}
	return j;
}

json_t *timing_json(const struct timing *t, const struct timing_judgement *j, size_t n,
		    const struct profile *profile)
{
	json_t *o = json_object(), *rows = json_array(), *series = json_array();

	json_put(o, "file", json_string(t->path));
	json_put(o, "profile", json_string(profile_name(profile)));
	json_put(o, "profile_checksum", json_hex64(profile_checksum(profile)));
	for (size_t i = 0; i < t->n_rows; i++)
		json_array_append_new(rows, row_json(&t->rows[i]));
	for (size_t i = 0; i < n; i++)
		json_array_append_new(series, judgement_json(t, &j[i]));
	json_put(o, "rows", rows);
	json_put(o, "series", series);
	json_put(o, "verdict", json_string(timing_verdict_name(timing_verdict(j, n))));
	return o;
}
