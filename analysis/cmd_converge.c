// SPDX-License-Identifier: GPL-3.0-or-later
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/compare.h"
#include "analysis/converge_report.h"
#include "analysis/converge_rounds.h"
#include "analysis/run_input.h"
#include "analysis/run_record.h"
#include "model/policy/policy.h"
#include "model/policy/preset.h"
#include "model/sim/profile.h"

enum {
	OPT_DIRTY = 256,
	OPT_PROFILE,
	OPT_SCENARIO,
	OPT_KERNEL,
	OPT_CPU,
	OPT_SLOT,
	OPT_HOST_PAGES,
	OPT_EAGER,
	OPT_SEED,
	OPT_BANDWIDTH,
	OPT_DOWNTIME,
	OPT_INTERVAL,
	OPT_WARMUP,
	OPT_ZERO,
	OPT_PAGE_COST,
	OPT_MAX,
	OPT_AUTO,
	OPT_INITIAL,
	OPT_INCREMENT,
	OPT_MOST,
	OPT_THRESHOLD,
	OPT_LIMIT,
	OPT_STRICT,
	OPT_CHECK,
	OPT_JSON,
	OPT_CSV,
	OPT_HELP,
	OPT_DOWNTIME_SHORT,
};
static const struct option options[] = {
	{"dirty", required_argument, NULL, OPT_DIRTY},
	{"profile", required_argument, NULL, OPT_PROFILE},
	{"scenario", required_argument, NULL, OPT_SCENARIO},
	{"kernel", required_argument, NULL, OPT_KERNEL},
	{"cpu", required_argument, NULL, OPT_CPU},
	{"slot", required_argument, NULL, OPT_SLOT},
	{"host-pages", required_argument, NULL, OPT_HOST_PAGES},
	{"eager-page-split", required_argument, NULL, OPT_EAGER},
	{"seed", required_argument, NULL, OPT_SEED},
	{"bandwidth", required_argument, NULL, OPT_BANDWIDTH},
	{"downtime-limit", required_argument, NULL, OPT_DOWNTIME},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"warmup", required_argument, NULL, OPT_WARMUP},
	{"zero-pages", required_argument, NULL, OPT_ZERO},
	{"page-cost", required_argument, NULL, OPT_PAGE_COST},
	{"max-iterations", required_argument, NULL, OPT_MAX},
	{"auto-converge", no_argument, NULL, OPT_AUTO},
	{"cpu-throttle-initial", required_argument, NULL, OPT_INITIAL},
	{"cpu-throttle-increment", required_argument, NULL, OPT_INCREMENT},
	{"max-cpu-throttle", required_argument, NULL, OPT_MOST},
	{"throttle-trigger-threshold", required_argument, NULL, OPT_THRESHOLD},
	{"dirty-limit", required_argument, NULL, OPT_LIMIT},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"check", no_argument, NULL, OPT_CHECK},
	{"json", no_argument, NULL, OPT_JSON},
	{"csv", no_argument, NULL, OPT_CSV},
	{"help", no_argument, NULL, OPT_HELP},
	{"downtime", required_argument, NULL, OPT_DOWNTIME_SHORT},
	{0}};

struct args {
	const struct verb *verb;
	struct run_opts run; /* the input */
	struct precopy_opts o;
	const char *dirty, *profile;
	char **policies; /* owned; n of them */
	struct converge_run *runs;
	size_t n;
	int throttle_option; /* one that goes with --auto-converge; 0: none was given */
	bool simulated;	     /* an option was given that a log has no use for */
	bool bandwidth, rounds, strict, json, csv, help;
};

static bool bad(const struct args *a, const char *option, const char *what)
{
	cli_usage(a->verb, "%s %s: %s", option, optarg, what);
	return false;
}

static bool number(const struct args *a, const char *option, unsigned long long min,
		   unsigned long long max, uint64_t *out)
{
	unsigned long long n = 0;
	bool ok = cli_u64(a->verb, option, optarg, min, max, &n);

	*out = n;
	return ok;
}

static bool small(const struct args *a, const char *option, unsigned min, unsigned max,
		  unsigned *out)
{
	uint64_t n;
	bool ok = number(a, option, min, max, &n);

	*out = (unsigned)n;
	return ok;
}

/* Milliseconds, in microseconds. */
static bool milliseconds(const struct args *a, const char *option, uint64_t *us)
{
	bool ok = number(a, option, 0, 1000000000, us);

	*us *= 1000;
	return ok;
}

/* "128M", "1G": bytes per second. */
static bool rate(const struct args *a, const char *option, uint64_t *out)
{
	return cli_bytes(a->verb, option, optarg, 1ull << 44,
			 "bytes per second, with k, M, G or T, up to 16T", out);
}

static bool host_pages(struct args *a)
{
	static const char *const sizes[] = {"4k", "2m", "1g"};

	for (unsigned i = 0; i < 3; i++) {
		if (!strcmp(optarg, sizes[i])) {
			a->run.host_level = i + 1;
			return true;
		}
	}
	return bad(a, "--host-pages", "4k, 2m or 1g");
}

static bool eager(struct args *a)
{
	if (strcmp(optarg, "Y") && strcmp(optarg, "N"))
		return bad(a, "--eager-page-split", "Y or N");
	a->o.eager_page_split = *optarg == 'Y' ? EAGER_PAGE_SPLIT_ON : EAGER_PAGE_SPLIT_OFF;
	return true;
}

/* How the guest is slowed down, and how the thread sends. */
static bool migration_option(struct args *a, int c, const char *name)
{
	struct precopy_opts *o = &a->o;

	switch (c) {
	case OPT_BANDWIDTH:
		a->bandwidth = true;
		return rate(a, name, &o->bandwidth);
	case OPT_DOWNTIME:
	case OPT_DOWNTIME_SHORT:
		return milliseconds(a, name, &o->downtime_us);
	case OPT_INTERVAL:
		return milliseconds(a, name, &o->interval_us);
	case OPT_WARMUP:
		return milliseconds(a, name, &o->warmup_us);
	case OPT_ZERO:
		return small(a, name, 0, 100, &o->zero_percent);
	case OPT_PAGE_COST:
		return number(a, name, 0, 1000000000, &o->page_ns);
	case OPT_MAX:
		return number(a, name, 2, 1000000, &o->max_collections);
	case OPT_LIMIT:
		return rate(a, name, &o->dirty_limit);
	case OPT_THRESHOLD:
		a->throttle_option = c;
		return small(a, name, 1, 100, &o->trigger_percent);
	case OPT_INITIAL:
		a->throttle_option = c;
		return small(a, name, 1, 99, &o->throttle_initial);
	case OPT_INCREMENT:
		a->throttle_option = c;
		return small(a, name, 1, 99, &o->throttle_increment);
	default:
		a->throttle_option = c;
		return small(a, name, 1, 99, &o->throttle_max);
	}
}

static bool option(struct args *a, int c, const char *name)
{
	a->simulated |= c != OPT_BANDWIDTH && c != OPT_DOWNTIME && c != OPT_DOWNTIME_SHORT &&
			c != OPT_MAX && c != OPT_STRICT && c != OPT_JSON && c != OPT_CSV;
	switch (c) {
	case OPT_DIRTY:
		a->dirty = optarg;
		break;
	case OPT_PROFILE:
		a->profile = optarg;
		break;
	case OPT_SCENARIO:
		a->run.scenario = optarg;
		break;
	case OPT_KERNEL:
		a->run.preset = optarg;
		break;
	case OPT_CPU:
		a->o.personality = a->run.personality = optarg;
		break;
	case OPT_SLOT:
		a->run.slot = optarg;
		break;
	case OPT_HOST_PAGES:
		return host_pages(a);
	case OPT_EAGER:
		return eager(a);
	case OPT_SEED:
		return number(a, name, 0, INT64_MAX, &a->run.seed);
	case OPT_AUTO:
		a->o.throttle = PRECOPY_AUTO_CONVERGE;
		break;
	case OPT_STRICT:
		a->strict = true;
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
	case OPT_HELP:
		a->help = true;
		break;
	default:
		return migration_option(a, c, name);
	}
	return true;
}

/* What a dirty policy means for the VMM: who clears, in which chunks; whether there are rings. */
static int policy(const struct args *a, const char *text, struct precopy_opts *o)
{
	const struct policy_desc *d;
	struct policy_params params;
	const struct dirty_policy *p;

	*o = a->o;
	o->dirty = text;
	if (policy_parse(FAMILY_DIRTY, text, &cli_errors, &d, &params))
		return EXIT_USAGE;
	p = dirty_policy_find(d->name, strlen(d->name));
	o->check |= d->broken; /* never believed */
	for (int i = 0; p->clear && d->params && d->params[i].name; i++)
		if (!strcmp(d->params[i].name, "chunk"))
			o->clear_chunk = params.value[i];
	if (!o->dirty_limit)
		return EXIT_DONE;
	if (!p->reset_rings)
		return cli_usage(a->verb, "--dirty-limit needs dirty rings: --dirty ring");
	o->throttle = PRECOPY_DIRTY_LIMIT;
	return EXIT_DONE;
}

static int policies(struct args *a)
{
	int err = compare_split_policies(a->dirty, &a->policies, &a->n), code = EXIT_DONE;

	if (err == KVMSIM_EINVAL)
		return cli_usage(a->verb, "--dirty %s: expected POLICY[,PARAMETER=VALUE]...[,...]",
				 a->dirty);
	a->runs = err ? NULL : calloc(a->n, sizeof(*a->runs));
	if (!a->runs)
		return cli_exit_code(
			kvmsim_err(&cli_errors, KVMSIM_ENOMEM, "converge: out of memory"));
	for (size_t i = 0; !code && i < a->n; i++)
		code = policy(a, a->policies[i], &a->runs[i].o);
	return code;
}

static int parse(struct args *a, int argc, char **argv)
{
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c == ':')
			return cli_usage(a->verb, "%s needs a value", argv[optind - 1]);
		if (c == '?')
			return cli_usage(a->verb, "unknown option %s", argv[optind - 1]);
		char name[32];

		snprintf(name, sizeof(name), "--%s", options[c - OPT_DIRTY].name);
		if (!option(a, c, name))
			return EXIT_USAGE;
		if (a->help)
			return EXIT_DONE;
	}
	if (optind < argc)
		a->run.trace = argv[optind++];
	if (optind < argc)
		return cli_usage(a->verb, "unexpected argument '%s'", argv[optind]);
	if (!a->run.trace == !a->run.scenario)
		return cli_usage(a->verb, "expected one TRACE, or --scenario FILE");
	if (a->json && a->csv)
		return cli_usage(a->verb, "--json and --csv exclude each other");
	a->rounds = !a->simulated && rounds_log_name(a->run.trace);
	if (a->rounds)
		return EXIT_DONE;
	if (!a->dirty || !a->profile)
		return cli_usage(a->verb, "%s is missing", a->dirty ? "--profile" : "--dirty");
	if (a->o.throttle && a->o.dirty_limit)
		return cli_usage(a->verb, "--auto-converge and --dirty-limit exclude each other");
	if (a->throttle_option && !a->o.throttle && !a->o.dirty_limit)
		return cli_usage(a->verb, "--%s goes with --auto-converge",
				 options[a->throttle_option - OPT_DIRTY].name);
	if (a->o.throttle_initial > a->o.throttle_max)
		return cli_usage(a->verb, "--cpu-throttle-initial is above --max-cpu-throttle");
	return policies(a);
}

/* One policy; the same guest for each. */
static int migrate(const struct args *a, struct converge_run *x, struct run_input *in)
{
	const struct kvm_preset *preset = in->preset ? preset_find(in->preset) : NULL;
	struct precopy_slot slots[RUN_MAX_SLOTS];
	int err;

	run_input_endless(in);
	for (uint32_t i = 0; i < in->n_slots; i++)
		slots[i] = (struct precopy_slot){.base_gfn = in->slots[i].base_gfn,
						 .npages = in->slots[i].npages,
						 .host_level = in->slots[i].host_level,
						 .logged = in->slots[i].logged};
	x->o.slots = slots;
	x->o.n_slots = in->n_slots;
	x->o.sources = in->sources;
	x->o.n_vcpus = in->n_vcpus;
	/* the input's own goes with it */
	x->o.preset = preset ? preset->name : in->preset ? in->preset : "6.1-shadow";
	x->o.paging = run_mmu(in->preset, false, false) == MMU_TDP ? PAGING_TDP : PAGING_SHADOW;
	x->o.profile = a->o.profile;
	x->o.seed = a->run.seed;
	err = precopy_run(&x->o, &x->r);
	x->o.slots = NULL;
	x->o.sources = NULL;
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted");
	if (!err)
		run_note_fallback(x->o.dirty, run_mmu(in->preset, false, false));
	if (!err && run_input_torn(in))
		cli_warn("%s: the trace ended early; the guest begins anew there", in->name);
	return err;
}

static int migrate_all(struct args *a)
{
	bool converged = true;
	int err = 0;

	for (size_t i = 0; !err && i < a->n; i++) {
		struct run_input in;

		err = run_input_open(&a->run, &in);
		if (err)
			break;
		err = migrate(a, &a->runs[i], &in);
		run_input_close(&in);
		converged &= a->runs[i].r.converged;
	}
	if (err)
		return cli_run_exit_code(err);
	err = converge_report(a->runs, a->n, &a->run, a->run.trace ? a->run.trace : a->run.scenario,
			      a->json  ? CONVERGE_JSON
			      : a->csv ? CONVERGE_CSV
				       : CONVERGE_TEXT);
	if (!err && a->strict && !converged)
		return EXIT_GATE;
	return cli_exit_code(err);
}

static int judge_log(const struct args *a)
{
	const struct rounds_goal goal = {
		.bandwidth = a->bandwidth ? (double)a->o.bandwidth / (1 << 20) : 0,
		.downtime = (double)a->o.downtime_us / 1e6,
		.max_rounds = a->o.max_collections};

	return converge_rounds(a->run.trace, &goal,
			       a->json	? ROUNDS_JSON
			       : a->csv ? ROUNDS_CSV
					: ROUNDS_TEXT,
			       a->strict);
}

static void free_runs(struct args *a)
{
	for (size_t i = 0; a->runs && i < a->n; i++)
		precopy_result_free(&a->runs[i].r);
	free(a->runs);
	compare_free_policies(a->policies, a->n);
}

static int converge(const struct verb *verb, int argc, char **argv)
{
	struct args a = {.verb = verb,
			 .run = {.seed = 1, .errors = &cli_errors},
			 .o = {.bandwidth = 128 << 20,
			       .downtime_us = 300000,
			       .max_collections = 100,
			       .throttle_initial = 20,
			       .throttle_increment = 10,
			       .throttle_max = 99,
			       .trigger_percent = 50,
			       .interrupted = &run_interrupted,
			       .errors = &cli_errors}};
	struct profile *profile = NULL;
	int code = parse(&a, argc, argv), err;

	if (a.help)
		code = cli_help(verb);
	if (!code && a.rounds) {
		cli_catch_signals();
		code = judge_log(&a);
	} else if (!code && !a.help) {
		err = cli_profile(a.profile, &profile);
		a.o.profile = profile;
		cli_catch_signals();
		code = err ? cli_input_exit_code(err) : migrate_all(&a);
		profile_free(profile);
	}
	free_runs(&a);
	return code;
}

const struct verb verb_converge = {
	.name = "converge",
	.summary = "migrate a guest live, and see whether it converges",
	.usage = "converge --dirty POLICY --profile PROFILE [OPTION]... TRACE\n"
		 "       kvmsim converge --scenario FILE --dirty POLICY --profile PROFILE "
		 "[OPTION]...\n"
		 "       kvmsim converge [--bandwidth RATE] [--downtime MS] LOG\n"
		 "Sends the guest's memory over a link while the guest runs, round after round as "
		 "QEMU\n"
		 "does, until what is left fits the downtime. A trace begins anew at its end, a "
		 "generated\n"
		 "scenario goes on. A log of a migration (the rounds of a pre-copy, or QEMU's\n"
		 "info migrate) is judged as it is: what would be needed, if it does not converge. "
		 "A host's\n"
		 "trace tells the least that its rounds would dirty.\n"
		 "\n"
		 "  --dirty POLICY        dirty policy (kvmsim list)\n"
		 "  --profile PROFILE     built-in profile, or a file (PATH.ini)\n"
		 "  --scenario FILE       a guest that is described\n"
		 "  --bandwidth RATE      of the link, bytes per second: 128M, 1G (default 128M;\n"
		 "                        of a log: its own)\n"
		 "  --downtime-limit MS   the guest may stand still so long (default 300)\n"
		 "  --downtime MS         the same\n"
		 "  --interval MS         the log is collected at least so often (default: when\n"
		 "                        what is left fits the downtime)\n"
		 "  --warmup MS           the guest runs before the migration begins (default 0)\n"
		 "  --zero-pages PERCENT  of the pages that are zero when sent first (default 0)\n"
		 "  --page-cost NS        the migration thread's work per page (default: the\n"
		 "                        profile's price of send_page)\n"
		 "  --max-iterations N    collections after which it is given up (default 100)\n"
		 "  --auto-converge       the vCPUs are throttled when they dirty too much\n"
		 "  --cpu-throttle-initial PERCENT    at first (default 20)\n"
		 "  --cpu-throttle-increment PERCENT  more at each step (default 10)\n"
		 "  --max-cpu-throttle PERCENT        at most (default 99)\n"
		 "  --throttle-trigger-threshold PERCENT  of the bytes sent: above it the guest\n"
		 "                        dirties too much (default 50)\n"
		 "  --dirty-limit RATE    instead: a vCPU that dirties more sleeps when its dirty\n"
		 "                        ring is full, bytes per second\n"
		 "  --slot NAME           memory slot to migrate, or all (default: the scenario's, "
		 "all)\n"
		 "  --kernel PRESET       era of the algorithms (default: the scenario's, "
		 "6.1-shadow)\n"
		 "  --cpu NAME            what the guest runs on (default tcg)\n"
		 "  --host-pages SIZE     of the memory behind every slot: 4k, 2m or 1g (default: "
		 "the\n"
		 "                        scenario's, 4k)\n"
		 "  --eager-page-split Y  or N: large mappings are split when logging begins\n"
		 "                        (default: the preset's)\n"
		 "  --seed N              of every random draw (default 1)\n"
		 "  --strict              exit status 1 when it does not converge\n"
		 "  --check               keep the checkers on\n"
		 "  --json                rounds and sums as JSON\n"
		 "  --csv                 one row per round",
	.run = converge,
};
