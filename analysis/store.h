/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_STORE_H
#define KVMSIM_ANALYSIS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/run.h"

/*
 * The results store: one SQLite file (WAL) with what was run and what came out of it.
 *
 * One run is one transaction, so that a crash, a full disk or a kill loses at most the run in
 * progress; what was stored before stays whole. Several programs may write at a time: each waits
 * up to STORE_BUSY_MS for the other's transaction. Nothing in a run depends on the wall clock;
 * ids grow in order of storing.
 *
 * Every failure of the file is KVMSIM_EIO with one message (file, what SQLite said, what is still
 * there); a store written by a newer program is KVMSIM_EVERSION.
 */
#define STORE_SCHEMA  2		 /* in user_version */
#define STORE_APP_ID  0x6b766d73 /* "kvms", in application_id */
#define STORE_BUSY_MS 10000

struct store;

enum store_mode {
	STORE_READ,  /* must exist */
	STORE_WRITE, /* created when missing or empty */
};
/* Errors: KVMSIM_ENOENT (STORE_READ, no such file), KVMSIM_EIO (cannot be opened, not a store,
 * damaged), KVMSIM_EVERSION, KVMSIM_ENOMEM. @errors must outlive the store. */
int store_open(const char *path, enum store_mode mode, const struct kvmsim_errsink *errors,
	       struct store **out);
void store_close(struct store *s); /* NULL is fine */

/* The statements that make the schema, for `kvmsim store FILE sql-schema`. */
extern const char store_schema_sql[];

struct store_metric {
	const char *name, *unit;
	double value;
};

/* What a run was. Text may be NULL where it does not apply (trace or scenario; slot: all). */
struct store_run {
	const char *trace;
	uint64_t trace_checksum;
	const char *scenario;
	const char *preset, *cpu;
	const char *dirty;  /* the policy as given */
	const char *params; /* the policy's parameters, defaults included: a JSON object */
	const char *slot;
	const char *profile;
	uint64_t profile_checksum;
	uint64_t seed;
	uint32_t replicate;
	uint64_t interval, phase, shadow_pages;
	const char *version; /* the program's */
	const struct run_result *result;
	const struct store_metric *metrics;
	size_t n_metrics;
};

/* Stores one run whole or not at all. Of the model's counts those that are not zero. @id may be
 * NULL. Errors: KVMSIM_EIO (the message says how many runs are stored and safe). */
int store_add(struct store *s, const struct store_run *run, int64_t *id);

/* ---- reading: rows of cells, in a fixed order ---- */

struct store_cell {
	const char *name;
	enum { CELL_NULL, CELL_INT, CELL_REAL, CELL_TEXT } type;
	int64_t i;
	double real;
	const char *text; /* of CELL_TEXT; valid during the call */
};
/* Returns 0 to go on, a negative error to stop. */
typedef int (*store_row_fn)(void *ctx, const struct store_cell *cell, size_t n);

enum store_view {
	STORE_RUNS,	   /* all runs (@run 0), or one */
	STORE_COUNTS,	   /* of one run, in the order of the vocabulary */
	STORE_METRICS,	   /* of one run, or of all (@run 0) with what tells the runs apart */
	STORE_COLLECTIONS, /* of one run */
};
/* Calls @fn for each row. Returns the number of rows or a negative error. */
long store_rows(struct store *s, enum store_view view, int64_t run, store_row_fn fn, void *ctx);

/* SQLite's integrity check, foreign keys, and that every run has all of its rows. The number of
 * runs when whole, KVMSIM_EIO with a message when not. */
long store_check(struct store *s);

#endif
