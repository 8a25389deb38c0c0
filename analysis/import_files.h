/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_IMPORT_FILES_H
#define KVMSIM_ANALYSIS_IMPORT_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "traces/trace.h"

/* Import of hosts' traces for the verb: clocks, progress, and what is said about it. */

struct verb;

struct import_files {
	const struct verb *verb;
	char **names, **paths; /* as given; as they can be opened */
	size_t n;
	const char *const *offset; /* FILE=NS */
	size_t n_offsets;
	bool same_clock, strict;
	const struct trace_slot *slots;
	uint32_t n_slots;
	const char *source, *kernel, *workload, *out;
};

/* EXIT_*; all messages are said. */
int import_files(const struct import_files *f);

#endif
