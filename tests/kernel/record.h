/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_RECORD_H
#define KVMSIM_KERNEL_RECORD_H

#include <stdint.h>
#include <stdio.h>

#include "tests/kernel/guest.h"
#include "tests/kernel/program.h"
#include "workloads/ops_program.h"

/*
 * Runs a page-list program on the kernel and writes what each phase did, as CSV rows in the
 * columns that `kvmsim validate --matrix` reads. README.md says what each column holds.
 */
struct record_opts {
	const struct program *program; /* of an op program, the name only */
	const struct ops_program *ops; /* NULL: none */
	const char *mmu, *mode;	       /* the columns' words */
	uint64_t slot_pages;
	enum guest_kind kind;
	enum guest_pte pte;
	FILE *rows;
};

void record_header(FILE *rows);
/* Once, with tracing: rows ev:, stat: and res:. */
void record_events(const struct record_opts *opts);
/* The same events as the kernel prints them, between lines "TRACE NAME" and "ENDTRACE"; phases
 * begin and end with marks. What analysis/trace_text.h reads. */
void record_text(const struct record_opts *opts);
/* Lines "HAS QUANTITY": the tracepoints and statistics that the kernel has. */
void record_names(const struct record_opts *opts);
/* @times, without tracing: rows insns_min, insns_median and insns_max. */
void record_insns(const struct record_opts *opts, unsigned times);

#endif
