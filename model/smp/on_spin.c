// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/smp/smp_priv.h"

/*
 * What the host does at a pause-loop exit: kvm_vcpu_on_spin() of virt/kvm/kvm_main.c. It looks for
 * a vCPU that may hold the lock and has no CPU, from the one after the last that it found on, once
 * round, and yields to it. Three yields in vain, because neither run queue has another thread, and
 * it gives up.
 */
#define TRIES 3

struct smp_spin_loop *smp_spin_loop(struct smp_vcpu *v)
{
	return &v->spin_loop;
}

bool smp_owes_answer(const struct smp_vcpu *v, const struct smp_vcpu *target)
{
	const struct smp_csd *c = v->csd ? &v->csd[target->id] : NULL;

	return c && c->locked && c->wait;
}

/* [running, synced] 1: yielded; 0: go on with the next; negative. */
static int try_vcpu(struct smp_vcpu *me, struct smp_vcpu *target, unsigned pass, bool sleeps,
		    unsigned *tries)
{
	const struct ple_policy *ple = me->vm->opts.ple;
	struct task *t = smp_task(me);
	bool alone;
	int r;

	charge(t, COUNT_on_spin_vcpu, 1);
	r = sync(t);
	if (r)
		return r;
	if (target == me || (target->blocking && !smp_vcpu_has_events(target)))
		return 0;
	if (ple && ple->eligible ? !ple->eligible(me, target, pass) : !sched_runnable(target->th))
		return 0;
	me->stats.yield_attempted++;
	r = sleeps ? sched_boost(me->th, target->th, true, &alone)
		   : sched_yield_to(me->th, target->th, true, &alone);
	if (r == KVMSIM_ECANCELED)
		return r;
	if (r > 0) {
		me->stats.yield_successful++;
		me->vm->last_boosted = target->id;
		return 1;
	}
	if (alone)
		(*tries)--;
	return 0;
}

int smp_on_spin(struct smp_vcpu *me, bool sleeps)
{
	struct smp_vm *vm = me->vm;
	const struct ple_policy *ple = vm->opts.ple;
	const unsigned passes = ple && ple->rounds ? 2 * ple->rounds(me) : 2;
	const uint32_t last = vm->last_boosted, n = vm->opts.vcpus;
	unsigned tries = TRIES;
	int r = 0;

	me->spin_loop.in_spin_loop = true;
	for (unsigned pass = 0; !r && tries && pass < passes; pass++) {
		uint32_t from = pass % 2 ? 0 : last + 1, to = pass % 2 ? last + 1 : n;

		for (uint32_t i = from; !r && tries && i < to; i++)
			r = try_vcpu(me, &vm->vcpu[i], pass, sleeps, &tries);
	}
	if (r >= 0) {
		int e = sync(smp_task(me));

		r = e ? e : r;
	}
	me->spin_loop = (struct smp_spin_loop){.in_spin_loop = false};
	return r;
}

int smp_pause_exit(struct smp_vcpu *v)
{
	const struct ple_policy *ple = v->vm->opts.ple;
	struct task *t = smp_task(v);
	uint16_t was = activity_enter(t, ACT_pause_exit);
	int r;

	smp_vmexit(v);
	v->stats.pause_exits++;
	if (ple && ple->exited)
		ple->exited(v);
	r = sync(t);
	if (!r)
		r = smp_on_spin(v, false);
	if (r >= 0)
		r = smp_vmenter(v);
	activity_leave(t, was);
	return r;
}
