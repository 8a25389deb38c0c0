/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_MEMSLOT_H
#define KVMSIM_MMU_MEMSLOT_H

#include "model/mmu/hostmem.h"
#include "model/mmu/spte.h"
#include "model/sim/sim.h"

/*
 * Memory slots: a range of guest frames, the host memory behind it, and what KVM keeps per frame:
 * reverse maps for three page sizes, large page information, write tracking, the dirty bitmap.
 */
struct kvm;

#define KVM_MAX_MEMSLOTS     64
#define KVM_MEM_MAX_NR_PAGES ((1ull << 31) - 1) /* of one slot */
#define NR_PAGE_SIZES	     3

#define MEMSLOT_LOG_DIRTY (1u << 0) /* KVM_MEM_LOG_DIRTY_PAGES */
#define MEMSLOT_READONLY  (1u << 1) /* KVM_MEM_READONLY: a store is a device's access */
#define MEMSLOT_INVALID	  (1u << 16)

/* The sptes that map a frame: none, one (a pointer to it), or a chain of descriptors (bit 0). */
struct kvm_rmap_head {
	uintptr_t val;
};

struct store_log; /* the checkers', see check.h */

struct kvm_memory_slot {
	uint32_t id, flags;
	gfn_t base_gfn;
	uint64_t npages;
	pfn_t base_pfn; /* leaves base_gfn's remainder by any page size */
	struct host_mem host;
	struct kvm_rmap_head *rmap[NR_PAGE_SIZES];
	int32_t *disallow_lpage[NR_PAGE_SIZES]; /* [0] is NULL */
	uint16_t *write_track;			/* shadow pages of level > 1 per frame */
	uint64_t *dirty_bitmap;			/* NULL: not logged */
	uint64_t *dirty_snapshot;		/* its second half, harvests work on it */
	struct store_log *stores;		/* NULL: no checkers */
	struct kvm_memory_slot *next_deleted;
	/* synthetic addresses */
	uint64_t slot_addr, rmap_addr[NR_PAGE_SIZES], lpage_addr[NR_PAGE_SIZES], bitmap_addr,
		snapshot_addr;
};

/* [running] Creates, deletes (@npages 0), moves or changes the flags of slot @id; slots_lock is
 * held. Errors: KVMSIM_EINVAL (overlap, another size, read-only or not as before, nothing to
 * delete, more pages than KVM takes, beyond what gpas of 52 bits, nested ones of 48, can reach, no
 * such page size of the host's), KVMSIM_EUNSUPPORTED (moved by a part of a large host page),
 * KVMSIM_ENOMEM, KVMSIM_ECANCELED. @host counts when the slot is created. */
int memslot_set(struct task *t, struct kvm *kvm, uint32_t id, uint32_t flags, gfn_t base_gfn,
		uint64_t npages, const struct memslot_host *host);
void memslots_free(struct kvm *kvm);

/* The slot that holds @gfn, or NULL. */
struct kvm_memory_slot *gfn_to_memslot(const struct kvm *kvm, gfn_t gfn);
struct kvm_memory_slot *id_to_memslot(const struct kvm *kvm, uint32_t id);

/* The guest frame behind a host frame that some slot has. */
gfn_t kvm_pfn_to_gfn(const struct kvm *kvm, pfn_t pfn);

static inline pfn_t memslot_pfn(const struct kvm_memory_slot *slot, gfn_t gfn)
{
	return slot->base_pfn + (gfn - slot->base_gfn);
}

static inline bool memslot_logged(const struct kvm_memory_slot *slot)
{
	return slot->flags & MEMSLOT_LOG_DIRTY;
}

static inline uint64_t memslot_bitmap_words(const struct kvm_memory_slot *slot)
{
	return (slot->npages + 63) / 64;
}

/* Index of @gfn among the pages of @level that the slot touches. */
static inline uint64_t memslot_index(const struct kvm_memory_slot *slot, gfn_t gfn, int level)
{
	unsigned shift = 9 * (level - 1);

	return (gfn >> shift) - (slot->base_gfn >> shift);
}

static inline uint64_t memslot_lpages(const struct kvm_memory_slot *slot, int level)
{
	return memslot_index(slot, slot->base_gfn + slot->npages - 1, level) + 1;
}

#endif
