// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

/* Passes over the rmaps of a slot: when logging begins, when it ends, when the host unmaps. */

/* What was changed is flushed before others have mmu_lock, where the pass says so. */
static int let_others(struct task *t, struct kvm *kvm, const struct slot_pass *p, bool *flush)
{
	if (!mmu_lock_contended(t, kvm))
		return 0;
	if (*flush && p->flush_on_yield) {
		kvm_flush_remote_tlbs(t, kvm);
		*flush = false;
	}
	return mmu_lock_break(t, kvm, "slot_handle_level_range");
}

int slot_handle_rmaps(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		      const struct slot_pass *p)
{
	bool flush = false;
	int r;

	for (int l = p->min_level; l <= p->max_level; l++) {
		uint64_t last = memslot_index(slot, p->last, l);

		for (uint64_t i = memslot_index(slot, p->first, l); i <= last; i++) {
			uint64_t addr = slot->rmap_addr[l - 1] + i * sizeof(*slot->rmap[0]);

			charge(t, COUNT_slot_rmap_head, 1);
			kvm_touch(t, kvm, addr, sizeof(*slot->rmap[0]), false);
			if (slot->rmap[l - 1][i].val)
				charge(t, COUNT_slot_rmap_used, 1);
			flush |= p->fn(t, kvm, slot, &slot->rmap[l - 1][i], addr);
			if (task_canceled(t))
				return KVMSIM_ECANCELED;
			r = let_others(t, kvm, p, &flush);
			if (r)
				return r;
		}
	}
	return flush;
}

/* The whole slot, mmu_lock not held. */
static int whole_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		      struct slot_pass *p, const char *caller)
{
	int r = mmu_lock(t, kvm, caller);

	if (r)
		return r;
	p->first = slot->base_gfn;
	p->last = slot->base_gfn + slot->npages - 1;
	r = slot_handle_rmaps(t, kvm, slot, p);
	mmu_unlock(t, kvm);
	return r;
}

static bool protect_for_log(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			    struct kvm_rmap_head *head, uint64_t head_addr)
{
	(void)slot;
	(void)head_addr;
	return rmap_write_protect(t, kvm, head, false);
}

int rmap_protect_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, int min_level)
{
	struct slot_pass p = {
		.fn = protect_for_log, .min_level = min_level, .max_level = MAX_HUGE_LEVEL};

	return whole_slot(t, kvm, slot, &p, "kvm_mmu_slot_remove_write_access");
}

static bool clear_dirty(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			struct kvm_rmap_head *head, uint64_t head_addr)
{
	(void)slot;
	(void)head_addr;
	return rmap_clear_dirty(t, kvm, head);
}

int rmap_clear_dirty_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	struct slot_pass p = {
		.fn = clear_dirty, .min_level = PG_LEVEL_4K, .max_level = PG_LEVEL_4K};

	return whole_slot(t, kvm, slot, &p, "kvm_mmu_slot_leaf_clear_dirty");
}

/* Whether a larger page could map what the table of this spte does. A table that shadows the
 * guest's is as large as the guest's pages allow, and lies where no large page may be; one that
 * begins before the slot cannot be larger, and the slot has no account of large pages there. */
static bool collapsible(struct task *t, struct kvm *kvm, const struct kvm_memory_slot *slot,
			const uint64_t *sptep)
{
	const struct kvm_mmu_page *sp = sptep_to_sp(sptep);

	charge(t, COUNT_rmap_spte, 1);
	kvm_touch(t, kvm, sp->header_addr, KADDR_SP_HOT_BYTES, false);
	return sp->role.direct && sp->gfn - slot->base_gfn < slot->npages &&
	       (int)sp->role.level <
		       max_mapping_level(t, kvm, slot, sp->gfn, MAX_HUGE_LEVEL, COUNT_host_level);
}

static bool zap_collapsible(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			    struct kvm_rmap_head *head, uint64_t head_addr)
{
	bool flush = false;
	struct rmap_iter it;
	uint64_t *sptep;

restart:
	for_each_rmap_spte (t, kvm, head, &it, sptep)
		if (collapsible(t, kvm, slot, sptep)) {
			zap_one_rmap_spte(t, kvm, head, head_addr, sptep);
			flush = true;
			goto restart;
		}
	return flush;
}

int rmap_zap_collapsible(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	struct slot_pass p = {.fn = zap_collapsible,
			      .min_level = PG_LEVEL_4K,
			      .max_level = MAX_HUGE_LEVEL - 1,
			      .flush_on_yield = true};

	return whole_slot(t, kvm, slot, &p, "kvm_mmu_zap_collapsible_sptes");
}

/* An MMU notifier's: mmu_lock is kept all the way. */
bool rmap_unmap_range(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t start,
		      gfn_t end, bool may_yield)
{
	bool flush = false;

	(void)may_yield;
	for (int l = PG_LEVEL_4K; l <= MAX_HUGE_LEVEL; l++)
		for (uint64_t i = memslot_index(slot, start, l);
		     i <= memslot_index(slot, end - 1, l); i++) {
			uint64_t addr = slot->rmap_addr[l - 1] + i * sizeof(*slot->rmap[0]);
			struct kvm_rmap_head *head = &slot->rmap[l - 1][i];

			charge(t, COUNT_slot_rmap_head, 1);
			kvm_touch(t, kvm, addr, sizeof(*head), false);
			if (head->val)
				charge(t, COUNT_slot_rmap_used, 1);
			flush |= zap_all_rmap_sptes(t, kvm, head, addr);
		}
	return flush;
}
