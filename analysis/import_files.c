// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/import_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/cli.h"
#include "analysis/host_progress.h"
#include "analysis/host_summary.h"
#include "analysis/run.h"
#include "traces/import_host.h"

/* ---- clocks ---- */

/* Whether --offset's FILE is @path: as it was given, or its last part. */
static bool names(const char *offset, size_t len, const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return (strlen(path) == len && !strncmp(offset, path, len)) ||
	       (strlen(base) == len && !strncmp(offset, base, len));
}

/* 0 or EXIT_USAGE. */
static int take_offset(const struct import_files *f, const char *text,
		       struct import_host_file *files, bool *given)
{
	const char *eq = strrchr(text, '=');
	size_t found = f->n;
	char *end;

	if (!eq || !eq[1] || strchr(" \t\n", eq[1]))
		return cli_usage(f->verb, "--offset %s: expected FILE=NS", text);
	errno = 0;
	long long ns = strtoll(eq + 1, &end, 10);

	if (*end || errno || ns == INT64_MIN)
		return cli_usage(f->verb, "--offset %s: expected a whole number of ns", text);
	for (size_t k = 0; k < f->n; k++) {
		if (!names(text, eq - text, f->names[k]))
			continue;
		if (found < f->n)
			return cli_usage(f->verb, "--offset %s: more than one file has that name",
					 text);
		found = k;
	}
	if (found == f->n)
		return cli_usage(f->verb, "--offset %s: no such file among those to import", text);
	if (given[found])
		return cli_usage(f->verb, "--offset is given twice for %s", f->names[found]);
	given[found] = true;
	files[found].offset_ns = ns;
	return 0;
}

static int take_offsets(const struct import_files *f, struct import_host_file *files)
{
	bool *given = calloc(f->n, sizeof(*given));
	int code = given ? 0 : EXIT_IO;

	if (!code && f->n == 1 && (f->n_offsets || f->same_clock))
		code = cli_usage(f->verb, "%s is for several files",
				 f->n_offsets ? "--offset" : "--same-clock");
	if (!code && f->n_offsets && f->same_clock)
		code = cli_usage(f->verb, "--offset and --same-clock exclude each other");
	for (size_t i = 0; !code && i < f->n_offsets; i++)
		code = take_offset(f, f->offset[i], files, given);
	for (size_t k = 1; !code && k < f->n; k++)
		if (!given[k] && !f->same_clock)
			code = cli_usage(f->verb,
					 "%s and %s may have different clocks: --offset %s=NS says "
					 "what to add to its times, --same-clock that it is one "
					 "clock",
					 f->names[0], f->names[k], f->names[k]);
	free(given);
	return code;
}

/* ---- what is read ---- */

struct watch {
	struct host_summary summary;
	struct host_sink sink;
};

static int see_event(void *ctx, const struct host_event *e)
{
	return host_summary_event(ctx, e);
}

static int see_loss(void *ctx, const struct host_loss *l)
{
	host_summary_loss(ctx, l);
	return 0;
}

/* ---- what is said ---- */

static void say_ops(const struct import_files *f, const struct import_host_stats *st)
{
	const struct event_ops_stats *o = &st->ops;
	uint64_t faults = o->reads + o->writes + o->fetches;
	uint64_t left_out = o->no_vcpu + o->virtual + o->device + o->outside;

	kvmsim_err(&cli_errors, KVMSIM_OK,
		   "%s: %" PRIu64 " op%s, of them page faults %" PRIu64 " (%" PRIu64
		   " reads, %" PRIu64 " writes, %" PRIu64 " fetches)",
		   f->out, o->ops, o->ops == 1 ? "" : "s", faults, o->reads, o->writes, o->fetches);
	if (left_out)
		kvmsim_err(&cli_errors, KVMSIM_OK,
			   "%s: page faults that are no ops: %" PRIu64 " of an unknown vCPU, "
			   "%" PRIu64 " at a guest-virtual address, %" PRIu64 " of devices, "
			   "%" PRIu64 " outside the slots",
			   f->out, o->no_vcpu, o->virtual, o->device, o->outside);
	if (o->others_no_vcpu)
		kvmsim_err(&cli_errors, KVMSIM_OK,
			   "%s: accesses of devices, ports and HLTs of an unknown vCPU: %" PRIu64,
			   f->out, o->others_no_vcpu);
	if (st->slot.npages)
		kvmsim_err(&cli_errors, KVMSIM_OK,
			   "%s: slot ram is the smallest range that has all faults: %" PRIu64
			   " page%s from gfn 0x%" PRIx64,
			   f->out, st->slot.npages, st->slot.npages == 1 ? "" : "s",
			   st->slot.base_gfn);
}

/* Files in the order in which they were given, as parts of one recording are. */
static void say_overlaps(const struct import_files *f, const struct import_host_file *files)
{
	for (size_t k = 1; k < f->n; k++)
		if (files[k].first_time < files[k - 1].last_time)
			kvmsim_err(&cli_errors, KVMSIM_OK,
				   "%s: time goes back: it begins %" PRIu64 " ns before %s ends; "
				   "their events interleave",
				   f->names[k], files[k - 1].last_time - files[k].first_time,
				   f->names[k - 1]);
}

static int say(const struct import_files *f, const struct import_host_file *files,
	       const struct watch *watch, const struct import_host_stats *st)
{
	int code = EXIT_DONE;

	for (size_t k = 0; k < f->n; k++) {
		struct summary s = host_summary(&watch[k].summary, &files[k].result);
		const char *name = strcmp(f->names[k], "-") ? f->names[k] : "standard input";

		summary_print(name, &s);
		if (summary_exit_code(&s, f->strict))
			code = EXIT_GATE;
	}
	say_overlaps(f, files);
	say_ops(f, st);
	return code;
}

int import_files(const struct import_files *f)
{
	struct import_host_file *files = calloc(f->n, sizeof(*files));
	struct watch *watch = calloc(f->n, sizeof(*watch));
	struct host_progress progress;
	struct import_host_opts opts = {.slots = f->slots,
					.n_slots = f->n_slots,
					.source = f->source,
					.kernel = f->kernel,
					.workload = f->workload,
					.interrupted = &run_interrupted,
					.progress_ctx = &progress};
	struct import_host_stats st;
	int err, code = EXIT_IO;

	if (files && watch)
		code = take_offsets(f, files);
	if (code) {
		free(files);
		free(watch);
		return code;
	}
	for (size_t k = 0; k < f->n; k++) {
		watch[k].sink = (struct host_sink){
			.ctx = &watch[k].summary, .event = see_event, .loss = see_loss};
		files[k].path = f->paths[k];
		files[k].watch = &watch[k].sink;
	}
	opts.progress = host_progress_begin(&progress);
	err = import_host(files, f->n, &opts, f->out, &cli_errors, &st);
	host_progress_end(&progress);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted; %s was not written", f->out);
	code = err ? cli_exit_code(err) : say(f, files, watch, &st);
	for (size_t k = 0; k < f->n; k++)
		host_summary_free(&watch[k].summary);
	free(watch);
	free(files);
	return code;
}
