/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_CALIBRATE_H
#define KVMSIM_ANALYSIS_CALIBRATE_H

#include "analysis/evidence.h"

/*
 * Prices from evidence: non-negative least squares of measured minus waited and fixed cost on the
 * predicted counts of the rows that the recipe fits, each divided by its measured value, so that
 * relative errors count. One group of counts is one unknown. On single-task rows counts do not
 * depend on prices, so one run per row is enough; a latent param (cache pollution) changes them and
 * is chosen among the recipe's values by running again.
 */
struct calibration {
	double group[RECIPE_MAX_GROUPS];			 /* price of weight 1 */
	double group_cov[RECIPE_MAX_GROUPS * RECIPE_MAX_GROUPS]; /* widened by Student's t for few
								  * rows: 1.96 sigma is 95% */
	double price[N_COUNTS];
	double *cov; /* N_COUNTS * N_COUNTS, owned: calibration_free() */
	uint64_t latent;
	size_t n_rows, n_fitted;
	double rss; /* of relative errors */
};

/* Errors: KVMSIM_EUNSUPPORTED with a message (more numbers than rows can carry, with the groups
 * that cannot be separated named; no fitted row), KVMSIM_ECHECK (no optimum), those of the model.
 */
int calibrate(const struct evidence *e, const struct kvmsim_errsink *errors,
	      struct calibration *out);
void calibration_free(struct calibration *c);

/* A profile of the recipe's machine in which nothing but the fixed prices costs anything. */
int calibrate_unpriced(const struct recipe *r, uint64_t latent, const struct kvmsim_errsink *errors,
		       struct profile **out);

/* The fit by itself: @counts holds one row of N_COUNTS per measurement. */
int calibrate_counts(const struct recipe *r, const double *counts, const double *measured,
		     const double *waited, size_t n, const struct kvmsim_errsink *errors,
		     struct calibration *out);

#endif
