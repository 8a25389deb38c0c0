// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>

#include "analysis/nnls.h"
#include "model/sim/error.h"

/* Of a gradient, against columns of length 1 and a right side of length 1. */
#define KKT_TOLERANCE 1e-9

struct problem {
	size_t m, n;
	gsl_matrix *a; /* columns of length 1 */
	gsl_vector *b, *x, *r, *w;
	double *length; /* of the columns as given */
	bool *passive;	/* x_j may be positive */
};

static void problem_free(struct problem *p)
{
	gsl_matrix_free(p->a);
	gsl_vector_free(p->b);
	gsl_vector_free(p->x);
	gsl_vector_free(p->r);
	gsl_vector_free(p->w);
	free(p->length);
	free(p->passive);
}

/* GSL's allocators end the program unless its error handler is off. */
static int problem_init(struct problem *p, const double *a, size_t m, size_t n, const double *b)
{
	*p = (struct problem){.m = m, .n = n};
	if (!m || !n)
		return KVMSIM_EINVAL;
	for (size_t i = 0; i < m * n; i++)
		if (!isfinite(a[i]))
			return KVMSIM_EINVAL;
	for (size_t i = 0; b && i < m; i++)
		if (!isfinite(b[i]))
			return KVMSIM_EINVAL;
	gsl_error_handler_t *was = gsl_set_error_handler_off();

	p->a = gsl_matrix_alloc(m, n);
	p->b = gsl_vector_calloc(m);
	p->x = gsl_vector_calloc(n);
	p->r = gsl_vector_calloc(m);
	p->w = gsl_vector_calloc(n);
	p->length = calloc(n, sizeof(*p->length));
	p->passive = calloc(n, sizeof(*p->passive));
	gsl_set_error_handler(was);
	if (!p->a || !p->b || !p->x || !p->r || !p->w || !p->length || !p->passive) {
		problem_free(p);
		return KVMSIM_ENOMEM;
	}
	for (size_t j = 0; j < n; j++) {
		for (size_t i = 0; i < m; i++)
			p->length[j] = hypot(p->length[j], a[i * n + j]);
		for (size_t i = 0; i < m; i++)
			gsl_matrix_set(p->a, i, j,
				       p->length[j] > 0 ? a[i * n + j] / p->length[j] : 0);
	}
	for (size_t i = 0; b && i < m; i++)
		gsl_vector_set(p->b, i, b[i]);
	return 0;
}

/* r = b - A x, w = A' r. */
static void gradient(struct problem *p)
{
	gsl_vector_memcpy(p->r, p->b);
	gsl_blas_dgemv(CblasNoTrans, -1, p->a, p->x, 1, p->r);
	gsl_blas_dgemv(CblasTrans, 1, p->a, p->r, 0, p->w);
}

static bool kkt_holds(const struct problem *p)
{
	double scale = gsl_blas_dnrm2(p->b) * KKT_TOLERANCE;

	for (size_t j = 0; j < p->n; j++) {
		double x = gsl_vector_get(p->x, j), w = gsl_vector_get(p->w, j);

		if (x < 0 || w > scale || (x > 0 && w < -scale))
			return false;
	}
	return true;
}

/* Least squares over the passive columns by Householder QR; @z is 0 elsewhere. */
static int solve_passive(const struct problem *p, gsl_vector *z)
{
	size_t k = 0;

	for (size_t j = 0; j < p->n; j++)
		k += p->passive[j];
	gsl_vector_set_zero(z);
	if (!k)
		return 0;
	if (k > p->m)
		return KVMSIM_EINVAL;
	gsl_matrix *qr = gsl_matrix_alloc(p->m, k);
	gsl_vector *tau = gsl_vector_alloc(k), *s = gsl_vector_alloc(k);
	gsl_vector *residual = gsl_vector_alloc(p->m);
	int err = qr && tau && s && residual ? 0 : KVMSIM_ENOMEM;

	if (!err) {
		size_t c = 0;

		for (size_t j = 0; j < p->n; j++) {
			if (!p->passive[j])
				continue;
			gsl_vector_const_view col = gsl_matrix_const_column(p->a, j);
			gsl_matrix_set_col(qr, c++, &col.vector);
		}
		if (gsl_linalg_QR_decomp(qr, tau) ||
		    gsl_linalg_QR_lssolve(qr, tau, p->b, s, residual))
			err = KVMSIM_ECHECK;
	}
	if (!err) {
		size_t c = 0;

		for (size_t j = 0; j < p->n; j++)
			if (p->passive[j])
				gsl_vector_set(z, j, gsl_vector_get(s, c++));
	}
	gsl_matrix_free(qr);
	gsl_vector_free(tau);
	gsl_vector_free(s);
	gsl_vector_free(residual);
	return err;
}

/* The active column whose gradient promises most, or n when none does. */
static size_t most_promising(const struct problem *p)
{
	double best = gsl_blas_dnrm2(p->b) * KKT_TOLERANCE;
	size_t pick = p->n;

	for (size_t j = 0; j < p->n; j++) {
		if (p->passive[j] || gsl_vector_get(p->w, j) <= best)
			continue;
		best = gsl_vector_get(p->w, j);
		pick = j;
	}
	return pick;
}

/* Moves from x towards z as far as x stays non-negative; what reaches 0 leaves the passive set. */
static void step_inside(struct problem *p, const gsl_vector *z)
{
	double alpha = 1;
	size_t first = p->n;

	for (size_t j = 0; j < p->n; j++) {
		double x = gsl_vector_get(p->x, j), to = gsl_vector_get(z, j);

		if (!p->passive[j] || to > 0 || x / (x - to) > alpha)
			continue;
		alpha = x / (x - to);
		first = j;
	}
	for (size_t j = 0; j < p->n; j++) {
		double x = gsl_vector_get(p->x, j);

		if (!p->passive[j])
			continue;
		x += alpha * (gsl_vector_get(z, j) - x);
		if (j == first || x <= 0) {
			x = 0;
			p->passive[j] = false;
		}
		gsl_vector_set(p->x, j, x);
	}
}

static bool all_positive(const struct problem *p, const gsl_vector *z)
{
	for (size_t j = 0; j < p->n; j++)
		if (p->passive[j] && gsl_vector_get(z, j) <= 0)
			return false;
	return true;
}

static int lawson_hanson(struct problem *p, gsl_vector *z)
{
	/* It ends after finitely many steps; rounding could make it go round. */
	for (size_t steps = 0; steps < 30 * p->n + 30; steps++) {
		gradient(p);
		size_t j = most_promising(p);

		if (j == p->n)
			return 0;
		p->passive[j] = true;
		int err = solve_passive(p, z);

		while (!err && !all_positive(p, z)) {
			step_inside(p, z);
			err = solve_passive(p, z);
		}
		if (err)
			return err;
		gsl_vector_memcpy(p->x, z);
	}
	return KVMSIM_ECHECK;
}

int nnls_solve(const double *a, size_t m, size_t n, const double *b, double *x, double *rss)
{
	struct problem p;
	int err = problem_init(&p, a, m, n, b);

	if (err)
		return err;
	gsl_error_handler_t *was = gsl_set_error_handler_off();
	gsl_vector *z = gsl_vector_alloc(n);

	err = z ? lawson_hanson(&p, z) : KVMSIM_ENOMEM;
	if (!err) {
		gradient(&p);
		err = kkt_holds(&p) ? 0 : KVMSIM_ECHECK;
	}
	for (size_t j = 0; !err && j < n; j++)
		x[j] = p.length[j] > 0 ? gsl_vector_get(p.x, j) / p.length[j] : 0;
	if (!err && rss)
		*rss = pow(gsl_blas_dnrm2(p.r), 2);
	gsl_vector_free(z);
	gsl_set_error_handler(was);
	problem_free(&p);
	return err;
}

int nnls_check(const double *a, size_t m, size_t n, const double *b, const double *x)
{
	struct problem p;
	int err = problem_init(&p, a, m, n, b);

	if (err)
		return err;
	for (size_t j = 0; j < n; j++)
		gsl_vector_set(p.x, j, x[j] * p.length[j]);
	gradient(&p);
	err = kkt_holds(&p) ? 0 : KVMSIM_ECHECK;
	problem_free(&p);
	return err;
}

/* Joins the sets of columns @i and @j; the least column names a set. */
static void join(size_t *group, size_t n, size_t i, size_t j)
{
	size_t a = group[i], b = group[j], low = a < b ? a : b;

	for (size_t k = 0; k < n; k++)
		if (group[k] == a || group[k] == b)
			group[k] = low;
}

/* Column @dependent (in pivoted order) is R11^-1 r of the first @rank columns: it is inseparable
 * from those with a coefficient. */
static void join_dependence(const gsl_matrix *qr, const gsl_permutation *perm, size_t rank,
			    size_t dependent, double tolerance, gsl_vector *c, size_t *group)
{
	for (size_t i = rank; i-- > 0;) {
		double v = gsl_matrix_get(qr, i, dependent);

		for (size_t k = i + 1; k < rank; k++)
			v -= gsl_matrix_get(qr, i, k) * gsl_vector_get(c, k);
		gsl_vector_set(c, i, v / gsl_matrix_get(qr, i, i));
	}
	for (size_t i = 0; i < rank; i++)
		if (fabs(gsl_vector_get(c, i)) > tolerance)
			join(group, qr->size2, gsl_permutation_get(perm, i),
			     gsl_permutation_get(perm, dependent));
}

int nnls_rank(const double *a, size_t m, size_t n, double tolerance, size_t *rank, size_t *group)
{
	struct problem p;
	int err = problem_init(&p, a, m, n, NULL);

	if (err)
		return err;
	gsl_error_handler_t *was = gsl_set_error_handler_off();
	gsl_permutation *perm = gsl_permutation_alloc(n);
	gsl_vector *tau = gsl_vector_alloc(m < n ? m : n);
	gsl_vector *norm = gsl_vector_alloc(n);
	int sign;

	err = perm && tau && norm ? 0 : KVMSIM_ENOMEM;
	if (!err && gsl_linalg_QRPT_decomp(p.a, tau, perm, &sign, norm))
		err = KVMSIM_ECHECK;
	if (!err) {
		*rank = 0;
		while (*rank < tau->size && fabs(gsl_matrix_get(p.a, *rank, *rank)) > tolerance)
			++*rank;
		for (size_t j = 0; j < n; j++)
			group[j] = j;
		for (size_t j = *rank; j < n; j++)
			join_dependence(p.a, perm, *rank, j, tolerance, norm, group);
	}
	gsl_permutation_free(perm);
	gsl_vector_free(tau);
	gsl_vector_free(norm);
	gsl_set_error_handler(was);
	problem_free(&p);
	return err;
}

int nnls_covariance(const double *a, size_t m, size_t n, const double *x, double rss, double *cov)
{
	struct problem p;
	int err = problem_init(&p, a, m, n, NULL);
	size_t k = 0;

	if (err)
		return err;
	memset(cov, 0, n * n * sizeof(*cov));
	for (size_t j = 0; j < n; j++)
		k += x[j] > 0;
	if (!k || m <= k) {
		problem_free(&p);
		return k ? KVMSIM_EINVAL : 0;
	}
	gsl_error_handler_t *was = gsl_set_error_handler_off();
	gsl_matrix *ata = gsl_matrix_alloc(k, k);
	size_t *col = calloc(k, sizeof(*col));

	err = ata && col ? 0 : KVMSIM_ENOMEM;
	if (!err) {
		for (size_t j = 0, c = 0; j < n; j++)
			if (x[j] > 0)
				col[c++] = j;
		for (size_t i = 0; i < k; i++) {
			for (size_t j = 0; j < k; j++) {
				gsl_vector_const_view u = gsl_matrix_const_column(p.a, col[i]);
				gsl_vector_const_view v = gsl_matrix_const_column(p.a, col[j]);
				double dot;

				gsl_blas_ddot(&u.vector, &v.vector, &dot);
				gsl_matrix_set(ata, i, j, dot);
			}
		}
		if (gsl_linalg_cholesky_decomp1(ata) || gsl_linalg_cholesky_invert(ata))
			err = KVMSIM_EINVAL;
	}
	for (size_t i = 0; !err && i < k; i++)
		for (size_t j = 0; j < k; j++)
			cov[col[i] * n + col[j]] = gsl_matrix_get(ata, i, j) * rss / (m - k) /
						   (p.length[col[i]] * p.length[col[j]]);
	gsl_matrix_free(ata);
	free(col);
	gsl_set_error_handler(was);
	problem_free(&p);
	return err;
}
