// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/personality.h"
#include "model/guest/run.h"
#include "model/guest/vcpu.h"

void emulate_instruction(struct kvm_vcpu *v)
{
	struct guest_walk gw;

	charge(v->task, COUNT_emulate, 1);
	v->retried_rip = v->retried_addr = 0;
	v->stat[STAT_insn_emulation]++;
	if (!v->kvm->cpu->insn_bytes && v->paging.level)
		(void)guest_walk_addr(v, &gw, v->rip, PFERR_FETCH | vcpu_user(v));
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_emulate_insn,
			.gfn = v->rip >> PAGE_SHIFT);
}

/* Of v->mmio. */
static int emulate_mmio(struct kvm_vcpu *v, uint64_t need)
{
	bool write = need & PFERR_WRITE;

	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_vcpu_match_mmio, .addr = v->mmio.gva,
			.gfn = v->mmio.gpa >> PAGE_SHIFT, .writable = write,
			.direct = vcpu_direct(v));
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmio, .addr = v->mmio.gpa,
			.gfn = v->mmio.gpa >> PAGE_SHIFT, .len = v->mmio.len,
			.code = write ? MMIO_WRITE : MMIO_UNSATISFIED_READ);
	v->stat[STAT_mmio_exits]++;
	v->mmio_read_pending = !write;
	return vcpu_to_userspace(v, KVM_EXIT_MMIO);
}

int vcpu_complete_mmio(struct kvm_vcpu *v)
{
	if (!v->mmio_store_follows)
		return vcpu_ready(v);
	v->mmio_store_follows = false;
	kvm_run_begin(v);
	return emulate_mmio(v, PFERR_WRITE);
}

/* An instruction that page tables are not written with has met a page that is protected since it
 * holds one: it holds none any more, and the instruction is to run again. */
static int unprotect_and_retry(struct kvm_vcpu *v, gfn_t gfn, gva_t gva)
{
	struct guest_walk gw;

	v->retried_rip = v->rip;
	v->retried_addr = gva;
	if (!vcpu_direct(v)) {
		if (!guest_walk_addr(v, &gw, gva, PFERR_WRITE | vcpu_user(v)))
			return guest_fault_error(v, gva, gw.fault_code);
		gfn = gw.gfn;
	}
	kvm_mmu_unprotect_page(v->task, v->kvm, gfn);
	return VCPU_RESTART;
}

int emulate_access(struct kvm_vcpu *v, gfn_t gfn, gva_t gva, uint64_t need, unsigned len,
		   uint64_t value)
{
	/* It would go on for ever where the page maps the instruction. */
	bool retried = v->retried_rip == v->rip && v->retried_addr == gva;
	struct kvm *kvm = v->kvm;
	struct kvm_memory_slot *slot;
	struct guest_walk gw;
	gpa_t gpa = gva;
	bool writable;
	int r;

	emulate_instruction(v);
	if (!memslot_now(v->task, kvm, gfn)) {
		v->mmio.gva = gva;
		v->mmio.gpa = gfn << PAGE_SHIFT | (gva & (PAGE_SIZE - 1));
		v->mmio.len = len;
		return emulate_mmio(v, need);
	}
	if (v->insn == INSN_RMW && !retried)
		return unprotect_and_retry(v, gfn, gva);
	if (v->paging.level) {
		if (v->insn != INSN_MOV) /* the emulator reads first */
			(void)guest_walk_addr(v, &gw, gva, vcpu_user(v));
		if (!guest_walk_addr(v, &gw, gva, need | vcpu_user(v)))
			return guest_fault_error(v, gva, gw.fault_code);
		gpa = gw.gfn << PAGE_SHIFT | (gva & (PAGE_SIZE - 1));
	}
	touch_shared(v->task);
	slot = gfn_to_memslot(kvm, gpa >> PAGE_SHIFT);
	r = slot ? host_fault_in(v->task, kvm, slot, gpa >> PAGE_SHIFT, true, &writable) : 0;
	if (r)
		return r;
	touch_shared(v->task);
	guest_store(v, gpa, len, value);
	kvm_mark_page_dirty(v->task, kvm, gpa >> PAGE_SHIFT);
	kvm_mmu_pte_write(v, gpa, len);
	return kvm->dead ? KVMSIM_ENOMEM : VCPU_EMULATED;
}
