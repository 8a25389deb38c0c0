// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <math.h>

#include <jansson.h>

#include "analysis/compare_view.h"
#include "analysis/output.h"
#include "analysis/run_record.h"
#include "model/sim/profile.h"

/* A comparison for programs. Fractions stay fractions (-0.71 is 71% less). */

static const char *evidence(const struct compare_view *v, size_t policy)
{
	return policy_evidence_name(
		run_evidence(&v->opts->run, v->c->policy[policy].text, v->preset));
}

static const char *gap_name(enum compare_gap gap)
{
	return gap == GAP_ZERO ? "baseline 0" : gap == GAP_UNPRICED ? "not priced" : NULL;
}

int compare_print_csv(const struct compare_view *v, FILE *to)
{
	static const char *const heads[] = {"policy",	     "baseline",    "metric",	   "unit",
					    "baseline_mean", "baseline_sd", "mean",	   "sd",
					    "difference",    "relative",    "lo",	   "hi",
					    "range_lo",	     "range_hi",    "p_holm",	   "model",
					    "real",	     "assurance",   "runs_needed", "tends",
					    "cannot_tell",   "evidence"};
	const char *unit = profile_unit(v->opts->run.profile);
	struct csv_out csv = {.to = to};

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		csv_text(&csv, heads[i]);
	csv_end_row(&csv);
	for (size_t k = 1; k < v->c->n; k++) {
		const struct compare_policy *p = &v->c->policy[k];

		for (int m = 0; m < N_METRICS; m++) {
			const struct verdict_pair *q = &p->pair[m];
			bool told = p->gap[m] == GAP_NONE;
			const double values[] = {q->base_mean, q->base_sd, q->mean, q->sd};
			const double numbers[] = {q->rel.value, q->rel.lo, q->rel.hi,
						  q->rel_lo,	q->rel_hi, q->rel.p};

			csv_text(&csv, p->text);
			csv_text(&csv, v->c->policy[0].text);
			csv_text(&csv, metric_desc[m].name);
			csv_text(&csv, metric_unit(m, unit));
			for (int i = 0; i < 4; i++) {
				if (p->gap[m] != GAP_UNPRICED)
					csv_field(&csv, "%.17g", values[i]);
				else
					csv_text(&csv, NULL);
			}
			if (told)
				csv_field(&csv, "%.17g", q->diff.value);
			else
				csv_text(&csv, NULL);
			for (int i = 0; i < 6; i++) {
				if (told)
					csv_field(&csv, "%.17g", numbers[i]);
				else
					csv_text(&csv, NULL);
			}
			if (metric_is_cost(m)) {
				csv_text(&csv, verdict_name(q->model));
				csv_text(&csv, verdict_name(q->real));
			} else {
				csv_text(&csv, NULL);
				csv_text(&csv, NULL);
			}
			if (told && metric_is_cost(m)) {
				csv_field(&csv, "%.17g", q->assurance);
				csv_field(&csv, "%" PRIu64, q->runs_needed);
				csv_text(&csv, verdict_name(q->tends));
			} else {
				for (int i = 0; i < 3; i++)
					csv_text(&csv, NULL);
			}
			csv_text(&csv, gap_name(p->gap[m]));
			csv_text(&csv, evidence(v, k));
			csv_end_row(&csv);
		}
	}
	return 0;
}

static void set(json_t *o, const char *key, json_t *value)
{
	json_object_set_new(o, key, value);
}

static json_t *text(const char *s)
{
	return s ? json_string(s) : json_null();
}

static json_t *pair_json(const struct compare_view *v, const struct compare_policy *p, int m)
{
	const struct verdict_pair *q = &p->pair[m];
	json_t *o = json_object();

	set(o, "metric", text(metric_desc[m].name));
	set(o, "unit", text(metric_unit(m, profile_unit(v->opts->run.profile))));
	/* What lacks a price is no number. */
	if (p->gap[m] != GAP_UNPRICED) {
		set(o, "baseline_mean", json_real(q->base_mean));
		set(o, "baseline_sd", json_real(q->base_sd));
		set(o, "mean", json_real(q->mean));
		set(o, "sd", json_real(q->sd));
	}
	if (p->gap[m] == GAP_NONE) {
		set(o, "difference", json_real(q->diff.value));
		set(o, "relative", json_real(q->rel.value));
		set(o, "interval", json_pack("[f, f]", q->rel.lo, q->rel.hi));
		set(o, "range", json_pack("[f, f]", q->rel_lo, q->rel_hi));
		set(o, "p_holm", json_real(q->rel.p));
		if (isfinite(p->break_even[m]))
			set(o, "break_even_price", json_real(p->break_even[m]));
	} else {
		set(o, "cannot_tell", text(gap_name(p->gap[m])));
	}
	if (metric_is_cost(m)) {
		set(o, "model", text(verdict_name(q->model)));
		set(o, "real", text(verdict_name(q->real)));
	}
	if (metric_is_cost(m) && p->gap[m] == GAP_NONE) {
		set(o, "assurance", json_real(q->assurance));
		set(o, "runs_needed", q->runs_needed ? json_u64(q->runs_needed) : json_null());
		set(o, "tends", text(verdict_name(q->tends)));
	}
	return o;
}

static json_t *edge_json(uint64_t sps, const struct compare_edge *e)
{
	json_t *o = json_object();

	set(o, "shadow_pages", json_u64(sps));
	set(o, "real", text(verdict_name(e->real)));
	set(o, "get_dirty_log_mean_relative", json_real(e->rel));
	return o;
}

static json_t *policy_json(const struct compare_view *v, size_t k)
{
	const struct compare_policy *p = &v->c->policy[k];
	json_t *o = json_object(), *list = json_array(), *unpriced = json_array();

	set(o, "policy", text(p->text));
	set(o, "evidence", text(evidence(v, k)));
	set(o, "real", text(verdict_name(p->real)));
	set(o, "model", text(verdict_name(p->model)));
	set(o, "tends", text(verdict_name(p->tends)));
	set(o, "runs_needed", p->runs_needed ? json_u64(p->runs_needed) : json_null());
	for (int c = 0; c < N_COUNTS; c++)
		if (p->unpriced[c])
			json_array_append_new(unpriced, text(model_vocabulary.counts[c]));
	set(o, "not_priced", unpriced);
	if (v->c->range) {
		set(o, "at_lo", edge_json(v->opts->shadow_lo, &p->lo));
		set(o, "at_hi", edge_json(v->opts->shadow_hi, &p->hi));
		set(o, "depends_on_shadow_pages", json_boolean(p->lo.real != p->hi.real));
		set(o, "crossover_shadow_pages",
		    p->crossover ? json_u64(p->crossover) : json_null());
	}
	for (int m = 0; m < N_METRICS; m++)
		json_array_append_new(list, pair_json(v, p, m));
	set(o, "metrics", list);
	return o;
}

int compare_print_json(const struct compare_view *v, FILE *to)
{
	const struct compare_opts *opts = v->opts;
	const struct verdict_opts *vo = &opts->verdict;
	json_t *o = json_object(), *profile = json_object(), *real = json_object();
	json_t *list = json_array(), *baseline = json_object();

	set(o, opts->run.trace ? "trace" : "scenario",
	    text(opts->run.trace ? opts->run.trace : opts->run.scenario));
	set(o, "slot", text(opts->run.slot ? opts->run.slot : "all"));
	set(o, "kernel", text(v->preset));
	set(o, "mmu", text(mmu_kind_name(RUN_MMU)));
	set(o, "cpu", text(run_cpu(&opts->run)));
	set(profile, "name", text(profile_name(opts->run.profile)));
	set(profile, "machine", text(profile_machine(opts->run.profile)));
	set(profile, "unit", text(profile_unit(opts->run.profile)));
	set(profile, "checksum", json_hex64(profile_checksum(opts->run.profile)));
	set(o, "profile", profile);
	set(o, "interval", json_u64(v->interval));
	set(o, "phases", json_u64(opts->n_phases));
	set(o, "shadow_pages",
	    json_pack("[o, o]", json_u64(opts->shadow_lo), json_u64(opts->shadow_hi)));
	set(o, "prices_drawn", json_u64(v->c->n_prices));
	set(o, "replicates", json_u64(opts->replicates));
	set(o, "seed", json_u64(opts->run.seed));
	set(o, "torn", json_boolean(v->c->torn));
	set(real, "runs", json_u64(vo->runs));
	set(real, "spread", json_real(vo->spread));
	set(real, "spread_source", text(v->spread_source));
	set(real, "min_effect", json_real(vo->min_effect));
	set(real, "level", json_real(vo->level));
	set(real, "power", json_real(vo->power));
	set(o, "real_machines", real);
	set(baseline, "policy", text(v->c->policy[0].text));
	set(baseline, "evidence", text(evidence(v, 0)));
	set(o, "baseline", baseline);
	for (size_t k = 1; k < v->c->n; k++)
		json_array_append_new(list, policy_json(v, k));
	set(o, "policies", list);
	return json_print(o, to);
}
