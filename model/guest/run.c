// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/run.h"

#include "model/guest/personality.h"
#include "model/guest/vcpu.h"
#include "model/host/ipi.h"

void kvm_run_begin(struct kvm_vcpu *v)
{
	charge(v->task, COUNT_kvm_run, 1);
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_fpu, .code = 1);
	if (v->mmio_read_pending) {
		charge(v->task, COUNT_emulate_resume, 1);
		kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmio, .addr = v->emulated.gpa,
				.gfn = v->emulated.gpa >> PAGE_SHIFT, .len = v->emulated.len,
				.code = MMIO_READ);
	}
	v->mmio_read_pending = false;
	v->in_run = true;
	task_set_private(v->task, v); /* the running vCPU: who dirties a page */
	v->exit_reason = KVM_EXIT_NONE;
}

int vcpu_to_userspace(struct kvm_vcpu *v, unsigned reason)
{
	if (reason != KVM_EXIT_DIRTY_RING_FULL) {
		stall_end(v, false);
		vcpu_progressed(v);
	}
	v->stat[STAT_fpu_reload]++;
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_fpu, .code = 0);
	v->stat[STAT_host_state_reload]++;
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_userspace_exit, .code = reason);
	v->in_run = false;
	task_set_private(v->task, NULL);
	v->exit_reason = reason;
	return VCPU_USERSPACE;
}

static bool take_request(struct kvm_vcpu *v, uint32_t req)
{
	bool made;

	touch_shared(v->task);
	task_assert_first(v->task, "its vCPU's requests");
	made = v->requests & req;
	v->requests &= ~req;
	return made;
}

static bool check_request(struct kvm_vcpu *v, uint32_t req)
{
	bool made = take_request(v, req);

	if (made)
		charge(v->task, COUNT_vcpu_request, 1);
	return made;
}

static void flush_local_tlb(struct kvm_vcpu *v)
{
	v->stat[STAT_tlb_flush]++;
	charge(v->task, COUNT_tlb_flush, 1);
	tlb_flush(&v->tlb);
}

/* What others, or this vCPU's own handlers, have asked for since the last entry. */
static void serve_requests(struct kvm_vcpu *v)
{
	touch_shared(v->task);
	task_assert_first(v->task, "its vCPU's requests");
	if (!v->requests)
		return;
	if (check_request(v, REQ_FREE_OBSOLETE_ROOTS))
		kvm_mmu_free_obsolete_roots(v);
	if (check_request(v, REQ_MASTERCLOCK_UPDATE))
		kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_update_master_clock);
	if (check_request(v, REQ_MMU_SYNC))
		kvm_mmu_sync_roots(v);
	(void)check_request(v, REQ_LOAD_MMU_PGD);
	if (check_request(v, REQ_TLB_FLUSH)) {
		flush_local_tlb(v);
		(void)take_request(v, REQ_TLB_FLUSH_CURRENT);
	}
	if (check_request(v, REQ_TLB_FLUSH_CURRENT))
		flush_local_tlb(v);
	if (check_request(v, REQ_TLB_FLUSH_GUEST)) {
		if (!v->kvm->tdp_enabled) {
			kvm_mmu_sync_roots(v);
			kvm_mmu_sync_prev_roots(v);
		}
		flush_local_tlb(v);
	}
	if (check_request(v, REQ_UPDATE_CPU_DIRTY_LOGGING)) {
		touch_shared(v->task);
		task_assert_first(v->task, "the number of logged slots");
		v->log.enabled = v->kvm->cpu_dirty_logging_count;
	}
	if (check_request(v, REQ_EVENT))
		v->stat[STAT_req_event]++;
}

/* The vCPU has no room to log what it may dirty: KVM_RUN returns, the VMM makes room, and calls it
 * again. */
static int leave_full(struct kvm_vcpu *v)
{
	int r;

	(void)vcpu_to_userspace(v, KVM_EXIT_DIRTY_RING_FULL);
	r = ring_full(v);
	r = r ? r : vcpu_restarted(v, v->rip, PFERR_FETCH, "its dirty ring is full and stays so");
	if (!r)
		kvm_run_begin(v);
	return r;
}

static int enter_guest(struct kvm_vcpu *v)
{
	const struct dirty_policy *dirty = v->kvm->dirty;
	int r;

	for (;;) {
		if (dirty->vcpu_full && dirty->vcpu_full(v)) {
			r = leave_full(v);
			if (r)
				return r;
			continue;
		}
		serve_requests(v);
		if (!v->root_valid) {
			r = kvm_mmu_load(v);
			if (r)
				return r;
		}
		charge(v->task, COUNT_vm_entry, 1);
		touch_shared(v->task);
		if (task_canceled(v->task))
			return KVMSIM_ECANCELED;
		/* Requests made before the mode changes are seen here, later ones send an IPI. */
		task_assert_first(v->task, "its vCPU's mode and requests");
		if (v->requests)
			continue;
		v->mode = IN_GUEST_MODE;
		v->entered = task_now(v->task);
		kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_entry);
		if (v->kvm->cache && cache_vm_entry(v->task, v->kvm->cache) < 0)
			v->kvm->dead = true;
		stall_end(v, true);
		return 0;
	}
}

/* What kvm_exit prints. */
static unsigned exit_code(const struct kvm_vcpu *v, unsigned reason)
{
	if (!v->kvm->cpu->vmx)
		return reason;
	switch (reason) {
	case EXIT_CR0_WRITE:
	case EXIT_CR0_SEL_WRITE:
	case EXIT_CR3_WRITE:
	case EXIT_CR4_WRITE:
		return VMX_EXIT_CR_ACCESS;
	case EXIT_PF:
		return VMX_EXIT_EXCEPTION_NMI;
	case EXIT_INTR:
		return VMX_EXIT_EXTERNAL_INTERRUPT;
	case EXIT_HLT:
		return VMX_EXIT_HLT;
	case EXIT_INVLPG:
		return VMX_EXIT_INVLPG;
	case EXIT_IOIO:
		return VMX_EXIT_IO_INSTRUCTION;
	case EXIT_MSR:
		return VMX_EXIT_MSR_WRITE;
	case EXIT_PML_FULL:
		return VMX_EXIT_PML_FULL;
	case EXIT_EPT_MISCONFIG:
		return VMX_EXIT_EPT_MISCONFIG;
	default:
		return VMX_EXIT_EPT_VIOLATION;
	}
}

/* kvm_timer_sync_user(): the VMM learns the timer's level, the host's interrupt its state. */
static void sync_timer(struct kvm_vcpu *v)
{
	lock_called_by(v->task, v->kvm, "irq_set_irqchip_state");
	if (spin_lock(v->task, &v->kvm->timer_lock))
		return; /* the task is cancelled */
	charge(v->task, COUNT_timer_state, 1);
	spin_unlock(v->task, &v->kvm->timer_lock);
}

void vcpu_exit(struct kvm_vcpu *v, unsigned reason)
{
	stall_begin(v, reason);
	charge(v->task, COUNT_vm_exit, 1);
	touch_shared(v->task);
	task_assert_first(v->task, "its vCPU's mode");
	v->mode = OUTSIDE_GUEST_MODE;
	cpu_log_stop(v);
	(void)ipi_receive(v->task);
	v->stat[STAT_exits]++;
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_exit, .code = exit_code(v, reason));
	if (v->kvm->no_irqchip)
		sync_timer(v);
	if (!v->kvm->cpu->tlb_survives_exit)
		tlb_flush(&v->tlb);
	cpu_log_flush(v);
}

int vcpu_ready(struct kvm_vcpu *v)
{
	uint16_t was;
	int r;

	if (v->mode == IN_GUEST_MODE || v->mode == EXITING_GUEST_MODE) {
		touch_shared(v->task);
		task_assert_first(v->task, "its own messages");
		if (!task_message_due(v->task))
			return task_canceled(v->task) ? KVMSIM_ECANCELED : 0;
		was = activity_enter(v->task, ACT_exit);
		vcpu_exit(v, EXIT_INTR);
		v->stat[STAT_irq_exits]++;
	} else {
		was = activity_enter(v->task, ACT_exit);
		if (!v->in_run)
			kvm_run_begin(v);
	}
	r = enter_guest(v);
	activity_leave(v->task, was);
	if (r)
		return r;
	/* An IPI may have come in on the way. */
	touch_shared(v->task);
	return task_message_due(v->task) ? vcpu_ready(v) : v->kvm->dead ? KVMSIM_ENOMEM : 0;
}
