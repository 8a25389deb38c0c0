// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/gain.h"

#include <math.h>
#include <stdio.h>

#include "analysis/output.h"

static const char *const mmus[] = {"shadow", "nested"};

static const char *verdict(const struct gain_block *b)
{
	if (b->kind == GAIN_TIME)
		return "identified";
	return b->inside ? "inside" : *b->miss ? "MISSED" : "FAILED";
}

/* ---- tables ---- */

static void heads(struct table *t, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		table_cell(t, "%s", names[i]);
}
#define HEADS(t, names) heads(t, names, sizeof(names) / sizeof(*(names)))

static int finish(struct table *t)
{
	int err = table_print(t, stdout);

	table_free(t);
	return err;
}

static int print_counts(const struct gain *g)
{
	static const char *const names[] = {"count", "price", "fewer: shadow", "nested"};
	struct table *t = table_create("lrrr");

	if (!t)
		return KVMSIM_ENOMEM;
	printf("%s: what an access of a device is spared from %s to %s on %s, in counts of the "
	       "model and\ninstructions:\n\n",
	       g->name, g->preset[0], g->preset[1], g->cpu);
	HEADS(t, names);
	for (int c = 0; c < N_COUNTS; c++) {
		if (!g->price[c] || (fabs(g->fewer[0][c]) < 0.005 && fabs(g->fewer[1][c]) < 0.005))
			continue;
		table_cell(t, "%s", model_vocabulary.counts[c]);
		table_cell(t, "%g", g->price[c]);
		table_cell(t, "%.2f", g->fewer[0][c]);
		table_cell(t, "%.2f", g->fewer[1][c]);
	}
	table_cell(t, "instructions");
	table_cell(t, "%s", "");
	table_cell(t, "%.0f", g->saved_insns[0]);
	table_cell(t, "%.0f", g->saved_insns[1]);
	return finish(t);
}

static int print_gains(const struct gain *g)
{
	static const char *const names[] = {"rows", "mmu",   "runs",	 "measured",
					    "95%",  "model", "interval", "measured is"};
	struct table *t = table_create("llrrrrrl");

	if (!t)
		return KVMSIM_ENOMEM;
	printf("\nGain in transactions per second; nothing is fitted to these rows. The model's "
	       "interval: %g to %g\naccesses per transaction and guest, %g to %g cycles per "
	       "instruction, %g to %g GHz.\n\n",
	       g->accesses.least, g->accesses.most, g->insn_cycles.least, g->insn_cycles.most,
	       g->hz.least / 1e9, g->hz.most / 1e9);
	HEADS(t, names);
	for (size_t i = 0; i < g->n_blocks; i++) {
		const struct gain_block *b = &g->block[i];

		if (b->kind == GAIN_TIME)
			continue;
		table_cell(t, "%s", b->name);
		table_cell(t, "%s", mmus[b->nested]);
		table_cell(t, "%zu, %zu", b->n_before, b->n_after);
		table_cell(t, "%+.2f%%", 100 * b->gain.value);
		table_cell(t, "%+.2f..%+.2f%%", 100 * b->gain.lo, 100 * b->gain.hi);
		table_cell(t, "%+.2f%%", 100 * b->predicted.middle);
		table_cell(t, "%+.2f..%+.2f%%", 100 * b->predicted.least, 100 * b->predicted.most);
		table_cell(t, "%s", verdict(b));
	}
	for (size_t i = 0; i < g->n_others; i++) {
		const struct gain_other *o = &g->other[i];

		table_cell(t, "%s", o->name);
		table_cell(t, "%s", "");
		table_cell(t, "%s", "");
		table_cell(t, "%s", "");
		table_cell(t, "%s", "");
		table_cell(t, "%+.2f%%", 100 * o->gain.middle);
		table_cell(t, "%+.2f..%+.2f%%", 100 * o->gain.least, 100 * o->gain.most);
		table_cell(t, "predicted");
	}
	return finish(t);
}

static int print_implied(const struct gain *g)
{
	static const char *const names[] = {"rows",	   "saved",	"95%",	     "implied",
					    "95% of runs", "any price", "per one of"};
	struct table *t = table_create("lrrrrrl");

	if (!t)
		return KVMSIM_ENOMEM;
	printf("\nAccesses of devices that the rows imply: identification, at %g cycles per "
	       "instruction and %g GHz,\nand at any price of the interval.\n\n",
	       g->insn_cycles.middle, g->hz.middle / 1e9);
	HEADS(t, names);
	for (size_t i = 0; i < g->n_blocks; i++) {
		const struct gain_block *b = &g->block[i];
		bool rate = b->kind == GAIN_RATE;
		double unit = rate ? 1e6 : 1;

		table_cell(t, "%s", b->name);
		table_cell(t, "%.*f %s", rate ? 1 : 2, b->saved.value * unit, rate ? "us" : "s");
		table_cell(t, "%.*f..%.*f", rate ? 1 : 2, b->saved.lo * unit, rate ? 1 : 2,
			   b->saved.hi * unit);
		table_cell(t, "%.1f", b->implied.value);
		table_cell(t, "%.1f..%.1f", b->implied.lo, b->implied.hi);
		table_cell(t, "%.1f..%.1f", b->implied_all.least, b->implied_all.most);
		table_cell(t, "%s", rate ? "transaction and guest" : "second");
	}
	return finish(t);
}

static void print_rest(const struct gain *g)
{
	for (size_t i = 0; i < g->n_zaps; i++) {
		const struct gain_zap *z = &g->zap[i];

		printf("\n%s: %.0f us imply %.0f to %.0f shadow pages looked at (middle %.0f), of "
		       "at most %.0f: %s\n",
		       z->name, z->seconds * 1e6, z->pages.least, z->pages.most, z->pages.middle,
		       z->most, z->pages.least <= z->most ? "possible" : "FAILED");
	}
	printf("\n");
	for (size_t i = 0; i < g->n_agrees; i++) {
		const struct gain_agree *a = &g->agree[i];

		printf("%s: %s and %s: %.1f accesses apart, +- %.1f by their runs: %s%s%s\n",
		       a->name, a->a, a->b, a->difference, a->half,
		       a->agree ? "one number can be behind both" : "no one number is behind both",
		       a->agree == a->expect ? "" : ": FAILED, expected otherwise: ",
		       a->agree == a->expect ? "" : a->why);
	}
	for (size_t i = 0; i < g->n_blocks; i++)
		if (*g->block[i].miss)
			printf("known miss, %s: %s\n", g->block[i].name, g->block[i].miss);
	printf("\n");
	for (size_t i = 0; i < g->n_notes; i++)
		printf("%s: %s\n", g->note[i].key, g->note[i].words);
	printf("\n%s: %s\n", g->name, g->pass ? "pass" : "FAILED");
}

int gain_print(const struct gain *g)
{
	int err = print_counts(g);

	err = err ? err : print_gains(g);
	err = err ? err : print_implied(g);
	if (!err)
		print_rest(g);
	return err;
}

/* ---- for programs ---- */

void gain_csv(const struct gain *g)
{
	static const char *const names[] = {
		"file",	       "rows",		 "mmu",		 "measured_gain", "measured_lo",
		"measured_hi", "predicted_gain", "predicted_lo", "predicted_hi",  "implied",
		"implied_lo",  "implied_hi",	 "any_price_lo", "any_price_hi",  "verdict"};
	struct csv_out c = {.to = stdout};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		csv_text(&c, names[i]);
	csv_end_row(&c);
	for (size_t i = 0; i < g->n_blocks; i++) {
		const struct gain_block *b = &g->block[i];
		const double v[] = {b->gain.value,	  b->gain.lo,	      b->gain.hi,
				    b->predicted.middle,  b->predicted.least, b->predicted.most,
				    b->implied.value,	  b->implied.lo,      b->implied.hi,
				    b->implied_all.least, b->implied_all.most};

		csv_text(&c, g->name);
		csv_text(&c, b->name);
		csv_text(&c, mmus[b->nested]);
		for (size_t k = 0; k < sizeof(v) / sizeof(*v); k++)
			if (b->kind == GAIN_TIME && k >= 3 && k < 6)
				csv_text(&c, NULL);
			else
				csv_field(&c, "%.5f", v[k]);
		csv_text(&c, verdict(b));
		csv_end_row(&c);
	}
}

/* Cut to what is printed elsewhere, so that the last bits do not matter. */
static json_t *number(double v)
{
	return json_real(round(v * 65536) / 65536);
}

static json_t *range_json(double least, double middle, double most)
{
	json_t *o = json_object();

	json_object_set_new(o, "least", number(least));
	json_object_set_new(o, "middle", number(middle));
	json_object_set_new(o, "most", number(most));
	return o;
}

static json_t *estimate_json(const struct stats_estimate *e)
{
	return range_json(e->lo, e->value, e->hi);
}

json_t *gain_json(const struct gain *g)
{
	json_t *o = json_object(), *blocks = json_array(), *agrees = json_array(),
	       *others = json_array(), *zaps = json_array(), *saved = json_object();

	for (size_t i = 0; i < g->n_blocks; i++) {
		const struct gain_block *b = &g->block[i];
		json_t *e = json_object();

		json_object_set_new(e, "rows", json_string(b->name));
		json_object_set_new(e, "mmu", json_string(mmus[b->nested]));
		json_object_set_new(e, "measured_gain", estimate_json(&b->gain));
		if (b->kind == GAIN_RATE)
			json_object_set_new(e, "predicted_gain",
					    range_json(b->predicted.least, b->predicted.middle,
						       b->predicted.most));
		json_object_set_new(e, "implied_accesses", estimate_json(&b->implied));
		json_object_set_new(e, "implied_at_any_price",
				    range_json(b->implied_all.least, b->implied_all.middle,
					       b->implied_all.most));
		json_object_set_new(e, "verdict", json_string(verdict(b)));
		json_array_append_new(blocks, e);
	}
	for (size_t i = 0; i < g->n_agrees; i++) {
		const struct gain_agree *a = &g->agree[i];
		json_t *e = json_object();

		json_object_set_new(e, "name", json_string(a->name));
		json_object_set_new(e, "a", json_string(a->a));
		json_object_set_new(e, "b", json_string(a->b));
		json_object_set_new(e, "difference", number(a->difference));
		json_object_set_new(e, "half_width", number(a->half));
		json_object_set_new(e, "agree", json_boolean(a->agree));
		json_object_set_new(e, "expected", json_boolean(a->expect));
		json_array_append_new(agrees, e);
	}
	for (size_t i = 0; i < g->n_others; i++) {
		const struct gain_range *r = &g->other[i].gain;
		json_t *e = json_object();

		json_object_set_new(e, "name", json_string(g->other[i].name));
		json_object_set_new(e, "predicted_gain", range_json(r->least, r->middle, r->most));
		json_array_append_new(others, e);
	}
	for (size_t i = 0; i < g->n_zaps; i++) {
		const struct gain_range *r = &g->zap[i].pages;
		json_t *e = json_object();

		json_object_set_new(e, "name", json_string(g->zap[i].name));
		json_object_set_new(e, "implied_pages", range_json(r->least, r->middle, r->most));
		json_array_append_new(zaps, e);
	}
	json_object_set_new(o, "file", json_string(g->name));
	for (int nested = 0; nested < 2; nested++)
		json_object_set_new(saved, mmus[nested], number(g->saved_insns[nested]));
	json_object_set_new(o, "saved_instructions", saved);
	json_object_set_new(o, "blocks", blocks);
	json_object_set_new(o, "agreements", agrees);
	json_object_set_new(o, "predicted", others);
	json_object_set_new(o, "zaps", zaps);
	json_object_set_new(o, "pass", json_boolean(g->pass));
	return o;
}
