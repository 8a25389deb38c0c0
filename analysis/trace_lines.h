/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_TRACE_LINES_H
#define KVMSIM_ANALYSIS_TRACE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/mmu/trace.h"

/*
 * One event of KVM's tracepoints as what both a kernel and the model know of it, so that two can be
 * compared field by field. Where the fields stand in the kernel's text is a table in trace_lines.c,
 * after the TP_printk() of Linux 6.1 (arch/x86/kvm/trace.h, mmu/mmutrace.h).
 *
 * Left out is what the model has not: host frames and addresses, bytes of instructions, values of
 * registers and memory, the exit's info fields (of a fault they are the
 * next line's address and error code).
 */

#define TRACE_LINE_FIELDS(X)                                                                       \
	X(vcpu)                                                                                    \
	X(reason) /* of an exit, SVM's number */                                                   \
	X(rip)                                                                                     \
	X(addr)                                                                                    \
	X(error)                                                                                   \
	X(gfn)                                                                                     \
	X(level)                                                                                   \
	X(spte)	    /* without the frame, where it maps something */                               \
	X(old_spte) /* the same */                                                                 \
	X(mmio_spte)                                                                               \
	X(gpte)                                                                                    \
	X(index)                                                                                   \
	X(gen)                                                                                     \
	X(mmio_gen)                                                                                \
	X(gpte_bytes)                                                                              \
	X(quadrant)                                                                                \
	X(direct)                                                                                  \
	X(access)                                                                                  \
	X(invalid)                                                                                 \
	X(nx)                                                                                      \
	X(ad)                                                                                      \
	X(roots)                                                                                   \
	X(unsync)                                                                                  \
	X(created)                                                                                 \
	X(spurious)                                                                                \
	X(fixed)                                                                                   \
	X(valid)                                                                                   \
	X(loaded)                                                                                  \
	X(kind)                                                                                    \
	X(write)                                                                                   \
	X(by_gpa)                                                                                  \
	X(code)                                                                                    \
	X(len)                                                                                     \
	X(used_pages)                                                                              \
	X(dirty) /* of a dirty ring */                                                             \
	X(reset)                                                                                   \
	X(slot)                                                                                    \
	X(offset)

enum trace_line_field {
#define X(name) LINE_##name,
	TRACE_LINE_FIELDS(X)
#undef X
		N_LINE_FIELDS
};
const char *trace_line_field_name(enum trace_line_field f);

struct trace_line {
	enum kvm_trace_id id; /* N_KVM_TRACE: an event that the model has not */
	unsigned long number; /* of the line in its file; 0: the model's */
	const char *unknown;  /* its name then, as long as the file */
	uint64_t thread;      /* in order of creation; not compared */
	uint64_t hidden;      /* fields that this side does not know here, as bits */
	uint64_t field[N_LINE_FIELDS];
};

/* The event of that name, or N_KVM_TRACE. */
enum kvm_trace_id trace_line_find(const char *name, size_t len);

/* Which fields the event has, as bits by enum trace_line_field. */
uint64_t trace_line_fields(enum kvm_trace_id id);

/* Reads the kernel's @text, what stands after "NAME: ". False: @at has where it is not as expected,
 * @expected the field or the piece of text there. */
#define TRACE_LINE_PIECE 48
bool trace_line_parse(enum kvm_trace_id id, const char *text, struct trace_line *out,
		      const char **at, char expected[TRACE_LINE_PIECE]);

/* The model's event. */
void trace_line_of(const struct kvm_trace_event *e, struct trace_line *out);

/* Whether they are the same in what both know; else @field is the first that differs
 * (N_LINE_FIELDS: the events themselves). */
bool trace_line_equal(const struct trace_line *a, const struct trace_line *b,
		      enum trace_line_field *field);

/* "kvm_mmu_set_spte gfn=10000 spte=e67 level=1 index=0"; numbers in hexadecimal. Returns @buf. */
#define TRACE_LINE_TEXT 320
const char *trace_line_text(const struct trace_line *l, char buf[TRACE_LINE_TEXT]);

#endif
