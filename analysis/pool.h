/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_POOL_H
#define KVMSIM_ANALYSIS_POOL_H

#include <stddef.h>

#include "model/sim/error.h"

/*
 * Pieces of work that do not know each other, on several processes. A result is @bytes long and has
 * no pointers. Results are handed on in the order of the pieces, whatever the number of processes,
 * so that what is made of them is the same with any -j. (jobs.h does the same for runs of a trace,
 * whose results have lists.)
 */
struct pool {
	size_t n, bytes;
	unsigned workers; /* 0 or 1: in this process */
	/* Does piece @i; @out is zeroed. 0 or a negative error, its message on @errors. */
	int (*work)(void *ctx, size_t i, const struct kvmsim_errsink *errors, void *out);
	/* Called here, once per piece, in order. A negative error ends everything. */
	int (*done)(void *ctx, size_t i, const void *result);
	void *ctx;
};

/* 0, or the first error in the order of the pieces, its first message once on @errors. Ends with
 * KVMSIM_EINTR when run_interrupted is set. No process is left behind. */
int pool_run(const struct pool *pool, const struct kvmsim_errsink *errors);

#endif
