/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_WRITER_H
#define KVMSIM_TRACES_WRITER_H

#include <zstd.h>

#include "traces/block.h"
#include "traces/format.h"
#include "traces/outfile.h"
#include "traces/trace.h"

/*
 * The writer's two halves: writer.c makes files and blocks of ops, event_writer.c blocks of events.
 * Not for others.
 */

struct event_buffer;

struct vcpu_buffer {
	struct guest_op *ops; /* TRACE_BLOCK_OPS of them; NULL until the first op */
	size_t n;
};

struct trace_writer {
	const struct kvmsim_errsink *errors;
	struct trace_meta meta; /* strings are in @header only */
	uint8_t header[HEADER_BYTES + META_MAX];
	uint32_t header_len;
	bool count_vcpus, rewrite_header;
	struct outfile out;
	int error; /* the first one; stays */
	uint64_t offset;
	struct trace_stats stats;
	struct index_entry *index;
	uint32_t n_index, cap_index;
	ZSTD_CCtx *zstd;
	struct event_buffer *events; /* NULL until the first; see event_writer.c */
	struct vcpu_buffer vcpu[TRACE_MAX_VCPUS];
	uint8_t raw[BLOCK_RAW_MAX], stored[BLOCK_HEADER_BYTES + BLOCK_RAW_MAX];
};

/* Remembers the first error, and tells the sink of it. @what: "writing failed". */
int writer_fail(struct trace_writer *w, enum kvmsim_error err, const char *what);
int writer_put(struct trace_writer *w, const void *data, size_t len);
/* A block that begins at the file's end as it is now. KVMSIM_ENOMEM. */
int writer_index(struct trace_writer *w, struct index_entry e);

/* Writes the events that are held back; nothing when there are none. */
int event_writer_flush(struct trace_writer *w);
void event_writer_free(struct trace_writer *w);

#endif
