// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/sweep.h"

#include <stdlib.h>
#include <string.h>

/* ---- points ---- */

static size_t count_points(const struct sweep_opts *o)
{
	size_t n = 1;

	for (size_t i = 0; i < o->n_axes; i++)
		n *= o->axis[i].n;
	return n;
}

void sweep_values(const struct sweep_opts *o, size_t at, uint32_t value[SWEEP_MAX_AXES])
{
	for (size_t i = o->n_axes; i-- > 0; at /= o->axis[i].n)
		value[i] = o->axis[i].value[at % o->axis[i].n];
}

/* ---- judging a point ---- */

/* The number of runs after which all pairs are settled; 0 when one never is. */
static uint64_t runs_to_settle(const struct sweep_point *p, size_t n)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		if (i == p->best)
			continue;
		if (!p->over[i].runs_needed)
			return 0;
		if (p->over[i].runs_needed > most)
			most = p->over[i].runs_needed;
	}
	return most;
}

static void find_best(struct sweep_point *p, size_t n)
{
	p->best = 0;
	for (size_t i = 1; i < n; i++)
		if (p->cell[i].rate.value > p->cell[p->best].rate.value)
			p->best = i;
	p->next = p->best ? 0 : 1;
	for (size_t i = 0; i < n; i++)
		if (i != p->best && p->cell[i].rate.value > p->cell[p->next].rate.value)
			p->next = i;
}

static int judge_point(const struct sweep_opts *o, struct sweep_point *p)
{
	size_t n = o->n_policies, reps = o->args->replicates, faster = 0, same = 0;
	int err = 0;

	find_best(p, n);
	for (size_t i = 0; !err && i < n; i++) {
		if (i)
			err = verdict_judge(p->cell[0].time, p->cell[i].time, reps, &o->verdict,
					    &p->against_first[i]);
		if (!err && i != p->best)
			err = verdict_judge(p->cell[i].time, p->cell[p->best].time, reps,
					    &o->verdict, &p->over[i]);
		if (i == p->best)
			continue;
		faster += p->over[i].real == VERDICT_FASTER;
		same += p->over[i].real == VERDICT_SAME;
	}
	if (faster == n - 1)
		p->verdict = VERDICT_FASTER;
	else
		p->verdict = same == n - 1 ? VERDICT_SAME : VERDICT_INCONCLUSIVE;
	p->runs_needed = runs_to_settle(p, n);
	return err;
}

/* ---- policies that change places ---- */

/* Whether @a is shown to be faster than @b at @p. */
static int shown(const struct sweep_opts *o, const struct sweep_point *p, size_t a, size_t b,
		 bool *faster)
{
	struct verdict_pair pair;
	int err = verdict_judge(p->cell[b].time, p->cell[a].time, o->args->replicates, &o->verdict,
				&pair);

	*faster = !err && pair.real == VERDICT_FASTER;
	return err;
}

/* The point where @a is shown faster than @b by the most; false: there is none. */
static int where(const struct sweep *s, size_t a, size_t b, size_t *at, bool *any)
{
	double most = 0;
	int err = 0;

	*any = false;
	for (size_t i = 0; !err && i < s->n_points; i++) {
		const struct sweep_point *p = &s->point[i];
		double gain = p->cell[a].rate.value / p->cell[b].rate.value;
		bool faster;

		err = shown(s->opts, p, a, b, &faster);
		if (err || !faster || gain <= most)
			continue;
		most = gain;
		*at = i;
		*any = true;
	}
	return err;
}

static int find_swaps(struct sweep *s)
{
	int err = 0;

	for (size_t a = 0; !err && a < s->opts->n_policies; a++)
		for (size_t b = a + 1; !err && b < s->opts->n_policies; b++) {
			struct sweep_swap swap = {.a = a, .b = b};
			bool one, other;

			err = where(s, a, b, &swap.at_a, &one);
			err = err ? err : where(s, b, a, &swap.at_b, &other);
			if (!err && one && other)
				s->swap[s->n_swaps++] = swap;
		}
	return err;
}

/* ---- runs ---- */

/* From all runs' results. */
static int fill(struct sweep *s, const struct overcommit_point *runs)
{
	const struct sweep_opts *o = s->opts;
	uint32_t reps = o->args->replicates;

	for (size_t i = 0; i < s->n_points * o->n_policies; i++) {
		struct sweep_cell *c = &s->point[i / o->n_policies].cell[i % o->n_policies];

		c->rate = overcommit_mean(&runs[i], reps);
		c->time = calloc(reps, sizeof(*c->time));
		if (!c->time)
			return kvmsim_err(&cli_errors, KVMSIM_ENOMEM, "out of memory");
		for (uint32_t r = 0; r < reps; r++) {
			double rate = overcommit_rate(&runs[i], r);

			if (rate <= 0)
				return kvmsim_err(&cli_errors, KVMSIM_EINVAL,
						  "%s: no operation was done in the measured time; "
						  "a longer --time may help",
						  o->policy[i % o->n_policies].text);
			c->time[r] = 1 / rate;
		}
	}
	return 0;
}

int sweep_run(const struct sweep_opts *o, struct sweep *out)
{
	size_t n = count_points(o), runs = n * o->n_policies;
	struct overcommit_point *p = calloc(runs, sizeof(*p));
	struct sweep_policy *changed = calloc(runs, sizeof(*changed));
	int err = 0;

	*out = (struct sweep){.opts = o, .n_points = n, .point = calloc(n, sizeof(*out->point))};
	if (!p || !changed || !out->point) {
		free(p);
		free(changed);
		return kvmsim_err(&cli_errors, KVMSIM_ENOMEM, "out of memory");
	}
	for (size_t i = 0; !err && i < runs; i++) {
		struct sweep_point *point = &out->point[i / o->n_policies];

		sweep_values(o, i / o->n_policies, point->value);
		/* They were all tried before: see cmd_sweep.c. */
		if (sweep_settings(o, &o->policy[i % o->n_policies], point->value, &p[i].opts,
				   &changed[i]))
			err = KVMSIM_EINVAL;
		p[i].opts.lock = changed[i].lock;
		p[i].opts.ple = *changed[i].ple ? changed[i].ple : NULL;
	}
	err = err ? err : overcommit_points_run(p, runs, o->args->replicates, o->args->workers);
	err = err ? err : fill(out, p);
	for (size_t i = 0; !err && i < n; i++)
		err = judge_point(o, &out->point[i]);
	err = err ? err : find_swaps(out);
	overcommit_points_free(p, runs);
	free(p);
	free(changed);
	return err;
}

void sweep_free(struct sweep *s)
{
	for (size_t i = 0; s->point && i < s->n_points; i++)
		for (size_t k = 0; k < s->opts->n_policies; k++)
			free(s->point[i].cell[k].time);
	free(s->point);
}
