// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/compare_work.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/draw.h"

uint32_t compare_replicates(const struct compare_opts *o, int round)
{
	const uint32_t at_ends = 8;

	return round == ROUND_DRAWN || o->replicates < at_ends ? o->replicates : at_ends;
}

double *compare_values(const struct compare_work *w, int round, size_t policy, int metric)
{
	return w->value +
	       ((round * w->opts->n_policies + policy) * N_METRICS + metric) * w->opts->replicates;
}

static const char *spte_of(const struct compare_opts *o, size_t policy)
{
	return o->sptes ? o->sptes[policy] : o->run.spte;
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
	while (p.round < ROUND_HI && i >= compare_replicates(o, p.round))
		i -= compare_replicates(o, p.round++);
	p.replicate = (uint32_t)i;
	return p;
}

static int done(void *ctx, size_t i, const struct run_result *r)
{
	struct compare_work *w = ctx;
	struct place at = place(w->opts, i);
	double metric[N_METRICS];
	int err = metrics_of(r, metric);

	if (err)
		return kvmsim_err(w->opts->run.errors, err, "out of memory");
	for (int m = 0; m < N_METRICS; m++)
		compare_values(w, at.round, at.policy, m)[at.replicate] = metric[m];
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
	const struct compare_work *w = ctx;

	if (w->opts->warn)
		w->opts->warn(w->opts->ctx, msg);
}

static int plan(struct compare_work *w)
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
		w->n += compare_replicates(o, round) * o->n_policies;
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
		w->list[i].spte = spte_of(o, at.policy);
		w->list[i].profile = draw->profile;
		w->list[i].phase = draw->phase;
		w->list[i].shadow_pages = sps[at.round];
		w->list[i].replicate = at.replicate;
		/* A policy that loses stores is cheap: once each, the checkers look. */
		w->list[i].check = i < o->n_policies;
	}
	return 0;
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
static int difference(const struct compare_work *w, size_t policy, uint64_t sps, double *out)
{
	const struct compare_opts *o = w->opts;
	size_t n = 2 * (size_t)compare_replicates(o, ROUND_LO);
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
		list[i].spte = spte_of(o, i % 2 ? policy : 0);
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
static int find_crossover(struct compare_work *w, size_t policy)
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
	p->crossover_unpriced = compare_any_unpriced(w, policy, METRIC_get_dirty_log_mean);
	return 0;
}

int compare_run(const struct compare_opts *opts, struct compare *out)
{
	struct compare_work w = {.opts = opts, .out = out};
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
		out->policy[k].text = opts->sptes ? opts->sptes[k] : opts->policies[k];
		out->policy[k].dirty = opts->policies[k];
		out->policy[k].spte = spte_of(opts, k);
		for (int m = 0; !err && m < N_METRICS; m++) {
			size_t bytes = opts->replicates * sizeof(double);

			out->policy[k].value[m] = malloc(bytes);
			if (!out->policy[k].value[m])
				err = kvmsim_err(opts->run.errors, KVMSIM_ENOMEM, "out of memory");
			else
				memcpy(out->policy[k].value[m],
				       compare_values(&w, ROUND_DRAWN, k, m), bytes);
		}
	}
	err = err ? err : compare_judge(&w);
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
