// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The verb `record`: a table of recorders. Each is a verb of its own behind the verb, in a file
 * record_NAME.c: its name is "record NAME", its usage and options are its own.
 */
#include <stdio.h>
#include <string.h>

#include "analysis/cli.h"

static int record_run(const struct verb *verb, int argc, char **argv);

const struct verb verb_record = {
	.name = "record",
	.summary = "a guest on a real machine or under QEMU, or the tracepoints of a host",
	.usage = "record RECORDER [OPTION]...\n"
		 "Runs a guest and writes what it did.",
	.run = record_run,
};

/* Of what is nearest to the metal first. */
static const struct verb *const recorders[] = {&recorder_kvm, &recorder_qemu, &recorder_tracefs,
					       NULL};

static const char *short_name(const struct verb *recorder)
{
	return recorder->name + strlen("record ");
}

static int help(const struct verb *verb)
{
	printf("Usage: kvmsim %s\n\n", verb->usage);
	for (const struct verb *const *r = recorders; *r; r++)
		printf("%s: %s\n", short_name(*r), (*r)->summary);
	for (const struct verb *const *r = recorders; *r; r++) {
		putchar('\n');
		cli_help(*r);
	}
	return EXIT_DONE;
}

static int record_run(const struct verb *verb, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name)
		return cli_usage(verb, "a recorder is missing");
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		return help(verb);
	for (const struct verb *const *r = recorders; *r; r++) {
		if (!strcmp(short_name(*r), name))
			return (*r)->run(*r, argc - 1, argv + 1);
	}
	return cli_usage(verb, "no recorder '%s'", name);
}
