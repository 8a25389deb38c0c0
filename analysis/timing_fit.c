// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "analysis/timing_priv.h"
#include "model/host/machine.h"
#include "model/params.h"
#include "model/sim/profile.h"

/* Waits depend on prices, a little in the rows that are fitted: each round simulates with the
 * prices of the one before. */
#define ROUNDS 4

static bool of_vcpus(const struct memstress_row *row)
{
	return row->phase == MEMSTRESS_DIRTY || row->phase == MEMSTRESS_POPULATE;
}

/* By how much a count costs more on the row's CPU than the profile says. */
static void machine_factors(const struct machine *m, const struct profile *p, uint32_t cpu,
			    double factor[N_COUNTS])
{
	const price_t *prices = machine_prices(m, cpu);
	double insn = (double)prices[COUNT_insn] / (double)profile_price(p, COUNT_insn);

	for (uint16_t c = 0; c < N_COUNTS; c++) {
		price_t alone = profile_price(p, c);

		factor[c] = alone ? (double)prices[c] / (double)alone : insn;
	}
}

/* One line of the fit: counts of the one task whose time it is, and what that waited. */
static int add_line(const struct timing *t, const struct timing_row *row,
		    const struct timing_cached *run, const struct profile *p, double *counts,
		    double *measured, double *waited)
{
	const struct memstress_row *of = memstress_find(&run->result, row->run->row);
	uint32_t vcpus = run->o.vcpus;
	double factor[N_COUNTS], tasks;
	struct machine *m;
	int err;

	if (!of)
		return KVMSIM_EPARSE;
	err = machine_create(p, run->o.cores, vcpus + 1, &m);
	if (err)
		return err;
	tasks = of_vcpus(of) ? vcpus : 1;
	machine_factors(m, p, of_vcpus(of) ? 0 : vcpus, factor);
	machine_destroy(m);
	for (uint16_t c = 0; c < N_COUNTS; c++)
		counts[c] = (double)of->sums.counts[c] * factor[c] / tasks;
	counts[COUNT_lock_line] = 0;
	*waited = (double)(of->sums.cycles[COUNT_lock_line] + of->sums.waits[WAIT_lock] +
			   of->sums.waits[WAIT_ipi]) /
		  tasks;
	*measured = row->measured * (double)t->recipe->hz / run->scale;
	return 0;
}

static int parse_prices(const struct recipe *r, const double *price,
			const struct kvmsim_errsink *errors, struct profile **out)
{
	char *text = recipe_profile_text(r, price, NULL, 0, "unknown");
	int err = text ? profile_parse(text, strlen(text), r->name, &model_vocabulary, model_params,
				       errors, out)
		       : KVMSIM_ENOMEM;

	free(text);
	return err;
}

static int one_round(struct timing *t, const struct profile *profile, size_t n,
		     const struct kvmsim_errsink *errors, struct calibration *out)
{
	double *counts = calloc(n * N_COUNTS, sizeof(*counts));
	double *measured = calloc(2 * n, sizeof(*measured)), *waited = measured + n;
	const struct timing_cached *run;
	size_t k = 0;
	int err = counts && measured ? 0 : KVMSIM_ENOMEM;

	for (size_t i = 0; i < t->n_rows && !err; i++) {
		if (!t->rows[i].calibrates)
			continue;
		err = timing_run_row(t, &t->rows[i], profile, errors, &run);
		err = err ? err
			  : add_line(t, &t->rows[i], run, profile, counts + k * N_COUNTS,
				     &measured[k], &waited[k]);
		k++;
	}
	err = err ? err : calibrate_counts(t->recipe, counts, measured, waited, n, errors, out);
	free(counts);
	free(measured);
	return err;
}

int timing_calibrate(struct timing *t, const struct kvmsim_errsink *errors, struct calibration *out)
{
	const struct recipe *r = t->recipe;
	double price[N_COUNTS] = {0};
	size_t n = 0;
	int err = 0;

	*out = (struct calibration){0};
	for (size_t i = 0; i < t->n_rows; i++)
		n += t->rows[i].calibrates;
	if (!n || !r->n_groups)
		return kvmsim_err(errors, KVMSIM_EUNSUPPORTED, "%s: no row or no group is fitted",
				  r->name);
	for (size_t g = 0; g < r->n_groups; g++)
		for (size_t i = 0; i < r->group[g].n; i++)
			price[r->group[g].count[i]] = r->group[g].weight[i];
	for (int round = 0; round < ROUNDS && !err; round++) {
		struct profile *profile = NULL;

		calibration_free(out);
		err = parse_prices(r, price, errors, &profile);
		err = err ? err : one_round(t, profile, n, errors, out);
		memcpy(price, out->price, sizeof(price));
		timing_cache_clear(t->cache);
		if (profile)
			profile_free(profile);
	}
	return err;
}
