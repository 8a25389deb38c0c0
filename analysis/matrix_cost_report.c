// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/matrix_cost.h"
#include "analysis/output.h"
#include "model/sim/profile.h"

#define WORST_ROWS 10 /* printed with what they are made of */
#define TOP_COUNTS 4

static void put_row_name(char *words, size_t room, const struct cost_result *r,
			 const struct cost_row *row)
{
	const struct matrix_config *c = &r->file->configs[row->config];
	int n = snprintf(words, room, "%s %s", c->mmu, row->key.phase);

	if (n > 0 && (size_t)n < room && row->key.nr_dirty != MATRIX_NONE)
		snprintf(words + n, room - (size_t)n, " %s %lld", row->key.pattern,
			 (long long)row->key.nr_dirty);
}

/* One line of the table: the rows of one case. */
static int print_case(const struct cost_result *r, const char *test_case, bool fitted,
		      struct table *t)
{
	struct cost_errors e;
	char number[OUT_TEXT], name[128];
	int err = cost_errors_of(r, test_case, fitted, &e);

	if (err || !e.n)
		return err;
	const struct cost_row *worst = &r->rows[e.worst];

	put_row_name(name, sizeof(name), r, worst);
	table_cell(t, "%s", test_case);
	table_cell(t, fitted ? "fitted" : "predicted");
	table_cell(t, "%s", out_u64(number, e.n));
	table_cell(t, "%.2f %%", 100 * e.median);
	table_cell(t, "%.2f %%", 100 * e.p95);
	table_cell(t, "%s", name);
	table_cell(t, "%s", out_u64(number, llround(worst->predicted)));
	table_cell(t, "%s", out_u64(number, llround(worst->measured)));
	table_cell(t, "%+.2f %%", 100 * cost_row_error(worst));
	return 0;
}

/* Whether the case of configuration @config has come up before. */
static bool seen_before(const struct matrix_file *f, size_t config)
{
	for (size_t i = 0; i < config; i++)
		if (f->configs[i].test_case == f->configs[config].test_case)
			return true;
	return false;
}

static int print_cases(const struct cost_result *r, FILE *to)
{
	static const char *const headings[] = {"case",
					       "prices",
					       "rows",
					       "median",
					       "95 % below",
					       "worst row",
					       "predicted (insns)",
					       "measured",
					       "error"};
	struct table *t = table_create("llrrrlrrr");
	int err = 0;

	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < sizeof(headings) / sizeof(*headings); i++)
		table_cell(t, "%s", headings[i]);
	for (int fitted = 1; fitted >= 0; fitted--)
		for (size_t c = 0; c < r->file->n_configs && !err; c++)
			if (!seen_before(r->file, c))
				err = print_case(r, r->file->configs[c].test_case, fitted, t);
	err = err ? err : table_print(t, to);
	table_free(t);
	return err;
}

/* ---- the worst rows ---- */

static int by_error(const void *a, const void *b)
{
	const struct cost_row *const *x = a, *const *y = b;
	double ex = fabs(cost_row_error(*x)), ey = fabs(cost_row_error(*y));

	return ex != ey ? (ex < ey) - (ex > ey)
			: ((*x)->line > (*y)->line) - ((*x)->line < (*y)->line);
}

/* What the row's prediction is made of, dearest first. */
static void print_parts(const struct cost_result *r, const struct cost_row *row, FILE *to)
{
	bool done[N_COUNTS] = {false};

	for (int k = 0; k < TOP_COUNTS; k++) {
		double dearest = 0;
		int which = -1;

		for (uint16_t c = 0; c < N_COUNTS; c++) {
			double cost = row->counts[c] *
				      ldexp((double)profile_price(r->profile, c), -PRICE_SHIFT);

			if (!done[c] && cost > dearest) {
				dearest = cost;
				which = c;
			}
		}
		if (which < 0)
			break;
		done[which] = true;
		fprintf(to, "%s %.0f * %s = %.0f", k ? "," : ":", row->counts[which],
			model_vocabulary.counts[which], dearest);
	}
	fputc('\n', to);
}

static int print_worst(const struct cost_result *r, FILE *to)
{
	const struct cost_row **rows = malloc((r->n_rows + 1) * sizeof(*rows));
	size_t n = 0;

	if (!rows)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < r->n_rows; i++)
		if (!r->rows[i].fitted)
			rows[n++] = &r->rows[i];
	qsort(rows, n, sizeof(*rows), by_error);
	if (n)
		fputs("\nPredicted rows that are off most, and their largest parts\n", to);
	for (size_t i = 0; i < n && i < WORST_ROWS; i++) {
		char name[128];

		put_row_name(name, sizeof(name), r, rows[i]);
		fprintf(to, "  %+6.1f %%  %s %s (line %lu), %.0f", 100 * cost_row_error(rows[i]),
			r->file->configs[rows[i]->config].test_case, name, rows[i]->line,
			rows[i]->measured);
		print_parts(r, rows[i], to);
	}
	free(rows);
	return 0;
}

/* ---- crossovers ---- */

static int print_crossovers(const struct cost_result *r, FILE *to)
{
	struct table *t = table_create("llrrrr");
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	fputs("\nWhere the walk becomes cheaper than the mask, even pattern\n", to);
	table_cell(t, "mmu");
	table_cell(t, "guest pte");
	table_cell(t, "slot pages");
	table_cell(t, "predicted (dirty pages)");
	table_cell(t, "measured");
	table_cell(t, "error");
	for (size_t i = 0; i < r->n_crossovers; i++) {
		const struct cost_crossover *x = &r->crossovers[i];
		const struct matrix_config *c = &r->file->configs[x->mask];
		char number[OUT_TEXT];

		table_cell(t, "%s", c->mmu);
		table_cell(t, "%s", c->pte);
		table_cell(t, "%s", out_u64(number, c->slot_pages));
		table_cell(t, "%s",
			   isfinite(x->from_model) ? out_u64(number, llround(x->from_model))
						   : "none");
		table_cell(t, "%s", out_u64(number, llround(x->from_file)));
		table_cell(t, "%+.2f %%", 100 * (x->from_model / x->from_file - 1));
	}
	err = table_print(t, to);
	table_free(t);
	return err;
}

int cost_print(const struct cost_result *r, FILE *to)
{
	const struct cost_errors *e = &r->predicted;
	int err;

	fprintf(to, "Costs in host instructions, prices of %s\n", profile_name(r->profile));
	err = print_cases(r, to);
	err = err ? err : print_worst(r, to);
	if (r->n_crossovers)
		err = err ? err : print_crossovers(r, to);
	if (r->n_passed_over)
		fprintf(to, "\n%zu rows of phases that the recipe passes over\n", r->n_passed_over);
	if (r->fitted.n)
		fprintf(to, "\n%zu rows fitted: median error %.2f %%, %.1f %% within 10 %%",
			r->fitted.n, 100 * r->fitted.median, 100 * r->fitted.within);
	fprintf(to, "\n%s: %zu rows predicted", r->pass ? "passed" : "FAILED", e->n);
	if (e->n)
		fprintf(to,
			": median error %.2f %% (bound %g %%), %.1f %% within 10 %% (bound %g %%)",
			100 * e->median, r->recipe->median, 100 * e->within, r->recipe->within10);
	else
		fputs(", cannot tell", to);
	if (r->n_crossovers)
		fprintf(to, "; crossovers within %.2f %% (bound %.0f %%)", 100 * r->worst_crossover,
			100 * COST_CROSSOVER_BOUND);
	fputc('\n', to);
	return err;
}

/* ---- JSON ---- */

static json_t *json_row(const struct cost_result *r, const struct cost_row *row)
{
	const struct matrix_config *c = &r->file->configs[row->config];
	json_t *o = json_object();

	json_object_set_new(o, "case", json_string(c->test_case));
	json_object_set_new(o, "mmu", json_string(c->mmu));
	json_object_set_new(o, "policy", json_string(c->dirty));
	json_object_set_new(o, "guest_pte", json_string(c->pte));
	json_object_set_new(o, "slot_pages", json_u64(c->slot_pages));
	json_object_set_new(o, "phase", json_string(row->key.phase));
	json_object_set_new(o, "pattern", json_string(row->key.pattern));
	json_object_set_new(o, "nr_dirty", json_integer(row->key.nr_dirty));
	json_object_set_new(o, "fitted", json_boolean(row->fitted));
	json_object_set_new(o, "predicted_insns", json_real(row->predicted));
	json_object_set_new(o, "measured_insns", json_real(row->measured));
	json_object_set_new(o, "error_percent", json_real(100 * cost_row_error(row)));
	json_object_set_new(o, "line", json_u64(row->line));
	return o;
}

static json_t *json_crossover(const struct cost_result *r, const struct cost_crossover *x)
{
	const struct matrix_config *c = &r->file->configs[x->mask];
	json_t *o = json_object();

	json_object_set_new(o, "mmu", json_string(c->mmu));
	json_object_set_new(o, "guest_pte", json_string(c->pte));
	json_object_set_new(o, "slot_pages", json_u64(c->slot_pages));
	json_object_set_new(o, "predicted_pages",
			    isfinite(x->from_model) ? json_real(x->from_model) : json_null());
	json_object_set_new(o, "measured_pages", json_real(x->from_file));
	return o;
}

static json_t *json_errors(const struct cost_errors *e)
{
	json_t *o = json_object();

	json_object_set_new(o, "rows", json_u64(e->n));
	json_object_set_new(o, "median_error_percent", json_real(100 * e->median));
	json_object_set_new(o, "p95_error_percent", json_real(100 * e->p95));
	json_object_set_new(o, "within_10_percent", json_real(100 * e->within));
	return o;
}

json_t *cost_json(const struct cost_result *r)
{
	json_t *o = json_object(), *rows = json_array(), *crossovers = json_array();

	json_object_set_new(o, "file", json_string(r->file->path));
	json_object_set_new(o, "pass", json_boolean(r->pass));
	json_object_set_new(o, "fitted", json_errors(&r->fitted));
	json_object_set_new(o, "predicted", json_errors(&r->predicted));
	for (size_t i = 0; i < r->n_crossovers; i++)
		json_array_append_new(crossovers, json_crossover(r, &r->crossovers[i]));
	json_object_set_new(o, "crossovers", crossovers);
	for (size_t i = 0; i < r->n_rows; i++)
		json_array_append_new(rows, json_row(r, &r->rows[i]));
	json_object_set_new(o, "rows", rows);
	return o;
}
