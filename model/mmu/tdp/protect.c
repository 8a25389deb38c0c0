// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/tdp/tdp.h"

/* What taking @bit, W or D, from an spte is charged as. */
static uint16_t clear_count(uint64_t bit)
{
	return bit == PT_DIRTY ? COUNT_clear_dirty : COUNT_write_protect;
}

/* Takes @bit from every leaf of @min_level or larger, as others map and unmap beside it. */
static bool clear_range(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root, gfn_t start,
			gfn_t end, int min_level, uint64_t bit)
{
	struct tdp_iter it;
	bool any = false;

	tdp_iter_begin(&it, t, kvm, root, min_level, start, COUNT_tdp_spte);
	for_each_tdp_spte(&it, end)
	{
		if (tdp_iter_cond_resched(&it, true))
			continue;
		while (tdp_iter_leaf(&it) && (it.old_spte & bit)) {
			charge(t, clear_count(bit), 1);
			if (tdp_set_spte_atomic(&it, it.old_spte & ~bit)) {
				any = true;
				break;
			}
		}
	}
	tdp_iter_end(&it);
	return any;
}

static int clear_slot(struct task *t, struct kvm *kvm, const struct kvm_memory_slot *slot,
		      int min_level, uint64_t bit)
{
	struct kvm_mmu_page *root;
	bool any = false;
	int r = mmu_read_lock(t, kvm,
			      bit == PT_WRITABLE ? "kvm_mmu_slot_remove_write_access"
						 : "kvm_mmu_slot_leaf_clear_dirty");

	if (r)
		return r;
	for_each_tdp_root(t, kvm, root, true) any |= clear_range(
		t, kvm, root, slot->base_gfn, slot->base_gfn + slot->npages, min_level, bit);
	mmu_read_unlock(t, kvm);
	return any;
}

static int protect_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			int min_level)
{
	return clear_slot(t, kvm, slot, min_level, PT_WRITABLE);
}

static int clear_dirty_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	return clear_slot(t, kvm, slot, PG_LEVEL_4K, PT_DIRTY);
}

/* Takes @bit, W or D, from the 4K sptes of the frames in @mask. */
static gfn_t first_of(uint64_t mask)
{
	return mask ? (gfn_t)__builtin_ctzll(mask) : 64;
}

static bool clear_masked(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root, gfn_t gfn,
			 uint64_t mask, uint64_t bit)
{
	struct tdp_iter it;
	bool any = false;

	tdp_iter_begin(&it, t, kvm, root, PG_LEVEL_4K, gfn + first_of(mask), COUNT_tdp_spte);
	for_each_tdp_spte(&it, gfn + 64)
	{
		uint64_t page = 1ull << ((it.gfn - gfn) & 63);

		if (!tdp_iter_leaf(&it))
			continue;
		charge(t, COUNT_tdp_leaf, 1);
		if (!mask)
			break;
		if (it.level > PG_LEVEL_4K || !(mask & page))
			continue;
		mask &= ~page;
		charge(t, COUNT_tdp_dirty, 1);
		if (!(it.old_spte & bit))
			continue;
		charge(t, clear_count(bit), 1);
		tdp_set_spte(&it, it.old_spte & ~bit);
		any = true;
	}
	tdp_iter_end(&it);
	return any;
}

static bool clear_masked_all(struct task *t, struct kvm *kvm, gfn_t gfn, uint64_t mask,
			     uint64_t bit)
{
	struct kvm_mmu_page *root;
	bool any = false;

	mmu_lock_assert_held(t, kvm, "sptes");
	list_for_each_entry (root, &kvm->tdp_roots, link)
		any |= clear_masked(t, kvm, root, gfn, mask, bit);
	return any;
}

static void write_protect_masked(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				 gfn_t gfn, uint64_t mask)
{
	(void)slot;
	clear_masked_all(t, kvm, gfn, mask, PT_WRITABLE);
}

static bool write_protect_gfn(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			      gfn_t gfn)
{
	(void)slot;
	return clear_masked_all(t, kvm, gfn, 1, PT_WRITABLE);
}

/* Takes W, and the right to have it back without mmu_lock, from what maps @gfn in large. */
static bool protect_huge(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root, gfn_t gfn)
{
	struct tdp_iter it;
	bool any = false;
	uint64_t spte;

	tdp_iter_begin(&it, t, kvm, root, PG_LEVEL_2M, gfn, COUNT_tdp_spte);
	for_each_tdp_spte(&it, gfn + 1)
	{
		if (!tdp_iter_leaf(&it))
			continue;
		spte = it.old_spte & ~(PT_WRITABLE | SPTE_MMU_WRITABLE);
		if (spte == it.old_spte)
			break;
		charge(t, COUNT_write_protect, 1);
		tdp_set_spte(&it, spte);
		any = true;
	}
	tdp_iter_end(&it);
	return any;
}

static bool write_protect_huge(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			       gfn_t gfn)
{
	struct kvm_mmu_page *root;
	bool any = false;

	(void)slot;
	mmu_lock_assert_held(t, kvm, "sptes");
	list_for_each_entry (root, &kvm->tdp_roots, link)
		any |= protect_huge(t, kvm, root, gfn);
	return any;
}

static void clear_dirty_masked(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			       gfn_t gfn, uint64_t mask)
{
	(void)slot;
	clear_masked_all(t, kvm, gfn, mask, PT_DIRTY);
}

static bool zap_leafs(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root, gfn_t start,
		      gfn_t end)
{
	struct tdp_iter it;
	bool any = false;

	tdp_iter_begin(&it, t, kvm, root, PG_LEVEL_4K, start, COUNT_tdp_spte);
	for_each_tdp_spte(&it, end)
	{
		if (!tdp_iter_leaf(&it))
			continue;
		tdp_set_spte(&it, 0);
		any = true;
	}
	tdp_iter_end(&it);
	return any;
}

static bool zap_gfn(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn)
{
	struct kvm_mmu_page *root;
	bool any = false;

	(void)slot;
	for_each_tdp_root(t, kvm, root, false) any |= zap_leafs(t, kvm, root, gfn, gfn + 1);
	return any;
}

static gfn_t spte_gfn(struct task *t, struct kvm *kvm, const uint64_t *sptep)
{
	(void)t;
	(void)kvm;
	return sp_gfn(sptep_to_sp(sptep), spte_index(sptep));
}

const struct mmu_backend mmu_backend_tdp = {
	.name = "tdp",
	.rcu = true,
	.write_protect_masked = write_protect_masked,
	.write_protect_gfn = write_protect_gfn,
	.write_protect_huge = write_protect_huge,
	.clear_dirty_masked = clear_dirty_masked,
	.protect_slot = protect_slot,
	.clear_dirty_slot = clear_dirty_slot,
	.zap_collapsible = tdp_zap_collapsible,
	.split_huge = tdp_split_huge,
	.unmap_gfn_range = tdp_unmap_range,
	.zap_gfn = zap_gfn,
	.spte_gfn = spte_gfn,
	.walk_lockless = tdp_walk_lockless,
	.map_shared = tdp_map,
	.get_root = tdp_get_root,
	.put_root = tdp_put_root,
	.invalidate_roots = tdp_invalidate_roots,
	.zap_invalidated_roots = tdp_zap_invalidated_roots,
	.check = tdp_check,
};
