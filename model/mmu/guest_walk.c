// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "model/mmu/check.h"
#include "model/mmu/mmu.h"

/* The walker in software of 4-level guest page tables: what a shadow fault and the emulator use. */

unsigned guest_pte_access(uint64_t pte)
{
	unsigned access = ACC_EXEC;

	if (pte & PT_WRITABLE)
		access |= ACC_WRITE;
	if (pte & PT_USER)
		access |= ACC_USER;
	return access;
}

int guest_fault_error(const struct kvm_vcpu *v, gva_t gva, uint64_t code)
{
	return kvmsim_err(
		sim_errors(v->kvm->sim), KVMSIM_EINVAL,
		"vCPU %u: page fault of the guest's own at %#llx, code %#llx: guests here "
		"have no handler",
		v->id, (unsigned long long)gva, (unsigned long long)code);
}

static int guest_fault(struct kvm_vcpu *v, struct guest_walk *w, uint64_t code, uint64_t access)
{
	w->fault_code = code | (access & (PFERR_WRITE | PFERR_USER));
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_walker_error,
			.code = w->fault_code);
	return 0;
}

/* Sets A on the way and, for a write, D in the last entry, in the guest's memory. */
static void update_accessed_dirty(struct kvm_vcpu *v, struct guest_walk *w, bool write)
{
	for (int l = w->max_level; l >= w->level; l--) {
		uint64_t old = w->ptes[l - 1], pte = old;

		if (!(pte & PT_ACCESSED)) {
			pte |= PT_ACCESSED;
			kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_set_accessed_bit,
					.addr = w->pte_gpa[l - 1], .gfn = w->table_gfn[l - 1],
					.level = l);
		}
		if (l == w->level && write && !(pte & PT_DIRTY)) {
			pte |= PT_DIRTY;
			kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_set_dirty_bit,
					.addr = w->pte_gpa[l - 1], .gfn = w->table_gfn[l - 1],
					.level = l);
		}
		if (pte == old)
			continue;
		charge(v->task, COUNT_gpte_update, 1);
		touch_shared(v->task);
		gmem_store(v->task, v->kvm, w->pte_gpa[l - 1], 8, pte, true);
		store_log_add(v->kvm, w->table_gfn[l - 1], task_now(v->task));
		kvm_mark_page_dirty(v->task, v->kvm, w->table_gfn[l - 1]);
		w->ptes[l - 1] = pte;
	}
}

int guest_walk_addr(struct kvm_vcpu *v, struct guest_walk *w, gva_t addr, uint64_t access)
{
	bool write = access & PFERR_WRITE;
	uint64_t pte = v->cr3, pt_access;
	unsigned acc = ACC_ALL;

	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_pagetable_walk, .code = access,
			.addr = addr, .gfn = addr >> PAGE_SHIFT);
	memset(w, 0, sizeof(*w));
	w->max_level = ROOT_LEVEL_4;
	for (int l = ROOT_LEVEL_4;; l--) {
		gfn_t table = (pte & PT_ADDR_MASK) >> PAGE_SHIFT;

		pt_access = acc;
		w->level = l;
		w->table_gfn[l - 1] = table;
		w->pte_gpa[l - 1] = (table << PAGE_SHIFT) + pt_index(addr, l) * 8;
		charge(v->task, COUNT_guest_walk_level, 1);
		if (!memslot_visible(v->task, v->kvm, table))
			return guest_fault(v, w, 0, access);
		pte = gmem_load(v->task, v->kvm, w->pte_gpa[l - 1], 8);
		kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_paging_element, .level = l,
				.spte = pte);
		if (!(pte & PT_PRESENT))
			return guest_fault(v, w, 0, access);
		if ((pte & PT_NX) || (l == ROOT_LEVEL_4 && (pte & PT_PAGE_SIZE)))
			return guest_fault(v, w, PFERR_PRESENT | PFERR_RSVD, access);
		w->ptes[l - 1] = pte;
		w->pt_access[l - 1] = pt_access;
		acc &= guest_pte_access(pte);
		if (l == PG_LEVEL_4K || (pte & PT_PAGE_SIZE))
			break;
	}
	w->pte_access = acc;
	if ((write && !(acc & ACC_WRITE)) || ((access & PFERR_USER) && !(acc & ACC_USER)))
		return guest_fault(v, w, PFERR_PRESENT, access);
	w->gfn = ((pte & PT_ADDR_MASK) >> PAGE_SHIFT & ~(pages_per_level(w->level) - 1)) +
		 ((addr >> PAGE_SHIFT) & (pages_per_level(w->level) - 1));
	if (!write && !(pte & PT_DIRTY))
		w->pte_access &= ~ACC_WRITE; /* so that the first write comes here to set D */
	update_accessed_dirty(v, w, write);
	return 1;
}
