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

static bool is_cost_row(const struct cost_result *r, const struct matrix_select *sel,
			const struct matrix_row *row, bool fitted_only)
{
	const struct matrix_config *c = &r->file->configs[row->config];

	return matrix_config_modelled(c) && c->dirty && c->pte_kind >= 0 &&
	       matrix_selected(sel->cases, c->test_case) && matrix_selected(sel->mmus, c->mmu) &&
	       !strcmp(row->quantity, "insns_min") &&
	       (!fitted_only || recipe_fits_case(r->recipe, c->test_case));
}

int cost_collect(struct cost_result *r, const struct matrix_select *sel, bool fitted_only)
{
	const struct matrix_file *f = r->file;
	size_t n = 0;

	for (size_t i = 0; i < f->n_rows; i++)
		n += is_cost_row(r, sel, &f->rows[i], fitted_only);
	r->rows = calloc(n + 1, sizeof(*r->rows));
	if (!r->rows)
		return cost_out_of_memory(sel);
	for (size_t i = 0; i < f->n_rows; i++) {
		const struct matrix_row *row = &f->rows[i];
		const struct matrix_config *c = &f->configs[row->config];

		if (!is_cost_row(r, sel, row, fitted_only))
			continue;
		if (recipe_passes_over(r->recipe, row->key.phase)) {
			r->n_passed_over++;
			continue;
		}
		r->rows[r->n_rows++] =
			(struct cost_row){.config = row->config,
					  .key = row->key,
					  .line = row->line,
					  .fitted = recipe_fits_case(r->recipe, c->test_case),
					  .measured = row->value};
	}
	if (!r->n_rows)
		return kvmsim_err(sel->errors, KVMSIM_ENOENT,
				  "%s: no insns_min rows of %s on an MMU that is modelled", f->path,
				  fitted_only ? "a case that is fitted"
					      : "a case that is modelled");
	return 0;
}

/* ---- simulation ---- */

struct simulation {
	struct cost_result *r;
	size_t config;
	const struct profile *profile;
	double cycles; /* of the last round's GET_DIRTY_LOG */
};

static double price_of(const struct profile *profile, const uint64_t counts[N_COUNTS])
{
	double sum = 0;

	for (uint16_t c = 0; c < N_COUNTS; c++)
		sum += (double)counts[c] * ldexp((double)profile_price(profile, c), -PRICE_SHIFT);
	return sum;
}

static bool is_of_phase(const struct cost_row *row, const struct matrix_phase *p)
{
	bool all = row->key.round == ROUND_ALL;

	return (all ? p->round != MATRIX_NONE : row->key.round == p->round) &&
	       row->key.nr_dirty == p->nr_dirty && !strcmp(row->key.phase, p->name) &&
	       !strcmp(row->key.pattern, matrix_pattern_name(p->pattern));
}

/* A row is the least of all that the kernel did under its name: so is the prediction. */
static int on_phase(void *ctx, const struct matrix_phase *p)
{
	struct simulation *s = ctx;
	double cost = price_of(s->profile, p->counts);

	if (run_interrupted)
		return KVMSIM_EINTR;
	if (p->round != MATRIX_NONE && !strcmp(p->name, "get_dirty_log"))
		s->cycles = (double)p->cycles;
	for (size_t i = 0; i < s->r->n_rows; i++) {
		struct cost_row *row = &s->r->rows[i];

		if (row->config != s->config || !is_of_phase(row, p) ||
		    (row->simulated && cost >= row->cost))
			continue;
		row->simulated = true;
		row->cost = cost;
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
	struct simulation s = {.r = r, .config = config, .profile = profile};
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
	int err = 0;

	for (size_t c = 0; c < r->file->n_configs && !err; c++) {
		struct matrix_round *rounds = NULL;
		bool here = false;
		size_t n;

		for (size_t i = 0; i < r->n_rows; i++)
			here |= r->rows[i].config == c;
		if (!here)
			continue;
		err = matrix_file_rounds(r->file, c, &rounds, &n);
		err = err ? err : cost_run(r, c, sel, sel->profile, rounds, n, NULL);
		free(rounds);
	}
	for (size_t i = 0; i < r->n_rows && !err; i++) {
		if (!r->rows[i].simulated)
			err = kvmsim_err(sel->errors, KVMSIM_EPARSE,
					 "%s:%lu: the case has no phase %s of pattern %s",
					 r->file->path, r->rows[i].line, r->rows[i].key.phase,
					 r->rows[i].key.pattern);
	}
	return err;
}

/* ---- judging ---- */

double cost_row_error(const struct cost_row *row)
{
	return row->measured > 0 ? row->predicted / row->measured - 1 : INFINITY;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int cost_errors_of(const struct cost_result *r, const char *test_case, bool fitted,
		   struct cost_errors *out)
{
	double *e = malloc((r->n_rows + 1) * sizeof(*e)), worst = -1;
	size_t within = 0;

	*out = (struct cost_errors){0};
	if (!e)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct cost_row *row = &r->rows[i];
		double error = fabs(cost_row_error(row));

		if (row->fitted != fitted ||
		    (test_case && strcmp(r->file->configs[row->config].test_case, test_case)))
			continue;
		e[out->n++] = error;
		within += error <= COST_WITHIN;
		if (error > worst) {
			worst = error;
			out->worst = i;
		}
	}
	if (out->n) {
		qsort(e, out->n, sizeof(*e), by_value);
		out->median = (e[(out->n - 1) / 2] + e[out->n / 2]) / 2;
		out->p95 = e[(size_t)ceil(0.95 * (double)out->n) - 1];
		out->within = (double)within / (double)out->n;
	}
	free(e);
	return 0;
}

static void predict(struct cost_result *r)
{
	bool own = !strcmp(profile_name(r->profile), r->recipe->machine);

	for (size_t i = 0; i < r->n_rows; i++) {
		struct cost_row *row = &r->rows[i];

		row->fitted &= own;
		row->predicted = COST_OVERHEAD;
		for (uint16_t c = 0; c < N_COUNTS; c++)
			row->predicted += row->counts[c] *
					  ldexp((double)profile_price(r->profile, c), -PRICE_SHIFT);
	}
}

static int judge(struct cost_result *r)
{
	int err = cost_errors_of(r, NULL, true, &r->fitted);

	err = err ? err : cost_errors_of(r, NULL, false, &r->predicted);
	for (size_t i = 0; i < r->n_crossovers; i++) {
		const struct cost_crossover *x = &r->crossovers[i];

		r->worst_crossover =
			fmax(r->worst_crossover, fabs(x->from_model / x->from_file - 1));
	}
	/* Of no rows none is within 10 %, and a recipe's bound is above 0. */
	r->pass = !err && r->worst_crossover <= COST_CROSSOVER_BOUND &&
		  100 * r->predicted.median <= r->recipe->median &&
		  100 * r->predicted.within >= r->recipe->within10;
	return err;
}

int matrix_cost(struct matrix_file *f, const struct matrix_select *sel, const struct recipe *recipe,
		struct cost_result *out)
{
	int err;

	*out = (struct cost_result){.file = f, .recipe = recipe, .profile = sel->profile};
	err = cost_collect(out, sel, false);
	err = err ? err : cost_simulate(out, sel);
	if (!err)
		predict(out);
	err = err ? err : cost_crossovers(out, sel);
	err = err ? err : judge(out);
	return err;
}

void cost_result_free(struct cost_result *r)
{
	free(r->rows);
	free(r->crossovers);
	memset(r, 0, sizeof(*r));
}
