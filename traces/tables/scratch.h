/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_TABLES_SCRATCH_H
#define KVMSIM_TRACES_TABLES_SCRATCH_H

#include <limits.h>

#include "traces/tables/tables.h"

/* What the formats are in the middle of. A row belongs to the table whose heading came last; `near`
 * says that nothing but rows and blank lines came since: only then is a line's mere beginning taken
 * for a row that was cut. */
struct tables_scratch {
	struct {
		bool open, near, headed, indented;
		size_t parent; /* row; SIZE_MAX: none yet */
		size_t indent; /* of the first row */
		char *scope;
	} kvm_stat;
	struct {
		bool open, near, headed;
		struct number code;
		char *clock;
	} perf_kvm;
	struct {
		bool headed, near, row;
		uint8_t column[5]; /* enum lock_column, from the heading */
		uint8_t n_columns, tail;
	} lock;
	struct {
		bool open, populated, near;
		char *label;
	} dirty_log;
	struct {
		bool open, lines;
		bool global;   /* Globals came, for a record that is to come */
		unsigned seen; /* bits of what the open one has */
	} migrate;
	struct {
		bool open;
		unsigned seen;
	} dirty_rate;
	struct {
		bool avg; /* a round has avg_bw */
	} precopy;
	struct {
		const struct csv_map *map; /* NULL: no CSV is looked for */
		bool open;
		size_t n_file;	/* columns of the file */
		size_t *column; /* t->csv.n_columns of them: which of the file's */
	} csv;
};

/* @n + 1 elements of @size fit behind the pointer at @array, which holds @n; the new one is zero.
 */
int tables_grow(void *array, size_t n, size_t size);
/* A copy with a NUL. NULL: no memory. */
char *tables_copy(struct host_text t);

extern const struct text_format kvm_stat_format, perf_kvm_format, lock_format, dirty_log_format,
	migrate_format, dirty_rate_format, precopy_format, csv_format;
void csv_scratch_free(struct tables *t);

#endif
