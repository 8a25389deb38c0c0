// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/tdp/tdp.h"

#include "model/policy/preset.h"

/*
 * New tables; and those that take the place of a large leaf, ahead of the stores or by a fault. A
 * split changes nothing that a CPU may have cached, so it flushes nothing.
 */

struct kvm_mmu_page *tdp_alloc_sp(struct task *t, struct kvm *kvm)
{
	struct kvm_mmu_page *sp;

	charge(t, COUNT_get_page, 1);
	sp = alloc_page_table(t, kvm);
	if (sp)
		sp->tdp_mmu_page = true;
	return sp;
}

void tdp_init_sp(struct task *t, struct kvm *kvm, const struct kvm_vcpu *v, struct kvm_mmu_page *sp,
		 gfn_t gfn, union kvm_mmu_page_role role)
{
	sp->role = role;
	sp->gfn = gfn;
	kvm_trace_page(t, kvm, v, TRACE_kvm_mmu_get_page, sp, true);
}

void tdp_init_child_sp(struct tdp_iter *it, const struct kvm_vcpu *v, struct kvm_mmu_page *sp)
{
	union kvm_mmu_page_role role = sptep_to_sp(it->sptep)->role;

	role.level--;
	tdp_init_sp(it->t, it->kvm, v, sp, it->gfn, role);
}

bool tdp_link_sp(struct tdp_iter *it, struct kvm_mmu_page *sp, bool shared)
{
	charge(it->t, COUNT_link_page, 1);
	if (!shared)
		tdp_set_spte(it, nonleaf_spte(it->kvm, sp));
	else if (!tdp_set_spte_atomic(it, nonleaf_spte(it->kvm, sp)))
		return false;
	it->kvm->n_tdp_pages++;
	return true;
}

bool tdp_split_huge_page(struct tdp_iter *it, const struct kvm_vcpu *v, struct kvm_mmu_page *sp,
			 bool shared)
{
	struct kvm *kvm = it->kvm;
	uint64_t huge = it->old_spte;
	bool ok;

	tdp_init_child_sp(it, v, sp);
	charge(it->t, COUNT_split_spte, PTES_PER_PAGE);
	kvm_touch(it->t, kvm, sp->spt_addr, PAGE_SIZE, true);
	for (unsigned i = 0; i < PTES_PER_PAGE; i++)
		sp->spt[i] = split_spte(huge, sp->role.level, i);
	ok = tdp_link_sp(it, sp, shared);
	if (ok)
		kvm->stat[page_stat(sp->role.level)] += PTES_PER_PAGE;
	kvm_trace_event(it->t, kvm, v, .id = TRACE_kvm_mmu_split_huge_page, .gfn = it->gfn,
			.spte = huge, .level = it->level);
	return ok;
}

/* The table for the next split. Later kernels let go of mmu_lock to allocate it; those before
 * do only when no page is free at once, and here there always is. */
static struct kvm_mmu_page *alloc_for_split(struct tdp_iter *it, bool shared)
{
	struct kvm_mmu_page *sp;

	charge(it->t, COUNT_stock_object, 1);
	charge(it->t, COUNT_stock_page, 1);
	if (!it->kvm->preset->split_unlocked)
		return tdp_alloc_sp(it->t, it->kvm);
	tdp_iter_unlock(it, shared);
	sp = tdp_alloc_sp(it->t, it->kvm);
	tdp_iter_relock(it, shared, "tdp_mmu_alloc_sp_for_split");
	return sp;
}

/* Splits what @it is at, if it is large, with *@sp, which it makes and uses up. */
static void split_here(struct tdp_iter *it, struct kvm_mmu_page **sp, bool shared)
{
	/* Again when another changed the entry meanwhile. */
	while (!tdp_iter_cond_resched(it, shared) && tdp_iter_huge(it)) {
		if (!*sp)
			*sp = alloc_for_split(it, shared);
		if (!*sp || it->yielded)
			return;
		if (!tdp_split_huge_page(it, NULL, *sp, shared))
			continue;
		*sp = NULL;
		return;
	}
}

/* Down to 4K: an entry is met before what it leads to, so that the parts are split next. */
static void split_root(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root, gfn_t start,
		       gfn_t end, bool shared)
{
	struct kvm_mmu_page *sp = NULL;
	struct tdp_iter it;

	tdp_iter_begin(&it, t, kvm, root, PG_LEVEL_2M, start, COUNT_tdp_spte);
	for_each_tdp_spte(&it, end)
	{
		split_here(&it, &sp, shared);
		if (kvm->dead)
			break;
	}
	tdp_iter_end(&it);
	if (sp)
		call_rcu(t, kvm, sp);
}

int tdp_split_huge(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t start,
		   gfn_t end, bool locked)
{
	struct kvm_mmu_page *root;
	int r = locked ? 0 : mmu_read_lock(t, kvm, "kvm_mmu_slot_try_split_huge_pages");

	(void)slot;
	if (r)
		return r;
	for_each_tdp_root(t, kvm, root, true) split_root(t, kvm, root, start, end, !locked);
	if (!locked)
		mmu_read_unlock(t, kvm);
	return 0;
}
