// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/run_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "analysis/cli.h"
#include "analysis/output.h"
#include "analysis/store.h"
#include "model/guest/personality.h"
#include "model/sim/profile.h"

const char *run_cpu(const struct run_opts *opts)
{
	const struct cpu_personality *p = personality_find(opts->personality);

	return p ? p->name : opts->personality;
}

static const struct policy_proof *proof_of(enum policy_family family, const char *policy,
					   const char *preset, const char *cpu)
{
	static const struct policy_proof none;
	const struct policy_desc *d;
	struct policy_params params;

	if (policy_parse(family, policy, NULL, &d, &params))
		return &none;
	return policy_proof(d, preset, cpu);
}

static const struct policy_proof *proof(const char *dirty, const char *preset, const char *cpu)
{
	return proof_of(FAMILY_DIRTY, dirty, preset, cpu);
}

const char *run_evidence(const struct run_opts *opts, const char *dirty, const char *preset)
{
	return policy_evidence_name(proof(dirty, preset, run_cpu(opts))
					    ->on[run_mmu(preset, opts->long_mode, opts->nested)]);
}

char *run_evidence_text(const struct run_opts *opts, const char *dirty, const char *preset)
{
	return evidence_text(dirty, preset, run_cpu(opts),
			     run_mmu(preset, opts->long_mode, opts->nested));
}

enum policy_evidence evidence_on(const char *dirty, const char *preset, const char *cpu,
				 enum mmu_kind mmu)
{
	return proof(dirty, preset, cpu)->on[mmu];
}

static char *proof_text(const struct policy_proof *p, enum mmu_kind mmu)
{
	const char *open = " (";
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fprintf(f, "%s on %s", policy_evidence_name(p->on[mmu]), mmu_kind_name(mmu));
	for (int k = 0; k < N_MMU_KINDS; k++) {
		if (p->on[k] <= p->on[mmu])
			continue;
		fprintf(f, "%s%s on %s", open, policy_evidence_name(p->on[k]),
			mmu_kind_name((enum mmu_kind)k));
		open = ", ";
	}
	if (p->why) {
		fprintf(f, "%s%s", open, p->why);
		open = ", ";
	}
	if (*open == ',')
		fputc(')', f);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

char *evidence_text(const char *dirty, const char *preset, const char *cpu, enum mmu_kind mmu)
{
	return proof_text(proof(dirty, preset, cpu), mmu);
}

const char *run_spte_evidence(const struct run_opts *opts, const char *preset)
{
	enum mmu_kind mmu = run_mmu(preset, opts->long_mode, opts->nested);

	return policy_evidence_name(
		proof_of(FAMILY_SPTE, opts->spte, preset, run_cpu(opts))->on[mmu]);
}

int run_print_spte_evidence(const struct run_opts *opts, const char *preset, const char *lead,
			    FILE *to)
{
	char *text;

	if (!opts->spte)
		return 0;
	text = proof_text(proof_of(FAMILY_SPTE, opts->spte, preset, run_cpu(opts)),
			  run_mmu(preset, opts->long_mode, opts->nested));
	if (!text)
		return KVMSIM_ENOMEM;
	fprintf(to, "%s%s: %s.\n", lead, opts->spte, text);
	free(text);
	return 0;
}

void run_evidence_json(json_t *o, const struct run_opts *opts, const char *dirty,
		       const char *preset)
{
	enum mmu_kind mmu = run_mmu(preset, opts->long_mode, opts->nested);
	const struct policy_proof *p = proof(dirty, preset, run_cpu(opts));
	json_t *elsewhere = json_object();

	for (int k = 0; k < N_MMU_KINDS; k++)
		if (p->on[k] > p->on[mmu])
			json_put(elsewhere, mmu_kind_name((enum mmu_kind)k),
				 json_string(policy_evidence_name(p->on[k])));
	json_put(o, "evidence", json_string(policy_evidence_name(p->on[mmu])));
	json_put(o, "evidence_elsewhere", elsewhere);
	json_put(o, "evidence_note", p->why ? json_string(p->why) : json_null());
	if (!opts->spte)
		return;
	json_put(o, "spte_evidence", json_string(run_spte_evidence(opts, preset)));
}

void run_note_fallback(const char *dirty, enum mmu_kind mmu)
{
	const struct policy_desc *d;
	const struct dirty_policy *policy;
	struct policy_params params;
	bool log;

	if (mmu == MMU_TDP || mmu == MMU_TDP_RMAP ||
	    policy_parse(FAMILY_DIRTY, dirty, NULL, &d, &params))
		return;
	policy = dirty_policy_find(d->name, strlen(d->name));
	log = policy->cpu_log;
	for (int i = 0; d->params && d->params[i].name; i++)
		if (!strcmp(d->params[i].name, "pml"))
			log = params.value[i];
	if (log)
		cli_warn("dirty policy %s: under shadow paging (%s) there is no log of the CPU's; "
			 "it "
			 "write-protects",
			 dirty, mmu_kind_name(mmu));
}

void run_note_spte(const struct run_opts *opts, const struct run_result *r)
{
	/* What is prefetched matters to direct shadow pages, too. */
	if (opts->spte && !r->stats[STAT_mmio_exits] && !strstr(opts->spte, "prefetch=") &&
	    run_mmu(r->preset, opts->long_mode, opts->nested) != MMU_SHADOW_LONG64)
		cli_warn("spte policy %s: no access of a device and no shadowed page table was in "
			 "this run; it changed nothing",
			 opts->spte);
}

void run_memory_json(json_t *o, const struct run_opts *opts)
{
	static const char *const sizes[] = {NULL, "4k", "2m", "1g"};
	static const char *const memories[] = {NULL, "present", "shared", "anonymous"};
	static const char *const splits[] = {NULL, "N", "Y"};

	json_put(o, "host_pages",
		 opts->host_level ? json_string(sizes[opts->host_level]) : json_null());
	json_put(o, "host_memory",
		 opts->host_memory ? json_string(memories[opts->host_memory]) : json_null());
	json_put(o, "eager_page_split",
		 opts->eager_page_split ? json_string(splits[opts->eager_page_split])
					: json_null());
	json_put(o, "spte", opts->spte ? json_string(opts->spte) : json_null());
	json_put(o, "mmulock", opts->mmulock ? json_string(opts->mmulock) : json_null());
	json_put(o, "invalidations",
		 opts->invalidations ? json_integer((json_int_t)opts->invalidations) : json_null());
}

/* The policy's parameters, defaults included: a JSON object. NULL: no memory. */
static char *params_json(const char *dirty)
{
	const struct policy_desc *d;
	struct policy_params params;
	json_t *o = json_object();
	char *text;

	if (!policy_parse(FAMILY_DIRTY, dirty, NULL, &d, &params)) {
		for (size_t i = 0; d->params && d->params[i].name; i++)
			json_object_set_new(o, d->params[i].name, json_u64(params.value[i]));
	}
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

int run_keep(const char *path, struct store **store, const struct run_opts *opts,
	     const struct run_result *r, const double metric[N_METRICS],
	     const struct kvmsim_errsink *errors)
{
	struct store_metric metrics[N_METRICS];
	char *params = params_json(opts->dirty);
	const struct store_run run = {.trace = opts->trace,
				      .trace_checksum = r->input_checksum,
				      .scenario = opts->scenario,
				      .preset = r->preset,
				      .cpu = run_cpu(opts),
				      .dirty = opts->dirty,
				      .params = params,
				      .slot = opts->slot,
				      .profile = profile_name(opts->profile),
				      .profile_checksum = profile_checksum(opts->profile),
				      .seed = opts->seed,
				      .replicate = opts->replicate,
				      .interval = r->interval,
				      .phase = opts->phase,
				      .shadow_pages = opts->shadow_pages,
				      .version = kvmsim_version,
				      .result = r,
				      .metrics = metrics,
				      .n_metrics = N_METRICS};
	int err = 0;

	for (int m = 0; m < N_METRICS; m++)
		metrics[m] = (struct store_metric){metric_desc[m].name,
						   metric_unit(m, profile_unit(opts->profile)),
						   metric[m]};
	if (!params)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "out of memory");
	if (!*store)
		err = store_open(path, STORE_WRITE, errors, store);
	err = err ? err : store_add(*store, &run, NULL);
	free(params);
	return err;
}
