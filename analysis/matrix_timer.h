/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_MATRIX_TIMER_H
#define KVMSIM_ANALYSIS_MATRIX_TIMER_H

#include "analysis/matrix_file.h"

/*
 * What the host's timer adds to a phase of a recording. How often it interrupts the guest, and how
 * often another thread then takes the CPU, follows no rule of KVM's; what each of them adds does
 * (Linux 6.1, arch/x86/kvm):
 *
 * - an interrupt is one exit more, whose reason is it, and one entry more: svm_exit_handlers,
 *   vcpu_enter_guest();
 * - a vCPU that is preempted is put, which loads the host's state, and is counted by where it was,
 *   at an instruction's boundary or not: kvm_sched_out(), kvm_steal_time_set_preempted().
 *
 * The FPU's state changes hands in KVM_RUN alone, so the timer adds nothing there.
 */

enum { MATRIX_TIMED = 7 }; /* quantities below that the model predicts */

struct matrix_timer {
	bool recorded[MATRIX_TIMED]; /* the file has rows of it; of the file, not of the phase */
	int64_t interrupts;	     /* beyond those that the model predicts; may be negative */
	int64_t preemptions;
};

/* Fills in what is the file's. */
void matrix_timer_file(const struct matrix_file *f, struct matrix_timer *t);

/* Fills in what is the phase's: @value is the recording's (0: no row), @ctx goes to it;
 * @predicted_interrupts the model's. */
void matrix_timer_phase(struct matrix_timer *t, double (*value)(void *ctx, const char *quantity),
			void *ctx, uint64_t predicted_interrupts);

/* The quantity that counts the interrupts themselves. */
extern const char matrix_timer_interrupts[];

/* Whether it counts what follows no rule, in a phase that has it. */
bool matrix_timer_alone(const struct matrix_timer *t, const char *quantity);
/* What is added to the model's prediction of @quantity: 0 of most. */
int64_t matrix_timer_adds(const struct matrix_timer *t, const char *quantity);

/* Which of those quantities @quantity is, below MATRIX_TIMED, when the file has it nowhere, as
 * recordings do that were made without what the timer disturbs; else -1. */
int matrix_timer_unrecorded(const struct matrix_timer *t, const char *quantity);
/* The name of the @i-th of them, below MATRIX_TIMED. */
const char *matrix_timer_name(size_t i);

#endif
