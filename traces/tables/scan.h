/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_TABLES_SCAN_H
#define KVMSIM_TRACES_TABLES_SCAN_H

#include "traces/tables/tables.h"

/*
 * A line of a table as words between blanks, and the fields that it should have, taken one after
 * the other. Something foreign between two fields (a stray character, alone or stuck to a field)
 * is stepped over and counted.
 */
#define SCAN_MAX_WORDS 64

struct scan {
	struct host_text w[SCAN_MAX_WORDS];
	size_t n, at;
	const char *end; /* of the line */
	unsigned foreign;
};

void scan_line(struct scan *s, const char *line, size_t len);

enum scan_got {
	SCAN_GOT,
	SCAN_END,     /* the line ends before it */
	SCAN_PARTIAL, /* the line ends inside it */
	SCAN_BAD,     /* something else, and more behind */
};

/* Whether the whole word is such a field; fills @out, which may be NULL. */
typedef bool (*scan_fn)(struct host_text w, void *out);
enum scan_got scan_take(struct scan *s, scan_fn is, void *out);
/* What follows the last field: nothing, a stray character (damaged), or a note. */
void scan_rest(const struct scan *s, struct text_look *look);
/* From the next word to the end of the line, without the blanks around. */
struct host_text scan_remaining(const struct scan *s);
/* A word of at most three characters without a digit. */
bool scan_foreign(struct host_text w);

bool is_u64(struct host_text w, void *out);	/* uint64_t */
bool is_decimal(struct host_text w, void *out); /* struct decimal */
bool is_percent(struct host_text w, void *out); /* struct decimal; not there for nan% */

/* These eat from the front of @t; false leaves it as it was. */
bool eat(struct host_text *t, const char *literal);
bool eat_u64(struct host_text *t, uint64_t *out); /* false also when it is above 2^64 - 1 */
bool eat_decimal(struct host_text *t, struct decimal *out);
void eat_blanks(struct host_text *t);

bool text_is(struct host_text t, const char *s);
bool text_begins(struct host_text t, const char *s);
/* @t is the beginning of @s, and too long for chance, but not all of it. */
bool text_cut_of(struct host_text t, const char *s);
struct host_text text_trim(struct host_text t);
struct host_text text_of(const char *s);

/* @d in units of 1/@scale of its own, rounded down: 44.65 us is 44650 ns with a scale of 1000.
 * False: negative, or above 2^64 - 1. */
bool decimal_scale(struct decimal d, uint64_t scale, uint64_t *out);

static inline struct text_look text_no(void)
{
	return (struct text_look){.match = TEXT_NO};
}
static inline struct text_look text_found(enum text_match match, enum text_class class)
{
	return (struct text_look){.match = match, .class = class};
}

#endif
