/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_EVENT_SHAPE_H
#define KVMSIM_TRACES_EVENT_SHAPE_H

#include "traces/event_block.h"

/*
 * The two halves of an event block: event_block.c fills and encodes, event_decode.c takes apart.
 * Not for others.
 */

/* The columns that a row of a block can have: the head of an event, the fields of one, and what the
 * other kinds of rows hold. Files name them (event_column_name()). */
enum event_column {
	COLUMN_time,
	COLUMN_line,
	COLUMN_where, /* number of the context */
	N_SHARED_COLUMNS,
	COLUMN_reason = N_SHARED_COLUMNS, /* number of a string, from 1 */
	COLUMN_FIELDS,
	COLUMN_CPU = COLUMN_FIELDS + HOST_N_FIELDS, /* of losses */
	COLUMN_COUNT,
	COLUMN_CHUNKS,
	COLUMN_N,
	COLUMN_RESULT,
	N_EVENT_COLUMNS = COLUMN_RESULT + 24,
};

_Static_assert(N_EVENT_COLUMNS < 255, "a column's number is a byte");

/* What COLUMN_RESULT and those behind it are of a struct host_result. */
struct event_result_column {
	const char *name;
	size_t offset, size; /* of an integer or bool */
};
extern const struct event_result_column event_result_columns[];
extern const unsigned n_event_result_columns;

/* NULL for those behind the last. */
const char *event_column_name(unsigned column);

#define SHAPE_DAMAGED	 0x01 /* of events */
#define SHAPE_UNRELIABLE 0x02
#define SHAPE_HEADER	 0x01 /* of losses */
#define SHAPE_EMPTY	 0x01 /* of cpus */
#define SHAPE_CONTEXT	 0x04 /* of events: enum host_context times it */
#define SHAPE_FLAGS	 0x13 /* the largest */

/* What an event is of whose name is not HOST_EVENT()'s. */
enum { CLASS_OTHER, CLASS_UNKNOWN, CLASS_REST };
#define UNKNOWN_COLUMN 255

struct event_shape {
	uint8_t kind, flags, decimals, flags_width;
	uint32_t id_name, name; /* numbers of strings from 1; name 0: as id_name */
	uint64_t have;
	uint8_t head;			  /* bit per COLUMN_time to COLUMN_reason */
	uint8_t n_columns;		  /* at most 255 */
	uint8_t column[N_EVENT_COLUMNS];  /* in a decoded block 255: of a name that is not known */
	uint8_t shared[N_SHARED_COLUMNS]; /* where in column[] they are, UINT8_MAX: nowhere */
	enum host_event_id id;
	uint32_t first, last; /* rows, UINT32_MAX: none */
};

struct event_context {
	int64_t tid, tgid, cpu;
	uint32_t comm; /* number of a string, from 1; 0: none */
};

struct event_string {
	uint32_t at, len; /* in .text */
};

#define EVENT_STRINGS	  24576u
#define STRING_HASH_BITS  16
#define CONTEXT_HASH_BITS 14
#define SHAPE_HASH_BITS	  10

struct event_block {
	size_t n_rows, n_values, n_shapes, n_contexts, n_strings;
	size_t text_len;  /* of text[] */
	size_t text_room; /* what the table of strings takes so far */
	struct event_shape shape[EVENT_SHAPES];
	uint8_t shape_of[EVENT_BLOCK_ROWS];
	uint32_t offset[EVENT_BLOCK_ROWS]; /* of its values */
	uint32_t next[EVENT_BLOCK_ROWS];   /* row of the same shape */
	uint64_t value[EVENT_BLOCK_VALUES];
	struct event_context context[EVENT_CONTEXTS];
	struct event_string string[EVENT_STRINGS];
	const char *text; /* text_own, or in what is decoded */
	char text_own[EVENT_TEXT_MAX];
	/* number + 1; 0: free */
	uint16_t shape_hash[1 << SHAPE_HASH_BITS], context_hash[1 << CONTEXT_HASH_BITS];
	uint16_t string_hash[1 << STRING_HASH_BITS];
	uint16_t column_name[N_EVENT_COLUMNS]; /* number of a string, from 1 */
	uint16_t known[EVENT_STRINGS]; /* reading: column of that name + 1; 0: not looked for */
	size_t pos;		       /* of reading */
};

#endif
