/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_QEMU_LOCKS_H
#define KVMSIM_ANALYSIS_QEMU_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/sim/error.h"

/*
 * A guest's spin locks as the plugin tells them (workloads/qemu/locks.h), kept until the end: each
 * lock that was taken and given back, by phase, and the kernel's symbols to name them by. Out of it
 * comes a table (qemu_locks_print()): by lock and by caller, how often and how long.
 */
#define QEMU_LOCKS_VCPUS 64
/* Records that are kept, 1 GiB of them. */
#define QEMU_LOCKS_MAX (1u << 25)

struct lock_taken {
	uint64_t lock, caller; /* addresses of the guest */
	uint32_t gap, hold;    /* instructions; what is more is the most that fits */
	uint16_t function;     /* that took it: index */
	uint8_t phase, vcpu, depth;
	bool waited, tick; /* tick: in a timer interrupt */
};

struct lock_symbol {
	uint64_t addr;
	const char *name;
};

struct qemu_locks {
	struct lock_taken *taken; /* in the order of their ends */
	size_t n_taken, room;
	struct lock_symbol *symbols; /* by address */
	size_t n_symbols, symbols_room;
	char *names; /* of all symbols, the last piece of memory */
	size_t names_used, names_room;
	uint64_t functions[64]; /* addresses */
	unsigned n_functions;
	/* by phase and vCPU */
	struct lock_work {
		uint64_t work, wait, ticks; /* instructions */
	} work[64][QEMU_LOCKS_VCPUS];
	uint64_t left, strange; /* as the plugin counts them */
	bool ended;
};

void qemu_locks_free(struct qemu_locks *l);
/* Lines of the plugin, whole: "... L ...", "# vcpu ...", "# locks ...", and what follows "symbol "
 * in the guest's words. 0, KVMSIM_EPARSE (not such a line, or another number of records than it
 * says), KVMSIM_ENOMEM (also of more than QEMU_LOCKS_MAX records). */
int qemu_locks_line(struct qemu_locks *l, unsigned phase, const char *line);
int qemu_locks_vcpu(struct qemu_locks *l, const char *line);
int qemu_locks_end(struct qemu_locks *l, const char *line);
int qemu_locks_symbol(struct qemu_locks *l, const char *words);

/* The symbol that @addr is in, or NULL; *@offset into it. What is 64 KiB behind the
 * last one is in none. */
const char *qemu_locks_name(const struct qemu_locks *l, uint64_t addr, uint64_t *offset);
/* All vCPUs' in @phase. */
struct lock_work qemu_locks_sums(const struct qemu_locks *l, unsigned phase);

/*
 * Writes the table, CSV: for each phase one row of all, rows "lock" of each lock that is at least a
 * thousandth of them, rows "locks" of the others together, by who takes them most, and rows
 * "caller" of all by calling function; and the same of what timer interrupts take, which is not
 * among those: a row "timer", and rows "timer_caller". @tests: the phases' names, from 1.
 * KVMSIM_ENOMEM, or KVMSIM_EIO where @f fails. docs/man/kvmsim-record.1 tells the columns.
 */
int qemu_locks_print(const struct qemu_locks *l, const char *const *tests, unsigned n_phases,
		     FILE *f);

#endif
