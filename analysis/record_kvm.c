// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/record_kvm.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "analysis/cli.h"
#include "analysis/record_kvm_ops.h"
#include "analysis/run_input.h"
#include "traces/trace.h"
#include "workloads/scenario.h"

static int record_kvm_run(const struct verb *verb, int argc, char **argv);

const struct verb recorder_kvm = {
	.name = "record kvm",
	.summary = "plays a guest on this machine's /dev/kvm and writes what its dirty log said",
	.usage = "record kvm [OPTION]... TRACE | --scenario FILE |\n"
		 "                          --program FILE | --offer\n"
		 "Plays a native trace or a scenario, first access after first access, as a guest "
		 "of\n"
		 "this machine's KVM. Prints the time of each ioctl by the number of dirty "
		 "pages.\n\n"
		 "  -o, --output OUT     write what was played as a native trace\n"
		 "  --scenario FILE      the guest, instead of a trace\n"
		 "  --program FILE       an op program: what the statistics count in its phases\n"
		 "  --slot-pages N       of an op program, pages of slot 1 (1024)\n"
		 "  --protocol NAME      get (default), manual, manual-all-set or ring\n"
		 "  --chunk N            pages per KVM_CLEAR_DIRTY_LOG, a multiple of 64 (all)\n"
		 "  --ring N             entries of a vCPU's dirty ring, a power of two (4096)\n"
		 "  --thp                back the slots with transparent huge pages\n"
		 "  --guest-pte SIZE     4k (default) or 2m: how the guest maps the slots\n"
		 "  --absent             leave it to the guest to touch the slots' memory first\n"
		 "  --warm               the guest stores to every page before logging starts\n"
		 "  --every US           collect each so many microseconds while the vCPUs run,\n"
		 "                       instead of stopping them at each epoch\n"
		 "  --slot NAME          memory slot to log, or all (the scenario's, all)\n"
		 "  --seed N             of a scenario's random draws (1)\n"
		 "  --stats              read KVM's statistics around each part of a round\n"
		 "  --events LIST        count tracepoints: GROUP:NAME or GROUP:*, with commas\n"
		 "  --timeout S          give up when a round takes longer (60)\n"
		 "  --series NAME        name of the series in the CSV (record_kvm)\n"
		 "  --source WORDS       how it was recorded, for the trace and the CSV\n"
		 "  --csv                print rows of evidence\n"
		 "  --json               print everything, page by page\n"
		 "  --offer              only print what this machine's /dev/kvm offers\n"
		 "  --help",
	.run = record_kvm_run,
};

enum {
	OPT_OFFER = 256,
	OPT_SCENARIO,
	OPT_PROGRAM,
	OPT_SLOT_PAGES,
	OPT_PROTOCOL,
	OPT_CHUNK,
	OPT_RING,
	OPT_THP,
	OPT_GUEST_PTE,
	OPT_ABSENT,
	OPT_WARM,
	OPT_EVERY,
	OPT_SLOT,
	OPT_SEED,
	OPT_STATS,
	OPT_EVENTS,
	OPT_TIMEOUT,
	OPT_SERIES,
	OPT_SOURCE,
	OPT_CSV,
	OPT_JSON,
};

static const struct option options[] = {
	{"output", required_argument, NULL, 'o'},
	{"scenario", required_argument, NULL, OPT_SCENARIO},
	{"program", required_argument, NULL, OPT_PROGRAM},
	{"slot-pages", required_argument, NULL, OPT_SLOT_PAGES},
	{"protocol", required_argument, NULL, OPT_PROTOCOL},
	{"chunk", required_argument, NULL, OPT_CHUNK},
	{"ring", required_argument, NULL, OPT_RING},
	{"thp", no_argument, NULL, OPT_THP},
	{"guest-pte", required_argument, NULL, OPT_GUEST_PTE},
	{"absent", no_argument, NULL, OPT_ABSENT},
	{"warm", no_argument, NULL, OPT_WARM},
	{"every", required_argument, NULL, OPT_EVERY},
	{"slot", required_argument, NULL, OPT_SLOT},
	{"seed", required_argument, NULL, OPT_SEED},
	{"stats", no_argument, NULL, OPT_STATS},
	{"events", required_argument, NULL, OPT_EVENTS},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"series", required_argument, NULL, OPT_SERIES},
	{"source", required_argument, NULL, OPT_SOURCE},
	{"csv", no_argument, NULL, OPT_CSV},
	{"json", no_argument, NULL, OPT_JSON},
	{"offer", no_argument, NULL, OPT_OFFER},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct arguments {
	struct run_opts run;
	struct kvm_player_opts player;
	struct record_kvm record;
	const char *out, *program;
	uint64_t slot_pages;
	bool ring, offer, help;
};

/* ---- what this machine offers ---- */

static int print_offer(void)
{
	struct kvm_offer o;
	int err = kvm_player_offer(&cli_errors, &o);

	if (err)
		return cli_input_exit_code(err);
	printf("API version:       %d\n", o.api);
	printf("manual protection: %s\n", !o.manual   ? "no"
					  : o.all_set ? "yes, initially all set, too"
						      : "yes");
	if (o.ring_entries)
		printf("dirty ring:        up to %" PRIu32 " entries per vCPU\n", o.ring_entries);
	else
		puts("dirty ring:        no");
	printf("statistics:        %s\n", o.stats ? "yes" : "no");
	printf("shortest ioctl:    %" PRIu64 " TSC cycles\n", o.ioctl_cycles);
	if (o.tsc_khz)
		printf("TSC:               %" PRIu64 " kHz\n", o.tsc_khz);
	printf("a 64-bit guest at CPL3: %s\n", o.runs ? "runs" : "does not run");
	return o.runs ? EXIT_DONE : EXIT_INPUT;
}

/* ---- arguments ---- */

static bool parse_protocol(const struct verb *verb, const char *text, enum kvm_protocol *out)
{
	for (enum kvm_protocol p = 0; p < N_KVM_PROTOCOLS; p++) {
		if (!strcmp(text, kvm_protocol_name(p))) {
			*out = p;
			return true;
		}
	}
	cli_usage(verb, "--protocol %s: expected get, manual, manual-all-set or ring", text);
	return false;
}

static bool parse_number(const struct verb *verb, int opt, struct arguments *a)
{
	unsigned long long n = 0;

	switch (opt) {
	case OPT_CHUNK:
		if (!cli_u64(verb, "--chunk", optarg, 64, 1 << 20, &n))
			return false;
		if (n % 64) {
			cli_usage(verb, "--chunk %s: expected a multiple of 64", optarg);
			return false;
		}
		a->player.clear_chunk = n;
		return true;
	case OPT_RING:
		if (!cli_u64(verb, "--ring", optarg, 1, 1 << 20, &n))
			return false;
		if (n & (n - 1)) {
			cli_usage(verb, "--ring %s: expected a power of two", optarg);
			return false;
		}
		a->player.ring_entries = (uint32_t)n;
		a->ring = true;
		return true;
	case OPT_EVERY:
		if (!cli_u64(verb, "--every", optarg, 1, 1000000000, &n))
			return false;
		a->player.every_us = (uint32_t)n;
		return true;
	case OPT_SLOT_PAGES:
		if (!cli_u64(verb, "--slot-pages", optarg, 1, KVM_OPS_MAX_PAGES, &n))
			return false;
		a->slot_pages = n;
		return true;
	case OPT_SEED:
		if (!cli_u64(verb, "--seed", optarg, 0, UINT64_MAX, &n))
			return false;
		a->run.seed = n;
		return true;
	default: /* OPT_TIMEOUT */
		if (!cli_u64(verb, "--timeout", optarg, 1, 86400, &n))
			return false;
		a->player.timeout_s = (uint32_t)n;
		return true;
	}
}

static bool parse_one(const struct verb *verb, int opt, struct arguments *a)
{
	switch (opt) {
	case 'o':
		a->out = optarg;
		return true;
	case OPT_SCENARIO:
		a->run.scenario = optarg;
		return true;
	case OPT_PROGRAM:
		a->program = optarg;
		return true;
	case OPT_PROTOCOL:
		return parse_protocol(verb, optarg, &a->player.protocol);
	case OPT_GUEST_PTE:
		a->player.guest_2m = !strcmp(optarg, "2m");
		if (a->player.guest_2m || !strcmp(optarg, "4k"))
			return true;
		cli_usage(verb, "--guest-pte %s: expected 4k or 2m", optarg);
		return false;
	case OPT_THP:
		a->player.thp = true;
		return true;
	case OPT_ABSENT:
		a->player.absent = true;
		return true;
	case OPT_WARM:
		a->player.warm = true;
		return true;
	case OPT_STATS:
		a->player.stats = true;
		return true;
	case OPT_EVENTS:
		a->player.events = optarg;
		return true;
	case OPT_SLOT:
		a->run.slot = optarg;
		return true;
	case OPT_SERIES:
		a->record.series = optarg;
		return true;
	case OPT_SOURCE:
		a->record.source = optarg;
		return true;
	case OPT_CSV:
		a->record.format = RECORD_CSV;
		return true;
	case OPT_JSON:
		a->record.format = RECORD_JSON;
		return true;
	case OPT_OFFER:
		a->offer = true;
		return true;
	case 'h':
		a->help = true;
		return true;
	default:
		return parse_number(verb, opt, a);
	}
}

/* 0 or an exit code, its message printed. */
static int parse(const struct verb *verb, int argc, char **argv, struct arguments *a)
{
	int opt;

	opterr = 0;
	optind = 1;
	while (!a->help && (opt = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
		if (opt == ':')
			return cli_usage(verb, "%s needs a value", argv[optind - 1]);
		if (opt == '?')
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		if (!parse_one(verb, opt, a))
			return EXIT_USAGE;
	}
	if (a->help || (a->offer && optind == argc))
		return 0;
	if (argc - optind + !!a->run.scenario + !!a->program != 1 || a->offer)
		return cli_usage(verb, "one trace, --scenario or --program is expected");
	if (a->slot_pages && !a->program)
		return cli_usage(verb, "--slot-pages is of --program");
	if (optind < argc)
		a->run.trace = argv[optind];
	if (a->player.clear_chunk && a->player.protocol != KVM_PROTOCOL_MANUAL &&
	    a->player.protocol != KVM_PROTOCOL_MANUAL_ALL_SET)
		return cli_usage(verb, "--chunk is of the manual protocols");
	if (a->ring && a->player.protocol != KVM_PROTOCOL_RING)
		return cli_usage(verb, "--ring is of --protocol ring");
	if (a->player.absent && a->player.warm)
		return cli_usage(verb, "--absent and --warm exclude each other");
	return 0;
}

/* ---- a recording ---- */

struct recording {
	struct arguments *a;
	struct run_input in;
	struct trace_writer *trace;
};

static int played(void *ctx, uint32_t vcpu, const struct guest_op *ops, size_t n)
{
	struct recording *r = ctx;

	return r->trace ? trace_write(r->trace, vcpu, ops, n) : 0;
}

static int round_ended(void *ctx, const struct kvm_round *round)
{
	struct recording *r = ctx;

	return record_kvm_round(&r->a->record, round);
}

static int create_trace(struct recording *r)
{
	const struct run_input *in = &r->in;
	struct trace_meta meta = {
		.n_vcpus = in->n_vcpus,
		.n_slots = in->n_slots,
		.clock = TRACE_CLOCK_INSN,
		.epoch_len = in->epoch_len,
		.unseen = in->trace ? trace_meta(in->trace)->unseen : TRACE_NO_GVA,
	};
	struct utsname host;
	char source[1024], kernel[256];

	for (uint32_t i = 0; i < in->n_slots; i++) {
		meta.slots[i].base_gfn = in->slots[i].base_gfn;
		meta.slots[i].npages = in->slots[i].npages;
		memcpy(meta.slots[i].name, in->slots[i].name, sizeof(meta.slots[i].name));
	}
	uname(&host);
	snprintf(source, sizeof(source), "kvmsim record kvm, protocol %s%s%.700s",
		 kvm_protocol_name(r->a->player.protocol), r->a->record.source ? "; " : "",
		 r->a->record.source ? r->a->record.source : "");
	snprintf(kernel, sizeof(kernel), "host: %.65s %.65s; guest: none", host.sysname,
		 host.release);
	meta.source = source;
	meta.kernel = kernel;
	meta.workload =
		in->trace ? trace_meta(in->trace)->workload : (char *)in->scenario->workload->name;
	return trace_create(r->a->out, &meta, &cli_errors, &r->trace);
}

static int play(struct recording *r, struct kvm_player_result *result)
{
	struct kvm_player_slot slots[RUN_MAX_SLOTS];
	struct kvm_player_opts *o = &r->a->player;

	for (uint32_t i = 0; i < r->in.n_slots; i++)
		slots[i] = (struct kvm_player_slot){.base_gfn = r->in.slots[i].base_gfn,
						    .npages = r->in.slots[i].npages,
						    .logged = r->in.slots[i].logged};
	o->slots = slots;
	o->n_slots = r->in.n_slots;
	o->n_vcpus = r->in.n_vcpus;
	o->sources = r->in.sources;
	o->interrupted = &run_interrupted;
	o->errors = &cli_errors;
	o->played = played;
	o->round = round_ended;
	o->ctx = r;
	if (o->protocol != KVM_PROTOCOL_RING)
		o->ring_entries = 0;
	r->a->record.player = o;
	r->a->record.slots = r->in.slots;
	return kvm_play(o, result);
}

/* A KVM that left out a page, or named one that nothing touched. */
static int verdict(const struct record_kvm *k)
{
	if (!k->missing && !k->beside)
		return EXIT_DONE;
	kvmsim_err(&cli_errors, KVMSIM_ECHECK,
		   "this KVM's dirty log is wrong: %" PRIu64 " pages not reported, %" PRIu64
		   " reported without an access",
		   k->missing, k->beside);
	return EXIT_GATE;
}

static int record(struct arguments *a)
{
	struct recording r = {.a = a};
	struct kvm_player_result result;
	int err = run_input_open(&a->run, &r.in), code;

	if (err)
		return cli_input_exit_code(err);
	err = a->out ? create_trace(&r) : 0;
	if (err) {
		code = cli_exit_code(err);
		goto out;
	}
	cli_catch_signals();
	err = play(&r, &result);
	code = cli_input_exit_code(err);
	if (err) {
		if (err == KVMSIM_EINTR)
			kvmsim_err(&cli_errors, err, "interrupted; nothing is left behind");
		trace_abort(r.trace);
		goto out;
	}
	if (result.skipped)
		cli_warn("%" PRIu64 " ops that are no access to a slot's memory were not played",
			 result.skipped);
	err = r.trace ? trace_finish(r.trace, NULL) : 0;
	err = err ? err : record_kvm_print(&a->record, &result, stdout);
	code = err ? cli_exit_code(err) : verdict(&a->record);
out:
	record_kvm_free(&a->record);
	run_input_close(&r.in);
	return code;
}

static int record_program(const struct arguments *a)
{
	const struct kvm_ops_opts o = {
		.slot_pages = a->slot_pages ? a->slot_pages : 1024,
		.guest_2m = a->player.guest_2m,
		.timeout_s = a->player.timeout_s,
		.interrupted = &run_interrupted,
		.errors = &cli_errors,
	};
	int err;

	cli_catch_signals();
	err = record_kvm_ops(a->program, &o, stdout);
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted; nothing is left behind");
	return cli_input_exit_code(err);
}

static int record_kvm_run(const struct verb *verb, int argc, char **argv)
{
	struct arguments a = {
		.run = {.seed = 1, .errors = &cli_errors},
		.player = {.ring_entries = 4096},
		.record = {.series = "record_kvm"},
	};
	int err = parse(verb, argc, argv, &a);

	if (a.help)
		return cli_help(verb);
	if (err)
		return err;
	if (a.offer)
		return print_offer();
	return a.program ? record_program(&a) : record(&a);
}
