// SPDX-License-Identifier: GPL-3.0-or-later
/* The fit by itself: counts and measurements in, prices out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "analysis/calibrate.h"
#include "analysis/nnls.h"

/* Columns of relative counts that differ by less than this cannot be told apart. */
#define RANK_TOLERANCE 1e-6

void calibration_free(struct calibration *c)
{
	free(c->cov);
	c->cov = NULL;
}

/* Names the groups that the data cannot separate. */
static int not_separable(const struct recipe *r, const size_t *group,
			 const struct kvmsim_errsink *errors)
{
	char names[512] = "";

	for (size_t lead = 0; lead < r->n_groups; lead++) {
		size_t members = 0;

		for (size_t g = 0; g < r->n_groups; g++)
			members += group[g] == lead;
		if (members < 2)
			continue;
		for (size_t g = 0; g < r->n_groups; g++) {
			size_t used = strlen(names);

			if (group[g] == lead)
				snprintf(names + used, sizeof(names) - used, "%s%s",
					 g == lead ? (used ? "; " : "") : ", ", r->group[g].name);
		}
	}
	return kvmsim_err(
		errors, KVMSIM_EUNSUPPORTED,
		"%s: the fitted rows cannot separate these groups, give them one price: %s",
		r->name, *names ? names : "(a group whose counts are all 0)");
}

/* Prices and their covariance by count, from those by group. */
static int spread(const struct recipe *r, struct calibration *c)
{
	c->cov = calloc(N_COUNTS * N_COUNTS, sizeof(*c->cov));
	if (!c->cov)
		return KVMSIM_ENOMEM;
	for (uint16_t i = 0; i < N_COUNTS; i++)
		c->price[i] = r->is_fixed[i] ? r->fixed[i] : 0;
	for (size_t g = 0; g < r->n_groups; g++) {
		const struct recipe_group *a = &r->group[g];

		for (size_t i = 0; i < a->n; i++)
			c->price[a->count[i]] = a->weight[i] * c->group[g];
		for (size_t h = 0; h < r->n_groups; h++) {
			const struct recipe_group *b = &r->group[h];

			for (size_t i = 0; i < a->n; i++)
				for (size_t j = 0; j < b->n; j++)
					c->cov[a->count[i] * N_COUNTS + b->count[j]] =
						a->weight[i] * b->weight[j] *
						c->group_cov[g * r->n_groups + h];
		}
	}
	return 0;
}

/* Few rows leave few degrees of freedom: the covariance is widened so that 1.96 standard errors are
 * Student's 95% interval, for readers who know only the errors. */
static void widen(const struct recipe *r, struct calibration *c)
{
	size_t positive = 0;

	for (size_t g = 0; g < r->n_groups; g++)
		positive += c->group[g] > 0;
	double t = gsl_cdf_tdist_Pinv(0.975, c->n_rows - positive) / gsl_cdf_ugaussian_Pinv(0.975);

	for (size_t i = 0; i < r->n_groups * r->n_groups; i++)
		c->group_cov[i] *= t * t;
}

static int solve(const struct recipe *r, const double *a, const double *b, size_t n,
		 const struct kvmsim_errsink *errors, struct calibration *out)
{
	size_t group[RECIPE_MAX_GROUPS], rank;
	int err = nnls_rank(a, n, r->n_groups, RANK_TOLERANCE, &rank, group);

	if (err)
		return err;
	if (rank < r->n_groups)
		return not_separable(r, group, errors);
	err = nnls_solve(a, n, r->n_groups, b, out->group, &out->rss);
	if (err == KVMSIM_ECHECK)
		return kvmsim_err(errors, err,
				  "%s: the fit does not meet the optimality conditions", r->name);
	err = err ? err : nnls_covariance(a, n, r->n_groups, out->group, out->rss, out->group_cov);
	if (err)
		return err;
	widen(r, out);
	return spread(r, out);
}

int calibrate_counts(const struct recipe *r, const double *counts, const double *measured,
		     const double *waited, size_t n, const struct kvmsim_errsink *errors,
		     struct calibration *out)
{
	double *a, *b;
	int err;

	*out = (struct calibration){.n_rows = n, .n_fitted = recipe_fitted(r)};
	if (n <= out->n_fitted)
		return kvmsim_err(errors, KVMSIM_EUNSUPPORTED,
				  "%s: %zu rows do not carry %zu fitted numbers", r->name, n,
				  out->n_fitted);
	a = calloc(n * r->n_groups, sizeof(*a));
	b = calloc(n, sizeof(*b));
	for (size_t i = 0; a && b && i < n; i++) {
		const double *row = counts + i * N_COUNTS;

		b[i] = measured[i] - waited[i];
		for (uint16_t c = 0; c < N_COUNTS; c++)
			b[i] -= r->is_fixed[c] ? r->fixed[c] * row[c] : 0;
		b[i] /= measured[i];
		for (size_t g = 0; g < r->n_groups; g++)
			for (size_t k = 0; k < r->group[g].n_fit; k++)
				a[i * r->n_groups + g] += r->group[g].weight[k] *
							  row[r->group[g].count[k]] / measured[i];
	}
	err = a && b ? solve(r, a, b, n, errors, out) : KVMSIM_ENOMEM;
	free(a);
	free(b);
	return err;
}
