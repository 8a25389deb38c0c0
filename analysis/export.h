/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_EXPORT_H
#define KVMSIM_ANALYSIS_EXPORT_H

#include <stdint.h>
#include <stdio.h>

#include "traces/host/host.h"

/*
 * A host's trace in forms that other programs read. One pass and constant memory each; errors are
 * host_read()'s and KVMSIM_ENOMEM. Whether all was written, the stream tells.
 */

/* For Perfetto and chrome://tracing: what each vCPU did, its faults, dirty rings and accesses of
 * devices; waits for locks; stalls and who ended them; what is missing. @n_events: of the trace.
 * KVMSIM_EPARSE when it has no times. */
int export_perfetto(const char *path, const struct kvmsim_errsink *errors, FILE *to,
		    struct host_result *result, uint64_t *n_events);

/* Folded stacks (flamegraph.pl, speedscope): "vCPU 0;host;EPT_VIOLATION 12345", ns by vCPU or
 * thread, state and reason. The sum of a thread's is the time from its first known state to the
 * trace's end. */
int export_folded(const char *path, const struct kvmsim_errsink *errors, FILE *to,
		  struct host_result *result, uint64_t *n_events);

/* A row per event, loss and elision, with a column for each field. */
int export_csv(const char *path, const struct kvmsim_errsink *errors, FILE *to,
	       struct host_result *result, uint64_t *n_events);

#endif
