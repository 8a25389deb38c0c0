// SPDX-License-Identifier: GPL-3.0-or-later
/* A profile's prices from a reference matrix's costs. */
#include <stdlib.h>
#include <string.h>

#include "analysis/evidence.h"
#include "analysis/matrix_cost_priv.h"
#include "model/sim/profile.h"

static int fit_rows(const struct cost_result *r, const struct kvmsim_errsink *errors,
		    struct calibration *out)
{
	double *counts = calloc(r->n_rows * N_COUNTS, sizeof(*counts));
	double *measured = calloc(r->n_rows, sizeof(*measured));
	double *overhead = calloc(r->n_rows, sizeof(*overhead));
	int err = counts && measured && overhead ? 0 : KVMSIM_ENOMEM;

	for (size_t i = 0; i < r->n_rows && !err; i++) {
		memcpy(counts + i * N_COUNTS, r->rows[i].counts, sizeof(r->rows[i].counts));
		measured[i] = r->rows[i].measured;
		overhead[i] = COST_OVERHEAD;
	}
	err = err ? err
		  : calibrate_counts(r->recipe, counts, measured, overhead, r->n_rows, errors, out);
	free(counts);
	free(measured);
	free(overhead);
	return err;
}

int matrix_calibrate(const char *csv, const struct recipe *recipe,
		     const struct kvmsim_errsink *errors, struct calibration *out)
{
	char *beside = csv ? NULL : evidence_beside(recipe->name, recipe->file);
	struct cost_result r = {.recipe = recipe};
	struct matrix_select sel = {.errors = errors};
	struct matrix_file *f = NULL;
	struct profile *profile = NULL;
	int err = csv || beside ? 0 : KVMSIM_ENOMEM;

	err = err ? err : matrix_file_load(csv ? csv : beside, errors, &f);
	err = err ? err : calibrate_unpriced(recipe, 0, errors, &profile);
	r.file = f;
	sel.profile = profile;
	err = err ? err : cost_collect(&r, &sel, true);
	err = err ? err : cost_simulate(&r, &sel);
	err = err ? err : fit_rows(&r, errors, out);
	cost_result_free(&r);
	if (profile)
		profile_free(profile);
	if (f)
		matrix_file_free(f);
	free(beside);
	return err;
}
