// SPDX-License-Identifier: GPL-3.0-or-later
/* Which policy costs less, and what keeps the profile from telling. */
#include "analysis/compare_work.h"

#include <math.h>
#include <stdlib.h>

#include "model/sim/profile.h"

/* ---- what the profile does not price ---- */

static const struct tally *tally(const struct compare_work *w, int round, size_t policy)
{
	return &w->tally[round * w->opts->n_policies + policy];
}

static bool collects(int activity)
{
	return activity == ACT_get_dirty_log || activity == ACT_clear_dirty_log ||
	       activity == ACT_reset_dirty_rings || activity == ACT_tlb_flush;
}

/* Whether counts of an activity are in a metric. A collection gets, clears, reads and resets rings,
 * and flushes TLBs; what waits for mmu_lock waits for whatever is done under it; a lock that nobody
 * waited for has no wait, at any price. */
static bool is_in(int metric, int activity, bool contended)
{
	switch (metric) {
	case METRIC_get_dirty_log_mean:
	case METRIC_get_dirty_log_p99:
	case METRIC_get_dirty_log_max:
	case METRIC_get_dirty_log_total:
		return collects(activity) || activity == ACT_userspace;
	case METRIC_page_fault:
		return activity == ACT_page_fault;
	case METRIC_lock_wait:
		return contended && activity != ACT_guest;
	case METRIC_lock_hold_max:
		return collects(activity) || activity == ACT_page_fault || activity == ACT_memslot;
	case METRIC_stall_max:
		return activity != ACT_guest;
	default:
		return metric_is_cost(metric);
	}
}

/* How many more of a count the policy has in a metric than the baseline; 0 when it has its price.
 */
static int64_t unpriced(const struct compare_work *w, int round, size_t policy, int metric,
			uint16_t c)
{
	const struct tally *base = tally(w, round, 0), *other = tally(w, round, policy);
	int64_t more = 0;

	/* Costs that are computed rather than priced have cycles. */
	if (profile_has_price(w->opts->run.profile, c) || base->cycles[c] || other->cycles[c])
		return 0;
	for (int a = 0; a < N_ACTIVITIES; a++)
		if (is_in(metric, a, base->contended || other->contended))
			more += (int64_t)(other->by_activity[a][c].n - base->by_activity[a][c].n);
	return more;
}

bool compare_any_unpriced(const struct compare_work *w, size_t policy, int metric)
{
	for (uint16_t c = 0; c < N_COUNTS; c++)
		if (unpriced(w, ROUND_DRAWN, policy, metric, c))
			return true;
	return false;
}

/* A count that only moves between activities shows in the metrics of each of them. */
static void find_unpriced(const struct compare_work *w, size_t policy)
{
	struct compare_policy *p = &w->out->policy[policy];

	for (uint16_t c = 0; c < N_COUNTS; c++) {
		int64_t more = unpriced(w, ROUND_DRAWN, policy, METRIC_elapsed, c);

		for (int m = 0; !more && m < N_METRICS; m++)
			more = unpriced(w, ROUND_DRAWN, policy, m, c);
		p->unpriced[c] = (int8_t)((more > 0) - (more < 0));
		p->any_unpriced |= more != 0;
	}
}

static bool per_call(int metric)
{
	return metric == METRIC_get_dirty_log_mean || metric == METRIC_get_dirty_log_p99 ||
	       metric == METRIC_get_dirty_log_max || metric == METRIC_lock_hold_max ||
	       metric == METRIC_stall_max;
}

/* The price at which the unpriced counts of the winning side eat up its lead. Infinite when it has
 * none more than the other side. */
static double break_even(const struct compare_work *w, int round, size_t policy, int metric,
			 double diff)
{
	double extra = 0;

	for (uint16_t c = 0; c < N_COUNTS; c++) {
		double more = (double)unpriced(w, round, policy, metric, c);

		if (diff < 0 ? more > 0 : diff > 0 ? more < 0 : more != 0)
			extra += fabs(more);
	}
	if (per_call(metric) && tally(w, round, policy)->calls)
		extra /= (double)tally(w, round, policy)->calls;
	return extra > 0 ? fabs(diff) / extra : INFINITY;
}

/* ---- judging ---- */

static int judge(const struct compare_work *w, int round, size_t policy, struct verdict_pair *pair,
		 enum compare_gap *gap, double *even)
{
	for (int m = 0; m < N_METRICS; m++) {
		int err = verdict_judge(
			compare_values(w, round, 0, m), compare_values(w, round, policy, m),
			compare_replicates(w->opts, round), &w->opts->verdict, &pair[m]);

		if (err)
			return kvmsim_err(w->opts->run.errors, err, "%s", kvmsim_strerror(err));
		gap[m] = pair[m].model == VERDICT_CANNOT_TELL ? GAP_ZERO : GAP_NONE;
		even[m] = break_even(w, round, policy, m, pair[m].diff.value);
		if (even[m] < COMPARE_PLAUSIBLE_PRICE) {
			gap[m] = GAP_UNPRICED;
			pair[m].model = pair[m].real = pair[m].tends = VERDICT_CANNOT_TELL;
		}
	}
	return 0;
}

static bool decided(enum verdict v)
{
	return v == VERDICT_FASTER || v == VERDICT_SLOWER || v == VERDICT_MIXED;
}

static bool any_gap(const enum compare_gap *gap)
{
	for (int m = 0; m < N_METRICS; m++)
		if (gap[m] == GAP_UNPRICED)
			return true;
	return false;
}

/* That nothing differs is not said while some cost lacks its price. That more runs would show a
 * difference in another cost is. */
static enum verdict combine(const struct verdict_pair *pair, const enum compare_gap *gap, bool real)
{
	enum verdict v[N_METRICS], all;
	size_t n = 0;

	for (int m = 0; m < N_METRICS; m++)
		if (metric_is_cost(m))
			v[n++] = real ? pair[m].real : pair[m].model;
	all = verdict_combine(v, n);
	if (decided(all) || !any_gap(gap))
		return all;
	for (int m = 0; real && m < N_METRICS; m++)
		if (metric_is_cost(m) && decided(pair[m].tends))
			return all;
	return VERDICT_CANNOT_TELL;
}

/* The fewest runs that show a difference in some cost; when none has one, those that show in
 * every cost that there is none worth having. */
static void settle(struct compare_policy *p)
{
	uint64_t differ = 0, same = 0;
	enum verdict tends = VERDICT_INCONCLUSIVE;
	bool never = any_gap(p->gap), told = false;

	for (int m = 0; m < N_METRICS; m++) {
		const struct verdict_pair *v = &p->pair[m];

		if (!metric_is_cost(m) || v->real == VERDICT_CANNOT_TELL)
			continue;
		told = true;
		if (v->tends == VERDICT_FASTER || v->tends == VERDICT_SLOWER) {
			if (!differ || v->runs_needed < differ) {
				differ = v->runs_needed;
				tends = v->tends;
			}
		} else if (v->tends == VERDICT_SAME) {
			same = v->runs_needed > same ? v->runs_needed : same;
		} else {
			never = true;
		}
	}
	p->runs_needed = differ ? differ : never ? 0 : same;
	if (!differ && (!told || any_gap(p->gap)))
		p->tends = VERDICT_CANNOT_TELL;
	else
		p->tends = differ || never ? tends : VERDICT_SAME;
}

int compare_judge(struct compare_work *w)
{
	struct compare *c = w->out;
	size_t n_pairs = 0;
	struct verdict_pair **all = calloc(c->n * N_METRICS, sizeof(*all));
	int err = 0;

	if (!all)
		return kvmsim_err(w->opts->run.errors, KVMSIM_ENOMEM, "out of memory");
	for (size_t k = 1; !err && k < c->n; k++) {
		find_unpriced(w, k);
		err = judge(w, ROUND_DRAWN, k, c->policy[k].pair, c->policy[k].gap,
			    c->policy[k].break_even);
		for (int m = 0; m < N_METRICS; m++)
			if (metric_is_cost(m))
				all[n_pairs++] = &c->policy[k].pair[m];
	}
	err = err ? err : verdict_correct(all, n_pairs, &w->opts->verdict);
	for (size_t k = 1; !err && k < c->n; k++) {
		struct compare_policy *p = &c->policy[k];

		p->model = combine(p->pair, p->gap, false);
		p->real = combine(p->pair, p->gap, true);
		settle(p);
		for (int round = ROUND_LO; !err && c->range && round < N_ROUNDS; round++) {
			struct compare_edge *e = round == ROUND_LO ? &p->lo : &p->hi;
			struct verdict_pair pair[N_METRICS];
			enum compare_gap gap[N_METRICS];
			double even[N_METRICS];

			err = judge(w, round, k, pair, gap, even);
			e->real = combine(pair, gap, true);
			e->rel = pair[METRIC_get_dirty_log_mean].rel.value;
		}
	}
	free(all);
	return err;
}
