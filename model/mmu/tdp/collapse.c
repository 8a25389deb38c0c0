// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/tdp/tdp.h"
#include "model/policy/preset.h"

/*
 * When logging of a slot ends: the sptes that could be larger go, and the next fault makes one of
 * the size that slot and host allow; or, in later kernels, the larger one is put there at once.
 * mmu_lock is held for read, faults go on beside.
 */

static int largest(const struct tdp_iter *it, const struct kvm_memory_slot *slot)
{
	return max_mapping_level(it->t, it->kvm, slot, it->gfn, MAX_HUGE_LEVEL, COUNT_host_level);
}

/* Each leaf by itself, and a flush for each. */
static bool leaf_collapsible(const struct tdp_iter *it, const struct kvm_memory_slot *slot)
{
	return tdp_iter_leaf(it) && it->level < largest(it, slot);
}

/* The entry leads to a table, and all that it maps is of the slot: one that begins before it cannot
 * be large. */
static bool table_collapsible(const struct tdp_iter *it, const struct kvm_memory_slot *slot)
{
	return it->level <= MAX_HUGE_LEVEL && spte_present(it->old_spte) && !tdp_iter_leaf(it) &&
	       it->gfn >= slot->base_gfn && it->level <= largest(it, slot);
}

static void zap_range(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root,
		      const struct kvm_memory_slot *slot, int min_level,
		      bool (*collapsible)(const struct tdp_iter *, const struct kvm_memory_slot *))
{
	struct tdp_iter it;

	tdp_iter_begin(&it, t, kvm, root, min_level, slot->base_gfn, COUNT_tdp_spte);
	for_each_tdp_spte(&it, slot->base_gfn + slot->npages)
	{
		/* Again when another changed the entry meanwhile. */
		while (!tdp_iter_cond_resched(&it, true) && collapsible(&it, slot) &&
		       !tdp_zap_spte_atomic(&it))
			;
	}
	tdp_iter_end(&it);
}

/* The large spte that the first leaf below the entry would be a part of, or 0 without a leaf. */
static uint64_t recovered(const struct tdp_iter *parent)
{
	struct kvm_mmu_page *child = parent->kvm->page_of_pfn[spte_pfn(parent->old_spte)];
	gfn_t end = parent->gfn + pages_per_level(parent->level);
	uint64_t low = pages_per_level(parent->level) - 1, spte = 0;
	struct tdp_iter it;

	tdp_iter_begin(&it, parent->t, parent->kvm, child, PG_LEVEL_4K, parent->gfn,
		       COUNT_tdp_spte);
	for_each_tdp_spte(&it, end)
	{
		if (!tdp_iter_leaf(&it))
			continue;
		spte = (it.old_spte & ~(low << PAGE_SHIFT)) | PT_PAGE_SIZE;
		break;
	}
	tdp_iter_end(&it);
	return spte;
}

/* Whether TLBs are to be flushed. */
static bool recover_range(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root,
			  const struct kvm_memory_slot *slot)
{
	struct tdp_iter it;
	bool flush = false;
	uint64_t spte;

	tdp_iter_begin(&it, t, kvm, root, PG_LEVEL_2M, slot->base_gfn, COUNT_tdp_spte);
	for_each_tdp_spte(&it, slot->base_gfn + slot->npages)
	{
		if (tdp_iter_need_resched(&it)) {
			if (flush)
				kvm_flush_remote_tlbs(t, kvm);
			flush = false;
			tdp_iter_unlock(&it, true);
			tdp_iter_relock(&it, true, "tdp_mmu_iter_cond_resched");
			continue;
		}
		while (table_collapsible(&it, slot) && (spte = recovered(&it))) {
			if (!tdp_set_spte_atomic(&it, spte))
				continue;
			flush = true;
			break;
		}
	}
	tdp_iter_end(&it);
	return flush;
}

int tdp_zap_collapsible(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	struct kvm_mmu_page *root;
	bool flush = false;
	int r = mmu_read_lock(t, kvm, "kvm_mmu_zap_collapsible_sptes");

	if (r)
		return r;
	for_each_tdp_root(t, kvm, root, true)
	{
		switch (kvm->preset->tdp_collapse) {
		case TDP_ZAP_LEAVES:
			zap_range(t, kvm, root, slot, PG_LEVEL_4K, leaf_collapsible);
			break;
		case TDP_ZAP_TABLES:
			zap_range(t, kvm, root, slot, PG_LEVEL_2M, table_collapsible);
			break;
		case TDP_RECOVER:
			flush |= recover_range(t, kvm, root, slot);
			break;
		}
	}
	mmu_read_unlock(t, kvm);
	return flush;
}
