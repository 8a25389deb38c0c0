/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_EVENT_BLOCK_H
#define KVMSIM_TRACES_EVENT_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "traces/host/host.h"

/*
 * The columns of a block of a host's events (FORMAT.md, "Columns of events"): rows to bytes and
 * back, without compression. A row is whatever a host_sink is told, in the same order, and at the
 * end what the source's reader found out about the whole of it.
 */

#define EVENT_BLOCK_ROWS   16384u
#define EVENT_BLOCK_VALUES 131072u
#define EVENT_CONTEXTS	   8192u
#define EVENT_SHAPES	   256u
#define EVENT_TEXT_MAX	   524288u /* bytes of the table of strings, lengths included */
#define EVENT_STRING_MAX   65535u  /* longer ones are cut */
/* Strings, contexts, shapes, their column, values: each at its longest. */
#define EVENT_RAW_MAX                                                                              \
	(64 + EVENT_TEXT_MAX + EVENT_CONTEXTS * 4 * 10 + EVENT_SHAPES * 320 + EVENT_BLOCK_ROWS +   \
	 EVENT_BLOCK_VALUES * 10)

enum event_row_kind {
	EVENT_ROW_EVENT,
	EVENT_ROW_LOSS,
	EVENT_ROW_ELISION,
	EVENT_ROW_CPUS,
	EVENT_ROW_SECTION, /* the next of host_result.sections */
	EVENT_ROW_RESULT,  /* the rest of host_result; last */
	EVENT_ROW_TABLE,   /* a table, or a row of one: traces/tables/rows.h */
	EVENT_ROW_KINDS
};

struct event_row {
	enum event_row_kind kind;
	struct host_event event; /* texts are valid until the next block */
	struct host_loss loss;
	uint64_t cpus; /* of EVENT_ROW_CPUS */
	bool empty;
	enum host_kind section;
	struct host_text table;
	struct host_result result; /* sections: none */
};

/* A block that is being filled or has been decoded. About 3 MiB. */
struct event_block;

struct event_block *event_block_new(void); /* NULL: no memory */
void event_block_free(struct event_block *b);

/* ---- filling ---- */

/* Adds a row. False when the block has no room for it: encode it, then add again, which cannot fail
 * in an empty block. */
bool event_block_add(struct event_block *b, const struct event_row *row);
/* The same for an event, the row that there are millions of. */
bool event_block_add_event(struct event_block *b, const struct host_event *e);
size_t event_block_rows(const struct event_block *b);
/* Encodes all rows into @raw of EVENT_RAW_MAX bytes, returns the bytes used; the block is empty. */
size_t event_block_encode(struct event_block *b, uint8_t *raw);

/* ---- reading ---- */

/* Takes @len bytes apart, which the block keeps pointing into: @raw must stay. NULL, or what is
 * wrong (constant text); reads nothing beyond @len whatever the bytes are. @n: rows, at most
 * EVENT_BLOCK_ROWS. */
const char *event_block_decode(struct event_block *b, const uint8_t *raw, size_t len, size_t n);
/* The next row of a decoded block; false behind the last. */
bool event_block_next(struct event_block *b, struct event_row *row);

#endif
