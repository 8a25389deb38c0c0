// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/compare_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GATE 1000000

static const char metric_names[] =
#define X(name, kind, title, help) ", " #name
	RUN_METRICS(X)
#undef X
	;

/* A percentage from 0 to @max: "5", "0.5", "5%"; as a fraction. */
static bool read_percent(const char *text, double max, double *out)
{
	char *end = NULL;
	double v = *text >= '0' && *text <= '9' ? strtod(text, &end) : -1;

	if (end && *end == '%')
		end++;
	if (!end || *end || !(v >= 0 && v <= max))
		return false;
	*out = v / 100;
	return true;
}

static bool parse_percent(const struct verb *verb, const char *option, const char *text, double max,
			  double *out)
{
	if (read_percent(text, max, out))
		return true;
	cli_usage(verb, "%s %s: expected a percentage from 0 to %g", option, text, max);
	return false;
}

static bool parse_gate(struct compare_args *a, const char *text)
{
	size_t len = strcspn(text, "<>");
	struct compare_gate *g = &a->gate[a->n_gates];
	const char *number = text + len + 1;
	double sign = 1;

	if (a->n_gates == COMPARE_MAX_GATES) {
		cli_usage(a->run.verb, "more than %d --fail-if", COMPARE_MAX_GATES);
		return false;
	}
	g->metric = metric_find(text, len);
	if (!text[len]) {
		cli_usage(a->run.verb, "--fail-if %s: expected METRIC>PERCENT or METRIC<PERCENT",
			  text);
		return false;
	}
	if (g->metric < 0) {
		cli_usage(a->run.verb, "--fail-if %s: no metric '%.*s'; there are %s", text,
			  (int)len, text, metric_names + 2);
		return false;
	}
	g->text = text;
	g->above = text[len] == '>';
	if (*number == '+' || *number == '-')
		sign = *number++ == '-' ? -1 : 1;
	if (!read_percent(number, MAX_GATE, &g->bound)) {
		cli_usage(a->run.verb, "--fail-if %s: expected a percentage from -%d to +%d", text,
			  MAX_GATE, MAX_GATE);
		return false;
	}
	g->bound *= sign;
	a->n_gates++;
	return true;
}

enum {
	OPT_REPLICATES = RUN_ARG_OWN,
	OPT_SPREAD,
	OPT_RUNS,
	OPT_MIN_EFFECT,
	OPT_FAIL_IF,
	OPT_JOBS,
};
static const struct option own[] = {
	{"replicates", required_argument, NULL, OPT_REPLICATES},
	{"spread", required_argument, NULL, OPT_SPREAD},
	{"runs", required_argument, NULL, OPT_RUNS},
	{"min-effect", required_argument, NULL, OPT_MIN_EFFECT},
	{"fail-if", required_argument, NULL, OPT_FAIL_IF},
	{"jobs", required_argument, NULL, OPT_JOBS},
	{0},
};

static bool parse_own(void *ctx, int opt, const char *name)
{
	struct compare_args *a = ctx;
	struct compare_opts *o = &a->opts;
	const struct verb *verb = a->run.verb;
	unsigned long long n = 0;
	bool ok;

	switch (opt) {
	case OPT_REPLICATES:
		ok = cli_u64(verb, name, optarg, 2, 100000, &n);
		o->replicates = (uint32_t)n;
		return ok;
	case OPT_SPREAD:
		a->spread_source = "as given";
		return parse_percent(verb, name, optarg, 100, &o->verdict.spread);
	case OPT_RUNS:
		ok = cli_u64(verb, name, optarg, 2, VERDICT_MAX_RUNS, &n);
		o->verdict.runs = n;
		return ok;
	case OPT_MIN_EFFECT:
		return parse_percent(verb, name, optarg, 100, &o->verdict.min_effect);
	case OPT_FAIL_IF:
		return parse_gate(a, optarg);
	default:
		ok = cli_u64(verb, name, optarg, 1, 256, &n);
		o->workers = (unsigned)n;
		return ok;
	}
}

/* What is compared: dirty policies, or spte policies. */
static int choose(struct compare_args *a)
{
	struct compare_opts *o = &a->opts;

	if (a->n_sptes > 1 && a->n_dirty > 1)
		return cli_usage(a->run.verb, "several policies of --dirty and of --spte: expected "
					      "several of one of them");
	if (a->n_sptes < 2 && a->n_dirty < 2)
		return cli_usage(a->run.verb,
				 "--dirty %s: expected at least two policies, the baseline first, "
				 "or two of --spte",
				 a->run.dirty);
	o->n_policies = a->n_dirty;
	o->policies = (const char *const *)a->dirty;
	if (a->n_sptes == 1)
		o->run.spte = a->sptes[0];
	if (a->n_sptes < 2)
		return 0;
	a->same = calloc(a->n_sptes, sizeof(*a->same));
	if (!a->same) {
		kvmsim_err(o->run.errors, KVMSIM_ENOMEM, "out of memory");
		return cli_exit_code(KVMSIM_ENOMEM);
	}
	for (size_t i = 0; i < a->n_sptes; i++)
		a->same[i] = a->dirty[0];
	o->n_policies = a->n_sptes;
	o->policies = a->same;
	o->sptes = (const char *const *)a->sptes;
	o->run.spte = NULL;
	return 0;
}

int compare_args_parse(struct compare_args *a, int argc, char **argv)
{
	const struct verb *verb = a->run.verb;
	int code;

	a->run.run = &a->opts.run;
	a->run.ranges = true;
	a->run.lists = true;
	a->run.own = own;
	a->run.shorts = ":j:";
	a->run.parse = parse_own;
	a->run.ctx = a;
	code = run_args_parse(&a->run, argc, argv);
	if (code || a->run.help)
		return code;
	a->opts.shadow_lo = a->run.shadow_lo;
	a->opts.shadow_hi = a->run.shadow_hi;
	if (compare_split_policies(a->run.dirty, &a->dirty, &a->n_dirty))
		return cli_usage(verb, "--dirty %s: expected POLICY[,KEY=VALUE]...,POLICY...",
				 a->run.dirty);
	if (a->run.sptes && compare_split_policies(a->run.sptes, &a->sptes, &a->n_sptes))
		return cli_usage(verb, "--spte %s: expected POLICY[,KEY=VALUE]...,POLICY...",
				 a->run.sptes);
	return choose(a);
}

void compare_args_free(struct compare_args *a)
{
	compare_free_policies(a->dirty, a->n_dirty);
	compare_free_policies(a->sptes, a->n_sptes);
	free(a->same);
	free(a->run.sptes);
}

/* clang-format off: the lines as they are printed */
const char compare_usage[] =
	"compare TRACE --dirty POLICY,POLICY... [OPTION]...\n"
	"       kvmsim compare --scenario FILE.ini --dirty POLICY,POLICY... [OPTION]...\n"
	"       kvmsim compare TRACE|... --dirty POLICY --spte POLICY --spte POLICY...\n"
	"Compares dirty policies, or spte policies, with the first of them. Each replicate\n"
	"draws the phase of the collection, the active shadow pages and the prices, the\n"
	"same for every policy. Less is better in every metric. An item with '=' is a\n"
	"parameter of the policy before it: walk,mask,hybrid,threshold=3. --spte takes such\n"
	"a list, too, or is given for each.\n"
	"\n"
	"  --profile PROFILE     built-in profile, or a file (default: " COMPARE_DEFAULT_PROFILE
	")\n" RUN_ARGS_USAGE "  --replicates N        draws, from 2 (default 20)\n"
	"  --shadow-pages LO-HI  active shadow pages of the rest of the guest, which a walk\n"
	"                        meets and the trace does not show; N for one number\n"
	"                        (default 0)\n"
	"  --spread PERCENT      run-to-run standard deviation on a real machine (default 5,\n"
	"                        assumed: no published dirty logging figure states one)\n"
	"  --runs N              runs of each policy on a real machine (default 10)\n"
	"  --min-effect PERCENT  smallest difference worth having (default 1)\n"
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
