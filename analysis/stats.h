/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_STATS_H
#define KVMSIM_ANALYSIS_STATS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Statistics over small samples, on GSL. Samples are plain arrays of doubles, in any order, not
 * changed; every value must be finite. Levels and powers are fractions (0.95). Functions that can
 * fail return 0 or KVMSIM_EINVAL (too few values, an argument out of range), KVMSIM_ENOMEM.
 */

/* An estimate with its interval. With no spread in the sample lo == hi == value. */
struct stats_estimate {
	double value;
	double se; /* standard error of value */
	double df; /* degrees of freedom of the t distribution behind lo, hi and p */
	double lo, hi;
	double p; /* two-sided, of value == 0 */
};

/* Mean and sample standard deviation (n - 1); 0 for less than one or two values. */
double stats_mean(const double *x, size_t n);
double stats_sd(const double *x, size_t n);

/* Quantiles of type 7 (R. Hyndman and Y. Fan, Sample Quantiles in Statistical Packages, 1996; the
 * default of R and of GSL): linear between order statistics, at 1 + (n - 1) p. @p and @out hold
 * @np values; n >= 1, p in [0, 1]. */
int stats_quantiles(const double *x, size_t n, const double *p, size_t np, double *out);
int stats_median(const double *x, size_t n, double *out);

/* Mean with Student's t interval; n >= 2. */
int stats_t_interval(const double *x, size_t n, double level, struct stats_estimate *out);
/* Mean of b[i] - a[i] with its t interval; n >= 2. */
int stats_paired(const double *a, const double *b, size_t n, double level,
		 struct stats_estimate *out);
/* mean(b) - mean(a), variances not assumed equal (B. Welch, 1947); na, nb >= 2. */
int stats_welch(const double *a, size_t na, const double *b, size_t nb, double level,
		struct stats_estimate *out);

/* The percentile bootstrap (B. Efron, 1979) of @statistic, which must accept any resample of @x:
 * @draws resamples from the stream "bootstrap" of @seed. se is the resamples' standard deviation;
 * df and p are 0. */
typedef double (*stats_fn)(const double *x, size_t n);
int stats_bootstrap(const double *x, size_t n, stats_fn statistic, size_t draws, double level,
		    uint64_t seed, struct stats_estimate *out);

/* Holm's step-down adjustment (S. Holm, 1979) of @n p-values, in place of their order. */
int stats_holm(const double *p, size_t n, double *adjusted);

/* P(T > t) of the noncentral t distribution, t >= 0: R. Lenth, Algorithm AS 243, 1989; above
 * ncp 37.62, where its weights underflow, Abramowitz and Stegun 26.7.10. */
double stats_nct_upper(double t, double df, double ncp);
/* Probability that two samples of @n each show an effect of @effect standard deviations in its
 * direction at two-sided level @alpha (the other tail is not counted, as in R's power.t.test). */
double stats_power(double n, double effect, double alpha);
/* The smallest n per sample whose power is at least @power, n >= 2. KVMSIM_EINVAL for an effect of
 * 0, a negative sd, alpha or power outside (0, 1), or when n would pass 1e9. */
int stats_sample_size(double sd, double effect, double alpha, double power, uint64_t *n);

/* A multivariate normal over @n values: @chol is the lower Cholesky factor that stats_cholesky()
 * made from a covariance (row-major n x n, symmetric). A covariance that is singular, or not quite
 * positive because its figures were rounded, is repaired by up to 1e-4 of its diagonal; beyond
 * that KVMSIM_EINVAL. */
int stats_cholesky(const double *covariance, size_t n, double *chol);
struct rng;
void stats_normal_draw(struct rng *r, const double *mean, const double *chol, size_t n,
		       double *out);

#endif
