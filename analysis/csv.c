// SPDX-License-Identifier: GPL-3.0-or-later
#include <csv.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/csv.h"
#include "analysis/run.h"

struct reader {
	const struct kvmsim_errsink *errors;
	csv_row_fn fn;
	void *ctx;
	struct csv_row row; /* row.line: where the row being read began */
	unsigned long line; /* being fed */
	bool header_done;
	size_t n_asked;
	size_t n_columns;	      /* in the file */
	size_t at;		      /* column of the next field */
	int slot[CSV_MAX_COLUMNS];    /* column of the file -> index asked for, or -1 */
	char *field[CSV_MAX_COLUMNS]; /* as asked for; owned */
	int err;
};

int csv_complain(const struct csv_row *row, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return kvmsim_err(row->errors, KVMSIM_EPARSE, "%s:%lu: %s", row->path, row->line, text);
}

static void header_field(struct reader *r, const char *text)
{
	r->slot[r->at] = -1;
	for (size_t i = 0; i < r->n_asked; i++) {
		if (strcmp(r->row.columns[i], text))
			continue;
		for (size_t j = 0; j < r->at; j++) {
			if (r->slot[j] == (int)i) {
				r->err = csv_complain(&r->row, "column '%s' is there twice", text);
				return;
			}
		}
		r->slot[r->at] = (int)i;
	}
}

static void on_field(void *data, size_t len, void *ctx)
{
	struct reader *r = ctx;
	size_t at = r->at;

	if (r->err)
		return;
	if (at >= (r->header_done ? r->n_columns : CSV_MAX_COLUMNS)) {
		r->err = csv_complain(&r->row, "more than %zu fields",
				      r->header_done ? r->n_columns : (size_t)CSV_MAX_COLUMNS);
		return;
	}
	if (!r->header_done) {
		header_field(r, data);
	} else if (r->slot[at] >= 0) {
		char *copy = strndup(data, len);
		char **f = &r->field[r->slot[at]];

		if (!copy)
			r->err = kvmsim_err(r->errors, KVMSIM_ENOMEM, "out of memory");
		free(*f);
		*f = copy;
	}
	r->at++;
}

static void end_header(struct reader *r)
{
	r->header_done = true;
	r->n_columns = r->at;
	for (size_t i = 0; i < r->n_asked; i++) {
		bool found = false;

		for (size_t j = 0; j < r->n_columns; j++)
			found |= r->slot[j] == (int)i;
		if (!found) {
			r->err = csv_complain(&r->row, "no column '%s' in the header",
					      r->row.columns[i]);
			return;
		}
	}
}

static void on_row(int terminator, void *ctx)
{
	struct reader *r = ctx;

	(void)terminator;
	if (r->err)
		return;
	if (!r->header_done)
		end_header(r);
	else if (r->at != r->n_columns)
		r->err = csv_complain(&r->row, "%zu fields, %zu expected", r->at, r->n_columns);
	else
		r->err = r->fn(r->ctx, &r->row);
	r->at = 0;
	r->row.line = r->line + 1;
}

/* Line by line, so that the number of the line is known when libcsv calls back. */
static int feed(struct reader *r, struct csv_parser *p, FILE *in)
{
	char *buf = NULL;
	size_t cap = 0;
	ssize_t n;

	while (!r->err && (n = getline(&buf, &cap, in)) > 0) {
		size_t bom = r->line || n < 3 || memcmp(buf, "\xef\xbb\xbf", 3) != 0 ? 0 : 3;

		r->line++;
		if (!r->at)
			r->row.line = r->line;
		if (memchr(buf, 0, (size_t)n))
			r->err = csv_complain(&r->row, "a NUL byte: this is no text");
		else if (csv_parse(p, buf + bom, (size_t)n - bom, on_field, on_row, r) !=
			 (size_t)n - bom)
			r->err = csv_complain(&r->row, "%s", csv_strerror(csv_error(p)));
	}
	if (!r->err && run_interrupted)
		r->err = KVMSIM_EINTR;
	if (!r->err && ferror(in))
		r->err = kvmsim_err(r->errors, KVMSIM_EIO, "%s: %s", r->row.path, strerror(errno));
	if (!r->err && csv_fini(p, on_field, on_row, r))
		r->err = csv_complain(&r->row, "a quote is not closed");
	if (!r->err && !r->header_done) {
		r->row.line = 1;
		r->err = csv_complain(&r->row, "empty; a line of column names was expected");
	}
	free(buf);
	return r->err;
}

static int read_stream(FILE *in, const char *path, const char *const *columns,
		       const struct kvmsim_errsink *errors, csv_row_fn fn, void *ctx)
{
	struct reader r = {.errors = errors, .fn = fn, .ctx = ctx};
	struct csv_parser p;
	int err;

	while (columns[r.n_asked])
		r.n_asked++;
	if (r.n_asked > CSV_MAX_COLUMNS)
		return kvmsim_err(errors, KVMSIM_EINVAL, "%s: %zu columns asked for, at most %d",
				  path, r.n_asked, CSV_MAX_COLUMNS);
	r.row = (struct csv_row){.path = path,
				 .field = (const char *const *)r.field,
				 .columns = columns,
				 .errors = errors};
	csv_init(&p, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL);
	err = feed(&r, &p, in);
	csv_free(&p);
	for (size_t i = 0; i < r.n_asked; i++)
		free(r.field[i]);
	return err;
}

int csv_read(const char *path, const char *const *columns, const struct kvmsim_errsink *errors,
	     csv_row_fn fn, void *ctx)
{
	FILE *in = fopen(path, "rb");
	int err;

	if (!in && run_interrupted)
		return KVMSIM_EINTR;
	if (!in)
		return kvmsim_err(errors, KVMSIM_EIO, "%s: %s", path, strerror(errno));
	err = read_stream(in, path, columns, errors, fn, ctx);
	fclose(in);
	return err;
}

int csv_read_text(const char *text, size_t len, const char *name, const char *const *columns,
		  const struct kvmsim_errsink *errors, csv_row_fn fn, void *ctx)
{
	FILE *in = fmemopen((char *)text, len, "rb"); /* read only: not written to */
	int err;

	if (!in)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: %s", name, strerror(errno));
	err = read_stream(in, name, columns, errors, fn, ctx);
	fclose(in);
	return err;
}

/* 0 when strto*() took all of the field, up to @end, and @ok. */
static int number(const struct csv_row *row, size_t i, const char *end, bool ok, const char *what)
{
	const char *text = row->field[i];

	if (end != text && !*end && !errno && ok)
		return 0;
	return csv_complain(row, "%s is '%s', %s was expected", row->columns[i], text, what);
}

int csv_u64(const struct csv_row *row, size_t i, uint64_t *out)
{
	const char *text = row->field[i];
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return number(row, i, end, !strpbrk(text, "+-"), "a whole number");
}

int csv_i64(const struct csv_row *row, size_t i, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(row->field[i], &end, 10);
	return number(row, i, end, true, "a whole number");
}

int csv_double(const struct csv_row *row, size_t i, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(row->field[i], &end);
	return number(row, i, end, isfinite(*out), "a number");
}
