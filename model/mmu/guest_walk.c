// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "model/mmu/check.h"
#include "model/mmu/mmu.h"

/* The walker in software of guest page tables: what a shadow fault and the emulator use. */

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
	if (v->paging.nx || v->paging.smep)
		w->fault_code |= access & PFERR_FETCH;
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_walker_error,
			.code = w->fault_code);
	return 0;
}

/* Sets A on the way and, for a write, D in the last entry, in the guest's memory. False: an entry
 * is no longer what was read, since the guest or another walk has changed it, and stays. */
static bool update_accessed_dirty(struct kvm_vcpu *v, struct guest_walk *w, bool write)
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
		if (pte == old || memslot_readonly(v->task, v->kvm, w->table_gfn[l - 1]))
			continue;
		charge(v->task, COUNT_gpte_update, 1);
		touch_shared(v->task);
		if (gmem_load(v->task, v->kvm, w->pte_gpa[l - 1], gpte_bytes(&v->paging)) != old)
			return false;
		gmem_store(v->task, v->kvm, w->pte_gpa[l - 1], gpte_bytes(&v->paging), pte, true);
		store_log_add(v->kvm, w->table_gfn[l - 1], task_now(v->task));
		kvm_mark_page_dirty(v->task, v->kvm, w->table_gfn[l - 1]);
		w->ptes[l - 1] = pte;
	}
	return true;
}

int load_pdptrs(struct kvm_vcpu *v, gpa_t cr3)
{
	uint64_t pdptes[4];

	for (unsigned i = 0; i < 4; i++) {
		pdptes[i] = gmem_load(v->task, v->kvm, (cr3 & ~31ull) + i * 8, 8);
		if (pdpte_reserved(&v->paging, pdptes[i]))
			return PDPTRS_INVALID;
	}
	if (!memcmp(pdptes, v->pdptrs, sizeof(pdptes)))
		return PDPTRS_SAME;
	memcpy(v->pdptrs, pdptes, sizeof(pdptes));
	return PDPTRS_CHANGED;
}

/* Where the CPU has not loaded them KVM does: when they are no valid ones, it goes on with those
 * that it had. */
uint64_t guest_pdpte(struct kvm_vcpu *v, gva_t addr)
{
	if (v->kvm->pdptrs_in_memory) {
		touch_shared(v->task);
		(void)load_pdptrs(v, v->cr3);
	}
	return v->pdptrs[(addr >> 30) & 3];
}

gpa_t sp_gpte_gpa(const struct kvm_mmu_page *sp, unsigned index)
{
	gpa_t table = sp->gfn << PAGE_SHIFT;

	if (!sp->role.has_4_byte_gpte)
		return table + index * 8;
	index += sp->role.quadrant * PTES_PER_PAGE;
	return table + (sp->role.level == PG_LEVEL_4K ? index : index / 2) * 4;
}

#define WALK_AGAIN (-1)

/* One walk, or as much of one as there was until an entry had changed under it: WALK_AGAIN. */
static int walk_once(struct kvm_vcpu *v, struct guest_walk *w, gva_t addr, uint64_t access)
{
	const struct paging_mode *m = &v->paging;
	bool write = access & PFERR_WRITE;
	uint64_t pte = v->cr3, pt_access;
	unsigned acc = ACC_ALL;
	int level = m->level;

	memset(w, 0, sizeof(*w));
	if (level == PT32E_ROOT_LEVEL) {
		pte = guest_pdpte(v, addr);
		kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_paging_element,
				.level = level, .spte = pte);
		if (!(pte & PT_PRESENT))
			return guest_fault(v, w, 0, access);
		level--;
	}
	w->max_level = level;
	for (;; level--) {
		gfn_t table = (pte & PT_ADDR_MASK) >> PAGE_SHIFT;

		pt_access = acc;
		w->level = level;
		w->table_gfn[level - 1] = table;
		w->pte_gpa[level - 1] = (table << PAGE_SHIFT) + gpte_offset(m, addr, level);
		charge(v->task, COUNT_guest_walk_level, 1);
		if (!memslot_visible(v->task, v->kvm, table))
			return guest_fault(v, w, 0, access);
		pte = gmem_load(v->task, v->kvm, w->pte_gpa[level - 1], gpte_bytes(m));
		kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_paging_element,
				.level = level, .spte = pte);
		if (!(pte & PT_PRESENT))
			return guest_fault(v, w, 0, access);
		if (gpte_reserved(m, pte, level))
			return guest_fault(v, w, PFERR_PRESENT | PFERR_RSVD, access);
		w->ptes[level - 1] = pte;
		w->pt_access[level - 1] = pt_access;
		acc &= gpte_access(pte);
		if (gpte_last(m, pte, level))
			break;
	}
	w->pte_access = acc;
	if (permission_fault(m->permissions, acc, access))
		return guest_fault(v, w, PFERR_PRESENT, access);
	w->gfn = gpte_gfn(m, pte, level) + ((addr >> PAGE_SHIFT) & (gpte_pages(m, level) - 1));
	if (!write && !(pte & PT_DIRTY))
		w->pte_access &= ~ACC_WRITE; /* so that the first write comes here to set D */
	return update_accessed_dirty(v, w, write) ? 1 : WALK_AGAIN;
}

int guest_walk_addr(struct kvm_vcpu *v, struct guest_walk *w, gva_t addr, uint64_t access)
{
	int r;

	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_pagetable_walk, .code = access,
			.addr = addr, .gfn = addr >> PAGE_SHIFT);
	do
		r = walk_once(v, w, addr, access);
	while (r == WALK_AGAIN);
	return r;
}
