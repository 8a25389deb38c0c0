/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_DRAW_H
#define KVMSIM_ANALYSIS_DRAW_H

#include <stddef.h>
#include <stdint.h>

#include "model/sim/profile.h"

/*
 * What a replicate draws, the same for every policy (common random numbers): the phase of the
 * collection in whole epochs, the active shadow pages that the trace does not show, and the prices.
 *
 * Prices are multivariate normal around the profile's, with its standard errors and covariances.
 * Counts of one group are one price, so they move together where the profile gives no covariance. A
 * price that would be negative is 0. A price without a standard error is not drawn.
 */
struct draw_plan;

struct draw {
	uint64_t phase, shadow_pages;
	struct profile *profile; /* owned: draw_release() */
};

struct draw_opts {
	const struct profile *profile; /* must outlive the plan */
	uint64_t seed;
	uint64_t n_phases;	       /* phase in [0, n_phases), at least 1 */
	uint64_t shadow_lo, shadow_hi; /* uniform in [lo, hi] */
};

/* Errors: KVMSIM_EPARSE (the profile's covariance is not one: message), KVMSIM_EINVAL,
 * KVMSIM_ENOMEM. */
int draw_plan_create(const struct draw_opts *opts, const struct kvmsim_errsink *errors,
		     struct draw_plan **out);
void draw_plan_free(struct draw_plan *p);
/* How many prices are drawn. */
size_t draw_prices(const struct draw_plan *p);

/* A function of (seed, replicate) alone, whatever was drawn before. KVMSIM_ENOMEM. */
int draw_replicate(const struct draw_plan *p, uint32_t replicate, struct draw *out);
void draw_release(struct draw *d);

#endif
