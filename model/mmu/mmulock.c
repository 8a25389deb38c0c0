// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmulock.h"

#include "model/host/watch.h"
#include "model/mmu/mmu.h"
#include "model/policy/policy.h"
#include "model/policy/preset.h"

static const struct lock_class slots_lock_class = {
	.name = "slots_lock", .rank = 10, .kind = LOCK_MUTEX};
static const struct lock_class mmap_lock_class = {
	.name = "mmap_lock", .rank = 15, .kind = LOCK_RWSEM};
/* Taken under none, and nothing under it. */
static const struct lock_class timer_lock_class = {
	.name = "irq_desc_lock", .rank = 30, .kind = LOCK_SPINLOCK};
static const struct lock_class mmu_lock_class[] = {
	{.name = "mmu_lock", .rank = 20, .kind = LOCK_SPINLOCK},
	{.name = "mmu_lock", .rank = 20, .kind = LOCK_RWLOCK}};

void kvm_locks_init(struct kvm *kvm)
{
	mutex_init(&kvm->slots_lock, &slots_lock_class);
	rwlock_init(&kvm->mmap_lock, &mmap_lock_class);
	rwlock_init(&kvm->mmu_lock.rw, &mmu_lock_class[1]);
	spin_lock_init(&kvm->timer_lock, &timer_lock_class);
	spin_lock_init(&kvm->mmu_lock.spin, &mmu_lock_class[0]);
}

void kvm_locks_watch(struct kvm *kvm, const struct lock_watch *watch)
{
	lock_watch(&kvm->slots_lock.q, watch);
	lock_watch(&kvm->mmap_lock.q, watch);
	lock_watch(&kvm->mmu_lock.rw.q, watch);
	lock_watch(&kvm->mmu_lock.spin.q, watch);
	lock_watch(&kvm->timer_lock.q, watch);
}

static bool mmu_lock_is_held(const struct task *t, const struct kvm *kvm)
{
	return kvm->mmulock->rw ? rwlock_is_held(t, &kvm->mmu_lock.rw)
				: spin_is_held(t, &kvm->mmu_lock.spin);
}

void lock_called_by(struct task *t, const struct kvm *kvm, const char *caller)
{
	struct host_watch *w = lock_is_watched(&kvm->slots_lock.q) ? host_watch(t) : NULL;

	if (w)
		w->caller = caller;
}

int mmu_lock(struct task *t, struct kvm *kvm, const char *caller)
{
	lock_called_by(t, kvm, caller);
	return kvm->mmulock->rw ? write_lock(t, &kvm->mmu_lock.rw)
				: spin_lock(t, &kvm->mmu_lock.spin);
}

void mmu_unlock(struct task *t, struct kvm *kvm)
{
	/* Not held: it could not be taken again after a break, the task is cancelled. */
	if (!mmu_lock_is_held(t, kvm))
		return;
	if (kvm->mmulock->rw)
		write_unlock(t, &kvm->mmu_lock.rw);
	else
		spin_unlock(t, &kvm->mmu_lock.spin);
}

void mmu_lock_assert_held(struct task *t, const struct kvm *kvm, const char *what)
{
	/* A cancelled task may have lost it in a break. */
	if (!kvm->check || task_canceled(t) || mmu_lock_is_held(t, kvm))
		return;
	sim_fail(kvm->sim, KVMSIM_ECHECK);
	kvmsim_err(sim_errors(kvm->sim), KVMSIM_ECHECK,
		   "task %s at %llu changes %s without mmu_lock", task_name(t),
		   (unsigned long long)task_now(t), what);
}

bool mmu_lock_contended(struct task *t, struct kvm *kvm)
{
	touch_shared(t);
	task_assert_first(t, "who waits for mmu_lock");
	if (!kvm->preset->mmu_lock_rw)
		return false;
	return kvm->mmulock->rw ? rwlock_is_contended(&kvm->mmu_lock.rw)
				: spin_is_contended(&kvm->mmu_lock.spin);
}

int mmu_lock_break(struct task *t, struct kvm *kvm, const char *caller)
{
	if (!mmu_lock_contended(t, kvm))
		return 0;
	mmu_unlock(t, kvm);
	return mmu_lock(t, kvm, caller);
}

int mmu_read_lock(struct task *t, struct kvm *kvm, const char *caller)
{
	lock_called_by(t, kvm, caller);
	return kvm->mmulock->rw ? read_lock(t, &kvm->mmu_lock.rw)
				: spin_lock(t, &kvm->mmu_lock.spin);
}

void mmu_read_unlock(struct task *t, struct kvm *kvm)
{
	/* Not held: as above. */
	if (!mmu_lock_is_held(t, kvm))
		return;
	if (kvm->mmulock->rw)
		read_unlock(t, &kvm->mmu_lock.rw);
	else
		spin_unlock(t, &kvm->mmu_lock.spin);
}

int slots_lock(struct task *t, struct kvm *kvm, const char *caller)
{
	lock_called_by(t, kvm, caller);
	return mutex_lock(t, &kvm->slots_lock);
}

void slots_unlock(struct task *t, struct kvm *kvm)
{
	mutex_unlock(t, &kvm->slots_lock);
}

const struct lock_queue *mmu_lock_queue(const struct kvm *kvm)
{
	return kvm->mmulock->rw ? &kvm->mmu_lock.rw.q : &kvm->mmu_lock.spin.q;
}

struct lock_stats mmu_lock_stats(const struct kvm *kvm)
{
	return kvm->mmulock->rw ? write_lock_stats(&kvm->mmu_lock.rw)
				: spin_lock_stats(&kvm->mmu_lock.spin);
}

struct lock_stats mmu_lock_read_stats(const struct kvm *kvm)
{
	return read_lock_stats(&kvm->mmu_lock.rw);
}

void mmu_lock_stats_reset(struct kvm *kvm)
{
	lock_stats_reset(kvm->mmulock->rw ? &kvm->mmu_lock.rw.q : &kvm->mmu_lock.spin.q);
}
