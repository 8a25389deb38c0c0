// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/ple.h"
#include "model/smp/smp.h"

/*
 * Candidates for directed yields. Which of them are looked at differs by kernel: any runnable vCPU
 * (2.6.39); those that are not in a pause-loop exit themselves, of these each every second time
 * (3.6); preempted ones only (3.10); preempted or just woken ones (5.3, vcpu->ready). Who waits for
 * the answer to a function call first tries those who owe it (a series of 2025, which is
 * IPI-aware).
 */
static uint64_t param(const struct smp_vcpu *v, enum ple_param p)
{
	return smp_vm_opts(smp_vm_of(v))->ple_params.value[p];
}

uint64_t ple_gap(const struct smp_vcpu *v)
{
	return param(v, PLE_GAP);
}

unsigned ple_rounds(const struct smp_vcpu *v)
{
	return param(v, PLE_CANDIDATES) == 3 ? 2 : 1;
}

static bool waits_for_cpu(const struct smp_vcpu *target, bool ready)
{
	const struct sched_thread *th = smp_thread(target);

	if (smp_vcpu_was_preempted(target))
		return true;
	return ready && sched_runnable(th) && !sched_on_cpu(th);
}

static bool eligible(struct smp_vcpu *target)
{
	struct smp_spin_loop *l = smp_spin_loop(target);
	bool yes = !l->in_spin_loop || l->dy_eligible;

	if (l->in_spin_loop)
		l->dy_eligible = !l->dy_eligible;
	return yes;
}

bool ple_eligible(struct smp_vcpu *v, struct smp_vcpu *target, unsigned pass)
{
	const uint64_t candidates = param(v, PLE_CANDIDATES);

	if (candidates == 0)
		return sched_runnable(smp_thread(target));
	if (candidates >= 2 && !waits_for_cpu(target, param(v, PLE_READY)))
		return false;
	if (candidates == 3 && pass < 2)
		return smp_owes_answer(v, target);
	return eligible(target);
}

bool ple_eligible_preempted(struct smp_vcpu *v, struct smp_vcpu *target, unsigned pass)
{
	(void)v;
	(void)pass;
	return smp_vcpu_was_preempted(target) && eligible(target);
}
