// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/watch.h"

#include "model/guest/run.h"

static uint16_t activity_of(enum kvm_operation op)
{
	switch (op) {
	case KVM_OP_get:
		return ACT_get_dirty_log;
	case KVM_OP_clear:
		return ACT_clear_dirty_log;
	case KVM_OP_reset:
		return ACT_reset_dirty_rings;
	default:
		return ACT_memslot;
	}
}

struct ioctl_scope ioctl_enter(struct task *t, struct kvm *kvm, enum kvm_operation op)
{
	struct ioctl_scope s = {
		.activity = activity_enter(t, activity_of(op)), .op = op, .start = task_now(t)};
	struct host_watch *w = kvm->watch ? host_watch(t) : NULL;

	if (w) {
		s.operation = w->operation;
		w->operation = (uint16_t)op;
		host_watch_holds(t, mmu_lock_queue(kvm));
	}
	return s;
}

void ioctl_leave(struct task *t, struct kvm *kvm, const struct ioctl_scope *s)
{
	struct host_watch *w = kvm->watch ? host_watch(t) : NULL;

	activity_leave(t, s->activity);
	if (!w)
		return;
	w->operation = s->operation;
	touch_shared(t);
	kvm->watch->ioctl(kvm->watch->ctx, &(struct kvm_ioctl){.operation = s->op,
							       .task = t,
							       .start = s->start,
							       .cycles = task_now(t) - s->start,
							       .hold = w->hold[0],
							       .hold_shared = w->hold[1]});
}

void stall_begin(struct kvm_vcpu *v, unsigned exit)
{
	if (!v->kvm->watch)
		return;
	v->stall.begun = true;
	v->stall.exit = exit;
	v->stall.start = task_now(v->task);
	host_watch_waits(v->task);
}

void stall_end(struct kvm_vcpu *v, bool guest)
{
	const struct host_watch *w;

	if (!v->kvm->watch || !v->stall.begun)
		return;
	v->stall.begun = false;
	w = host_watch(v->task);
	if (!guest || !w)
		return;
	v->kvm->watch->stall(v->kvm->watch->ctx,
			     &(struct kvm_stall){.vcpu = v->id,
						 .exit = v->stall.exit,
						 .start = v->stall.start,
						 .cycles = task_now(v->task) - v->stall.start,
						 .waited = w->waited,
						 .why = w->waited ? w->longest : w->interrupt});
}
