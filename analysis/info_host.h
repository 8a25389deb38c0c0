/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_INFO_HOST_H
#define KVMSIM_ANALYSIS_INFO_HOST_H

#include <stdbool.h>

#include "analysis/facts.h"

struct info_host_args {
	bool json;
	const char *csv; /* the names of a CSV's columns (traces/tables/tables.h); NULL: none */
	struct facts_given given;
	bool strict; /* EXIT_GATE if a line was unknown or damaged, anything lost or out of order */
	json_t *native; /* goes into the JSON; borrowed, NULL: none */
};

/* What `kvmsim info` prints of a host's trace or a tool's table. Returns an exit code; messages go
 * to the command's sink. */
int info_host(const char *path, const struct info_host_args *a);
/* Whether @path ("-": stdin) begins as a native trace does. Takes nothing of a stream away. */
bool info_is_native(const char *path);

#endif
