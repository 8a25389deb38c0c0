// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/draw.h"
#include "model/sim/profile.h"

/* The three rounds: drawn shadow pages, and the ends of their range. */
enum { ROUND_DRAWN, ROUND_LO, ROUND_HI, N_ROUNDS };

struct work {
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

/* The ends of the range are met by the first replicates only: they ask for a sign. */
static uint32_t replicates(const struct compare_opts *o, int round)
{
	const uint32_t at_ends = 8;

	return round == ROUND_DRAWN || o->replicates < at_ends ? o->replicates : at_ends;
}

/* Where run @i of the list belongs: rounds, then replicates, then policies. */
struct place {
	int round;
	uint32_t replicate;
	size_t policy;
};

static struct place place(const struct compare_opts *o, size_t i)
{
	struct place p = {.policy = i % o->n_policies};

	i /= o->n_policies;
	while (p.round < ROUND_HI && i >= replicates(o, p.round))
		i -= replicates(o, p.round++);
	p.replicate = (uint32_t)i;
	return p;
}

static double *values(const struct work *w, int round, size_t policy, int metric)
{
	return w->value +
	       ((round * w->opts->n_policies + policy) * N_METRICS + metric) * w->opts->replicates;
}

static int done(void *ctx, size_t i, const struct run_result *r)
{
	struct work *w = ctx;
	struct place at = place(w->opts, i);
	double metric[N_METRICS];
	int err = metrics_of(r, metric);

	if (err)
		return kvmsim_err(w->opts->run.errors, err, "out of memory");
	for (int m = 0; m < N_METRICS; m++)
		values(w, at.round, at.policy, m)[at.replicate] = metric[m];
	if (at.replicate == 0) {
		struct tally *t = &w->tally[at.round * w->opts->n_policies + at.policy];

		memcpy(t->by_activity, r->by_activity, sizeof(r->by_activity));
		memcpy(t->cycles, r->count_cycles, sizeof(r->count_cycles));
		t->calls = r->n_collections;
		t->contended = r->mmu_lock.contended + r->mmu_lock_read.contended > 0;
	}
	w->out->torn |= r->torn;
	w->out->runs++;
	return w->opts->done ? w->opts->done(w->opts->ctx, &w->list[i], r, metric) : 0;
}

static void warn(void *ctx, const char *msg)
{
	const struct work *w = ctx;

	if (w->opts->warn)
		w->opts->warn(w->opts->ctx, msg);
}

static int plan(struct work *w)
{
	const struct compare_opts *o = w->opts;
	int rounds = w->out->range ? N_ROUNDS : 1;
	struct draw_opts d = {.profile = o->run.profile,
			      .seed = o->run.seed,
			      .n_phases = o->n_phases,
			      .shadow_lo = o->shadow_lo,
			      .shadow_hi = o->shadow_hi};
	struct draw_plan *draws = NULL;
	int err;

	for (int round = 0; round < rounds; round++)
		w->n += replicates(o, round) * o->n_policies;
	w->list = calloc(w->n, sizeof(*w->list));
	w->draw = calloc(o->replicates, sizeof(*w->draw));
	w->value = calloc((size_t)rounds * o->n_policies * N_METRICS * o->replicates,
			  sizeof(*w->value));
	w->tally = calloc((size_t)rounds * o->n_policies, sizeof(*w->tally));
	if (!w->list || !w->draw || !w->value || !w->tally)
		return kvmsim_err(o->run.errors, KVMSIM_ENOMEM, "out of memory");
	err = draw_plan_create(&d, o->run.errors, &draws);
	if (err)
		return err;
	w->out->n_prices = draw_prices(draws);
	for (uint32_t i = 0; !err && i < o->replicates; i++)
		err = draw_replicate(draws, i, &w->draw[i]);
	draw_plan_free(draws);
	if (err)
		return kvmsim_err(o->run.errors, err, "%s", kvmsim_strerror(err));
	for (size_t i = 0; i < w->n; i++) {
		struct place at = place(o, i);
		const struct draw *draw = &w->draw[at.replicate];
		const uint64_t sps[N_ROUNDS] = {draw->shadow_pages, o->shadow_lo, o->shadow_hi};

		w->list[i] = o->run;
		w->list[i].dirty = o->policies[at.policy];
		w->list[i].profile = draw->profile;
		w->list[i].phase = draw->phase;
		w->list[i].shadow_pages = sps[at.round];
		w->list[i].replicate = at.replicate;
		/* A policy that loses stores is cheap: once each, the checkers look. */
		w->list[i].check = i < o->n_policies;
	}
	return 0;
}

/* ---- what the profile does not price ---- */

static const struct tally *tally(const struct work *w, int round, size_t policy)
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
static int64_t unpriced(const struct work *w, int round, size_t policy, int metric, uint16_t c)
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

static bool any_unpriced(const struct work *w, size_t policy, int metric)
{
	for (uint16_t c = 0; c < N_COUNTS; c++)
		if (unpriced(w, ROUND_DRAWN, policy, metric, c))
			return true;
	return false;
}

/* A count that only moves between activities shows in the metrics of each of them. */
static void find_unpriced(const struct work *w, size_t policy)
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
static double break_even(const struct work *w, int round, size_t policy, int metric, double diff)
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

static int judge(const struct work *w, int round, size_t policy, struct verdict_pair *pair,
		 enum compare_gap *gap, double *even)
{
	for (int m = 0; m < N_METRICS; m++) {
		int err = verdict_judge(values(w, round, 0, m), values(w, round, policy, m),
					replicates(w->opts, round), &w->opts->verdict, &pair[m]);

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

static int judge_all(struct work *w)
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

/* ---- the crossover ---- */

/* GET_DIRTY_LOG means of the baseline and the policy, turn by turn. */
static int keep_mean(void *ctx, size_t i, const struct run_result *r)
{
	double metric[N_METRICS], *mean = ctx;
	int err = metrics_of(r, metric);

	mean[i] = metric[METRIC_get_dirty_log_mean];
	return err;
}

/* Of the sums over the replicates that were run at the ends of the range, here with @sps shadow
 * pages: policy - baseline. */
static int difference(const struct work *w, size_t policy, uint64_t sps, double *out)
{
	const struct compare_opts *o = w->opts;
	size_t n = 2 * (size_t)replicates(o, ROUND_LO);
	struct run_opts *list = calloc(n, sizeof(*list));
	double *mean = calloc(n, sizeof(*mean));
	const struct jobs jobs = {.list = list,
				  .n = n,
				  .workers = o->workers,
				  .run = o->run_fn,
				  .done = keep_mean,
				  .ctx = mean};
	int err;

	*out = 0;
	if (!list || !mean) {
		free(list);
		free(mean);
		return kvmsim_err(o->run.errors, KVMSIM_ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < n; i++) {
		list[i] = o->run;
		list[i].dirty = o->policies[i % 2 ? policy : 0];
		list[i].profile = w->draw[i / 2].profile;
		list[i].phase = w->draw[i / 2].phase;
		list[i].shadow_pages = sps;
		list[i].replicate = (uint32_t)(i / 2);
	}
	err = jobs_run(&jobs, o->run.errors);
	for (size_t i = 0; !err && i < n; i++)
		*out += i % 2 ? mean[i] : -mean[i];
	w->out->runs += n;
	free(list);
	free(mean);
	return err;
}

bool compare_depends(const struct compare *c, const struct compare_policy *p)
{
	return c->range && (p->lo.real != p->hi.real || p->lo.rel * p->hi.rel < 0);
}

/* Bisects to 1%, where the sides differ at the ends of the range. */
static int find_crossover(struct work *w, size_t policy)
{
	uint64_t lo = w->opts->shadow_lo, hi = w->opts->shadow_hi;
	struct compare_policy *p = &w->out->policy[policy];
	double at_mid;

	if (!(p->lo.rel * p->hi.rel < 0))
		return 0;
	while (hi - lo > 1 + hi / 100) {
		uint64_t mid = lo + (hi - lo) / 2;
		int err = difference(w, policy, mid, &at_mid);

		if (err)
			return err;
		if ((at_mid < 0) == (p->lo.rel < 0))
			lo = mid;
		else
			hi = mid;
	}
	p->crossover = lo + (hi - lo) / 2;
	p->crossover_unpriced = any_unpriced(w, policy, METRIC_get_dirty_log_mean);
	return 0;
}

int compare_run(const struct compare_opts *opts, struct compare *out)
{
	struct work w = {.opts = opts, .out = out};
	int err;

	*out = (struct compare){.n = opts->n_policies,
				.replicates = opts->replicates,
				.range = opts->shadow_lo < opts->shadow_hi};
	if (opts->n_policies < 2 || opts->replicates < 2)
		return kvmsim_err(opts->run.errors, KVMSIM_EINVAL,
				  "a comparison needs two policies and two replicates");
	out->policy = calloc(out->n, sizeof(*out->policy));
	err = out->policy ? plan(&w) : kvmsim_err(opts->run.errors, KVMSIM_ENOMEM, "out of memory");
	if (!err) {
		const struct jobs jobs = {.list = w.list,
					  .n = w.n,
					  .workers = opts->workers,
					  .run = opts->run_fn,
					  .done = done,
					  .warn = warn,
					  .ctx = &w};

		err = jobs_run(&jobs, opts->run.errors);
	}
	for (size_t k = 0; !err && k < out->n; k++) {
		out->policy[k].text = opts->policies[k];
		for (int m = 0; !err && m < N_METRICS; m++) {
			size_t bytes = opts->replicates * sizeof(double);

			out->policy[k].value[m] = malloc(bytes);
			if (!out->policy[k].value[m])
				err = kvmsim_err(opts->run.errors, KVMSIM_ENOMEM, "out of memory");
			else
				memcpy(out->policy[k].value[m], values(&w, ROUND_DRAWN, k, m),
				       bytes);
		}
	}
	err = err ? err : judge_all(&w);
	for (size_t k = 1; !err && out->range && k < out->n; k++)
		err = find_crossover(&w, k);
	for (uint32_t i = 0; w.draw && i < opts->replicates; i++)
		draw_release(&w.draw[i]);
	free(w.draw);
	free(w.list);
	free(w.value);
	free(w.tally);
	if (err)
		compare_free(out);
	return err;
}

void compare_free(struct compare *c)
{
	for (size_t k = 0; c->policy && k < c->n; k++)
		for (int m = 0; m < N_METRICS; m++)
			free(c->policy[k].value[m]);
	free(c->policy);
	*c = (struct compare){0};
}
