// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/tdp/tdp.h"

/*
 * Every change of an entry comes through here: the tracepoint, the statistics, and the tables below
 * an entry that no longer leads to them. No change of this file gives W, so that none has to be
 * marked in a dirty bitmap: make_spte() and the fast fault do that.
 */
static void changed_spte(struct task *t, struct kvm *kvm, gfn_t gfn, uint64_t old, uint64_t spte,
			 int level, bool shared);

static enum spte_grants grants(uint64_t spte)
{
	return !spte_present(spte)   ? SPTE_NOT_PRESENT
	       : spte_writable(spte) ? SPTE_WRITABLE
				     : SPTE_READ_ONLY;
}

struct frozen_waiter {
	struct list link;
	struct task *task;
	const uint64_t *sptep;
	bool waits; /* is in the list */
};

/* What an entry holds when nobody keeps it frozen. */
static uint64_t read_unfrozen(struct task *t, struct kvm *kvm, const uint64_t *sptep)
{
	struct frozen_waiter w = {.task = t, .sptep = sptep};
	uint64_t spte;
	int r = 0;

	while ((spte = spte_reread(t, sptep)) == REMOVED_SPTE && !r) {
		list_add(&w.link, &kvm->frozen_waiters);
		w.waits = true;
		while (w.waits && !r)
			r = task_block(t, WAIT_lock);
		if (w.waits)
			list_del(&w.link);
	}
	return spte;
}

static void unfreeze(struct task *t, struct kvm *kvm, uint64_t *sptep)
{
	struct list *pos;

	spte_write(t, kvm, sptep, 0);
	pos = kvm->frozen_waiters.next; /* others may have come until that moment */
	while (pos != &kvm->frozen_waiters) {
		struct frozen_waiter *w = list_entry(pos, struct frozen_waiter, link);

		pos = pos->next;
		if (w->sptep != sptep)
			continue;
		list_del(&w->link);
		w->waits = false;
		task_wake(w->task, task_now(t));
	}
}

/* Takes an entry of a table that nothing leads to any more. Under a shared lock a fault may be
 * filling it in: what it puts there is taken, too. */
static void remove_entry(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp, unsigned i,
			 bool shared)
{
	uint64_t *sptep = &sp->spt[i], old = spte_read(t, kvm, sptep);

	charge(t, COUNT_tdp_spte, 1);
	if (!shared && !spte_present(old))
		return;
	kvm_touch(t, kvm, sptep_addr(sptep), sizeof(*sptep), true);
	old = read_unfrozen(t, kvm, sptep);
	*sptep = REMOVED_SPTE;
	changed_spte(t, kvm, sp_gfn(sp, i), old, REMOVED_SPTE, sp->role.level, shared);
}

static void removed_table(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp, bool shared)
{
	kvm_trace_page(t, kvm, NULL, TRACE_kvm_mmu_prepare_zap_page, sp, false);
	charge(t, COUNT_zap_sp, 1);
	touch_shared(t);
	task_assert_first(t, "the number of page tables");
	kvm->n_tdp_pages--;
	for (unsigned i = 0; i < PTES_PER_PAGE; i++)
		remove_entry(t, kvm, sp, i, shared);
	call_rcu(t, kvm, sp);
}

static void changed_spte(struct task *t, struct kvm *kvm, gfn_t gfn, uint64_t old, uint64_t spte,
			 int level, bool shared)
{
	bool was_leaf = spte_present(old) && spte_last(old, level);
	bool is_leaf = spte_present(spte) && spte_last(spte, level);

	if (old == spte)
		return;
	charge(t, COUNT_tdp_change, 1);
	if (was_leaf && !spte_present(spte))
		charge(t, COUNT_zap_spte, 1);
	kvm_trace_event(t, kvm, NULL, .id = TRACE_kvm_tdp_mmu_spte_changed, .gfn = gfn,
			.level = level, .spte = spte, .old_spte = old, .was = grants(old),
			.now = grants(spte));
	if (was_leaf && (old & PT_ACCESSED) && !(is_leaf && (spte & PT_ACCESSED)))
		host_gfn_used(t, kvm, gfn);
	if (is_leaf != was_leaf)
		kvm->stat[page_stat(level)] += is_leaf ? 1 : -1;
	if (spte_present(old) && !was_leaf && (is_leaf || !spte_present(spte)))
		removed_table(t, kvm, kvm->page_of_pfn[spte_pfn(old)], shared);
}

void tdp_set_spte(struct tdp_iter *it, uint64_t spte)
{
	kvm_touch(it->t, it->kvm, sptep_addr(it->sptep), sizeof(*it->sptep), true);
	mmu_lock_assert_held(it->t, it->kvm, "an spte");
	it->old_spte = spte_reread(it->t, it->sptep);
	*it->sptep = spte;
	changed_spte(it->t, it->kvm, it->gfn, it->old_spte, spte, it->level, false);
}

bool tdp_set_spte_atomic(struct tdp_iter *it, uint64_t spte)
{
	uint64_t now;

	kvm_touch(it->t, it->kvm, sptep_addr(it->sptep), sizeof(*it->sptep), true);
	mmu_lock_assert_held(it->t, it->kvm, "an spte");
	now = spte_reread(it->t, it->sptep);
	if (now != it->old_spte) {
		it->old_spte = now;
		return false;
	}
	*it->sptep = spte;
	changed_spte(it->t, it->kvm, it->gfn, now, spte, it->level, true);
	return true;
}

bool tdp_zap_spte_atomic(struct tdp_iter *it)
{
	if (!tdp_set_spte_atomic(it, REMOVED_SPTE))
		return false;
	kvm_flush_remote_tlbs(it->t, it->kvm);
	unfreeze(it->t, it->kvm, it->sptep);
	return true;
}
