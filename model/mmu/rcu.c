// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rcu.h"

#include "model/mmu/mmu.h"

void rcu_init(struct rcu *rcu)
{
	list_init(&rcu->readers);
	rcu->deferred_tail = &rcu->deferred;
}

/* Frees what no reader can see. A free page has no level: who finds one was let down. */
static void end_grace_periods(struct kvm *kvm)
{
	struct rcu *rcu = &kvm->rcu;
	struct kvm_mmu_page *sp;
	uint64_t seen = UINT64_MAX;

	if (!list_empty(&rcu->readers))
		seen = list_entry(rcu->readers.next, struct rcu_reader, link)->since;
	while ((sp = rcu->deferred) && sp->removal < seen) {
		rcu->deferred = sp->hash_next;
		if (!rcu->deferred)
			rcu->deferred_tail = &rcu->deferred;
		sp->role.word = 0;
		sp->hash_next = kvm->free_pages;
		kvm->free_pages = sp;
	}
}

void rcu_read_lock(struct task *t, struct kvm *kvm, struct rcu_reader *r)
{
	touch_shared(t);
	task_assert_first(t, "the readers of page tables");
	r->since = kvm->rcu.removals;
	list_add(&r->link, kvm->rcu.readers.prev);
}

void rcu_read_unlock(struct task *t, struct kvm *kvm, struct rcu_reader *r)
{
	touch_shared(t);
	task_assert_first(t, "the readers of page tables");
	list_del(&r->link);
	end_grace_periods(kvm);
}

void call_rcu(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp)
{
	touch_shared(t);
	task_assert_first(t, "the readers of page tables");
	sp->removal = kvm->rcu.removals++;
	sp->hash_next = NULL;
	*kvm->rcu.deferred_tail = sp;
	kvm->rcu.deferred_tail = &sp->hash_next;
	end_grace_periods(kvm);
}

void srcu_init(struct srcu *srcu)
{
	list_init(&srcu->readers);
}

/* None is left from before the last update. */
static bool srcu_quiet(const struct srcu *srcu)
{
	return list_empty(&srcu->readers) ||
	       list_entry(srcu->readers.next, struct rcu_reader, link)->since == srcu->updates;
}

void srcu_read_lock(struct task *t, struct srcu *srcu, struct rcu_reader *r)
{
	touch_shared(t);
	task_assert_first(t, "the readers of memslots");
	r->since = srcu->updates;
	list_add(&r->link, srcu->readers.prev);
}

void srcu_read_unlock(struct task *t, struct srcu *srcu, struct rcu_reader *r)
{
	touch_shared(t);
	task_assert_first(t, "the readers of memslots");
	list_del(&r->link);
	if (!srcu->waiter || !srcu_quiet(srcu))
		return;
	task_wake(srcu->waiter, task_now(t));
	srcu->waiter = NULL;
}

void synchronize_srcu(struct task *t, struct srcu *srcu)
{
	int r = 0;

	touch_shared(t);
	task_assert_first(t, "the readers of memslots");
	srcu->updates++;
	if (srcu_quiet(srcu))
		return;
	srcu->waiter = t;
	while (srcu->waiter == t && !r)
		r = task_block(t, WAIT_srcu);
	if (srcu->waiter == t)
		srcu->waiter = NULL;
}
