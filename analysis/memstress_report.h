/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_MEMSTRESS_REPORT_H
#define KVMSIM_ANALYSIS_MEMSTRESS_REPORT_H

#include <stddef.h>

#include "workloads/memstress.h"

/* A run of memstress: what is left open is filled in, its rows are kept, and printed under the
 * selftest's names. */
struct contention;
struct profile;

struct memstress_result {
	struct memstress_row *rows; /* owned */
	size_t n_rows;
};

/* Fills in o->mmu (N_MMU_KINDS: what the preset has with two-dimensional paging), o->preset and
 * o->dirty where they are not given, and o->clears. @get_clears: -g. EXIT_DONE or EXIT_USAGE, its
 * message printed: no such preset or policy, or a pair that cannot be. */
int memstress_settings(struct memstress_opts *o, bool get_clears);

/* Runs it and keeps the rows. Errors: those of memstress_run(). */
int memstress_collect(const struct memstress_opts *o, struct memstress_result *out);
void memstress_result_free(struct memstress_result *r);

/* "Iteration 1 dirty memory time": what the selftest calls the row. Returns @buf. */
#define MEMSTRESS_NAME 48
const char *memstress_row_name(const struct memstress_row *row, char buf[MEMSTRESS_NAME]);
/* The row of that name, or NULL. */
const struct memstress_row *memstress_find(const struct memstress_result *r, const char *name);

/* Warnings for stderr: times that lack what the profile does not price, a policy that falls back.
 */
void memstress_warn(const struct memstress_opts *o, const struct memstress_result *r);

enum memstress_format { MEMSTRESS_TEXT, MEMSTRESS_CSV, MEMSTRESS_JSON };
/* On stdout; @contention may be NULL. 0 or KVMSIM_ENOMEM. */
int memstress_report(const struct memstress_opts *o, const struct memstress_result *r,
		     const struct profile *profile, const struct contention *contention,
		     enum memstress_format format);

#endif
