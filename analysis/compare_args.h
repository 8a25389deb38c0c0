/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_COMPARE_ARGS_H
#define KVMSIM_ANALYSIS_COMPARE_ARGS_H

#include "analysis/compare.h"
#include "analysis/run_args.h"

/* The command line of `kvmsim compare`. */
#define COMPARE_DEFAULT_PROFILE "core2-2010"
#define COMPARE_MAX_GATES	16

/* --fail-if METRIC>+5%, for every policy but the baseline. */
struct compare_gate {
	const char *text;
	int metric;
	bool above;
	double bound; /* a fraction */
};

struct compare_args {
	struct run_args run;	  /* its verb and default profile before */
	struct compare_opts opts; /* defaults before, what was given after */
	/* As given; opts.policies and opts.sptes are made of them. compare_args_free() */
	char **dirty, **sptes;
	size_t n_dirty, n_sptes;
	const char **same;	   /* the one dirty policy for each of several of spte */
	const char *spread_source; /* "assumed", "as given" */
	struct compare_gate gate[COMPARE_MAX_GATES];
	size_t n_gates;
};

/* 0 or an exit code, its message printed. With --help the rest is not looked at. */
int compare_args_parse(struct compare_args *a, int argc, char **argv);

void compare_args_free(struct compare_args *a);

extern const char compare_usage[];

#endif
