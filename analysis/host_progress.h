/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_HOST_PROGRESS_H
#define KVMSIM_ANALYSIS_HOST_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * How far the reading of a host's trace is, in MiB on standard error: when that is a terminal and
 * the reading takes more than two seconds.
 */
struct host_progress {
	struct timespec start;
	bool said;
};

/* What host_read() is to call with @p as its context; NULL: no terminal. */
void (*host_progress_begin(struct host_progress *p))(void *ctx, uint64_t bytes);
/* Takes what was said off the terminal. */
void host_progress_end(const struct host_progress *p);

#endif
