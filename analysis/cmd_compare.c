// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "analysis/cli.h"
#include "analysis/compare_args.h"
#include "analysis/compare_view.h"
#include "analysis/run_input.h"
#include "analysis/run_record.h"
#include "analysis/store.h"
#include "model/sim/profile.h"

struct command {
	struct compare_args args;
	struct profile *profile;
	char preset[32];
	uint64_t interval;
	struct store *store;
	bool store_failed, walked;
	size_t runs; /* done */
	time_t began;
	bool progress;
};

/* That a trace is torn is said by the runs. */
static void all_but_torn(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	if (err != KVMSIM_ETORN)
		cli_errors.emit(cli_errors.ctx, err, msg);
}

/* The input's epochs, which say how many phases there are. */
static int look_at_input(struct command *c)
{
	const struct kvmsim_errsink sink = {all_but_torn, NULL};
	struct run_opts run = c->args.opts.run;
	struct run_input in;
	int err;

	run.errors = &sink;
	err = run_input_open(&run, &in);
	if (err)
		return err;
	c->interval = run.interval ? run.interval : in.epoch_len;
	c->args.opts.n_phases = 1;
	/* An interval that is no multiple of the epoch is refused by the first run. */
	if (in.epoch_len && c->interval % in.epoch_len == 0)
		c->args.opts.n_phases = c->interval / in.epoch_len;
	run_input_close(&in);
	return 0;
}

static int run_done(void *ctx, const struct run_opts *opts, const struct run_result *r,
		    const double value[N_METRICS])
{
	struct command *c = ctx;
	int err = 0;

	snprintf(c->preset, sizeof(c->preset), "%s", r->preset);
	c->walked |= r->counts[COUNT_walk_sp] > 0;
	run_note_spte(opts, r);
	c->runs++;
	if (c->progress && time(NULL) > c->began + 2)
		fprintf(stderr, "\rkvmsim: %zu run%s", c->runs, c->runs == 1 ? "" : "s");
	if (c->args.run.store)
		err = run_keep(c->args.run.store, &c->store, opts, r, value, &cli_errors);
	c->store_failed = err;
	return err;
}

static void run_warned(void *ctx, const char *msg)
{
	(void)ctx;
	cli_warn("%s", msg);
}

/* EXIT_DONE, or EXIT_GATE with a message for each gate that failed. */
static int check_gates(const struct command *c, const struct compare *result)
{
	int code = EXIT_DONE;

	for (size_t i = 0; i < c->args.n_gates; i++) {
		const struct compare_gate *g = &c->args.gate[i];

		for (size_t k = 1; k < result->n; k++) {
			const struct compare_policy *p = &result->policy[k];
			double rel = p->pair[g->metric].rel.value;
			bool told = p->gap[g->metric] == GAP_NONE;

			if (told && (g->above ? rel <= g->bound : rel >= g->bound))
				continue;
			if (told)
				kvmsim_err(&cli_errors, KVMSIM_ECHECK,
					   "--fail-if %s: %s has %+.2f%%", g->text, p->text,
					   100 * rel);
			else
				kvmsim_err(&cli_errors, KVMSIM_ECHECK,
					   "--fail-if %s: cannot tell for %s", g->text, p->text);
			code = EXIT_GATE;
		}
	}
	return code;
}

static int show(const struct command *c, const struct compare *result)
{
	const enum mmu_kind mmu =
		run_mmu(c->preset, c->args.opts.run.long_mode, c->args.opts.run.nested);
	const struct compare_view view = {.opts = &c->args.opts,
					  .c = result,
					  .preset = c->preset,
					  .interval = c->interval,
					  .spread_source = c->args.spread_source};
	int err = c->args.run.json  ? compare_print_json(&view, stdout)
		  : c->args.run.csv ? compare_print_csv(&view, stdout)
				    : compare_print(&view, stdout);

	for (size_t i = 0; i < c->args.n_dirty; i++)
		run_note_fallback(c->args.dirty[i], mmu);
	return err ? cli_exit_code(err) : check_gates(c, result);
}

static int compare(struct command *c)
{
	struct compare result;
	int code = run_args_policies(&c->args.run, (const char *const *)c->args.dirty,
				     c->args.n_dirty);
	int err;

	for (size_t i = 0; !code && i < c->args.n_sptes; i++)
		code = run_args_spte(&c->args.run, c->args.sptes[i]);
	if (code)
		return code;
	err = cli_profile(c->args.run.profile, &c->profile);
	if (err)
		return cli_input_exit_code(err);
	c->args.opts.run.profile = c->profile;
	err = look_at_input(c);
	if (err)
		return cli_input_exit_code(err);
	cli_catch_signals();
	c->began = time(NULL);
	c->progress = isatty(STDERR_FILENO);
	err = compare_run(&c->args.opts, &result);
	if (c->progress && time(NULL) > c->began + 2)
		fputc('\n', stderr);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted after %zu run%s%s%s", c->runs,
			   c->runs == 1 ? "" : "s",
			   c->args.run.store && c->runs ? ", stored in " : "",
			   c->args.run.store && c->runs ? c->args.run.store : "");
	if (err)
		return c->store_failed ? EXIT_IO : cli_run_exit_code(err);
	if (c->walked && c->args.opts.run.trace && !c->args.run.shadow_pages_given)
		cli_warn("--shadow-pages is not given: a walk met only the shadow pages of what "
			 "the trace shows, the rest of the guest has more");
	code = show(c, &result);
	compare_free(&result);
	return code;
}

static int run_compare(const struct verb *verb, int argc, char **argv)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct command c = {.args = {.run = {.verb = verb, .profile = COMPARE_DEFAULT_PROFILE},
				     .spread_source = "assumed",
				     .opts = {.run = {.seed = 1, .errors = &cli_errors},
					      .replicates = 20,
					      .workers = cpus > 0 ? (unsigned)cpus : 1,
					      .verdict = verdict_defaults,
					      .run_fn = run_model,
					      .done = run_done,
					      .warn = run_warned,
					      .ctx = &c}}};
	int code = compare_args_parse(&c.args, argc, argv);

	if (c.args.run.help)
		code = cli_help(verb);
	else if (!code)
		code = compare(&c);
	store_close(c.store);
	profile_free(c.profile);
	compare_args_free(&c.args);
	return code;
}

const struct verb verb_compare = {
	.name = "compare",
	.summary = "compare policies: what the model says, what real machines would show",
	.usage = compare_usage,
	.run = run_compare,
};
