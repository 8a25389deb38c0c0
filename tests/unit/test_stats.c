// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "model/sim/error.h"
#include "model/sim/rng.h"
#include "tests/unit/harness.h"

/* Student's sleep data (Biometrika, 1908), R's data set `sleep`: hours gained under two drugs. */
static const double drug1[] = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
static const double drug2[] = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
#define N 10

#define NEAR(a, b, tol) CU_ASSERT_DOUBLE_EQUAL(a, b, tol)

static void means_and_quantiles(void)
{
	/* 2 4 4 4 5 5 7 9: mean 5, sum of squares 32 */
	const double x[] = {9, 2, 5, 4, 4, 7, 5, 4}, ten[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
	const double p[] = {0, 0.25, 0.5, 0.9, 1};
	double q[5], m;

	NEAR(stats_mean(x, 8), 5, 1e-15);
	NEAR(stats_sd(x, 8), sqrt(32.0 / 7), 1e-15);
	CU_ASSERT_EQUAL(stats_sd(x, 1), 0);
	CU_ASSERT_EQUAL(stats_mean(x, 0), 0);
	/* R: quantile(1:10, c(0, .25, .5, .9, 1)) gives 1 3.25 5.5 9.1 10 */
	CU_ASSERT_EQUAL(stats_quantiles(ten, 10, p, 5, q), 0);
	NEAR(q[0], 1, 0);
	NEAR(q[1], 3.25, 1e-12);
	NEAR(q[2], 5.5, 1e-12);
	NEAR(q[3], 9.1, 1e-12);
	NEAR(q[4], 10, 0);
	CU_ASSERT_EQUAL(ten[0], 10);
	CU_ASSERT_EQUAL(stats_median(x, 8, &m), 0);
	NEAR(m, 4.5, 0);
	CU_ASSERT_EQUAL(stats_median(x, 0, &m), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(stats_quantiles(x, 8, (double[]){1.5}, 1, q), KVMSIM_EINVAL);
}

static void t_tests_of_the_sleep_data(void)
{
	struct stats_estimate e;

	/* R: t.test(extra ~ group, data = sleep): t = -1.8608, df = 17.776, p = 0.07939,
	 * interval -3.3654832 to 0.2054832, means 0.75 and 2.33 */
	CU_ASSERT_EQUAL(stats_welch(drug2, N, drug1, N, 0.95, &e), 0);
	NEAR(e.value, 0.75 - 2.33, 1e-12);
	NEAR(e.value / e.se, -1.8608, 5e-5);
	NEAR(e.df, 17.776, 5e-4);
	NEAR(e.p, 0.07939, 5e-6);
	NEAR(e.lo, -3.3654832, 5e-8);
	NEAR(e.hi, 0.2054832, 5e-8);

	/* R: the same with paired = TRUE: t = -4.0621, df = 9, p = 0.002833,
	 * interval -2.4598858 to -0.7001142 */
	CU_ASSERT_EQUAL(stats_paired(drug2, drug1, N, 0.95, &e), 0);
	NEAR(e.value, -1.58, 1e-12);
	NEAR(e.value / e.se, -4.0621, 5e-5);
	CU_ASSERT_EQUAL(e.df, 9);
	NEAR(e.p, 0.002833, 5e-7);
	NEAR(e.lo, -2.4598858, 5e-8);
	NEAR(e.hi, -0.7001142, 5e-8);
}

static void t_interval_of_a_mean(void)
{
	/* published table of t: 97.5% at 9 degrees of freedom is 2.262, 95% is 1.833 */
	struct stats_estimate e;
	double half = stats_sd(drug1, N) / sqrt(N);

	CU_ASSERT_EQUAL(stats_t_interval(drug1, N, 0.95, &e), 0);
	NEAR((e.hi - e.value) / half, 2.262, 5e-4);
	NEAR((e.value - e.lo) / half, 2.262, 5e-4);
	CU_ASSERT_EQUAL(stats_t_interval(drug1, N, 0.90, &e), 0);
	NEAR((e.hi - e.value) / half, 1.833, 5e-4);
	CU_ASSERT_EQUAL(stats_t_interval(drug1, 1, 0.95, &e), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(stats_t_interval(drug1, N, 1, &e), KVMSIM_EINVAL);
}

static void no_spread_is_certain(void)
{
	const double a[] = {3, 3, 3}, b[] = {5, 5, 5};
	struct stats_estimate e;

	CU_ASSERT_EQUAL(stats_paired(a, b, 3, 0.95, &e), 0);
	CU_ASSERT(e.value == 2 && e.lo == 2 && e.hi == 2 && e.p == 0);
	CU_ASSERT_EQUAL(stats_paired(a, a, 3, 0.95, &e), 0);
	CU_ASSERT(e.value == 0 && e.p == 1);
	CU_ASSERT_EQUAL(stats_welch(a, 3, b, 3, 0.95, &e), 0);
	CU_ASSERT(e.value == 2 && e.p == 0);
}

static void holm_by_hand(void)
{
	/* sorted .005 .01 .03 .04 times 4 3 2 1: .02 .03 .06 .04, then the running maximum; this
	 * is R's p.adjust(c(.01, .04, .03, .005), "holm") */
	const double p[] = {0.01, 0.04, 0.03, 0.005}, big[] = {0.6, 0.7};
	double a[4];

	CU_ASSERT_EQUAL(stats_holm(p, 4, a), 0);
	NEAR(a[0], 0.03, 1e-12);
	NEAR(a[1], 0.06, 1e-12);
	NEAR(a[2], 0.06, 1e-12);
	NEAR(a[3], 0.02, 1e-12);
	CU_ASSERT_EQUAL(stats_holm(big, 2, a), 0);
	CU_ASSERT(a[0] == 1 && a[1] == 1);
}

static void noncentral_t_by_integration(void)
{
	/* Simpson's rule over the chi density of P(Z > t v / sqrt(df) - ncp), 200,000 steps */
	static const struct {
		double t, df, ncp, upper, tol;
	} row[] = {
		{2.0, 3, 1.0, 0.2563701315923194, 1e-10},
		{4.302652729911275, 2, 5.0, 0.7191805353324198, 1e-10},
		{2.0244, 38, 3.16227766, 0.8689515656391563, 1e-10},
		{1.5, 10, -1.0, 0.009544627494238853, 1e-10},
		{1.98, 200, 20, 1, 1e-10},
		{2.0, 18, 37.0, 1, 1e-10},
		/* the normal approximation */
		{4.302652729911275, 2, 40.0, 1, 1e-6},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		NEAR(stats_nct_upper(row[i].t, row[i].df, row[i].ncp), row[i].upper, row[i].tol);
	/* central: the 97.5% point at 9 degrees of freedom */
	NEAR(stats_nct_upper(2.262157, 9, 0), 0.025, 1e-8);
}

static void power_and_sample_size(void)
{
	uint64_t n;

	/* R's example: power.t.test(n = 20, delta = 1, sd = 1) gives power = 0.8689528 */
	NEAR(stats_power(20, 1, 0.05), 0.8689528, 5e-8);
	/* R's example: power.t.test(power = .90, delta = 1) gives n = 22.02110 */
	CU_ASSERT_EQUAL(stats_sample_size(1, 1, 0.05, 0.90, &n), 0);
	CU_ASSERT_EQUAL(n, 23);
	/* J. Cohen, Statistical Power Analysis, 1988, table 2.4.1 (two-sided .05, power .80):
	 * d = .5: 64, d = .8: 26 */
	CU_ASSERT_EQUAL(stats_sample_size(10, -5, 0.05, 0.80, &n), 0);
	CU_ASSERT_EQUAL(n, 64);
	CU_ASSERT_EQUAL(stats_sample_size(5, 4, 0.05, 0.80, &n), 0);
	CU_ASSERT_EQUAL(n, 26);
	CU_ASSERT_EQUAL(stats_sample_size(0, 4, 0.05, 0.80, &n), 0);
	CU_ASSERT_EQUAL(n, 2);
	CU_ASSERT_EQUAL(stats_sample_size(1, 0, 0.05, 0.80, &n), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(stats_sample_size(1, 1e-9, 0.05, 0.80, &n), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(stats_sample_size(1, 1, 0.05, 1, &n), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(stats_power(1, 5, 0.05), 0);
}

static void bootstrap_of_a_mean(void)
{
	struct stats_estimate e, again;

	/* theory: the resampled mean has variance (n - 1) / n * sd^2 / n */
	double theory = sqrt((N - 1.0) / N) * stats_sd(drug1, N) / sqrt(N);

	CU_ASSERT_EQUAL(stats_bootstrap(drug1, N, stats_mean, 4000, 0.95, 1, &e), 0);
	CU_ASSERT_EQUAL(stats_bootstrap(drug1, N, stats_mean, 4000, 0.95, 1, &again), 0);
	CU_ASSERT_EQUAL(memcmp(&e, &again, sizeof(e)), 0);
	NEAR(e.value, 0.75, 1e-12);
	NEAR(e.se, theory, 0.05 * theory);
	NEAR(e.hi - e.lo, 2 * 1.96 * theory, 0.1 * 2 * 1.96 * theory);
	CU_ASSERT(e.lo < 0.75 && e.hi > 0.75);
	CU_ASSERT_EQUAL(stats_bootstrap(drug1, N, stats_mean, 4000, 0.95, 2, &again), 0);
	CU_ASSERT_NOT_EQUAL(e.se, again.se);
	CU_ASSERT_EQUAL(stats_bootstrap(drug1, 0, stats_mean, 10, 0.95, 1, &e), KVMSIM_EINVAL);
}

static void cholesky_by_hand(void)
{
	/* the textbook matrix of integers: L = 2 0 0 / 6 1 0 / -8 5 3 */
	const double a[] = {4, 12, -16, 12, 37, -43, -16, -43, 98};
	const double l[] = {2, 0, 0, 6, 1, 0, -8, 5, 3};
	const double singular[] = {4, 6, 6, 9}, not_positive[] = {1, 2, 2, 1};
	double c[9];

	CU_ASSERT_EQUAL(stats_cholesky(a, 3, c), 0);
	for (int i = 0; i < 9; i++)
		NEAR(c[i], l[i], 1e-12);
	CU_ASSERT_EQUAL(stats_cholesky(singular, 2, c), 0);
	NEAR(c[0], 2, 1e-3);
	NEAR(c[2], 3, 1e-3);
	NEAR(c[3], 0, 0.05);
	CU_ASSERT_EQUAL(stats_cholesky(not_positive, 2, c), KVMSIM_EINVAL);
}

static void draws_have_their_covariance(void)
{
	enum { DRAWS = 40000 };
	const double mean[] = {10, 20}, cov[] = {4, -3, -3, 9};
	double chol[4], *x = malloc(DRAWS * sizeof(*x)), *y = malloc(DRAWS * sizeof(*y)), xy = 0;
	struct rng r;

	CU_ASSERT_PTR_NOT_NULL_FATAL(x && y ? x : NULL);
	CU_ASSERT_EQUAL(stats_cholesky(cov, 2, chol), 0);
	rng_init(&r, 1, 0, "test");
	for (int i = 0; i < DRAWS; i++) {
		double v[2];

		stats_normal_draw(&r, mean, chol, 2, v);
		x[i] = v[0];
		y[i] = v[1];
		xy += (v[0] - 10) * (v[1] - 20) / DRAWS;
	}
	/* five standard errors: sd / sqrt(n), sd / sqrt(2 n), sqrt((4 * 9 + 9) / n) */
	NEAR(stats_mean(x, DRAWS), 10, 5 * 2 / 200.0);
	NEAR(stats_mean(y, DRAWS), 20, 5 * 3 / 200.0);
	NEAR(stats_sd(x, DRAWS), 2, 5 * 2 / 283.0);
	NEAR(stats_sd(y, DRAWS), 3, 5 * 3 / 283.0);
	NEAR(xy, -3, 5 * sqrt(45) / 200.0);
	free(x);
	free(y);
}

static CU_TestInfo tests[] = {{"means_and_quantiles", means_and_quantiles},
			      {"t_tests_of_the_sleep_data", t_tests_of_the_sleep_data},
			      {"t_interval_of_a_mean", t_interval_of_a_mean},
			      {"no_spread_is_certain", no_spread_is_certain},
			      {"holm_by_hand", holm_by_hand},
			      {"noncentral_t_by_integration", noncentral_t_by_integration},
			      {"power_and_sample_size", power_and_sample_size},
			      {"bootstrap_of_a_mean", bootstrap_of_a_mean},
			      {"cholesky_by_hand", cholesky_by_hand},
			      {"draws_have_their_covariance", draws_have_their_covariance},
			      CU_TEST_INFO_NULL};
TEST_MAIN("stats", tests)
