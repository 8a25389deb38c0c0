// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/host/ipi.h"
#include "model/mmu/mmu.h"
#include "model/policy/preset.h"

/* Requests that are waited for: their vCPU must have left guest mode, and any lockless walk. */
#define REQ_WAIT (REQ_TLB_FLUSH | REQ_FREE_OBSOLETE_ROOTS | REQ_UPDATE_CPU_DIRTY_LOGGING)

struct request {
	struct task *t;
	struct kvm *kvm;
	uint32_t req;
};

static bool request_vcpu(void *ctx, size_t i, struct task **task)
{
	const struct request *r = ctx;
	struct kvm_vcpu *v = r->kvm->vcpus[i];
	enum vcpu_mode mode = v->mode;

	task_assert_first(r->t, "a vCPU's mode and requests");
	*task = v->task;
	v->requests |= r->req;
	if (mode == IN_GUEST_MODE)
		v->mode = EXITING_GUEST_MODE;
	return (r->req & REQ_WAIT) ? mode != OUTSIDE_GUEST_MODE : mode == IN_GUEST_MODE;
}

bool kvm_make_all_cpus_request(struct task *t, struct kvm *kvm, uint32_t req)
{
	struct request r = {t, kvm, req};

	return ipi_call_many(t, request_vcpu, &r, kvm->n_vcpus, req & REQ_WAIT) > 0;
}

/* The CPU's own instruction: no vCPU exits. Whoever else is at it is waited for, since those that
 * receive them do one after the other. (J. Zhang to R. Koller, kvmarm, January 2022: the faults
 * that share mmu_lock serialise by the invalidations alone.) */
static void broadcast_tlbi(struct task *t, struct kvm *kvm)
{
	cycles_t now = task_now(t), from = kvm->tlbi_at > now ? kvm->tlbi_at : now;

	task_assert_first(t, "broadcast invalidations");
	kvm->tlbi_at = from + kvm->tlbi_broadcast;
	charge_cycles(t, COUNT_tlbi, 1, kvm->tlbi_at - now);
	touch_shared(t);
	for (uint32_t i = 0; i < kvm->n_vcpus; i++)
		tlb_flush(&kvm->vcpus[i]->tlb);
}

void kvm_flush_remote_tlbs(struct task *t, struct kvm *kvm)
{
	uint16_t was = activity_enter(t, ACT_tlb_flush);

	charge(t, COUNT_remote_tlb_flush, 1);
	touch_shared(t);
	kvm->stat[STAT_remote_tlb_flush_requests]++;
	if (kvm->preset->arm64)
		broadcast_tlbi(t, kvm);
	else if (kvm_make_all_cpus_request(t, kvm, REQ_TLB_FLUSH))
		kvm->stat[STAT_remote_tlb_flush]++;
	activity_leave(t, was);
}

void walk_lockless_begin(struct kvm_vcpu *v)
{
	if (v->kvm->backend->rcu) {
		rcu_read_lock(v->task, v->kvm, &v->rcu);
		return;
	}
	touch_shared(v->task);
	task_assert_first(v->task, "its vCPU's mode");
	v->mode = READING_SHADOW_TABLES;
}

void walk_lockless_end(struct kvm_vcpu *v)
{
	if (v->kvm->backend->rcu) {
		rcu_read_unlock(v->task, v->kvm, &v->rcu);
		return;
	}
	touch_shared(v->task);
	task_assert_first(v->task, "its vCPU's mode");
	v->mode = OUTSIDE_GUEST_MODE;
	(void)ipi_receive(v->task);
}
