// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/smp/smp_priv.h"

/*
 * HLT, as kvm_vcpu_halt() of virt/kvm/kvm_main.c (6.1) handles it: polls for a while that grows
 * after short halts and goes back to none after long ones, then sleeps. Until 4.2 the hosts did not
 * poll: halt_poll_ns 0.
 */
#define GROW	   2u
#define GROW_START 10000u /* ns */

/* kvm_arch_vcpu_runnable() of a halted vCPU. */
static bool may_go_on(struct smp_vcpu *v)
{
	if (v->timer_at <= task_now(smp_task(v))) {
		v->irr |= 1u << IRQ_TIMER;
		v->timer_at = CYCLES_MAX;
	}
	return v->pv_unhalted || (v->irqs_on && v->irr);
}

/* While nobody else wants the CPU: until an interrupt, or the time is over. */
static int poll_halted(struct smp_vcpu *v)
{
	struct task *t = smp_task(v);
	cycles_t from = task_now(t), stop = from + sched_cycles(v->vm->host, v->halt_poll_ns);
	int r = 0;

	v->polling = true;
	while (!may_go_on(v) && task_now(t) < stop && !sched_need_resched(v->th) &&
	       sched_nr_running(v->vm->host, sched_cpu(v->th)) == 1) {
		cycles_t until = v->timer_at < stop ? v->timer_at : stop;

		r = sched_spin(v->th, WAIT_halt_poll, until);
		if (r >= 0)
			r = sync(t);
		if (r)
			break;
	}
	v->polling = false;
	v->stats.polled += task_now(t) - from;
	return r;
}

/* kvm_vcpu_block(). */
static int block_halted(struct smp_vcpu *v, bool *waited)
{
	struct task *t = smp_task(v);
	const bool yields = v->vm->opts.lock && v->vm->opts.lock->halt_yields;
	cycles_t from = task_now(t);
	int r = 0;

	*waited = false;
	v->blocking = true;
	while (!may_go_on(v)) {
		*waited = true;
		if (yields) {
			r = smp_on_spin(v, true);
			if (r < 0)
				break;
			r = 0;
			if (may_go_on(v))
				break;
		}
		v->wake_sent = false;
		if (v->timer_at == CYCLES_MAX)
			r = sched_sleep(v->th, WAIT_halted);
		else
			r = sched_sleep_until(v->th, WAIT_halted, v->timer_at);
		if (r >= 0)
			r = sync(t);
		if (r)
			break;
	}
	v->blocking = false;
	v->wake_sent = false;
	if (*waited)
		v->stats.halt_wakeups++;
	v->stats.halted += task_now(t) - from;
	return r;
}

static void adapt(struct smp_vcpu *v, uint64_t halted_ns)
{
	const uint64_t most = v->vm->opts.halt_poll_ns;

	if (most && halted_ns <= v->halt_poll_ns)
		return; /* the poll was long enough */
	if (!most || (v->halt_poll_ns && halted_ns > most))
		v->halt_poll_ns = 0;
	else if (v->halt_poll_ns < most && halted_ns < most)
		v->halt_poll_ns =
			v->halt_poll_ns * GROW < GROW_START ? GROW_START : v->halt_poll_ns * GROW;
}

static int handle_halt(struct smp_vcpu *v)
{
	struct task *t = smp_task(v);
	bool polled, waited = false;
	cycles_t from;
	int r = sync(t);

	if (r)
		return r;
	if (v->halt_poll_ns > v->vm->opts.halt_poll_ns)
		v->halt_poll_ns = v->vm->opts.halt_poll_ns;
	from = task_now(t);
	polled = v->halt_poll_ns;
	if (polled)
		r = poll_halted(v);
	if (!r)
		r = block_halted(v, &waited);
	if (r)
		return r;
	if (polled && waited)
		v->stats.halt_poll_fail++;
	else if (polled)
		v->stats.halt_poll_success++;
	adapt(v, sched_ns(v->vm->host, task_now(t) - from));
	v->pv_unhalted = false;
	return 0;
}

int smp_halt(struct smp_vcpu *v)
{
	struct task *t = smp_task(v);
	uint16_t was = activity_enter(t, ACT_halt);
	int r;

	smp_vmexit(v);
	v->stats.halt_exits++;
	r = handle_halt(v);
	if (!r)
		r = smp_vmenter(v);
	activity_leave(t, was);
	return r;
}

int smp_safe_halt(struct smp_vcpu *v)
{
	v->irqs_on = true; /* STI holds interrupts off for one instruction */
	return smp_halt(v);
}
