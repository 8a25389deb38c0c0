// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <string.h>

#include "analysis/cells.h"
#include "analysis/output.h"

static const char *role(const struct cell_row *r)
{
	if (r->run->kind == CELL_OUT)
		return "out of scope";
	if (!(r->predicted > 0))
		return "not run";
	if (r->run->kind == CELL_DERIVED)
		return "derived";
	return r->run->fit ? "fitted" : "predicted";
}

static bool is_gain(const struct cell_row *r)
{
	return r->run->kind != CELL_OUT && r->run->what == CELL_GAIN;
}

/* In the row's unit: false where there is none. */
static bool in_unit(const struct cell_row *r, double *predicted)
{
	if (r->run->kind == CELL_OUT || !(r->predicted > 0) || !(r->scale > 0))
		return false;
	*predicted = is_gain(r)			 ? 100 * (r->predicted - 1)
		     : r->run->what == CELL_TIME ? r->scale / r->predicted
						 : r->scale * r->predicted;
	return true;
}

static double measured(const struct cell_row *r)
{
	return is_gain(r) ? 100 * (r->measured - 1) : r->measured;
}

/* Of gains the difference in points, of others the relative one. */
static void error_cell(struct table *t, const struct cell_row *r, double predicted)
{
	if (is_gain(r))
		table_cell(t, "%+.1f points", predicted - measured(r));
	else
		table_cell(t, "%+.1f%%", 100 * (predicted / measured(r) - 1));
}

static void row_cells(struct table *t, const struct cell_row *r)
{
	double predicted;

	table_cell(t, "%s", r->metric);
	table_cell(t, "%s", r->policy);
	table_cell(t, "%s", r->x);
	if (in_unit(r, &predicted)) {
		table_cell(t, "%.4g", predicted);
		table_cell(t, "%.4g", measured(r));
		table_cell(t, "%s", r->unit);
		error_cell(t, r, predicted);
	} else {
		table_cell(t, "%s", "");
		table_cell(t, "%.4g", measured(r));
		table_cell(t, "%s", r->unit);
		table_cell(t, "%s", "");
	}
	table_cell(t, "%s", role(r));
}

static void notes(const struct cells *c, const char *series)
{
	const char *said = "";

	for (size_t i = 0; i < c->n_rows; i++) {
		const struct cell_row *r = &c->rows[i];

		if (strcmp(r->series, series) || !*r->run->note || !strcmp(said, r->run->note))
			continue;
		said = r->run->note;
		printf("  %s: ", r->metric);
		out_wrapped(said, 4, stdout);
	}
}

static void summary(const struct cells_judgement *j)
{
	printf("%s: %zu rows: %zu modelled (%zu of them fitted), %zu derived, %zu out of scope",
	       j->series ? j->series : "All", j->n_rows, j->n_modelled, j->n_fitted, j->n_derived,
	       j->n_out);
	if (j->n_ratios)
		printf("; %zu ratios: median error %.1f%%, worst %.1f%%", j->n_ratios,
		       100 * j->median, 100 * j->worst);
	if (j->n_signs)
		printf("; signs right: %zu of %zu", j->n_right, j->n_signs);
	printf("%s\n", !j->n_ratios ? "" : j->pass ? ": pass" : ": MISSED");
	if (j->miss) {
		printf("  ");
		out_wrapped(j->miss, 2, stdout);
	}
}

int cells_print(const struct cells *c, const struct cells_judgement *j, size_t n)
{
	const char *const heads[] = {"metric",	 "policy", "x",	    "predicted",
				     "measured", "unit",   "error", "row"};
	int err = 0;

	printf("%s: %s on %s; values of each metric scaled so that its first row agrees\n", c->file,
	       "kvmsim overcommit", c->profile);
	for (size_t s = 0; s + 1 < n && !err; s++) {
		struct table *t = table_create("lllrrlrl");

		if (!t)
			return KVMSIM_ENOMEM;
		printf("\n%s\n\n", j[s].series);
		for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
			table_cell(t, "%s", heads[i]);
		for (size_t i = 0; i < c->n_rows; i++)
			if (!strcmp(c->rows[i].series, j[s].series))
				row_cells(t, &c->rows[i]);
		err = table_print(t, stdout);
		table_free(t);
		notes(c, j[s].series);
	}
	printf("\n");
	for (size_t s = 0; s < n && !err; s++)
		summary(&j[s]);
	printf("%llu numbers were fitted; aimed at: median under %g%%, %g%% of signs\n",
	       (unsigned long long)c->fitted, c->median, c->signs);
	return err;
}

void cells_csv(const struct cells *c)
{
	struct csv_out o = {.to = stdout};
	const char *const heads[] = {
		"file",	   "line", "series", "metric",	  "policy",
		"x",	   "unit", "row",    "predicted", "predicted_sd_percent",
		"measured"};

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		csv_text(&o, heads[i]);
	csv_end_row(&o);
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct cell_row *r = &c->rows[i];
		double predicted;
		bool is = in_unit(r, &predicted);

		csv_text(&o, c->file);
		csv_field(&o, "%lu", r->line);
		csv_text(&o, r->series);
		csv_text(&o, r->metric);
		csv_text(&o, r->policy);
		csv_text(&o, r->x);
		csv_text(&o, r->unit);
		csv_text(&o, role(r));
		if (is)
			csv_field(&o, "%.6g", predicted);
		else
			csv_text(&o, NULL);
		if (is)
			csv_field(&o, "%.3g", 100 * r->predicted_sd);
		else
			csv_text(&o, NULL);
		csv_field(&o, "%.6g", measured(r));
		csv_end_row(&o);
	}
}

static json_t *row_json(const struct cell_row *r)
{
	json_t *o = json_object();
	double predicted;

	json_put(o, "line", json_u64(r->line));
	json_put(o, "series", json_string(r->series));
	json_put(o, "metric", json_string(r->metric));
	json_put(o, "policy", json_string(r->policy));
	json_put(o, "x", json_string(r->x));
	json_put(o, "unit", json_string(r->unit));
	json_put(o, "row", json_string(role(r)));
	json_put(o, "predicted", in_unit(r, &predicted) ? json_real(predicted) : json_null());
	json_put(o, "measured", json_real(measured(r)));
	json_put(o, "note", *r->run->note ? json_string(r->run->note) : json_null());
	return o;
}

json_t *cells_json(const struct cells *c, const struct cells_judgement *j, size_t n)
{
	json_t *o = json_object(), *rows = json_array(), *all = json_array();

	json_put(o, "file", json_string(c->file));
	json_put(o, "profile", json_string(c->profile));
	json_put(o, "fitted_numbers", json_u64(c->fitted));
	for (size_t i = 0; i < c->n_rows; i++)
		json_array_append_new(rows, row_json(&c->rows[i]));
	json_put(o, "rows", rows);
	for (size_t i = 0; i < n; i++) {
		json_t *s = json_object();

		json_put(s, "series", j[i].series ? json_string(j[i].series) : json_null());
		json_put(s, "rows", json_u64(j[i].n_rows));
		json_put(s, "modelled", json_u64(j[i].n_modelled));
		json_put(s, "derived", json_u64(j[i].n_derived));
		json_put(s, "out_of_scope", json_u64(j[i].n_out));
		json_put(s, "fitted", json_u64(j[i].n_fitted));
		json_put(s, "ratios", json_u64(j[i].n_ratios));
		json_put(s, "median_error", j[i].n_ratios ? json_real(j[i].median) : json_null());
		json_put(s, "worst_error", j[i].n_ratios ? json_real(j[i].worst) : json_null());
		json_put(s, "signs", json_u64(j[i].n_signs));
		json_put(s, "signs_right", json_u64(j[i].n_right));
		json_put(s, "pass", j[i].n_ratios ? json_boolean(j[i].pass) : json_null());
		json_array_append_new(all, s);
	}
	json_put(o, "judgement", all);
	return o;
}
