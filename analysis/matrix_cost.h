/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_MATRIX_COST_H
#define KVMSIM_ANALYSIS_MATRIX_COST_H

#include "analysis/matrix.h"

/*
 * What GET_DIRTY_LOG costs, in host instructions: case B's insns_min rows of the patched modules
 * (kvm_mode 0 mask, 1 rmap-slot, 2 walk) against counts times prices.
 *
 * Rows with nr_dirty <= COST_FITTED_MAX give the prices, by non-negative least squares of relative
 * errors over the counts that the model charges in those phases; the others are predicted and held
 * to COST_BOUND. So is, for each configuration that has both policies, the number of dirty pages
 * from which the walk is cheaper than the mask: bisected on the model by simulation, against the
 * crossing of the two measured curves, linear between their points.
 */
#define COST_FITTED_MAX 200
#define COST_BOUND	0.05
/* The measuring itself: case N's `null` phase. In every measured value. */
#define COST_OVERHEAD 20

struct cost_row {
	size_t config; /* of the file */
	struct matrix_key key;
	unsigned long line;
	bool fitted;
	double measured, predicted;
	double counts[N_COUNTS];
	bool simulated; /* the case has this phase */
};

struct cost_price {
	uint16_t count;
	double price;	  /* instructions */
	uint16_t with[8]; /* counts that always came in the same proportion: inside this price */
	size_t n_with;
	size_t group; /* index of the first price that the rows cannot tell from this one */
	bool fixed;   /* was given, not fitted with the others */
};

struct cost_crossover {
	size_t mask, walk; /* configurations of the file */
	bool measured;	   /* the two curves cross in the file */
	double from_file, from_model;
};

struct cost_result {
	const struct matrix_file *file;
	struct cost_row *rows;
	size_t n_rows;
	bool fit; /* the prices are from the rows themselves, not from a profile */
	struct cost_price *prices;
	size_t n_prices;
	struct cost_crossover *crossovers;
	size_t n_crossovers;
	double worst; /* error of a row that is not fitted, or of a crossover */
	bool pass;
};

/* Prices are fitted when @fit, else those of sel->profile. Errors: KVMSIM_ENOENT with a message
 * (no such row in the file), KVMSIM_ENOMEM, those of the model and of nnls_solve(). */
int matrix_cost(struct matrix_file *f, const struct matrix_select *sel, bool fit,
		struct cost_result *out);
/* Prices for a whole profile: those that the fit above tells apart, then the other counts from the
 * insns_min rows of every phase of every case that is modelled, but for the rows that are to be
 * predicted; an instruction of the guest costs one. In out->rows, what that leaves of each. */
int matrix_prices(struct matrix_file *f, const struct matrix_select *sel, struct cost_result *out);
/* Prices for the counts of which @free_count says so, those of the others are sel->profile's: from
 * the insns_min rows of every phase that charges one of them and has nr_dirty <= COST_FITTED_MAX.
 * The other such rows are predicted, out->worst is the worst error of them. */
int matrix_prices_of(struct matrix_file *f, const struct matrix_select *sel,
		     const bool free_count[N_COUNTS], struct cost_result *out);
void cost_result_free(struct cost_result *r);

int cost_print(const struct cost_result *r, FILE *to);
json_t *cost_json(const struct cost_result *r);
/* Those prices as sections of a profile; with @only_fitted not those that were given. */
void cost_print_prices(const struct cost_result *r, bool only_fitted, FILE *to);

#endif
