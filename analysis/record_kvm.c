// SPDX-License-Identifier: GPL-3.0-or-later
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "analysis/cli.h"
#include "workloads/kvm/player.h"

static int record_kvm_run(const struct verb *verb, int argc, char **argv);

const struct verb recorder_kvm = {
	.name = "record kvm",
	.summary = "plays a guest on this machine's /dev/kvm",
	.usage = "record kvm --offer\n"
		 "  --offer              print what this machine's /dev/kvm offers\n"
		 "  --help",
	.run = record_kvm_run,
};

enum { OPT_OFFER = 256 };

static const struct option options[] = {
	{"offer", no_argument, NULL, OPT_OFFER},
	{"help", no_argument, NULL, 'h'},
	{0},
};

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

static int record_kvm_run(const struct verb *verb, int argc, char **argv)
{
	bool offer = false;
	int opt;

	opterr = 0;
	optind = 1;
	while ((opt = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		switch (opt) {
		case OPT_OFFER:
			offer = true;
			break;
		case 'h':
			return cli_help(verb);
		default:
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		}
	}
	if (optind != argc || !offer)
		return cli_usage(verb, "--offer is missing");
	return print_offer();
}
