/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_POLICY_DIRTY_H
#define KVMSIM_POLICY_DIRTY_H

#include "model/policy/policy.h"

/*
 * What dirty policies share. The caller holds slots_lock; everything runs in virtual time on @t.
 */
struct kvm;
struct kvm_memory_slot;

/* The log of @slot was switched on or off: the VM's policy, or the preset's way. */
int dirty_log_enable(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
/* Write-protects the slot, by rmap or as the preset does, and flushes; with a log of the CPU's,
 * only large mappings, and takes D from the others. 0 or KVMSIM_ECANCELED. */
int dirty_enable_base(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
/* Splits what maps more than 4K of the frames from @start to before @end, where the kernel does
 * that ahead of the stores. @locked, result: as mmu_backend.split_huge. */
int dirty_try_split(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t start,
		    uint64_t end, bool locked);
int dirty_log_disable(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);

/* Called for each word taken, with the bits that were set: re-arms those pages. */
typedef void (*dirty_rearm_fn)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			       uint64_t first_page, uint64_t mask);

/* Exchanges each non-zero word of the bitmap for zero under mmu_lock, into slot->dirty_snapshot.
 * @rearm may be NULL. Returns the number of bits or KVMSIM_ECANCELED. */
long dirty_take_words(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		      dirty_rearm_fn rearm);
/* Each page of the word is found and write-protected; with a log of the CPU's, its D taken. */
void dirty_rearm_word(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		      uint64_t first_page, uint64_t mask);
/* A harvest of words: takes them with @rearm, flushes when there was any, copies out. Returns the
 * number of dirty pages or KVMSIM_ECANCELED. */
long dirty_harvest_words(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			 dirty_rearm_fn rearm, uint64_t *bitmap);
/* Clears those bits of @npages pages from @first_page that @bitmap has, whose bit 0 is that page's,
 * each word's with @rearm (NULL: nothing) under one hold of mmu_lock, and flushes when there was
 * any. slot->dirty_snapshot has what was cleared, from its word 0 on. 0 or KVMSIM_ECANCELED. */
int dirty_clear_words(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		      uint64_t first_page, uint64_t npages, const uint64_t *bitmap,
		      dirty_rearm_fn rearm);
/* Puts an empty bitmap in the full one's place and waits until all see it; the full one is
 * slot->dirty_snapshot then. */
void dirty_swap_bitmap(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
/* Bits set in the bitmap, as the kernel of some eras keeps count of. */
uint64_t dirty_count(struct task *t, const struct kvm_memory_slot *slot);
/* Scans for a word that is not zero. */
bool dirty_any(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
/* The flush that every harvest of dirty pages ends with. */
void dirty_flush(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
/* The snapshot (@dirty) or zeros to userspace. */
void dirty_copy_out(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, bool dirty,
		    uint64_t *bitmap);
/* Write-protects the slot through every active shadow page; mmu_lock is held. */
void dirty_protect_by_walk(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);

extern const struct dirty_policy dirty_walk, dirty_rmap_slot, dirty_mask, dirty_hybrid,
	dirty_manual, dirty_pml, dirty_ring, dirty_lossy;

#endif
