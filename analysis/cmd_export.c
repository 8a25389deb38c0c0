// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/export.h"
#include "analysis/out_stream.h"

typedef int (*export_fn)(const char *path, const struct kvmsim_errsink *errors, FILE *to,
			 struct host_result *result, uint64_t *n_events);

/* Nothing but errors are said. A file that is not finished does not appear. */
static int export_to(const char *path, export_fn fn, const char *file)
{
	struct host_result result;
	struct out_stream out;
	uint64_t events = 0;
	int err, code;

	cli_catch_signals();
	err = out_stream_open(&out, file, &cli_errors);
	if (err)
		return EXIT_IO;
	err = fn(path, &cli_errors, out.to, &result, &events);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted");
	if (err == KVMSIM_ENOMEM)
		kvmsim_err(&cli_errors, err, "out of memory");
	if (!err && !events)
		err = kvmsim_err(&cli_errors, KVMSIM_EPARSE, "%s: no event is in it", path);
	code = cli_input_exit_code(err);
	if (!err && out_stream_finish(&out, &cli_errors))
		code = EXIT_IO;
	out_stream_abort(&out);
	return code;
}

static int export_run(const struct verb *verb, int argc, char **argv)
{
	static const struct option options[] = {{"perfetto", required_argument, NULL, 'p'},
						{"folded", no_argument, NULL, 'f'},
						{"csv", no_argument, NULL, 'c'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	const char *file = "-";
	export_fn fn = NULL;
	int c, n = 0;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c == 'h')
			return cli_help(verb);
		if (c == '?')
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		if (c == ':')
			return cli_usage(verb, "%s needs a value", argv[optind - 1]);
		n++;
		fn = c == 'p' ? export_perfetto : c == 'f' ? export_folded : export_csv;
		if (c == 'p')
			file = optarg;
	}
	if (n != 1)
		return cli_usage(verb, "one of --perfetto, --folded and --csv is expected");
	if (argc - optind != 1)
		return cli_usage(verb, "one trace is expected");
	return export_to(argv[optind], fn, file);
}

const struct verb verb_export = {
	.name = "export",
	.summary = "a host's trace as a time line, folded stacks, or CSV",
	.usage = "export TRACE --perfetto FILE.json\n"
		 "       kvmsim export TRACE --folded | --csv\n"
		 "Reads what a host recorded of KVM's events (text of ftrace, trace-cmd, perf;\n"
		 "trace.dat; the native format) and writes it for other programs. TRACE - is\n"
		 "standard input.\n\n"
		 "  --perfetto FILE  a time line for Perfetto and chrome://tracing; - is standard\n"
		 "                   output\n"
		 "  --folded         folded stacks of time by vCPU, state and reason\n"
		 "  --csv            a row per event, with a column per field\n"
		 "  --help",
	.run = export_run,
};
