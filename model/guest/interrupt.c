// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/run.h"
#include "model/guest/vcpu.h"

int vcpu_interrupt(struct kvm_vcpu *v)
{
	uint16_t was;

	if (!v->in_run)
		return task_canceled(v->task) ? KVMSIM_ECANCELED : 0;
	was = activity_enter(v->task, ACT_exit);
	touch_shared(v->task);
	task_assert_first(v->task, "its vCPU's mode");
	if (v->mode != OUTSIDE_GUEST_MODE) {
		vcpu_exit(v, EXIT_INTR);
		v->stat[STAT_irq_exits]++;
	}
	(void)vcpu_to_userspace(v, KVM_EXIT_INTR);
	activity_leave(v->task, was);
	return task_canceled(v->task) ? KVMSIM_ECANCELED : 0;
}
