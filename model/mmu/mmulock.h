/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_MMULOCK_H
#define KVMSIM_MMU_MMULOCK_H

#include "model/host/lock.h"

/*
 * A VM's locks: slots_lock, a mutex, is taken before mmu_lock, which the mmulock
 * policy makes an rwlock or a spinlock. Only the TDP back end takes it for reading, which a
 * spinlock does not tell from writing.
 */
struct kvm;

struct mmu_lock {
	struct rwlock rw;
	struct spinlock spin;
};

void kvm_locks_init(struct kvm *kvm);
/* They tell @watch (may be NULL) of waits and holds. */
void kvm_locks_watch(struct kvm *kvm, const struct lock_watch *watch);

/* @caller, of these and those below: the kernel's function that takes it, by its name in 6.1 or in
 * the policy's kernel, for statistics of contention. */
/* [running] 0 with the lock held; else it is not: KVMSIM_ECANCELED, KVMSIM_ECHECK, KVMSIM_ENOMEM.
 */
int mmu_lock(struct task *t, struct kvm *kvm, const char *caller);
void mmu_unlock(struct task *t, struct kvm *kvm);
/* Whether others wait for mmu_lock, where the era's kernel looks. */
bool mmu_lock_contended(struct task *t, struct kvm *kvm);
/* Lets others have mmu_lock when they wait for it, where the era's kernel does so in long loops.
 * 0 with the lock held; else as mmu_lock(). */
int mmu_lock_break(struct task *t, struct kvm *kvm, const char *caller);
/* The same for reading. */
int mmu_read_lock(struct task *t, struct kvm *kvm, const char *caller);
void mmu_read_unlock(struct task *t, struct kvm *kvm);
/* [running] With the checkers on the run fails with KVMSIM_ECHECK and a message unless the task
 * holds mmu_lock, in either mode, which protects @what. */
void mmu_lock_assert_held(struct task *t, const struct kvm *kvm, const char *what);
int slots_lock(struct task *t, struct kvm *kvm, const char *caller);
/* Who takes the next lock, as above, for those without a function here. */
void lock_called_by(struct task *t, const struct kvm *kvm, const char *caller);
void slots_unlock(struct task *t, struct kvm *kvm);
/* The one that is used. */
const struct lock_queue *mmu_lock_queue(const struct kvm *kvm);
/* Exclusive holds of mmu_lock so far, and those for reading. */
struct lock_stats mmu_lock_stats(const struct kvm *kvm);
struct lock_stats mmu_lock_read_stats(const struct kvm *kvm);
void mmu_lock_stats_reset(struct kvm *kvm);

#endif
