// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>

#include "analysis/cli.h"
#include "analysis/contention.h"
#include "analysis/memstress_args.h"
#include "analysis/memstress_report.h"
#include "analysis/run.h"
#include "model/sim/profile.h"

static int run(const struct memstress_args *a, const struct profile *profile)
{
	struct contention contention;
	struct memstress_opts o = a->o;
	struct memstress_result r;
	int err;

	contention_init(&contention);
	if (a->contention)
		o.locks = &contention.watch;
	err = memstress_collect(&o, &r);
	contention_sort(&contention);

	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted");
	if (!err)
		memstress_warn(&o, &r);
	if (!err)
		err = memstress_report(&o, &r, profile, a->contention ? &contention : NULL,
				       a->json	? MEMSTRESS_JSON
				       : a->csv ? MEMSTRESS_CSV
						: MEMSTRESS_TEXT);
	contention_free(&contention);
	memstress_result_free(&r);
	return err;
}

static int memstress(const struct verb *verb, int argc, char **argv)
{
	struct memstress_args a;
	struct profile *profile;
	int code = memstress_args_parse(&a, verb, argc, argv), err;

	if (a.help)
		return cli_help(verb);
	if (code)
		return code;
	if (!a.profile)
		return cli_usage(verb, "which --profile? (kvmsim list)");
	a.o.interrupted = &run_interrupted;
	err = cli_profile(a.profile, &profile);
	if (err)
		return cli_input_exit_code(err);
	a.o.profile = profile;
	cli_catch_signals();
	if (profile_hz(profile))
		err = run(&a, profile);
	else
		err = kvmsim_err(&cli_errors, KVMSIM_EINVAL,
				 "profile %s does not say how many %s a second has",
				 profile_name(profile), profile_unit(profile));
	profile_free(profile);
	return cli_exit_code(err);
}

const struct verb verb_memstress = {
	.name = "memstress",
	.summary = "run what the kernel's selftest dirty_log_perf_test does",
	.usage = "memstress --profile PROFILE [OPTION]...\n"
		 "vCPUs write their memory, again and again, while the dirty log is switched on, "
		 "got,\n"
		 "cleared and switched off. Prints what dirty_log_perf_test of Linux 6.1 prints, "
		 "in\n"
		 "virtual seconds.\n"
		 "\n"
		 "  -v N                  vCPUs (default 1)\n"
		 "  -b SIZE               memory of each vCPU: 64M, 1G (default 1G)\n"
		 "  -w PERCENT            of the pages that an iteration writes, the others are "
		 "read\n"
		 "                        (default 100)\n"
		 "  -f N                  every N'th page is written, instead of -w\n"
		 "  -a                    pages in random order\n"
		 "  -x N                  memory slots (default 1)\n"
		 "  -g                    GET clears, as without "
		 "KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2\n"
		 "  -e                    vCPUs run while logging is switched off\n"
		 "  -i N                  iterations (default 2)\n"
		 "  -p ADDRESS            guest-physical address of the memory (default: the "
		 "highest)\n"
		 "  -s SOURCE             what is behind it: anonymous (default), anonymous_thp,\n"
		 "                        anonymous_hugetlb, anonymous_hugetlb_2mb,\n"
		 "                        anonymous_hugetlb_1gb, shmem, shared_hugetlb\n"
		 "  -o                    every vCPU goes over all of the memory\n"
		 "  --kernel PRESET       era of the algorithms (default 6.1-tdp; 6.1-shadow with\n"
		 "                        another MMU)\n"
		 "  --cpu NAME            what the guest runs on (default tcg)\n"
		 "  --mmu NAME            npt0-long64, npt1-tdp0, npt1-tdp1 (default: what the "
		 "preset\n"
		 "                        has with two-dimensional paging)\n"
		 "  --dirty POLICY        dirty policy (default manual,initially-all-set=1; with "
		 "-g\n"
		 "                        the preset's; by the CPU's log where it has one)\n"
		 "  --mmulock NAME        what protects the MMU: spin, rwlock, rwlock-tdp,\n"
		 "                        or rwlock-relax\n"
		 "                        (default: the preset's)\n"
		 "  --eager-page-split Y  or N: large mappings are split when logging begins\n"
		 "                        (default: the preset's)\n"
		 "  --profile PROFILE     built-in profile, or a file (PATH.ini)\n"
		 "  --guest-pages SIZE    of the guest's page tables: 4k (default) or 2M\n"
		 "  --early-start         vCPUs run while threads are still being made, as until\n"
		 "                        November 2021: making one waits for pages being cleared\n"
		 "  --populated           the host has all pages before the first pass\n"
		 "  --cores N             of the machine (default: the profile's)\n"
		 "  --no-irqchip          the VMM has the interrupt controller, on Arm: each exit "
		 "takes\n"
		 "                        a lock that all CPUs share\n"
		 "  --seed N              of the guest's random draws (default 1)\n"
		 "  --check               keep the checkers on\n"
		 "  --contention          waits for locks by who waited, as perf lock contention "
		 "prints\n"
		 "                        them\n"
		 "  --json                rows with what they charged, as JSON\n"
		 "  --csv                 one row per time",
	.run = memstress,
};
