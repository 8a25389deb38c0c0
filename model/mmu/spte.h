/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_SPTE_H
#define KVMSIM_MMU_SPTE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Shadow page-table entries, with the bits where the kernel has them (x86, page tables walked by
 * hardware, so that a value reads as in a trace).
 */
typedef uint64_t gfn_t; /* guest frame number */
typedef uint64_t gpa_t; /* guest physical address */
typedef uint64_t gva_t; /* guest virtual address */
typedef uint64_t pfn_t; /* host frame number */

#define PAGE_SHIFT 12
#define PAGE_SIZE  (1ull << PAGE_SHIFT)

/* Bits of guest PTEs and of sptes alike. */
#define PT_PRESENT   (1ull << 0)
#define PT_WRITABLE  (1ull << 1)
#define PT_USER	     (1ull << 2)
#define PT_ACCESSED  (1ull << 5)
#define PT_DIRTY     (1ull << 6)
#define PT_PAGE_SIZE (1ull << 7)
#define PT_NX	     (1ull << 63)
#define PT_ADDR_MASK 0x000ffffffffff000ull

/* Software bits of sptes. */
#define SPTE_HOST_WRITABLE (1ull << 9)	/* the host maps the page writable */
#define SPTE_MMU_WRITABLE  (1ull << 10) /* W may be set again without mmu_lock */
#define SPTE_MMU_PRESENT   (1ull << 11) /* the spte maps something */

#define ACC_EXEC  1u
#define ACC_WRITE 2u
#define ACC_USER  4u
#define ACC_ALL	  (ACC_EXEC | ACC_WRITE | ACC_USER)

#define PTES_PER_PAGE  512u
#define PG_LEVEL_4K    1
#define PG_LEVEL_2M    2
#define PG_LEVEL_1G    3
#define MAX_HUGE_LEVEL PG_LEVEL_1G
#define ROOT_LEVEL_4   4

static inline unsigned pt_index(uint64_t addr, int level)
{
	return (addr >> (PAGE_SHIFT + 9 * (level - 1))) & (PTES_PER_PAGE - 1);
}

static inline uint64_t pages_per_level(int level)
{
	return 1ull << (9 * (level - 1));
}

static inline bool spte_present(uint64_t spte)
{
	return spte & SPTE_MMU_PRESENT;
}

static inline bool spte_writable(uint64_t spte)
{
	return spte & PT_WRITABLE;
}

/* Without A and D an spte that nobody has used yet grants nothing, so that the first access is
 * seen: a fault without mmu_lock gives back what was taken. */
static inline bool spte_access_track(uint64_t spte)
{
	return spte_present(spte) && !(spte & PT_PRESENT);
}

static inline bool spte_last(uint64_t spte, int level)
{
	return level == PG_LEVEL_4K || (spte & PT_PAGE_SIZE);
}

/* What entry @i of a table of @level holds that takes the place of the larger @huge. */
static inline uint64_t split_spte(uint64_t huge, int level, unsigned i)
{
	uint64_t spte = huge + (i * pages_per_level(level) << PAGE_SHIFT);

	return level == PG_LEVEL_4K ? spte & ~PT_PAGE_SIZE : spte;
}

static inline pfn_t spte_pfn(uint64_t spte)
{
	return (spte & PT_ADDR_MASK) >> PAGE_SHIFT;
}

#endif
