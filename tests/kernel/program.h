/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_PROGRAM_H
#define KVMSIM_KERNEL_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A page-list program: what the VMM does to a VM, phase by phase, as a text file (README.md has
 * the format). And the page lists that its patterns stand for.
 */
enum statement_op {
	OP_VM,	    /* a new VM */
	OP_SETUP,   /* phase "setup" */
	OP_PAGES,   /* the page list of the statements that follow */
	OP_UNKEYED, /* the list stays, the columns that name it are empty */
	OP_WRITE,
	OP_READ,
	OP_INC,
	OP_WRITE_THREADS, /* as OP_WRITE, each vCPU in a thread of its own */
	OP_WRITE_FULL,	  /* as OP_WRITE, and tells of full rings */
	OP_WRITE_RESETS,  /* and of what was collected and reset then */
	OP_GET,
	OP_CLEAR,
	OP_COLLECT,	    /* all dirty rings */
	OP_RESET,	    /* the same, and resets them */
	OP_RESET_HARVESTED, /* resets them only */
	OP_LOG_ON,
	OP_LOG_OFF,
	OP_DONTNEED, /* madvise() of pages of the host's memory */
	OP_PROTECT_RO,
	OP_PROTECT_RW, /* mprotect() of them */
	OP_ROUND,      /* what the column says from here on */
	OP_NULL,
	OP_CHECK_EXTENSION,
	OP_EMPTY,
	OP_MOV, /* control registers and tables: guest_modes.h */
	OP_SREGS,
	OP_CR3,
	OP_STORE_PTES,
	OP_STORE_PDES,
	OP_INVLPG,
	OP_SWEEP,  /* patterns x numbers x rounds of what follows, up to OP_END */
	OP_REPEAT, /* rounds of what follows, up to OP_END */
	OP_END,
};

enum pattern {
	PATTERN_NONE,
	PATTERN_EVEN,
	PATTERN_SEQUENTIAL,
	PATTERN_RANDOM,
	PATTERN_CLUSTERED16,
	PATTERN_HALVES, /* of two vCPUs each has its half */
	N_PATTERNS,
};
const char *pattern_name(enum pattern p);

#define PROGRAM_ALL	  UINT64_MAX /* "all": the slot's number of pages */
#define SWEEP_NUMBERS_MAX 24

struct statement {
	enum statement_op op;
	bool logged;	 /* OP_VM */
	uint64_t manual; /* OP_VM: of KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2, 0: not enabled */
	uint64_t ring;	 /* OP_VM: entries of each vCPU's dirty ring, 0: there is none */
	unsigned vcpus;	 /* OP_VM */
	bool huge;	 /* OP_VM: slot 1 has transparent huge pages */
	bool lazy_split; /* OP_VM: kvm.eager_page_split=N */
	bool absent;	 /* OP_VM: the host touches nothing of slot 1 */
	bool readonly, kernel, kernel_all, ro_ptes, nx_ptes, clean; /* OP_VM: guest.h */
	char text[40];						    /* OP_MOV to OP_STORE_PDES */
	char phase[40]; /* statements that are a phase */
	enum pattern pattern[N_PATTERNS];
	unsigned n_patterns; /* OP_PAGES: 1 */
	uint64_t number[SWEEP_NUMBERS_MAX];
	unsigned n_numbers; /* OP_PAGES: 0 to 2, the second is added to each page; OP_CLEAR: 1,
			       pages per ioctl; OP_ROUND: 0 (none) or 1; OP_DONTNEED, OP_PROTECT_*:
			       first page, pages */
	unsigned rounds;
};

#define PROGRAM_MAX 128
struct program {
	char case_name[24];
	size_t n;
	struct statement statement[PROGRAM_MAX];
};

/* Dies with file and line on a program that it cannot read. */
void program_read(struct program *p, const char *path);

/* Fills @pages with the list of @n pages of a slot of @slot_pages; n <= slot_pages. */
void pattern_pages(enum pattern p, uint64_t n, uint64_t slot_pages, uint32_t *pages);

#endif
