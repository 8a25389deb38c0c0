/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_READER_H
#define KVMSIM_TRACES_READER_H

#include <zstd.h>

#include "traces/block.h"
#include "traces/format.h"
#include "traces/trace.h"

/*
 * The reader's parts: reader.c opens files and delivers blocks, reader_index.c finds where the
 * blocks are, event_reader.c delivers events. Not for others.
 */

#define NO_BLOCK UINT32_MAX

struct cursor {
	struct trace_reader *r;
	struct guest_op *ops; /* TRACE_BLOCK_OPS; NULL until the first block */
	uint32_t first, pos;  /* entries of the index, NO_BLOCK: none */
	int error;
};

struct trace_reader {
	const struct kvmsim_errsink *errors;
	char *name;
	int fd;
	uint64_t size;
	struct trace_meta meta;
	struct trace_stats stats;
	struct index_entry *index; /* in the order of the file */
	uint32_t *next;		   /* the same vCPU's next entry, of events the next of them */
	uint32_t first_events;	   /* the first of them, NO_BLOCK */
	uint32_t n_index, cap_index;
	uint64_t end; /* of the last block */
	ZSTD_DCtx *zstd;
	struct cursor *vcpu;
	uint8_t stored[BLOCK_HEADER_BYTES + BLOCK_RAW_MAX], raw[BLOCK_RAW_MAX];
};

/* trace_open() of an open file, which stays the caller's; where it cannot be read at any offset,
 * @head is what was read from it before. @name is for messages. */
int reader_open_fd(int fd, const char *name, const void *head, size_t len,
		   const struct kvmsim_errsink *errors, struct trace_reader **out);
/* Says what is wrong at @offset; KVMSIM_EPARSE. */
int reader_bad(const struct trace_reader *r, uint64_t offset, const char *what);
/* KVMSIM_ENOMEM. */
int reader_no_memory(const struct trace_reader *r);
/* Exactly @len bytes at @offset, which the caller knows to be inside the file. KVMSIM_EIO. */
int reader_get(const struct trace_reader *r, uint64_t offset, void *buf, size_t len);

struct block_buffer {
	uint8_t *stored, *raw; /* BLOCK_HEADER_BYTES + raw_max, raw_max */
	size_t raw_max;
};
/* Reads block @i of the index and checks all but its columns, which are at *@raw then, in @buf.
 * KVMSIM_EPARSE, KVMSIM_EIO. */
int reader_payload(struct trace_reader *r, uint32_t i, struct block_buffer *buf,
		   struct block_header *h, const uint8_t **raw);

/* Fills r->index, r->next, r->vcpu from the file's index or, without one, from its blocks, which
 * begin at r->end; r->end moves behind the last one. Errors: KVMSIM_EPARSE, KVMSIM_EIO,
 * KVMSIM_ENOMEM. */
int reader_find_blocks(struct trace_reader *r);

#endif
