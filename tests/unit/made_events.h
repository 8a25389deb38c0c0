/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_MADE_EVENTS_H
#define KVMSIM_TESTS_MADE_EVENTS_H

#include "traces/event_writer.h"
#include "traces/import_host.h"

/*
 * A host's events made by hand, in a native trace: what host_read() gives of one. Between
 * made_begin() and made_finish() one such trace is open. Times are ns.
 */
extern struct trace_writer *made_trace;
extern const struct import_host_opts made_plain;

struct host_text made_text(const char *s);
void made_begin(const char *path);
struct host_event made_event(enum host_event_id id, int64_t tid, uint64_t time);
void made_put(struct host_event e);
void made_entry(int64_t tid, uint64_t time, uint64_t vcpu);
/* No vCPU in it, as to 5.10. */
void made_exit_for(int64_t tid, uint64_t time, const char *reason, uint64_t info1, uint64_t info2);
void made_finish(void);

#endif
