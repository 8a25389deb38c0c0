// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/tdp/tdp.h"

struct kvm_mmu_page *tdp_alloc_sp(struct kvm_vcpu *v, gfn_t gfn, union kvm_mmu_page_role role)
{
	struct kvm_mmu_page *sp;

	charge(v->task, COUNT_get_page, 1);
	sp = alloc_page_table(v->task, v->kvm);
	if (!sp)
		return NULL;
	sp->role = role;
	sp->gfn = gfn;
	sp->tdp_mmu_page = true;
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_get_page, .gfn = gfn,
			.level = role.level, .direct = role.direct, .created = true);
	return sp;
}

/* A table below the entry, which has none. False: another vCPU changed the entry meanwhile, or
 * there is no memory; the fault is taken again. */
static bool link_table(struct kvm_vcpu *v, struct tdp_iter *it)
{
	union kvm_mmu_page_role role = sptep_to_sp(it->sptep)->role;
	struct kvm_mmu_page *sp;

	role.level--;
	sp = tdp_alloc_sp(v, it->gfn, role);
	if (!sp)
		return false;
	charge(v->task, COUNT_link_page, 1);
	if (!tdp_set_spte_atomic(it, nonleaf_spte(v->kvm, sp))) {
		call_rcu(v->task, v->kvm, sp);
		return false;
	}
	v->kvm->n_tdp_pages++;
	return true;
}

static enum ret_pf map_target(struct kvm_vcpu *v, const struct kvm_page_fault *f,
			      struct tdp_iter *it)
{
	enum ret_pf ret = RET_PF_FIXED;
	uint64_t spte;
	bool wrprot;

	charge(v->task, COUNT_set_spte, 1);
	spte = make_spte(v, sptep_to_sp(it->sptep), f->slot, ACC_ALL, it->gfn, f->pfn, it->old_spte,
			 false, f->map_writable, &wrprot);
	if (spte == it->old_spte)
		ret = RET_PF_SPURIOUS;
	else if (!tdp_set_spte_atomic(it, spte))
		return RET_PF_RETRY;
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_set_spte, .level = it->level,
			.gfn = it->gfn, .spte = spte, .writable = spte_writable(spte));
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
		if (!spte_present(it.old_spte) &&
		    (it.old_spte == REMOVED_SPTE || !link_table(v, &it)))
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
