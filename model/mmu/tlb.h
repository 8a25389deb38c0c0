/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_TLB_H
#define KVMSIM_MMU_TLB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/mmu/spte.h"

/*
 * A vCPU's translations, as its CPU has them cached: private to the vCPU, so that a hit may retire
 * ahead of global time. Direct mapped; a flush is one increment.
 *
 * A translation of 2 MiB or more, of the guest and of the host, has an entry of 2 MiB beside: what
 * misses and lies in it is filled from there, without a walk.
 */
#define VCPU_TLB_MAX_ENTRIES  4096
#define VCPU_TLB_HUGE_ENTRIES 512
#define TLB_HUGE_SHIFT	      (PAGE_SHIFT + 9)
#define TLB_GEN_BITS	      28 /* vpn << 28 | generation: 36 + 28 bits */

/* What an entry grants. A store hits only where W and D are both cached; a hit on a page whose
 * contents the model keeps is no private matter: its access syncs. */
#define TLB_READ    0x01u
#define TLB_WRITE   0x02u
#define TLB_EXEC    0x04u
#define TLB_PRIVATE 0x08u /* nothing but the translation is needed: may run ahead */
#define TLB_WPERM   0x10u /* W is cached, D may not be */

struct vcpu_tlb_entry {
	uint64_t tag;
	uint64_t gfn_flags; /* gfn << 8 | TLB_* */
};

struct vcpu_tlb {
	uint64_t generation; /* never 0 */
	uint64_t mask;	     /* entries - 1 */
	struct vcpu_tlb_entry entry[VCPU_TLB_MAX_ENTRIES];
	struct vcpu_tlb_entry huge[VCPU_TLB_HUGE_ENTRIES]; /* tag: gva >> 21 << 28 | generation */
};

static inline uint64_t tlb_tag(const struct vcpu_tlb *tlb, gva_t gva)
{
	return gva >> PAGE_SHIFT << TLB_GEN_BITS | tlb->generation;
}

/* The entry that translates @gva and grants all of @need, or NULL. */
static inline struct vcpu_tlb_entry *tlb_lookup(struct vcpu_tlb *tlb, gva_t gva, unsigned need)
{
	struct vcpu_tlb_entry *e = &tlb->entry[(gva >> PAGE_SHIFT) & tlb->mask];

	return e->tag == tlb_tag(tlb, gva) && (e->gfn_flags & need) == need ? e : NULL;
}

static inline gfn_t tlb_gfn(const struct vcpu_tlb_entry *e)
{
	return e->gfn_flags >> 8;
}

static inline void tlb_fill(struct vcpu_tlb *tlb, gva_t gva, gfn_t gfn, unsigned flags)
{
	struct vcpu_tlb_entry *e = &tlb->entry[(gva >> PAGE_SHIFT) & tlb->mask];

	e->tag = tlb_tag(tlb, gva);
	e->gfn_flags = gfn << 8 | flags;
}

static inline uint64_t tlb_huge_tag(const struct vcpu_tlb *tlb, gva_t gva)
{
	return gva >> TLB_HUGE_SHIFT << TLB_GEN_BITS | tlb->generation;
}

/* The entry of 2 MiB around @gva that grants all of @need, or NULL; its frame is the first. */
static inline struct vcpu_tlb_entry *tlb_lookup_huge(struct vcpu_tlb *tlb, gva_t gva, unsigned need)
{
	struct vcpu_tlb_entry *e = &tlb->huge[(gva >> TLB_HUGE_SHIFT) % VCPU_TLB_HUGE_ENTRIES];

	return e->tag == tlb_huge_tag(tlb, gva) && (e->gfn_flags & need) == need ? e : NULL;
}

/* @gfn: any of the frames. */
static inline void tlb_fill_huge(struct vcpu_tlb *tlb, gva_t gva, gfn_t gfn, unsigned flags)
{
	struct vcpu_tlb_entry *e = &tlb->huge[(gva >> TLB_HUGE_SHIFT) % VCPU_TLB_HUGE_ENTRIES];

	e->tag = tlb_huge_tag(tlb, gva);
	e->gfn_flags = (gfn & ~(pages_per_level(PG_LEVEL_2M) - 1)) << 8 | flags;
}

/* @entries: a power of two, at most VCPU_TLB_MAX_ENTRIES. */
void tlb_init(struct vcpu_tlb *tlb, uint32_t entries);
void tlb_flush(struct vcpu_tlb *tlb);
/* What INVLPG does: with an entry of 2 MiB goes what was filled from it. */
void tlb_flush_gva(struct vcpu_tlb *tlb, gva_t gva);

#endif
