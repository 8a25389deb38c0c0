// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/matrix_cost.h"
#include "analysis/nnls.h"
#include "analysis/run.h"
#include "model/sim/profile.h"

static int out_of_memory(const struct matrix_select *sel)
{
	return kvmsim_err(sel->errors, KVMSIM_ENOMEM, "costs: out of memory");
}

/* ---- the rows ---- */

static bool is_cost_row(const struct matrix_file *f, const struct matrix_select *sel,
			const struct matrix_row *row)
{
	const struct matrix_config *c = &f->configs[row->config];

	return !strcmp(c->test_case, "B") && matrix_config_modelled(c) && c->dirty &&
	       c->pte_kind >= 0 && strcmp(c->mode, "stock") && matrix_selected(sel->mmus, c->mmu) &&
	       !strcmp(row->quantity, "insns_min") && !strncmp(row->key.phase, "get_", 4);
}

static int collect(const struct matrix_file *f, const struct matrix_select *sel,
		   struct cost_result *r)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_rows; i++)
		n += is_cost_row(f, sel, &f->rows[i]);
	if (!n)
		return kvmsim_err(sel->errors, KVMSIM_ENOENT,
				  "%s: no insns_min rows of case B's GET_DIRTY_LOG phases, "
				  "kvm_mode 0, 1 or 2, on an MMU that is modelled",
				  f->path);
	r->rows = calloc(n, sizeof(*r->rows));
	if (!r->rows)
		return out_of_memory(sel);
	for (size_t i = 0; i < f->n_rows; i++) {
		const struct matrix_row *row = &f->rows[i];

		if (is_cost_row(f, sel, row))
			r->rows[r->n_rows++] =
				(struct cost_row){.config = row->config,
						  .key = row->key,
						  .line = row->line,
						  .fitted = row->key.nr_dirty <= COST_FITTED_MAX,
						  .measured = row->value};
	}
	return 0;
}

/* ---- simulation ---- */

struct simulation {
	struct cost_result *r;
	size_t config;
	double cycles; /* of the last round's GET_DIRTY_LOG */
};

static int on_phase(void *ctx, const struct matrix_phase *p)
{
	struct simulation *s = ctx;

	if (run_interrupted)
		return KVMSIM_EINTR;
	if (p->round != MATRIX_NONE && !strcmp(p->name, "get_dirty_log"))
		s->cycles = (double)p->cycles;
	for (size_t i = 0; i < s->r->n_rows; i++) {
		struct cost_row *row = &s->r->rows[i];

		if (row->config != s->config || row->simulated ||
		    row->key.nr_dirty != p->nr_dirty || strcmp(row->key.phase, p->name) ||
		    strcmp(row->key.pattern, matrix_pattern_name(p->pattern)) ||
		    (row->key.round == MATRIX_NONE) != (p->round == MATRIX_NONE))
			continue;
		row->simulated = true;
		for (int c = 0; c < N_COUNTS; c++)
			row->counts[c] = (double)p->counts[c];
	}
	return 0;
}

static int run(struct simulation *s, const struct matrix_select *sel, const struct profile *profile,
	       const struct matrix_round *rounds, size_t n_rounds)
{
	const struct matrix_config *c = &s->r->file->configs[s->config];
	const struct matrix_opts o = {.test_case = c->test_case,
				      .mmu = (enum mmu_kind)c->mmu_kind,
				      .dirty = c->dirty,
				      .slot_pages = c->slot_pages,
				      .pte = (enum matrix_pte)c->pte_kind,
				      .rounds = rounds,
				      .n_rounds = n_rounds,
				      .profile = profile,
				      .check = sel->check,
				      .phase = on_phase,
				      .ctx = s,
				      .errors = sel->errors};

	return matrix_run(&o);
}

/* Runs each configuration once, with one round of every kind that its rows name. */
static int simulate_rows(struct cost_result *r, const struct matrix_select *sel)
{
	struct matrix_round *rounds = calloc(r->n_rows, sizeof(*rounds));
	int err = rounds ? 0 : out_of_memory(sel);

	for (size_t c = 0; c < r->file->n_configs && !err; c++) {
		struct simulation s = {.r = r, .config = c};
		size_t n = 0, here = 0;

		for (size_t i = 0; i < r->n_rows; i++) {
			const struct cost_row *row = &r->rows[i];
			int pattern = matrix_pattern_find(row->key.pattern);

			here += row->config == c;
			if (row->config == c && row->key.round != MATRIX_NONE && pattern >= 0)
				rounds[n++] = (struct matrix_round){(enum matrix_pattern)pattern,
								    row->key.nr_dirty, 1};
		}
		if (here)
			err = run(&s, sel, sel->profile, rounds, n);
	}
	free(rounds);
	for (size_t i = 0; i < r->n_rows && !err; i++) {
		if (!r->rows[i].simulated)
			err = kvmsim_err(sel->errors, KVMSIM_EPARSE,
					 "%s:%lu: case B has no phase %s of pattern %s",
					 r->file->path, r->rows[i].line, r->rows[i].key.phase,
					 r->rows[i].key.pattern);
	}
	return err;
}

/* ---- prices ---- */

/* Whether counts @a and @b come in one proportion in every fitted row. */
static bool proportional(const struct cost_result *r, int a, int b)
{
	double ratio = 0;

	for (size_t i = 0; i < r->n_rows; i++) {
		double x = r->rows[i].counts[a], y = r->rows[i].counts[b];

		if (!r->rows[i].fitted)
			continue;
		if ((x == 0) != (y == 0))
			return false;
		if (x == 0)
			continue;
		if (ratio == 0)
			ratio = y / x;
		else if (fabs(y / x - ratio) > 1e-12 * ratio)
			return false;
	}
	return ratio != 0;
}

/* The counts to be priced: of several that always come together, the first stands for all. */
static int columns(struct cost_result *r, const struct matrix_select *sel)
{
	r->prices = calloc(N_COUNTS, sizeof(*r->prices));
	if (!r->prices)
		return out_of_memory(sel);
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		struct cost_price *found = NULL;

		if (!proportional(r, c, c))
			continue; /* never charged */
		for (size_t j = 0; j < r->n_prices && !found; j++) {
			if (proportional(r, r->prices[j].count, c))
				found = &r->prices[j];
		}
		if (!found)
			r->prices[r->n_prices++].count = c;
		else if (found->n_with < sizeof(found->with) / sizeof(*found->with))
			found->with[found->n_with++] = c;
	}
	return 0;
}

static int fit_prices(struct cost_result *r, const struct matrix_select *sel)
{
	size_t n = r->n_prices, m = 0;
	double *a = calloc(r->n_rows * n + 1, sizeof(*a)), *b = calloc(r->n_rows, sizeof(*b));
	double *x = calloc(n + 1, sizeof(*x));
	int err = a && b && x ? 0 : out_of_memory(sel);

	for (size_t i = 0; i < r->n_rows && !err; i++) {
		const struct cost_row *row = &r->rows[i];

		if (!row->fitted)
			continue;
		for (size_t j = 0; j < n; j++)
			a[m * n + j] = row->counts[r->prices[j].count] / row->measured;
		b[m++] = (row->measured - COST_OVERHEAD) / row->measured;
	}
	if (!err && (!m || !n))
		err = kvmsim_err(sel->errors, KVMSIM_ENOENT,
				 "%s: no rows with nr_dirty <= %d to fit prices on", r->file->path,
				 COST_FITTED_MAX);
	if (!err) {
		err = nnls_solve(a, m, n, b, x, NULL);
		if (err)
			kvmsim_err(sel->errors, (enum kvmsim_error)err, "costs: the fit failed: %s",
				   kvmsim_strerror(err));
	}
	for (size_t j = 0; j < n && !err; j++)
		r->prices[j].price = x[j];
	free(a);
	free(b);
	free(x);
	return err;
}

/* What the profile asks for each count instead. */
static int take_profile_prices(struct cost_result *r, const struct matrix_select *sel)
{
	r->prices = calloc(N_COUNTS, sizeof(*r->prices));
	if (!r->prices)
		return out_of_memory(sel);
	for (uint16_t c = 0; c < N_COUNTS; c++)
		r->prices[r->n_prices++] = (struct cost_price){
			.count = c,
			.price = ldexp((double)profile_price(sel->profile, c), -PRICE_SHIFT)};
	return 0;
}

static double error_of(double predicted, double measured)
{
	return measured > 0 ? predicted / measured - 1 : INFINITY;
}

static void judge(struct cost_result *r, double error)
{
	if (fabs(error) > r->worst)
		r->worst = fabs(error);
}

static void predict(struct cost_result *r)
{
	for (size_t i = 0; i < r->n_rows; i++) {
		struct cost_row *row = &r->rows[i];

		row->predicted = COST_OVERHEAD;
		for (size_t j = 0; j < r->n_prices; j++)
			row->predicted += row->counts[r->prices[j].count] * r->prices[j].price;
		if (!row->fitted)
			judge(r, error_of(row->predicted, row->measured));
	}
}

/* ---- crossover ---- */

static const struct cost_row *find_round(const struct cost_result *r, size_t config, int64_t n)
{
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct cost_row *row = &r->rows[i];

		if (row->config == config && row->key.nr_dirty == n &&
		    row->key.round != MATRIX_NONE && !strcmp(row->key.pattern, "even"))
			return row;
	}
	return NULL;
}

/* Where the measured curves cross, linear between the numbers of pages that both have. */
static void cross_file(const struct cost_result *r, struct cost_crossover *x)
{
	double last_n = 0, last_d = 0;

	/* rows come in rising nr_dirty only if the file has them so: look for the next one */
	for (int64_t n = 0;;) {
		int64_t next = INT64_MAX;

		for (size_t i = 0; i < r->n_rows; i++) {
			const struct cost_row *row = &r->rows[i];

			if (row->config == x->mask && row->key.nr_dirty > n &&
			    row->key.nr_dirty < next && find_round(r, x->mask, row->key.nr_dirty) &&
			    find_round(r, x->walk, row->key.nr_dirty))
				next = row->key.nr_dirty;
		}
		if (next == INT64_MAX)
			return;
		n = next;
		double d =
			find_round(r, x->walk, n)->measured - find_round(r, x->mask, n)->measured;

		if (last_d > 0 && d <= 0) {
			x->measured = true;
			x->from_file = last_n + ((double)n - last_n) * last_d / (last_d - d);
			return;
		}
		last_n = (double)n;
		last_d = d;
	}
}

static int walk_minus_mask(struct cost_result *r, const struct matrix_select *sel,
			   const struct profile *profile, const struct cost_crossover *x, int64_t n,
			   double *out)
{
	const struct matrix_round one = {MATRIX_EVEN, n, 1};
	struct simulation walk = {.r = r, .config = x->walk}, mask = {.r = r, .config = x->mask};
	int err = run(&walk, sel, profile, &one, 1);

	err = err ? err : run(&mask, sel, profile, &one, 1);
	*out = walk.cycles - mask.cycles;
	return err;
}

static int cross_model(struct cost_result *r, const struct matrix_select *sel,
		       const struct profile *profile, struct cost_crossover *x)
{
	int64_t lo = 1, hi = (int64_t)r->file->configs[x->mask].slot_pages;
	double at_lo, at_hi;
	int err = walk_minus_mask(r, sel, profile, x, lo, &at_lo);

	err = err ? err : walk_minus_mask(r, sel, profile, x, hi, &at_hi);
	if (err)
		return err;
	if (at_lo <= 0 || at_hi > 0) { /* one policy is always the cheaper one */
		x->from_model = at_lo <= 0 ? (double)lo : INFINITY;
		return 0;
	}
	while (hi - lo > 1) {
		int64_t mid = lo + (hi - lo) / 2;
		double d;

		err = walk_minus_mask(r, sel, profile, x, mid, &d);
		if (err)
			return err;
		if (d > 0) {
			lo = mid;
			at_lo = d;
		} else {
			hi = mid;
			at_hi = d;
		}
	}
	x->from_model = (double)lo + at_lo / (at_lo - at_hi);
	return 0;
}

/* The profile of the simulation: @base with the prices of @r in it. */
static int priced_profile(const struct cost_result *r, const struct profile *base,
			  struct profile **out)
{
	int err = profile_copy(base, out);

	for (size_t j = 0; j < r->n_prices && !err; j++) {
		const struct cost_price *p = &r->prices[j];

		profile_set_price(*out, p->count, (price_t)llround(ldexp(p->price, PRICE_SHIFT)));
		for (size_t k = 0; k < p->n_with; k++)
			profile_set_price(*out, p->with[k], 0);
	}
	return err;
}

static int crossovers(struct cost_result *r, const struct matrix_select *sel,
		      const struct profile *profile)
{
	const struct matrix_file *f = r->file;
	int err = 0;

	for (size_t a = 0; a < f->n_configs && !err; a++) {
		for (size_t b = 0; b < f->n_configs && !err; b++) {
			const struct matrix_config *mask = &f->configs[a], *walk = &f->configs[b];
			struct cost_crossover x = {.mask = a, .walk = b};
			struct cost_crossover *grown;

			if (strcmp(mask->mode, "0") || strcmp(walk->mode, "2") ||
			    mask->test_case != walk->test_case || mask->mmu != walk->mmu ||
			    mask->pte != walk->pte || mask->slot_pages != walk->slot_pages)
				continue;
			cross_file(r, &x);
			if (!x.measured)
				continue;
			err = cross_model(r, sel, profile, &x);
			grown = realloc(r->crossovers, (r->n_crossovers + 1) * sizeof(*grown));
			if (!grown)
				return out_of_memory(sel);
			r->crossovers = grown;
			r->crossovers[r->n_crossovers++] = x;
			judge(r, error_of(x.from_model, x.from_file));
		}
	}
	return err;
}

int matrix_cost(struct matrix_file *f, const struct matrix_select *sel, bool fit,
		struct cost_result *out)
{
	struct profile *profile = NULL;
	int err;

	memset(out, 0, sizeof(*out));
	out->file = f;
	out->fit = fit;
	err = collect(f, sel, out);
	err = err ? err : simulate_rows(out, sel);
	if (!err && fit) {
		err = columns(out, sel);
		err = err ? err : fit_prices(out, sel);
	} else if (!err) {
		err = take_profile_prices(out, sel);
	}
	if (!err) {
		predict(out);
		err = priced_profile(out, sel->profile, &profile);
	}
	err = err ? err : crossovers(out, sel, profile);
	profile_free(profile);
	out->pass = !err && out->worst <= COST_BOUND;
	return err;
}

void cost_result_free(struct cost_result *r)
{
	free(r->rows);
	free(r->prices);
	free(r->crossovers);
	memset(r, 0, sizeof(*r));
}
