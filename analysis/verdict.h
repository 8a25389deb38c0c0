/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_VERDICT_H
#define KVMSIM_ANALYSIS_VERDICT_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/stats.h"

/*
 * The two verdicts on a change, metric by metric. In every metric less is better.
 *
 * *Model*: the paired difference over replicates that share their random numbers (phase, shadow
 * pages, prices), so its interval holds the uncertainty of what was drawn. Enough replicates make
 * any difference certain here, which is why this is not the headline. A difference below a
 * VERDICT_SAME_PART of @min_effect is "same", however certain.
 *
 * *On real machines*: what an experiment with N runs of each policy would show, where each run
 * scatters by @spread around its mean and a difference under @min_effect is not worth having. The
 * experiment shows "faster" when the whole t interval of the relative difference lies below
 * -min_effect, "slower" when above +min_effect, "same" when inside both. The probability that it
 * does is averaged over the replicates, each of which is one possible true machine (assurance:
 * A. O'Hagan, J. Stevens and M. Campbell, Assurance in clinical trial design, 2005). The verdict is
 * given when it reaches @power. An unknown price that decides the sign is thus never averaged away.
 */
enum verdict {
	VERDICT_CANNOT_TELL, /* the input holds no answer */
	VERDICT_INCONCLUSIVE,
	VERDICT_SAME, /* no difference worth having */
	VERDICT_FASTER,
	VERDICT_SLOWER,
	VERDICT_MIXED, /* faster in one metric and slower in another */
};
const char *verdict_name(enum verdict v);

#define VERDICT_SAME_PART 10

struct verdict_opts {
	double spread;	   /* run-to-run standard deviation over mean: 0.05 */
	double min_effect; /* smallest relative difference worth having: 0.01 */
	double level;	   /* of intervals: 0.95 */
	double power;	   /* with which an experiment must show its verdict: 0.8 */
	uint64_t runs;	   /* of each policy on a real machine, >= 2 */
};
extern const struct verdict_opts verdict_defaults;

/* More runs than this settle nothing that anybody would run. */
#define VERDICT_MAX_RUNS 1000000

/* One metric of one policy against the baseline. */
struct verdict_pair {
	double base_mean, base_sd, mean, sd;
	struct stats_estimate diff; /* mean of (policy - baseline) in the metric's unit */
	struct stats_estimate rel;  /* mean(policy) / mean(baseline) - 1; p after Holm */
	double rel_lo, rel_hi;	    /* middle `level` of the replicates' own relative differences */
	enum verdict model, real;
	double assurance;     /* probability that the experiment shows what `real` says, or the
				 likeliest */
	enum verdict tends;   /* what enough runs would show; INCONCLUSIVE when nothing */
	uint64_t runs_needed; /* of each policy until it is shown; 0: no number of runs */
};

/* Judges replicates 0..n-1 of @base and @policy, paired; n >= 2. Where the baseline has a value of
 * 0 there is no relative difference: both verdicts are CANNOT_TELL, diff is still set. Errors:
 * KVMSIM_EINVAL, KVMSIM_ENOMEM. */
int verdict_judge(const double *base, const double *policy, size_t n,
		  const struct verdict_opts *opts, struct verdict_pair *out);

/* Holm's correction over all pairs that are judged together; sets rel.p and the model verdict. */
int verdict_correct(struct verdict_pair **pairs, size_t n, const struct verdict_opts *opts);

/* One verdict for several metrics: MIXED when they disagree, else the decided one; SAME only when
 * all are; CANNOT_TELL only when all are. */
enum verdict verdict_combine(const enum verdict *v, size_t n);

/* Probability that an experiment shows @v (FASTER, SLOWER or SAME) with @runs runs per policy,
 * averaged over @n true relative differences. */
double verdict_assurance(enum verdict v, const double *rel, size_t n, uint64_t runs,
			 const struct verdict_opts *opts);

#endif
