/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_NNLS_H
#define KVMSIM_ANALYSIS_NNLS_H

#include <stddef.h>

/*
 * Non-negative least squares: minimises |A x - b| over x >= 0. Matrices are @m rows by @n columns,
 * row by row. Functions return 0, KVMSIM_EINVAL (m or n is 0, a value that is not finite),
 * KVMSIM_ENOMEM, or what they say.
 */

/* C. Lawson and R. Hanson, Solving Least Squares Problems, 1974, chapter 23, over GSL's QR. Columns
 * are scaled to length 1 inside. The Karush-Kuhn-Tucker conditions of the answer are checked:
 * KVMSIM_ECHECK when they do not hold (the gradient of a positive x_j is not 0, or that of an x_j
 * at 0 would make the fit better). @x holds @n values; *@rss, if not NULL, the residual's square.
 */
int nnls_solve(const double *a, size_t m, size_t n, const double *b, double *x, double *rss);

/* The Karush-Kuhn-Tucker conditions of @x by themselves: 0, KVMSIM_ECHECK or an error as above. */
int nnls_check(const double *a, size_t m, size_t n, const double *b, const double *x);

/* The columns' rank by QR with column pivoting, columns scaled to length 1 first: diagonal elements
 * of R below @tolerance count as 0. @group holds @n values: group[j] is the least of the columns
 * that column j takes part in a dependence with, j itself where it is separable from all others. */
int nnls_rank(const double *a, size_t m, size_t n, double tolerance, size_t *rank, size_t *group);

/* Covariance of the x_j > 0 of nnls_solve(): s^2 (A'A)^-1 over their columns with s^2 = rss /
 * (m - their number); rows and columns of x_j = 0 are 0. @cov holds n * n values. KVMSIM_EINVAL
 * also where m is not larger than their number. */
int nnls_covariance(const double *a, size_t m, size_t n, const double *x, double rss, double *cov);

#endif
