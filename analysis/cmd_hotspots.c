// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/hotspots.h"
#include "analysis/output.h"

struct args {
	struct hot_opts opts;
	struct hot_range ranges[HOT_MAX_RANGES];
	bool json, csv;
};

/* [NAME=]FIRST-LAST, frame numbers, hexadecimal with 0x. */
static bool parse_range(struct args *a, const char *text)
{
	struct hot_range *r = &a->ranges[a->opts.n_ranges];
	const char *from = strchr(text, '=');
	size_t name = from ? (size_t)(from - text) : 0;
	char *end;

	if (a->opts.n_ranges == HOT_MAX_RANGES || name >= sizeof(r->name))
		return false;
	memcpy(r->name, text, name);
	r->name[name] = '\0';
	from = from ? from + 1 : text;
	errno = 0;
	if (*from < '0' || *from > '9')
		return false;
	r->first = strtoull(from, &end, 0);
	if (*end != '-' || end[1] < '0' || end[1] > '9')
		return false;
	r->last = strtoull(end + 1, &end, 0);
	if (*end || errno || r->last < r->first)
		return false;
	a->opts.ranges = a->ranges;
	a->opts.n_ranges++;
	return true;
}

static int show(const char *path, const struct args *a, const struct hotspots *h)
{
	if (a->json)
		return json_print(hotspots_json(path, h), stdout);
	if (!a->csv)
		return hotspots_print(path, h, stdout);
	hotspots_csv(h, stdout);
	return 0;
}

static int read_and_show(const char *path, const struct args *a)
{
	struct host_result result;
	struct hotspots h;
	int err, code = EXIT_DONE;

	cli_catch_signals();
	err = hotspots_read(path, &a->opts, &cli_errors, &h, &result);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted");
	if (!err && !h.kvm_events) {
		kvmsim_err(&cli_errors, KVMSIM_EPARSE,
			   "%s: no event of KVM: what was hot in it cannot be told", path);
		code = EXIT_INPUT;
	} else if (!err) {
		err = show(path, a, &h);
		code = cli_exit_code(err);
	} else {
		code = cli_input_exit_code(err);
	}
	if (err == KVMSIM_ENOMEM)
		kvmsim_err(&cli_errors, err, "out of memory");
	hotspots_free(&h);
	return code;
}

static int hotspots_run(const struct verb *verb, int argc, char **argv)
{
	static const struct option options[] = {{"top", required_argument, NULL, 't'},
						{"pages", required_argument, NULL, 'p'},
						{"range", required_argument, NULL, 'r'},
						{"json", no_argument, NULL, 'j'},
						{"csv", no_argument, NULL, 'c'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct args a = {.opts = {.top = 10, .keys = 65536}};
	unsigned long long n = 0;
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c == 'h')
			return cli_help(verb);
		if (c == '?')
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		if (c == ':')
			return cli_usage(verb, "%s needs a value", argv[optind - 1]);
		if (c == 't') {
			if (!cli_u64(verb, "--top", optarg, 1, 10000, &n))
				return EXIT_USAGE;
			a.opts.top = n;
		}
		if (c == 'p') {
			if (!cli_u64(verb, "--pages", optarg, 2, 1 << 24, &n))
				return EXIT_USAGE;
			a.opts.keys = n;
		}
		if (c == 'r' && !parse_range(&a, optarg))
			return cli_usage(verb,
					 "--range %s: [NAME=]FIRST-LAST is expected, in frame "
					 "numbers, at most %d times",
					 optarg, HOT_MAX_RANGES);
		a.json |= c == 'j';
		a.csv |= c == 'c';
	}
	if (a.json && a.csv)
		return cli_usage(verb, "--json and --csv exclude each other");
	if (argc - optind != 1)
		return cli_usage(verb, "one trace is expected");
	return read_and_show(argv[optind], &a);
}

const struct verb verb_hotspots = {
	.name = "hotspots",
	.summary = "which pages a host's trace faults for, what is stuck, who held whom up",
	.usage =
		"hotspots TRACE [--top N] [--range [NAME=]FIRST-LAST]... [--pages N] "
		"[--json|--csv]\n"
		"Reads what a host recorded of KVM's events (text of ftrace, trace-cmd, perf;\n"
		"trace.dat; the native format) and tells, by vCPU and page, the faults; loops\n"
		"without progress; storms of exits to user space; stalls and who ended them; and\n"
		"the longest gaps. TRACE - is standard input.\n\n"
		"  --top N    so many of each (default 10)\n"
		"  --range [NAME=]FIRST-LAST\n"
		"             frames, as a memslot has them: only these, and their gaps; may be\n"
		"             repeated (default: all, and runs of neighbouring pages)\n"
		"  --pages N  counts are exact for so many pairs of vCPU and page (default 65536)\n"
		"  --json     everything, as JSON\n"
		"  --csv      one row per vCPU and page\n"
		"  --help",
	.run = hotspots_run,
};
