/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_POLICY_DIRTY_RING_H
#define KVMSIM_POLICY_DIRTY_RING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A vCPU's ring of dirty pages, in memory that userspace maps. Each entry goes through three
 * states: KVM pushes it dirty, userspace reads it and marks it harvested, KVM_RESET_DIRTY_RINGS
 * write-protects its page again and frees it. Indices run on without bound; size is a power of two.
 * Everything is seen by other tasks.
 */
#define KVM_DIRTY_GFN_F_DIRTY (1u << 0)
#define KVM_DIRTY_GFN_F_RESET (1u << 1)

/* virt/kvm: KVM_DIRTY_RING_RSVD_ENTRIES, KVM_DIRTY_RING_MAX_ENTRIES; a ring fills a page at least.
 */
#define KVM_DIRTY_RING_RSVD_ENTRIES 64u
#define KVM_DIRTY_RING_MAX_ENTRIES  65536u
#define KVM_DIRTY_RING_MIN_ENTRIES  (4096u / 16)
#define KVM_DIRTY_GFN_BYTES	    16u

struct kvm_dirty_gfn {
	uint32_t flags;
	uint32_t slot;
	uint64_t offset; /* in pages */
};

struct kvm_dirty_ring {
	uint32_t size;
	uint32_t soft_limit;  /* so many entries in use: the vCPU does not enter the guest */
	uint32_t dirty_index; /* the next push */
	uint32_t reset_index; /* the next entry to reset */
	uint32_t fetch_index; /* userspace's: the next entry to read */
	uint64_t addr;	      /* synthetic */
	struct kvm_dirty_gfn gfn[];
};

static inline struct kvm_dirty_gfn *dirty_ring_entry(struct kvm_dirty_ring *r, uint32_t index)
{
	return &r->gfn[index & (r->size - 1)];
}

static inline uint64_t dirty_ring_entry_addr(const struct kvm_dirty_ring *r, uint32_t index)
{
	return r->addr + (uint64_t)(index & (r->size - 1)) * KVM_DIRTY_GFN_BYTES;
}

static inline uint32_t dirty_ring_used(const struct kvm_dirty_ring *r)
{
	return r->dirty_index - r->reset_index;
}

#endif
