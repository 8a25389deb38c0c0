/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_COMPARE_WORK_H
#define KVMSIM_ANALYSIS_COMPARE_WORK_H

#include "analysis/compare.h"

/* What compare.c, which makes the runs, and compare_judge.c, which draws conclusions, share. */

/* The three rounds: drawn shadow pages, and the ends of their range. */
enum { ROUND_DRAWN, ROUND_LO, ROUND_HI, N_ROUNDS };

struct compare_work {
	const struct compare_opts *opts;
	struct compare *out;
	struct run_opts *list; /* [round][replicate][policy] */
	size_t n;
	struct draw *draw; /* [replicate] */
	double *value;	   /* [round][policy][metric][replicate] */
	struct tally {
		struct run_count by_activity[N_ACTIVITIES][N_COUNTS];
		cycles_t cycles[N_COUNTS];
		uint64_t calls; /* of GET_DIRTY_LOG */
		bool contended; /* mmu_lock */
	} * tally;		/* [round][policy], of replicate 0 */
};

/* How many replicates a round has. The ends of the range are met by the first ones only: they ask
 * for a sign. */
uint32_t compare_replicates(const struct compare_opts *o, int round);
/* The [replicate] values of a metric. */
double *compare_values(const struct compare_work *w, int round, size_t policy, int metric);

/* Fills each policy but its values and its crossover: pairs, gaps, verdicts, ends of the range. 0,
 * or KVMSIM_ENOMEM or verdict.h's errors with one message. */
int compare_judge(struct compare_work *w);
/* Whether a metric of the policy has counts without a price that differ from the baseline's. */
bool compare_any_unpriced(const struct compare_work *w, size_t policy, int metric);

#endif
