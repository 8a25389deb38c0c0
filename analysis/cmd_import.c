// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/run.h"
#include "traces/trace.h"

static int import_run(const struct verb *verb, int argc, char **argv);

const struct verb verb_import = {
	.name = "import",
	.summary = "a guest probe's text trace into the native format",
	.usage = "import [OPTION]... -o OUT FILE\n"
		 "Reads the text of the guest probe (plain or gzip; FILE - is standard input) and\n"
		 "writes a native trace. Prints what it met on standard error.\n\n"
		 "  -o, --output OUT     the trace to write\n"
		 "  --ram-pages N        4 KiB pages of guest RAM from gfn 0 (262144)\n"
		 "  --vram-gfn GFN       first page of video RAM (0xfd000; 0x for hexadecimal)\n"
		 "  --vram-pages N       its pages (4096)\n"
		 "  --epoch N            guest instructions per epoch (30000000)\n"
		 "  --source WORDS       what recorded it and how, for the metadata\n"
		 "  --kernel WORDS       the guest's kernel\n"
		 "  --workload WORDS     what the guest did\n"
		 "  --strict             exit status 1 if a line was unknown, damaged or out of "
		 "order\n"
		 "  --help",
	.run = import_run,
};

enum { OPT_RAM = 256, OPT_VRAM, OPT_VRAM_PAGES, OPT_EPOCH, OPT_SOURCE, OPT_KERNEL, OPT_WORKLOAD };

static const struct option options[] = {
	{"output", required_argument, NULL, 'o'},
	{"ram-pages", required_argument, NULL, OPT_RAM},
	{"vram-gfn", required_argument, NULL, OPT_VRAM},
	{"vram-pages", required_argument, NULL, OPT_VRAM_PAGES},
	{"epoch", required_argument, NULL, OPT_EPOCH},
	{"source", required_argument, NULL, OPT_SOURCE},
	{"kernel", required_argument, NULL, OPT_KERNEL},
	{"workload", required_argument, NULL, OPT_WORKLOAD},
	{"strict", no_argument, NULL, 's'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct arguments {
	struct import_opts import;
	const char *out, *in;
	bool strict, help;
};

#define MAX_PAGES (1ull << 40) /* the format's */

/* A gfn, in hexadecimal as the recorder writes it, after 0x, or in decimal. */
static bool parse_gfn(const struct verb *verb, const char *text, unsigned long long *out)
{
	char *end;

	if (strncmp(text, "0x", 2))
		return cli_u64(verb, "--vram-gfn", text, 1, MAX_PAGES, out);
	errno = 0;
	*out = strtoull(text + 2, &end, 16);
	if (!text[2] || text[2] == '-' || text[2] == '+' || text[2] == ' ' || *end || errno ||
	    !*out || *out > MAX_PAGES) {
		cli_usage(verb, "--vram-gfn %s: expected a gfn from 0x1 to 0x%llx", text,
			  MAX_PAGES);
		return false;
	}
	return true;
}

/* 0 or an exit code. */
static int parse(const struct verb *verb, int argc, char **argv, struct arguments *a)
{
	unsigned long long n = 0;
	bool ok = true;
	int c;

	opterr = 0;
	optind = 1;
	while (ok && (c = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			a->out = optarg;
			break;
		case OPT_RAM:
			ok = cli_u64(verb, "--ram-pages", optarg, 1, MAX_PAGES, &n);
			a->import.ram_pages = n;
			break;
		case OPT_VRAM:
			ok = parse_gfn(verb, optarg, &n);
			a->import.vram_gfn = n;
			break;
		case OPT_VRAM_PAGES:
			ok = cli_u64(verb, "--vram-pages", optarg, 1, MAX_PAGES, &n);
			a->import.vram_pages = n;
			break;
		case OPT_EPOCH:
			ok = cli_u64(verb, "--epoch", optarg, 1, 1ull << 62, &n);
			a->import.epoch_len = n;
			break;
		case OPT_SOURCE:
			a->import.source = optarg;
			break;
		case OPT_KERNEL:
			a->import.kernel = optarg;
			break;
		case OPT_WORKLOAD:
			a->import.workload = optarg;
			break;
		case 's':
			a->strict = true;
			break;
		case 'h':
			a->help = true;
			return 0;
		case ':':
			return cli_usage(verb, "%s needs a value", argv[optind - 1]);
		default:
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		}
	}
	if (!ok)
		return EXIT_USAGE;
	if (!a->out)
		return cli_usage(verb, "-o OUT is missing");
	if (argc - optind != 1)
		return cli_usage(verb, "one text trace is expected");
	a->in = argv[optind];
	return 0;
}

static int import_run(const struct verb *verb, int argc, char **argv)
{
	struct arguments a = {.import = {.interrupted = &run_interrupted}};
	struct import_stats st;
	const char *name;
	FILE *in;
	int err = parse(verb, argc, argv, &a);

	if (a.help)
		return cli_help(verb);
	if (err || !a.in)
		return err;
	name = strcmp(a.in, "-") ? a.in : "standard input";
	in = strcmp(a.in, "-") ? fopen(a.in, "rb") : stdin;
	if (!in) {
		kvmsim_err(&cli_errors, KVMSIM_EIO, "%s: cannot open: %s", name, strerror(errno));
		return EXIT_INPUT;
	}
	cli_catch_signals();
	err = import_guest_probe(in, name, &a.import, a.out, &cli_errors, &st);
	if (in != stdin)
		fclose(in);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "%s: interrupted; %s was not written", name, a.out);
	if (err)
		return cli_exit_code(err);
	fprintf(stderr,
		"kvmsim: %s: %" PRIu64 " line%s, %" PRIu64 " event%s, %" PRIu64 " unknown, %" PRIu64
		" damaged, %" PRIu64 " out of order",
		name, st.lines, st.lines == 1 ? "" : "s", st.events, st.events == 1 ? "" : "s",
		st.unknown, st.damaged, st.out_of_order);
	if (st.first_damaged)
		fprintf(stderr, "; first damaged line %" PRIu64, st.first_damaged);
	fputc('\n', stderr);
	return a.strict && st.unknown + st.damaged + st.out_of_order ? EXIT_GATE : EXIT_DONE;
}
