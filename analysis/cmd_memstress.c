// SPDX-License-Identifier: GPL-3.0-or-later
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/memstress_report.h"
#include "analysis/run.h"
#include "model/policy/policy.h"
#include "model/sim/profile.h"

static const struct {
	const char *name;
	unsigned level;
} backing_sources[] = {{"anonymous", 1},
		       {"anonymous_thp", 2},
		       {"anonymous_hugetlb", 2},
		       {"anonymous_hugetlb_2mb", 2},
		       {"shmem", 1},
		       {"anonymous_hugetlb_1gb", 3},
		       {"shared_hugetlb", 2}};

static bool bad(const struct verb *verb, const char *option, const char *what)
{
	cli_usage(verb, "%s %s: %s", option, optarg, what);
	return false;
}

static bool number(const struct verb *verb, const char *option, unsigned long long min,
		   unsigned long long max, unsigned long long *out)
{
	return cli_u64(verb, option, optarg, min, max, out);
}

/* "64M", "1G": bytes. */
static bool size(const struct verb *verb, uint64_t *out)
{
	static const char suffixes[] = "kmgt";
	char *end;
	unsigned long long n = strtoull(optarg, &end, 10);
	const char *suffix = *end ? strchr(suffixes, *end | 0x20) : NULL;
	unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;

	if (*optarg < '0' || *optarg > '9' || (*end && (!suffix || end[1])) || !n ||
	    n > (1ull << 46) >> shift)
		return bad(verb, "-b", "a size is a number with k, M, G or T, up to 64T");
	*out = n << shift;
	return true;
}

static bool backing_source(const struct verb *verb, unsigned *level)
{
	char names[256] = "";

	for (size_t i = 0; i < sizeof(backing_sources) / sizeof(*backing_sources); i++) {
		if (!strcmp(optarg, backing_sources[i].name)) {
			*level = backing_sources[i].level;
			return true;
		}
		strcat(strcat(names, i ? ", " : "there are "), backing_sources[i].name);
	}
	return bad(verb, "-s", names);
}

static bool mmu(const struct verb *verb, enum mmu_kind *out)
{
	for (int k = 0; k < N_MMU_KINDS; k++) {
		if (k != MMU_SHADOW_FLAT32 && !strcmp(optarg, mmu_kind_name(k))) {
			*out = k;
			return true;
		}
	}
	return bad(verb, "--mmu", "there are npt0-long64, npt1-tdp0 and npt1-tdp1");
}

static bool yes_or_no(const struct verb *verb, enum kvm_eager_page_split *out)
{
	if (strcmp(optarg, "Y") && strcmp(optarg, "N"))
		return bad(verb, "--eager-page-split", "Y or N");
	*out = *optarg == 'Y' ? EAGER_PAGE_SPLIT_ON : EAGER_PAGE_SPLIT_OFF;
	return true;
}

enum { OPT_KERNEL = 512, OPT_CPU, OPT_MMU, OPT_DIRTY, OPT_EAGER, OPT_PROFILE, OPT_SEED };
enum { OPT_POPULATED = OPT_SEED + 1, OPT_CHECK, OPT_JSON, OPT_CSV, OPT_HELP };
static const struct option options[] = {{"kernel", required_argument, NULL, OPT_KERNEL},
					{"cpu", required_argument, NULL, OPT_CPU},
					{"mmu", required_argument, NULL, OPT_MMU},
					{"dirty", required_argument, NULL, OPT_DIRTY},
					{"eager-page-split", required_argument, NULL, OPT_EAGER},
					{"profile", required_argument, NULL, OPT_PROFILE},
					{"seed", required_argument, NULL, OPT_SEED},
					{"populated", no_argument, NULL, OPT_POPULATED},
					{"check", no_argument, NULL, OPT_CHECK},
					{"json", no_argument, NULL, OPT_JSON},
					{"csv", no_argument, NULL, OPT_CSV},
					{"help", no_argument, NULL, OPT_HELP},
					{0}};

struct args {
	const struct verb *verb;
	struct memstress_opts o;
	const char *profile;
	bool get_clears, json, csv, help;
};

/* The selftest's own. */
static bool short_option(struct args *a, int c)
{
	const char option[] = {'-', (char)c, '\0'};
	unsigned long long n = 0;
	bool ok = true;

	switch (c) {
	case 'v':
		ok = number(a->verb, option, 1, 512, &n);
		a->o.vcpus = (uint32_t)n;
		break;
	case 'b':
		ok = size(a->verb, &a->o.bytes);
		break;
	case 'w':
		ok = number(a->verb, option, 0, 100, &n);
		a->o.write_percent = (uint32_t)n;
		break;
	case 'f':
		ok = number(a->verb, option, 1, UINT32_MAX, &n);
		a->o.write_fraction = (uint32_t)n;
		break;
	case 'x':
		ok = number(a->verb, option, 1, 30, &n);
		a->o.slots = (uint32_t)n;
		break;
	case 'i':
		ok = number(a->verb, option, 1, 1000, &n);
		a->o.iterations = (uint32_t)n;
		break;
	case 'p':
		ok = number(a->verb, option, 4096, 1ull << 46, &n);
		a->o.gpa = n;
		break;
	case 's':
		ok = backing_source(a->verb, &a->o.host_level);
		break;
	case 'a':
		a->o.random_access = true;
		break;
	case 'o':
		a->o.overlap = true;
		break;
	case 'g':
		a->get_clears = true;
		break;
	default:
		a->o.evil = true;
	}
	return ok;
}

static bool long_option(struct args *a, int c)
{
	unsigned long long n = 0;
	bool ok = true;

	switch (c) {
	case OPT_KERNEL:
		a->o.preset = optarg;
		break;
	case OPT_CPU:
		a->o.personality = optarg;
		break;
	case OPT_MMU:
		ok = mmu(a->verb, &a->o.mmu);
		break;
	case OPT_DIRTY:
		a->o.dirty = optarg;
		break;
	case OPT_EAGER:
		ok = yes_or_no(a->verb, &a->o.eager_page_split);
		break;
	case OPT_PROFILE:
		a->profile = optarg;
		break;
	case OPT_SEED:
		ok = number(a->verb, "--seed", 0, UINT64_MAX, &n);
		a->o.seed = n;
		break;
	case OPT_POPULATED:
		a->o.populated = true;
		break;
	case OPT_CHECK:
		a->o.check = true;
		break;
	case OPT_JSON:
		a->json = true;
		break;
	case OPT_CSV:
		a->csv = true;
		break;
	default:
		a->help = true;
	}
	return ok;
}

static int parse(struct args *a, int argc, char **argv)
{
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":v:b:w:f:x:i:p:s:aoge", options, NULL)) != -1) {
		if (c == '?' || c == ':')
			return cli_usage(a->verb, "bad option %s", argv[optind - 1]);
		if (!(c < OPT_KERNEL ? short_option(a, c) : long_option(a, c)))
			return EXIT_USAGE;
		if (a->help)
			return EXIT_DONE;
	}
	if (optind < argc)
		return cli_usage(a->verb, "unexpected argument '%s'", argv[optind]);
	if (!a->profile)
		return cli_usage(a->verb, "which --profile? (kvmsim list)");
	if (a->json && a->csv)
		return cli_usage(a->verb, "--json and --csv: one of the two");
	if (a->get_clears && a->o.dirty)
		return cli_usage(a->verb, "-g and --dirty: one of the two");
	return memstress_settings(&a->o, a->get_clears);
}

static int run(const struct args *a, const struct profile *profile)
{
	struct memstress_result r;
	int err = memstress_collect(&a->o, &r);

	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted");
	if (!err)
		err = memstress_report(&a->o, &r, profile,
				       a->json	? MEMSTRESS_JSON
				       : a->csv ? MEMSTRESS_CSV
						: MEMSTRESS_TEXT);
	memstress_result_free(&r);
	return err;
}

static int memstress(const struct verb *verb, int argc, char **argv)
{
	struct args a = {.verb = verb,
			 .o = {.vcpus = 1,
			       .bytes = 1ull << 30,
			       .write_percent = 100,
			       .slots = 1,
			       .iterations = 2,
			       .host_level = 1,
			       .mmu = N_MMU_KINDS,
			       .seed = 1,
			       .interrupted = &run_interrupted,
			       .errors = &cli_errors}};
	struct profile *profile;
	int code = parse(&a, argc, argv), err;

	if (a.help)
		return cli_help(verb);
	if (code)
		return code;
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
		 "                        the preset's)\n"
		 "  --eager-page-split Y  or N: large mappings are split when logging begins\n"
		 "                        (default: the preset's)\n"
		 "  --profile PROFILE     built-in profile, or a file (PATH.ini)\n"
		 "  --populated           the host has all pages before the first pass\n"
		 "  --seed N              of the guest's random draws (default 1)\n"
		 "  --check               keep the checkers on\n"
		 "  --json                rows with what they charged, as JSON\n"
		 "  --csv                 one row per time",
	.run = memstress,
};
