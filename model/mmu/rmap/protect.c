// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"
#include "model/policy/preset.h"

/* @pt_protect: the page becomes a shadowed page table, so W may not come back by a fast fault. */
static bool spte_write_protect(struct task *t, struct kvm *kvm, uint64_t *sptep, bool pt_protect)
{
	uint64_t spte = spte_read(t, kvm, sptep);

	if (!spte_writable(spte) && !(pt_protect && (spte & SPTE_MMU_WRITABLE)))
		return false;
	charge(t, COUNT_write_protect, 1);
	spte = spte_reread(t, sptep) & ~PT_WRITABLE;
	if (pt_protect)
		spte &= ~SPTE_MMU_WRITABLE;
	return spte_update(t, kvm, sptep, spte);
}

bool rmap_write_protect(struct task *t, struct kvm *kvm, const struct kvm_rmap_head *head,
			bool pt_protect)
{
	struct rmap_iter it;
	uint64_t *sptep;
	bool flush = false;

	for_each_rmap_spte (t, kvm, head, &it, sptep) {
		charge(t, COUNT_rmap_spte, 1);
		flush |= spte_write_protect(t, kvm, sptep, pt_protect);
	}
	return flush;
}

bool write_protect_gfn_levels(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			      gfn_t gfn, int min_level)
{
	bool flush = false;

	for (int l = min_level; l <= MAX_HUGE_LEVEL; l++) {
		uint64_t addr;
		struct kvm_rmap_head *head = gfn_to_rmap(slot, gfn, l, &addr);

		charge(t, COUNT_rmap_head, 1);
		kvm_touch(t, kvm, addr, sizeof(head->val), false);
		flush |= rmap_write_protect(t, kvm, head, true);
	}
	return flush;
}

static bool write_protect_gfn(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			      gfn_t gfn)
{
	uint64_t addr;
	struct kvm_rmap_head *head = gfn_to_rmap(slot, gfn, PG_LEVEL_4K, &addr);

	charge(t, COUNT_rmap_head, 1);
	kvm_touch(t, kvm, addr, sizeof(head->val), false);
	return rmap_write_protect(t, kvm, head, false);
}

static void write_protect_masked(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				 gfn_t gfn, uint64_t mask)
{
	for (; mask; mask &= mask - 1) {
		charge(t, COUNT_dirty_page, 1);
		write_protect_gfn(t, kvm, slot, gfn + __builtin_ctzll(mask));
	}
}

static bool write_protect_huge(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			       gfn_t gfn)
{
	return write_protect_gfn_levels(t, kvm, slot, gfn, PG_LEVEL_2M);
}

/* Also an spte that is clean is updated: hardware may set its D meanwhile. */
bool rmap_clear_dirty(struct task *t, struct kvm *kvm, const struct kvm_rmap_head *head)
{
	struct rmap_iter it;
	uint64_t *sptep;
	bool flush = false;

	for_each_rmap_spte (t, kvm, head, &it, sptep) {
		charge(t, COUNT_rmap_spte, 1);
		charge(t, COUNT_clear_dirty, 1);
		flush |= spte_update(t, kvm, sptep, spte_read(t, kvm, sptep) & ~PT_DIRTY);
	}
	return flush;
}

static void clear_dirty_masked(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			       gfn_t gfn, uint64_t mask)
{
	for (; mask; mask &= mask - 1) {
		uint64_t addr;
		struct kvm_rmap_head *head =
			gfn_to_rmap(slot, gfn + __builtin_ctzll(mask), PG_LEVEL_4K, &addr);

		charge(t, COUNT_dirty_page, 1);
		charge(t, COUNT_rmap_head, 1);
		kvm_touch(t, kvm, addr, sizeof(head->val), false);
		rmap_clear_dirty(t, kvm, head);
	}
}

static bool zap_gfn(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn)
{
	bool flush = false;

	for (int l = PG_LEVEL_4K; l <= MAX_HUGE_LEVEL; l++)
		flush |= zap_rmap(t, kvm, slot, gfn, l);
	return flush;
}

static void for_each_shadow_page (struct task *t, struct kvm * kvm,
				  bool (*fn)(struct task *t, struct kvm *kvm,
					     struct kvm_mmu_page *sp, void *ctx),
				  void *ctx)
{
	struct kvm_mmu_page *sp;

	list_for_each_entry (sp, &kvm->active_pages, link) {
		charge(t, COUNT_walk_sp, 1);
		kvm_touch(t, kvm, sp->header_addr, KADDR_SP_HOT_BYTES, false);
		if (!fn(t, kvm, sp, ctx))
			return;
	}
	/* Of the background pages every spte is tested and none is writable. */
	for (uint64_t i = 0; i < kvm->n_background; i++) {
		charge(t, COUNT_walk_sp, 1);
		kvm_touch(t, kvm, kvm->background_header_addr[i], KADDR_SP_HOT_BYTES, false);
		if (kvm->preset->list_prefetch && i + 1 < kvm->n_background)
			kvm_prefetch(t, kvm, kvm->background_header_addr[i + 1],
				     KADDR_SP_HOT_BYTES);
		charge(t, COUNT_walk_spte, PTES_PER_PAGE);
		kvm_touch(t, kvm, kvm->background_spt_addr[i], PAGE_SIZE, false);
	}
}

static uint64_t *walk_lockless(struct kvm_vcpu *v, uint64_t addr, uint64_t *spte)
{
	struct shadow_walk w;
	uint64_t *sptep = NULL;

	for (shadow_walk_init(&w, v, addr); shadow_walk_okay(&w);
	     shadow_walk_next_at(&w, v->kvm, *spte)) {
		charge(v->task, COUNT_shadow_level, 1);
		sptep = w.sptep;
		*spte = spte_read(v->task, v->kvm, sptep);
	}
	return sptep;
}

static gfn_t spte_gfn(struct task *t, struct kvm *kvm, const uint64_t *sptep)
{
	const struct kvm_mmu_page *sp = sptep_to_sp(sptep);

	if (!sp->role.direct)
		kvm_touch(t, kvm, sp->translation_addr + spte_index(sptep) * 8, 8, false);
	return sp_gfn(sp, spte_index(sptep));
}

const struct mmu_backend mmu_backend_rmap = {
	.name = "rmap",
	.rmaps = true,
	.write_protect_masked = write_protect_masked,
	.write_protect_gfn = write_protect_gfn,
	.write_protect_huge = write_protect_huge,
	.clear_dirty_masked = clear_dirty_masked,
	.protect_slot = rmap_protect_slot,
	.clear_dirty_slot = rmap_clear_dirty_slot,
	.zap_collapsible = rmap_zap_collapsible,
	.split_huge = rmap_split_huge,
	.unmap_gfn_range = rmap_unmap_range,
	.zap_gfn = zap_gfn,
	.for_each_shadow_page = for_each_shadow_page,
	.spte_gfn = spte_gfn,
	.walk_lockless = walk_lockless,
	.check = rmap_check,
};
