// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/matrix_cost_priv.h"
#include "analysis/run.h"
#include "model/sim/profile.h"

int cost_out_of_memory(const struct matrix_select *sel)
{
	return kvmsim_err(sel->errors, KVMSIM_ENOMEM, "costs: out of memory");
}

/* ---- the rows ---- */

typedef bool (*row_filter)(const struct matrix_config *c, const struct matrix_row *row);

/* What is judged. */
static bool is_harvest(const struct matrix_config *c, const struct matrix_row *row)
{
	return !strcmp(c->test_case, "B") && strcmp(c->mode, "stock") &&
	       !strncmp(row->key.phase, "get_", 4);
}

/* What dirty rings cost, in the cases with one vCPU: the rounds' writes, which fill them, and what
 * empties them. Their prices are not among those that case B's rows tell, so only a profile can
 * say. */
static bool is_ring(const struct matrix_config *c, const struct matrix_row *row)
{
	return matrix_selected("D,D_256,D_4096", c->test_case) &&
	       matrix_selected("write,reset,final_reset,collect_only,reset_only,reset_empty",
			       row->key.phase);
}

static bool is_judged(const struct matrix_config *c, const struct matrix_row *row)
{
	return is_harvest(c, row) || is_ring(c, row);
}

/* What prices a whole profile: no phase that includes the making of a vCPU, and none of the rows
 * that are to be predicted. */
static bool prices_profile(const struct matrix_config *c, const struct matrix_row *row)
{
	return strcmp(row->key.phase, "setup") &&
	       !(is_harvest(c, row) && row->key.nr_dirty > COST_FITTED_MAX);
}

static bool is_cost_row(const struct matrix_file *f, const struct matrix_select *sel,
			row_filter filter, const struct matrix_row *row)
{
	const struct matrix_config *c = &f->configs[row->config];

	return matrix_config_modelled(c) && c->dirty && c->pte_kind >= 0 &&
	       matrix_selected(sel->mmus, c->mmu) && !strcmp(row->quantity, "insns_min") &&
	       filter(c, row);
}

static int collect(const struct matrix_select *sel, row_filter filter, struct cost_result *r)
{
	const struct matrix_file *f = r->file;
	size_t n = 0;

	for (size_t i = 0; i < f->n_rows; i++)
		n += is_cost_row(f, sel, filter, &f->rows[i]);
	if (!n)
		return kvmsim_err(sel->errors, KVMSIM_ENOENT,
				  "%s: no insns_min rows of case B's GET_DIRTY_LOG phases, "
				  "kvm_mode 0, 1 or 2, on an MMU that is modelled",
				  f->path);
	r->rows = calloc(n, sizeof(*r->rows));
	if (!r->rows)
		return cost_out_of_memory(sel);
	for (size_t i = 0; i < f->n_rows; i++) {
		const struct matrix_row *row = &f->rows[i];

		if (is_cost_row(f, sel, filter, row))
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

int cost_run(struct cost_result *r, size_t config, const struct matrix_select *sel,
	     const struct profile *profile, const struct matrix_round *rounds, size_t n_rounds,
	     double *cycles)
{
	const struct matrix_config *c = &r->file->configs[config];
	struct simulation s = {.r = r, .config = config};
	const struct matrix_opts o = {.test_case = c->test_case,
				      .program = c->program,
				      .mmu = (enum mmu_kind)c->mmu_kind,
				      .guest = c->guest,
				      .dirty = c->dirty,
				      .spte = c->spte,
				      .slot_pages = c->slot_pages,
				      .pte = (enum matrix_pte)c->pte_kind,
				      .rounds = rounds,
				      .n_rounds = n_rounds,
				      .profile = profile,
				      .check = sel->check,
				      .phase = on_phase,
				      .ctx = &s,
				      .errors = sel->errors};

	int err = matrix_run(&o);

	if (cycles)
		*cycles = s.cycles;
	return err;
}

int cost_simulate(struct cost_result *r, const struct matrix_select *sel)
{
	struct matrix_round *rounds = calloc(r->n_rows, sizeof(*rounds));
	int err = rounds ? 0 : cost_out_of_memory(sel);

	for (size_t c = 0; c < r->file->n_configs && !err; c++) {
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
			err = cost_run(r, c, sel, sel->profile, rounds, n, NULL);
	}
	free(rounds);
	for (size_t i = 0; i < r->n_rows && !err; i++) {
		if (!r->rows[i].simulated)
			err = kvmsim_err(sel->errors, KVMSIM_EPARSE,
					 "%s:%lu: the case has no phase %s of pattern %s",
					 r->file->path, r->rows[i].line, r->rows[i].key.phase,
					 r->rows[i].key.pattern);
	}
	return err;
}

/* What the profile asks for each count instead. */
static int take_profile_prices(struct cost_result *r, const struct matrix_select *sel)
{
	r->prices = calloc(N_COUNTS, sizeof(*r->prices));
	if (!r->prices)
		return cost_out_of_memory(sel);
	for (uint16_t c = 0; c < N_COUNTS; c++)
		r->prices[r->n_prices++] = (struct cost_price){
			.count = c,
			.price = ldexp((double)profile_price(sel->profile, c), -PRICE_SHIFT)};
	return 0;
}

double cost_error(double predicted, double measured)
{
	return measured > 0 ? predicted / measured - 1 : INFINITY;
}

void cost_judge(struct cost_result *r, double error)
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
		if (!r->fit || !row->fitted)
			cost_judge(r, cost_error(row->predicted, row->measured));
	}
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

int matrix_cost(struct matrix_file *f, const struct matrix_select *sel, bool fit,
		struct cost_result *out)
{
	struct profile *profile = NULL;
	int err;

	memset(out, 0, sizeof(*out));
	out->file = f;
	out->fit = fit;
	err = collect(sel, fit ? is_harvest : is_judged, out);
	err = err ? err : cost_simulate(out, sel);
	if (!err)
		err = fit ? cost_fit(out, sel, NULL) : take_profile_prices(out, sel);
	if (!err) {
		predict(out);
		err = priced_profile(out, sel->profile, &profile);
	}
	err = err ? err : cost_crossovers(out, sel, profile);
	profile_free(profile);
	out->pass = !err && out->worst <= COST_BOUND;
	return err;
}

int matrix_prices(struct matrix_file *f, const struct matrix_select *sel, struct cost_result *out)
{
	double fixed[N_COUNTS];
	struct cost_result harvest = {.file = f, .fit = true};
	int err = collect(sel, is_harvest, &harvest);

	memset(out, 0, sizeof(*out));
	out->file = f;
	out->fit = true;
	err = err ? err : cost_simulate(&harvest, sel);
	err = err ? err : cost_fit(&harvest, sel, NULL);
	for (int c = 0; c < N_COUNTS; c++)
		fixed[c] = -1;
	fixed[COUNT_insn] = 1;
	/* what the harvests tell apart stays; the others come from all phases */
	for (size_t j = 0; j < harvest.n_prices; j++) {
		if (!harvest.prices[j].n_with)
			fixed[harvest.prices[j].count] = harvest.prices[j].price;
	}
	cost_result_free(&harvest);
	err = err ? err : collect(sel, prices_profile, out);
	for (size_t i = 0; i < out->n_rows; i++)
		out->rows[i].fitted = true;
	err = err ? err : cost_simulate(out, sel);
	err = err ? err : cost_fit(out, sel, fixed);
	if (!err)
		predict(out);
	return err;
}

/* Leaves only rows that charge one of the counts. */
static void keep_charging(struct cost_result *r, const bool free_count[N_COUNTS])
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n_rows; i++) {
		bool any = false;

		for (int c = 0; c < N_COUNTS; c++)
			any |= free_count[c] && r->rows[i].counts[c] > 0;
		if (any)
			r->rows[kept++] = r->rows[i];
	}
	r->n_rows = kept;
}

int matrix_prices_of(struct matrix_file *f, const struct matrix_select *sel,
		     const bool free_count[N_COUNTS], struct cost_result *out)
{
	double fixed[N_COUNTS];
	int err;

	memset(out, 0, sizeof(*out));
	out->file = f;
	out->fit = true;
	for (uint16_t c = 0; c < N_COUNTS; c++)
		fixed[c] = free_count[c]
				   ? -1
				   : ldexp((double)profile_price(sel->profile, c), -PRICE_SHIFT);
	err = collect(sel, prices_profile, out);
	err = err ? err : cost_simulate(out, sel);
	if (err)
		return err;
	keep_charging(out, free_count);
	err = cost_fit(out, sel, fixed);
	if (!err)
		predict(out);
	return err;
}

void cost_result_free(struct cost_result *r)
{
	free(r->rows);
	free(r->prices);
	free(r->crossovers);
	memset(r, 0, sizeof(*r));
}
