// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/trace.h"

#include "model/mmu/mmu.h"
#include "model/mmu/stats.h"

static const char *const trace_names[] = {
#define X(n) #n,
	KVM_TRACE_EVENTS(X)
#undef X
};
static const char *const stat_names[] = {
#define X(n) #n,
	KVM_VM_STATS(X) KVM_VCPU_STATS(X)
#undef X
};

const char *kvm_trace_name(enum kvm_trace_id id)
{
	return trace_names[id];
}

const char *kvm_stat_name(enum kvm_stat_id id)
{
	return stat_names[id];
}

bool kvm_stat_is_gauge(enum kvm_stat_id id)
{
	switch (id) {
	case STAT_mmu_unsync:
	case STAT_pages_4k:
	case STAT_pages_2m:
	case STAT_pages_1g:
	case STAT_nx_lpage_splits:
	case STAT_max_mmu_rmap_size:
	case STAT_max_mmu_page_hash_collisions:
		return true;
	default:
		return false;
	}
}

void kvm_trace(struct task *t, struct kvm *kvm, const struct kvm_vcpu *v, struct kvm_trace_event *e)
{
	e->vcpu = v ? v->id : UINT32_MAX;
	e->rip = v ? v->rip : 0;
	e->task = task_id(t);
	e->time = task_now(t);
	kvm->observer->event(kvm->observer->ctx, e);
}

void kvm_trace_page(struct task *t, struct kvm *kvm, const struct kvm_vcpu *v, enum kvm_trace_id id,
		    const struct kvm_mmu_page *sp, bool created)
{
	kvm_trace_event(t, kvm, v, .id = id, .gfn = sp->gfn, .level = sp->role.level,
			.direct = sp->role.direct, .efer_nx = sp->role.efer_nx,
			.ad_disabled = sp->role.ad_disabled, .quadrant = sp->role.quadrant,
			.gpte_bytes = sp->role.has_4_byte_gpte ? 4 : 8, .invalid = sp->role.invalid,
			.unsync = sp->unsync, .access = sp->role.access, .gen = sp->valid_gen,
			.root_count = sp->root_count, .created = created);
}
