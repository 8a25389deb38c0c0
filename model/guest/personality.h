/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_GUEST_PERSONALITY_H
#define KVMSIM_GUEST_PERSONALITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one CPU does that another does not, as far as KVM can see it. */
struct cpu_personality {
	const char *name;
	const char *summary;
	bool vmx;		/* exits, and what qualifies them, are VMX's; otherwise SVM's */
	bool tlb_survives_exit; /* translations are kept over an exit, until something flushes */
	bool rmw_reads_first;	/* the first fault of a read-modify-write is a read */
	bool decode_assists;	/* INVLPG, MOV to CR3 and HLT need no emulator: the exit says all */
	bool insn_bytes;	/* a page fault's exit hands over the instruction: no fetch of it */
	bool nested_ad;		/* nested tables have A and D */
	bool nested_pt_writes;	/* nested walks treat guest page-table reads as writes */
	bool pdpte_accessed;	/* nested walks set A in PAE's PDPTEs, where it is reserved */
	bool pml;		/* page-modification log: see model/mmu/cpu_log.h */
	bool rsvd_not_present; /* a fault by reserved bits does not say that the entry is present */
	unsigned phys_bits;    /* of physical addresses: of an entry, bits from here to 51 are
				* reserved */
	uint32_t tlb_entries;  /* a power of two */
};

/* NULL when there is none of that name; NULL as a name is "tcg". */
const struct cpu_personality *personality_find(const char *name);
/* All of them, in order; NULL past the last. */
const struct cpu_personality *personality_at(size_t i);

#endif
