// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/run_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/policy/policy.h"

enum {
	OPT_DIRTY = 256,
	OPT_SPTE,
	OPT_MMULOCK,
	OPT_INVALIDATIONS,
	OPT_PROFILE,
	OPT_SCENARIO,
	OPT_KERNEL,
	OPT_CPU,
	OPT_INTERVAL,
	OPT_SLOT,
	OPT_SHADOW_PAGES,
	OPT_SEED,
	OPT_STORE,
	OPT_LONG_MODE,
	OPT_NESTED,
	OPT_RUNNING,
	OPT_DISABLE_AFTER,
	OPT_HOST_PAGES,
	OPT_HOST_MEMORY,
	OPT_EAGER_PAGE_SPLIT,
	OPT_JSON,
	OPT_CSV,
	OPT_HELP,
};
static const struct option common[] = {
	{"dirty", required_argument, NULL, OPT_DIRTY},
	{"spte", required_argument, NULL, OPT_SPTE},
	{"mmulock", required_argument, NULL, OPT_MMULOCK},
	{"invalidations", required_argument, NULL, OPT_INVALIDATIONS},
	{"profile", required_argument, NULL, OPT_PROFILE},
	{"scenario", required_argument, NULL, OPT_SCENARIO},
	{"kernel", required_argument, NULL, OPT_KERNEL},
	{"cpu", required_argument, NULL, OPT_CPU},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"slot", required_argument, NULL, OPT_SLOT},
	{"shadow-pages", required_argument, NULL, OPT_SHADOW_PAGES},
	{"seed", required_argument, NULL, OPT_SEED},
	{"store", required_argument, NULL, OPT_STORE},
	{"long-mode", no_argument, NULL, OPT_LONG_MODE},
	{"nested", no_argument, NULL, OPT_NESTED},
	{"running", no_argument, NULL, OPT_RUNNING},
	{"disable-after", required_argument, NULL, OPT_DISABLE_AFTER},
	{"host-pages", required_argument, NULL, OPT_HOST_PAGES},
	{"host-memory", required_argument, NULL, OPT_HOST_MEMORY},
	{"eager-page-split", required_argument, NULL, OPT_EAGER_PAGE_SPLIT},
	{"json", no_argument, NULL, OPT_JSON},
	{"csv", no_argument, NULL, OPT_CSV},
	{"help", no_argument, NULL, OPT_HELP},
};
#define N_COMMON (sizeof(common) / sizeof(*common))
#define MAX_OWN	 16

/* "N", or "LO-HI". */
static bool parse_shadow_pages(struct run_args *a, const char *name, const char *text)
{
	const unsigned long long most = 1ull << 32;
	const char *dash = a->ranges ? strchr(text, '-') : NULL;
	unsigned long long first = 0, last = 0;
	char *head = strndup(text, dash ? (size_t)(dash - text) : strlen(text));
	bool ok = head && cli_u64(a->verb, name, head, 0, most, &first) &&
		  cli_u64(a->verb, name, dash ? dash + 1 : head, first, most, &last);

	free(head);
	a->shadow_lo = first;
	a->shadow_hi = last;
	a->shadow_pages_given = true;
	return ok;
}

/* Which of @words @text is, counted from 1; 0: none, its message printed. */
static unsigned parse_word(const struct run_args *a, const char *name, const char *text,
			   const char *const *words)
{
	for (unsigned i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i + 1;
	cli_usage(a->verb, "%s %s: expected %s, %s%s%s", name, text, words[0], words[1],
		  words[2] ? " or " : "", words[2] ? words[2] : "");
	return 0;
}

static bool add_to_list(struct run_args *a, const char *text)
{
	char *longer = NULL;

	if (asprintf(&longer, "%s%s%s", a->sptes ? a->sptes : "", a->sptes ? "," : "", text) < 0) {
		kvmsim_err(a->run->errors, KVMSIM_ENOMEM, "out of memory");
		return false;
	}
	free(a->sptes);
	a->sptes = longer;
	return true;
}

static bool parse_common(struct run_args *a, int opt, const char *name)
{
	static const char *const sizes[] = {"4k", "2m", "1g", NULL};
	static const char *const memories[] = {"present", "shared", "anonymous", NULL};
	static const char *const switches[] = {"N", "Y", NULL};
	unsigned long long n = 0;
	bool ok = true;

	switch (opt) {
	case OPT_DIRTY:
		a->dirty = optarg;
		break;
	case OPT_SPTE:
		a->run->spte = optarg;
		ok = !a->lists || add_to_list(a, optarg);
		break;
	case OPT_MMULOCK:
		a->run->mmulock = optarg;
		break;
	case OPT_INVALIDATIONS:
		ok = cli_u64(a->verb, name, optarg, 0, INT64_MAX, &n);
		a->run->invalidations = n;
		break;
	case OPT_PROFILE:
		a->profile = optarg;
		break;
	case OPT_SCENARIO:
		a->run->scenario = optarg;
		break;
	case OPT_KERNEL:
		a->run->preset = optarg;
		break;
	case OPT_CPU:
		a->run->personality = optarg;
		break;
	case OPT_INTERVAL:
		ok = cli_u64(a->verb, name, optarg, 1, INT64_MAX, &n);
		a->run->interval = n;
		break;
	case OPT_SLOT:
		a->run->slot = optarg;
		break;
	case OPT_SHADOW_PAGES:
		ok = parse_shadow_pages(a, name, optarg);
		break;
	case OPT_SEED:
		ok = cli_u64(a->verb, name, optarg, 0, INT64_MAX, &n);
		a->run->seed = n;
		break;
	case OPT_STORE:
		a->store = optarg;
		break;
	case OPT_NESTED:
		a->run->nested = true;
		break;
	case OPT_LONG_MODE:
		a->run->long_mode = true;
		break;
	case OPT_RUNNING:
		a->run->running = true;
		break;
	case OPT_DISABLE_AFTER:
		ok = cli_u64(a->verb, name, optarg, 1, INT64_MAX, &n);
		a->run->disable_after = n;
		break;
	case OPT_HOST_PAGES:
		a->run->host_level = parse_word(a, name, optarg, sizes);
		ok = a->run->host_level;
		break;
	case OPT_HOST_MEMORY:
		n = parse_word(a, name, optarg, memories);
		a->run->host_memory = (enum run_host_memory)n;
		ok = n;
		break;
	case OPT_EAGER_PAGE_SPLIT:
		n = parse_word(a, name, optarg, switches);
		a->run->eager_page_split = n == 1 ? EAGER_PAGE_SPLIT_OFF : EAGER_PAGE_SPLIT_ON;
		ok = n;
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

/* After the options: the input, and what must be there. */
static int parse_rest(struct run_args *a, int argc, char **argv)
{
	if (optind < argc)
		a->run->trace = argv[optind++];
	if (optind < argc)
		return cli_usage(a->verb, "unexpected argument '%s'", argv[optind]);
	if (!a->run->trace == !a->run->scenario)
		return cli_usage(a->verb, "expected one TRACE, or --scenario FILE");
	if (!a->dirty || !a->profile)
		return cli_usage(a->verb, "%s is missing", a->dirty ? "--profile" : "--dirty");
	if (a->run->disable_after && !a->run->running)
		return cli_usage(a->verb, "--disable-after goes with --running");
	if (a->run->eager_page_split && !a->run->running)
		cli_warn("--eager-page-split changes nothing without --running: logging is on "
			 "before "
			 "the guest maps a page");
	if (a->store && (a->run->running || a->run->long_mode || a->run->nested))
		return cli_usage(a->verb, "--store and --%s exclude each other",
				 a->run->running  ? "running"
				 : a->run->nested ? "nested"
						  : "long-mode");
	if (a->store && (a->run->host_level || a->run->host_memory || a->run->eager_page_split ||
			 a->run->spte || a->run->mmulock || a->run->invalidations))
		return cli_usage(a->verb,
				 "--store excludes --host-pages, --host-memory, "
				 "--eager-page-split, --spte, --mmulock and --invalidations");
	if (a->json && a->csv)
		return cli_usage(a->verb, "--json and --csv exclude each other");
	return 0;
}

int run_args_parse(struct run_args *a, int argc, char **argv)
{
	struct option all[N_COMMON + MAX_OWN + 1] = {0};
	size_t n = N_COMMON;
	int opt;

	memcpy(all, common, sizeof(common));
	for (const struct option *o = a->own; o->name && n < N_COMMON + MAX_OWN; o++)
		all[n++] = *o;
	opterr = 0;
	optind = 1;
	while (!a->help && (opt = getopt_long(argc, argv, a->shorts, all, NULL)) != -1) {
		char name[32];
		bool ok;

		if (opt == ':')
			return cli_usage(a->verb, "%s needs a value", argv[optind - 1]);
		if (opt == '?')
			return cli_usage(a->verb, "unknown option %s", argv[optind - 1]);
		snprintf(name, sizeof(name), "-%c", opt);
		for (const struct option *o = all; o->name; o++)
			if (o->val == opt)
				snprintf(name, sizeof(name), "--%s", o->name);
		ok = opt >= OPT_DIRTY && opt < RUN_ARG_OWN ? parse_common(a, opt, name)
							   : a->parse(a->ctx, opt, name);
		if (!ok)
			return EXIT_USAGE;
	}
	return a->help ? 0 : parse_rest(a, argc, argv);
}

int run_args_spte(const struct run_args *a, const char *spte)
{
	const struct policy_desc *desc;
	struct policy_params params;

	return policy_parse(FAMILY_SPTE, spte, a->run->errors, &desc, &params) ? EXIT_USAGE : 0;
}

int run_args_policies(const struct run_args *a, const char *const *policies, size_t n)
{
	const struct policy_desc *desc;
	struct policy_params params;

	for (size_t i = 0; i < n; i++)
		if (policy_parse(FAMILY_DIRTY, policies[i], a->run->errors, &desc, &params))
			return EXIT_USAGE;
	if (a->run->spte && run_args_spte(a, a->run->spte))
		return EXIT_USAGE;
	if (a->run->mmulock &&
	    policy_parse(FAMILY_MMULOCK, a->run->mmulock, a->run->errors, &desc, &params))
		return EXIT_USAGE;
	return 0;
}
