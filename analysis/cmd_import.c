// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/host_summary.h"
#include "analysis/import_input.h"
#include "analysis/run.h"
#include "analysis/import_files.h"
#include "traces/trace.h"

static int import_run(const struct verb *verb, int argc, char **argv);

const struct verb verb_import = {
	.name = "import",
	.summary = "a host's trace, or a guest probe's text, into the native format",
	.usage =
		"import [OPTION]... -o OUT FILE...\n"
		"Reads what ftrace, trace-cmd or perf recorded of a host, as text or trace.dat, or "
		"the\n"
		"text of the guest probe (FILE - is standard input), and writes a native trace. "
		"Says\n"
		"what each file was like in one line on standard error.\n\n"
		"  -o, --output OUT     the trace to write\n"
		"  --format NAME        auto (default), host, or probe: the guest probe's\n"
		"  --strict             exit status 1 if a line was unknown or damaged, events "
		"were\n"
		"                       lost, or one is out of order\n"
		"  --source WORDS       what recorded it and how, for the metadata\n"
		"  --kernel WORDS       the guest's kernel\n"
		"  --workload WORDS     what the guest did\n"
		"  --ram-pages N        4 KiB pages of guest RAM from gfn 0 (probe: 262144; host:\n"
		"                       the smallest range that has all faults)\n"
		"A host's:\n"
		"  --slots LIST         the guest's memory: NAME:GFN:PAGES,...\n"
		"  --offset FILE=NS     of several files: added to the times of this one; needed "
		"for\n"
		"                       each but the first\n"
		"  --same-clock         of several files: one clock made all their times\n"
		"The guest probe's:\n"
		"  --vram-gfn GFN       first page of video RAM (0xfd000; 0x for hexadecimal)\n"
		"  --vram-pages N       its pages (4096)\n"
		"  --epoch N            guest instructions per epoch (30000000)\n"
		"  --help",
	.run = import_run,
};

enum {
	OPT_RAM = 256,
	OPT_VRAM,
	OPT_VRAM_PAGES,
	OPT_EPOCH,
	OPT_SOURCE,
	OPT_KERNEL,
	OPT_WORKLOAD,
	OPT_FORMAT,
	OPT_SLOTS,
	OPT_OFFSET,
	OPT_SAME_CLOCK,
};

static const struct option options[] = {
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"ram-pages", required_argument, NULL, OPT_RAM},
	{"slots", required_argument, NULL, OPT_SLOTS},
	{"offset", required_argument, NULL, OPT_OFFSET},
	{"same-clock", no_argument, NULL, OPT_SAME_CLOCK},
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

#define MAX_FILES 64
#define MAX_PAGES (1ull << 40) /* the format's */

enum import_format { FORMAT_AUTO, FORMAT_HOST, FORMAT_PROBE };

struct arguments {
	struct import_opts import;
	struct trace_slot slots[TRACE_MAX_SLOTS];
	uint32_t n_slots;
	const char *out;
	char **files;
	size_t n_files;
	const char *offset[MAX_FILES]; /* as given */
	size_t n_offsets;
	enum import_format format;
	const char *probe_only, *host_only; /* an option that was given, or NULL */
	bool same_clock, strict, help;
};

/* A gfn, in hexadecimal as the recorder writes it, after 0x, or in decimal; up to @end. */
static bool read_number(const char *text, const char *end, uint64_t least, uint64_t *out)
{
	bool hex = end - text > 2 && text[0] == '0' && text[1] == 'x';
	char *stop;

	text += hex ? 2 : 0;
	if (text == end || !strchr("0123456789abcdefABCDEF", *text))
		return false;
	errno = 0;
	*out = strtoull(text, &stop, hex ? 16 : 10);
	return stop == end && !errno && *out >= least && *out <= MAX_PAGES;
}

static bool parse_gfn(const struct verb *verb, const char *text, uint64_t *out)
{
	if (read_number(text, text + strlen(text), 1, out))
		return true;
	cli_usage(verb, "--vram-gfn %s: expected a gfn from 0x1 to 0x%llx", text, MAX_PAGES);
	return false;
}

/* "ram:0:0x80000,high:0x100000:262144" */
static bool parse_slots(const struct verb *verb, const char *text, struct arguments *a)
{
	const char *p = text;

	for (a->n_slots = 0; a->n_slots < TRACE_MAX_SLOTS; p++) {
		struct trace_slot *s = &a->slots[a->n_slots];
		const char *end = strchrnul(p, ','), *gfn = memchr(p, ':', end - p), *pages;

		pages = gfn ? memchr(gfn + 1, ':', end - gfn - 1) : NULL;
		if (!pages || gfn == p || gfn - p >= (int)sizeof(s->name) ||
		    !read_number(gfn + 1, pages, 0, &s->base_gfn) ||
		    !read_number(pages + 1, end, 1, &s->npages))
			break;
		memset(s->name, 0, sizeof(s->name));
		memcpy(s->name, p, gfn - p);
		a->n_slots++;
		p = end;
		if (!*p)
			return true;
	}
	cli_usage(verb,
		  "--slots %s: expected NAME:GFN:PAGES, at most %d of them with commas between",
		  text, TRACE_MAX_SLOTS);
	return false;
}

static bool parse_format(const struct verb *verb, const char *text, enum import_format *out)
{
	static const char *const names[] = {"auto", "host", "probe"};

	for (int i = 0; i < 3; i++) {
		if (!strcmp(text, names[i])) {
			*out = (enum import_format)i;
			return true;
		}
	}
	cli_usage(verb, "--format %s: expected auto, host or probe", text);
	return false;
}

static bool parse_offset(const struct verb *verb, const char *text, struct arguments *a)
{
	a->host_only = "--offset";
	if (a->n_offsets < MAX_FILES) {
		a->offset[a->n_offsets++] = text;
		return true;
	}
	cli_usage(verb, "--offset is given more than %d times", MAX_FILES);
	return false;
}

/* One option; false: a usage message was printed. */
static bool parse_option(const struct verb *verb, int c, struct arguments *a)
{
	unsigned long long n = 0;
	bool ok = true;

	switch (c) {
	case 'o':
		a->out = optarg;
		break;
	case OPT_FORMAT:
		return parse_format(verb, optarg, &a->format);
	case OPT_RAM:
		ok = cli_u64(verb, "--ram-pages", optarg, 1, MAX_PAGES, &n);
		a->import.ram_pages = n;
		break;
	case OPT_SLOTS:
		a->host_only = "--slots";
		return parse_slots(verb, optarg, a);
	case OPT_OFFSET:
		return parse_offset(verb, optarg, a);
	case OPT_SAME_CLOCK:
		a->same_clock = true;
		a->host_only = "--same-clock";
		break;
	case OPT_VRAM:
		a->probe_only = "--vram-gfn";
		return parse_gfn(verb, optarg, &a->import.vram_gfn);
	case OPT_VRAM_PAGES:
		ok = cli_u64(verb, "--vram-pages", optarg, 1, MAX_PAGES, &n);
		a->probe_only = "--vram-pages";
		a->import.vram_pages = n;
		break;
	case OPT_EPOCH:
		ok = cli_u64(verb, "--epoch", optarg, 1, 1ull << 62, &n);
		a->probe_only = "--epoch";
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
	default:
		a->strict = true;
	}
	return ok;
}

/* 0 or an exit code. */
static int parse(const struct verb *verb, int argc, char **argv, struct arguments *a)
{
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
		if (c == 'h') {
			a->help = true;
			return 0;
		}
		if (c == ':')
			return cli_usage(verb, "%s needs a value", argv[optind - 1]);
		if (c == '?')
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		if (!parse_option(verb, c, a))
			return EXIT_USAGE;
	}
	if (!a->out)
		return cli_usage(verb, "-o OUT is missing");
	a->files = argv + optind;
	a->n_files = argc - optind;
	if (!a->n_files)
		return cli_usage(verb, "a trace is expected");
	if (a->n_files > MAX_FILES)
		return cli_usage(verb, "more than %d files", MAX_FILES);
	if (a->n_slots && a->import.ram_pages)
		return cli_usage(verb, "--slots and --ram-pages exclude each other");
	return 0;
}

/* ---- the guest probe's text ---- */

static int import_probe(const struct verb *verb, struct arguments *a, struct import_input *in)
{
	struct import_stats st;
	FILE *f;
	int err;

	if (a->n_files > 1)
		return cli_usage(verb, "a guest probe's text is imported by itself");
	if (a->host_only)
		return cli_usage(verb, "%s is for traces of a host", a->host_only);
	f = fdopen(in->fd, "rb");
	if (!f)
		return cli_exit_code(
			kvmsim_err(&cli_errors, KVMSIM_EIO, "%s: %s", in->name, strerror(errno)));
	in->fd = -1;
	err = import_guest_probe(f, in->name, &a->import, a->out, &cli_errors, &st);
	fclose(f);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "%s: interrupted; %s was not written", in->name,
			   a->out);
	if (err)
		return cli_exit_code(err);
	struct summary s = {.lines = st.lines,
			    .events = st.events,
			    .unknown = st.unknown,
			    .damaged = st.damaged,
			    .out_of_order = st.out_of_order,
			    .first_damaged = st.first_damaged};

	summary_print(in->name, &s);
	return summary_exit_code(&s, a->strict);
}

/* ---- a host's traces ---- */

/* Every event would count twice, as another thread's. */
static bool given_twice(const struct verb *verb, const struct import_input *in, size_t n)
{
	for (size_t k = 1; k < n; k++) {
		for (size_t i = 0; i < k; i++) {
			enum import_same same = import_input_same(&in[i], &in[k]);

			if (same == IMPORT_SAME_FILE)
				cli_usage(verb, "%s is given twice%s%s", in[i].name,
					  strcmp(in[i].name, in[k].name) ? ", also as " : "",
					  strcmp(in[i].name, in[k].name) ? in[k].name : "");
			else if (same == IMPORT_SAME_BYTES)
				cli_usage(verb,
					  "%s and %s have the same content: one of them is enough",
					  in[i].name, in[k].name);
			if (same)
				return true;
		}
	}
	return false;
}

static int import_hosts(const struct verb *verb, struct arguments *a, struct import_input *in)
{
	struct trace_slot ram = {0, a->import.ram_pages, "ram"};
	char *paths[MAX_FILES];
	struct import_files f = {
		.verb = verb,
		.names = a->files,
		.paths = paths,
		.n = a->n_files,
		.offset = a->offset,
		.n_offsets = a->n_offsets,
		.same_clock = a->same_clock,
		.strict = a->strict,
		.slots = ram.npages ? &ram : a->slots,
		.n_slots = ram.npages ? 1 : a->n_slots,
		.source = a->import.source,
		.kernel = a->import.kernel,
		.workload = a->import.workload,
		.out = a->out,
	};
	unsigned pipes = 0;

	if (a->probe_only)
		return cli_usage(verb, "%s is for the guest probe's text", a->probe_only);
	if (given_twice(verb, in, a->n_files))
		return EXIT_USAGE;
	for (size_t k = 0; k < a->n_files; k++) {
		const char *again;
		int err = import_input_again(&in[k], a->files[k], &again);

		if (err)
			return EXIT_INPUT;
		paths[k] = (char *)again;
		pipes += !strcmp(again, "-");
	}
	if (pipes > 1)
		return cli_usage(verb, "only one of the files can be a pipe");
	return import_files(&f);
}

static int import_run(const struct verb *verb, int argc, char **argv)
{
	struct arguments a = {.import = {.interrupted = &run_interrupted}};
	struct import_input in[MAX_FILES];
	size_t n = 0;
	int code = parse(verb, argc, argv, &a), err = 0;
	bool probe = a.format == FORMAT_PROBE;

	if (a.help)
		return cli_help(verb);
	if (code)
		return code;
	cli_catch_signals();
	for (; !err && n < a.n_files; n++)
		err = import_input_open(a.files[n], &in[n]);
	for (size_t k = 0; !err && k < n; k++) {
		probe |= a.format == FORMAT_AUTO && in[k].probe;
		if (!code && import_input_is(&in[k], a.out))
			code = cli_usage(verb, "-o %s would replace %s, which is to be read", a.out,
					 in[k].name);
	}
	if (err == KVMSIM_EINTR)
		code = cli_exit_code(
			kvmsim_err(&cli_errors, err, "interrupted; %s was not written", a.out));
	else if (err)
		code = EXIT_INPUT;
	else if (!code)
		code = probe ? import_probe(verb, &a, &in[0]) : import_hosts(verb, &a, in);
	for (size_t k = 0; k < n; k++)
		import_input_close(&in[k]);
	return code;
}
