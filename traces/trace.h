/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_TRACE_H
#define KVMSIM_TRACES_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/guest/op.h"
#include "model/sim/error.h"

/*
 * kvmsim's native trace: what a recorder saw of a guest, as one stream of ops per vCPU.
 * FORMAT.md has the format byte by byte. Reading and writing are streaming, in constant memory.
 */

#define TRACE_VERSION	  2 /* the newest; of files that hold a host's events */
#define TRACE_VERSION_OPS 1 /* of all others */
#define TRACE_MAX_SLOTS	  32
#define TRACE_MAX_VCPUS	  512
#define TRACE_STRING_MAX  4096

enum trace_clock { TRACE_CLOCK_INSN, TRACE_CLOCK_NS, TRACE_CLOCK_TSC };

/* What the recording could not see (a reader must not conclude from its absence). */
#define TRACE_NO_LOADS	   (1u << 0) /* only stores were recorded */
#define TRACE_NO_GVA	   (1u << 1) /* guest-physical addresses only: replay as a direct guest */
#define TRACE_FIRST_STORES (1u << 2) /* only the first store to a page in each epoch */
#define TRACE_NO_DMA	   (1u << 3) /* device DMA not seen */
#define TRACE_NO_WALKS	   (1u << 4) /* page walks' A/D-bit stores not seen */
#define TRACE_ONE_CLOCK	   (1u << 5) /* per-vCPU order only: no common clock between vCPUs */
#define TRACE_NO_STORES	   (1u << 6) /* stores to memory were not recorded */
#define TRACE_ONLY_FAULTS  (1u << 7) /* a host's events: only accesses that faulted were seen */

struct trace_slot {
	uint64_t base_gfn, npages;
	char name[16]; /* "ram", "vram" */
};

struct trace_meta {
	uint32_t version;
	uint32_t n_vcpus, n_slots;
	struct trace_slot slots[TRACE_MAX_SLOTS];
	enum trace_clock clock;
	uint64_t clock_hz;  /* of NS and TSC clocks; 0 where unknown or instructions */
	uint64_t epoch_len; /* clock units per epoch; 0: no epochs */
	uint32_t unseen;    /* TRACE_NO_* */
	char *source;	    /* what recorded it, how; NUL-terminated UTF-8, owned */
	char *kernel;	    /* guest and host kernel, as far as known */
	char *workload;
};

struct trace_stats { /* filled as blocks are read or written */
	uint64_t blocks, ops, bytes, epochs, marks;
	uint64_t event_rows; /* FORMAT.md, "Columns of events" */
	bool torn; /* the file has no end; everything up to its last whole block is delivered */
};

/* ---- reading ---- */
struct trace_reader;

/* Opens @path ("-": stdin). Checks magic, version, metadata and its checksum, the index or, in a
 * torn file, the header of every block; tells the sink once of a torn file (KVMSIM_ETORN; the call
 * succeeds). What is no regular file is first copied to an unnamed temporary one. @errors must
 * outlive the reader. Memory: one block per vCPU that is read and 20 bytes per block of the file.
 * Errors: KVMSIM_EIO (no such file, too), KVMSIM_EPARSE (not a trace; the offset), KVMSIM_EVERSION,
 * KVMSIM_ENOMEM, KVMSIM_EINTR (a handled signal came while a pipe was waited for). */
int trace_open(const char *path, const struct kvmsim_errsink *errors, struct trace_reader **out);
void trace_close(struct trace_reader *r);
const struct trace_meta *trace_meta(const struct trace_reader *r);

/* The ops of one vCPU as a source for the model. Each vCPU has its own position; a rewind starts
 * over. The source of a torn file ends after the last whole block. A block whose checksum differs
 * is KVMSIM_EPARSE with its offset, from then on. Valid until trace_close(). KVMSIM_EINVAL: no such
 * vCPU. */
int trace_source(struct trace_reader *r, uint32_t vcpu, struct op_source *out);
/* Of all vCPUs in the whole file, by its index. */
uint64_t trace_ops(const struct trace_reader *r);
/* Rows of host events and what goes with them (event_reader.h), by the index. */
uint64_t trace_event_rows(const struct trace_reader *r);
/* Of everything read so far; a rewound source counts again. bytes: of blocks, as stored. */
struct trace_stats trace_stats(const struct trace_reader *r);
/* 64-bit FNV-1a over the whole file's bytes; reads it once. For the store. KVMSIM_EIO. */
int trace_checksum(const char *path, uint64_t *out);

/* ---- writing ---- */
struct trace_writer;

/* Writes to @path through a temporary file beside it (PATH.PID-N.tmp), renamed by trace_finish():
 * under its own name there is never half a trace. A device or a pipe is written directly. @meta is
 * copied; version TRACE_VERSION: a host's events will be written, too (event_writer.h); any other
 * is TRACE_VERSION_OPS. n_vcpus 0: as many as will have been written, at least 1, put into the
 * header by trace_finish() (needs a regular file). Memory: one block per vCPU that is written and
 * 16 bytes per block. Errors: KVMSIM_EINVAL (metadata against FORMAT.md), KVMSIM_EIO,
 * KVMSIM_ENOMEM. */
int trace_create(const char *path, const struct trace_meta *meta,
		 const struct kvmsim_errsink *errors, struct trace_writer **out);
/* KVMSIM_EINVAL (no such vCPU or kind of op: nothing was written), KVMSIM_EIO, KVMSIM_ENOMEM (these
 * two stay: every later call returns them). */
int trace_write(struct trace_writer *w, uint32_t vcpu, const struct guest_op *ops, size_t n);
/* Sets TRACE_NO_* bits that are known only at the end; put into the header by trace_finish(). */
void trace_unseen(struct trace_writer *w, uint32_t unseen);
/* Puts a clock and the slots, as many as there were, into the header at trace_finish() (needs a
 * regular file). KVMSIM_EINVAL: against FORMAT.md, or another number of slots. */
int trace_amend(struct trace_writer *w, enum trace_clock clock, uint64_t clock_hz,
		const struct trace_slot *slots, uint32_t n_slots);
/* Flushes, writes the index, fsyncs, renames. Frees @w in every case; on an error (KVMSIM_EIO: disk
 * full) the temporary file is removed and @path is as it was. @stats may be NULL; bytes: of the
 * whole file. */
int trace_finish(struct trace_writer *w, struct trace_stats *stats);
/* Frees @w and removes the temporary file. NULL is fine. */
void trace_abort(struct trace_writer *w);

/* ---- importing ---- */

struct import_opts {
	uint64_t ram_pages;			/* of slot "ram", base gfn 0; 0: 262144 (1 GiB) */
	uint64_t vram_gfn;			/* of slot "vram"; 0: 0xfd000 */
	uint64_t vram_pages;			/* 0: 4096 */
	bool no_vram;				/* there is no such slot */
	uint64_t epoch_len;			/* guest instructions per epoch; 0: 30000000 */
	const char *source, *kernel, *workload; /* words for the metadata, may be NULL */
	const volatile int *interrupted;	/* non-zero: stop, KVMSIM_EINTR; may be NULL */
};
struct import_stats {
	uint64_t lines, events;
	uint64_t unknown;	/* lines of a kind that this importer has no op for */
	uint64_t damaged;	/* lines that cannot be what the recorder wrote, left out */
	uint64_t out_of_order;	/* lines before the one before: kept, at the time of that one */
	uint64_t first_damaged; /* number of that line, from 1; 0: none */
};
/*
 * Guest probe text, gzip and CRLF seen through:
 *
 *	insn vcpu S|V gfn		first store to a page in the epoch, RAM or video RAM
 *	insn vcpu r|w gfn device+off	MMIO
 *	insn vcpu p pc			port I/O instruction
 *	insn vcpu M mark host_ns	mark, 0 = end of a phase; epochs begin anew
 *
 * Only phases (mark not 0) are guest time: instructions between them are left out, a store there
 * is damage. Each vCPU's clock is its own where there are several (TRACE_ONE_CLOCK); a vCPU other
 * than the one that marked joins the phase with its first line in it.
 *
 * @name is for messages. @stats is filled also on an error. Errors: KVMSIM_EPARSE with name and
 * line when nothing usable is there, KVMSIM_EIO, KVMSIM_ENOMEM, KVMSIM_EINVAL (a length of
 * epochs that makes 2^20 empty ones between two lines), KVMSIM_EINTR; in each case there is no
 * new output.
 */
int import_guest_probe(FILE *in, const char *name, const struct import_opts *opts,
		       const char *out_path, const struct kvmsim_errsink *errors,
		       struct import_stats *stats);

#endif
