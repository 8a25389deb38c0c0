/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_BACKEND_H
#define KVMSIM_MMU_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mmu/spte.h"

/*
 * What every MMU back end offers to the rest: shadow pages found through reverse maps (rmap/), and
 * two-dimensional page tables walked by guest frame (tdp/). All functions but check run in virtual
 * time. mmu_lock is held for write unless said. A bool, or an int that is 1 and not 0, says whether
 * translations that grant more than the sptes now do may be cached somewhere: the caller flushes.
 */
struct kvm;
struct kvm_vcpu;
struct kvm_memory_slot;
struct kvm_mmu_page;
struct kvm_page_fault;
struct task;

struct mmu_backend {
	const char *name;
	bool rmaps; /* memslots keep reverse maps */
	bool rcu;   /* tables are freed after a grace period: see rcu.h */
	/* Takes W from the 4K sptes of those of the 64 frames from @gfn on whose bit is in @mask.
	 * Of none, a back end that walks goes to the frame behind them all the same. GET_DIRTY_LOG
	 * flushes whatever it finds. */
	void (*write_protect_masked)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				     gfn_t gfn, uint64_t mask);
	/* Takes W from the 4K sptes that map @gfn, for dirty logging. */
	bool (*write_protect_gfn)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				  gfn_t gfn);
	/* Takes W for good from the larger ones, so that a store splits them. */
	bool (*write_protect_huge)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				   gfn_t gfn);
	/* Takes D from the 4K sptes of those of the 64 frames, as write_protect_masked takes W: the
	 * CPU logs the next store. */
	void (*clear_dirty_masked)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				   gfn_t gfn, uint64_t mask);
	/* Takes W from every spte of the slot that maps pages of @min_level or larger. mmu_lock is
	 * not held: takes it in its own way. A negative error when it cannot. */
	int (*protect_slot)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			    int min_level);
	/* Takes D from the slot's sptes, at least from those of 4K. The lock as above. */
	int (*clear_dirty_slot)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
	/* Removes the sptes of the slot that could be larger, so that they are made anew. The lock
	 * as above. */
	int (*zap_collapsible)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
	/* Puts a table of smaller ones in the place of each spte that maps more than 4K of the
	 * frames from @start to before @end. @locked: mmu_lock is held, and let go of meanwhile
	 * (lost, where the task is cancelled); else it takes it in its own way. 0, or a negative
	 * error when it cannot. NULL: large ones stay until a store splits them. */
	int (*split_huge)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			  gfn_t start, gfn_t end, bool locked);
	/* Removes every spte that maps one of the frames from @start to before @end. @may_yield:
	 * mmu_lock may be let go of meanwhile. */
	bool (*unmap_gfn_range)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				gfn_t start, gfn_t end, bool may_yield);
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
	/* Maps a fault of a direct guest with mmu_lock held for read: an enum ret_pf, or a negative
	 * error. NULL: faults are mapped one by one. */
	int (*map_shared)(struct kvm_vcpu *v, struct kvm_page_fault *f);
	/* What zaps everything, as when a slot goes: makes the roots invalid; then, mmu_lock not
	 * held, takes away what they led to. NULL where the generation of shadow pages does it. */
	void (*invalidate_roots)(struct task *t, struct kvm *kvm);
	void (*zap_invalidated_roots)(struct task *t, struct kvm *kvm);
	/* A reference to the root, which is made if need be (NULL: out of memory), and its end.
	 * NULL where roots are found as other shadow pages are. */
	struct kvm_mmu_page *(*get_root)(struct kvm_vcpu *v);
	void (*put_root)(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root);
	/* Its structures agree with each other and with the memslots: 0, or KVMSIM_ECHECK with a
	 * message. Nobody runs. */
	int (*check)(const struct kvm *kvm);
};

extern const struct mmu_backend mmu_backend_rmap, mmu_backend_tdp;

#endif
