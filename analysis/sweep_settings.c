// SPDX-License-Identifier: GPL-3.0-or-later
/* What a sweep's points and policies stand for. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/sweep.h"

int sweep_axis_parse(struct sweep_opts *o, const char *text)
{
	const struct verb *verb = o->args->verb;
	struct sweep_axis *axis = &o->axis[o->n_axes];
	size_t len = strcspn(text, "=");

	if (o->n_axes == SWEEP_MAX_AXES)
		return cli_usage(verb, "more than %d --vary", SWEEP_MAX_AXES);
	if (!text[len] || !len || len >= sizeof(axis->key))
		return cli_usage(verb, "--vary %s: expected KEY=LIST", text);
	memcpy(axis->key, text, len);
	axis->key[len] = '\0';
	for (size_t i = 0; i < o->n_axes; i++)
		if (!strcmp(o->axis[i].key, axis->key))
			return cli_usage(verb, "--vary %s twice", axis->key);
	o->n_axes++;
	return overcommit_list(verb, "--vary", text + len + 1, 0, 1u << 30, axis->value, &axis->n);
}

static int check(enum policy_family family, const char *text)
{
	const struct policy_desc *d;
	struct policy_params params;

	return policy_parse(family, text, &cli_errors, &d, &params) ? EXIT_USAGE : EXIT_DONE;
}

int sweep_policy_parse(struct sweep_opts *o, const char *text)
{
	struct sweep_policy *p = &o->policy[o->n_policies];
	size_t len = strcspn(text, "/");
	const char *ple = text[len] ? text + len + 1 : "";
	int code;

	if (o->n_policies == SWEEP_MAX_POLICIES)
		return cli_usage(o->args->verb, "more than %d --policy", SWEEP_MAX_POLICIES);
	if (len >= sizeof(p->lock) || strlen(ple) >= sizeof(p->ple))
		return cli_usage(o->args->verb, "--policy %s: too long", text);
	p->text = text;
	memcpy(p->lock, text, len);
	p->lock[len] = '\0';
	strcpy(p->ple, ple);
	o->n_policies++;
	code = check(FAMILY_LOCK, p->lock);
	return code || !*ple ? code : check(FAMILY_PLE, ple);
}

/* ---- one setting ---- */

/* Whether the policy named in @text has a parameter @key; then it is set to @value. */
static bool set_param(enum policy_family family, char *text, size_t bytes, const char *key,
		      uint32_t value)
{
	const struct policy_desc *d;
	struct policy_params params;
	size_t len = strlen(text);

	if (!len || policy_parse(family, text, NULL, &d, &params))
		return false;
	for (const struct policy_param *p = d->params; p && p->name; p++)
		if (!strcmp(p->name, key)) {
			snprintf(text + len, bytes - len, ",%s=%" PRIu32, key, value);
			return true;
		}
	return false;
}

static bool set_workload(const struct smp_workload *w, uint64_t *param, const char *key,
			 uint32_t value, bool *in_range)
{
	for (size_t i = 0; w && w->params && w->params[i].name; i++)
		if (!strcmp(w->params[i].name, key)) {
			param[i] = value;
			*in_range = value >= w->params[i].min && value <= w->params[i].max;
			return true;
		}
	return false;
}

static int set(const struct sweep_opts *o, const struct sweep_axis *axis, uint32_t value,
	       struct overcommit_opts *out, struct sweep_policy *policy, uint32_t *factor)
{
	const char *key = axis->key;
	bool known = true, fits = true;

	if (!strcmp(key, "overcommit"))
		*factor = value;
	else if (!strcmp(key, "vms"))
		out->vms = value, fits = value >= 1 && value <= OVERCOMMIT_MAX_VMS;
	else if (!strcmp(key, "vcpus"))
		out->vcpus = value, fits = value >= 1 && value <= 512;
	else if (!strcmp(key, "pcpus"))
		out->pcpus = value, fits = value >= 1 && value <= 512;
	else if (!strcmp(key, "halt-poll"))
		out->halt_poll_ns = value;
	else if (!strcmp(key, "guest-hz"))
		out->guest_hz = value, fits = value <= 10000;
	else if (!set_workload(out->workload, out->param, key, value, &fits)) {
		bool lock = set_param(FAMILY_LOCK, policy->lock, sizeof(policy->lock), key, value);
		bool ple = set_param(FAMILY_PLE, policy->ple, sizeof(policy->ple), key, value);

		if ((lock && check(FAMILY_LOCK, policy->lock)) ||
		    (ple && check(FAMILY_PLE, policy->ple)))
			return EXIT_USAGE;
		/* One that has it is enough; the others stay as they are. */
		known = lock || ple;
		for (size_t i = 0; !known && i < o->n_policies; i++) {
			struct sweep_policy other = o->policy[i];

			known = set_param(FAMILY_LOCK, other.lock, sizeof(other.lock), key, 0) ||
				set_param(FAMILY_PLE, other.ple, sizeof(other.ple), key, 0);
		}
	}
	if (!known)
		return cli_usage(o->args->verb,
				 "--vary %s: neither overcommit, vms, vcpus, pcpus, halt-poll, "
				 "guest-hz, nor a parameter of the workload or of a policy",
				 key);
	return fits ? EXIT_DONE
		    : cli_usage(o->args->verb, "--vary %s: %" PRIu32 " is out of range", key,
				value);
}

int sweep_settings(const struct sweep_opts *o, const struct sweep_policy *policy,
		   const uint32_t value[SWEEP_MAX_AXES], struct overcommit_opts *out,
		   struct sweep_policy *changed)
{
	uint32_t factor = 0;
	int code = EXIT_DONE;

	*out = o->args->o;
	*changed = *policy;
	if (o->args->points_are_vms)
		out->vms = o->args->point[0];
	else
		factor = o->args->point[0];
	for (size_t i = 0; !code && i < o->n_axes; i++) {
		if (!strcmp(o->axis[i].key, "vms"))
			factor = 0;
		code = set(o, &o->axis[i], value[i], out, changed, &factor);
	}
	if (!code && factor)
		code = overcommit_vms(o->args->verb, "overcommit", out, factor, &out->vms);
	return code;
}
