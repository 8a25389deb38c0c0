/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_REPLAY_REPORT_H
#define KVMSIM_ANALYSIS_REPLAY_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "analysis/run.h"

/* One run for people and for programs. */

/* Of the calls of one slot, or of all (@slot UINT32_MAX). Quantiles are of type 7. */
struct call_summary {
	size_t calls;
	double dirty_min, dirty_median, dirty_max, dirty_total;
	double mean, p50, p99, max, total; /* in the profile's unit */
};
/* KVMSIM_ENOMEM. Without calls all is 0. */
int summarize_calls(const struct run_result *r, uint32_t slot, struct call_summary *out);

/* Warnings for stderr: figures that lack what the profile does not price, a policy that falls back.
 */
void replay_warn(const struct run_opts *o, const struct run_result *r);

/* Tables. Each number has its unit, and its time where the profile states hz. KVMSIM_ENOMEM. */
int replay_print(const struct run_opts *o, const struct run_result *r, FILE *to);
/* Everything in the result, with its provenance, in a fixed order. NULL: no memory. Whether the run
 * was made in reference mode is not in it: the result is the same. */
json_t *replay_json(const struct run_opts *o, const struct run_result *r);
/* One row per collection, after a heading. */
void replay_csv(const struct run_opts *o, const struct run_result *r, FILE *to);

#endif
