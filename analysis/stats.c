// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_sf_gamma.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include "model/sim/error.h"
#include "model/sim/rng.h"

static bool fraction(double x)
{
	return x > 0 && x < 1;
}

double stats_mean(const double *x, size_t n)
{
	return n ? gsl_stats_mean(x, 1, n) : 0;
}

double stats_sd(const double *x, size_t n)
{
	return n > 1 ? gsl_stats_sd(x, 1, n) : 0;
}

int stats_quantiles(const double *x, size_t n, const double *p, size_t np, double *out)
{
	if (!n)
		return KVMSIM_EINVAL;
	for (size_t i = 0; i < np; i++)
		if (!(p[i] >= 0 && p[i] <= 1))
			return KVMSIM_EINVAL;

	double *sorted = malloc(n * sizeof(*sorted));

	if (!sorted)
		return KVMSIM_ENOMEM;
	memcpy(sorted, x, n * sizeof(*sorted));
	gsl_sort(sorted, 1, n);
	for (size_t i = 0; i < np; i++)
		out[i] = gsl_stats_quantile_from_sorted_data(sorted, 1, n, p[i]);
	free(sorted);
	return 0;
}

int stats_median(const double *x, size_t n, double *out)
{
	const double half = 0.5;

	return stats_quantiles(x, n, &half, 1, out);
}

static void from_se(double value, double se, double df, double level, struct stats_estimate *out)
{
	*out = (struct stats_estimate){.value = value, .se = se, .df = df};
	if (se > 0) {
		double half = gsl_cdf_tdist_Pinv(0.5 + level / 2, df) * se;

		out->lo = value - half;
		out->hi = value + half;
		out->p = 2 * gsl_cdf_tdist_Q(fabs(value) / se, df);
	} else {
		out->lo = out->hi = value;
		out->p = value == 0; /* no spread at all: certain, one way or the other */
	}
}

int stats_t_interval(const double *x, size_t n, double level, struct stats_estimate *out)
{
	if (n < 2 || !fraction(level))
		return KVMSIM_EINVAL;
	from_se(stats_mean(x, n), stats_sd(x, n) / sqrt((double)n), (double)n - 1, level, out);
	return 0;
}

int stats_paired(const double *a, const double *b, size_t n, double level,
		 struct stats_estimate *out)
{
	if (n < 2)
		return KVMSIM_EINVAL;

	double *d = malloc(n * sizeof(*d));

	if (!d)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < n; i++)
		d[i] = b[i] - a[i];

	int err = stats_t_interval(d, n, level, out);

	free(d);
	return err;
}

int stats_welch(const double *a, size_t na, const double *b, size_t nb, double level,
		struct stats_estimate *out)
{
	if (na < 2 || nb < 2 || !fraction(level))
		return KVMSIM_EINVAL;

	double va = gsl_stats_variance(a, 1, na) / (double)na;
	double vb = gsl_stats_variance(b, 1, nb) / (double)nb;
	double v = va + vb;
	/* Welch and Satterthwaite */
	double df = v > 0 ? v * v / (va * va / (double)(na - 1) + vb * vb / (double)(nb - 1))
			  : (double)(na + nb - 2);

	from_se(stats_mean(b, nb) - stats_mean(a, na), sqrt(v), df, level, out);
	return 0;
}

int stats_bootstrap(const double *x, size_t n, stats_fn statistic, size_t draws, double level,
		    uint64_t seed, struct stats_estimate *out)
{
	if (!n || draws < 2 || !fraction(level))
		return KVMSIM_EINVAL;

	double *sample = malloc(n * sizeof(*sample)), *values = malloc(draws * sizeof(*values));
	double p[2] = {(1 - level) / 2, (1 + level) / 2}, q[2];
	int err = KVMSIM_ENOMEM;

	if (sample && values) {
		struct rng r;

		rng_init(&r, seed, 0, "bootstrap");
		for (size_t i = 0; i < draws; i++) {
			for (size_t k = 0; k < n; k++)
				sample[k] = x[rng_below(&r, n)];
			values[i] = statistic(sample, n);
		}
		err = stats_quantiles(values, draws, p, 2, q);
	}
	if (!err)
		*out = (struct stats_estimate){.value = statistic(x, n),
					       .se = stats_sd(values, draws),
					       .lo = q[0],
					       .hi = q[1]};
	free(sample);
	free(values);
	return err;
}

int stats_holm(const double *p, size_t n, double *adjusted)
{
	if (!n)
		return 0;

	size_t *order = malloc(n * sizeof(*order));
	double most = 0;

	if (!order)
		return KVMSIM_ENOMEM;
	gsl_sort_index(order, p, 1, n);
	for (size_t i = 0; i < n; i++) {
		double a = p[order[i]] * (double)(n - i);

		most = fmax(most, fmin(a, 1));
		adjusted[order[i]] = most;
	}
	free(order);
	return 0;
}

double stats_nct_upper(double t, double df, double ncp)
{
	if (ncp < -37.62)
		return 0;
	if (ncp > 37.62) {
		double s = 1 / (4 * df);

		return gsl_cdf_gaussian_Q(t * (1 - s) - ncp, sqrt(1 + 2 * t * t * s));
	}

	double x = t * t / (df + t * t), half = ncp * ncp / 2;
	double p = exp(-half) / 2;					 /* Poisson weight / 2 */
	double q = ncp / M_SQRT2 * exp(-half - gsl_sf_lngamma(1.5)) / 2; /* its odd companion */
	double sum = 0, left = 0.5; /* weight of p not yet summed */

	for (unsigned j = 0; left > 1e-15 && j < 5000; j++) {
		sum += p * gsl_cdf_beta_P(x, j + 0.5, df / 2) +
		       q * gsl_cdf_beta_P(x, j + 1, df / 2);
		left -= p;
		p *= half / (j + 1);
		q *= half / (j + 1.5);
		if (j > half && p < 1e-17)
			break;
	}
	return fmin(fmax(gsl_cdf_ugaussian_P(ncp) - sum, 0), 1);
}

double stats_power(double n, double effect, double alpha)
{
	double df = 2 * n - 2;

	if (!(n > 1))
		return 0;
	return stats_nct_upper(gsl_cdf_tdist_Qinv(alpha / 2, df), df, effect * sqrt(n / 2));
}

int stats_sample_size(double sd, double effect, double alpha, double power, uint64_t *n)
{
	const uint64_t most = 1000000000;
	uint64_t lo = 1, hi = 2; /* power at lo is too small; at hi, in the end, enough */

	if (!fraction(alpha) || !fraction(power) || !(sd >= 0) || effect == 0)
		return KVMSIM_EINVAL;
	while (sd > 0 && stats_power((double)hi, fabs(effect) / sd, alpha) < power) {
		if (hi >= most)
			return KVMSIM_EINVAL;
		lo = hi;
		hi *= 2;
	}
	while (hi - lo > 1) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (stats_power((double)mid, fabs(effect) / sd, alpha) < power)
			lo = mid;
		else
			hi = mid;
	}
	*n = hi;
	return 0;
}

int stats_cholesky(const double *covariance, size_t n, double *chol)
{
	static const double repair[] = {0, 1e-12, 1e-9, 1e-6, 1e-4};
	gsl_error_handler_t *old = gsl_set_error_handler_off();
	int err = n ? KVMSIM_EINVAL : 0;

	for (size_t k = 0; err && k < sizeof(repair) / sizeof(*repair); k++) {
		gsl_matrix_view m = gsl_matrix_view_array(chol, n, n);

		memcpy(chol, covariance, n * n * sizeof(*chol));
		for (size_t i = 0; i < n; i++)
			chol[i * n + i] *= 1 + repair[k];
		if (gsl_linalg_cholesky_decomp1(&m.matrix) == GSL_SUCCESS)
			err = 0;
	}
	gsl_set_error_handler(old);
	if (err)
		return err;
	/* GSL leaves the input above the diagonal. */
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			chol[i * n + k] = 0;
	return 0;
}

void stats_normal_draw(struct rng *r, const double *mean, const double *chol, size_t n, double *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = mean[i];
	for (size_t k = 0; k < n; k++) {
		/* 52 bits, centred: never 0 or 1 */
		double u = ((double)(rng_u64(r) >> 12) + 0.5) * 0x1p-52;
		double z = gsl_cdf_ugaussian_Pinv(u);

		for (size_t i = k; i < n; i++)
			out[i] += chol[i * n + k] * z;
	}
}
