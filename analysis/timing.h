/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_TIMING_H
#define KVMSIM_ANALYSIS_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/calibrate.h"
#include "analysis/recipe.h"

/*
 * Evidence of another kind than evidence.h's: times that a benchmark printed, each predicted by a
 * run of memstress. Rows are those of a CSV file (series, metric, unit, x_name, x, policy, value; x
 * is the number of vCPUs, or empty); a table of runs says for each series, metric and policy
 *
 *	row	what memstress calls it ("Enabling dirty logging time"), or "-": cannot tell
 *	options	of `kvmsim memstress` but -v, --profile
 *	fit	the x of the rows that a calibration may fit
 *	sets	a param or a fixed price that only contention shows and the x of the rows that set
 *		it, by simulating again: these count as fitted; more of them after that; or empty
 *	judge	time: value and ratios are; ratio: ratios are, the value is not comparable;
 *		no: neither
 *	note	why, for people
 *	published_bytes	memory of each vCPU as it was measured; empty: the recipe's
 *
 * A row is a time, or a number: "A/B", how many of count A there are for each B; "wait% TIME", the
 * part of a time that the vCPUs waited for locks; "saved% TIME", by how much it is shorter than
 *with the options after the word `than`.
 *
 * A run is smaller than what was measured: the recipe's `bytes` per vCPU, or -b, in place of
 * published_bytes, and the time is multiplied. What is judged are ratios: of two policies at the
 * same x, and of each x to the least (growth); a row that is no time but a number is judged by its
 * value.
 */
struct profile;
struct timing_cache;

#define TIMING_PRICE 1000

struct timing_run {
	char *series, *metric, *policy, *row, *options, *note;
	uint64_t fit[RECIPE_MAX_VALUES];
	size_t n_fit;
	/* what is set: an index in model_params[], or TIMING_PRICE + the count */
	size_t param[RECIPE_MAX_VALUES];
	uint64_t sets[RECIPE_MAX_VALUES];
	size_t n_sets;
	uint64_t published_bytes; /* 0: the recipe's */
	enum { JUDGE_TIME, JUDGE_RATIO, JUDGE_NO } judge;
	unsigned long line;
};

struct timing_row {
	unsigned long line;
	const struct timing_run *run;
	uint64_t x;	  /* vCPUs; 0: not stated */
	double measured;  /* seconds */
	bool fitted;	  /* by a calibration, or sets a param */
	bool calibrates;  /* the former */
	double predicted; /* seconds; 0: cannot tell */
};

struct timing {
	const struct recipe *recipe;
	char *path;
	struct timing_run *runs;
	size_t n_runs;
	struct timing_row *rows;
	size_t n_rows;
	size_t other; /* rows that no run predicts: passed over */
	struct timing_cache *cache;
};

/* Reads the rows of @path, or of the file that the recipe names where it is NULL, and the recipe's
 * table of runs. The recipe outlives it. Errors: those of csv_read(); KVMSIM_EPARSE (no row
 * that a run predicts; a value that is no number; wrong words in the table). */
int timing_load(const char *path, const struct recipe *recipe, const struct kvmsim_errsink *errors,
		struct timing **out);
void timing_free(struct timing *t);

/* Fills in the predictions; @quick: only of rows with at most this x (0: all). Others have 0. */
int timing_predict(struct timing *t, const struct profile *profile, uint64_t quick,
		   const struct kvmsim_errsink *errors);

/* Prices from the rows that are fitted: single-task rows as they are; of rows of several vCPUs,
 * each of which does the same, one vCPU's share. What they waited for each other and for lines is
 * taken off as simulated, which takes a few rounds. Errors as calibrate(). */
int timing_calibrate(struct timing *t, const struct kvmsim_errsink *errors,
		     struct calibration *out);

enum timing_verdict {
	TIMING_NOTHING, /* there is nothing to judge */
	TIMING_PASS,
	TIMING_MISSED, /* not what is aimed at, but not worse than the recipe says beforehand */
	TIMING_FAIL,
};

/* What the rows of a series, or of one of its metrics, say. Medians are of errors, as fractions, of
 * what is not all fitted; the recipe's `median` is aimed at by ratios and growths each. */
struct timing_judgement {
	const char *series, *metric; /* metric NULL: all the series */
	size_t n_rows, n_fitted, n_told;
	size_t n_runs;	/* of the rows that are told */
	size_t n_fresh; /* of those, runs with no fitted row that no series before had */
	size_t n_times, n_ratios, n_growths, n_numbers;
	double times, ratios, growths, numbers;
	size_t n_signs, n_wrong; /* differences beyond the noise; wrong ones */
	const struct recipe_miss *miss;
	enum timing_verdict verdict;
};
/* One per series, in the file's order, each followed by its metrics with at least three ratios or
 * growths; malloc'd. KVMSIM_ENOMEM. */
int timing_judge(const struct timing *t, struct timing_judgement **out, size_t *n);
/* Of them all: a failure where one fails, a miss where one misses; nothing where none says
 * anything. */
enum timing_verdict timing_verdict(const struct timing_judgement *j, size_t n);

#endif
