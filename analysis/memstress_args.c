// SPDX-License-Identifier: GPL-3.0-or-later
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memstress_args.h"
#include "analysis/memstress_report.h"
#include "analysis/run.h"

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

enum {
	OPT_KERNEL = 512,
	OPT_CPU,
	OPT_MMU,
	OPT_DIRTY,
	OPT_MMULOCK,
	OPT_EAGER,
	OPT_PROFILE,
	OPT_SEED
};
enum {
	OPT_GUEST_PAGES = OPT_SEED + 1,
	OPT_EARLY,
	OPT_POPULATED,
	OPT_NO_IRQCHIP,
	OPT_CORES,
	OPT_CHECK,
	OPT_CONTENTION,
	OPT_JSON,
	OPT_CSV,
	OPT_HELP
};
static const struct option options[] = {{"kernel", required_argument, NULL, OPT_KERNEL},
					{"cpu", required_argument, NULL, OPT_CPU},
					{"mmu", required_argument, NULL, OPT_MMU},
					{"dirty", required_argument, NULL, OPT_DIRTY},
					{"mmulock", required_argument, NULL, OPT_MMULOCK},
					{"eager-page-split", required_argument, NULL, OPT_EAGER},
					{"profile", required_argument, NULL, OPT_PROFILE},
					{"seed", required_argument, NULL, OPT_SEED},
					{"guest-pages", required_argument, NULL, OPT_GUEST_PAGES},
					{"early-start", no_argument, NULL, OPT_EARLY},
					{"populated", no_argument, NULL, OPT_POPULATED},
					{"cores", required_argument, NULL, OPT_CORES},
					{"no-irqchip", no_argument, NULL, OPT_NO_IRQCHIP},
					{"check", no_argument, NULL, OPT_CHECK},
					{"contention", no_argument, NULL, OPT_CONTENTION},
					{"json", no_argument, NULL, OPT_JSON},
					{"csv", no_argument, NULL, OPT_CSV},
					{"help", no_argument, NULL, OPT_HELP},
					{0}};

/* The selftest's own. */
static bool short_option(struct memstress_args *a, int c)
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
		ok = cli_bytes(a->verb, option, optarg, 1ull << 46,
			       "a size is a number with k, M, G or T, up to 64T", &a->o.bytes);
		break;
	case 'w':
		ok = number(a->verb, option, 0, 100, &n);
		a->o.write_percent = (uint32_t)n;
		a->percent_given = true;
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

static bool long_option(struct memstress_args *a, int c)
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
	case OPT_MMULOCK:
		a->o.mmulock = optarg;
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
	case OPT_GUEST_PAGES:
		ok = !strcmp(optarg, "4k") || !strcmp(optarg, "2M") ||
		     bad(a->verb, "--guest-pages", "4k or 2M");
		a->o.guest_level = *optarg == '2' ? 2 : 1;
		break;
	case OPT_EARLY:
		a->o.early = true;
		break;
	case OPT_POPULATED:
		a->o.populated = true;
		break;
	case OPT_CORES:
		ok = number(a->verb, "--cores", 1, 4096, &n);
		a->o.cores = (uint32_t)n;
		break;
	case OPT_NO_IRQCHIP:
		a->o.no_irqchip = true;
		break;
	case OPT_CHECK:
		a->o.check = true;
		break;
	case OPT_CONTENTION:
		a->contention = true;
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

int memstress_args_parse(struct memstress_args *a, const struct verb *verb, int argc, char **argv)
{
	int c;

	*a = (struct memstress_args){.verb = verb,
				     .o = {.vcpus = 1,
					   .bytes = 1ull << 30,
					   .write_percent = 100,
					   .slots = 1,
					   .iterations = 2,
					   .host_level = 1,
					   .mmu = N_MMU_KINDS,
					   .seed = 1,
					   .errors = &cli_errors}};
	opterr = 0;
	optind = 0;
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
	if (a->json && a->csv)
		return cli_usage(a->verb, "--json and --csv: one of the two");
	if (a->contention && a->csv)
		return cli_usage(a->verb, "--contention and --csv: one of the two");
	if (a->percent_given && a->o.write_fraction)
		return cli_usage(a->verb, "-f and -w: one of the two");
	if (a->get_clears && a->o.dirty)
		return cli_usage(a->verb, "-g and --dirty: one of the two");
	return memstress_settings(&a->o, a->get_clears);
}
