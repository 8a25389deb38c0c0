// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/vcpu.h"

#include "model/guest/personality.h"
#include "model/guest/run.h"
#include "model/guest/vcpu_tlb.h"

void vcpu_bind(struct kvm_vcpu *v, struct task *t)
{
	v->task = t;
}

struct task *vcpu_task(const struct kvm_vcpu *v)
{
	return v->task;
}

struct kvm *vcpu_kvm(const struct kvm_vcpu *v)
{
	return v->kvm;
}

uint32_t vcpu_id(const struct kvm_vcpu *v)
{
	return v->id;
}

void vcpu_set_cr3(struct kvm_vcpu *v, uint64_t cr3)
{
	v->cr3 = cr3;
	for (unsigned i = 0; i < 4 && v->paging.level == PT32E_ROOT_LEVEL; i++)
		v->pdptrs[i] = gmem_read(&v->kvm->gmem, (cr3 & ~31ull) + i * 8, 8);
}

void vcpu_set_regs(struct kvm_vcpu *v)
{
	touch_shared(v->task);
	task_assert_first(v->task, "its vCPU's requests");
	v->requests |= REQ_EVENT;
	v->stat[STAT_host_state_reload]++;
}

enum kvm_exit_reason vcpu_exit_reason(const struct kvm_vcpu *v)
{
	return v->exit_reason;
}

/* Whether the access hits and is nobody else's business, so that it may retire before others have
 * come as far. */
static bool private_hit(struct kvm_vcpu *v, gva_t gva, uint64_t need)
{
	return vcpu_may_hit(v) && tlb_lookup(&v->tlb, gva, tlb_flag(need) | TLB_PRIVATE) &&
	       task_now(v->task) < task_horizon(v->task);
}

/* A translation that grants @need, in guest mode and synced. 0 and *e, or what
 * vcpu_translate() returned. */
static int translate(struct kvm_vcpu *v, gva_t gva, uint64_t need, unsigned len, uint64_t value,
		     struct vcpu_tlb_entry **e)
{
	int r = vcpu_ready(v);

	if (r)
		return r;
	*e = tlb_lookup(&v->tlb, gva, tlb_flag(need));
	if (*e)
		return 0;
	r = vcpu_translate(v, gva, need, len, value);
	if (r)
		return r;
	*e = tlb_lookup(&v->tlb, gva, tlb_flag(need));
	return 0;
}

static gpa_t entry_gpa(const struct vcpu_tlb_entry *e, gva_t gva)
{
	return tlb_gfn(e) << PAGE_SHIFT | (gva & (PAGE_SIZE - 1));
}

/* Bytes of an access that lie in its first page. */
static unsigned first_part(gva_t gva, unsigned len)
{
	unsigned room = PAGE_SIZE - (gva & (PAGE_SIZE - 1));

	return len < room ? len : room;
}

int vcpu_fetch(struct kvm_vcpu *v, uint64_t gva)
{
	struct vcpu_tlb_entry *e;
	int r;

	v->rip = gva;
	if (private_hit(v, gva, PFERR_FETCH))
		return 0;
	r = translate(v, gva, PFERR_FETCH, 1, 0, &e);
	return r == VCPU_EMULATED ? 0 : r;
}

int vcpu_read(struct kvm_vcpu *v, uint64_t gva, unsigned len, uint64_t *value)
{
	unsigned part = first_part(gva, len);
	struct vcpu_tlb_entry *e;
	uint64_t rest = 0;
	int r;

	if (len - 1 > 7)
		return KVMSIM_EINVAL;
	*value = 0;
	if (part == len && private_hit(v, gva, 0))
		return 0;
	r = translate(v, gva, 0, part, 0, &e);
	if (r && r != VCPU_EMULATED)
		return r;
	*value = r ? v->emulated.loaded : gmem_load(v->task, v->kvm, entry_gpa(e, gva), part);
	if (part == len)
		return 0;
	r = vcpu_read(v, gva + part, len - part, &rest);
	*value |= rest << (8 * part);
	return r;
}

static int store(struct kvm_vcpu *v, const struct vcpu_tlb_entry *e, gva_t gva, unsigned len,
		 uint64_t value)
{
	guest_store(v, entry_gpa(e, gva), len, value);
	vcpu_progressed(v);
	return v->kvm->dead ? KVMSIM_ENOMEM : 0;
}

/* A store over a page's end: nothing is stored before both pages can be. */
static int write_across(struct kvm_vcpu *v, gva_t gva, unsigned part, unsigned len, uint64_t value)
{
	struct vcpu_tlb_entry *first, *second;
	uint64_t rest = value >> (8 * part);
	int r = translate(v, gva, PFERR_WRITE, part, value, &first);
	bool emulated = r == VCPU_EMULATED;

	if (r && !emulated)
		return r;
	r = translate(v, gva + part, PFERR_WRITE, len - part, rest, &second);
	if (r && r != VCPU_EMULATED)
		return r;
	if (!emulated) {
		first = tlb_lookup(&v->tlb, gva, TLB_WRITE);
		if (!first)
			return VCPU_RESTART;
		guest_store(v, entry_gpa(first, gva), part, value);
	}
	return r == VCPU_EMULATED ? 0 : store(v, second, gva + part, len - part, rest);
}

int vcpu_write(struct kvm_vcpu *v, uint64_t gva, unsigned len, uint64_t value)
{
	unsigned part = first_part(gva, len);
	struct vcpu_tlb_entry *e;
	int r;

	if (len - 1 > 7)
		return KVMSIM_EINVAL;
	if (part < len)
		return write_across(v, gva, part, len, value);
	if (private_hit(v, gva, PFERR_WRITE))
		return 0;
	r = translate(v, gva, PFERR_WRITE, len, value, &e);
	if (r)
		return r == VCPU_EMULATED ? 0 : r;
	return store(v, e, gva, len, value);
}

static int read_modify_write(struct kvm_vcpu *v, enum insn_store insn, uint64_t gva, unsigned len,
			     uint64_t value)
{
	uint64_t old;
	int r = 0;

	v->insn = insn;
	v->operand = value;
	v->operand_len = len;
	v->emulated.whole = false;
	if (v->kvm->cpu->rmw_reads_first)
		r = vcpu_read(v, gva, len, &old);
	if (!r && !v->emulated.whole)
		r = vcpu_write(v, gva, len, value);
	v->insn = INSN_MOV;
	return r;
}

int vcpu_rmw(struct kvm_vcpu *v, uint64_t gva, unsigned len, uint64_t addend)
{
	return read_modify_write(v, INSN_RMW, gva, len, addend);
}

int vcpu_xchg(struct kvm_vcpu *v, uint64_t gva, unsigned len, uint64_t value)
{
	return read_modify_write(v, INSN_XCHG, gva, len, value);
}

/* An instruction that leaves guest mode for @reason: into the activity of exits. */
static int exit_begin(struct kvm_vcpu *v, unsigned reason, uint16_t *was)
{
	int r = vcpu_ready(v);

	if (r)
		return r;
	*was = activity_enter(v->task, ACT_exit);
	vcpu_progressed(v);
	vcpu_exit(v, reason);
	return 0;
}

static int exit_end(struct kvm_vcpu *v, uint16_t was, int r)
{
	activity_leave(v->task, was);
	return r;
}

int vcpu_invlpg(struct kvm_vcpu *v, uint64_t gva)
{
	uint16_t was;
	int r;

	if (v->kvm->tdp_enabled) {
		r = vcpu_ready(v);
		if (!r)
			tlb_flush_gva(&v->tlb, gva);
		return r;
	}
	r = exit_begin(v, EXIT_INVLPG, &was);
	if (r)
		return r;
	if (!v->kvm->cpu->decode_assists)
		emulate_instruction(v);
	if (canonical(gva)) { /* of other addresses it is a NOP */
		tlb_flush_gva(&v->tlb, gva);
		if (v->paging.level)
			kvm_mmu_invlpg(v, gva);
	}
	v->stat[STAT_invlpg]++;
	return exit_end(v, was, vcpu_ready(v));
}

static const char invalid_pdpte[] = "CR3 leads to a PDPTE with a reserved bit";

int vcpu_mov_cr3(struct kvm_vcpu *v, uint64_t cr3)
{
	uint16_t was;
	int r;

	if (v->kvm->tdp_enabled) {
		r = vcpu_ready(v);
		if (r)
			return r;
		if (v->paging.level == PT32E_ROOT_LEVEL && !v->kvm->pdptrs_in_memory &&
		    load_pdptrs(v, cr3) == PDPTRS_INVALID)
			return vcpu_refuse(v, invalid_pdpte);
		v->cr3 = cr3;
		tlb_flush(&v->tlb);
		return 0;
	}
	r = exit_begin(v, EXIT_CR3_WRITE, &was);
	if (r)
		return r;
	if (!v->kvm->cpu->decode_assists)
		emulate_instruction(v);
	if (v->paging.level == PT32E_ROOT_LEVEL && !kvm_mmu_load_pdptrs(v, cr3))
		return exit_end(v, was, vcpu_refuse(v, invalid_pdpte));
	if (cr3 != v->cr3)
		kvm_mmu_new_pgd(v, cr3);
	v->cr3 = cr3;
	touch_shared(v->task);
	task_assert_first(v->task, "its vCPU's requests");
	v->requests |= REQ_MMU_SYNC | REQ_TLB_FLUSH_CURRENT;
	return exit_end(v, was, vcpu_ready(v));
}

int vcpu_out(struct kvm_vcpu *v, uint16_t port)
{
	uint16_t was;
	int r = exit_begin(v, EXIT_IOIO, &was);

	if (r)
		return r;
	v->stat[STAT_io_exits]++;
	charge(v->task, COUNT_pio_exit, 1);
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_pio, .code = port);
	return exit_end(v, was, vcpu_to_userspace(v, KVM_EXIT_IO));
}

int vcpu_hlt(struct kvm_vcpu *v)
{
	uint16_t was;
	int r = exit_begin(v, EXIT_HLT, &was);

	if (r)
		return r;
	if (!v->kvm->cpu->decode_assists)
		emulate_instruction(v);
	v->stat[STAT_halt_exits]++;
	return exit_end(v, was, vcpu_to_userspace(v, KVM_EXIT_HLT));
}

int vcpu_gap(struct kvm_vcpu *v, uint64_t n)
{
	uint64_t done;
	int r = 0;

	if (n)
		vcpu_progressed(v);
	while (n && !r) {
		if (!vcpu_may_hit(v))
			r = vcpu_ready(v);
		r = r ? r : charge_interruptible(v->task, COUNT_insn, n, &done);
		if (!r)
			n -= done;
	}
	return r;
}
