/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_MEMSTRESS_ARGS_H
#define KVMSIM_ANALYSIS_MEMSTRESS_ARGS_H

#include "analysis/cli.h"
#include "workloads/memstress.h"

/* The options of `kvmsim memstress`, as a user writes them and as tables of runs have them. */
struct memstress_args {
	const struct verb *verb;
	struct memstress_opts o; /* but profile and interrupted */
	const char *profile;
	bool get_clears, percent_given, json, csv, contention, help;
};

/* Defaults and what argv has; what is left open is settled (memstress_settings()). EXIT_DONE, or
 * EXIT_USAGE, its message printed. With --help the rest is not looked at. */
int memstress_args_parse(struct memstress_args *a, const struct verb *verb, int argc, char **argv);

#endif
