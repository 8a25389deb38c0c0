// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

/*
 * Splitting large sptes ahead of the stores, when logging begins or at CLEAR: from 1G down to 4K,
 * each level by its rmaps. Tables come from a stock that is filled with mmu_lock let go, and none
 * is made when the VM has few left that it may use: what is large then stays so until a store.
 */

/* A split ends here, where a fault would begin to free old pages. */
#define MIN_FREE_MMU_PAGES 5
/* Tables that the stock is filled up to (the kernel's KVM_ARCH_NR_OBJS_PER_MEMORY_CACHE). */
#define SPLIT_STOCK 40

static void split(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *sptep)
{
	uint64_t huge_spte = spte_read(t, kvm, sptep);
	struct kvm_mmu_page *sp = get_split_sp(t, kvm, sptep);
	bool flush = false;

	if (!sp)
		return;
	charge(t, COUNT_split_huge, 1);
	for (unsigned i = 0; i < PTES_PER_PAGE; i++) {
		uint64_t *child = &sp->spt[i];

		/* The table may be in use for another alias of the page. Where an entry of it leads
		 * to smaller ones, not all of which need be there, something is unmapped. */
		if (spte_present(spte_reread(t, child))) {
			flush |= !spte_last(*child, sp->role.level);
			continue;
		}
		charge(t, COUNT_split_spte, 1);
		spte_write(t, kvm, child, split_spte(huge_spte, sp->role.level, i));
		rmap_add(t, kvm, slot, child, sp_gfn(sp, i), sp->role.access);
	}
	replace_by_table(t, kvm, sptep, sp, flush);
}

/* Fills the stock with mmu_lock let go. */
static void top_up(struct task *t, struct kvm *kvm)
{
	mmu_unlock(t, kvm);
	if (kvm->split_stock < 1) {
		charge(t, COUNT_stock_object, SPLIT_STOCK - kvm->split_stock);
		charge(t, COUNT_stock_page, SPLIT_STOCK - kvm->split_stock);
		kvm->split_stock = SPLIT_STOCK;
	}
	(void)mmu_lock(t, kvm, "shadow_mmu_try_split_huge_page"); /* lost: the task is cancelled */
}

enum split_result { SPLIT_DONE, SPLIT_AGAIN, SPLIT_NO_ROOM };

static enum split_result try_split(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				   uint64_t *sptep)
{
	const struct kvm_mmu_page *sp = sptep_to_sp(sptep);
	gfn_t gfn = sp_gfn(sp, spte_index(sptep));
	uint64_t spte = spte_read(t, kvm, sptep);
	enum split_result r = SPLIT_DONE;
	int level = sp->role.level;

	if (available_mmu_pages(kvm) <= MIN_FREE_MMU_PAGES) {
		r = SPLIT_NO_ROOM;
	} else if (!kvm->split_stock || mmu_lock_contended(t, kvm)) {
		top_up(t, kvm);
		r = SPLIT_AGAIN;
	} else {
		split(t, kvm, slot, sptep);
	}
	kvm_trace_event(t, kvm, NULL, .id = TRACE_kvm_mmu_split_huge_page, .gfn = gfn, .spte = spte,
			.level = level, .code = r);
	return r;
}

static bool split_rmap(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		       struct kvm_rmap_head *head, uint64_t head_addr)
{
	struct rmap_iter it;
	uint64_t *sptep;

	(void)head_addr;
restart:
	for_each_rmap_spte (t, kvm, head, &it, sptep) {
		charge(t, COUNT_rmap_spte, 1);
		if (try_split(t, kvm, slot, sptep) == SPLIT_NO_ROOM || kvm->dead ||
		    task_canceled(t))
			break;
		/* The chain has changed, or may have while mmu_lock was let go. */
		goto restart;
	}
	return false;
}

/* The kernel's walk over rmaps looks at the first even when the range is empty, as it is at CLEAR
 * of one page. */
int rmap_split_huge(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t start,
		    gfn_t end, bool locked)
{
	int r = locked ? 0 : mmu_lock(t, kvm, "kvm_mmu_slot_try_split_huge_pages");

	for (int l = MAX_HUGE_LEVEL; l > PG_LEVEL_4K && r >= 0; l--) {
		struct slot_pass p = {.fn = split_rmap,
				      .min_level = l,
				      .max_level = l,
				      .first = start,
				      .last = end > start ? end - 1 : start};

		r = slot_handle_rmaps(t, kvm, slot, &p);
	}
	if (!locked)
		mmu_unlock(t, kvm);
	return r < 0 ? r : 0;
}
