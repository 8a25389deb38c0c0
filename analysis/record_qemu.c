// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The recorder `qemu`: builds the guest where it is not there yet, boots it under QEMU's TCG with
 * our plugin, and turns the plugin's lines into a trace or a table as they come. Nothing of it
 * stays behind but the guest, the trace, its note and what was asked for.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/child.h"
#include "analysis/cli.h"
#include "analysis/qemu_guest.h"
#include "analysis/record_qemu.h"
#include "traces/outfile.h"

static int record_run(const struct verb *verb, int argc, char **argv);

const struct verb recorder_qemu = {
	.name = "record qemu",
	.summary = "a Debian guest under QEMU's TCG: the first store to each page in each epoch",
	.usage =
		"record qemu --scenario NAME -o OUT [OPTION]...\n"
		"       kvmsim record qemu --build [OPTION]...\n"
		"Boots a guest that is built from Debian's packages (once, with the network) and\n"
		"writes a native trace, and a note beside it (.md). Needs no KVM and no root.\n\n"
		"  --scenario NAME      x11perf (an X server draws), find (find / over a disk), "
		"compile\n"
		"                       (gcc, over and over), tcp_rr (one byte to a host and "
		"back),\n"
		"                       dbench (4 vCPUs: the kernel's spin locks), or pages (the\n"
		"                       recorder's own test)\n"
		"  -o, --output OUT     the trace to write; of dbench a table of locks, CSV\n"
		"  --tests LIST         what is run, a phase each: tests of x11perf without their\n"
		"                       dash; cold and warm runs of find; levels of optimisation, "
		"O0 to\n"
		"                       O3; numbers of transactions or clients; a number of pages\n"
		"  --epoch N            guest instructions per epoch (30000000)\n"
		"  --memory MIB         of the guest (1024)\n"
		"  --depth BITS         per pixel, x11perf: 16 (default, vesafb) or 24 "
		"(bochs-drm)\n"
		"  --seconds N          guest seconds of each test of x11perf (1) and dbench (60)\n"
		"  --nic NAME           tcp_rr's network device: e1000 (default), virtio, "
		"virtio-legacy\n"
		"  --timeout S          seconds after which QEMU is ended (3600)\n"
		"  --text FILE          keep the plugin's lines, too\n"
		"  --build              only build the guest, print where it is\n"
		"  --rebuild            build it anew, with today's packages\n"
		"  --image DIR          a guest that is already built\n"
		"  --qemu PROGRAM       instead of qemu-system-x86_64\n"
		"  --help",
	.run = record_run,
};

enum {
	OPT_SCENARIO = 256,
	OPT_TESTS,
	OPT_EPOCH,
	OPT_MEMORY,
	OPT_DEPTH,
	OPT_SECONDS,
	OPT_NIC,
	OPT_TIMEOUT,
	OPT_TEXT,
	OPT_BUILD,
	OPT_REBUILD,
	OPT_IMAGE,
	OPT_QEMU
};

static const struct option options[] = {
	{"scenario", required_argument, NULL, OPT_SCENARIO},
	{"output", required_argument, NULL, 'o'},
	{"tests", required_argument, NULL, OPT_TESTS},
	{"epoch", required_argument, NULL, OPT_EPOCH},
	{"memory", required_argument, NULL, OPT_MEMORY},
	{"depth", required_argument, NULL, OPT_DEPTH},
	{"seconds", required_argument, NULL, OPT_SECONDS},
	{"nic", required_argument, NULL, OPT_NIC},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"text", required_argument, NULL, OPT_TEXT},
	{"build", no_argument, NULL, OPT_BUILD},
	{"rebuild", no_argument, NULL, OPT_REBUILD},
	{"image", required_argument, NULL, OPT_IMAGE},
	{"qemu", required_argument, NULL, OPT_QEMU},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* More than 2 GiB would not all lie below 4 GiB, and gfns would differ from places in QEMU's RAM.
 */
#define MIN_MIB 128
#define MAX_MIB 2048

/* ---- arguments ---- */

static const struct qemu_scenario *scenario_of(const char *name)
{
	for (const struct qemu_scenario *s = qemu_scenarios; s->name; s++) {
		if (!strcmp(s->name, name))
			return s;
	}
	return NULL;
}

static bool take_number(const struct verb *verb, int c, struct qemu_recording *r)
{
	unsigned long long n = 0;
	bool ok = false;

	switch (c) {
	case OPT_EPOCH:
		ok = cli_u64(verb, "--epoch", optarg, 1000, 1ull << 40, &n);
		r->epoch_len = n;
		break;
	case OPT_MEMORY:
		ok = cli_u64(verb, "--memory", optarg, MIN_MIB, MAX_MIB, &n);
		r->memory_mib = n;
		break;
	case OPT_DEPTH:
		ok = cli_u64(verb, "--depth", optarg, 16, 24, &n);
		if (ok && n != 16 && n != 24) {
			cli_usage(verb, "--depth %s: expected 16 or 24", optarg);
			ok = false;
		}
		r->depth = n;
		break;
	case OPT_SECONDS:
		ok = cli_u64(verb, "--seconds", optarg, 1, 3600, &n);
		r->seconds = n;
		break;
	default:
		ok = cli_u64(verb, "--timeout", optarg, 1, 10000000, &n);
		r->timeout = n;
	}
	return ok;
}

/* 0 or an exit code. *@help: --help was there. */
static int parse(const struct verb *verb, int argc, char **argv, struct qemu_recording *r,
		 bool *help)
{
	const char *name = NULL;
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
		switch (c) {
		case OPT_SCENARIO:
			name = optarg;
			break;
		case 'o':
			r->out = optarg;
			break;
		case OPT_TESTS:
			r->tests = optarg;
			break;
		case OPT_NIC:
			r->nic = qemu_nic_find(optarg);
			if (!r->nic)
				return cli_usage(verb,
						 "--nic %s: there are e1000, virtio and "
						 "virtio-legacy",
						 optarg);
			break;
		case OPT_TEXT:
			r->text = optarg;
			break;
		case OPT_BUILD:
			r->build_only = true;
			break;
		case OPT_REBUILD:
			r->rebuild = true;
			break;
		case OPT_IMAGE:
			r->image = optarg;
			break;
		case OPT_QEMU:
			r->qemu = optarg;
			break;
		case 'h':
			*help = true;
			return 0;
		case ':':
			return cli_usage(verb, "%s needs a value", argv[optind - 1]);
		case '?':
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		default:
			if (!take_number(verb, c, r))
				return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return cli_usage(verb, "%s: no argument is expected", argv[optind]);
	if (r->image && (r->rebuild || r->build_only))
		return cli_usage(verb, "--image is of a guest that is already built");
	if (r->build_only)
		return 0;
	if (!name || !r->out)
		return cli_usage(verb, "%s is missing", name ? "-o OUT" : "--scenario NAME");
	r->scenario = scenario_of(name);
	if (!r->scenario)
		return cli_usage(
			verb, "no scenario '%s': x11perf, find, compile, tcp_rr, dbench or pages",
			name);
	if (r->nic && !r->scenario->net)
		return cli_usage(verb, "--nic is about scenario tcp_rr");
	if (r->scenario->net && !r->nic)
		r->nic = qemu_nic_find("e1000");
	if (!r->seconds)
		r->seconds = r->scenario->seconds ? r->scenario->seconds : 1;
	if (!r->tests)
		r->tests = r->scenario->tests;
	name = qemu_scenario_refuses(r->scenario, r->tests);
	return name[0] ? cli_usage(verb, "--tests %s: %s", r->tests, name) : 0;
}

/* The command, for the note. */
static void keep_command(struct qemu_recording *r, int argc, char **argv)
{
	size_t used = snprintf(r->command, sizeof(r->command), "kvmsim");

	for (int i = 0; i < argc && used < sizeof(r->command); i++)
		used += snprintf(r->command + used, sizeof(r->command) - used, " %s%s",
				 i ? "" : "record ", argv[i]);
}

/* The guest, built where it is not there or to be built anew. */
static int get_guest(struct qemu_recording *r, const char *cache, const char *run, const char *dir,
		     double deadline)
{
	char about[4096];
	int err = 0;

	if (!r->image && (r->rebuild || !qemu_guest_there(dir))) {
		fprintf(stderr,
			"kvmsim: building the guest from Debian's packages, some minutes; log: "
			"%s/build.log\n",
			cache);
		err = qemu_guest_build(cache, run, dir, deadline, &cli_errors);
	}
	if (!r->image)
		r->image = dir;
	if (!err && !qemu_guest_there(r->image))
		err = kvmsim_err(&cli_errors, KVMSIM_ENOENT, "%s: no guest is there", r->image);
	snprintf(about, sizeof(about), "%s/about", r->image);
	qemu_guest_line(about, "", r->about, sizeof(r->about));
	return err;
}

/* Before anything that takes long: a file can be written at @path, whose content stays. */
static int check_output(const char *path)
{
	struct outfile file = {.fd = -1};
	const char *what = "cannot create";
	struct stat st;
	bool there = !stat(path, &st);
	int err = 0;

	if (there && S_ISFIFO(st.st_mode)) /* whose reader would see an end */
		return 0;
	if (there && access(path, W_OK)) {
		what = "cannot write";
		err = KVMSIM_EIO;
	} else {
		err = outfile_open(&file, path, &what);
	}
	if (err == KVMSIM_EIO)
		kvmsim_err(&cli_errors, err, "%s: %s: %s", path, what, strerror(errno));
	else if (err)
		kvmsim_err(&cli_errors, err, "record qemu: out of memory");
	outfile_abort(&file);
	return err;
}

static int record(struct qemu_recording *r)
{
	double deadline = child_clock() + r->timeout;
	char *cache = NULL, *run = NULL, *dir = NULL;
	int err = qemu_guest_cache(&cli_errors, &cache);

	if (!err && !(dir = qemu_guest_path(cache)))
		err = kvmsim_err(&cli_errors, KVMSIM_ENOMEM, "record qemu: out of memory");
	if (!err)
		err = qemu_guest_tools(r->build_only ? NULL : r->qemu,
				       r->rebuild || (!r->image && !qemu_guest_there(dir)),
				       &cli_errors);
	if (!err)
		err = qemu_guest_unpack(cache, &cli_errors, &run);
	if (!err && !r->build_only)
		err = qemu_ask_version(r, run);
	if (!err)
		err = get_guest(r, cache, run, dir, deadline);
	if (!err && r->build_only)
		puts(dir);
	if (!err && !r->build_only) {
		bool drm = r->scenario->disk && r->scenario->screen && r->depth == 24;
		char modules[256];

		snprintf(modules, sizeof(modules), "%s%s%s", r->scenario->modules,
			 drm ? " bochs" : "", r->nic ? r->nic->modules : "");
		err = qemu_guest_initrd(run, r->image, modules, r->scenario->script, deadline,
					&cli_errors);
		if (!err)
			err = qemu_run(r, run, cache, deadline);
	}
	if (run)
		qemu_guest_remove(run);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "record qemu: interrupted; %s was not written",
			   r->build_only ? "the guest" : r->out);
	free(run);
	free(dir);
	free(cache);
	return err;
}

static int record_run(const struct verb *verb, int argc, char **argv)
{
	struct qemu_recording r = {
		.qemu = "qemu-system-x86_64",
		.epoch_len = 30000000,
		.memory_mib = 1024,
		.depth = 16,
		.timeout = 3600,
	};
	bool help = false;
	int err;

	keep_command(&r, argc, argv);
	err = parse(verb, argc, argv, &r, &help);
	if (help)
		return cli_help(verb);
	if (err)
		return err;
	cli_catch_signals();
	if (!r.build_only)
		err = check_output(r.out);
	if (!err && !r.build_only && r.text)
		err = check_output(r.text);
	if (!err)
		err = record(&r);
	return err == KVMSIM_ENOENT ? EXIT_INPUT : cli_exit_code(err);
}
