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

#define TRACE_VERSION	 1
#define TRACE_MAX_SLOTS	 32
#define TRACE_MAX_VCPUS	 512
#define TRACE_STRING_MAX 4096

enum trace_clock { TRACE_CLOCK_INSN, TRACE_CLOCK_NS, TRACE_CLOCK_TSC };

/* What the recording could not see (a reader must not conclude from its absence). */
#define TRACE_NO_LOADS	   (1u << 0) /* only stores were recorded */
#define TRACE_NO_GVA	   (1u << 1) /* guest-physical addresses only: replay as a direct guest */
#define TRACE_FIRST_STORES (1u << 2) /* only the first store to a page in each epoch */
#define TRACE_NO_DMA	   (1u << 3) /* device DMA not seen */
#define TRACE_NO_WALKS	   (1u << 4) /* page walks' A/D-bit stores not seen */
#define TRACE_ONE_CLOCK	   (1u << 5) /* per-vCPU order only: no common clock between vCPUs */

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
	bool torn; /* the file ended inside a block; everything before it was delivered */
};

/* ---- reading ---- */
struct trace_reader;

/* Opens @path ("-": stdin). Checks magic, version, metadata and its checksum. Errors: KVMSIM_EIO,
 * KVMSIM_EPARSE (not a trace; which byte differs), KVMSIM_EVERSION, KVMSIM_ENOMEM. */
int trace_open(const char *path, const struct kvmsim_errsink *errors, struct trace_reader **out);
void trace_close(struct trace_reader *r);
const struct trace_meta *trace_meta(const struct trace_reader *r);

/* The ops of one vCPU as a source for the model. Each vCPU has its own position; a rewind starts
 * over. At a torn block the source ends, the sink is told once, trace_stats().torn is set. A block
 * whose checksum differs is KVMSIM_EPARSE with its offset. Valid until trace_close(). */
int trace_source(struct trace_reader *r, uint32_t vcpu, struct op_source *out);
/* Of everything read so far. */
struct trace_stats trace_stats(const struct trace_reader *r);
/* FNV-1a over the whole file's bytes; reads it once. For the store. */
int trace_checksum(const char *path, uint64_t *out);

/* ---- writing ---- */
struct trace_writer;

/* Writes to @path through a temporary file beside it, renamed by trace_finish(): a reader never
 * sees half a trace unless the writer was killed. @meta is copied. */
int trace_create(const char *path, const struct trace_meta *meta,
		 const struct kvmsim_errsink *errors, struct trace_writer **out);
int trace_write(struct trace_writer *w, uint32_t vcpu, const struct guest_op *ops, size_t n);
/* Flushes, writes the index, fsyncs, renames. Frees @w in every case; on an error (KVMSIM_EIO: disk
 * full) the temporary file is removed and @path is as it was. */
int trace_finish(struct trace_writer *w, struct trace_stats *stats);
void trace_abort(struct trace_writer *w);

/* ---- importing ---- */

struct import_opts {
	uint64_t ram_pages;			/* of slot "ram", base gfn 0; 0: 262144 (1 GiB) */
	uint64_t vram_gfn;			/* of slot "vram"; 0: 0xfd000 */
	uint64_t vram_pages;			/* 0: 4096 */
	uint64_t epoch_len;			/* guest instructions per epoch; 0: 30000000 */
	const char *source, *kernel, *workload; /* words for the metadata, may be NULL */
};
struct import_stats {
	uint64_t lines, events, unknown, damaged, out_of_order;
};
/* Guest probe text ("insn vcpu S|V gfn", "insn vcpu M mark host_ns"); gzip is seen through. @name
 * is for messages. Errors: KVMSIM_EPARSE with name and line when nothing usable is there. */
int import_guest_probe(FILE *in, const char *name, const struct import_opts *opts,
		       const char *out_path, const struct kvmsim_errsink *errors,
		       struct import_stats *stats);

#endif
