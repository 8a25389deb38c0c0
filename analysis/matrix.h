/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_MATRIX_H
#define KVMSIM_ANALYSIS_MATRIX_H

#include <stdio.h>

#include <jansson.h>

#include "analysis/matrix_file.h"
#include "analysis/matrix_timer.h"
#include "analysis/other_kernel.h"

/*
 * Holds the model against a reference matrix: runs every case and configuration that the file
 * names and compares each tracepoint count, statistic and ioctl result.
 *
 * A row is equal, different, not compared (how often the host's timer interrupted; what that adds
 * to other counts is added to the prediction: matrix_timer.h), or not modelled yet. Counts of zero
 * are left out of the file: a count that the model predicts in a phase which the file has, but for
 * which it has no row, is different too. Where the model has both the case and the MMU, "not
 * modelled" is a failure like "different".
 *
 * Of another kernel than the one that the model knows, whose names are given (matrix_select.has),
 * what only one side counts is not compared, and is no failure.
 */

struct matrix_tally {
	const char *test_case, *mmu;
	const char *quantity; /* without its kind: "ev:kvm_exit" */
	uint64_t equal, different, not_modelled, noise;
};

struct matrix_difference {
	size_t config; /* of the file */
	struct matrix_key key;
	const char *quantity;
	double predicted, measured;
	int64_t added;	    /* of the prediction: the host's timer's */
	bool abs_after;	    /* the two values are a gauge's absolute ones */
	unsigned long line; /* 0: the file has no row */
};

struct matrix_reason {
	const char *text; /* why rows are not modelled */
	uint64_t rows;
};

struct matrix_unjudged {
	const char *quantity, *why; /* of rows that are not compared */
	uint64_t rows;
};

struct matrix_result {
	struct matrix_file *file;     /* its texts are interned as they come */
	struct matrix_tally *tallies; /* by first appearance of case and MMU, then of quantity */
	size_t n_tallies;
	struct matrix_difference *differences; /* at most the first ten per case and MMU */
	size_t n_differences;
	struct matrix_reason *reasons;
	size_t n_reasons;
	struct matrix_unjudged *left_out; /* by first appearance */
	size_t n_left_out;
	uint64_t unrecorded[MATRIX_TIMED]; /* predictions of what the file has nowhere */
	struct matrix_reason *apart;	   /* why rows of another kernel are not compared */
	size_t n_apart;
	const char *kernel, *preset[2]; /* its release, presets without and with the TDP MMU */
	struct matrix_tally total;
	uint64_t cost_rows; /* not compared here */
	uint64_t missing;   /* not modelled where they must be */
	bool pass;
};

struct matrix_select {
	const char *cases; /* "A,B"; NULL: all */
	const char *mmus;
	const struct profile *profile;
	bool check;			/* run the model's checkers too */
	const char *kernel;		/* another's release: its nearest presets; NULL: 6.1's */
	const struct kernel_names *has; /* and what it has; NULL: everything */
	const struct kvmsim_errsink *errors;
};

/* Whether @name is in the comma-separated @list; a NULL list holds everything. */
bool matrix_selected(const char *list, const char *name);

/* Errors: KVMSIM_ENOENT (no row of what was selected), KVMSIM_ENOMEM, those of the model.
 * KVMSIM_EINTR when run_interrupted was set. */
int matrix_validate(struct matrix_file *f, const struct matrix_select *sel,
		    struct matrix_result *out);
void matrix_result_free(struct matrix_result *r);

/* The preset of the kernel that @conf's kvm_mode names, else of @kernel, which may be NULL: the
 * nearest. NULL: it has none of the two, and is 6.1's, or kvm_mode names no version. */
const char *matrix_preset(const struct matrix_config *conf, const char *kernel);

/* A table per (case, MMU, quantity), the first differences, what is not modelled, the totals. */
int matrix_print(const struct matrix_result *r, FILE *to);
/* The same for programs. NULL: no memory. */
json_t *matrix_json(const struct matrix_result *r);

#endif
