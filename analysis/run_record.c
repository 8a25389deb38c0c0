// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/run_record.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "analysis/cli.h"
#include "analysis/output.h"
#include "analysis/store.h"
#include "model/guest/personality.h"
#include "model/policy/preset.h"
#include "model/sim/profile.h"

const char *run_cpu(const struct run_opts *opts)
{
	const struct cpu_personality *p = personality_find(opts->personality);

	return p ? p->name : opts->personality;
}

enum policy_evidence run_evidence(const struct run_opts *opts, const char *dirty,
				  const char *preset)
{
	const struct policy_desc *d;
	struct policy_params params;

	if (strcmp(preset, preset_at(0)->name) || strcmp(run_cpu(opts), personality_at(0)->name) ||
	    policy_parse(FAMILY_DIRTY, dirty, NULL, &d, &params))
		return EVIDENCE_NONE;
	return policy_evidence(d, RUN_MMU);
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
