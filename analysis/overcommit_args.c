// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/overcommit_args.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/lock_file.h"
#include "analysis/run.h"
#include "model/sim/profile.h"

enum {
	OPT_WORKLOAD = 256,
	OPT_BESIDE,
	OPT_LOCK,
	OPT_PLE,
	OPT_VCPUS,
	OPT_PCPUS,
	OPT_LLC,
	OPT_PIN,
	OPT_OVERCOMMIT,
	OPT_VMS,
	OPT_TIME,
	OPT_WARM_UP,
	OPT_APICV,
	OPT_STEAL_TIME,
	OPT_PV_IPI,
	OPT_KICK_YIELDS,
	OPT_HALT_POLL,
	OPT_GUEST_HZ,
	OPT_LOCKS,
	OPT_PROFILE,
	OPT_REPLICATES,
	OPT_JOBS,
	OPT_SEED,
	OPT_CHECK,
	OPT_REFERENCE,
	OPT_JSON,
	OPT_CSV,
	OPT_CONTENTION,
	OPT_HELP,
};

static const struct option common[] = {
	{"workload", required_argument, NULL, OPT_WORKLOAD},
	{"beside", required_argument, NULL, OPT_BESIDE},
	{"lock", required_argument, NULL, OPT_LOCK},
	{"ple", required_argument, NULL, OPT_PLE},
	{"vcpus", required_argument, NULL, OPT_VCPUS},
	{"pcpus", required_argument, NULL, OPT_PCPUS},
	{"llc", required_argument, NULL, OPT_LLC},
	{"pin", no_argument, NULL, OPT_PIN},
	{"overcommit", required_argument, NULL, OPT_OVERCOMMIT},
	{"vms", required_argument, NULL, OPT_VMS},
	{"time", required_argument, NULL, OPT_TIME},
	{"warm-up", required_argument, NULL, OPT_WARM_UP},
	{"apicv", no_argument, NULL, OPT_APICV},
	{"steal-time", no_argument, NULL, OPT_STEAL_TIME},
	{"pv-ipi", no_argument, NULL, OPT_PV_IPI},
	{"kick-yields", no_argument, NULL, OPT_KICK_YIELDS},
	{"halt-poll", required_argument, NULL, OPT_HALT_POLL},
	{"guest-hz", required_argument, NULL, OPT_GUEST_HZ},
	{"locks", required_argument, NULL, OPT_LOCKS},
	{"profile", required_argument, NULL, OPT_PROFILE},
	{"replicates", required_argument, NULL, OPT_REPLICATES},
	{"jobs", required_argument, NULL, OPT_JOBS},
	{"seed", required_argument, NULL, OPT_SEED},
	{"check", no_argument, NULL, OPT_CHECK},
	{"reference", no_argument, NULL, OPT_REFERENCE},
	{"json", no_argument, NULL, OPT_JSON},
	{"csv", no_argument, NULL, OPT_CSV},
	{"contention", no_argument, NULL, OPT_CONTENTION},
	{"help", no_argument, NULL, OPT_HELP},
};
#define N_COMMON (sizeof(common) / sizeof(*common))

/* ---- lists ---- */

int overcommit_list(const struct verb *verb, const char *option, const char *text, uint32_t min,
		    uint32_t max, uint32_t *out, uint32_t *n)
{
	const char *at = text;

	for (*n = 0;;) {
		unsigned long from = 0, to;
		char *end = NULL;

		errno = 0;
		if (*at >= '0' && *at <= '9')
			from = strtoul(at, &end, 10);
		to = from;
		if (end && end[0] == '.' && end[1] == '.' && end[2] >= '0' && end[2] <= '9')
			to = strtoul(end + 2, &end, 10);
		if (!end || (*end && *end != ',') || errno || from < min || to > max || from > to)
			return cli_usage(verb,
					 "%s %s: expected whole numbers from %" PRIu32
					 " to %" PRIu32 ", as 1..4 or 1,2,4",
					 option, text, min, max);
		if (to - from >= OVERCOMMIT_MAX_POINTS - *n)
			return cli_usage(verb, "%s %s: more than %d numbers", option, text,
					 OVERCOMMIT_MAX_POINTS);
		for (; from <= to; from++)
			out[(*n)++] = (uint32_t)from;
		if (!*end)
			return EXIT_DONE;
		at = end + 1;
	}
}

int overcommit_vms(const struct verb *verb, const char *option, const struct overcommit_opts *o,
		   uint32_t factor, uint32_t *vms)
{
	uint64_t vcpus = (uint64_t)factor * o->pcpus;

	if (!vcpus || vcpus % o->vcpus || vcpus / o->vcpus > OVERCOMMIT_MAX_VMS)
		return cli_usage(verb,
				 "%s: %" PRIu32 " times %" PRIu32 " pCPUs are no whole number of "
				 "VMs of %" PRIu32 " vCPUs from 1 to %d (--vms)",
				 option, factor, o->pcpus, o->vcpus, OVERCOMMIT_MAX_VMS);
	*vms = (uint32_t)(vcpus / o->vcpus);
	return EXIT_DONE;
}

/* ---- options ---- */

static int number(const struct overcommit_args *a, const char *option, unsigned long long min,
		  unsigned long long max, uint64_t *out)
{
	unsigned long long n = 0;

	if (!cli_u64(a->verb, option, optarg, min, max, &n))
		return EXIT_USAGE;
	*out = n;
	return EXIT_DONE;
}

static int number32(const struct overcommit_args *a, const char *option, uint32_t min, uint32_t max,
		    uint32_t *out)
{
	uint64_t n = 0;
	int code = number(a, option, min, max, &n);

	if (!code)
		*out = (uint32_t)n;
	return code;
}

#define MS 1000000

static int time_ms(const struct overcommit_args *a, const char *option, uint32_t min, uint64_t *ns)
{
	uint64_t ms = 0;
	int code = number(a, option, min, 3600000, &ms);

	*ns = ms * MS;
	return code;
}

static int points(struct overcommit_args *a, const char *option, bool vms)
{
	if (a->n_points)
		return cli_usage(a->verb, "--overcommit and --vms: one of the two, once");
	a->points_are_vms = vms;
	return overcommit_list(a->verb, option, optarg, 1, OVERCOMMIT_MAX_VMS, a->point,
			       &a->n_points);
}

static int machine_option(struct overcommit_args *a, int opt, const char *option)
{
	struct overcommit_opts *o = &a->o;

	switch (opt) {
	case OPT_VCPUS:
		return number32(a, option, 1, 512, &o->vcpus);
	case OPT_PCPUS:
		return number32(a, option, 1, 512, &o->pcpus);
	case OPT_LLC:
		return number32(a, option, 1, 512, &o->pcpus_per_llc);
	case OPT_HALT_POLL:
		return number(a, option, 0, 1000 * MS, &o->halt_poll_ns);
	case OPT_GUEST_HZ:
		return number32(a, option, 0, 10000, &o->guest_hz);
	case OPT_PIN:
		o->pin = true;
		return EXIT_DONE;
	case OPT_APICV:
		o->apicv = true;
		return EXIT_DONE;
	case OPT_STEAL_TIME:
		o->steal_time = true;
		return EXIT_DONE;
	case OPT_PV_IPI:
		o->pv_ipi = true;
		return EXIT_DONE;
	case OPT_KICK_YIELDS:
		o->kick_yields = true;
		return EXIT_DONE;
	default:
		return points(a, option, opt == OPT_VMS);
	}
}

static int run_option(struct overcommit_args *a, int opt, const char *option)
{
	switch (opt) {
	case OPT_TIME:
		return time_ms(a, option, 1, &a->o.measured_ns);
	case OPT_WARM_UP:
		return time_ms(a, option, 0, &a->o.warm_up_ns);
	case OPT_REPLICATES:
		return number32(a, option, 1, 1000, &a->replicates);
	case OPT_JOBS:
		return number32(a, option, 1, 256, &a->workers);
	case OPT_SEED:
		return number(a, option, 0, UINT64_MAX, &a->o.seed);
	case OPT_CHECK:
		a->o.check = true;
		return EXIT_DONE;
	case OPT_REFERENCE:
		a->o.reference = true;
		return EXIT_DONE;
	case OPT_JSON:
		a->json = true;
		return EXIT_DONE;
	case OPT_CSV:
		a->csv = true;
		return EXIT_DONE;
	case OPT_CONTENTION:
		a->contention = true;
		return EXIT_DONE;
	default:
		return machine_option(a, opt, option);
	}
}

static int parse_option(struct overcommit_args *a, int opt, const char *option)
{
	switch (opt) {
	case OPT_WORKLOAD:
		a->workload = optarg;
		return EXIT_DONE;
	case OPT_BESIDE:
		a->beside = optarg;
		return EXIT_DONE;
	case OPT_LOCK:
		a->o.lock = optarg;
		return EXIT_DONE;
	case OPT_PLE:
		a->o.ple = optarg;
		return EXIT_DONE;
	case OPT_LOCKS:
		a->locks_path = optarg;
		return EXIT_DONE;
	case OPT_PROFILE:
		a->profile = optarg;
		return EXIT_DONE;
	default:
		return opt >= OVERCOMMIT_OWN ? a->parse_own(a, opt, option)
					     : run_option(a, opt, option);
	}
}

/* ---- what belongs together ---- */

static int workloads(struct overcommit_args *a)
{
	struct overcommit_opts *o = &a->o;

	if (smp_workload_parse(a->workload, &cli_errors, &o->workload, o->param))
		return EXIT_USAGE;
	if (a->beside && smp_workload_parse(a->beside, &cli_errors, &o->beside, o->beside_param))
		return EXIT_USAGE;
	if (o->workload == &smp_workload_idle)
		return cli_usage(a->verb, "--workload %s: it has no operations (--beside)",
				 a->workload);
	return EXIT_DONE;
}

static int policies(const struct overcommit_opts *o)
{
	const struct policy_desc *d;
	struct policy_params params;

	if (o->lock && policy_parse(FAMILY_LOCK, o->lock, &cli_errors, &d, &params))
		return EXIT_USAGE;
	if (o->ple && policy_parse(FAMILY_PLE, o->ple, &cli_errors, &d, &params))
		return EXIT_USAGE;
	return EXIT_DONE;
}

static int settle(struct overcommit_args *a)
{
	struct overcommit_opts *o = &a->o;
	int code = workloads(a);

	if (!o->lock && !a->own)
		o->lock = "pvticket";
	code = code ? code : policies(o);
	if (!code && !a->profile)
		code = cli_usage(a->verb, "which --profile? (kvmsim list)");
	if (!code && a->json + a->csv + a->contention > 1)
		code = cli_usage(a->verb, "--json, --csv and --contention: one of them");
	if (!code && o->pcpus_per_llc && o->pcpus % o->pcpus_per_llc)
		code = cli_usage(a->verb, "--llc %" PRIu32 ": must divide the %" PRIu32 " pCPUs",
				 o->pcpus_per_llc, o->pcpus);
	if (!code && !a->n_points)
		a->point[a->n_points++] = 1;
	/* A verb with options of its own may change what this depends on. */
	for (uint32_t i = 0, vms; !code && !a->own && !a->points_are_vms && i < a->n_points; i++)
		code = overcommit_vms(a->verb, "--overcommit", o, a->point[i], &vms);
	return code;
}

static void defaults(struct overcommit_args *a)
{
	a->workload = "dbench";
	a->replicates = a->replicates ? a->replicates : 1;
	a->o.vcpus = a->o.pcpus = 32;
	a->o.measured_ns = 100 * MS;
	a->o.warm_up_ns = 20 * MS;
	a->o.guest_hz = 1000;
	a->o.seed = 1;
}

int overcommit_args_parse(struct overcommit_args *a, int argc, char **argv)
{
	struct option options[N_COMMON + 16];
	size_t n = N_COMMON;
	int opt, at = 0, code = EXIT_DONE;

	defaults(a);
	memcpy(options, common, sizeof(common));
	for (size_t i = 0; a->own && a->own[i].name; i++)
		options[n++] = a->own[i];
	options[n] = (struct option){0};
	opterr = 0;
	optind = 1;
	while (!code && (opt = getopt_long(argc, argv, ":", options, &at)) != -1) {
		char option[32];

		if (opt == OPT_HELP) {
			a->help = true;
			return EXIT_DONE;
		}
		if (opt == ':')
			return cli_usage(a->verb, "%s needs a value", argv[optind - 1]);
		if (opt == '?')
			return cli_usage(a->verb, "unknown option %s", argv[optind - 1]);
		snprintf(option, sizeof(option), "--%s", options[at].name);
		code = parse_option(a, opt, option);
	}
	if (code)
		return code;
	if (optind < argc)
		return cli_usage(a->verb, "unexpected argument '%s'", argv[optind]);
	return settle(a);
}

int overcommit_args_load(struct overcommit_args *a)
{
	struct overcommit_opts *o = &a->o;
	int err = cli_profile(a->profile, &a->loaded);

	if (err)
		return cli_input_exit_code(err);
	o->profile = a->loaded;
	o->interrupted = &run_interrupted;
	if (!profile_hz(a->loaded)) {
		kvmsim_err(&cli_errors, KVMSIM_EINVAL,
			   "profile %s does not say how many %s a second has", a->profile,
			   profile_unit(a->loaded));
		return EXIT_INPUT;
	}
	if (!o->workload->needs_locks && !(o->beside && o->beside->needs_locks))
		return a->locks_path
			       ? cli_usage(a->verb, "--locks: no workload takes a recording's")
			       : EXIT_DONE;
	err = lock_file_read(a->locks_path, &cli_errors, &a->locks);
	o->locks = &a->locks;
	return cli_input_exit_code(err);
}

void overcommit_args_free(struct overcommit_args *a)
{
	lock_set_free(&a->locks);
	profile_free(a->loaded);
}
