/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_TRACE_INFO_H
#define KVMSIM_ANALYSIS_TRACE_INFO_H

#include "traces/trace.h"

/*
 * What `kvmsim info` says of a trace: its ops by kind, and for each epoch how many pages of each
 * slot were stored to. Reads the whole trace once, all vCPUs epoch by epoch. Memory: 16 KiB
 * per 4096 pages of a slot of which one was stored to, a few words per epoch.
 */

struct info_epoch {
	uint64_t number, mark; /* mark: of the phase; 0 outside of any */
	bool full;	  /* ended where the next one begins, not by a mark or the file's end */
	uint32_t pages[]; /* per slot: distinct pages stored to */
};

/* Accesses of one register of a device, or port I/O (the argument is the port, or where it is not
 * known the instruction's address). */
struct info_register {
	uint64_t at, reads, writes, ports;
};
/* As many as a text has room for; the rest are in trace_info.ops alone. */
#define INFO_MAX_REGISTERS 256

struct trace_info {
	uint64_t ops[OP_LAST];
	uint64_t instructions;				    /* of all vCPUs */
	uint64_t outside;				    /* stores outside of every slot */
	struct info_register registers[INFO_MAX_REGISTERS]; /* by address, ports last */
	size_t n_registers;
	bool has_pages; /* the stream's addresses are guest-physical: pages are counted */
	size_t n_epochs;
	struct info_epoch **epochs;
};

/* Errors: the reader's; KVMSIM_ENOMEM. trace_info_free() also after an error. */
int trace_info_read(struct trace_reader *r, const char *name, const struct kvmsim_errsink *errors,
		    struct trace_info *info);
void trace_info_free(struct trace_info *info);

/* Smallest, twice the median (the mean of the middle two), largest number of pages of @slot in the
 * full epochs of phases with @mark (UINT64_MAX: any). *@n is their number; with 0 of them nothing
 * else is set. KVMSIM_ENOMEM. */
struct info_range {
	size_t n;
	uint32_t min, max;
	uint64_t median2;
};
int trace_info_range(const struct trace_info *info, uint32_t slot, uint64_t mark,
		     struct info_range *out);

/* "write", "mmio_read", ... */
const char *guest_op_name(enum guest_op_kind kind);

#endif
