/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_NOTIFIER_H
#define KVMSIM_MMU_NOTIFIER_H

#include "model/mmu/spte.h"
#include "model/sim/sim.h"

/*
 * MMU notifiers: the host's mm tells KVM, which unmaps, before it changes what it maps, and once
 * more afterwards. A fault that has looked up its page before the end, or any fault in the range
 * meanwhile, is taken again.
 */
struct kvm;
struct kvm_memory_slot;
struct kvm_page_fault;

struct mmu_notifiers {
	uint64_t seq;	      /* invalidations that have ended, kvm_vm_opts' among them */
	unsigned in_progress; /* that have unmapped and have not ended; changes under mmu_lock */
	pfn_t start, end;     /* of all of them: no more is known of several */
	unsigned active;      /* that have begun: the set of memslots must stay as it is */
	struct task *waiter;  /* who wants to change it */
};

/* [running] Around a change of what the host maps for the frames @start to before @end of @slot.
 * mmu_lock is not held. */
void mmu_notifier_invalidate_start(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				   gfn_t start, gfn_t end);
void mmu_notifier_invalidate_end(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				 gfn_t start, gfn_t end);
/* Between them: another page, writable, took the place of @gfn's. */
void mmu_notifier_change_pte(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			     gfn_t gfn);

/* [running] Waits until no invalidation is under way. slots_lock is held. */
void mmu_notifier_wait(struct task *t, struct kvm *kvm);

/* Why a page that was looked up when seq was f->mmu_seq may be no longer the host's, in words;
 * NULL: it is. mmu_lock is held. */
const char *mmu_invalidate_retry(const struct kvm *kvm, const struct kvm_page_fault *f);

#endif
