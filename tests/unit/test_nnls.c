// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <string.h>

#include "analysis/nnls.h"
#include "model/sim/error.h"
#include "model/sim/rng.h"
#include "tests/unit/harness.h"

#define NEAR(x, expected) CU_ASSERT_DOUBLE_EQUAL(x, expected, 1e-9)

static void interior_answer_is_least_squares(void)
{
	const double a[] = {1, 0, 0, 2, 1, 1}, b[] = {3, 8, 7};
	double x[2], rss;

	CU_ASSERT_EQUAL(nnls_solve(a, 3, 2, b, x, &rss), 0);
	NEAR(x[0], 3);
	NEAR(x[1], 4);
	NEAR(rss, 0);
}

/* The two examples in the documentation of scipy.optimize.nnls. */
static void published_examples(void)
{
	const double a[] = {1, 0, 1, 0, 0, 1}, b[] = {2, 1, 1}, minus[] = {-1, -1, -1};
	double x[2], rss;

	CU_ASSERT_EQUAL(nnls_solve(a, 3, 2, b, x, &rss), 0);
	NEAR(x[0], 1.5);
	NEAR(x[1], 1);
	NEAR(sqrt(rss), 0.7071067811865475);
	CU_ASSERT_EQUAL(nnls_solve(a, 3, 2, minus, x, &rss), 0);
	NEAR(x[0], 0);
	NEAR(x[1], 0);
	NEAR(sqrt(rss), 1.7320508075688772);
}

#define M 7
#define N 4

/* Least squares over the columns in @set by Gauss-Jordan on the normal equations; the residual's
 * square, or infinity when it is singular or some x is negative. */
static double by_normal_equations(const double *a, const double *b, unsigned set, double *x)
{
	double t[N][N + 1] = {{0}}, rss = 0;

	for (int i = 0; i < N; i++) {
		if (!(set >> i & 1)) {
			t[i][i] = 1;
			continue;
		}
		for (int k = 0; k < M; k++) {
			for (int j = 0; j < N; j++)
				if (set >> j & 1)
					t[i][j] += a[k * N + i] * a[k * N + j];
			t[i][N] += a[k * N + i] * b[k];
		}
	}
	for (int i = 0; i < N; i++) {
		if (fabs(t[i][i]) < 1e-12)
			return INFINITY;
		for (int k = 0; k < N; k++) {
			double f = k == i ? 0 : t[k][i] / t[i][i];

			for (int j = 0; j <= N; j++)
				t[k][j] -= f * t[i][j];
		}
	}
	for (int i = 0; i < N; i++) {
		x[i] = t[i][N] / t[i][i];
		if (x[i] < 0)
			return INFINITY;
	}
	for (int k = 0; k < M; k++) {
		double r = b[k];

		for (int j = 0; j < N; j++)
			r -= a[k * N + j] * x[j];
		rss += r * r;
	}
	return rss;
}

static double draw(struct rng *r)
{
	return (double)rng_below(r, 2001) / 1000 - 1;
}

/* Against the best of all 2^N choices of positive columns. */
static void equals_exhaustive_search(void)
{
	struct rng r;
	unsigned bound = 0;

	rng_init(&r, 7, 0, "nnls");
	for (int round = 0; round < 500; round++) {
		double a[M * N], b[M], x[N], rss, best = INFINITY, best_x[N] = {0};

		for (int i = 0; i < M * N; i++)
			a[i] = draw(&r);
		for (int i = 0; i < M; i++)
			b[i] = draw(&r);
		for (unsigned set = 0; set < 1u << N; set++) {
			double y[N], s = by_normal_equations(a, b, set, y);

			if (s < best) {
				best = s;
				memcpy(best_x, y, sizeof(y));
			}
		}
		CU_ASSERT_EQUAL_FATAL(nnls_solve(a, M, N, b, x, &rss), 0);
		CU_ASSERT_DOUBLE_EQUAL_FATAL(rss, best, 1e-9);
		for (int j = 0; j < N; j++) {
			CU_ASSERT_DOUBLE_EQUAL_FATAL(x[j], best_x[j], 1e-7);
			bound += x[j] == 0;
		}
	}
	CU_ASSERT(bound > 200); /* the constraint was at work */
}

static void optimality_check_refuses(void)
{
	const double a[] = {1, 0, 0, 1}, b[] = {1, -1};
	const double best[] = {1, 0}, less[] = {0.9, 0}, none[] = {0, 0}, neg[] = {1, -1};

	CU_ASSERT_EQUAL(nnls_check(a, 2, 2, b, best), 0);
	CU_ASSERT_EQUAL(nnls_check(a, 2, 2, b, less), KVMSIM_ECHECK);
	CU_ASSERT_EQUAL(nnls_check(a, 2, 2, b, none), KVMSIM_ECHECK);
	CU_ASSERT_EQUAL(nnls_check(a, 2, 2, b, neg), KVMSIM_ECHECK);
}

static void rank_names_the_dependent(void)
{
	/* column 2 = 5 * column 0; column 3 stands alone; column 4 = column 1 + column 3 */
	const double a[] = {1, 0, 5, 0, 0, 0, 1, 0, 0, 1, 2, 0, 10,
			    1, 1, 0, 3, 0, 2, 5, 1, 1, 5, 0, 1};
	const double alone[] = {1, 0, 0, 1, 1, 1};
	size_t rank, group[5];

	CU_ASSERT_EQUAL(nnls_rank(a, 5, 5, 1e-9, &rank, group), 0);
	CU_ASSERT_EQUAL(rank, 3);
	CU_ASSERT_EQUAL(group[0], 0);
	CU_ASSERT_EQUAL(group[2], 0);
	CU_ASSERT_EQUAL(group[1], 1);
	CU_ASSERT_EQUAL(group[3], 1);
	CU_ASSERT_EQUAL(group[4], 1);
	CU_ASSERT_EQUAL(nnls_rank(alone, 3, 2, 1e-9, &rank, group), 0);
	CU_ASSERT_EQUAL(rank, 2);
	CU_ASSERT_EQUAL(group[1], 1);
}

/* y = 2.2 + 0.6 x over (1,2) (2,4) (3,5) (4,4) (5,5): by hand, s^2 = 2.4 / 3, Sxx = 10. */
static void covariance_of_a_line(void)
{
	const double a[] = {1, 1, 1, 2, 1, 3, 1, 4, 1, 5}, b[] = {2, 4, 5, 4, 5};
	double x[2], rss, cov[4];

	CU_ASSERT_EQUAL(nnls_solve(a, 5, 2, b, x, &rss), 0);
	NEAR(x[0], 2.2);
	NEAR(x[1], 0.6);
	NEAR(rss, 2.4);
	CU_ASSERT_EQUAL(nnls_covariance(a, 5, 2, x, rss, cov), 0);
	NEAR(cov[0], 0.8 * (1.0 / 5 + 9.0 / 10));
	NEAR(cov[3], 0.8 / 10);
	NEAR(cov[1], -3 * 0.8 / 10);
	NEAR(cov[2], cov[1]);
	CU_ASSERT_EQUAL(nnls_covariance(a, 2, 2, x, rss, cov), KVMSIM_EINVAL);
}

static void misuse_is_refused(void)
{
	const double a[] = {1, NAN}, b[] = {1, 1};
	double x[1];

	CU_ASSERT_EQUAL(nnls_solve(a, 2, 1, b, x, NULL), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(nnls_solve(b, 0, 1, b, x, NULL), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(nnls_solve(b, 2, 1, a, x, NULL), KVMSIM_EINVAL);
}

static CU_TestInfo tests[] = {
	{"interior_answer_is_least_squares", interior_answer_is_least_squares},
	{"published_examples", published_examples},
	{"equals_exhaustive_search", equals_exhaustive_search},
	{"optimality_check_refuses", optimality_check_refuses},
	{"rank_names_the_dependent", rank_names_the_dependent},
	{"covariance_of_a_line", covariance_of_a_line},
	{"misuse_is_refused", misuse_is_refused},
	CU_TEST_INFO_NULL};
TEST_MAIN("test_nnls", tests)
