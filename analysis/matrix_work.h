/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_MATRIX_WORK_H
#define KVMSIM_ANALYSIS_MATRIX_WORK_H

#include "analysis/matrix_file.h"

/*
 * Rows work:NAME: how often a patched kernel did what the model counts under NAME. Some phase of
 * each configuration has a row for every count that its kernel keeps, be it zero; elsewhere zeros
 * are left out.
 */

/* The count that a row's quantity names, or -1. */
int matrix_work_count(const char *quantity);

/* Which counts configuration @config has rows of. */
void matrix_work_counts(const struct matrix_file *f, size_t config, bool counts[N_COUNTS]);

/* @p's quantities and those of @counts; malloc'd, @n of them. NULL: out of memory. */
struct matrix_quantity *matrix_work_quantities(const struct matrix_phase *p,
					       const bool counts[N_COUNTS], size_t *n);

#endif
