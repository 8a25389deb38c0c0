/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_HOST_H
#define KVMSIM_TRACES_HOST_HOST_H

#include <stdio.h>

#include "model/sim/error.h"
#include "traces/host/event.h"

/*
 * Traces of a host in any tool's form, as one stream of events, read once and in constant memory:
 * the text of ftrace (trace, trace_pipe, a kernel log's dump), trace-cmd report and perf script,
 * told apart line by line, with whatever pasting did to it; trace.dat through libtracecmd; our own
 * native format where it holds events. Tables between the lines of a text (traces/tables) go to
 * whoever takes them.
 */

struct host_loss {
	int64_t cpu;	 /* -1: not said */
	uint64_t count;	 /* events; UINT64_MAX: not said */
	uint64_t chunks; /* perf's, which are no events */
	bool header; /* the header's entries-in-buffer/entries-written; count: their difference */
};

/* Whoever reads a host's trace. NULL members are not called. Texts are valid during the call only.
 * A negative value ends the reading with it. */
struct host_sink {
	void *ctx;
	int (*event)(void *ctx, const struct host_event *e);
	int (*loss)(void *ctx, const struct host_loss *l);
	int (*elision)(void *ctx);
	/* cpus=N (empty false), CPU N is empty (empty true) */
	int (*cpus)(void *ctx, uint64_t n, bool empty);
};

/* What was in the file, line by line. */
struct host_counts {
	uint64_t bytes, lines;	/* physical lines; 0 of binary traces */
	uint64_t records;	/* event records */
	uint64_t rows;		/* of tables */
	uint64_t unknown_lines; /* physical */
	uint64_t damaged_lines; /* kept or dropped */
	uint64_t dropped_lines; /* of them dropped */
	uint64_t rejoined_records;
	uint64_t trailing_notes;
	uint64_t elisions, stack_traces, stack_lines, loss_markers;
	uint64_t first_damaged; /* line; 0: none */
	bool blank;		/* nothing but blanks and line ends */
};

enum host_refusal { /* why a file has no answer at all */
		    HOST_FINE,
		    HOST_BINARY,
		    HOST_EMPTY,
		    HOST_NO_KVM_CONTENT,
		    HOST_TRUNCATED_DAT,
};
/* "binary", "empty", "no-kvm-content", "truncated-trace-dat" */
const char *host_refusal_name(enum host_refusal r);

/* What a trace.dat's first 64 bytes tell. */
struct host_dat {
	bool is_dat;
	unsigned version, long_size, page_size;
	bool big_endian;
	char compression[16]; /* "" for version 6 */
};

/* The formats a file held: bits. */
enum host_kind {
	HOST_KIND_TRACE_TEXT,
	HOST_KIND_KVM_STAT,
	HOST_KIND_PERF_KVM_STAT,
	HOST_KIND_DIRTY_LOG_PERF,
	HOST_KIND_QEMU_MONITOR,
	HOST_KIND_PRECOPY,
	HOST_KIND_LOCK_CONTENTION,
	HOST_KIND_CSV,
	HOST_KIND_TRACE_DAT,
	HOST_KIND_NATIVE,
	HOST_N_KINDS
};
/* "kvm-trace-text", ... */
const char *host_kind_name(enum host_kind k);

struct tables; /* traces/tables/tables.h */
struct csv_map;

struct host_opts {
	struct tables *tables;	   /* takes the tables of a text; NULL: they are only counted */
	const struct csv_map *csv; /* the names of a CSV's columns; NULL: no CSV is looked for */
	const volatile int *interrupted;	     /* non-zero: stop, KVMSIM_EINTR; may be NULL */
	void (*progress)(void *ctx, uint64_t bytes); /* every MiB or so; may be NULL */
	void *progress_ctx;
};

struct host_result {
	struct host_counts counts;
	enum host_refusal refusal;
	struct host_dat dat;
	enum host_kind sections[HOST_N_KINDS]; /* in order of first appearance */
	unsigned n_sections;
	bool has_cpu, has_tid, has_time; /* some record has the column */
};

/*
 * Reads @path ("-": stdin), of whatever form. @result is filled also on an error. A text that is
 * refused (result->refusal) is KVMSIM_EPARSE, and the sink of @errors was told why. Errors:
 * KVMSIM_EPARSE, KVMSIM_EIO (no such file, too), KVMSIM_ENOMEM, KVMSIM_EINTR, what a sink returned.
 */
int host_read(const char *path, const struct host_opts *opts, const struct host_sink *sink,
	      const struct kvmsim_errsink *errors, struct host_result *result);

#endif
