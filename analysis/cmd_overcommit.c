// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/overcommit_args.h"
#include "analysis/overcommit_report.h"

static int run(struct overcommit_args *a)
{
	struct overcommit_point p[OVERCOMMIT_MAX_POINTS] = {0};
	uint32_t n = a->n_points;
	int err;

	for (uint32_t i = 0; i < n; i++) {
		p[i].opts = a->o;
		p[i].opts.vms = a->point[i];
		p[i].factor = a->points_are_vms ? 0 : a->point[i];
		if (!a->points_are_vms)
			overcommit_vms(a->verb, "--overcommit", &a->o, a->point[i], &p[i].opts.vms);
	}
	err = overcommit_points_run(p, n, a->replicates, a->workers);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted");
	err = err ? err : overcommit_report(a, p, n);
	overcommit_points_free(p, n);
	return cli_exit_code(err);
}

static int overcommit(const struct verb *verb, int argc, char **argv)
{
	struct overcommit_args a = {.verb = verb};
	int code = overcommit_args_parse(&a, argc, argv);

	if (a.help)
		return cli_help(verb);
	if (code)
		return code;
	code = overcommit_args_load(&a);
	cli_catch_signals();
	if (!code)
		code = run(&a);
	overcommit_args_free(&a);
	return code;
}

const struct verb verb_overcommit = {
	.name = "overcommit",
	.summary = "run VMs on one host whose vCPUs share its CPUs, with locks and a scheduler",
	.usage = "overcommit --profile PROFILE [OPTION]...\n"
		 "VMs share a host's CPUs. Prints how many operations a VM gets done, and where "
		 "the\n"
		 "time goes: steal, spinning, exits by reason, halts, kicks, directed yields.\n"
		 "\n"
		 "  --workload NAME[,KEY=N]  in each VM (default dbench; kvmsim list)\n"
		 "  --beside NAME[,KEY=N]    in all VMs but the first, which alone is counted\n"
		 "  --lock POLICY            the guest's spinlocks (default pvticket)\n"
		 "  --ple POLICY             pause-loop exits (default "
		 "off)\n" OVERCOMMIT_HELP_MACHINE
		 "  --overcommit LIST        times as many vCPUs as pCPUs: 1..4 or 1,2,4 (default "
		 "1)\n"
		 "  --vms LIST               numbers of VMs, instead\n" OVERCOMMIT_HELP_GUEST
		 "  --replicates N           runs with other random numbers (default 1)\n"
		 "  --jobs N                 processes (default 1)\n"
		 "  --seed N                 of the random numbers (default 1)\n"
		 "  --check                  keep the checkers on\n"
		 "  --reference              the slow mode without run-ahead\n"
		 "  --contention             locks as perf lock contention prints them\n"
		 "  --json                   everything, as JSON\n"
		 "  --csv                    one row per point and replicate",
	.run = overcommit,
};
