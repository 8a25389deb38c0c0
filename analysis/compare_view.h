/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_COMPARE_VIEW_H
#define KVMSIM_ANALYSIS_COMPARE_VIEW_H

#include <stdio.h>

#include "analysis/compare.h"

/* How a comparison is shown: a table for people, CSV and JSON for programs. */
struct compare_view {
	const struct compare_opts *opts;
	const struct compare *c;
	const char *preset;
	uint64_t interval;	   /* guest instructions, never 0 for a trace with epochs */
	const char *spread_source; /* "assumed", "given" */
};

/* What the runs of a policy had in common. */
struct run_opts compare_run_of(const struct compare_view *v, const struct compare_policy *p);

/* Each returns 0 or KVMSIM_ENOMEM. */
int compare_print(const struct compare_view *v, FILE *to);
int compare_print_csv(const struct compare_view *v, FILE *to);
int compare_print_json(const struct compare_view *v, FILE *to);

#endif
