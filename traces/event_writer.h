/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_EVENT_WRITER_H
#define KVMSIM_TRACES_EVENT_WRITER_H

#include "traces/event_block.h"
#include "traces/trace.h"

/*
 * A host's events beside the ops of a native trace, whose metadata said TRACE_VERSION. In the order
 * in which they are written. Memory: one block, about 8 MiB. Errors: KVMSIM_EINVAL (not such a
 * trace), KVMSIM_EIO, KVMSIM_ENOMEM, as trace_write()'s.
 */
int trace_write_event(struct trace_writer *w, const struct host_event *e);
/* Anything that a host_sink is told. */
int trace_write_row(struct trace_writer *w, const struct event_row *row);
struct tables;
int trace_write_tables(struct trace_writer *w, const struct tables *t);
/* The last of all: what the source's reader found out, its sections, too. */
int trace_write_result(struct trace_writer *w, const struct host_result *result);

#endif
