// SPDX-License-Identifier: GPL-3.0-or-later
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/info_host.h"
#include "analysis/info_kvt.h"

static int info_run(const struct verb *verb, int argc, char **argv);

const struct verb verb_info = {
	.name = "info",
	.summary = "what a trace holds and what it could not see",
	.usage =
		"info TRACE [--epochs] [--per N] [--downtime MS] [--csv NAMES] [--strict]\n"
		"            [--json]\n"
		"Of a trace in the native format: its metadata, its ops by kind, accesses of "
		"devices by\n"
		"register, and how many pages of each slot were stored to per epoch. Of a host's "
		"trace (text\n"
		"of ftrace, trace-cmd report or perf script; trace.dat) and of a table or log that "
		"a tool\n"
		"printed: the facts that can be told of it, and what is wrong in one word. TRACE - "
		"is\n"
		"standard input.\n\n"
		"  --epochs       every epoch, too\n"
		"  --per N        it is of so many transactions: accesses of devices per "
		"transaction\n"
		"  --downtime MS  so long may the guest stand still: does the last round of a "
		"migration fit?\n"
		"  --csv NAMES    a CSV with these columns is looked for: gfn=page,value=cycles\n"
		"  --strict       exit status 1 if a line was unknown or damaged, events lost or "
		"out of "
		"order\n"
		"  --json         for programs\n"
		"  --help",
	.run = info_run,
};

/* "300", "300ms", "2s". */
static bool downtime(const struct verb *verb, const char *text, struct facts_given *out)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long long n, unit = 1;
	char number[24];

	if (!strcmp(text + digits, "s"))
		unit = 1000;
	else if (text[digits] && strcmp(text + digits, "ms") != 0)
		digits = 0;
	snprintf(number, sizeof(number), "%.*s", (int)digits, text);
	if (!cli_u64(verb, "--downtime", digits && digits < sizeof(number) ? number : text, 0,
		     1000000000, &n))
		return false;
	out->has_downtime = true;
	out->downtime_ms = n * unit;
	return true;
}

static int info_run(const struct verb *verb, int argc, char **argv)
{
	static const struct option options[] = {
		{"epochs", no_argument, NULL, 'e'},	    {"per", required_argument, NULL, 'p'},
		{"downtime", required_argument, NULL, 'd'}, {"csv", required_argument, NULL, 'c'},
		{"strict", no_argument, NULL, 's'},	    {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},	    {0}};
	struct info_args a = {.per = 0};
	struct info_host_args host = {.csv = NULL};
	unsigned long long per = 0;
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
		if (c == 'p' && !cli_u64(verb, "--per", optarg, 1, 1000000000, &per))
			return EXIT_USAGE;
		if (c == 'd' && !downtime(verb, optarg, &host.given))
			return EXIT_USAGE;
		if (c == 'c')
			host.csv = optarg;
		a.epochs |= c == 'e';
		a.json |= c == 'j';
		host.strict |= c == 's';
	}
	if (argc - optind != 1)
		return cli_usage(verb, "one trace is expected");
	a.per = per;
	host.json = a.json;
	if (info_is_native(argv[optind]))
		return info_kvt(argv[optind], &a, &host);
	if (a.epochs || a.per)
		return cli_usage(verb, "--epochs and --per are for native traces");
	cli_catch_signals();
	return info_host(argv[optind], &host);
}
