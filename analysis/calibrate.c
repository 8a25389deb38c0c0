// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "analysis/calibrate.h"
#include "model/params.h"
#include "model/sim/profile.h"

int calibrate_unpriced(const struct recipe *r, uint64_t latent, const struct kvmsim_errsink *errors,
		       struct profile **out)
{
	const double none[N_COUNTS] = {0};
	char *text = recipe_profile_text(r, none, NULL, latent, "unknown");
	int err;

	if (!text)
		return KVMSIM_ENOMEM;
	err = profile_parse(text, strlen(text), r->name, &model_vocabulary, model_params, errors,
			    out);
	free(text);
	return err;
}

static int calibrate_latent(const struct evidence *e, uint64_t latent,
			    const struct kvmsim_errsink *errors, struct calibration *out)
{
	double *counts = calloc(e->n_rows * N_COUNTS, sizeof(*counts));
	double *measured = calloc(e->n_rows, sizeof(*measured));
	double *waited = calloc(e->n_rows, sizeof(*waited));
	struct profile *profile = NULL;
	size_t n = 0;
	int err = counts && measured && waited
			  ? calibrate_unpriced(e->recipe, latent, errors, &profile)
			  : KVMSIM_ENOMEM;

	for (size_t i = 0; i < e->n_rows && !err; i++) {
		struct evidence_prediction p;

		if (!e->rows[i].fitted)
			continue;
		err = evidence_run_row(e, &e->rows[i], 0, profile, errors, &p);
		memcpy(counts + n * N_COUNTS, p.count, sizeof(p.count));
		measured[n] = e->rows[i].measured;
		waited[n++] = p.waited;
	}
	err = err ? err : calibrate_counts(e->recipe, counts, measured, waited, n, errors, out);
	out->latent = latent;
	if (profile)
		profile_free(profile);
	free(counts);
	free(measured);
	free(waited);
	return err;
}

int calibrate(const struct evidence *e, const struct kvmsim_errsink *errors,
	      struct calibration *out)
{
	const struct recipe *r = e->recipe;
	size_t values = r->latent.n ? r->latent.n : 1;

	*out = (struct calibration){0};
	for (size_t i = 0; i < values; i++) {
		struct calibration c = {0};
		int err = calibrate_latent(e, r->latent.n ? r->latent.value[i] : 0, errors, &c);

		if (err) {
			calibration_free(&c);
			calibration_free(out);
			return err;
		}
		if (i && c.rss >= out->rss) {
			calibration_free(&c);
			continue;
		}
		calibration_free(out);
		*out = c;
	}
	return 0;
}
