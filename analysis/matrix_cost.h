/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_MATRIX_COST_H
#define KVMSIM_ANALYSIS_MATRIX_COST_H

#include "analysis/calibrate.h"
#include "analysis/matrix.h"
#include "analysis/recipe.h"

/*
 * What a reference matrix's phases cost, in host instructions (its insns_min rows), against the
 * model's counts times the prices of a profile.
 *
 * A recipe ([cases]) says which cases were fitted, by name, and which phases are neither fitted nor
 * judged. The others are predicted: at most so large a median error, and so many rows within 10 %.
 * Beside them, for each configuration of case B that has both policies, the number of dirty pages
 * from which the walk is cheaper than the mask: bisected on the model by simulation, against the
 * crossing of the two measured curves, linear between their points, within COST_CROSSOVER_BOUND:
 * where two curves meet, the error of their difference is that of a price several times over.
 */
#define COST_CROSSOVER_BOUND 0.10
/* The measuring itself: case N's `null` phase. In every measured value. */
#define COST_OVERHEAD 20
#define COST_WITHIN   0.10

struct cost_row {
	size_t config; /* of the file */
	struct matrix_key key;
	unsigned long line;
	bool fitted;
	double measured, predicted;
	double counts[N_COUNTS]; /* of the cheapest phase of that name */
	double cost;		 /* of these, by the simulation's profile */
	bool simulated;		 /* the case has this phase */
};

struct cost_crossover {
	size_t mask, walk; /* configurations of the file */
	bool measured;	   /* the two curves cross in the file */
	double from_file, from_model;
};

/* Errors of several rows, fractions. */
struct cost_errors {
	size_t n;
	double median, p95; /* of |error| */
	double within;	    /* share of rows within COST_WITHIN */
	size_t worst;	    /* index of the row */
};

struct cost_result {
	const struct matrix_file *file;
	const struct recipe *recipe;
	const struct profile *profile;
	struct cost_row *rows;
	size_t n_rows, n_passed_over;
	struct cost_crossover *crossovers;
	size_t n_crossovers;
	double worst_crossover;
	struct cost_errors fitted, predicted;
	bool pass; /* something was predicted, and no bound is broken */
};

/* Prices are sel->profile's; rows count as fitted only where it is the profile that @recipe makes.
 * Errors: KVMSIM_ENOENT with a message (no such row in the file), KVMSIM_ENOMEM, those of the
 * model. */
int matrix_cost(struct matrix_file *f, const struct matrix_select *sel, const struct recipe *recipe,
		struct cost_result *out);
void cost_result_free(struct cost_result *r);

/* The errors of the rows of @test_case (NULL: all) that were fitted, or of those that were not. */
int cost_errors_of(const struct cost_result *r, const char *test_case, bool fitted,
		   struct cost_errors *out);
/* (predicted - measured) / measured. */
double cost_row_error(const struct cost_row *row);

int cost_print(const struct cost_result *r, FILE *to);
json_t *cost_json(const struct cost_result *r);

/* The recipe's prices, from the fitted cases of the matrix @csv; NULL: the file that it names. As
 * calibrate(). */
int matrix_calibrate(const char *csv, const struct recipe *recipe,
		     const struct kvmsim_errsink *errors, struct calibration *out);

#endif
