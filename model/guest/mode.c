// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/personality.h"
#include "model/guest/run.h"
#include "model/guest/vcpu.h"
#include "model/policy/preset.h"

/* The guest changes how it pages. Which bits of its registers reset the MMU, flush, or make a CPU
 * load PDPTEs, is KVM's reading of the manuals (AMD64 APM volume 2, 5.5; SDM volume 3, 4.10.4). */

#define CR0_ROLE_BITS  (CR0_PG | CR0_WP)
#define CR4_ROLE_BITS  (CR4_PSE | CR4_PAE | CR4_SMEP | CR4_SMAP)
#define EFER_ROLE_BITS (EFER_LME | EFER_NXE)
#define CR4_PDPTR_BITS (CR4_PGE | CR4_PSE | CR4_PAE | CR4_SMEP)

static void request(struct kvm_vcpu *v, uint32_t req)
{
	touch_shared(v->task);
	task_assert_first(v->task, "its vCPU's requests");
	v->requests |= req;
}

static bool pae_paging(const struct cpu_regs *r)
{
	return (r->cr0 & CR0_PG) && (r->cr4 & CR4_PAE) && !(r->efer & EFER_LMA);
}

int vcpu_refuse(const struct kvm_vcpu *v, const char *what)
{
	return kvmsim_err(sim_errors(v->kvm->sim), KVMSIM_EINVAL,
			  "vCPU %u: %s: a general-protection fault", v->id, what);
}

/* PDPTEs that @regs need, which are about to be the vCPU's. False: a fault. */
static bool pdptrs_valid(struct kvm_vcpu *v, const struct cpu_regs *regs)
{
	return !pae_paging(regs) || kvm_mmu_load_pdptrs(v, v->cr3);
}

static const char invalid_pdpte[] = "a PDPTE has a reserved bit set";

static int set_cr0(struct kvm_vcpu *v, uint64_t cr0)
{
	uint64_t changed = cr0 ^ v->regs.cr0;
	struct cpu_regs regs = v->regs;

	regs.cr0 = cr0;
	if ((changed & CR0_PG) && !pdptrs_valid(v, &regs))
		return vcpu_refuse(v, invalid_pdpte);
	v->regs = regs;
	/* Nested tables do not depend on it. */
	if (v->kvm->tdp_enabled && changed == CR0_WP) {
		kvm_init_mmu(v);
		return 0;
	}
	if ((changed & CR0_PG) && !(cr0 & CR0_PG))
		request(v, REQ_TLB_FLUSH_GUEST);
	if (changed & CR0_ROLE_BITS)
		kvm_mmu_reset_context(v);
	return 0;
}

static int set_cr4(struct kvm_vcpu *v, uint64_t cr4)
{
	uint64_t changed = cr4 ^ v->regs.cr4, set = changed & cr4;
	struct cpu_regs regs = v->regs;

	regs.cr4 = cr4;
	if ((changed & CR4_PDPTR_BITS) && !pdptrs_valid(v, &regs))
		return vcpu_refuse(v, invalid_pdpte);
	v->regs = regs;
	if (changed & CR4_ROLE_BITS)
		kvm_mmu_reset_context(v);
	if (changed & CR4_PGE)
		request(v, REQ_TLB_FLUSH_GUEST);
	else if ((changed & CR4_PAE) || (set & CR4_SMEP))
		request(v, REQ_TLB_FLUSH_CURRENT);
	return 0;
}

static void set_efer(struct kvm_vcpu *v, uint64_t efer)
{
	uint64_t changed = efer ^ v->regs.efer;

	v->regs.efer = efer;
	if (changed & EFER_ROLE_BITS)
		kvm_mmu_reset_context(v);
}

/* Leaves the guest for @reason, and in the end enters it. */
static int exit_for(struct kvm_vcpu *v, unsigned reason, uint16_t *was)
{
	int r = vcpu_ready(v);

	if (r)
		return r;
	*was = activity_enter(v->task, ACT_exit);
	vcpu_exit(v, reason);
	return 0;
}

static int enter_again(struct kvm_vcpu *v, uint16_t was, int r)
{
	r = r ? r : vcpu_ready(v);
	activity_leave(v->task, was);
	return r;
}

/* KVM asks for exits at every write of CR0 while the guest's differs from what the CPU runs with;
 * else at those that change more than TS and MP. VMX has a mask of bits instead. */
static unsigned cr0_exit(const struct kvm_vcpu *v, uint64_t cr0)
{
	uint64_t forced = v->kvm->tdp_enabled ? 0 : CR0_PG | CR0_WP;

	if (!v->kvm->cpu->vmx && (forced & ~v->regs.cr0))
		return EXIT_CR0_WRITE;
	return cr0 == v->regs.cr0 ? 0 : EXIT_CR0_SEL_WRITE;
}

int vcpu_mov_cr0(struct kvm_vcpu *v, uint64_t cr0)
{
	unsigned reason = cr0_exit(v, cr0);
	uint16_t was;
	int r;

	if ((v->regs.efer & EFER_LME) && ((cr0 ^ v->regs.cr0) & CR0_PG))
		return vcpu_refuse(v, "CR0.PG changes where long mode is, in 64-bit code");
	if (!reason)
		return vcpu_ready(v);
	r = exit_for(v, reason, &was);
	if (r)
		return r;
	if (!v->kvm->cpu->decode_assists)
		emulate_instruction(v);
	return enter_again(v, was, set_cr0(v, cr0));
}

/* VMX has a mask of the bits whose change exits: with EPT the guest owns PGE. */
static bool cr4_exits(const struct kvm_vcpu *v, uint64_t cr4)
{
	uint64_t own = v->kvm->tdp_enabled ? CR4_PGE : 0;

	return !v->kvm->cpu->vmx || ((cr4 ^ v->regs.cr4) & ~own);
}

int vcpu_mov_cr4(struct kvm_vcpu *v, uint64_t cr4)
{
	uint16_t was;
	int r;

	if ((v->regs.efer & EFER_LMA) && !(cr4 & CR4_PAE))
		return vcpu_refuse(v, "CR4.PAE cleared in long mode");
	if (!cr4_exits(v, cr4)) {
		r = vcpu_ready(v);
		if (!r && cr4 != v->regs.cr4)
			tlb_flush(&v->tlb);
		v->regs.cr4 = r ? v->regs.cr4 : cr4;
		return r;
	}
	r = exit_for(v, EXIT_CR4_WRITE, &was);
	if (r)
		return r;
	if (!v->kvm->cpu->decode_assists)
		emulate_instruction(v);
	return enter_again(v, was, set_cr4(v, cr4));
}

int vcpu_wrmsr_efer(struct kvm_vcpu *v, uint64_t efer)
{
	uint16_t was;
	int r;

	if ((v->regs.cr0 & CR0_PG) && ((efer ^ v->regs.efer) & EFER_LME))
		return vcpu_refuse(v, "EFER.LME changes while the guest pages");
	r = exit_for(v, EXIT_MSR, &was);
	if (r)
		return r;
	set_efer(v, (efer & ~EFER_LMA) | (v->regs.efer & EFER_LMA));
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_msr, .code = efer);
	if (!v->kvm->cpu->decode_assists)
		emulate_instruction(v); /* to get past it */
	return enter_again(v, was, 0);
}

struct cpu_regs vcpu_regs(const struct kvm_vcpu *v)
{
	return v->regs;
}

int vcpu_change_sregs(struct kvm_vcpu *v, const struct cpu_regs *regs)
{
	bool same =
		v->regs.cr0 == regs->cr0 && v->regs.cr4 == regs->cr4 && v->regs.efer == regs->efer;

	int r = leave_run(v->task, v->kvm);

	if (r)
		return r;
	v->stat[STAT_host_state_reload] += 2; /* each ioctl loads and puts the vCPU */
	v->regs = *regs;
	if (pae_paging(regs)) {
		(void)kvm_mmu_load_pdptrs(v, v->cr3);
		same = false;
	}
	if (!same && v->kvm->preset->sregs_flush)
		request(v, REQ_TLB_FLUSH_GUEST);
	if (!same)
		kvm_mmu_reset_context(v);
	else
		kvm_init_mmu(v);
	return 0;
}
