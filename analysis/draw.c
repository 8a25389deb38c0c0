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
	size_t n; /* prices that are drawn by themselves */
	uint16_t count[N_COUNTS];
	double mean[N_COUNTS];
	double *chol; /* n x n, lower */
	/* Prices that are others times a constant: a follower moves with count[lead]. */
	size_t n_followers;
	struct follower {
		uint16_t count;
		size_t lead;
		double mean, slope;
	} follower[N_COUNTS];
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

static double sigma(const struct profile *p, uint16_t count)
{
	return (double)profile_sigma(p, count) / PRICE_ONE;
}

/* The first member of the count's group with the largest error, if the two move as one: their
 * covariance is that of a correlation of 1, but for the digits of a profile. Else the count itself.
 */
static uint16_t leader(const struct profile *p, uint16_t count)
{
	const char *group = profile_group(p, count);
	uint16_t lead = N_COUNTS;

	for (uint16_t c = 0; c < N_COUNTS; c++) {
		bool of = c == count ||
			  (group && profile_group(p, c) && !strcmp(profile_group(p, c), group));

		if (of && (lead == N_COUNTS || sigma(p, c) > sigma(p, lead)))
			lead = c;
	}
	double whole = sigma(p, count) * sigma(p, lead);

	return fabs(covariance(p, count, lead) - whole) < 1e-3 * whole + 2 / PRICE_ONE ? lead
										       : count;
}

/* Sorts the prices with an error into those that are drawn and those that follow one. */
static void sort_prices(struct draw_plan *p)
{
	const struct profile *profile = p->opts.profile;

	for (uint16_t c = 0; c < N_COUNTS; c++) {
		if (!profile_sigma(profile, c) || leader(profile, c) != c)
			continue;
		p->mean[p->n] = (double)profile_price(profile, c) / PRICE_ONE;
		p->count[p->n++] = c;
	}
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		uint16_t lead = profile_sigma(profile, c) ? leader(profile, c) : c;
		struct follower *f = &p->follower[p->n_followers];

		if (lead == c)
			continue;
		*f = (struct follower){.count = c,
				       .mean = (double)profile_price(profile, c) / PRICE_ONE,
				       .slope = sigma(profile, c) / sigma(profile, lead)};
		while (p->count[f->lead] != lead)
			f->lead++;
		p->n_followers++;
	}
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
	sort_prices(p);
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
	return p->n + p->n_followers;
}

static void set_price(struct profile *p, uint16_t count, double price)
{
	profile_set_price(p, count, price > 0 ? (price_t)llround(price * PRICE_ONE) : 0);
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
		set_price(out->profile, p->count[i], value[i]);
	for (size_t i = 0; i < p->n_followers; i++) {
		const struct follower *f = &p->follower[i];

		set_price(out->profile, f->count,
			  f->mean + f->slope * (value[f->lead] - p->mean[f->lead]));
	}
	return 0;
}

void draw_release(struct draw *d)
{
	profile_free(d->profile);
	*d = (struct draw){0};
}
