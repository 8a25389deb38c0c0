// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "model/counts.h"
#include "model/sim/rng.h"

struct draw_plan {
	struct draw_opts opts;
	size_t n; /* prices that are drawn */
	uint16_t count[N_COUNTS];
	double mean[N_COUNTS];
	double *chol; /* n x n, lower */
};

#define PRICE_ONE ((double)(1u << PRICE_SHIFT))

static double covariance(const struct profile *p, uint16_t a, uint16_t b)
{
	double given = (double)profile_covariance(p, a, b) / PRICE_ONE;
	double sigmas =
		(double)profile_sigma(p, a) / PRICE_ONE * (double)profile_sigma(p, b) / PRICE_ONE;
	const char *ga = profile_group(p, a), *gb = profile_group(p, b);

	if (a == b)
		return sigmas;
	if (given == 0 && ga && gb && !strcmp(ga, gb))
		return sigmas;
	return given;
}

int draw_plan_create(const struct draw_opts *opts, const struct kvmsim_errsink *errors,
		     struct draw_plan **out)
{
	struct draw_plan *p;
	double *cov = NULL;
	int err = KVMSIM_ENOMEM;

	if (!opts->n_phases || opts->shadow_lo > opts->shadow_hi)
		return KVMSIM_EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "out of memory");
	p->opts = *opts;
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		if (!profile_sigma(opts->profile, c))
			continue;
		p->mean[p->n] = (double)profile_price(opts->profile, c) / PRICE_ONE;
		p->count[p->n++] = c;
	}
	p->chol = calloc(p->n * p->n + 1, sizeof(*p->chol));
	cov = calloc(p->n * p->n + 1, sizeof(*cov));
	if (p->chol && cov) {
		for (size_t i = 0; i < p->n; i++)
			for (size_t k = 0; k < p->n; k++)
				cov[i * p->n + k] =
					covariance(opts->profile, p->count[i], p->count[k]);
		err = stats_cholesky(cov, p->n, p->chol);
	}
	free(cov);
	if (!err) {
		*out = p;
		return 0;
	}
	draw_plan_free(p);
	if (err == KVMSIM_ENOMEM)
		return kvmsim_err(errors, err, "out of memory");
	return kvmsim_err(errors, KVMSIM_EPARSE,
			  "%s: [sigma] and [covariance] are not a covariance matrix (not positive "
			  "semidefinite)",
			  profile_name(opts->profile));
}

void draw_plan_free(struct draw_plan *p)
{
	if (p)
		free(p->chol);
	free(p);
}

size_t draw_prices(const struct draw_plan *p)
{
	return p->n;
}

int draw_replicate(const struct draw_plan *p, uint32_t replicate, struct draw *out)
{
	const struct draw_opts *o = &p->opts;
	double value[N_COUNTS];
	struct rng r;
	int err;

	*out = (struct draw){0};
	err = profile_copy(o->profile, &out->profile);
	if (err)
		return err;
	rng_init(&r, o->seed, replicate, "compare phase");
	out->phase = rng_below(&r, o->n_phases);
	rng_init(&r, o->seed, replicate, "compare shadow pages");
	out->shadow_pages = o->shadow_lo + rng_below(&r, o->shadow_hi - o->shadow_lo + 1);
	rng_init(&r, o->seed, replicate, "compare prices");
	stats_normal_draw(&r, p->mean, p->chol, p->n, value);
	for (size_t i = 0; i < p->n; i++)
		profile_set_price(out->profile, p->count[i],
				  value[i] > 0 ? (price_t)llround(value[i] * PRICE_ONE) : 0);
	return 0;
}

void draw_release(struct draw *d)
{
	profile_free(d->profile);
	*d = (struct draw){0};
}
