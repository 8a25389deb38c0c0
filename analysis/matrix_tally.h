/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_MATRIX_TALLY_H
#define KVMSIM_ANALYSIS_MATRIX_TALLY_H

#include "analysis/matrix.h"

/*
 * How a result grows while rows are compared. All take KVMSIM_ENOMEM (or NULL) for their one error.
 */

/* The tally of configuration @config's case and MMU and of @quantity, whose kind is cut off. */
struct matrix_tally *matrix_tally(struct matrix_result *r, size_t config, const char *quantity);
/* One row more that is different; kept are the first of each case and MMU. */
int matrix_differs(struct matrix_result *r, const struct matrix_difference *d);
/* One row more that is not modelled, and why. */
int matrix_not_modelled(struct matrix_result *r, const struct matrix_row *row, const char *reason);
/* One row more that is not compared; equal reasons are equal pointers. */
int matrix_left_out(struct matrix_result *r, const struct matrix_row *row, const char *why);
/* One row or prediction more that only @who's other side counts: "the model" or "the kernel" has
 * no @quantity. No tally has it. */
int matrix_set_apart(struct matrix_result *r, const char *who, const char *quantity);
/* The order that they are shown in. */
void matrix_tally_sort(struct matrix_result *r);

#endif
