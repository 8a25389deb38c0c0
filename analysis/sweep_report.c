// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <string.h>

#include "analysis/output.h"
#include "analysis/sweep.h"
#include "model/sim/profile.h"

/* What is gained in operations per time, from what the best one's time is less. */
static double gain(double rel_time)
{
	return 1 / (1 + rel_time) - 1;
}

static void point_cells(struct table *t, const struct sweep *s, const struct sweep_point *p)
{
	for (size_t k = 0; k < s->opts->n_axes; k++)
		table_cell(t, "%" PRIu32, p->value[k]);
}

static void axis_cells(struct table *t, const struct sweep *s)
{
	for (size_t k = 0; k < s->opts->n_axes; k++)
		table_cell(t, "%s", s->opts->axis[k].key);
}

static const char *verdict_words(const struct sweep_point *p)
{
	if (p->verdict == VERDICT_FASTER)
		return "best";
	return p->verdict == VERDICT_SAME ? "all the same" : "inconclusive";
}

static void runs_cell(struct table *t, uint64_t runs)
{
	if (runs)
		table_cell(t, "%" PRIu64, runs);
	else
		table_cell(t, "no number");
}

/* Each policy's rate relative to the first one's. */
static int print_rates(const struct sweep *s)
{
	const struct sweep_opts *o = s->opts;
	struct table *t =
		table_create(&"rrrrrrrrrrrrrrrrrrrr"[20 - o->n_axes - 1 - 2 * (o->n_policies - 1)]);
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	axis_cells(t, s);
	table_cell(t, "%s, ops/s", o->policy[0].text);
	for (size_t k = 1; k < o->n_policies; k++) {
		table_cell(t, "%s", o->policy[k].text);
		table_cell(t, "95%%");
	}
	for (size_t i = 0; i < s->n_points; i++) {
		const struct sweep_point *p = &s->point[i];

		point_cells(t, s, p);
		table_cell(t, "%.1f", p->cell[0].rate.value);
		for (size_t k = 1; k < o->n_policies; k++) {
			const struct stats_estimate *rel = &p->against_first[k].rel;

			table_cell(t, "%+.2f%%", 100 * gain(rel->value));
			table_cell(t, "%+.2f..%+.2f", 100 * gain(rel->hi), 100 * gain(rel->lo));
		}
	}
	err = table_print(t, stdout);
	table_free(t);
	return err;
}

static int print_best(const struct sweep *s)
{
	const struct sweep_opts *o = s->opts;
	struct table *t = table_create(&"rrllrrlr"[SWEEP_MAX_AXES - o->n_axes]);
	int err;

	if (!t)
		return KVMSIM_ENOMEM;
	axis_cells(t, s);
	table_cell(t, "highest");
	table_cell(t, "next");
	table_cell(t, "gain over it");
	table_cell(t, "95%%");
	table_cell(t, "on real machines");
	table_cell(t, "runs to settle");
	for (size_t i = 0; i < s->n_points; i++) {
		const struct sweep_point *p = &s->point[i];
		const struct stats_estimate *rel = &p->over[p->next].rel;

		point_cells(t, s, p);
		table_cell(t, "%s", o->policy[p->best].text);
		table_cell(t, "%s", o->policy[p->next].text);
		table_cell(t, "%+.2f%%", 100 * gain(rel->value));
		table_cell(t, "%+.2f..%+.2f", 100 * gain(rel->hi), 100 * gain(rel->lo));
		table_cell(t, "%s", verdict_words(p));
		runs_cell(t, p->runs_needed);
	}
	err = table_print(t, stdout);
	table_free(t);
	return err;
}

static void print_point(const struct sweep *s, size_t at)
{
	for (size_t k = 0; k < s->opts->n_axes; k++)
		printf("%s%s=%" PRIu32, k ? "," : "", s->opts->axis[k].key, s->point[at].value[k]);
}

static int print_text(const struct sweep *s)
{
	const struct sweep_opts *o = s->opts;
	const struct overcommit_args *a = o->args;
	int err;

	printf("%s, priced as %s; %" PRIu64 " ms of virtual time after %" PRIu64
	       " ms, replicates: %" PRIu32 "\n\n",
	       a->workload, profile_machine(a->o.profile), a->o.measured_ns / 1000000,
	       a->o.warm_up_ns / 1000000, a->replicates);
	err = print_rates(s);
	printf("\n");
	err = err ? err : print_best(s);
	if (err)
		return err;
	printf("\nReal machines: %" PRIu64 " runs of each policy that scatter by %.3g%%; a "
	       "difference below %.3g%% is not worth having.\n",
	       o->verdict.runs, 100 * o->verdict.spread, 100 * o->verdict.min_effect);
	for (size_t i = 0; i < s->n_swaps; i++) {
		const struct sweep_swap *w = &s->swap[i];

		printf("%s and %s change places: the first is faster at ", o->policy[w->a].text,
		       o->policy[w->b].text);
		print_point(s, w->at_a);
		printf(", the second at ");
		print_point(s, w->at_b);
		printf(".\n");
	}
	if (!s->n_swaps)
		printf("No two of the policies are shown to change places between these points.\n");
	return 0;
}

/* ---- for programs ---- */

static void print_csv(const struct sweep *s)
{
	const struct sweep_opts *o = s->opts;
	struct csv_out c = {.to = stdout};

	for (size_t k = 0; k < o->n_axes; k++)
		csv_text(&c, o->axis[k].key);
	csv_text(&c, "policy");
	csv_text(&c, "operations_per_second");
	csv_text(&c, "lo");
	csv_text(&c, "hi");
	csv_text(&c, "gain");
	csv_text(&c, "gain_lo");
	csv_text(&c, "gain_hi");
	csv_text(&c, "verdict");
	csv_text(&c, "runs_needed");
	csv_end_row(&c);
	for (size_t i = 0; i < s->n_points * o->n_policies; i++) {
		const struct sweep_point *p = &s->point[i / o->n_policies];
		size_t at = i % o->n_policies;
		const struct verdict_pair *v = &p->against_first[at];

		for (size_t k = 0; k < o->n_axes; k++)
			csv_field(&c, "%" PRIu32, p->value[k]);
		csv_text(&c, o->policy[at].text);
		csv_field(&c, "%.6f", p->cell[at].rate.value);
		csv_field(&c, "%.6f", p->cell[at].rate.lo);
		csv_field(&c, "%.6f", p->cell[at].rate.hi);
		if (at) {
			csv_field(&c, "%.6f", gain(v->rel.value));
			csv_field(&c, "%.6f", gain(v->rel.hi));
			csv_field(&c, "%.6f", gain(v->rel.lo));
			csv_text(&c, verdict_name(v->real));
			csv_field(&c, "%" PRIu64, v->runs_needed);
		} else {
			for (int k = 0; k < 5; k++)
				csv_text(&c, NULL);
		}
		csv_end_row(&c);
	}
}

static json_t *pair_json(const struct verdict_pair *v)
{
	json_t *j = json_object();

	json_put(j, "gain", json_real(gain(v->rel.value)));
	json_put(j, "lo", json_real(gain(v->rel.hi)));
	json_put(j, "hi", json_real(gain(v->rel.lo)));
	json_put(j, "model", json_string(verdict_name(v->model)));
	json_put(j, "real", json_string(verdict_name(v->real)));
	json_put(j, "tends", json_string(verdict_name(v->tends)));
	json_put(j, "runs_needed", json_u64(v->runs_needed));
	return j;
}

static json_t *point_values_json(const struct sweep *s, const struct sweep_point *p)
{
	json_t *j = json_object();

	for (size_t k = 0; k < s->opts->n_axes; k++)
		json_put(j, s->opts->axis[k].key, json_u64(p->value[k]));
	return j;
}

static json_t *point_json(const struct sweep *s, const struct sweep_point *p)
{
	const struct sweep_opts *o = s->opts;
	json_t *j = json_object(), *cells = json_array();

	json_put(j, "point", point_values_json(s, p));
	for (size_t k = 0; k < o->n_policies; k++) {
		json_t *c = json_object();

		json_put(c, "policy", json_string(o->policy[k].text));
		json_put(c, "operations_per_second", json_real(p->cell[k].rate.value));
		json_put(c, "lo", json_real(p->cell[k].rate.lo));
		json_put(c, "hi", json_real(p->cell[k].rate.hi));
		json_put(c, "against_first", k ? pair_json(&p->against_first[k]) : json_null());
		json_put(c, "best_over_it", k == p->best ? json_null() : pair_json(&p->over[k]));
		json_array_append_new(cells, c);
	}
	json_put(j, "policies", cells);
	json_put(j, "highest", json_string(o->policy[p->best].text));
	json_put(j, "verdict", json_string(verdict_words(p)));
	json_put(j, "runs_needed", json_u64(p->runs_needed));
	return j;
}

static json_t *report_json(const struct sweep *s)
{
	const struct sweep_opts *o = s->opts;
	json_t *j = json_object(), *points = json_array(), *swaps = json_array();

	json_put(j, "workload", json_string(o->args->workload));
	json_put(j, "profile", json_string(profile_name(o->args->o.profile)));
	json_put(j, "replicates", json_u64(o->args->replicates));
	json_put(j, "spread", json_real(o->verdict.spread));
	json_put(j, "runs", json_u64(o->verdict.runs));
	json_put(j, "min_effect", json_real(o->verdict.min_effect));
	for (size_t i = 0; i < s->n_points; i++)
		json_array_append_new(points, point_json(s, &s->point[i]));
	json_put(j, "points", points);
	for (size_t i = 0; i < s->n_swaps; i++) {
		const struct sweep_swap *w = &s->swap[i];
		json_t *k = json_object();

		json_put(k, "faster", json_string(o->policy[w->a].text));
		json_put(k, "at", point_values_json(s, &s->point[w->at_a]));
		json_put(k, "than", json_string(o->policy[w->b].text));
		json_put(k, "slower_at", point_values_json(s, &s->point[w->at_b]));
		json_array_append_new(swaps, k);
	}
	json_put(j, "change_places", swaps);
	return j;
}

int sweep_report(const struct sweep *s)
{
	if (s->opts->args->json)
		return json_print(report_json(s), stdout);
	if (!s->opts->args->csv)
		return print_text(s);
	print_csv(s);
	return 0;
}
