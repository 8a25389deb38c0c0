/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_GUEST_VCPU_TLB_H
#define KVMSIM_GUEST_VCPU_TLB_H

#include "model/guest/vcpu.h"
#include "model/mmu/mmu.h"

/* What an access that needs PFERR_* looks for. */
static inline unsigned tlb_flag(uint64_t need)
{
	return need & PFERR_WRITE ? TLB_WRITE : need & PFERR_FETCH ? TLB_EXEC : TLB_READ;
}

/*
 * The short way past vcpu_read(), _write() and _fetch(), for the op interpreter: a hit that touches
 * nothing but the vCPU's own translations costs one comparison.
 *
 * While vcpu_may_hit() holds and the task's time is strictly before task_horizon(), a run of
 * accesses for which vcpu_hits() is true may retire one after the other without a call; nothing
 * changes the vCPU's translations until its task next calls one of vcpu.h's functions. On a miss,
 * at the horizon, or when a message is due, call them.
 */
static inline bool vcpu_may_hit(const struct kvm_vcpu *v)
{
	return v->mode == IN_GUEST_MODE && !task_message_due(v->task);
}

static inline bool vcpu_hits_read(struct kvm_vcpu *v, gva_t gva)
{
	return tlb_lookup(&v->tlb, gva, TLB_READ | TLB_PRIVATE);
}

static inline bool vcpu_hits_write(struct kvm_vcpu *v, gva_t gva)
{
	return tlb_lookup(&v->tlb, gva, TLB_WRITE | TLB_PRIVATE);
}

static inline bool vcpu_hits_fetch(struct kvm_vcpu *v, gva_t gva)
{
	return tlb_lookup(&v->tlb, gva, TLB_EXEC | TLB_PRIVATE);
}

#endif
