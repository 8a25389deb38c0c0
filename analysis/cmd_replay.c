// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>

#include "analysis/cli.h"
#include "analysis/contention.h"
#include "analysis/output.h"
#include "analysis/out_stream.h"
#include "analysis/replay_report.h"
#include "analysis/run_args.h"
#include "analysis/run_export.h"
#include "analysis/run_record.h"
#include "analysis/store.h"
#include "model/sim/profile.h"

enum {
	OPT_PHASE = RUN_ARG_OWN,
	OPT_REPLICATE,
	OPT_REFERENCE,
	OPT_CHECK,
	OPT_PERFETTO,
	OPT_FOLDED,
	OPT_CONTENTION,
};
static const struct option own[] = {
	{"phase", required_argument, NULL, OPT_PHASE},
	{"replicate", required_argument, NULL, OPT_REPLICATE},
	{"reference", no_argument, NULL, OPT_REFERENCE},
	{"check", no_argument, NULL, OPT_CHECK},
	{"perfetto", required_argument, NULL, OPT_PERFETTO},
	{"folded", required_argument, NULL, OPT_FOLDED},
	{"contention", no_argument, NULL, OPT_CONTENTION},
	{0},
};

/* What is exported, and where to. */
struct exports {
	struct run_args *args;
	const char *perfetto, *folded;
	struct out_stream line, stacks;
	struct run_export_opts opts;
	struct contention contention;
};

static bool parse_own(void *ctx, int opt, const char *name)
{
	struct exports *x = ctx;
	const struct run_args *a = x->args;
	unsigned long long n = 0;
	bool ok = true;

	switch (opt) {
	case OPT_PHASE:
		ok = cli_u64(a->verb, name, optarg, 0, INT64_MAX, &n);
		a->run->phase = n;
		break;
	case OPT_REPLICATE:
		ok = cli_u64(a->verb, name, optarg, 0, UINT32_MAX, &n);
		a->run->replicate = (uint32_t)n;
		break;
	case OPT_CONTENTION:
		a->run->contention = &x->contention;
		break;
	case OPT_REFERENCE:
		a->run->reference = true;
		break;
	case OPT_PERFETTO:
		x->perfetto = optarg;
		break;
	case OPT_FOLDED:
		x->folded = optarg;
		break;
	default:
		a->run->check = true;
	}
	return ok;
}

static int show(const struct run_args *a, const struct run_result *r)
{
	if (a->json)
		return json_print(replay_json(a->run, r), stdout);
	if (!a->csv)
		return replay_print(a->run, r, stdout);
	replay_csv(a->run, r, stdout);
	return 0;
}

/* EXIT_*. */
static int keep(const struct run_args *a, const struct run_result *r)
{
	struct store *store = NULL;
	double metric[N_METRICS];
	int err = metrics_of(r, metric);

	if (err)
		kvmsim_err(&cli_errors, err, "out of memory");
	else
		err = run_keep(a->store, &store, a->run, r, metric, &cli_errors);
	store_close(store);
	return err ? EXIT_IO : EXIT_DONE;
}

/* EXIT_*. */
static int exports_open(struct exports *x, struct run_opts *run)
{
	int err = 0;

	x->line.standard = x->stacks.standard = true;
	if (x->perfetto)
		err = out_stream_open(&x->line, x->perfetto, &cli_errors);
	if (!err && x->folded)
		err = out_stream_open(&x->stacks, x->folded, &cli_errors);
	if (err)
		return EXIT_IO;
	x->opts = (struct run_export_opts){.perfetto = x->perfetto ? x->line.to : NULL,
					   .folded = x->folded ? x->stacks.to : NULL};
	if (x->perfetto || x->folded)
		run->export = &x->opts;
	return EXIT_DONE;
}

static int exports_finish(struct exports *x)
{
	int err = out_stream_finish(&x->line, &cli_errors);

	err = err ? err : out_stream_finish(&x->stacks, &cli_errors);
	return err ? EXIT_IO : EXIT_DONE;
}

static int replay(const struct verb *verb, int argc, char **argv)
{
	struct run_opts run = {.errors = &cli_errors, .seed = 1};
	struct exports x = {0};
	struct run_args a = {.verb = verb,
			     .run = &run,
			     .own = own,
			     .shorts = ":",
			     .parse = parse_own,
			     .ctx = &x};
	struct run_result result;
	struct profile *profile;
	int code;

	x.args = &a;
	contention_init(&x.contention);
	code = run_args_parse(&a, argc, argv);
	if (code)
		return code;
	if (a.help)
		return cli_help(verb);
	if (a.csv && run.contention)
		return cli_usage(verb, "--contention and --csv exclude each other");
	code = run_args_policies(&a, &a.dirty, 1);
	if (code)
		return code;
	run.dirty = a.dirty;
	run.shadow_pages = a.shadow_lo;
	int err = cli_profile(a.profile, &profile);

	if (err)
		return cli_input_exit_code(err);
	run.profile = profile;
	cli_catch_signals();
	code = exports_open(&x, &run);
	err = code ? 0 : run_model(&run, &result);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted");
	if (!err && !code) {
		contention_sort(&x.contention);
		replay_warn(&run, &result);
		code = exports_finish(&x);
		code = !code && a.store ? keep(&a, &result) : code;
		err = code ? 0 : show(&a, &result);
		run_result_free(&result);
	}
	out_stream_abort(&x.line);
	out_stream_abort(&x.stacks);
	contention_free(&x.contention);
	profile_free(profile);
	return code ? code : cli_run_exit_code(err);
}

const struct verb verb_replay = {
	.name = "replay",
	.summary = "replay a trace or a scenario under one policy",
	.usage = "replay TRACE --dirty POLICY --profile PROFILE [OPTION]...\n"
		 "       kvmsim replay --scenario FILE.ini --dirty POLICY --profile PROFILE "
		 "[OPTION]...\n"
		 "Replays the guest, collecting the dirty log at each interval, and prints what "
		 "the\n"
		 "collections cost and where the time went. A guest that does not page.\n"
		 "\n"
		 "  --dirty POLICY        dirty policy, with parameters: NAME[,KEY=VALUE]...\n"
		 "  --profile PROFILE     built-in profile, or a file (PATH.ini); both: kvmsim "
		 "list\n" RUN_ARGS_USAGE
		 "  --phase N             epochs before the first interval (default 0)\n"
		 "  --shadow-pages N      active shadow pages of the rest of the guest, which a "
		 "walk\n"
		 "                        meets and the trace does not show (default 0)\n"
		 "  --replicate N         number of the replicate (default 0)\n"
		 "  --reference           the slow mode, no run-ahead: same result\n"
		 "  --check               keep the checkers on\n"
		 "  --perfetto FILE       a time line of the run, for Perfetto and "
		 "chrome://tracing\n"
		 "  --folded FILE         the ledger as folded stacks, in the profile's unit\n"
		 "  --contention          waits for locks by who waited, as perf lock contention "
		 "prints\n"
		 "                        them\n"
		 "  --json                everything, as JSON\n"
		 "  --csv                 one row per collection",
	.run = replay,
};
