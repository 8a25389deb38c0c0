// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/tdp/tdp.h"

/*
 * What an MMU notifier makes of a range: its leaves go, under all roots, also those that are made
 * invalid already. mmu_lock is held for write, and let go of when others wait for it; faults in the
 * range stay out by the invalidation that is in progress.
 */
static bool unmap_root(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root, gfn_t start,
		       gfn_t end, bool may_yield, bool flush)
{
	struct tdp_iter it;

	tdp_iter_begin(&it, t, kvm, root, PG_LEVEL_4K, start, COUNT_tdp_spte);
	for_each_tdp_spte(&it, end)
	{
		if (may_yield && tdp_iter_need_resched(&it)) {
			if (flush)
				kvm_flush_remote_tlbs(t, kvm);
			flush = false;
			tdp_iter_unlock(&it, false);
			tdp_iter_relock(&it, false, "tdp_mmu_iter_cond_resched");
			continue;
		}
		if (!tdp_iter_leaf(&it))
			continue;
		tdp_set_spte(&it, 0);
		flush = true;
	}
	tdp_iter_end(&it);
	return flush;
}

bool tdp_unmap_range(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t start,
		     gfn_t end, bool may_yield)
{
	struct kvm_mmu_page *root;
	bool flush = false;

	(void)slot;
	for_each_tdp_root(t, kvm, root, false) flush =
		unmap_root(t, kvm, root, start, end, may_yield, flush);
	return flush;
}
