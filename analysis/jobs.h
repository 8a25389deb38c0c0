/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_JOBS_H
#define KVMSIM_ANALYSIS_JOBS_H

#include <stddef.h>

#include "analysis/run.h"

/*
 * Many runs of the model, on several processes. Results come back in the order of the list,
 * whatever the number of processes, so that what is made of them is the same with any -j.
 */

/* run_model(), or what a test puts in its place. */
typedef int (*run_fn)(const struct run_opts *opts, struct run_result *out);

struct jobs {
	const struct run_opts *list;
	size_t n;
	unsigned workers; /* 0 or 1: in this process */
	run_fn run;
	/* Called here, once per run, in order; the result is freed afterwards. A negative error
	 * ends everything and is returned. */
	int (*done)(void *ctx, size_t i, const struct run_result *r);
	/* A message of a run that did not fail. May be NULL. */
	void (*warn)(void *ctx, const char *msg);
	void *ctx;
};

/* Returns 0 or the first error in the order of the list, its message once on @errors (the list's
 * own sinks are not used). The first run is done here before processes are started: bad input is
 * met once. No process is left behind. */
int jobs_run(const struct jobs *jobs, const struct kvmsim_errsink *errors);

#endif
