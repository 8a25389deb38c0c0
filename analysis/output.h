/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_OUTPUT_H
#define KVMSIM_ANALYSIS_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

/*
 * What the verbs print: tables for people (aligned columns, a unit in each heading or cell), CSV
 * and JSON for programs. Cells are text, so that digits are decided where the noise is known.
 * An allocation that fails is remembered in the table; table_print() reports it.
 */

/* ---- tables ---- */
struct table;

/* @align has one letter per column: 'l' or 'r'. Headings are the first row. NULL: no memory. */
struct table *table_create(const char *align);
void table_free(struct table *t);
/* Appends one cell; rows fill from the left, a full row starts the next one. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Empty cells up to the end of the row. */
void table_end_row(struct table *t);
/* Prints with two spaces between columns and none at a line's end. 0 or KVMSIM_ENOMEM. */
int table_print(const struct table *t, FILE *to);

/* Prints lines of text with those that are too long broken at spaces, further ones indented by
 * @indent. */
#define OUT_WIDTH 112
void out_wrapped(const char *text, int indent, FILE *to);

/* ---- CSV (RFC 4180: fields quoted where needed; rows end in LF) ---- */
struct csv_out {
	FILE *to;
	int column; /* of the next field */
};
void csv_text(struct csv_out *c, const char *text); /* NULL: an empty field */
void csv_field(struct csv_out *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void csv_end_row(struct csv_out *c);

/* ---- JSON ---- */

/* A new integer; text where it is too large for JSON readers' signed 64 bits. */
json_t *json_u64(uint64_t v);
/* A new text of 16 hexadecimal digits, for checksums. */
json_t *json_hex64(uint64_t v);
/* Sets a member; @to takes over the reference. */
void json_put(json_t *to, const char *key, json_t *value);
/* Prints @v, indented, keys in the order they were set, and a newline. Drops the reference.
 * 0 or KVMSIM_ENOMEM (@v is NULL: some part could not be allocated). */
int json_print(json_t *v, FILE *to);
/* The same of numbers that came as decimals: with 15 digits they look as they did. */
int json_print_decimals(json_t *v, FILE *to);

/* ---- numbers for people ---- */
#define OUT_TEXT 40

/* "1,234,567". Returns @buf. */
const char *out_u64(char buf[OUT_TEXT], uint64_t v);
/* @cycles at @hz units per second as "812 ns", "35.1 us", "4.70 ms", "1.20 s", three digits.
 * Empty when @hz is 0: time is not known. */
const char *out_time(char buf[OUT_TEXT], double cycles, uint64_t hz);
/* @mib as "120 B", "1.5 KiB", "8208.3 MiB", "20.5 TiB", @digits of them; MiB, as QEMU prints, from
 * 1 to 99,999 of them. @per: "" or "/s". Returns @buf. */
const char *out_mib(char buf[OUT_TEXT], double mib, int digits, const char *per);
/* Millions of @unit, "kbit/s", "Mbit/s": the same by thousands. */
const char *out_mega(char buf[OUT_TEXT], double mega, int digits, const char *unit);
/* "0.4 us", "263 ms", "21.33 s", "12.1 min", "3.5 h", "24.6 days", "207 years". */
const char *out_long_time(char buf[OUT_TEXT], double seconds);

#endif
