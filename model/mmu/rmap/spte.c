// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

#include "model/policy/preset.h"

uint64_t nonleaf_spte(const struct kvm *kvm, const struct kvm_mmu_page *sp)
{
	return SPTE_MMU_PRESENT | sp->pfn << PAGE_SHIFT | PT_PRESENT | PT_WRITABLE | PT_USER |
	       (kvm->ad_enabled ? PT_ACCESSED : 0);
}

bool spte_update(struct task *t, struct kvm *kvm, uint64_t *sptep, uint64_t spte)
{
	uint64_t old;

	kvm_touch(t, kvm, sptep_addr(sptep), sizeof(*sptep), true);
	mmu_lock_assert_held(t, kvm, "an spte");
	old = spte_reread(t, sptep);
	*sptep = spte;
	if (!spte_present(old))
		return false;
	return ((old & SPTE_MMU_WRITABLE) && !spte_writable(spte)) ||
	       (old & ~spte & (PT_ACCESSED | PT_DIRTY));
}

uint64_t make_spte(struct kvm_vcpu *v, const struct kvm_mmu_page *sp, struct kvm_memory_slot *slot,
		   unsigned access, gfn_t gfn, pfn_t pfn, uint64_t old, bool prefetch,
		   bool can_unsync, bool host_writable, bool *wrprot)
{
	struct kvm *kvm = v->kvm;
	int level = sp->role.level;
	uint64_t spte = SPTE_MMU_PRESENT | PT_PRESENT | pfn << PAGE_SHIFT;
	bool accessed = !prefetch || (!can_unsync && kvm->preset->spte_keeps_dirty);

	*wrprot = false;
	if (accessed && kvm->ad_enabled)
		spte |= PT_ACCESSED;
	if (!(access & ACC_EXEC))
		spte |= PT_NX;
	if (access & ACC_USER)
		spte |= PT_USER;
	if (level > PG_LEVEL_4K)
		spte |= PT_PAGE_SIZE;
	if (host_writable)
		spte |= SPTE_HOST_WRITABLE;
	else
		access &= ~ACC_WRITE;
	if (access & ACC_WRITE) {
		spte |= PT_WRITABLE | SPTE_MMU_WRITABLE;
		/* A writable spte of the same page: what follows was looked at then, and D will
		 * be set by hardware, or is. The kernel does not ask whether it maps anything, so
		 * an mmio spte that allows stores counts, too, once its place has memory. */
		if (!(spte_last(old, level) && spte_writable(old))) {
			*wrprot = !mmu_try_to_unsync_pages(v->task, kvm, slot, gfn, can_unsync,
							   prefetch);
			if (*wrprot)
				spte &= ~(PT_WRITABLE | SPTE_MMU_WRITABLE);
			else if (kvm->ad_enabled)
				spte |= PT_DIRTY;
		} else if (kvm->preset->spte_keeps_dirty && kvm->ad_enabled) {
			spte |= PT_DIRTY;
		}
	}
	if (!accessed && !kvm->ad_enabled)
		spte &= ~(PT_PRESENT | PT_WRITABLE);
	if (spte_writable(spte))
		mark_page_dirty_in_slot(v->task, kvm, slot, gfn);
	return spte;
}

enum ret_pf set_spte(struct kvm_vcpu *v, struct kvm_memory_slot *slot, uint64_t *sptep,
		     unsigned access, gfn_t gfn, pfn_t pfn, const struct kvm_page_fault *fault)
{
	struct kvm_mmu_page *sp = sptep_to_sp(sptep);
	struct task *t = v->task;
	struct kvm *kvm = v->kvm;
	bool host_writable = !fault || fault->map_writable;
	bool was_rmapped = false, flush = false, wrprot;
	enum ret_pf ret = RET_PF_FIXED;
	uint64_t old = spte_read(t, kvm, sptep), spte;
	int level = sp->role.level;

	charge(t, fault ? COUNT_set_spte : COUNT_prefetch_spte, 1);
	if (spte_present(old)) {
		if (level > PG_LEVEL_4K && !(old & PT_PAGE_SIZE)) {
			drop_parent_pte(t, kvm, spte_to_child(kvm, old), sptep);
			flush = true;
		} else if (pfn != spte_pfn(old)) {
			drop_spte(t, kvm, sptep);
			flush = true;
		} else {
			was_rmapped = true;
		}
	}
	if (!slot) {
		v->stat[STAT_pf_mmio_spte_created]++;
		mark_mmio_spte(v, sptep, gfn, access);
		if (flush)
			kvm_flush_remote_tlbs(t, kvm);
		return RET_PF_EMULATE;
	}
	spte = make_spte(v, sp, slot, access, gfn, pfn, spte_reread(t, sptep), !fault, true,
			 host_writable, &wrprot);
	if (spte_reread(t, sptep) == spte) {
		ret = RET_PF_SPURIOUS;
	} else {
		flush |= spte_update(t, kvm, sptep, spte);
		kvm_trace_event(t, kvm, v, .id = TRACE_kvm_mmu_set_spte, .level = level, .gfn = gfn,
				.index = spte_index(sptep), .spte = spte,
				.writable = spte_writable(spte));
	}
	if (wrprot && fault && fault->write)
		ret = RET_PF_EMULATE;
	if (flush)
		kvm_flush_remote_tlbs(t, kvm);
	if (!was_rmapped) {
		charge(t, COUNT_rmap_add, 1);
		rmap_add(t, kvm, slot, sptep, gfn, access);
	} else if (!sp->role.direct) {
		sp->translation[spte_index(sptep)] = gfn << PAGE_SHIFT | access;
	}
	return ret;
}
