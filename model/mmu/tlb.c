// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/tlb.h"

#include <string.h>

void tlb_init(struct vcpu_tlb *tlb, uint32_t entries)
{
	memset(tlb, 0, sizeof(*tlb));
	tlb->generation = 1;
	tlb->mask = entries - 1;
}

void tlb_flush(struct vcpu_tlb *tlb)
{
	if (++tlb->generation >> TLB_GEN_BITS) {
		memset(tlb->entry, 0, sizeof(tlb->entry));
		memset(tlb->huge, 0, sizeof(tlb->huge));
		tlb->generation = 1;
	}
}

static void flush_entry(struct vcpu_tlb *tlb, gva_t gva)
{
	struct vcpu_tlb_entry *e = &tlb->entry[(gva >> PAGE_SHIFT) & tlb->mask];

	if (e->tag == tlb_tag(tlb, gva))
		e->tag = 0;
}

void tlb_flush_gva(struct vcpu_tlb *tlb, gva_t gva)
{
	struct vcpu_tlb_entry *huge = tlb_lookup_huge(tlb, gva, 0);
	gva_t first = gva >> TLB_HUGE_SHIFT << TLB_HUGE_SHIFT;

	flush_entry(tlb, gva);
	if (!huge)
		return;
	huge->tag = 0;
	for (unsigned i = 0; i < pages_per_level(PG_LEVEL_2M); i++)
		flush_entry(tlb, first + ((gva_t)i << PAGE_SHIFT));
}
