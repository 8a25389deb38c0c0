// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/notifier.h"

#include "model/mmu/mmu.h"
#include "model/policy/preset.h"

/* A slot that has gone has nothing to unmap. */
static bool slot_is_there(struct task *t, const struct kvm *kvm, const struct kvm_memory_slot *slot)
{
	touch_shared(t);
	task_assert_first(t, "the memslots");
	return kvm->slots[slot->id] == slot;
}

static bool unmap(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t start,
		  gfn_t end, bool may_yield)
{
	bool flush = kvm->backend->unmap_gfn_range(t, kvm, slot, start, end, may_yield);

	if (flush)
		kvm_flush_remote_tlbs(t, kvm);
	return flush;
}

static void begin(struct kvm *kvm, const struct kvm_memory_slot *slot, gfn_t start, gfn_t end)
{
	struct mmu_notifiers *n = &kvm->notifiers;
	pfn_t first = memslot_pfn(slot, start), last = memslot_pfn(slot, end);

	if (!n->in_progress++) {
		n->start = first;
		n->end = last;
		return;
	}
	if (first < n->start)
		n->start = first;
	if (last > n->end)
		n->end = last;
}

void mmu_notifier_invalidate_start(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				   gfn_t start, gfn_t end)
{
	struct rcu_reader srcu;

	touch_shared(t);
	task_assert_first(t, "the invalidations under way");
	kvm_trace_event(t, kvm, NULL, .id = TRACE_kvm_unmap_hva_range, .gfn = start);
	kvm->notifiers.active++;
	charge(t, COUNT_mmu_notifier, 1);
	srcu_read_lock(t, &kvm->srcu, &srcu);
	if (slot_is_there(t, kvm, slot) && !mmu_lock(t, kvm, "__kvm_handle_hva_range")) {
		begin(kvm, slot, start, end);
		unmap(t, kvm, slot, start, end, true);
		mmu_unlock(t, kvm);
	}
	srcu_read_unlock(t, &kvm->srcu, &srcu);
}

void mmu_notifier_invalidate_end(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				 gfn_t start, gfn_t end)
{
	struct mmu_notifiers *n = &kvm->notifiers;
	struct rcu_reader srcu;

	(void)start;
	(void)end;
	charge(t, COUNT_mmu_notifier, 1);
	srcu_read_lock(t, &kvm->srcu, &srcu);
	if (slot_is_there(t, kvm, slot) && !mmu_lock(t, kvm, "__kvm_handle_hva_range")) {
		n->seq++;
		n->in_progress--;
		mmu_unlock(t, kvm);
	}
	srcu_read_unlock(t, &kvm->srcu, &srcu);
	touch_shared(t);
	task_assert_first(t, "the invalidations under way");
	if (--n->active || !n->waiter)
		return;
	task_wake(n->waiter, task_now(t));
	n->waiter = NULL;
}

void mmu_notifier_change_pte(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			     gfn_t gfn)
{
	struct rcu_reader srcu;

	touch_shared(t);
	task_assert_first(t, "the invalidations under way");
	kvm_trace_event(t, kvm, NULL, .id = TRACE_kvm_set_spte_hva, .gfn = gfn);
	if (!kvm->notifiers.in_progress)
		return;
	charge(t, COUNT_mmu_notifier, 1);
	srcu_read_lock(t, &kvm->srcu, &srcu);
	if (slot_is_there(t, kvm, slot) && !mmu_lock(t, kvm, "__kvm_handle_hva_range")) {
		/* What maps the page would go, and the next fault map it anew. By now nothing does:
		 * since its invalidation began no fault has, and a prefetch has found nothing that
		 * it could. Kernels do without since 6.10. */
		unmap(t, kvm, slot, gfn, gfn + 1, false);
		mmu_unlock(t, kvm);
	}
	srcu_read_unlock(t, &kvm->srcu, &srcu);
}

void mmu_notifier_wait(struct task *t, struct kvm *kvm)
{
	struct mmu_notifiers *n = &kvm->notifiers;
	int r = 0;

	touch_shared(t);
	task_assert_first(t, "the invalidations under way");
	while (n->active && !r) {
		n->waiter = t;
		r = task_block(t, WAIT_notifier);
		if (n->waiter == t)
			n->waiter = NULL;
		touch_shared(t);
		task_assert_first(t, "the invalidations under way");
	}
}

const char *mmu_invalidate_retry(const struct kvm *kvm, const struct kvm_page_fault *f)
{
	const struct mmu_notifiers *n = &kvm->notifiers;
	pfn_t pfn = memslot_pfn(f->slot, f->gfn);
	uint64_t seq = f->mmu_seq;

	if (n->in_progress && pfn >= n->start && pfn < n->end)
		return "an invalidation of its page is under way";
	/* An int on the way: from 2^31 on it comes back as another number, and none is fresh. */
	if (kvm->preset->int_mmu_seq)
		seq = (uint64_t)(int64_t)(int32_t)seq;
	if (n->seq == seq)
		return NULL;
	return seq == f->mmu_seq ? "an invalidation has ended since its page was looked up"
				 : "the sequence of invalidations comes sign-extended from an int";
}
