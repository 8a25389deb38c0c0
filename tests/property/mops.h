/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_MOPS_H
#define KVMSIM_TESTS_MOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/guest/vm.h"

/*
 * Random machines: a VM of any preset, MMU, CPU and policy, vCPUs that run instructions on guest
 * page tables of their own making, and a VMM that changes slots, logging and memory meanwhile. What
 * the guest reads is held against an interpreter without any shadow structure (mops_oracle.h), the
 * dirty log against a list of stores, and the model's structures against its own checkers.
 *
 * A machine is a function of its seed, or a text (mops_text.c), so that a failure can be shrunk and
 * played again.
 */
#define MOPS_MAX_VCPUS 4
#define MOPS_VMM       255 /* who, of the VMM's ops */

/* Guest frames. Tables are reached through an identity window of one page table of their own. */
#define MOPS_TABLES_GFN	 0x1000ull
#define MOPS_TABLES	 128
#define MOPS_DATA_GFN	 0x200ull /* two whole pages of 2 MiB */
#define MOPS_DATA_PAGES	 1024
#define MOPS_DATA2_GFN	 0x803ull /* begins and ends within one */
#define MOPS_DATA2_PAGES 600
#define MOPS_MOVED_GFN	 0x1c03ull  /* its other place, as far into a large page */
#define MOPS_DEVICE_GFN	 0xf0000ull /* no slot, ever */

enum { MOPS_SLOT_TABLES, MOPS_SLOT_DATA, MOPS_SLOT_DATA2, MOPS_SLOTS };

/* Which page of the tables slot is what. Roots have three levels of their own, or share them. */
#define MOPS_ROOTS	   3
#define MOPS_PML4(root)	   (MOPS_TABLES_GFN + 3 * (root)) /* not with PAE */
#define MOPS_PDPT(root)	   (MOPS_TABLES_GFN + 3 * (root) + 1)
#define MOPS_PD(root)	   (MOPS_TABLES_GFN + 3 * (root) + 2)
#define MOPS_MAX_PTS	   100 /* enough to run out of shadow pages */
#define MOPS_PT(i)	   (MOPS_TABLES_GFN + 16 + (i))
#define MOPS_PT_TABLES	   (MOPS_TABLES_GFN + 120) /* the window's */
#define MOPS_MAX_WINDOWS   24			   /* of 2 MiB, whose PDEs change */
#define MOPS_WINDOW(i)	   (32ull + (i))	   /* its entry of the page directory */
#define MOPS_WINDOW_PAGES  12			   /* pages of each that are used */
#define MOPS_TABLES_WINDOW (MOPS_TABLES_GFN << 12)

#define MOPS_P	0x1ull
#define MOPS_W	0x2ull
#define MOPS_U	0x4ull
#define MOPS_A	0x20ull
#define MOPS_D	0x40ull
#define MOPS_PS 0x80ull
#define MOPS_NX (1ull << 63)

/* What a vCPU's registers say of who may use what; at first MOPS_WP alone. */
#define MOPS_WP	  1u
#define MOPS_SMAP 2u
#define MOPS_USER 4u /* at privilege level 3 */
#define MOPS_SMEP 8u
#define MOPS_NXE  16u /* changed together with a load of CR3 */

/* Kinds of ops and what their words are. */
#define MOPS_KINDS(X)                                                                              \
	X(read, "a: gva, len")                                                                     \
	X(write, "a: gva, b: value, len")                                                          \
	X(xchg, "a: gva, b: value, len")                                                           \
	X(inc, "a: gva, b: what is added, len")                                                    \
	X(fetch, "a: gva")                                                                         \
	X(invlpg, "a: gva")                                                                        \
	X(cr3, "a: number of the root")                                                            \
	X(mode, "a: MOPS_WP and so on, b: by the VMM, with KVM_SET_SREGS")                         \
	X(out, "")                                                                                 \
	X(hlt, "")                                                                                 \
	/* the VMM's; gap is the time before it */                                                 \
	X(collect, "a: slot")                                                                      \
	X(get, "a: slot; no CLEAR behind it")                                                      \
	X(log, "a: slot, b: on")                                                                   \
	X(slot, "a: slot, b: is there; 2: read-only")                                              \
	X(move, "a: slot; to its other place")                                                     \
	X(dontneed, "a: slot, b: first page, len: pages")                                          \
	X(protect, "a: slot, b: first page, len: pages; made read-only and writable again")        \
	X(limit, "a: shadow pages")                                                                \
	X(reset, "dirty rings")                                                                    \
	X(check, "all stop, and the checkers look")

enum mops_kind {
#define X(name, words) MOP_##name,
	MOPS_KINDS(X)
#undef X
		N_MOPS
};
#define MOP_FIRST_VMM MOP_collect

struct mop {
	uint8_t who;
	uint8_t kind;
	uint16_t len;
	uint32_t gap;
	uint64_t a, b;
};

enum mops_memory { MOPS_PRESENT, MOPS_SHARED, MOPS_ANONYMOUS };

struct mops {
	uint64_t seed; /* of the first contents of tables, too */
	char preset[24], cpu[24], dirty[48], spte[48];
	enum kvm_paging paging;
	enum guest_paging_mode mode;
	enum mops_memory memory;
	unsigned host_level;
	bool eager, cache;
	unsigned n_vcpus;
	unsigned n_windows, n_pts; /* page tables that they may have */
	struct mop *op;
	size_t n;
};

struct mops_result {
	int err;	/* 0: as it should be */
	char why[256];	/* else the first thing that was wrong */
	uint64_t ops;	/* that were done */
	uint64_t reads; /* whose values were looked at */
	uint64_t guest_faults, mmio, ambiguous, reported, checks;
	uint64_t interrupts, restarts; /* the most of one instruction */
	uint64_t stat[N_KVM_STATS];
};

/* ---- mops_make.c ---- */
/* False: out of memory. */
bool mops_make(uint64_t seed, struct mops *m);
/* With that kernel, dirty or spte policy in place of one that is drawn (NULL: drawn). */
bool mops_make_with(uint64_t seed, const char *preset, const char *dirty, const char *spte,
		    struct mops *m);
void mops_free(struct mops *m);
/* What CR3 is for @root; its level. */
static inline uint64_t mops_cr3(const struct mops *m, uint64_t root)
{
	uint64_t gfn = m->mode == GUEST_32BIT ? MOPS_PD(root)
		       : m->mode == GUEST_PAE ? MOPS_PDPT(root)
					      : MOPS_PML4(root);

	return gfn << 12;
}
static inline int mops_levels(const struct mops *m)
{
	return m->mode == GUEST_32BIT ? 2 : m->mode == GUEST_PAE ? 3 : 4;
}
/* Bits of an address that a table takes: 512 entries of 8 bytes, or 1,024 of 4. */
static inline unsigned mops_bits(const struct mops *m)
{
	return m->mode == GUEST_32BIT ? 10 : 9;
}
static inline unsigned mops_entry_bytes(const struct mops *m)
{
	return m->mode == GUEST_32BIT ? 4 : 8;
}
/* The entry that is used for page @i of a window: with 4-byte entries all over the table, which has
 * two shadow pages. */
static inline unsigned mops_window_entry(const struct mops *m, uint64_t i)
{
	return (unsigned)(m->mode == GUEST_32BIT ? i * 93 : i);
}
/* Entry @i of table @gfn as it is at first. */
uint64_t mops_first_entry(const struct mops *m, uint64_t gfn, unsigned i);
/* The 8 bytes at @gpa of a table. */
static inline uint64_t mops_first_word(const struct mops *m, uint64_t gpa)
{
	unsigned i = (unsigned)(gpa & 0xfff) / mops_entry_bytes(m);

	if (m->mode != GUEST_32BIT)
		return mops_first_entry(m, gpa >> 12, i);
	return mops_first_entry(m, gpa >> 12, i) | mops_first_entry(m, gpa >> 12, i + 1) << 32;
}

/* ---- mops_text.c ---- */
void mops_print(const struct mops *m, FILE *f);
/* False: a line that cannot be read, named on stderr as @path's; @m is to be freed all the same. */
bool mops_parse(FILE *f, const char *path, struct mops *m);

/* ---- mops_run.c ---- */
void mops_run(const struct mops *m, struct mops_result *r);

/* ---- mops_shrink.c ---- */
/* Runs in a child, so that a crash or a hang is a result like others: @r->err is 0 or not. */
void mops_run_apart(const struct mops *m, struct mops_result *r);
/* Leaves out what the failure does not need. Returns the number of runs. */
unsigned mops_shrink(struct mops *m, struct mops_result *r);

#endif
