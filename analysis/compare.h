/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_COMPARE_H
#define KVMSIM_ANALYSIS_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/jobs.h"
#include "analysis/metrics.h"
#include "analysis/run.h"
#include "analysis/verdict.h"

/*
 * Policies against the first of them, on one input, over replicates that share their draws.
 *
 * Where the active shadow pages are a range, the first replicates (up to 8) are run again at its
 * lower and at its upper end, so that a verdict that hangs on a number which the trace does not
 * show says so.
 *
 * The first run of each policy is made under the checkers: a policy that loses stores ends the
 * comparison with KVMSIM_ECHECK.
 *
 * A count that differs between two policies and that the profile does not price makes the one
 * with more of it look too cheap, in the metrics of the activities that have it. Its lead divided
 * by how many more there are is the break-even price. Where that is under COMPARE_PLAUSIBLE_PRICE
 * the answer is CANNOT_TELL; above, the verdict is given with the break-even price beside it. Which
 * counts have their price: profile_has_price().
 */
/* In the profile's unit; what a step of a loop may cost: a cache line from memory, some 100 ns. */
#define COMPARE_PLAUSIBLE_PRICE 300

struct compare_opts {
	struct run_opts
		run; /* what all runs share; dirty, phase, shadow_pages, replicate: unused */
	const char *const *policies; /* policy texts; the first is the baseline */
	size_t n_policies;	     /* at least 2 */
	const char *const *sptes;    /* of each policy its spte policy; NULL: run.spte is all's */
	uint32_t replicates;	     /* at least 2 */
	uint64_t n_phases;	     /* epochs in a collection interval */
	uint64_t shadow_lo, shadow_hi;
	struct verdict_opts verdict;
	unsigned workers;
	run_fn run_fn;
	/* Each run, in a fixed order; may be NULL. A negative error ends the comparison. */
	int (*done)(void *ctx, const struct run_opts *opts, const struct run_result *r,
		    const double metric[N_METRICS]);
	void (*warn)(void *ctx, const char *msg); /* may be NULL */
	void *ctx;
};

/* Why a metric has no answer. */
enum compare_gap {
	GAP_NONE,
	GAP_ZERO,     /* the baseline's value is 0 in some replicate */
	GAP_UNPRICED, /* decided by counts that the profile does not price */
};

struct compare_edge {
	enum verdict real;
	double rel; /* relative difference of GET_DIRTY_LOG mean */
};

struct compare_policy {
	const char *text;	  /* its name here: the spte policy where these are compared */
	const char *dirty, *spte; /* spte may be NULL */
	double *value[N_METRICS]; /* [replicate] */
	/* Against the baseline (none of this for the baseline itself): */
	struct verdict_pair pair[N_METRICS];
	enum compare_gap gap[N_METRICS];
	double break_even[N_METRICS]; /* in the profile's unit; INFINITY when none is needed */
	int8_t unpriced[N_COUNTS];    /* unpriced and differing: +1 more in the policy, -1 less */
	bool any_unpriced;
	enum verdict model, real; /* over all costs */
	enum verdict tends;	  /* what enough runs would show */
	uint64_t runs_needed;	  /* until something is shown in some cost; 0: never */
	struct compare_edge lo, hi;
	/* Active shadow pages where GET_DIRTY_LOG mean changes sides between lo and hi; 0: it does
	 * not. Where counts that differ lack their price, it is where it would if they cost
	 * nothing. */
	uint64_t crossover;
	bool crossover_unpriced;
};

struct compare {
	struct compare_policy *policy; /* [n] */
	size_t n;
	uint32_t replicates;
	size_t n_prices; /* drawn per replicate */
	bool range;	 /* lo and hi are set */
	bool torn;
	uint64_t runs; /* of the model, all told */
};

/* Errors: those of the draws and of the runs, with one message on opts->run.errors; KVMSIM_EINVAL
 * for options out of range. */
int compare_run(const struct compare_opts *opts, struct compare *out);
void compare_free(struct compare *c);

/* Whether the two ends of the range differ, in the verdict or in the mean's sign. */
bool compare_depends(const struct compare *c, const struct compare_policy *p);

/* Splits "walk,mask,hybrid,threshold=3" into policies: an item with '=' belongs to the policy
 * before it. *out holds *n texts, freed as compare_free_policies(*out, *n). KVMSIM_EINVAL (an
 * empty item, or a parameter before any policy), KVMSIM_ENOMEM. */
int compare_split_policies(const char *text, char ***out, size_t *n);
void compare_free_policies(char **policies, size_t n);

#endif
