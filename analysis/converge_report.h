/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_CONVERGE_REPORT_H
#define KVMSIM_ANALYSIS_CONVERGE_REPORT_H

#include "workloads/precopy.h"

/* What `kvmsim converge` prints of a migration, by the names of QEMU's `info migrate` where it has
 * them. */
enum converge_format { CONVERGE_TEXT, CONVERGE_JSON, CONVERGE_CSV };

/* @run: what was given, for the evidence; @input: the trace's or the scenario's name. 0, or
 * KVMSIM_ENOMEM. */
struct run_opts;
int converge_report(const struct precopy_opts *o, const struct precopy_result *r,
		    const struct run_opts *run, const char *input, enum converge_format format);

#endif
