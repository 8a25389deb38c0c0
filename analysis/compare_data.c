// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <math.h>

#include <jansson.h>

#include "analysis/compare_view.h"
#include "analysis/output.h"
#include "analysis/run_record.h"
#include "model/sim/profile.h"

/* A comparison for programs. Fractions stay fractions (-0.71 is 71% less). */

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
		const struct run_opts run = compare_run_of(v, p);

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
			csv_text(&csv, v->opts->sptes ? run_spte_evidence(&run, v->preset)
						      : run_evidence(&run, p->dirty, v->preset));
			csv_end_row(&csv);
		}
	}
	return 0;
}

static json_t *text(const char *s)
{
	return s ? json_string(s) : json_null();
}

static json_t *pair_json(const struct compare_view *v, const struct compare_policy *p, int m)
{
	const struct verdict_pair *q = &p->pair[m];
	json_t *o = json_object();

	json_put(o, "metric", text(metric_desc[m].name));
	json_put(o, "unit", text(metric_unit(m, profile_unit(v->opts->run.profile))));
	/* What lacks a price is no number. */
	if (p->gap[m] != GAP_UNPRICED) {
		json_put(o, "baseline_mean", json_real(q->base_mean));
		json_put(o, "baseline_sd", json_real(q->base_sd));
		json_put(o, "mean", json_real(q->mean));
		json_put(o, "sd", json_real(q->sd));
	}
	if (p->gap[m] == GAP_NONE) {
		json_put(o, "difference", json_real(q->diff.value));
		json_put(o, "relative", json_real(q->rel.value));
		json_put(o, "interval", json_pack("[f, f]", q->rel.lo, q->rel.hi));
		json_put(o, "range", json_pack("[f, f]", q->rel_lo, q->rel_hi));
		json_put(o, "p_holm", json_real(q->rel.p));
		if (isfinite(p->break_even[m]))
			json_put(o, "break_even_price", json_real(p->break_even[m]));
	} else {
		json_put(o, "cannot_tell", text(gap_name(p->gap[m])));
	}
	if (metric_is_cost(m)) {
		json_put(o, "model", text(verdict_name(q->model)));
		json_put(o, "real", text(verdict_name(q->real)));
	}
	if (metric_is_cost(m) && p->gap[m] == GAP_NONE) {
		json_put(o, "assurance", json_real(q->assurance));
		json_put(o, "runs_needed", q->runs_needed ? json_u64(q->runs_needed) : json_null());
		json_put(o, "tends", text(verdict_name(q->tends)));
	}
	return o;
}

static json_t *edge_json(uint64_t sps, const struct compare_edge *e)
{
	json_t *o = json_object();

	json_put(o, "shadow_pages", json_u64(sps));
	json_put(o, "real", text(verdict_name(e->real)));
	json_put(o, "get_dirty_log_mean_relative", json_real(e->rel));
	return o;
}

static json_t *policy_json(const struct compare_view *v, size_t k)
{
	const struct compare_policy *p = &v->c->policy[k];
	const struct run_opts run = compare_run_of(v, p);
	json_t *o = json_object(), *list = json_array(), *unpriced = json_array();

	json_put(o, "policy", text(p->text));
	run_evidence_json(o, &run, p->dirty, v->preset);
	json_put(o, "real", text(verdict_name(p->real)));
	json_put(o, "model", text(verdict_name(p->model)));
	json_put(o, "tends", text(verdict_name(p->tends)));
	json_put(o, "runs_needed", p->runs_needed ? json_u64(p->runs_needed) : json_null());
	for (int c = 0; c < N_COUNTS; c++)
		if (p->unpriced[c])
			json_array_append_new(unpriced, text(model_vocabulary.counts[c]));
	json_put(o, "not_priced", unpriced);
	if (v->c->range) {
		json_put(o, "at_lo", edge_json(v->opts->shadow_lo, &p->lo));
		json_put(o, "at_hi", edge_json(v->opts->shadow_hi, &p->hi));
		json_put(o, "depends_on_shadow_pages", json_boolean(compare_depends(v->c, p)));
		json_put(o, "crossover_shadow_pages",
			 p->crossover ? json_u64(p->crossover) : json_null());
		if (p->crossover)
			json_put(o, "crossover_not_priced", json_boolean(p->crossover_unpriced));
	}
	for (int m = 0; m < N_METRICS; m++)
		json_array_append_new(list, pair_json(v, p, m));
	json_put(o, "metrics", list);
	return o;
}

int compare_print_json(const struct compare_view *v, FILE *to)
{
	const struct compare_opts *opts = v->opts;
	const struct verdict_opts *vo = &opts->verdict;
	json_t *o = json_object(), *profile = json_object(), *real = json_object();
	json_t *list = json_array(), *baseline = json_object();
	const struct run_opts first = compare_run_of(v, &v->c->policy[0]);

	json_put(o, "family", text(opts->sptes ? "spte" : "dirty"));
	json_put(o, "dirty", opts->sptes ? text(opts->policies[0]) : json_null());
	json_put(o, opts->run.trace ? "trace" : "scenario",
		 text(opts->run.trace ? opts->run.trace : opts->run.scenario));
	json_put(o, "slot", text(opts->run.slot ? opts->run.slot : "all"));
	json_put(o, "kernel", text(v->preset));
	json_put(o, "mmu",
		 text(mmu_kind_name(run_mmu(v->preset, opts->run.long_mode, opts->run.nested))));
	json_put(o, "cpu", text(run_cpu(&opts->run)));
	json_put(profile, "name", text(profile_name(opts->run.profile)));
	json_put(profile, "machine", text(profile_machine(opts->run.profile)));
	json_put(profile, "unit", text(profile_unit(opts->run.profile)));
	json_put(profile, "checksum", json_hex64(profile_checksum(opts->run.profile)));
	json_put(o, "profile", profile);
	json_put(o, "interval", json_u64(v->interval));
	json_put(o, "long_mode", json_boolean(opts->run.long_mode));
	json_put(o, "nested", json_boolean(opts->run.nested));
	json_put(o, "running", json_boolean(opts->run.running));
	json_put(o, "disable_after", json_u64(opts->run.disable_after));
	run_memory_json(o, &opts->run);
	json_put(o, "phases", json_u64(opts->n_phases));
	json_put(o, "shadow_pages",
		 json_pack("[o, o]", json_u64(opts->shadow_lo), json_u64(opts->shadow_hi)));
	json_put(o, "prices_drawn", json_u64(v->c->n_prices));
	json_put(o, "replicates", json_u64(opts->replicates));
	json_put(o, "seed", json_u64(opts->run.seed));
	json_put(o, "torn", json_boolean(v->c->torn));
	json_put(real, "runs", json_u64(vo->runs));
	json_put(real, "spread", json_real(vo->spread));
	json_put(real, "spread_source", text(v->spread_source));
	json_put(real, "min_effect", json_real(vo->min_effect));
	json_put(real, "level", json_real(vo->level));
	json_put(real, "power", json_real(vo->power));
	json_put(o, "real_machines", real);
	json_put(baseline, "policy", text(v->c->policy[0].text));
	run_evidence_json(baseline, &first, v->c->policy[0].dirty, v->preset);
	json_put(o, "baseline", baseline);
	for (size_t k = 1; k < v->c->n; k++)
		json_array_append_new(list, policy_json(v, k));
	json_put(o, "policies", list);
	return json_print(o, to);
}
