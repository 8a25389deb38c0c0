/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_TIMING_PRIV_H
#define KVMSIM_ANALYSIS_TIMING_PRIV_H

#include "analysis/memstress_report.h"
#include "analysis/timing.h"

/* Runs of one profile, by options and vCPUs: rows of one run share it. For timing's files only. */
struct timing_cached {
	const char *options; /* of a struct timing_run, a part of it */
	size_t options_len;
	uint64_t x, published_bytes;
	struct memstress_opts o; /* its strings are in text */
	char *text;
	struct memstress_result result;
	double scale; /* measured memory by that of the run */
};
struct timing_cache {
	const struct profile *profile;
	struct timing_cached *runs;
	size_t n_runs;
};

/* The run that predicts a row, made if it is not in the cache, which is for one profile at a time.
 * Errors: those of memstress_run(); KVMSIM_EPARSE (options). */
int timing_run_row(struct timing *t, const struct timing_row *row, const struct profile *profile,
		   const struct kvmsim_errsink *errors, const struct timing_cached **out);
void timing_cache_clear(struct timing_cache *c);
/* Whether no mechanism of the model's predicts it. */
bool timing_untold(const struct timing_run *run);
/* Whether its rows are numbers, not times. */
bool timing_is_number(const struct timing_run *run);

#endif
