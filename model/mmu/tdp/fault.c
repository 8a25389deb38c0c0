// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/tdp/tdp.h"

#include "model/policy/preset.h"

/* Sees to it that the entry leads to a table. False: another vCPU changed it meanwhile, or there is
 * no memory; the fault is taken again. */
static bool lead_to_table(struct kvm_vcpu *v, struct tdp_iter *it)
{
	struct kvm_mmu_page *sp;
	bool ok;

	if (tdp_iter_huge(it) && !v->kvm->preset->split_on_fault) {
		if (!tdp_zap_spte_atomic(it))
			return false;
		it->old_spte = spte_reread(it->t, it->sptep);
	}
	if (it->old_spte == REMOVED_SPTE)
		return false;
	if (spte_present(it->old_spte) && !tdp_iter_huge(it))
		return true;
	mmu_stock_take_sp(v, false);
	sp = tdp_alloc_sp(it->t, it->kvm);
	if (!sp)
		return false;
	if (tdp_iter_huge(it)) {
		ok = tdp_split_huge_page(it, v, sp, true);
	} else {
		tdp_init_child_sp(it, v, sp);
		ok = tdp_link_sp(it, sp, true);
	}
	if (!ok)
		call_rcu(it->t, it->kvm, sp);
	return ok;
}

/* Its MMIO spte is put there, if it is not the one that is there: the access is to be emulated. */
static enum ret_pf map_device(struct kvm_vcpu *v, struct tdp_iter *it)
{
	uint64_t spte = make_mmio_spte(v, it->gfn, ACC_ALL);

	if (spte != it->old_spte && !tdp_set_spte_atomic(it, spte))
		return RET_PF_RETRY;
	v->stat[STAT_pf_mmio_spte_created]++;
	trace_mark_mmio_spte(v, it->gfn, spte);
	return RET_PF_EMULATE;
}

static enum ret_pf map_target(struct kvm_vcpu *v, const struct kvm_page_fault *f,
			      struct tdp_iter *it)
{
	enum ret_pf ret = RET_PF_FIXED;
	uint64_t spte;
	bool wrprot;

	charge(v->task, COUNT_set_spte, 1);
	if (!f->slot)
		return map_device(v, it);
	spte = make_spte(v, sptep_to_sp(it->sptep), f->slot, ACC_ALL, it->gfn, f->pfn, it->old_spte,
			 false, true, f->map_writable, &wrprot);
	if (spte == it->old_spte)
		ret = RET_PF_SPURIOUS;
	else if (!tdp_set_spte_atomic(it, spte))
		return RET_PF_RETRY;
	else if (spte_present(it->old_spte) && (!tdp_iter_leaf(it) || v->kvm->preset->arm64))
		kvm_flush_remote_tlbs(v->task, v->kvm); /* of a table, or what it did not grant */
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_set_spte, .level = it->level,
			.gfn = it->gfn, .index = spte_index(it->sptep), .spte = spte,
			.writable = spte_writable(spte));
	return ret;
}

int tdp_map(struct kvm_vcpu *v, struct kvm_page_fault *f)
{
	struct tdp_iter it;
	int r = RET_PF_RETRY;

	hugepage_adjust(v, f);
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_spte_requested, .gfn = f->gfn,
			.level = f->goal_level);
	tdp_iter_begin(&it, v->task, v->kvm, v->root.sp, PG_LEVEL_4K, f->gfn, COUNT_shadow_level);
	for_each_tdp_spte(&it, f->gfn + 1)
	{
		if (it.level == f->goal_level) {
			if (it.old_spte != REMOVED_SPTE)
				r = map_target(v, f, &it);
			break;
		}
		if (!lead_to_table(v, &it))
			break;
	}
	tdp_iter_end(&it);
	return v->kvm->dead ? KVMSIM_ENOMEM : r;
}

uint64_t *tdp_walk_lockless(struct kvm_vcpu *v, uint64_t addr, uint64_t *spte)
{
	gfn_t gfn = addr >> PAGE_SHIFT;
	struct tdp_iter it;
	uint64_t *sptep = NULL;

	tdp_iter_begin(&it, v->task, v->kvm, v->root.sp, PG_LEVEL_4K, gfn, COUNT_shadow_level);
	for_each_tdp_spte(&it, gfn + 1)
	{
		sptep = it.sptep;
		*spte = it.old_spte;
	}
	tdp_iter_end(&it);
	return sptep;
}
