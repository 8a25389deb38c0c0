// SPDX-License-Identifier: GPL-3.0-or-later
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "analysis/cli.h"
#include "analysis/output.h"
#include "analysis/tracefs_record.h"

static int record_tracefs_run(const struct verb *verb, int argc, char **argv);

const struct verb recorder_tracefs = {
	.name = "record tracefs",
	.summary = "this host's tracepoints of KVM, its MMU, locks and scheduler, as a trace.dat",
	.usage = "record tracefs -o OUT [OPTION]... [COMMAND [ARGUMENT]...]\n"
		 "Records tracepoints of this machine in an instance of tracefs of its own, until\n"
		 "the command or the time ends, or SIGINT; what else is traced is left alone. "
		 "Prints\n"
		 "how many events each CPU had, and how many were lost.\n\n"
		 "  -o, --output OUT  the trace.dat (version 6)\n"
		 "  --purpose LIST    mmu, exits, locks, sched, with commas (mmu,exits)\n"
		 "  --events LIST     and these: GROUP:NAME or GROUP:*, with commas\n"
		 "  --buffer SIZE     of each CPU's buffer: 4M, 512k (8M)\n"
		 "  --duration S      seconds\n"
		 "  --clock NAME      of the events' times (mono)\n"
		 "  --json            print what came as JSON\n"
		 "  --help",
	.run = record_tracefs_run,
};

enum { OPT_PURPOSE = 256, OPT_EVENTS, OPT_BUFFER, OPT_DURATION, OPT_CLOCK, OPT_JSON };

static const struct option options[] = {
	{"output", required_argument, NULL, 'o'},
	{"purpose", required_argument, NULL, OPT_PURPOSE},
	{"events", required_argument, NULL, OPT_EVENTS},
	{"buffer", required_argument, NULL, OPT_BUFFER},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"clock", required_argument, NULL, OPT_CLOCK},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct arguments {
	struct tracefs_recording r;
	bool json, help;
};

static bool parse_one(const struct verb *verb, int opt, struct arguments *a)
{
	unsigned long long n = 0;
	uint64_t bytes = 0;

	switch (opt) {
	case 'o':
		a->r.out = optarg;
		return true;
	case OPT_PURPOSE:
		a->r.purposes = optarg;
		return tracefs_purposes_known(optarg, &cli_errors);
	case OPT_EVENTS:
		a->r.events = optarg;
		return true;
	case OPT_BUFFER:
		if (!cli_bytes(verb, "--buffer", optarg, 1ull << 40, "a size from 4k on", &bytes))
			return false;
		if (bytes < 4096) {
			cli_usage(verb, "--buffer %s: expected 4k or more", optarg);
			return false;
		}
		a->r.buffer_kib = bytes / 1024;
		return true;
	case OPT_DURATION:
		if (!cli_u64(verb, "--duration", optarg, 1, 1000000, &n))
			return false;
		a->r.seconds = n;
		return true;
	case OPT_CLOCK:
		a->r.clock = optarg;
		return true;
	case OPT_JSON:
		a->json = true;
		return true;
	default: /* 'h' */
		a->help = true;
		return true;
	}
}

/* 0 or an exit code, its message printed. */
static int parse(const struct verb *verb, int argc, char **argv, struct arguments *a)
{
	int opt;

	opterr = 0;
	optind = 1;
	/* '+': options behind the command are the command's */
	while (!a->help && (opt = getopt_long(argc, argv, "+:o:h", options, NULL)) != -1) {
		if (opt == ':')
			return cli_usage(verb, "%s needs a value", argv[optind - 1]);
		if (opt == '?')
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		if (!parse_one(verb, opt, a))
			return EXIT_USAGE;
	}
	if (a->help)
		return 0;
	if (!a->r.out)
		return cli_usage(verb, "-o is missing: where to");
	if (!a->r.purposes && !a->r.events)
		a->r.purposes = "mmu,exits";
	a->r.command = optind < argc ? argv + optind : NULL;
	return 0;
}

static uint64_t lost(const struct tracefs_cpu *c)
{
	return tracefs_stat(c, "overrun") + tracefs_stat(c, "commit overrun") +
	       tracefs_stat(c, "dropped events");
}

static int print_json(const struct tracefs_recording *r)
{
	json_t *all = json_object(), *cpus = json_array(), *events = json_array();

	for (size_t i = 0; i < r->found.n; i++)
		json_array_append_new(events, json_string(r->found.name[i]));
	for (unsigned i = 0; i < r->n_cpus; i++) {
		json_t *cpu = json_object();

		json_put(cpu, "cpu", json_u64(r->cpus[i].cpu));
		json_put(cpu, "events", json_u64(tracefs_stat(&r->cpus[i], "read events")));
		json_put(cpu, "bytes", json_u64(r->cpus[i].bytes));
		json_put(cpu, "lost", json_u64(lost(&r->cpus[i])));
		json_array_append_new(cpus, cpu);
	}
	json_put(all, "output", json_string(r->out));
	json_put(all, "clock", json_string(r->clock));
	json_put(all, "seconds", json_real(r->took));
	json_put(all, "tracepoints", events);
	json_put(all, "cpus", cpus);
	return json_print(all, stdout);
}

static int print_table(const struct tracefs_recording *r)
{
	struct table *t = table_create("rrrr");
	char text[OUT_TEXT];
	int err;

	for (unsigned i = 0; i < 4; i++)
		table_cell(t, "%s", (const char *[]){"CPU", "events", "bytes", "lost"}[i]);
	for (unsigned i = 0; i < r->n_cpus; i++) {
		table_cell(t, "%u", r->cpus[i].cpu);
		table_cell(t, "%s", out_u64(text, tracefs_stat(&r->cpus[i], "read events")));
		table_cell(t, "%s", out_u64(text, r->cpus[i].bytes));
		table_cell(t, "%s", out_u64(text, lost(&r->cpus[i])));
	}
	err = table_print(t, stdout);
	table_free(t);
	return err;
}

/* What the reader of the recording must know. */
static void warn(const struct tracefs_recording *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->found.n_lacking; i++)
		cli_warn("this kernel has no event %s", r->found.lacking[i]);
	for (unsigned i = 0; i < r->n_cpus; i++)
		sum += lost(&r->cpus[i]);
	if (sum)
		cli_warn("%" PRIu64 " events were lost; --buffer makes room for more", sum);
	if (r->command && WIFEXITED(r->status) && WEXITSTATUS(r->status))
		cli_warn("%s ended with status %d", r->command[0], WEXITSTATUS(r->status));
	else if (r->command && WIFSIGNALED(r->status))
		cli_warn("%s was ended by signal %d", r->command[0], WTERMSIG(r->status));
}

static int record_tracefs_run(const struct verb *verb, int argc, char **argv)
{
	struct arguments a = {.r = {.clock = "mono", .buffer_kib = 8192}};
	int err = parse(verb, argc, argv, &a);

	if (err)
		return err;
	if (a.help)
		return cli_help(verb);
	cli_catch_signals();
	err = tracefs_record(&a.r, &cli_errors);
	if (!err) {
		warn(&a.r);
		err = a.json ? print_json(&a.r) : print_table(&a.r);
	}
	tracefs_recording_free(&a.r);
	if (err == KVMSIM_EIO)
		return EXIT_IO;
	return cli_input_exit_code(err);
}
