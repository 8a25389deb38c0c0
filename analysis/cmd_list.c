// SPDX-License-Identifier: GPL-3.0-or-later
/* What there is: policies, presets, CPUs, profiles, workloads. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/output.h"
#include "model/guest/personality.h"
#include "model/policy/policy.h"
#include "model/policy/preset.h"
#include "model/sim/profile.h"
#include "workloads/scenario.h"
#include "workloads/smp_workload.h"

static const char *const family_names[N_FAMILIES] = {
	[FAMILY_DIRTY] = "dirty", [FAMILY_SPTE] = "spte",	[FAMILY_LOCK] = "lock",
	[FAMILY_PLE] = "ple",	  [FAMILY_MMULOCK] = "mmulock",
};

/* ---- for people ---- */

static void param_row(struct table *t, const char *name, uint64_t def, uint64_t min, uint64_t max,
		      const char *help)
{
	table_cell(t, "    %s=%" PRIu64, name, def);
	table_cell(t, "%" PRIu64 "..%" PRIu64, min, max);
	table_cell(t, "%s", help);
}

static void word_row(struct table *t, const struct workload *w)
{
	table_cell(t, "    %s=%s", w->params->name, w->words[w->params->def]);
	table_cell(t, "%s", "a word");
	table_cell(t, "%s", w->params->help);
}

static int print_policies(enum policy_family family)
{
	struct table *t;
	bool any = false;

	for (size_t i = 0; i < policy_count() && !any; i++)
		any = policy_at(i)->family == family;
	if (!any)
		return 0;
	printf("%sPolicies, %s:\n", family ? "\n" : "", family_names[family]);
	t = table_create("lll");
	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < policy_count(); i++) {
		const struct policy_desc *d = policy_at(i);

		if (d->family != family)
			continue;
		table_cell(t, "  %s", d->name);
		table_cell(t, "%s", "");
		table_cell(t, "%s%s", d->broken ? "[broken] " : "", d->summary);
		for (const struct policy_param *p = d->params; p && p->name; p++)
			param_row(t, p->name, p->def, p->min, p->max, p->help);
	}
	int err = table_print(t, stdout);

	table_free(t);
	return err;
}

/* What is not in the table has none. */
static int print_evidence(void)
{
	struct table *t = table_create("llllllll");

	if (!t)
		return KVMSIM_ENOMEM;
	table_cell(t, "  policy");
	table_cell(t, "kernel");
	table_cell(t, "CPU");
	for (int k = 0; k < N_MMU_KINDS; k++)
		table_cell(t, "%s", mmu_kind_name((enum mmu_kind)k));
	table_end_row(t);
	for (size_t i = 0; i < policy_count(); i++) {
		const struct policy_desc *d = policy_at(i);

		for (const struct policy_proof *p = d->proofs; p && p->preset; p++) {
			table_cell(t, "  %s", d->name);
			table_cell(t, "%s", p->preset);
			table_cell(t, "%s", p->cpu);
			for (int k = 0; k < N_MMU_KINDS; k++)
				table_cell(t, "%s", policy_evidence_name(p->on[k]));
			table_cell(t, "%s", p->why ? p->why : "");
		}
	}
	int err = table_print(t, stdout);

	table_free(t);
	return err;
}

static int print_workloads(void)
{
	struct table *t = table_create("lrl");

	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < workload_count(); i++) {
		const struct workload *w = workload_at(i);

		table_cell(t, "  %s", w->name);
		table_cell(t, "%s", "");
		table_cell(t, "%s", w->summary);
		for (const struct workload_param *p = w->params; p->name; p++)
			if (p == w->params && w->words)
				word_row(t, w);
			else
				param_row(t, p->name, p->def, p->min, p->max, p->help);
	}
	int err = table_print(t, stdout);

	table_free(t);
	return err;
}

static int print_smp_workloads(void)
{
	struct table *t = table_create("lrl");

	if (!t)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < smp_workload_count(); i++) {
		const struct smp_workload *w = smp_workload_at(i);

		table_cell(t, "  %s", w->name);
		table_cell(t, "%s", "");
		table_cell(t, "%s", w->summary);
		for (const struct workload_param *p = w->params; p && p->name; p++)
			param_row(t, p->name, p->def, p->min, p->max, p->help);
	}
	int err = table_print(t, stdout);

	table_free(t);
	return err;
}

static int print_all(void)
{
	size_t preset = 0;
	int err = 0;

	for (int f = 0; !err && f < N_FAMILIES; f++) {
		err = print_policies((enum policy_family)f);
	}
	printf("\nWhat a prediction rests on (oracle-exact: counts equal to the real kernel's; "
	       "published: rows\nthat were not fitted are predicted; not listed: none):\n");
	err = err ? err : print_evidence();
	printf("\nPresets (--kernel):\n");
	for (const struct kvm_preset *k = preset_at(0); k; k = preset_at(++preset))
		printf("  %s: %s\n", k->name, k->summary);
	printf("\nCPUs (--cpu):\n");
	for (size_t i = 0; personality_at(i); i++)
		printf("  %s: %s\n", personality_at(i)->name, personality_at(i)->summary);
	printf("\nProfiles (--profile; or a file, PATH.ini):\n");
	for (size_t i = 0; !err && cli_profile_names[i]; i++) {
		struct profile *p;
		char hz[OUT_TEXT];

		err = cli_profile(cli_profile_names[i], &p);
		if (err)
			break;
		printf("  %s: %s, in %s", cli_profile_names[i], profile_machine(p),
		       profile_unit(p));
		if (profile_hz(p))
			printf(", %s per second", out_u64(hz, profile_hz(p)));
		printf("\n");
		profile_free(p);
	}
	printf("\nWorkloads of scenarios (--scenario FILE.ini):\n");
	err = err ? err : print_workloads();
	printf("\nWorkloads of overcommit and sweep (--workload NAME,KEY=N):\n");
	return err ? err : print_smp_workloads();
}

/* ---- for programs ---- */

static json_t *json_param(const char *name, uint64_t def, uint64_t min, uint64_t max,
			  const char *help)
{
	json_t *o = json_object();

	json_put(o, "name", json_string(name));
	json_put(o, "default", json_u64(def));
	json_put(o, "min", json_u64(min));
	json_put(o, "max", json_u64(max));
	json_put(o, "help", json_string(help));
	return o;
}

static json_t *json_policy(const struct policy_desc *d)
{
	json_t *o = json_object(), *params = json_array(), *evidence = json_array();

	json_put(o, "name", json_string(d->name));
	json_put(o, "family", json_string(family_names[d->family]));
	json_put(o, "summary", json_string(d->summary));
	json_put(o, "broken", json_boolean(d->broken));
	for (const struct policy_param *p = d->params; p && p->name; p++)
		json_array_append_new(params, json_param(p->name, p->def, p->min, p->max, p->help));
	json_put(o, "params", params);
	for (const struct policy_proof *p = d->proofs; p && p->preset; p++) {
		json_t *e = json_object();

		json_put(e, "kernel", json_string(p->preset));
		json_put(e, "cpu", json_string(p->cpu));
		for (int k = 0; k < N_MMU_KINDS; k++)
			json_put(e, mmu_kind_name((enum mmu_kind)k),
				 json_string(policy_evidence_name(p->on[k])));
		json_put(e, "note", p->why ? json_string(p->why) : json_null());
		json_array_append_new(evidence, e);
	}
	json_put(o, "evidence", evidence);
	return o;
}

static json_t *json_preset(const struct kvm_preset *k)
{
	json_t *o = json_object();

	json_put(o, "name", json_string(k->name));
	json_put(o, "summary", json_string(k->summary));
	json_put(o, "dirty", json_string(k->dirty));
	json_put(o, "spte", json_string(k->spte));
	return o;
}

static json_t *json_cpu(const struct cpu_personality *c)
{
	json_t *o = json_object();

	json_put(o, "name", json_string(c->name));
	json_put(o, "summary", json_string(c->summary));
	return o;
}

static json_t *json_workload(const struct workload *w)
{
	json_t *o = json_object(), *params = json_array();

	json_put(o, "name", json_string(w->name));
	json_put(o, "summary", json_string(w->summary));
	for (const struct workload_param *p = w->params; p->name; p++)
		json_array_append_new(params, json_param(p->name, p->def, p->min, p->max, p->help));
	json_put(o, "params", params);
	return o;
}

static json_t *json_smp_workload(const struct smp_workload *w)
{
	json_t *o = json_object(), *params = json_array();

	json_put(o, "name", json_string(w->name));
	json_put(o, "summary", json_string(w->summary));
	json_put(o, "operation", json_string(w->operation));
	for (const struct workload_param *p = w->params; p && p->name; p++)
		json_array_append_new(params, json_param(p->name, p->def, p->min, p->max, p->help));
	json_put(o, "params", params);
	return o;
}

static json_t *json_profile(const char *name)
{
	json_t *o = json_object();
	struct profile *p;

	if (!o || cli_profile(name, &p)) {
		json_decref(o);
		return NULL;
	}
	json_put(o, "name", json_string(name));
	json_put(o, "machine", json_string(profile_machine(p)));
	json_put(o, "unit", json_string(profile_unit(p)));
	json_put(o, "hz", json_u64(profile_hz(p)));
	json_put(o, "checksum", json_hex64(profile_checksum(p)));
	profile_free(p);
	return o;
}

static int print_json(void)
{
	json_t *o = json_object(), *policies = json_array(), *presets = json_array();
	json_t *profiles = json_array(), *workloads = json_array();
	json_t *cpus = json_array(), *smp = json_array();

	for (size_t i = 0; i < policy_count(); i++)
		json_array_append_new(policies, json_policy(policy_at(i)));
	for (size_t i = 0; preset_at(i); i++)
		json_array_append_new(presets, json_preset(preset_at(i)));
	for (size_t i = 0; personality_at(i); i++)
		json_array_append_new(cpus, json_cpu(personality_at(i)));
	for (size_t i = 0; cli_profile_names[i]; i++)
		json_array_append_new(profiles, json_profile(cli_profile_names[i]));
	for (size_t i = 0; i < workload_count(); i++)
		json_array_append_new(workloads, json_workload(workload_at(i)));
	json_put(o, "policies", policies);
	json_put(o, "presets", presets);
	json_put(o, "cpus", cpus);
	json_put(o, "profiles", profiles);
	json_put(o, "workloads", workloads);
	for (size_t i = 0; i < smp_workload_count(); i++)
		json_array_append_new(smp, json_smp_workload(smp_workload_at(i)));
	json_put(o, "smp_workloads", smp);
	return json_print(o, stdout);
}

static int list(const struct verb *verb, int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	bool json = false;
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h')
			return cli_help(verb);
		if (c != 'j')
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		json = true;
	}
	if (optind < argc)
		return cli_usage(verb, "unexpected argument '%s'", argv[optind]);
	return cli_exit_code(json ? print_json() : print_all());
}

const struct verb verb_list = {
	.name = "list",
	.summary = "list policies, presets, CPUs, profiles and workloads",
	.usage = "list [--json]\n"
		 "Lists the policies by family with their parameters and ranges, the evidence by "
		 "policy,\n"
		 "kernel, CPU and MMU, the presets, the CPUs, the built-in profiles, and the "
		 "workloads\n"
		 "of scenarios and of overcommit.\n"
		 "\n"
		 "  --json   for programs",
	.run = list,
};
