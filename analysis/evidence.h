/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_EVIDENCE_H
#define KVMSIM_ANALYSIS_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/evidence_run.h"
#include "analysis/recipe.h"

/*
 * Evidence: measured times of collecting a dirty log, as rows of a CSV file with the columns
 * series, metric, unit, setup, x_name, x (the number of dirty pages), policy, value. The setup
 * holds "slot npages=N" and, where the pattern is not the series', "run=N". A recipe says how each
 * is predicted and which are fitted; the others judge the prediction.
 *
 * Rows of a policy that the recipe marks `identify` are not predicted: their time depends on a
 * number that was never reported, the active shadow pages, and says what it must have been.
 */
struct profile;

struct evidence_row {
	unsigned long line;
	char *series_name;
	const struct recipe_series *series;
	const struct recipe_policy *policy;
	uint64_t slot_pages, nr_dirty, run;
	double measured;
	bool fitted;
	/* evidence_predict(): */
	struct evidence_prediction prediction;
	double sigma; /* of the predicted time, from the prices' covariance */
	double error; /* (predicted - measured) / measured */
	/* of identify rows: */
	double shadow_pages; /* implied; below 0: none fits */
	double per_page;     /* price of one more active shadow page */
	uint64_t pages_min, pages_max;
};

struct evidence {
	const struct recipe *recipe;
	char *path;
	struct evidence_row *rows;
	size_t n_rows;
	size_t other; /* rows of other metrics, units, series or policies */
};

/* Reads the rows of @path that @recipe (which must outlive the evidence) speaks of. Errors: those
 * of csv_read(), KVMSIM_EPARSE (a row without slot npages, a value that is no number; no row). */
int evidence_load(const char *path, const struct recipe *recipe,
		  const struct kvmsim_errsink *errors, struct evidence **out);
void evidence_free(struct evidence *e);

/* The counts of one row under @profile with @background further shadow pages. */
int evidence_run_row(const struct evidence *e, const struct evidence_row *row, uint64_t background,
		     const struct profile *profile, const struct kvmsim_errsink *errors,
		     struct evidence_prediction *out);

/* Fills every row's prediction. */
int evidence_predict(struct evidence *e, const struct profile *profile,
		     const struct kvmsim_errsink *errors);

/* How good the prediction of the rows is that were not fitted. */
struct evidence_judgement {
	size_t n, n_within15, n_fitted, n_identified, n_out_of_range;
	double median, worst; /* of |error|, fractions */
	bool pass;	      /* within the recipe's bounds, and every identified number in range */
	bool cannot_tell;     /* no row was left to judge */
	/* Rows that the recipe shows without judging them. */
	size_t n_shown, n_shown_within15;
	double shown_median, shown_worst;
};
int evidence_judge(const struct evidence *e, struct evidence_judgement *out);

/* ---- the verb's part (evidence_validate.c) ---- */

enum evidence_format { EVIDENCE_TABLE, EVIDENCE_CSV, EVIDENCE_JSON };

/* `kvmsim validate` for evidence: @csv with @recipe, or all that the program comes with when both
 * are NULL; @csv NULL: the file that the recipe names. Of rows that are runs of vCPUs, those with
 * at most @quick (0: the recipe's number, 16 where it has none). Prints on stdout; returns an exit
 * code. */
int evidence_validate(const char *csv, const char *recipe, uint64_t quick,
		      enum evidence_format format);

/* The folder of the committed evidence: below the current one, or in the tree that the program was
 * built in (build/VARIANT/kvmsim). malloc'd; NULL: no memory. */
char *evidence_dir(void);

/* The path of file @name beside @recipe_path; malloc'd, NULL: no memory. */
char *evidence_beside(const char *recipe_path, const char *name);

#endif
