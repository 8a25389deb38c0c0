/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_BACKEND_H
#define KVMSIM_MMU_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mmu/spte.h"

/*
 * What every MMU back end offers to the rest: shadow pages found through reverse maps (rmap/), and
 * later two-dimensional page tables walked by guest frame. All functions run in virtual time; but
 * for walk_lockless, mmu_lock is held for write. A bool says whether translations that grant more
 * than the sptes now do may be cached somewhere: the caller flushes.
 */
struct kvm;
struct kvm_vcpu;
struct kvm_memory_slot;
struct kvm_mmu_page;
struct task;

struct mmu_backend {
	const char *name;
	/* Takes W from the 4K sptes that map @gfn, for dirty logging. */
	bool (*write_protect_gfn)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				  gfn_t gfn);
	/* Takes D from them. */
	bool (*clear_dirty_gfn)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				gfn_t gfn);
	/* Takes W from every spte of the slot. */
	bool (*protect_slot)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
	/* Removes the sptes of the slot that could be larger, so that they are made anew. */
	bool (*zap_collapsible)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
	/* Removes every spte that maps @gfn. */
	bool (*zap_gfn)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn);
	/* Visits every active shadow page, newest first; @sp is NULL for one of the background
	 * pages. NULL where there are none to visit. */
	void (*for_each_shadow_page)(struct task *t, struct kvm *kvm,
				     bool (*fn)(struct task *t, struct kvm *kvm,
						struct kvm_mmu_page *sp, void *ctx),
				     void *ctx);
	/* The frame that a leaf spte maps. */
	gfn_t (*spte_gfn)(struct task *t, struct kvm *kvm, const uint64_t *sptep);
	/* The last entry on the way of @addr, and its value; NULL without a root. Between
	 * walk_lockless_begin() and _end(). */
	uint64_t *(*walk_lockless)(struct kvm_vcpu *v, uint64_t addr, uint64_t *spte);
};

extern const struct mmu_backend mmu_backend_rmap;

#endif
