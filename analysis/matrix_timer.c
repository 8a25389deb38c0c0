// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "analysis/matrix_timer.h"

const char matrix_timer_interrupts[] = "ev:kvm_exit[intr]";
static const char interrupts_stat[] = "stat:irq_exits";

enum adds { NOTHING, INTERRUPTS, PREEMPTIONS };

static const struct {
	const char *name;
	enum adds adds;
} timed[MATRIX_TIMED] = {
	{"ev:kvm_exit", INTERRUPTS},   {"ev:kvm_entry", INTERRUPTS},
	{"ev:kvm_fpu", NOTHING},       {"stat:exits", INTERRUPTS},
	{interrupts_stat, INTERRUPTS}, {"stat:host_state_reload", PREEMPTIONS},
	{"stat:fpu_reload", NOTHING},
};

/* By where the vCPU was. Kernels before 5.19 don't have them. */
static const char *const preempted[] = {"stat:preemption_reported", "stat:preemption_other"};
#define N_PREEMPTED (sizeof(preempted) / sizeof(*preempted))

/* MATRIX_TIMED: none of them. A kind of exit is there where the exits are. */
static size_t find(const char *quantity)
{
	size_t i = 0;

	if (!strcmp(quantity, matrix_timer_interrupts))
		quantity = timed[0].name;
	while (i < MATRIX_TIMED && strcmp(timed[i].name, quantity) != 0)
		i++;
	return i;
}

void matrix_timer_file(const struct matrix_file *f, struct matrix_timer *t)
{
	*t = (struct matrix_timer){0};
	for (size_t i = 0; i < f->n_rows; i++) {
		size_t which = find(f->rows[i].quantity);

		if (which < MATRIX_TIMED)
			t->recorded[which] = true;
	}
}

void matrix_timer_phase(struct matrix_timer *t, double (*value)(void *ctx, const char *quantity),
			void *ctx, uint64_t predicted_interrupts)
{
	const char *from = t->recorded[find(matrix_timer_interrupts)] ? matrix_timer_interrupts
								      : interrupts_stat;

	t->interrupts = (int64_t)value(ctx, from) - (int64_t)predicted_interrupts;
	t->preemptions = 0;
	for (size_t i = 0; i < N_PREEMPTED; i++)
		t->preemptions += (int64_t)value(ctx, preempted[i]);
}

bool matrix_timer_alone(const struct matrix_timer *t, const char *quantity)
{
	/* fewer than the model predicts are no timer's */
	if (!strcmp(quantity, matrix_timer_interrupts))
		return t->interrupts > 0;
	for (size_t i = 0; i < N_PREEMPTED; i++) {
		if (!strcmp(quantity, preempted[i]))
			return true;
	}
	return false;
}

int64_t matrix_timer_adds(const struct matrix_timer *t, const char *quantity)
{
	size_t i = find(quantity);

	if (i == MATRIX_TIMED || !strcmp(quantity, matrix_timer_interrupts))
		return 0;
	if (timed[i].adds == PREEMPTIONS)
		return t->preemptions;
	return timed[i].adds == INTERRUPTS && t->interrupts > 0 ? t->interrupts : 0;
}

int matrix_timer_unrecorded(const struct matrix_timer *t, const char *quantity)
{
	size_t i = find(quantity);

	return i < MATRIX_TIMED && !t->recorded[i] ? (int)i : -1;
}

const char *matrix_timer_name(size_t i)
{
	return timed[i].name;
}
