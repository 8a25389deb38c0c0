/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_PAGING_H
#define KVMSIM_MMU_PAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mmu/cpu_regs.h"
#include "model/mmu/spte.h"

/*
 * How a vCPU pages: what its control registers say of the guest's tables, who may do what in them,
 * and the role of the shadow pages that stand for them. Masks and rules are those of the
 * architecture manuals (AMD64 APM volume 2, chapter 5).
 */

/* What tells two shadow pages of one guest frame apart; the kernel's union, without the bits of
 * system management mode and of nested guests. */
union kvm_mmu_page_role {
	uint32_t word;
	struct {
		uint32_t level : 4;
		uint32_t has_4_byte_gpte : 1;
		uint32_t quadrant : 2; /* of a table with 4-byte entries: which part of it */
		uint32_t direct : 1;
		uint32_t access : 3;
		uint32_t invalid : 1;
		uint32_t efer_nx : 1;
		uint32_t cr0_wp : 1;
		uint32_t smep_andnot_wp : 1;
		uint32_t smap_andnot_wp : 1;
		uint32_t ad_disabled : 1;
	};
};

/* Levels of the guest's tables. PAE's highest are the four PDPTEs, which CR3 loads. */
#define PT32_ROOT_LEVEL	 2
#define PT32E_ROOT_LEVEL 3

/* By what the access needs (PFERR_WRITE, USER, FETCH, one bit down), one bit for each ACC_*
 * combination: whether it faults. */
#define N_PERMISSIONS 16
struct paging_mode {
	uint8_t level; /* of the guest's root: ROOT_LEVEL_4, PT32E_, PT32_ROOT_LEVEL; 0: CR0.PG=0 */
	bool wp, nx, smep, smap, pse;
	uint64_t
		gpa_reserved; /* bits that no entry of 8 bytes has: the CPU's addresses end there */
	uint8_t permissions[N_PERMISSIONS];    /* of the guest's own tables */
	uint8_t hw_permissions[N_PERMISSIONS]; /* of shadow tables: KVM runs with WP and NX set */
	union kvm_mmu_page_role root_role;     /* without level 2's quadrant */
};

/* @tdp: KVM makes nested tables; @ad: its tables have A and D; @gpa_bits: of the guest's physical
 * addresses, 32 to 52. */
void paging_mode_init(struct paging_mode *m, const struct cpu_regs *r, bool tdp, bool ad,
		      unsigned gpa_bits);

/* Whether an access that needs @code (of the bits PFERR_*, only the three count) may not use a
 * page with @access, ACC_*. EFLAGS.AC is 0 in guests here. */
static inline bool permission_fault(const uint8_t permissions[N_PERMISSIONS], unsigned access,
				    uint64_t code)
{
	return permissions[(code >> 1) & (N_PERMISSIONS - 1) & ~4u] >> access & 1;
}

static inline unsigned gpte_bytes(const struct paging_mode *m)
{
	return m->level == PT32_ROOT_LEVEL ? 4 : 8;
}

/* Where the entry for @addr lies in its table of @level, in bytes. */
static inline unsigned gpte_offset(const struct paging_mode *m, uint64_t addr, int level)
{
	if (m->level == PT32_ROOT_LEVEL)
		return (addr >> (PAGE_SHIFT + 10 * (level - 1)) & 1023) * 4;
	return pt_index(addr, level) * 8;
}

/* Frames that an entry of @level maps. */
static inline uint64_t gpte_pages(const struct paging_mode *m, int level)
{
	return m->level == PT32_ROOT_LEVEL ? 1ull << (10 * (level - 1)) : pages_per_level(level);
}

/* Whether the entry maps a page. */
static inline bool gpte_last(const struct paging_mode *m, uint64_t gpte, int level)
{
	return level == PG_LEVEL_4K ||
	       ((gpte & PT_PAGE_SIZE) && (m->level != PT32_ROOT_LEVEL || m->pse));
}

/* The table or first frame that it leads to. */
gfn_t gpte_gfn(const struct paging_mode *m, uint64_t gpte, int level);
/* ACC_*. */
unsigned gpte_access(uint64_t gpte);
/* Of PAE's highest table. */
bool pdpte_reserved(const struct paging_mode *m, uint64_t pdpte);
/* Whether it sets a bit that it must not. */
bool gpte_reserved(const struct paging_mode *m, uint64_t gpte, int level);

#endif
