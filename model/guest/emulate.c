// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/personality.h"
#include "model/guest/run.h"
#include "model/guest/vcpu.h"
#include "model/policy/preset.h"

void emulate_instruction(struct kvm_vcpu *v)
{
	struct guest_walk gw;

	charge(v->task, COUNT_emulate, 1);
	if (!v->kvm->preset->retry_by_fault)
		v->retried_rip = v->retried_addr = 0;
	v->stat[STAT_insn_emulation]++;
	if (!v->kvm->cpu->insn_bytes && v->paging.level)
		(void)guest_walk_addr(v, &gw, v->rip, PFERR_FETCH | vcpu_user(v));
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_emulate_insn,
			.gfn = v->rip >> PAGE_SHIFT);
}

static void trace_match(struct kvm_vcpu *v, bool write, bool by_gpa)
{
	const struct vcpu_emulation *e = &v->emulated;

	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_vcpu_match_mmio, .addr = e->gva,
			.gfn = e->gpa >> PAGE_SHIFT, .writable = write, .direct = by_gpa);
}

#define APIC_DEFAULT_PHYS_BASE 0xfee00000ull

/* Whether e->gpa's page is a device's: the APIC's, whatever slots there are, or one that the vCPU
 * remembers. */
static int match_gpa(struct kvm_vcpu *v, bool write)
{
	if ((v->emulated.gpa & ~(PAGE_SIZE - 1)) == APIC_DEFAULT_PHYS_BASE)
		return 1;
	if (!vcpu_match_mmio_gpa(v, v->emulated.gpa))
		return 0;
	trace_match(v, write, true);
	return 1;
}

/* Where the access goes, e->gpa. 1: to a device, as the vCPU remembers; 0: the slots will say; or a
 * negative error. A nested fault's address is the access's, unless it was about a guest's table.
 * Instructions are fetched by a walk, whatever the vCPU remembers. */
static int find_gpa(struct kvm_vcpu *v, bool write)
{
	struct vcpu_emulation *e = &v->emulated;
	uint64_t access = (write ? PFERR_WRITE : 0) | (e->fetch ? PFERR_FETCH : 0) | vcpu_user(v);
	uint64_t offset = PAGE_SIZE - 1;
	struct guest_walk gw;

	e->gpa = e->fault_addr;
	if (vcpu_direct(v) && v->kvm->preset->emulator_has_gpa && !((e->gva ^ e->gpa) & offset))
		return match_gpa(v, write);
	if (!e->fetch && vcpu_match_mmio_gva(v, e->gva) &&
	    (!v->paging.level ||
	     !permission_fault(v->paging.permissions, v->mmio.access, access))) {
		e->gpa = v->mmio.gfn << PAGE_SHIFT | (e->gva & offset);
		trace_match(v, write, false);
		return 1;
	}
	e->gpa = e->gva;
	if (v->paging.level) {
		if (!guest_walk_addr(v, &gw, e->gva, access))
			return guest_fault_error(v, e->gva, gw.fault_code);
		e->gpa = gw.gfn << PAGE_SHIFT | (e->gva & offset);
	}
	return match_gpa(v, write);
}

/* The slot that the access is to, which may have appeared only now. NULL: a device, as a store to
 * what is read-only is, too. */
static struct kvm_memory_slot *find_slot(struct kvm_vcpu *v, bool write)
{
	uint32_t no = MEMSLOT_INVALID | (write ? MEMSLOT_READONLY : 0);
	struct kvm_memory_slot *slot;

	charge(v->task, COUNT_emulator_slot, 1);
	slot = memslot_now(v->task, v->kvm, v->emulated.gpa >> PAGE_SHIFT);
	return slot && !(slot->flags & no) ? slot : NULL;
}

static int access_memory(struct kvm_vcpu *v, struct kvm_memory_slot *slot, bool write)
{
	struct vcpu_emulation *e = &v->emulated;
	gfn_t gfn = e->gpa >> PAGE_SHIFT;
	struct kvm *kvm = v->kvm;
	bool writable;
	int r = host_fault_in(v->task, kvm, slot, gfn, write, &writable);

	if (r)
		return r;
	touch_shared(v->task);
	if (!write) {
		e->loaded = gmem_load(v->task, kvm, e->gpa, e->len);
		return VCPU_EMULATED;
	}
	guest_store(v, e->gpa, e->len, e->store);
	kvm_mark_page_dirty(v->task, kvm, gfn);
	kvm_mmu_pte_write(v, e->gpa, e->len);
	return kvm->dead ? KVMSIM_ENOMEM : VCPU_EMULATED;
}

static int access_device(struct kvm_vcpu *v, bool write)
{
	const struct vcpu_emulation *e = &v->emulated;

	charge(v->task, COUNT_mmio_exit, 1);
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmio, .addr = e->gpa, .len = e->len,
			.gfn = e->gpa >> PAGE_SHIFT,
			.code = write ? MMIO_WRITE : MMIO_UNSATISFIED_READ);
	v->stat[STAT_mmio_exits]++;
	v->mmio_read_pending = !write;
	return vcpu_to_userspace(v, KVM_EXIT_MMIO);
}

static int emulate(struct kvm_vcpu *v, bool write)
{
	struct kvm_memory_slot *slot;
	int r = find_gpa(v, write);

	if (r < 0)
		return r;
	slot = r ? NULL : find_slot(v, write);
	return slot ? access_memory(v, slot, write) : access_device(v, write);
}

int vcpu_complete_mmio(struct kvm_vcpu *v)
{
	int r = VCPU_EMULATED;

	if (v->mmio_store_follows) {
		v->mmio_store_follows = false;
		kvm_run_begin(v);
		v->emulated.store = v->operand; /* memory may be there by now */
		r = emulate(v, true);
	}
	return r == VCPU_EMULATED ? vcpu_ready(v) : r;
}

/* Whether page tables are written with such instructions. */
static bool writes_page_tables(const struct kvm_vcpu *v, uint64_t need)
{
	return v->insn == INSN_XCHG || (v->insn == INSN_MOV && (need & PFERR_WRITE));
}

/* Where it is not known to be a device that is accessed, and by an instruction that page tables are
 * not written with, the page may be protected since it holds such: it holds none any more, and the
 * instruction is to run again. Once: it would go on for ever where there is another reason. */
static bool unprotect_and_retry(struct kvm_vcpu *v, uint64_t need, bool retried)
{
	const struct kvm_preset *preset = v->kvm->preset;
	uint64_t addr = v->emulated.fault_addr;
	gfn_t gfn = addr >> PAGE_SHIFT;
	struct guest_walk gw;
	bool found = true, zapped = false;

	if (!preset->emulator_retry || (preset->mmio_fault_known && v->mmio_fault) ||
	    mmio_info_in_cache(v, addr) || retried)
		return false;
	v->retried_rip = v->retried_addr = 0;
	if (writes_page_tables(v, need))
		return false;
	if (!vcpu_direct(v)) {
		found = guest_walk_addr(v, &gw, addr, PFERR_WRITE | vcpu_user(v));
		gfn = gw.gfn;
	}
	if (found)
		zapped = kvm_mmu_unprotect_page(v->task, v->kvm, gfn);
	if (preset->retry_by_fault && !zapped)
		return false;
	v->retried_rip = v->rip;
	v->retried_addr = addr;
	return true;
}

int emulate_access(struct kvm_vcpu *v, uint64_t fault_addr, gva_t gva, uint64_t need, unsigned len,
		   uint64_t value)
{
	bool retried = v->retried_rip == v->rip && v->retried_addr == fault_addr;
	int r;

	v->emulated = (struct vcpu_emulation){.fault_addr = fault_addr,
					      .gva = gva,
					      .len = len,
					      .store = value,
					      .fetch = need & PFERR_FETCH};
	emulate_instruction(v);
	if (unprotect_and_retry(v, need, retried))
		return VCPU_RESTART;
	if (v->insn == INSN_MOV)
		return emulate(v, need & PFERR_WRITE);
	r = emulate(v, false);
	v->mmio_store_follows = r == VCPU_USERSPACE;
	if (r != VCPU_EMULATED)
		return r;
	if (!(need & PFERR_WRITE)) {	  /* the load's fault */
		if (len < v->operand_len) /* over a page's end: its parts are stored later */
			return r;
		v->emulated.store = v->operand;
		v->emulated.whole = true;
	}
	return emulate(v, true);
}
