/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_EVENT_READER_H
#define KVMSIM_TRACES_EVENT_READER_H

#include "traces/event_block.h"
#include "traces/trace.h"

/* The host's events of a native trace, row by row, in the order in which they were written. A torn
 * file's end after the last whole block. Memory: one block, about 8 MiB. */
struct event_reader;

/* @r must outlive it. KVMSIM_ENOMEM. */
int event_reader_open(struct trace_reader *r, struct event_reader **out);
/* 1, 0 behind the last, KVMSIM_EPARSE (a damaged block, with its offset), KVMSIM_EIO. Texts in @row
 * are valid until the next call. */
int event_reader_next(struct event_reader *e, struct event_row *row);
void event_reader_close(struct event_reader *e);

/* host_read() of a native trace that is open; of what cannot be read at any offset, @head was read
 * before. One with nothing of a host is KVMSIM_EPARSE, refused as HOST_NO_KVM_CONTENT. */
int host_read_native_fd(int fd, const char *name, const void *head, size_t len,
			const struct host_opts *opts, const struct host_sink *sink,
			const struct kvmsim_errsink *errors, struct host_result *result);

#endif
