/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_IMPORT_HOST_H
#define KVMSIM_TRACES_IMPORT_HOST_H

#include "traces/event_ops.h"
#include "traces/host/host.h"
#include "traces/trace.h"

/*
 * Hosts' traces, of any form that host_read() knows, into one native trace: all events, and what of
 * the first file's can be replayed, as ops. Memory does not grow with the files.
 */
struct import_host_file {
	const char *path;		/* "-": standard input */
	int64_t offset_ns;		/* added to its times; of several files */
	const struct host_sink *watch;	/* sees what the file holds, too; may be NULL */
	struct host_result result;	/* out */
	uint64_t first_time, last_time; /* out, offset added; HOST_NO_TIME: none */
};

struct import_host_opts {
	const struct trace_slot *slots; /* the guest's; n 0: the smallest one that covers all */
	uint32_t n_slots;
	const char *source, *kernel, *workload; /* words for the metadata, may be NULL */
	const volatile int *interrupted;
	void (*progress)(void *ctx, uint64_t bytes); /* of the file that is read */
	void *progress_ctx;
};

struct import_host_stats {
	struct event_ops_stats ops;
	struct trace_slot slot; /* the one found, where none were given; npages 0: no fault */
};

/*
 * Writes @out_path. Several files are merged by time: what is read of each is kept beside @out_path
 * in the meantime. Errors: host_read()'s; KVMSIM_EPARSE also where a file has no event, or one of
 * several no time; KVMSIM_EIO, KVMSIM_ENOMEM, KVMSIM_EINVAL (metadata). In each case there is no
 * new output.
 */
int import_host(struct import_host_file *files, size_t n, const struct import_host_opts *opts,
		const char *out_path, const struct kvmsim_errsink *errors,
		struct import_host_stats *stats);

#endif
