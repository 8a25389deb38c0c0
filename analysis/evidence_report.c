// SPDX-License-Identifier: GPL-3.0-or-later
/* Rows of calls with their predictions, and what they say together. */
#include "analysis/evidence_report.h"

#include <math.h>
#include <string.h>

#include "analysis/output.h"
#include "model/sim/profile.h"

#define TWO_SIDED_95 1.959964 /* standard deviations */

/* Half the width of the 95% interval that the prices' uncertainty gives. */
static double half_width(const struct evidence_row *row)
{
	return TWO_SIDED_95 * row->sigma;
}

static const char *role(const struct evidence_row *row)
{
	if (row->policy->identify)
		return "identified";
	if (row->fitted)
		return "fitted";
	return row->series->unjudged ? "shown" : "predicted";
}

static bool in_range(const struct evidence_row *row)
{
	return row->shadow_pages >= row->pages_min && row->shadow_pages <= row->pages_max;
}

/* ---- table ---- */

static int table_rows(const struct evidence *e, const struct profile *p)
{
	struct table *t = table_create("lrrrrrrrl");
	char a[OUT_TEXT], b[OUT_TEXT], c[OUT_TEXT];
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	printf("%s: GET_DIRTY_LOG, %s on %s\n\n", e->path, profile_unit(p), profile_machine(p));
	const char *const heads[] = {"series",	    "slot pages", "run",   "nr_dirty", "predicted",
				     "prices' 95%", "measured",	  "error", "row"};
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		table_cell(t, "%s", heads[i]);
	for (size_t i = 0; i < e->n_rows; i++) {
		const struct evidence_row *row = &e->rows[i];

		if (row->policy->identify)
			continue;
		table_cell(t, "%s", row->series_name);
		table_cell(t, "%s", out_u64(a, row->slot_pages));
		table_cell(t, "%s", row->run ? out_u64(a, row->run) : "all");
		table_cell(t, "%s", out_u64(a, row->nr_dirty));
		table_cell(t, "%s", out_u64(a, llround(row->prediction.cycles)));
		table_cell(t, "%s%s", row->sigma > 0 ? "+- " : "",
			   row->sigma > 0 ? out_u64(b, llround(half_width(row))) : "");
		table_cell(t, "%s", out_u64(c, llround(row->measured)));
		table_cell(t, "%+.1f%%", 100 * row->error);
		table_cell(t, "%s", role(row));
	}
	err = table_print(t, stdout);
	table_free(t);
	return err;
}

static int table_identified(const struct evidence *e)
{
	struct table *t = table_create("lrrrrrl");
	char a[OUT_TEXT];
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	printf("\nActive shadow pages that a walk's time implies, if all of each is walked:\n"
	       "identification, no prediction; the price of a page is not fitted on these "
	       "rows.\n\n");
	const char *const heads[] = {"series",	       "nr_dirty", "measured", "implied pages",
				     "price per page", "at most",  "in range"};
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		table_cell(t, "%s", heads[i]);
	for (size_t i = 0; i < e->n_rows; i++) {
		const struct evidence_row *row = &e->rows[i];

		if (!row->policy->identify)
			continue;
		table_cell(t, "%s", row->series_name);
		table_cell(t, "%s", out_u64(a, row->nr_dirty));
		table_cell(t, "%s", out_u64(a, llround(row->measured)));
		table_cell(t, "%s", out_u64(a, llround(row->shadow_pages)));
		table_cell(t, "%s", out_u64(a, llround(row->per_page)));
		table_cell(t, "%s", out_u64(a, row->pages_max));
		table_cell(t, "%s (from %s)", in_range(row) ? "yes" : "NO",
			   out_u64(a, row->pages_min));
	}
	err = table_print(t, stdout);
	table_free(t);
	return err;
}

int evidence_print(const struct evidence *e, const struct evidence_judgement *j,
		   const struct profile *p)
{
	const struct recipe *r = e->recipe;
	int err = table_rows(e, p);

	if (!err && j->n_identified)
		err = table_identified(e);
	if (err)
		return err;
	if (j->cannot_tell) {
		printf("\ncannot tell: no row is left that was not fitted\n");
		return 0;
	}
	printf("\n%zu rows not fitted: median error %.1f%% (bound %g%%), worst %.1f%% (bound "
	       "%g%%), "
	       "within 15%%: %zu of %zu = %.0f%% (bound %g%%)",
	       j->n, 100 * j->median, r->median, 100 * j->worst, r->worst, j->n_within15, j->n,
	       100.0 * j->n_within15 / j->n, r->within15);
	if (j->n_identified)
		printf("; %zu of %zu implied numbers in range", j->n_identified - j->n_out_of_range,
		       j->n_identified);
	printf(": %s\n", j->pass ? "pass" : "FAILED");
	printf("%zu rows fitted with %zu numbers\n", j->n_fitted, recipe_fitted(r));
	if (j->n_shown)
		printf("%zu rows shown and not judged: median error %.1f%%, worst %.1f%%, within "
		       "15%%: %zu of %zu\n",
		       j->n_shown, 100 * j->shown_median, 100 * j->shown_worst, j->n_shown_within15,
		       j->n_shown);
	return 0;
}

/* ---- CSV ---- */

void evidence_csv(const struct evidence *e)
{
	struct csv_out c = {.to = stdout};

	for (size_t i = 0; i < e->n_rows; i++) {
		const struct evidence_row *row = &e->rows[i];

		csv_text(&c, e->path);
		csv_field(&c, "%lu", row->line);
		csv_text(&c, row->series_name);
		csv_text(&c, row->policy->name);
		csv_field(&c, "%llu", (unsigned long long)row->slot_pages);
		csv_field(&c, "%llu", (unsigned long long)row->run);
		csv_field(&c, "%llu", (unsigned long long)row->nr_dirty);
		csv_text(&c, role(row));
		csv_field(&c, "%.1f", row->measured);
		if (row->policy->identify) {
			csv_text(&c, NULL);
			csv_text(&c, NULL);
			csv_text(&c, NULL);
			csv_field(&c, "%.1f", row->shadow_pages);
			csv_text(&c, in_range(row) ? "yes" : "no");
		} else {
			csv_field(&c, "%.1f", row->prediction.cycles);
			csv_field(&c, "%.1f", half_width(row));
			csv_field(&c, "%.4f", row->error);
			csv_text(&c, NULL);
			csv_text(&c, NULL);
		}
		csv_end_row(&c);
	}
}

void evidence_csv_heading(void)
{
	static const char *const names[] = {"file",
					    "line",
					    "series",
					    "policy",
					    "slot_pages",
					    "run",
					    "nr_dirty",
					    "row",
					    "measured",
					    "predicted",
					    "half_width",
					    "error",
					    "implied_shadow_pages",
					    "in_range"};
	struct csv_out c = {.to = stdout};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		csv_text(&c, names[i]);
	csv_end_row(&c);
}

/* ---- JSON ---- */

/* A new number cut to what is printed elsewhere, so that the last bits do not matter. */
static json_t *rounded(double v, double unit)
{
	return json_real(round(v / unit) * unit);
}

static json_t *row_json(const struct evidence_row *row)
{
	json_t *o = json_object();
	int err = json_object_set_new(o, "line", json_u64(row->line));

	err |= json_object_set_new(o, "series", json_string(row->series_name));
	err |= json_object_set_new(o, "policy", json_string(row->policy->name));
	err |= json_object_set_new(o, "slot_pages", json_u64(row->slot_pages));
	err |= json_object_set_new(o, "run", json_u64(row->run));
	err |= json_object_set_new(o, "nr_dirty", json_u64(row->nr_dirty));
	err |= json_object_set_new(o, "row", json_string(role(row)));
	err |= json_object_set_new(o, "measured", rounded(row->measured, 0.125));
	if (row->policy->identify) {
		err |= json_object_set_new(o, "implied_shadow_pages",
					   rounded(row->shadow_pages, 0.125));
		err |= json_object_set_new(o, "price_per_page", rounded(row->per_page, 0.125));
		err |= json_object_set_new(o, "pages_min", json_u64(row->pages_min));
		err |= json_object_set_new(o, "pages_max", json_u64(row->pages_max));
		err |= json_object_set_new(o, "in_range", json_boolean(in_range(row)));
	} else {
		err |= json_object_set_new(o, "predicted", rounded(row->prediction.cycles, 0.125));
		err |= json_object_set_new(o, "half_width", rounded(half_width(row), 0.125));
		err |= json_object_set_new(o, "error", rounded(row->error, 1.0 / 8192));
	}
	if (err) {
		json_decref(o);
		return NULL;
	}
	return o;
}

json_t *evidence_json(const struct evidence *e, const struct evidence_judgement *j,
		      const struct profile *p)
{
	json_t *o = json_object(), *rows = json_array();
	int err = json_object_set_new(o, "file", json_string(e->path));

	err |= json_object_set_new(o, "profile", json_string(profile_name(p)));
	err |= json_object_set_new(o, "profile_checksum", json_hex64(profile_checksum(p)));
	err |= json_object_set_new(o, "unit", json_string(profile_unit(p)));
	for (size_t i = 0; i < e->n_rows; i++)
		err |= json_array_append_new(rows, row_json(&e->rows[i]));
	err |= json_object_set_new(o, "rows", rows);
	err |= json_object_set_new(o, "n_fitted", json_u64(j->n_fitted));
	err |= json_object_set_new(o, "n_judged", json_u64(j->n));
	err |= json_object_set_new(o, "median_error", rounded(j->median, 1.0 / 8192));
	err |= json_object_set_new(o, "worst_error", rounded(j->worst, 1.0 / 8192));
	err |= json_object_set_new(o, "n_within15", json_u64(j->n_within15));
	err |= json_object_set_new(o, "n_shown", json_u64(j->n_shown));
	err |= json_object_set_new(o, "shown_median_error", rounded(j->shown_median, 1.0 / 8192));
	err |= json_object_set_new(o, "shown_worst_error", rounded(j->shown_worst, 1.0 / 8192));
	err |= json_object_set_new(o, "n_identified", json_u64(j->n_identified));
	err |= json_object_set_new(o, "n_out_of_range", json_u64(j->n_out_of_range));
	err |= json_object_set_new(o, "pass", json_boolean(j->pass));
	if (err) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* ---- the verb ---- */
