/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_KADDR_H
#define KVMSIM_MMU_KADDR_H

#include <stdint.h>

/*
 * Where the host kernel's structures lie: a synthetic address space in which every modelled
 * structure has its real footprint, for the cache model. Pages come one after the other, small
 * objects share pages by size as in a slab. Nothing is given back: the model recycles its objects
 * together with their addresses.
 */
#define KADDR_BASE  0xffff888000000000ull /* the kernel's direct map */
#define KADDR_SIZES 8

/* sizeof() in 6.1 on x86-64. */
#define KADDR_SP_HEADER_BYTES 184 /* struct kvm_mmu_page */
#define KADDR_SP_HOT_BYTES    64  /* list and hash links, role, gfn: its first line */
#define KADDR_PTE_LIST_BYTES  128 /* struct pte_list_desc */
#define KADDR_MEMSLOT_BYTES   144 /* struct kvm_memory_slot */

struct kaddr {
	uint64_t next_pfn;
	struct kaddr_slab {
		uint32_t size;
		uint32_t left; /* objects left in the page */
		uint64_t next;
	} slab[KADDR_SIZES];
};

void kaddr_init(struct kaddr *k);
/* @bytes rounded up to whole pages. */
uint64_t kaddr_pages(struct kaddr *k, uint64_t bytes);
/* An object of @size bytes, at most a page; at most KADDR_SIZES sizes are used. */
uint64_t kaddr_object(struct kaddr *k, uint32_t size);

#endif
