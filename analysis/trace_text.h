/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_TRACE_TEXT_H
#define KVMSIM_ANALYSIS_TRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/trace_lines.h"
#include "model/sim/error.h"
#include "workloads/matrix.h"

/*
 * A kernel's trace of a matrix case, as ftrace prints it (`cat trace`), with marks where phases
 * begin and end:
 *
 *	CASE name=A mmu=npt0-long64 slot_pages=64 guest_pte=2m
 *	... [000] ..... 1.929693: tracing_mark_write: PHASE setup nr=-1 round=-1
 *	... [000] ...1. 1.930111: kvm_mmu_get_page: sp gen 0 gfn 10 l4 ...
 *	... [000] ..... 1.930183: tracing_mark_write: ENDPHASE
 *
 * -1: the phase's key does not state it; "pattern=even" may follow round. Without a CASE line the
 * file's name tells the same: CASE[PAGES]-MMU[-PTE], as in A64-npt0-2m.txt, E_P2-npt1-tdp1.txt (P:
 * the pages of the device). gzip is seen through, CRLF too.
 */

struct trace_phase {
	char name[48];
	enum matrix_pattern pattern;
	int64_t nr_dirty, round;    /* MATRIX_NONE: not stated */
	unsigned vm;		    /* counts phases `setup`, from 0 */
	unsigned long begins, ends; /* lines of the marks; 0: the model's */
	struct trace_line *lines;
	size_t n_lines, room;
	unsigned threads; /* of its events; see trace_phase_end() */
};

/* Lines that are not compared, and why. */
enum trace_left_out {
	LEFT_OUT_TIMER,	  /* the host's interrupts: the exit and the entry after it */
	LEFT_OUT_OUTSIDE, /* before, between and after phases */
	N_LEFT_OUT
};
extern const char *const trace_left_out_words[N_LEFT_OUT];

struct trace_phases {
	struct trace_phase *phase;
	size_t n;
	uint64_t left_out[N_LEFT_OUT];
	uint32_t interrupted; /* vCPUs whose next entry goes on after an interrupt, as bits */
};

struct trace_recording {
	char test_case[32];
	char mmu_name[24]; /* with its guest: "npt0-pae" */
	enum mmu_kind mmu;
	enum matrix_guest guest;
	uint64_t slot_pages;
	enum matrix_pte pte;
	struct trace_phases phases;
	char **names; /* of events that the model has not */
	size_t n_names;
};

/* A phase more, without a name and key; NULL: no memory. */
struct trace_phase *trace_phases_add(struct trace_phases *p);
/* Names the last one. */
void trace_phases_name(struct trace_phases *p, const char *name);
/* A line more of the last one, unless it is left out. False: no memory. */
bool trace_phases_add_line(struct trace_phases *p, const struct trace_line *line);
/* After its last line: which of several threads goes first is up to the scheduler, so that their
 * events are put one thread after the other, each in its own order. False: no memory. */
bool trace_phase_end(struct trace_phase *p);
void trace_phases_free(struct trace_phases *p);

/* Reads all of it. Errors, with file and line: KVMSIM_EIO, KVMSIM_EPARSE (a damaged line, marks
 * that don't pair, events that the kernel lost, no phase, a configuration that nothing tells),
 * KVMSIM_ENOMEM. On an error there is nothing to free. */
int trace_recording_load(const char *path, const struct kvmsim_errsink *errors,
			 struct trace_recording **out);
void trace_recording_free(struct trace_recording *r);

#endif
