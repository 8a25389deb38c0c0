/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_CSV_H
#define KVMSIM_ANALYSIS_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sim/error.h"

/*
 * Reads CSV files (RFC 4180, by libcsv) whose first line names the columns. The caller asks for
 * columns by name and gets each row's fields in the order in which it asked, whatever their order
 * in the file; columns that it did not ask for are passed over, as is a byte order mark of UTF-8.
 * Streaming: one row at a time.
 *
 * Every complaint names file and line, and what was expected.
 */
#define CSV_MAX_COLUMNS 64

struct csv_row {
	const char *path;
	unsigned long line;	    /* of the row's first character, from 1 */
	const char *const *field;   /* NUL-terminated; valid during the call */
	const char *const *columns; /* the names asked for */
	const struct kvmsim_errsink *errors;
};

/* Returns 0 to go on; a negative error ends the reading and is passed on. */
typedef int (*csv_row_fn)(void *ctx, const struct csv_row *row);

/* Reads @path. @columns ends in NULL; all of them must be in the file. Errors: KVMSIM_EIO,
 * KVMSIM_EPARSE (no header, a column missing or twice, a row with too few or too many fields, a
 * quote out of place, a NUL byte), KVMSIM_EINVAL (more than CSV_MAX_COLUMNS asked for),
 * KVMSIM_ENOMEM, KVMSIM_EINTR when run_interrupted was set (no message), or what @fn returned. A
 * file with a header and no row is no error. */
int csv_read(const char *path, const char *const *columns, const struct kvmsim_errsink *errors,
	     csv_row_fn fn, void *ctx);

/* The same of a text of @len bytes; @name is for messages. */
int csv_read_text(const char *text, size_t len, const char *name, const char *const *columns,
		  const struct kvmsim_errsink *errors, csv_row_fn fn, void *ctx);

/* A message about a row: "FILE:LINE: ...". Returns KVMSIM_EPARSE. */
int csv_complain(const struct csv_row *row, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Whole and decimal numbers in the field of column @i; the whole field must be one. 0, or
 * KVMSIM_EPARSE with a message. */
int csv_u64(const struct csv_row *row, size_t i, uint64_t *out);
int csv_i64(const struct csv_row *row, size_t i, int64_t *out);
int csv_double(const struct csv_row *row, size_t i, double *out);

#endif
