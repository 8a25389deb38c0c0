// SPDX-License-Identifier: GPL-3.0-or-later
#include <getopt.h>
#include <stdio.h>

#include "analysis/cli.h"
#include "analysis/output.h"
#include "analysis/replay_report.h"
#include "analysis/run.h"
#include "model/sim/profile.h"

enum {
	OPT_DIRTY = 256,
	OPT_PROFILE,
	OPT_KERNEL,
	OPT_INTERVAL,
	OPT_PHASE,
	OPT_SLOT,
	OPT_SHADOW_PAGES,
	OPT_SEED,
	OPT_REPLICATE,
	OPT_SCENARIO,
	OPT_REFERENCE,
	OPT_CHECK,
	OPT_JSON,
	OPT_CSV,
	OPT_HELP
};

static const struct option options[] = {
	{"dirty", required_argument, NULL, OPT_DIRTY},
	{"profile", required_argument, NULL, OPT_PROFILE},
	{"kernel", required_argument, NULL, OPT_KERNEL},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"phase", required_argument, NULL, OPT_PHASE},
	{"slot", required_argument, NULL, OPT_SLOT},
	{"shadow-pages", required_argument, NULL, OPT_SHADOW_PAGES},
	{"seed", required_argument, NULL, OPT_SEED},
	{"replicate", required_argument, NULL, OPT_REPLICATE},
	{"scenario", required_argument, NULL, OPT_SCENARIO},
	{"reference", no_argument, NULL, OPT_REFERENCE},
	{"check", no_argument, NULL, OPT_CHECK},
	{"json", no_argument, NULL, OPT_JSON},
	{"csv", no_argument, NULL, OPT_CSV},
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

struct arguments {
	struct run_opts run;
	const char *profile;
	bool json, csv, help;
};

/* 0 or an exit code. */
static int parse(const struct verb *verb, int argc, char **argv, struct arguments *a)
{
	unsigned long long n = 0;
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		const char *name = "";

		for (const struct option *o = options; o->name; o++)
			name = o->val == c ? o->name : name;
		switch (c) {
		case OPT_DIRTY:
			a->run.dirty = optarg;
			break;
		case OPT_PROFILE:
			a->profile = optarg;
			break;
		case OPT_KERNEL:
			a->run.preset = optarg;
			break;
		case OPT_SLOT:
			a->run.slot = optarg;
			break;
		case OPT_SCENARIO:
			a->run.scenario = optarg;
			break;
		case OPT_REFERENCE:
			a->run.reference = true;
			break;
		case OPT_CHECK:
			a->run.check = true;
			break;
		case OPT_JSON:
			a->json = true;
			break;
		case OPT_CSV:
			a->csv = true;
			break;
		case OPT_HELP:
			a->help = true;
			return 0;
		case ':':
			return cli_usage(verb, "%s needs a value", argv[optind - 1]);
		case '?':
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		default:
			if (!cli_u64(verb, name, optarg, c == OPT_INTERVAL,
				     c == OPT_REPLICATE ? UINT32_MAX : UINT64_MAX >> 1, &n))
				return EXIT_USAGE;
			if (c == OPT_INTERVAL)
				a->run.interval = n;
			else if (c == OPT_PHASE)
				a->run.phase = n;
			else if (c == OPT_SHADOW_PAGES)
				a->run.shadow_pages = n;
			else if (c == OPT_SEED)
				a->run.seed = n;
			else
				a->run.replicate = (uint32_t)n;
		}
	}
	if (optind < argc)
		a->run.trace = argv[optind++];
	if (optind < argc)
		return cli_usage(verb, "unexpected argument '%s'", argv[optind]);
	if (!a->run.trace == !a->run.scenario)
		return cli_usage(verb, "expected one TRACE, or --scenario FILE");
	if (!a->run.dirty || !a->profile)
		return cli_usage(verb, "%s is missing", a->run.dirty ? "--profile" : "--dirty");
	if (a->json && a->csv)
		return cli_usage(verb, "--json and --csv exclude each other");
	return 0;
}

static int replay(const struct verb *verb, int argc, char **argv)
{
	struct arguments a = {.run = {.errors = &cli_errors, .seed = 1}};
	struct run_result result;
	struct profile *profile;
	int code = parse(verb, argc, argv, &a);

	if (code)
		return code;
	if (a.help)
		return cli_help(verb);
	int err = cli_profile(a.profile, &profile);

	if (err)
		return cli_input_exit_code(err);
	a.run.profile = profile;
	cli_catch_signals();
	err = run_model(&a.run, &result);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted");
	if (!err) {
		if (a.json)
			err = json_print(replay_json(&a.run, &result), stdout);
		else if (a.csv)
			replay_csv(&a.run, &result, stdout);
		else
			err = replay_print(&a.run, &result, stdout);
		run_result_free(&result);
	}
	profile_free(profile);
	return cli_input_exit_code(err);
}

const struct verb verb_replay = {
	.name = "replay",
	.summary = "replay a trace or a scenario under one policy",
	.usage =
		"replay TRACE --dirty POLICY --profile PROFILE [OPTION]...\n"
		"       kvmsim replay --scenario FILE.ini --dirty POLICY --profile PROFILE "
		"[OPTION]...\n"
		"Replays the guest, collecting the dirty log at each interval, and prints what "
		"the\n"
		"collections cost and where the time went. Direct guest, shadow paging.\n"
		"\n"
		"  --dirty POLICY      dirty policy, with parameters: NAME[,KEY=VALUE]...\n"
		"  --profile PROFILE   built-in profile, or a file (PATH.ini); both: kvmsim list\n"
		"  --kernel PRESET     era of the algorithms (default: the scenario's, "
		"6.1-shadow)\n"
		"  --interval N        guest instructions between collections, a multiple of the\n"
		"                      trace's epoch (default: one epoch)\n"
		"  --phase N           epochs before the first interval (default 0)\n"
		"  --slot NAME         memory slot to log, or all (default: the scenario's, all)\n"
		"  --shadow-pages N    active shadow pages of the rest of the guest, which a walk\n"
		"                      meets and the trace does not show (default 0)\n"
		"  --seed N            of every random draw (default 1)\n"
		"  --replicate N       number of the replicate (default 0)\n"
		"  --reference         the slow mode, no run-ahead: same result\n"
		"  --check             keep the checkers on\n"
		"  --json              everything, as JSON\n"
		"  --csv               one row per collection",
	.run = replay,
};
