/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_CONVERGE_REPORT_H
#define KVMSIM_ANALYSIS_CONVERGE_REPORT_H

#include "workloads/precopy.h"

/* What `kvmsim converge` prints of a migration, by the names of QEMU's `info migrate` where it has
 * them. */
enum converge_format { CONVERGE_TEXT, CONVERGE_JSON, CONVERGE_CSV };

struct run_opts;
struct converge_run {
	struct precopy_opts o;
	struct precopy_result r;
};

/* One migration, or a line for each of several dirty policies. @run: what was given, for the
 * evidence; @input: the trace's or the scenario's name. 0, or KVMSIM_ENOMEM. */
int converge_report(const struct converge_run *runs, size_t n, const struct run_opts *run,
		    const char *input, enum converge_format format);

#endif
