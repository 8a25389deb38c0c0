// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "analysis/matrix.h"
#include "analysis/output.h"

/* The key of a difference as the file's first columns have it. */
static void say_key(char *out, size_t len, const struct matrix_result *r,
		    const struct matrix_difference *d)
{
	const struct matrix_config *c = &r->file->configs[d->config];
	char nr[24] = "", round[24] = "", occurrence[40] = "";

	if (d->key.nr_dirty >= 0)
		snprintf(nr, sizeof(nr), "%lld", (long long)d->key.nr_dirty);
	if (d->key.round >= 0)
		snprintf(round, sizeof(round), "%lld", (long long)d->key.round);
	if (d->key.occurrence > 1)
		snprintf(occurrence, sizeof(occurrence), " (occurrence %llu)",
			 (unsigned long long)d->key.occurrence);
	snprintf(out, len, "%s,%s,%s,%llu,%s,%s,%s,%s,%s%s", c->test_case, c->mmu, c->mode,
		 (unsigned long long)c->slot_pages, c->pte, d->key.pattern, nr, round, d->key.phase,
		 occurrence);
}

static void print_tally(struct table *t, const struct matrix_tally *y)
{
	char n[OUT_TEXT];

	table_cell(t, "%s", y->test_case);
	table_cell(t, "%s", y->mmu);
	table_cell(t, "%s", y->quantity);
	table_cell(t, "%s", out_u64(n, y->equal));
	table_cell(t, "%s", out_u64(n, y->different));
	table_cell(t, "%s", out_u64(n, y->not_modelled));
	table_cell(t, "%s", out_u64(n, y->noise));
}

static int print_tallies(const struct matrix_result *r, FILE *to)
{
	struct table *t = table_create("lllrrrr");
	struct matrix_tally total = r->total;
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	table_cell(t, "case");
	table_cell(t, "mmu");
	table_cell(t, "quantity");
	table_cell(t, "equal rows");
	table_cell(t, "different");
	table_cell(t, "not modelled");
	table_cell(t, "not compared");
	for (size_t i = 0; i < r->n_tallies; i++)
		print_tally(t, &r->tallies[i]);
	total.test_case = "all";
	total.mmu = total.quantity = "";
	print_tally(t, &total);
	err = table_print(t, to);
	table_free(t);
	return err;
}

static void print_left_out(const struct matrix_result *r, FILE *to)
{
	char n[OUT_TEXT];
	bool any = false;

	if (r->n_left_out)
		fputs("\nNot compared:\n", to);
	for (size_t i = 0; i < r->n_left_out; i++) {
		fprintf(to, "  %s: %s rows", r->left_out[i].quantity,
			out_u64(n, r->left_out[i].rows));
		fprintf(to, " (%s)\n", r->left_out[i].why);
	}
	for (size_t i = 0; i < MATRIX_TIMED; i++) {
		if (!r->unrecorded[i])
			continue;
		if (!any)
			fputs("\nPredicted, and nowhere in the file:\n", to);
		any = true;
		fprintf(to, "  %s: %s phases\n", matrix_timer_name(i),
			out_u64(n, r->unrecorded[i]));
	}
}

/* Whether configuration @i is the first of its kernel, which its kvm_mode names, and preset. */
static bool first_of_preset(const struct matrix_file *f, size_t i)
{
	const char *kernel = f->configs[i].kernel, *preset = matrix_preset(&f->configs[i], NULL);

	for (size_t j = 0; kernel && j < i; j++) {
		if (f->configs[j].kernel == kernel && matrix_preset(&f->configs[j], NULL) == preset)
			return false;
	}
	return kernel && preset;
}

static void print_presets(const struct matrix_result *r, FILE *to)
{
	const struct matrix_file *f = r->file;
	bool any = r->kernel;

	if (r->kernel)
		fprintf(to, "Kernel %s, presets %s and %s.\n", r->kernel, r->preset[0],
			r->preset[1]);
	for (size_t i = 0; i < f->n_configs; i++) {
		if (!first_of_preset(f, i))
			continue;
		any = true;
		fprintf(to, "Kernel %s, which kvm_mode names: preset %s.\n", f->configs[i].kernel,
			matrix_preset(&f->configs[i], NULL));
	}
	if (any)
		fputc('\n', to);
}

int matrix_print(const struct matrix_result *r, FILE *to)
{
	char n[OUT_TEXT];
	int err;

	print_presets(r, to);
	err = print_tallies(r, to);
	if (r->n_differences)
		fputs("\nDifferent, the first ten of each case and MMU:\n", to);
	for (size_t i = 0; i < r->n_differences; i++) {
		const struct matrix_difference *d = &r->differences[i];
		char key[256];

		say_key(key, sizeof(key), r, d);
		fprintf(to, "  %s %s%s: predicted %.0f, measured %.0f", key, d->quantity,
			d->abs_after ? " after the phase" : "", d->predicted, d->measured);
		if (d->added)
			fprintf(to, ", %lld of the prediction are the timer's",
				(long long)d->added);
		if (d->line)
			fprintf(to, " (line %lu)\n", d->line);
		else
			fputs(" (no row)\n", to);
	}
	if (r->n_reasons)
		fputs("\nNot modelled, or not to be found:\n", to);
	for (size_t i = 0; i < r->n_reasons; i++)
		fprintf(to, "  %s: %s rows\n", r->reasons[i].text, out_u64(n, r->reasons[i].rows));
	if (r->n_apart)
		fputs("\nCounted by one side only, and not compared:\n", to);
	for (size_t i = 0; i < r->n_apart; i++)
		fprintf(to, "  %s: %s rows\n", r->apart[i].text, out_u64(n, r->apart[i].rows));
	print_left_out(r, to);
	if (r->cost_rows)
		fprintf(to, "\n%s rows of costs in instructions: see --cost.\n",
			out_u64(n, r->cost_rows));
	fprintf(to, "\n%s: %s rows equal, ",
		r->pass						     ? "passed"
		: r->total.equal || r->total.different || r->missing ? "FAILED"
								     : "FAILED: nothing compared",
		out_u64(n, r->total.equal));
	fprintf(to, "%s different, ", out_u64(n, r->total.different));
	fprintf(to, "%s not modelled", out_u64(n, r->total.not_modelled));
	fprintf(to, " (%s of them on a case and an MMU that are)", out_u64(n, r->missing));
	fprintf(to, ", %s not compared\n", out_u64(n, r->total.noise));
	return err;
}

/* ---- JSON ---- */

static void set_tally(json_t *o, const struct matrix_tally *t)
{
	json_object_set_new(o, "equal", json_u64(t->equal));
	json_object_set_new(o, "different", json_u64(t->different));
	json_object_set_new(o, "not_modelled", json_u64(t->not_modelled));
	json_object_set_new(o, "not_compared", json_u64(t->noise));
}

static json_t *json_difference(const struct matrix_result *r, const struct matrix_difference *d)
{
	const struct matrix_config *c = &r->file->configs[d->config];
	json_t *o = json_object();

	json_object_set_new(o, "case", json_string(c->test_case));
	json_object_set_new(o, "mmu", json_string(c->mmu));
	json_object_set_new(o, "kvm_mode", json_string(c->mode));
	json_object_set_new(o, "slot_pages", json_u64(c->slot_pages));
	json_object_set_new(o, "guest_pte", json_string(c->pte));
	json_object_set_new(o, "pattern", json_string(d->key.pattern));
	json_object_set_new(o, "nr_dirty",
			    d->key.nr_dirty < 0 ? json_null() : json_integer(d->key.nr_dirty));
	json_object_set_new(o, "round",
			    d->key.round < 0 ? json_null() : json_integer(d->key.round));
	json_object_set_new(o, "phase", json_string(d->key.phase));
	json_object_set_new(o, "occurrence", json_u64(d->key.occurrence));
	json_object_set_new(o, "quantity", json_string(d->quantity));
	json_object_set_new(o, "abs_after", json_boolean(d->abs_after));
	json_object_set_new(o, "predicted", json_integer((json_int_t)d->predicted));
	json_object_set_new(o, "of_the_timer", json_integer((json_int_t)d->added));
	json_object_set_new(o, "measured", json_integer((json_int_t)d->measured));
	json_object_set_new(o, "line", d->line ? json_u64(d->line) : json_null());
	return o;
}

static json_t *json_left_out(const struct matrix_result *r)
{
	json_t *all = json_array();

	for (size_t i = 0; i < r->n_left_out; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "quantity", json_string(r->left_out[i].quantity));
		json_object_set_new(o, "why", json_string(r->left_out[i].why));
		json_object_set_new(o, "rows", json_u64(r->left_out[i].rows));
		json_array_append_new(all, o);
	}
	return all;
}

/* Another kernel than the model's own. */
static void set_kernel(json_t *o, const struct matrix_result *r)
{
	json_t *apart = json_array();

	json_object_set_new(o, "kernel", json_string(r->kernel));
	json_object_set_new(o, "presets", json_pack("[ss]", r->preset[0], r->preset[1]));
	for (size_t i = 0; i < r->n_apart; i++)
		json_array_append_new(apart, json_pack("{ss,sI}", "reason", r->apart[i].text,
						       "rows", (json_int_t)r->apart[i].rows));
	json_object_set_new(o, "on_one_side", apart);
}

static json_t *json_named_kernels(const struct matrix_file *f)
{
	json_t *all = json_array();

	for (size_t i = 0; i < f->n_configs; i++) {
		if (first_of_preset(f, i))
			json_array_append_new(all, json_pack("{ss,ss}", "kernel",
							     f->configs[i].kernel, "preset",
							     matrix_preset(&f->configs[i], NULL)));
	}
	return all;
}

json_t *matrix_json(const struct matrix_result *r)
{
	json_t *o = json_object(), *groups = json_array(), *differences = json_array();
	json_t *reasons = json_array(), *total = json_object(), *unrecorded = json_object();

	json_object_set_new(o, "file", json_string(r->file->path));
	json_object_set_new(o, "pass", json_boolean(r->pass));
	set_tally(total, &r->total);
	json_object_set_new(total, "missing", json_u64(r->missing));
	json_object_set_new(total, "cost_rows", json_u64(r->cost_rows));
	json_object_set_new(o, "total", total);
	for (size_t i = 0; i < r->n_tallies; i++) {
		json_t *g = json_object();

		json_object_set_new(g, "case", json_string(r->tallies[i].test_case));
		json_object_set_new(g, "mmu", json_string(r->tallies[i].mmu));
		json_object_set_new(g, "quantity", json_string(r->tallies[i].quantity));
		set_tally(g, &r->tallies[i]);
		json_array_append_new(groups, g);
	}
	json_object_set_new(o, "groups", groups);
	for (size_t i = 0; i < r->n_differences; i++)
		json_array_append_new(differences, json_difference(r, &r->differences[i]));
	json_object_set_new(o, "differences", differences);
	for (size_t i = 0; i < r->n_reasons; i++) {
		json_t *g = json_object();

		json_object_set_new(g, "reason", json_string(r->reasons[i].text));
		json_object_set_new(g, "rows", json_u64(r->reasons[i].rows));
		json_array_append_new(reasons, g);
	}
	json_object_set_new(o, "not_modelled", reasons);
	json_object_set_new(o, "not_compared", json_left_out(r));
	for (size_t i = 0; i < MATRIX_TIMED; i++) {
		if (r->unrecorded[i])
			json_object_set_new(unrecorded, matrix_timer_name(i),
					    json_u64(r->unrecorded[i]));
	}
	json_object_set_new(o, "unrecorded", unrecorded);
	json_object_set_new(o, "named_kernels", json_named_kernels(r->file));
	if (r->kernel)
		set_kernel(o, r);
	return o;
}
