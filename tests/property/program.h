/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_PROGRAM_H
#define KVMSIM_TESTS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/guest/op.h"
#include "model/guest/vm.h"

/*
 * Random programs: a VM, 1 to 8 vCPUs with a stream of ops each, and a VMM that collects dirty
 * logs, turns logging on and off and gives memory back meanwhile. A program is a function of its
 * number alone.
 */
#define PROGRAM_MAX_VCPUS 8
#define PROGRAM_SLOTS	  2
#define PROGRAM_PAGES	  1024 /* of each slot */
/* Guest page tables for long mode, above the slots that are logged. */
#define PROGRAM_TABLES_GFN 0x10000ull
/* Its pages: the highest table, the one below, the directory, the tables of the last level. What
 * CR3 is in each mode: */
static inline uint64_t program_root(enum guest_paging_mode mode)
{
	uint64_t page = mode == GUEST_32BIT ? 2 : mode == GUEST_PAE ? 1 : 0;

	return (PROGRAM_TABLES_GFN + page) << 12;
}
#define PROGRAM_DEVICE 0xf0000000ull /* no slot */

struct program_step {
	uint64_t delay; /* cycles since the step before */
	uint32_t slot;
	enum {
		STEP_GET,
		STEP_LOG_ON,
		STEP_LOG_OFF,
		STEP_DONTNEED, /* the VMM gives pages back; they are anonymous */
		STEP_RESET     /* of what the rings have had collected; the policy has rings */
	} what;
	uint64_t first, npages; /* STEP_DONTNEED */
};

/* What a program runs on. */
struct program_machine {
	enum kvm_paging paging;
	enum guest_paging_mode mode;
	bool guest_large; /* 2M PTEs, or 4M, where the guest pages */
	const char *preset, *cpu;
	unsigned host_level; /* of the slots' pages */
	enum kvm_eager_page_split eager_page_split;
};

struct program {
	uint64_t number;
	struct program_machine on;
	const char *dirty;
	bool check;			  /* the model's checkers are on */
	bool quiet;			  /* an error is expected: no message */
	bool host_anonymous, host_absent; /* the slots' memory */
	uint32_t n_vcpus;
	struct guest_op *ops[PROGRAM_MAX_VCPUS];
	size_t n_ops[PROGRAM_MAX_VCPUS];
	uint64_t start[PROGRAM_MAX_VCPUS]; /* of each vCPU */
	struct program_step steps[32];
	size_t n_steps;
};

/* Its machine and policy are drawn, too; checked when the number is odd. */
bool program_make(uint64_t number, struct program *p);
/* The same number's on a given machine, checked. */
bool program_make_on(uint64_t number, const struct program_machine *on, const char *dirty,
		     struct program *p);
void program_free(struct program *p);

/* Everything a run can tell: bitmaps and times of each collection, every task's time, every ledger
 * entry, statistics; as numbers in a fixed order. */
struct outcome {
	uint64_t *word;
	size_t n, room;
	size_t switches; /* not part of the outcome: how often tasks were switched */
	uint64_t dirty;	 /* pages reported, to see that programs do something */
	uint64_t hits;	 /* retired without a call */
	uint64_t full;	 /* exits of vCPUs whose dirty rings were full */
	uint64_t false_dirties;
	/* Of the slots that were logged all the time, by the program itself, whose last step is a
	 * collection when all vCPUs have ended: pages with a store that no collection reported, and
	 * pages that were reported without an access. */
	uint64_t missed, stray;
};

/* Runs @p. 0 or the error of the run; messages go to stderr. */
int program_run(const struct program *p, bool reference, struct outcome *out);
void outcome_free(struct outcome *o);

#endif
