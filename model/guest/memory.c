// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/run.h"
#include "model/guest/vm.h"
#include "model/mmu/check.h"

void guest_store(struct kvm_vcpu *v, gpa_t gpa, unsigned len, uint64_t value)
{
	struct kvm *kvm = v->kvm;

	if (v->insn == INSN_RMW)
		value += gmem_load(v->task, kvm, gpa, len);
	gmem_store(v->task, kvm, gpa, len, value, kvm->keep_stores);
	store_log_add(kvm, gpa >> PAGE_SHIFT, task_now(v->task));
}

/* Translations of a page whose contents were of no interest till now must not be used unseen. */
static void forget_private(struct kvm *kvm, gfn_t gfn)
{
	for (uint32_t i = 0; i < kvm->n_vcpus; i++) {
		struct vcpu_tlb *tlb = &kvm->vcpus[i]->tlb;

		for (uint64_t j = 0; j <= tlb->mask; j++)
			if (tlb_gfn(&tlb->entry[j]) == gfn)
				tlb->entry[j].gfn_flags &= ~(uint64_t)TLB_PRIVATE;
	}
}

void kvm_write_guest_u64(struct kvm *kvm, uint64_t gpa, uint64_t value)
{
	gfn_t gfn = gpa >> PAGE_SHIFT;
	struct kvm_memory_slot *slot = gfn_to_memslot(kvm, gfn);

	if (!gmem_page(&kvm->gmem, gfn))
		forget_private(kvm, gfn);
	if (slot)
		host_store(slot, gfn);
	if (!gmem_write(&kvm->gmem, gpa, 8, value, true))
		kvm->dead = true;
}

uint64_t kvm_read_guest_u64(struct kvm *kvm, uint64_t gpa)
{
	return gmem_read(&kvm->gmem, gpa, 8);
}
