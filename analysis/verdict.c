// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/verdict.h"

#include <math.h>
#include <stdlib.h>

#include <gsl/gsl_cdf.h>

#include "model/sim/error.h"

const struct verdict_opts verdict_defaults = {
	.spread = 0.05, .min_effect = 0.01, .level = 0.95, .power = 0.8, .runs = 10};

const char *verdict_name(enum verdict v)
{
	static const char *const name[] = {
		[VERDICT_CANNOT_TELL] = "cannot tell",
		[VERDICT_INCONCLUSIVE] = "inconclusive",
		[VERDICT_SAME] = "same",
		[VERDICT_FASTER] = "faster",
		[VERDICT_SLOWER] = "slower",
		[VERDICT_MIXED] = "mixed",
	};

	return name[v];
}

/* The probability for one true relative difference. The policy's runs scatter by spread times
 * their own mean, so both samples' pooled deviation, relative to the baseline's mean, is
 * spread * sqrt((1 + (1 + rel)^2) / 2). */
static double probability(enum verdict v, double rel, uint64_t runs,
			  const struct verdict_opts *opts)
{
	double sd = opts->spread * sqrt((1 + (1 + rel) * (1 + rel)) / 2);
	double n = (double)runs, alpha = 1 - opts->level;
	double beyond = v == VERDICT_FASTER ? -rel - opts->min_effect : rel - opts->min_effect;

	if (runs < 2)
		return 0;
	if (v != VERDICT_SAME)
		return sd > 0 ? stats_power(n, beyond / sd, alpha) : beyond > 0;

	/* |difference| + half the interval < min_effect, the deviation taken as known */
	double se = sd * sqrt(2 / n);
	double room = opts->min_effect - gsl_cdf_tdist_Qinv(alpha / 2, 2 * n - 2) * se;

	if (room <= 0)
		return 0;
	return se > 0 ? gsl_cdf_gaussian_P(room - rel, se) - gsl_cdf_gaussian_P(-room - rel, se)
		      : fabs(rel) < room;
}

double verdict_assurance(enum verdict v, const double *rel, size_t n, uint64_t runs,
			 const struct verdict_opts *opts)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += probability(v, rel[i], runs, opts);
	return n ? sum / (double)n : 0;
}

/* The smallest number of runs that shows @v; 0 when VERDICT_MAX_RUNS do not. */
static uint64_t runs_needed(enum verdict v, const double *rel, size_t n,
			    const struct verdict_opts *opts)
{
	uint64_t lo = 1, hi = 2;

	while (verdict_assurance(v, rel, n, hi, opts) < opts->power) {
		if (hi >= VERDICT_MAX_RUNS)
			return 0;
		lo = hi;
		hi = hi * 2 < VERDICT_MAX_RUNS ? hi * 2 : VERDICT_MAX_RUNS;
	}
	while (hi - lo > 1) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (verdict_assurance(v, rel, n, mid, opts) < opts->power)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

static void judge_real(const double *rel, size_t n, const struct verdict_opts *opts,
		       struct verdict_pair *out)
{
	static const enum verdict claims[] = {VERDICT_FASTER, VERDICT_SLOWER, VERDICT_SAME};

	out->real = out->tends = VERDICT_INCONCLUSIVE;
	for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++) {
		double p = verdict_assurance(claims[i], rel, n, opts->runs, opts);
		uint64_t needed = runs_needed(claims[i], rel, n, opts);

		if (p > out->assurance)
			out->assurance = p;
		if (p >= opts->power)
			out->real = claims[i];
		if (needed && (!out->runs_needed || needed < out->runs_needed)) {
			out->runs_needed = needed;
			out->tends = claims[i];
		}
	}
}

static enum verdict model_verdict(const struct verdict_pair *p, const struct verdict_opts *opts)
{
	const double smallest = opts->min_effect / VERDICT_SAME_PART;

	if (p->rel.lo > -smallest && p->rel.hi < smallest)
		return VERDICT_SAME;
	if (p->rel.p >= 1 - opts->level)
		return p->rel.se > 0 ? VERDICT_INCONCLUSIVE : VERDICT_SAME;
	if (fabs(p->rel.value) < smallest)
		return VERDICT_SAME;
	return p->rel.value < 0 ? VERDICT_FASTER : VERDICT_SLOWER;
}

/* The ratio estimator (W. Cochran, Sampling Techniques, 1977, chapter 6): mean(policy) / mean(base)
 * - 1, whose error is that of the residuals policy - ratio * base. @scratch holds @n values. */
static int ratio(const double *base, const double *policy, size_t n, double level, double *scratch,
		 struct stats_estimate *out)
{
	double mean = stats_mean(base, n), r = stats_mean(policy, n) / mean;
	int err;

	for (size_t i = 0; i < n; i++)
		scratch[i] = (r - 1) + (policy[i] - r * base[i]) / mean;
	err = stats_t_interval(scratch, n, level, out);
	out->value = r - 1; /* the residuals sum to 0, but for rounding */
	return err;
}

int verdict_judge(const double *base, const double *policy, size_t n,
		  const struct verdict_opts *opts, struct verdict_pair *out)
{
	double p[2] = {(1 - opts->level) / 2, (1 + opts->level) / 2}, q[2];
	double *rel = NULL;
	int err;

	*out = (struct verdict_pair){.model = VERDICT_CANNOT_TELL,
				     .real = VERDICT_CANNOT_TELL,
				     .tends = VERDICT_CANNOT_TELL};
	if (n < 2 || !(opts->spread >= 0) || !(opts->min_effect >= 0))
		return KVMSIM_EINVAL;
	out->base_mean = stats_mean(base, n);
	out->base_sd = stats_sd(base, n);
	out->mean = stats_mean(policy, n);
	out->sd = stats_sd(policy, n);
	err = stats_paired(base, policy, n, opts->level, &out->diff);
	for (size_t i = 0; !err && i < n; i++)
		if (!(base[i] > 0))
			return 0;
	if (!err && !(rel = malloc(n * sizeof(*rel))))
		err = KVMSIM_ENOMEM;
	err = err ? err : ratio(base, policy, n, opts->level, rel, &out->rel);
	for (size_t i = 0; !err && i < n; i++)
		rel[i] = (policy[i] - base[i]) / base[i];
	err = err ? err : stats_quantiles(rel, n, p, 2, q);
	if (!err) {
		out->rel_lo = q[0];
		out->rel_hi = q[1];
		out->model = model_verdict(out, opts);
		judge_real(rel, n, opts, out);
	}
	free(rel);
	return err;
}

int verdict_correct(struct verdict_pair **pairs, size_t n, const struct verdict_opts *opts)
{
	double *p = calloc(n + 1, sizeof(*p)), *adjusted = calloc(n + 1, sizeof(*p));
	size_t judged = 0;
	int err = p && adjusted ? 0 : KVMSIM_ENOMEM;

	for (size_t i = 0; !err && i < n; i++)
		if (pairs[i]->model != VERDICT_CANNOT_TELL)
			p[judged++] = pairs[i]->rel.p;
	err = err ? err : stats_holm(p, judged, adjusted);
	judged = 0;
	for (size_t i = 0; !err && i < n; i++) {
		if (pairs[i]->model == VERDICT_CANNOT_TELL)
			continue;
		pairs[i]->rel.p = adjusted[judged++];
		pairs[i]->model = model_verdict(pairs[i], opts);
	}
	free(p);
	free(adjusted);
	return err;
}

enum verdict verdict_combine(const enum verdict *v, size_t n)
{
	size_t k[VERDICT_MIXED + 1] = {0};

	for (size_t i = 0; i < n; i++)
		k[v[i]]++;
	if (k[VERDICT_MIXED] || (k[VERDICT_FASTER] && k[VERDICT_SLOWER]))
		return VERDICT_MIXED;
	if (k[VERDICT_FASTER])
		return VERDICT_FASTER;
	if (k[VERDICT_SLOWER])
		return VERDICT_SLOWER;
	if (k[VERDICT_INCONCLUSIVE])
		return VERDICT_INCONCLUSIVE;
	return k[VERDICT_SAME] ? VERDICT_SAME : VERDICT_CANNOT_TELL;
}
