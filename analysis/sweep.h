/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_SWEEP_H
#define KVMSIM_ANALYSIS_SWEEP_H

#include "analysis/overcommit_args.h"
#include "analysis/overcommit_report.h"
#include "analysis/verdict.h"

/*
 * Policies at points: which one gets the most done where. Each policy runs at each point with the
 * same random numbers; what is judged is the time per operation, by verdict.h. The best policy of a
 * point is called that when an experiment on real machines would show it against each of the
 * others; else the point is inconclusive, and the number of runs is told that would settle it. No
 * policy is called the best of all.
 */
#define SWEEP_MAX_POLICIES 8
#define SWEEP_MAX_AXES	   2

struct sweep_policy {
	const char *text;	  /* as given: LOCK or LOCK/PLE */
	char lock[128], ple[128]; /* ple: empty for none */
};

/* What changes from point to point. */
struct sweep_axis {
	char key[32];
	uint32_t value[OVERCOMMIT_MAX_POINTS], n;
};

struct sweep_opts {
	const struct overcommit_args *args;
	struct sweep_policy policy[SWEEP_MAX_POLICIES];
	size_t n_policies;
	struct sweep_axis axis[SWEEP_MAX_AXES];
	size_t n_axes;
	struct verdict_opts verdict;
};

struct sweep_cell {
	struct stats_estimate rate; /* operations per second of a VM */
	double *time;		    /* [replicates] seconds per operation */
};

struct sweep_point {
	uint32_t value[SWEEP_MAX_AXES];
	struct sweep_cell cell[SWEEP_MAX_POLICIES];
	/* Of the first policy given, what each other one changes. [0] is not set. */
	struct verdict_pair against_first[SWEEP_MAX_POLICIES];
	size_t best; /* by the mean */
	/* Of each other policy, what the best one changes; [best] is not set. */
	struct verdict_pair over[SWEEP_MAX_POLICIES];
	size_t next;	      /* the one that it gains the least over */
	enum verdict verdict; /* FASTER: shown against all; SAME: none differs by what is worth
			       * having; INCONCLUSIVE */
	uint64_t runs_needed; /* of each policy, to settle all pairs; 0: no number does */
};

/* Two policies that change places: @a is shown faster at point @at_a, @b at @at_b. */
struct sweep_swap {
	size_t a, b, at_a, at_b;
};

struct sweep {
	const struct sweep_opts *opts;
	size_t n_points;
	struct sweep_point *point;
	size_t n_swaps;
	struct sweep_swap swap[SWEEP_MAX_POLICIES * SWEEP_MAX_POLICIES];
};

/* "overcommit=1..4". EXIT_DONE or EXIT_USAGE. */
int sweep_axis_parse(struct sweep_opts *o, const char *text);
/* "pvticket/fixed,window=4096". EXIT_DONE or EXIT_USAGE. */
int sweep_policy_parse(struct sweep_opts *o, const char *text);
/* The values at point @at; the first axis changes last. */
void sweep_values(const struct sweep_opts *o, size_t at, uint32_t value[SWEEP_MAX_AXES]);
/* The settings of a policy at a point; @err gets what is wrong with them, EXIT_USAGE. */
int sweep_settings(const struct sweep_opts *o, const struct sweep_policy *policy,
		   const uint32_t value[SWEEP_MAX_AXES], struct overcommit_opts *out,
		   struct sweep_policy *changed);
/* Runs everything and judges it. 0 or a negative error with its message. Free in any case. */
int sweep_run(const struct sweep_opts *o, struct sweep *out);
void sweep_free(struct sweep *s);
int sweep_report(const struct sweep *s);

#endif
