/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_TABLES_UTIL_H
#define KVMSIM_TESTS_TABLES_UTIL_H

#include "traces/tables/tables.h"

/* How the lines of a text were counted. */
struct tally {
	unsigned headings, rows, stack, messages, unknown, damaged, dropped, rejoined, notes;
};

/* Feeds @text to the formats of tables alone, line by line, as traces/host/text_format.h says;
 * without the engine that undoes what transport did. Returns what take() did. */
int tables_feed(struct tables *t, const char *text, size_t len, struct tally *n);

#endif
