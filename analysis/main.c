// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <string.h>

#include "analysis/cli.h"

/* The verbs, in the order of --help: as a person meets them. */
static const struct verb *const verbs[] = {
	&verb_list,   &verb_replay,   &verb_compare,  &verb_memstress, &verb_overcommit,
	&verb_sweep,  &verb_converge, &verb_validate, &verb_calibrate, &verb_record,
	&verb_import, &verb_info,     &verb_hotspots, &verb_export,    &verb_explain,
	&verb_store,  NULL,
};

static void help(FILE *to)
{
	fputs("Usage: kvmsim VERB [OPTION]... [ARGUMENT]...\n"
	      "Predicts what a change to the KVM MMU costs.\n\n",
	      to);
	for (const struct verb *const *v = verbs; *v; v++)
		fprintf(to, "  %-10s %s\n", (*v)->name, (*v)->summary);
	fputs("\n"
	      "  --help, --version; kvmsim VERB --help tells more of one verb.\n"
	      "Exit status: 0 done, 1 a gate failed, 2 usage, 3 unusable input, 4 I/O failure, "
	      "130\n"
	      "interrupted.\n",
	      to);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		help(stdout);
		return cli_finish(EXIT_DONE);
	}
	if (!strcmp(name, "--version")) {
		printf("kvmsim %s\n", kvmsim_version);
		return cli_finish(EXIT_DONE);
	}
	for (const struct verb *const *v = verbs; *v; v++) {
		if (!strcmp((*v)->name, name))
			return cli_finish((*v)->run(*v, argc - 1, argv + 1));
	}
	fprintf(stderr, "kvmsim: unknown verb '%s' (see kvmsim --help)\n", name);
	return EXIT_USAGE;
}
