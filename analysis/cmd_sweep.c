// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>

#include "analysis/sweep.h"

enum { OPT_POLICY = OVERCOMMIT_OWN, OPT_VARY, OPT_SPREAD, OPT_RUNS, OPT_MIN_EFFECT };

static const struct option own[] = {{"policy", required_argument, NULL, OPT_POLICY},
				    {"vary", required_argument, NULL, OPT_VARY},
				    {"spread", required_argument, NULL, OPT_SPREAD},
				    {"runs", required_argument, NULL, OPT_RUNS},
				    {"min-effect", required_argument, NULL, OPT_MIN_EFFECT},
				    {0}};

static int percent(const struct verb *verb, const char *option, double *out)
{
	char *end = NULL;
	double v = *optarg >= '0' && *optarg <= '9' ? strtod(optarg, &end) : -1;

	if (end && *end == '%')
		end++;
	if (!end || *end || !(v >= 0 && v <= 100))
		return cli_usage(verb, "%s %s: expected a percentage from 0 to 100", option,
				 optarg);
	*out = v / 100;
	return EXIT_DONE;
}

static int parse_own(struct overcommit_args *a, int opt, const char *option)
{
	struct sweep_opts *o = (struct sweep_opts *)a->own_ctx;
	unsigned long long n = 0;

	switch (opt) {
	case OPT_POLICY:
		return sweep_policy_parse(o, optarg);
	case OPT_VARY:
		return sweep_axis_parse(o, optarg);
	case OPT_SPREAD:
		return percent(a->verb, option, &o->verdict.spread);
	case OPT_MIN_EFFECT:
		return percent(a->verb, option, &o->verdict.min_effect);
	default:
		if (!cli_u64(a->verb, option, optarg, 2, VERDICT_MAX_RUNS, &n))
			return EXIT_USAGE;
		o->verdict.runs = n;
		return EXIT_DONE;
	}
}

/* Every point with every policy, before anything runs. */
static int try_all(const struct sweep_opts *o)
{
	size_t n = 1;
	int code = EXIT_DONE;

	for (size_t i = 0; i < o->n_axes; i++)
		n *= o->axis[i].n;
	if (n > OVERCOMMIT_MAX_POINTS)
		return cli_usage(o->args->verb, "%zu points, at most %d", n, OVERCOMMIT_MAX_POINTS);
	for (size_t i = 0; !code && i < n * o->n_policies; i++) {
		uint32_t value[SWEEP_MAX_AXES] = {0};
		struct overcommit_opts opts;
		struct sweep_policy changed;

		sweep_values(o, i / o->n_policies, value);
		code = sweep_settings(o, &o->policy[i % o->n_policies], value, &opts, &changed);
	}
	return code;
}

static int settle(const struct overcommit_args *a, struct sweep_opts *o)
{
	if (o->n_policies < 2)
		return cli_usage(a->verb, "two --policy or more are to be compared");
	if (!o->n_axes)
		return cli_usage(a->verb, "what is to --vary?");
	if (a->o.lock || a->o.ple)
		return cli_usage(a->verb, "--lock and --ple: --policy has both");
	if (a->replicates < 2)
		return cli_usage(a->verb, "--replicates: two or more");
	if (a->contention)
		return cli_usage(a->verb, "--contention: of kvmsim overcommit");
	if (a->n_points > 1)
		return cli_usage(a->verb, "--overcommit and --vms: one number, or --vary");
	return try_all(o);
}

static int sweep(const struct verb *verb, int argc, char **argv)
{
	struct sweep_opts o = {.verdict = verdict_defaults};
	struct overcommit_args a = {
		.verb = verb, .replicates = 3, .own = own, .parse_own = parse_own, .own_ctx = &o};
	struct sweep s = {.opts = &o};
	int code, err;

	o.args = &a;
	code = overcommit_args_parse(&a, argc, argv);
	if (a.help)
		return cli_help(verb);
	code = code ? code : settle(&a, &o);
	if (code)
		return code;
	code = overcommit_args_load(&a);
	cli_catch_signals();
	if (!code) {
		err = sweep_run(&o, &s);
		if (err == KVMSIM_EINTR)
			kvmsim_err(&cli_errors, err, "interrupted");
		err = err ? err : sweep_report(&s);
		code = cli_exit_code(err);
		sweep_free(&s);
	}
	overcommit_args_free(&a);
	return code;
}

const struct verb verb_sweep = {
	.name = "sweep",
	.summary = "compare locks and pause-loop exits at many points: which is best where",
	.usage = "sweep --profile PROFILE --policy LOCK[/PLE]... --vary KEY=LIST [OPTION]...\n"
		 "Runs each policy at each point and says which one gets the most done there, with "
		 "its\n"
		 "interval, or that this is inconclusive and how many runs would settle it; and "
		 "which\n"
		 "policies change places.\n"
		 "\n"
		 "  --policy LOCK[/PLE]      spinlocks, and pause-loop exits; two or more\n"
		 "  --vary KEY=LIST          overcommit=1..4; vms, vcpus, pcpus, halt-poll, "
		 "guest-hz,\n"
		 "                           or a parameter of the workload's or the policies'; "
		 "at most two\n"
		 "  --spread PERCENT         by which runs on real machines scatter (default 5)\n"
		 "  --runs N                 of each policy on real machines (default 10)\n"
		 "  --min-effect PERCENT     smallest difference worth having (default 1)\n"
		 "  --workload NAME[,KEY=N]  in each VM (default dbench; kvmsim list)\n"
		 "  --beside NAME[,KEY=N]    in all VMs but the first, which alone is "
		 "counted\n" OVERCOMMIT_HELP_MACHINE
		 "  --overcommit N           times as many vCPUs as pCPUs (default 1)\n"
		 "  --vms N                  number of VMs, instead\n" OVERCOMMIT_HELP_GUEST
		 "  --replicates N           runs with other random numbers (default 3)\n"
		 "  --jobs N                 processes (default 1)\n"
		 "  --seed N                 of the random numbers (default 1)\n"
		 "  --check                  keep the checkers on\n"
		 "  --reference              the slow mode without run-ahead\n"
		 "  --json                   everything, as JSON\n"
		 "  --csv                    one row per point and policy",
	.run = sweep,
};
