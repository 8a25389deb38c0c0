/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_TABLES_ROWS_H
#define KVMSIM_TRACES_TABLES_ROWS_H

#include "traces/tables/tables.h"

/*
 * Tables as texts, one per table or row of one, for the native format (FORMAT.md, "Tables"):
 * "NAME", then "KEY=VALUE" of each field that is there, byte 0x1f between them. Not CSV, which only
 * who names its columns reads.
 */

/* Hands on every table, each before its rows. What @row returns, if negative; KVMSIM_ENOMEM. */
int tables_put_rows(const struct tables *t, int (*row)(void *ctx, const char *text, size_t len),
		    void *ctx);
/* Adds what such a text says; passes over names and keys that it does not know, and a row without
 * its table. KVMSIM_ENOMEM. */
int tables_take_row(struct tables *t, const char *text, size_t len);

#endif
