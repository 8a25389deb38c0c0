// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/compare_args.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A percentage: "5", "0.5", "5%"; as a fraction. */
static bool parse_percent(const struct verb *verb, const char *option, const char *text, double max,
			  double *out)
{
	char *end = NULL;
	double v = *text >= '0' && *text <= '9' ? strtod(text, &end) : -1;

	if (end && *end == '%')
		end++;
	if (!end || *end || !(v >= 0 && v <= max)) {
		cli_usage(verb, "%s %s: expected a percentage from 0 to %g", option, text, max);
		return false;
	}
	*out = v / 100;
	return true;
}

/* "N" or "LO-HI". */
static bool parse_range(const struct verb *verb, const char *text, uint64_t *lo, uint64_t *hi)
{
	const unsigned long long most = 1ull << 32;
	const char *dash = strchr(text, '-');
	unsigned long long first, last;
	char *head = strndup(text, dash ? (size_t)(dash - text) : strlen(text));
	bool ok = head && cli_u64(verb, "--shadow-pages", head, 0, most, &first) &&
		  cli_u64(verb, "--shadow-pages", dash ? dash + 1 : head, first, most, &last);

	free(head);
	if (ok) {
		*lo = first;
		*hi = last;
	}
	return ok;
}

static bool parse_gate(struct compare_args *a, const char *text)
{
	size_t len = strcspn(text, "<>");
	struct compare_gate *g = &a->gate[a->n_gates];
	const char *number = text + len + 1;
	double sign = 1;

	if (a->n_gates == COMPARE_MAX_GATES) {
		cli_usage(a->verb, "more than %d --fail-if", COMPARE_MAX_GATES);
		return false;
	}
	g->metric = metric_find(text, len);
	if (!text[len] || g->metric < 0) {
		cli_usage(a->verb, "--fail-if %s: expected METRIC>PERCENT or METRIC<PERCENT", text);
		return false;
	}
	g->text = text;
	g->above = text[len] == '>';
	if (*number == '+' || *number == '-')
		sign = *number++ == '-' ? -1 : 1;
	if (!parse_percent(a->verb, "--fail-if", number, 1e9, &g->bound))
		return false;
	g->bound *= sign;
	a->n_gates++;
	return true;
}

enum {
	OPT_DIRTY = 256,
	OPT_SCENARIO,
	OPT_PROFILE,
	OPT_KERNEL,
	OPT_REPLICATES,
	OPT_SEED,
	OPT_INTERVAL,
	OPT_SLOT,
	OPT_SHADOW_PAGES,
	OPT_SPREAD,
	OPT_RUNS,
	OPT_MIN_EFFECT,
	OPT_STORE,
	OPT_FAIL_IF,
	OPT_JSON,
	OPT_CSV,
	OPT_JOBS,
	OPT_HELP,
};
static const struct option options[] = {
	{"dirty", required_argument, NULL, OPT_DIRTY},
	{"scenario", required_argument, NULL, OPT_SCENARIO},
	{"profile", required_argument, NULL, OPT_PROFILE},
	{"kernel", required_argument, NULL, OPT_KERNEL},
	{"replicates", required_argument, NULL, OPT_REPLICATES},
	{"seed", required_argument, NULL, OPT_SEED},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"slot", required_argument, NULL, OPT_SLOT},
	{"shadow-pages", required_argument, NULL, OPT_SHADOW_PAGES},
	{"spread", required_argument, NULL, OPT_SPREAD},
	{"runs", required_argument, NULL, OPT_RUNS},
	{"min-effect", required_argument, NULL, OPT_MIN_EFFECT},
	{"store", required_argument, NULL, OPT_STORE},
	{"fail-if", required_argument, NULL, OPT_FAIL_IF},
	{"json", no_argument, NULL, OPT_JSON},
	{"csv", no_argument, NULL, OPT_CSV},
	{"jobs", required_argument, NULL, OPT_JOBS},
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

/* 0 or an exit code. */
static int parse_option(struct compare_args *a, int opt, const char *name)
{
	struct compare_opts *o = &a->opts;
	const struct verb *verb = a->verb;
	unsigned long long n = 0;
	bool ok = true;

	switch (opt) {
	case OPT_DIRTY:
		a->dirty = optarg;
		break;
	case OPT_SCENARIO:
		o->run.scenario = optarg;
		break;
	case OPT_PROFILE:
		a->profile = optarg;
		break;
	case OPT_KERNEL:
		o->run.preset = optarg;
		break;
	case OPT_REPLICATES:
		ok = cli_u64(verb, name, optarg, 2, 100000, &n);
		o->replicates = (uint32_t)n;
		break;
	case OPT_SEED:
		ok = cli_u64(verb, name, optarg, 0, INT64_MAX, &n);
		o->run.seed = n;
		break;
	case OPT_INTERVAL:
		ok = cli_u64(verb, name, optarg, 1, INT64_MAX, &n);
		o->run.interval = n;
		break;
	case OPT_SLOT:
		o->run.slot = optarg;
		break;
	case OPT_SHADOW_PAGES:
		ok = parse_range(verb, optarg, &o->shadow_lo, &o->shadow_hi);
		a->shadow_pages_given = true;
		break;
	case OPT_SPREAD:
		ok = parse_percent(verb, name, optarg, 100, &o->verdict.spread);
		a->spread_source = "as given";
		break;
	case OPT_RUNS:
		ok = cli_u64(verb, name, optarg, 1, VERDICT_MAX_RUNS, &n);
		o->verdict.runs = n;
		break;
	case OPT_MIN_EFFECT:
		ok = parse_percent(verb, name, optarg, 100, &o->verdict.min_effect);
		break;
	case OPT_STORE:
		a->store = optarg;
		break;
	case OPT_FAIL_IF:
		ok = parse_gate(a, optarg);
		break;
	case OPT_JSON:
		a->json = true;
		break;
	case OPT_CSV:
		a->csv = true;
		break;
	case OPT_JOBS:
		ok = cli_u64(verb, "-j", optarg, 1, 256, &n);
		o->workers = (unsigned)n;
		break;
	case OPT_HELP:
		a->help = true;
		break;
	}
	return ok ? 0 : EXIT_USAGE;
}

int compare_args_parse(struct compare_args *a, int argc, char **argv)
{
	const struct verb *verb = a->verb;
	struct run_opts *run = &a->opts.run;
	int opt, code = 0;

	opterr = 0;
	optind = 1;
	while (!code && !a->help && (opt = getopt_long(argc, argv, ":j:", options, NULL)) != -1) {
		const char *name = "";
		char dashed[32];

		if (opt == ':')
			return cli_usage(verb, "%s needs a value", argv[optind - 1]);
		if (opt == '?')
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		for (const struct option *o = options; o->name; o++)
			name = o->val == opt ? o->name : name;
		snprintf(dashed, sizeof(dashed), "--%s", name);
		code = parse_option(a, opt == 'j' ? OPT_JOBS : opt, dashed);
	}
	if (code || a->help)
		return code;
	if (optind < argc)
		run->trace = argv[optind++];
	if (optind < argc)
		return cli_usage(verb, "unexpected argument '%s'", argv[optind]);
	if (!run->trace == !run->scenario)
		return cli_usage(verb, "expected one TRACE, or --scenario FILE");
	if (!a->dirty)
		return cli_usage(verb, "--dirty is missing");
	if (a->json && a->csv)
		return cli_usage(verb, "--json and --csv exclude each other");
	if (compare_split_policies(a->dirty, &a->policies, &a->opts.n_policies))
		return cli_usage(verb, "--dirty %s: expected POLICY[,KEY=VALUE]...,POLICY...",
				 a->dirty);
	if (a->opts.n_policies < 2)
		return cli_usage(verb,
				 "--dirty %s: expected at least two policies, the baseline first",
				 a->dirty);
	a->opts.policies = (const char *const *)a->policies;
	return 0;
}

/* clang-format off: the lines as they are printed */
const char compare_usage[] =
	"compare TRACE --dirty POLICY,POLICY... [OPTION]...\n"
	"       kvmsim compare --scenario FILE.ini --dirty POLICY,POLICY... [OPTION]...\n"
	"Compares dirty policies with the first of them. Each replicate draws the phase of\n"
	"the collection, the active shadow pages and the prices, the same for every policy.\n"
	"Less is better in every metric. An item with '=' is a parameter of the policy\n"
	"before it: walk,mask,hybrid,threshold=3.\n"
	"\n"
	"  --profile PROFILE     built-in profile, or a file (default: " COMPARE_DEFAULT_PROFILE
	")\n"
	"  --kernel PRESET       era of the algorithms (default: 6.1-shadow)\n"
	"  --replicates N        draws, from 2 (default 20)\n"
	"  --seed N              of every random draw (default 1)\n"
	"  --interval N          guest instructions between collections, a multiple of the\n"
	"                        trace's epoch (default: one epoch)\n"
	"  --slot NAME           memory slot to log, or all (default: all)\n"
	"  --shadow-pages LO-HI  active shadow pages of the rest of the guest, which a walk\n"
	"                        meets and the trace does not show; N for one number\n"
	"                        (default 0)\n"
	"  --spread PERCENT      run-to-run standard deviation on a real machine (default 5,\n"
	"                        assumed: no published dirty logging figure states one)\n"
	"  --runs N              runs of each policy on a real machine (default 10)\n"
	"  --min-effect PERCENT  smallest difference worth having (default 1)\n"
	"  --store FILE          keep every run in this results store\n"
	"  --fail-if COND        exit 1 when METRIC>PERCENT or METRIC<PERCENT holds for the\n"
	"                        relative difference of any policy, or cannot be told, as in\n"
	"                        'get_dirty_log_mean>+5%'; may be repeated\n"
	"  -j, --jobs N          processes (default: one per CPU); the output is the same\n"
	"  --json, --csv         for programs\n"
	"\n"
	"Metrics:"
#define X(name, kind, title, help) "\n  " #name ": " help
	RUN_METRICS(X)
#undef X
	;
/* clang-format on */
