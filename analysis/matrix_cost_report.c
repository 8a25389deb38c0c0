// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>

#include "analysis/matrix_cost.h"
#include "analysis/output.h"

static double percent(double predicted, double measured)
{
	return 100 * (predicted / measured - 1);
}

/* One line of the table: the rows of one configuration, fitted ones or the others. */
static void print_group(const struct cost_result *r, size_t config, bool fitted, struct table *t)
{
	const struct matrix_config *c = &r->file->configs[config];
	const struct cost_row *worst = NULL;
	char number[OUT_TEXT];
	unsigned n = 0;

	for (size_t i = 0; i < r->n_rows; i++) {
		const struct cost_row *row = &r->rows[i];

		if (row->config != config || row->fitted != fitted)
			continue;
		n++;
		if (!worst || fabs(percent(row->predicted, row->measured)) >
				      fabs(percent(worst->predicted, worst->measured)))
			worst = row;
	}
	if (!worst)
		return;
	table_cell(t, "%s", c->mmu);
	table_cell(t, "%s", c->dirty);
	table_cell(t, "%s", c->pte);
	table_cell(t, "%s", out_u64(number, c->slot_pages));
	table_cell(t, fitted ? "<= %d" : "> %d", COST_FITTED_MAX);
	table_cell(t, "%s", !r->fit ? "profile" : fitted ? "fitted" : "predicted");
	table_cell(t, "%u", n);
	table_cell(t, "%s %s %lld", worst->key.phase, worst->key.pattern,
		   (long long)worst->key.nr_dirty);
	table_cell(t, "%s", out_u64(number, llround(worst->predicted)));
	table_cell(t, "%s", out_u64(number, llround(worst->measured)));
	table_cell(t, "%+.2f %%", percent(worst->predicted, worst->measured));
}

static int print_rows(const struct cost_result *r, FILE *to)
{
	struct table *t = table_create("lllrllrlrrr");
	static const char *const headings[] = {
		"mmu",	"policy",    "guest pte",	  "slot pages", "dirty pages", "prices",
		"rows", "worst row", "predicted (insns)", "measured",	"error"};
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < sizeof(headings) / sizeof(*headings); i++)
		table_cell(t, "%s", headings[i]);
	for (size_t c = 0; c < r->file->n_configs; c++) {
		print_group(r, c, true, t);
		print_group(r, c, false, t);
	}
	err = table_print(t, to);
	table_free(t);
	return err;
}

static int print_crossovers(const struct cost_result *r, FILE *to)
{
	struct table *t = table_create("llrrrr");
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
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
		table_cell(t, "%+.2f %%", percent(x->from_model, x->from_file));
	}
	err = table_print(t, to);
	table_free(t);
	return err;
}

int cost_print(const struct cost_result *r, FILE *to)
{
	int err;

	fputs("GET_DIRTY_LOG, host instructions\n", to);
	err = print_rows(r, to);
	fputs("\nWhere the walk becomes cheaper than the mask, even pattern\n", to);
	if (r->n_crossovers)
		err = err ? err : print_crossovers(r, to);
	else
		fputs("cannot tell: in this file the two curves do not cross\n", to);
	if (r->fit) {
		fputs("\nPrices, host instructions\n", to);
		for (size_t i = 0; i < r->n_prices; i++) {
			const struct cost_price *p = &r->prices[i];

			fprintf(to, "  %10.3f  %s", p->price, model_vocabulary.counts[p->count]);
			for (size_t k = 0; k < p->n_with; k++)
				fprintf(to, " + %s", model_vocabulary.counts[p->with[k]]);
			fputc('\n', to);
		}
	}
	fprintf(to, "\n%s: worst error %.2f %% of what was not fitted, bound %.0f %%\n",
		r->pass ? "passed" : "FAILED", 100 * r->worst, 100 * COST_BOUND);
	return err;
}

static int by_error(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* How well the prices of a profile give back what they were fitted on. */
static void print_fit(const struct cost_result *r, FILE *to)
{
	double *e = malloc(r->n_rows * sizeof(*e));

	if (!e)
		return;
	for (size_t i = 0; i < r->n_rows; i++)
		e[i] = fabs(percent(r->rows[i].predicted, r->rows[i].measured));
	qsort(e, r->n_rows, sizeof(*e), by_error);
	fprintf(to, "; %zu rows, error: median %.2f %%, nine of ten below %.2f %%, worst %.1f %%\n",
		r->n_rows, e[r->n_rows / 2], e[r->n_rows * 9 / 10], e[r->n_rows - 1]);
	free(e);
}

static const char *source(const struct cost_price *p, bool only_fitted)
{
	return only_fitted		? "fitted: all phases that have it, nr_dirty <= 200"
	       : p->count == COUNT_insn ? "by definition"
	       : p->fixed		? "fitted: GET_DIRTY_LOG of case B, nr_dirty <= 200"
					: "fitted: all phases of cases A, B and N";
}

static void print_members(const struct cost_price *p, FILE *to)
{
	fprintf(to, " %s", model_vocabulary.counts[p->count]);
	for (size_t k = 0; k < p->n_with; k++)
		fprintf(to, " %s", model_vocabulary.counts[p->with[k]]);
}

/* The counts whose prices are known only together, first of them price @first. */
static void print_price_group(const struct cost_result *r, size_t first, FILE *to)
{
	size_t members = 0;

	for (size_t j = 0; j < r->n_prices; j++)
		members += r->prices[j].group == first ? 1 + r->prices[j].n_with : 0;
	if (members < 2)
		return;
	fprintf(to, "with_%s =", model_vocabulary.counts[r->prices[first].count]);
	for (size_t j = 0; j < r->n_prices; j++) {
		if (r->prices[j].group == first)
			print_members(&r->prices[j], to);
	}
	fputc('\n', to);
}

static void print_prediction(const struct cost_result *r, FILE *to)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_rows; i++)
		n += !r->rows[i].fitted;
	if (n)
		fprintf(to, "; %zu of them not fitted: worst %.1f %%\n", n, 100 * r->worst);
}

void cost_print_prices(const struct cost_result *r, bool only_fitted, FILE *to)
{
	print_fit(r, to);
	print_prediction(r, to);
	fputs("[price]\n", to);
	for (size_t i = 0; i < r->n_prices; i++)
		if (!only_fitted || !r->prices[i].fixed)
			fprintf(to, "%s = %.6f\n", model_vocabulary.counts[r->prices[i].count],
				r->prices[i].price);
	fputs("\n[source]\n", to);
	for (size_t i = 0; i < r->n_prices; i++)
		if (!only_fitted || !r->prices[i].fixed)
			fprintf(to, "%s = %s\n", model_vocabulary.counts[r->prices[i].count],
				source(&r->prices[i], only_fitted));
	fputs("\n[group]\n", to);
	for (size_t i = 0; i < r->n_prices; i++)
		print_price_group(r, i, to);
}

/* ---- JSON ---- */

static json_t *json_row(const struct cost_result *r, const struct cost_row *row)
{
	const struct matrix_config *c = &r->file->configs[row->config];
	json_t *o = json_object();

	json_object_set_new(o, "mmu", json_string(c->mmu));
	json_object_set_new(o, "policy", json_string(c->dirty));
	json_object_set_new(o, "guest_pte", json_string(c->pte));
	json_object_set_new(o, "slot_pages", json_u64(c->slot_pages));
	json_object_set_new(o, "phase", json_string(row->key.phase));
	json_object_set_new(o, "pattern", json_string(row->key.pattern));
	json_object_set_new(o, "nr_dirty", json_integer(row->key.nr_dirty));
	json_object_set_new(o, "fitted", json_boolean(r->fit && row->fitted));
	json_object_set_new(o, "predicted_insns", json_real(row->predicted));
	json_object_set_new(o, "measured_insns", json_real(row->measured));
	json_object_set_new(o, "error_percent", json_real(percent(row->predicted, row->measured)));
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

json_t *cost_json(const struct cost_result *r)
{
	json_t *o = json_object(), *rows = json_array(), *crossovers = json_array();
	json_t *prices = json_object();

	json_object_set_new(o, "file", json_string(r->file->path));
	json_object_set_new(o, "pass", json_boolean(r->pass));
	json_object_set_new(o, "worst_error_percent",
			    isfinite(r->worst) ? json_real(100 * r->worst) : json_null());
	for (size_t i = 0; i < r->n_crossovers; i++)
		json_array_append_new(crossovers, json_crossover(r, &r->crossovers[i]));
	json_object_set_new(o, "crossovers", crossovers);
	for (size_t i = 0; i < r->n_prices; i++)
		json_object_set_new(prices, model_vocabulary.counts[r->prices[i].count],
				    json_real(r->prices[i].price));
	json_object_set_new(o, "prices_insns", prices);
	for (size_t i = 0; i < r->n_rows; i++)
		json_array_append_new(rows, json_row(r, &r->rows[i]));
	json_object_set_new(o, "rows", rows);
	return o;
}
