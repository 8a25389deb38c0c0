/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_TEXT_FORMAT_H
#define KVMSIM_TRACES_HOST_TEXT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/host/host.h"

/*
 * What the engine that takes a text apart (text.c) asks of each format that it knows. Transport
 * damage (CR, quoted-printable, quote marks, kernel-log prefixes, no-break spaces) is undone
 * before. The engine joins hard-wrapped lines: a line that a format calls CUT is tried again with
 * the next physical line behind it (a blank between), unless a blank line comes or the next line
 * begins something itself. Formats are asked in the order of the engine's table, the one that took
 * the line before first.
 */

enum text_match {
	TEXT_NO,   /* not of this format */
	TEXT_CUT,  /* begins as something of this format, ends before its last field */
	TEXT_MORE, /* whole as it is, but the format knows a longer form that it begins */
	TEXT_WHOLE,
};

enum text_class {		/* what kind of line it is, for the counts */
		  TEXT_HEADING, /* titles, column headings, rules of dashes: counted nowhere */
		  TEXT_ROW,	/* a record, row, summary line, round, monitor field */
		  TEXT_STACK,
		  TEXT_MESSAGE, /* the tool's own remark, which belongs to the next row */
};

struct text_look {
	enum text_match match;
	enum text_class class;
	bool damaged; /* can be read, but something foreign is in it, or its end is missing */
	bool note;    /* free text behind the last field, to be passed over */
	bool bad;     /* CUT, and nothing that follows makes it whole: it has no sense inside */
	bool front;   /* CUT in front of the first field: how it is joined changes nothing */
};

struct text_format {
	enum host_kind kind;
	/* Says what @line is, and changes nothing. @line has no newline, is not NUL-terminated. May
	 * use what earlier lines said (a row of a table needs its heading before). */
	struct text_look (*look)(const void *state, const char *line, size_t len);
	/* The line as look() called it, WHOLE or MORE, or CUT when no join helped: a row that is
	 * cut is dropped by the engine (take is not called) unless look said damaged, which means
	 * it can be read as it is. @number: of its first physical line. Negative: an enum
	 * kvmsim_error. */
	int (*take)(void *state, const char *line, size_t len, const struct text_look *look,
		    uint64_t number);
	/* A blank line, or a line of no format: what the format was in the middle of may be over.
	 */
	void (*gap)(void *state, bool blank);
	/* A row that is dropped; may be NULL. */
	void (*drop)(void *state, const struct text_look *look);
	/* A line of text that ends in ':' (a label before a run); may be NULL. */
	void (*label)(void *state, const char *line, size_t len);
};

#endif
