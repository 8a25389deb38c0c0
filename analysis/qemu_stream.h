/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_QEMU_STREAM_H
#define KVMSIM_ANALYSIS_QEMU_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/qemu_locks.h"
#include "model/sim/error.h"

/*
 * The lines of the QEMU plugin (workloads/qemu/tracker.h) as they come: those for the importer are
 * handed on as a FILE, those that begin with "#" are kept here. A recording is whole when the guest
 * said that it is done, the plugin's own counts of pages are those of the lines, and the stream has
 * its last line; until then the FILE has no end, only an error.
 */
#define QEMU_MAX_PHASES 64

struct qemu_phase {
	char name[32];
	uint64_t insns;		/* from its mark to the next */
	uint64_t epochs, whole; /* all, and those not cut short by a mark */
	uint32_t *ram, *vram;	/* pages of each whole epoch, in order; @whole of them */
};

/* Accesses of one register, or port I/O of one instruction, in all phases. */
#define QEMU_MAX_REGISTERS 128
struct qemu_register {
	char kind;     /* r, w or p */
	char name[80]; /* page's gfn, device and offset, as the line has them; an instruction's
			  address */
	uint64_t n;
};

struct qemu_stream {
	int fd;
	double deadline; /* in child_clock()'s time */
	FILE *text;	 /* a copy of every line; may be NULL */
	/* what the stream said */
	uint64_t epoch_len, ram_pages, vram_gfn, vram_pages; /* vram_pages 0: none */
	char kernel[64], screen[64], inodes[32];
	struct qemu_phase phases[QEMU_MAX_PHASES]; /* by mark, from 1 */
	unsigned n_phases;
	uint64_t n_lines, stores, outside;
	uint64_t accesses, apic; /* of devices, and of the local APIC, which have no lines */
	struct qemu_register registers[QEMU_MAX_REGISTERS]; /* by first access */
	unsigned n_registers;
	struct qemu_locks *locks; /* the caller's, where locks are recorded; else NULL */
	bool ram_told, done, ended;
	/* why it is of no use: KVMSIM_EPARSE, KVMSIM_EINTR, KVMSIM_ECHILD (the deadline),
	 * KVMSIM_EIO
	 * (@text), KVMSIM_ENOMEM */
	int err;
	char why[320];
	/* inside */
	unsigned phase, next_phase;
	uint64_t phase_began, epoch_ram, epoch_vram;
	char buf[65536], line[1200];
	size_t pos, len, line_len, line_pos;
	bool eof;
};

/* A stream over @fd, which stays the caller's. */
void qemu_stream_init(struct qemu_stream *s, int fd, FILE *text, double deadline);
/* Reads up to the first phase, so that what the guest said before it is known. 0 or @err. */
int qemu_stream_begin(struct qemu_stream *s);
/* Goes on to the next line for an importer, or of a lock. 1, 0 at the end, or @err. */
int qemu_stream_next(struct qemu_stream *s);
/* The lines from there on. NULL without memory. Closing it leaves @s. */
FILE *qemu_stream_file(struct qemu_stream *s);
void qemu_stream_free(struct qemu_stream *s);

#endif
