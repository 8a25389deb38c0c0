/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_MATRIX_H
#define KVMSIM_WORKLOADS_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/counts.h"
#include "model/mmu/trace.h"
#include "model/policy/policy.h"
#include "model/sim/sim.h"

/*
 * The reference matrix: small VMs with a closed-loop guest, driven phase by phase, whose every
 * tracepoint, statistic and ioctl result is known from a real kernel. A case is a fixed sequence
 * of VMs and phases; this room runs one case under one configuration in virtual time and hands
 * each phase's counts to the caller, under the names that the reference uses.
 *
 * The guest is one of three loops over a list of addresses (write, read, increment): each turn
 * fetches from the code page, reads the list, accesses the page. Its memory, page tables and
 * instruction order are the reference's, so that faults come in the same order.
 */

enum matrix_pte { MATRIX_PTE_NONE, MATRIX_PTE_4K, MATRIX_PTE_2M /* with 4-byte entries, 4M */ };
/* How the guest pages: as the MMU's name says, or in 32-bit code. */
enum matrix_guest { MATRIX_GUEST_OF_MMU, MATRIX_GUEST_PAE, MATRIX_GUEST_32BIT };
/* The MMU of the word @name, and its guest: "npt0-long64", or "npt0-pae", "npt1-tdp0-32bit" and so
 * on. -1: there is none. */
int matrix_mmu_find(const char *name, enum matrix_guest *guest);
enum matrix_pattern {
	MATRIX_NO_PATTERN, /* "-" */
	MATRIX_EVEN,
	MATRIX_SEQUENTIAL,
	MATRIX_RANDOM,
	MATRIX_CLUSTERED16,
	MATRIX_HALVES, /* of two vCPUs, each its half of the slot */
	/* no patterns of pages, but what the column says in cases E and F: a device's pages in
	 * turn; the width of a store, or an exchange */
	MATRIX_ROUNDROBIN,
	MATRIX_W1,
	MATRIX_W4,
	MATRIX_W8,
	MATRIX_XCHG8,
	N_MATRIX_PATTERNS
};
/* The word for it in the file; the pattern of that name or -1. */
const char *matrix_pattern_name(enum matrix_pattern p);
int matrix_pattern_find(const char *name);

/* Fills @pages with the @n page numbers of pattern @p in a slot of @slot_pages pages.
 *	even		floor(i * slot_pages / n)
 *	random		distinct values of (x >> 33) % slot_pages, where x is 12345 + n stepped by
 *			x = x * 6364136223846793005 + 1442695040888963407 (D. Knuth's MMIX)
 *	clustered16	runs of 16 neighbours, the runs spread evenly
 *	halves		i, as sequential
 * Errors: KVMSIM_EINVAL (n > slot_pages, no pattern), KVMSIM_ENOMEM. */
int matrix_pages(enum matrix_pattern p, uint64_t slot_pages, uint64_t n, uint32_t *pages);

#define MATRIX_NONE (-1) /* a phase without nr_dirty or round */

/* One turn of a case's repeated part: case B's rounds, case N's repetitions. */
struct matrix_round {
	enum matrix_pattern pattern;
	int64_t nr_dirty, round;
};

struct matrix_quantity {
	char name[64]; /* "ev:kvm_exit[PF]", "stat:pages_4k", "res:ndirty" */
	int64_t value; /* of a gauge: by how much it changed */
	bool gauge;
	uint64_t abs_after; /* of a gauge: its value at the end of the phase */
};

struct matrix_phase {
	const char *name;
	enum matrix_pattern pattern;
	int64_t nr_dirty, round; /* MATRIX_NONE: not stated */
	unsigned occurrence;	 /* 1, or more when the same key came before, in another VM */
	const struct matrix_quantity *quantities; /* zeros are left out, but for results */
	size_t n_quantities;
	cycles_t cycles;	   /* virtual time that the phase took */
	uint64_t counts[N_COUNTS]; /* what it charged */
};

/* Called at the end of each phase. 0 to go on; a negative error ends the run. */
typedef int (*matrix_phase_fn)(void *ctx, const struct matrix_phase *p);

struct ops_program;

struct matrix_opts {
	const char *test_case;		   /* "A" */
	const struct ops_program *program; /* the case is this one; NULL: one that is built in */
	enum mmu_kind mmu;
	enum matrix_guest guest;
	const char *preset; /* whose algorithms; NULL: 6.1's, with the MMU */
	const char *dirty; /* policy of GET_DIRTY_LOG; NULL: the preset's. Cases C have their own */
	const char *cpu;   /* personality; NULL: QEMU's */
	const char *spte;  /* NULL: the preset's. Case E_nocache has its own */
	uint64_t slot_pages;
	enum matrix_pte pte;
	/* The repeated part: run in this order. Phases outside it always run. */
	const struct matrix_round *rounds;
	size_t n_rounds;
	unsigned device_rest; /* case E: accesses to each of its pages after the first; 0: 99 */
	const struct profile *profile;
	bool check; /* keep the model's checkers on and run them after every VM */
	/* Sees every event of a phase, at its place and time, before @phase is called; may be NULL.
	 */
	const struct kvm_observer *trace;
	matrix_phase_fn phase;
	void *ctx;
	const struct kvmsim_errsink *errors;
};

/* Whether there is a case of this name. */
bool matrix_has_case(const char *name);
/* Whether it can be run on @mmu. */
bool matrix_case_on(const char *name, enum mmu_kind mmu);

/* Runs one case. Errors: KVMSIM_ENOENT (no such case), KVMSIM_EUNSUPPORTED with a message (what
 * the configuration asks for does not fit the reference's guest: more pages than its list or its
 * tables hold, PTEs that the MMU's guest has not), KVMSIM_ECHECK (a checker caught the model; the
 * guest exited where it should not), those of the model, what @phase returned. */
int matrix_run(const struct matrix_opts *opts);

#endif
