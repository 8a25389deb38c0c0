// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/smp/smp_priv.h"

/* Entries and exits of a vCPU, and the time between them. */

void vcpu_sched_in(struct sched_thread *th, uint32_t cpu)
{
	struct smp_vcpu *v = sched_private(th);
	const struct ple_policy *ple = v->vm->opts.ple;

	refill_sched_in(v, cpu);
	v->preempted = false;
	v->steal_due = true;
	if (ple && ple->sched_in)
		ple->sched_in(v);
}

void vcpu_sched_out(struct sched_thread *th, bool preempted)
{
	struct smp_vcpu *v = sched_private(th);

	refill_sched_out(v);
	v->preempted = preempted;
	if (!preempted)
		return;
	v->stats.preemptions++;
	if (!v->vm->opts.steal_time)
		return;
	v->reported = true;
	guest_end_watches(v, v);
}

void vcpu_arm(struct smp_vcpu *v)
{
	cycles_t at = v->kick_at < v->timer_at ? v->kick_at : v->timer_at;

	if (at != CYCLES_MAX)
		sched_notify(smp_task(v), v->th, at);
}

void smp_vmexit(struct smp_vcpu *v)
{
	charge(smp_task(v), COUNT_vm_exit, 1);
	v->in_guest = false;
	v->stats.exits++;
}

/* In vcpu_enter_guest(), after the last look for work of the host's. *@injected is set where an
 * interrupt was: it is the guest's first thing to do. */
static void enter_guest(struct smp_vcpu *v, bool *injected)
{
	struct task *t = smp_task(v);
	const struct smp_opts *o = &v->vm->opts;

	if (v->steal_due) {
		v->stats.steal = sched_thread_stats(v->th).run_delay;
		v->reported = false;
		v->steal_due = false;
	}
	if (v->timer_at <= task_now(t)) { /* its host timer has fired meanwhile */
		v->irr |= 1u << IRQ_TIMER;
		v->timer_at = CYCLES_MAX;
	}
	v->kick_at = CYCLES_MAX;
	v->kicked = false;
	*injected = v->irr && v->irqs_on;
	/* Of several, or with irqs off, the vCPU is asked to exit as soon as it can take them. */
	v->window = v->irr && (!v->irqs_on || (v->irr & (v->irr - 1)));
	v->in_guest = true;
	if (*injected && !o->apicv)
		charge(t, COUNT_inject, 1);
	charge(t, COUNT_vm_entry, 1);
	vcpu_arm(v);
}

static int give_way(struct smp_vcpu *v)
{
	struct task *t = smp_task(v);
	int r = sync(t);

	while (!r && sched_need_resched(v->th)) {
		r = sched_schedule(v->th);
		if (!r)
			r = sync(t);
	}
	return r;
}

/* In the guest with irqs on: takes what is pending, the first at once where it was @injected. */
static int take_irqs(struct smp_vcpu *v, bool injected)
{
	struct task *t = smp_task(v);
	const bool apicv = v->vm->opts.apicv;
	int r = 0;

	for (;;) {
		if (injected) {
			uint32_t irq = 31u - (uint32_t)__builtin_clz(v->irr);

			v->irr &= ~(1u << irq);
			r = irq_handle(v, irq);
			if (r)
				return r;
			r = sync(t);
			if (r)
				return r;
		}
		if (!v->window && v->kick_at > task_now(t))
			return 0;
		if (apicv && v->irr && !v->kicked) { /* the CPU delivers them itself */
			v->kick_at = CYCLES_MAX;
			v->window = v->irr & (v->irr - 1);
			injected = true;
			continue;
		}
		smp_vmexit(v);
		v->stats.irq_exits++;
		r = give_way(v);
		if (r)
			return r;
		enter_guest(v, &injected);
	}
}

int smp_vmenter(struct smp_vcpu *v)
{
	bool injected;
	int r = give_way(v);

	if (r)
		return r;
	enter_guest(v, &injected);
	return v->irqs_on ? take_irqs(v, injected) : 0;
}

int smp_service(struct smp_vcpu *v)
{
	struct task *t = smp_task(v);
	uint16_t was;
	int r = sync(t);

	if (r)
		return r;
	if (!sched_need_resched(v->th) && v->timer_at > task_now(t)) {
		if (v->kick_at > task_now(t)) {
			vcpu_arm(v); /* what ended may have been for something else */
			return 0;
		}
		if (v->vm->opts.apicv && !v->kicked) {
			if (v->irqs_on)
				return take_irqs(v, false);
			v->window = true;
			v->kick_at = CYCLES_MAX;
			return 0;
		}
	}
	was = activity_enter(t, ACT_exit);
	smp_vmexit(v);
	v->stats.irq_exits++;
	r = smp_vmenter(v);
	activity_leave(t, was);
	return r;
}

static bool is_due(const struct smp_vcpu *v)
{
	cycles_t now = task_now(smp_task(v));

	return v->kick_at <= now || v->timer_at <= now;
}

static int pay(struct smp_vcpu *v, uint16_t count, uint64_t *owed)
{
	int r = 0;

	while (*owed && !r) {
		uint64_t done;

		r = sched_work(v->th, count, *owed, &done);
		*owed -= done;
		if (!r && *owed)
			r = smp_service(v);
	}
	return r;
}

/* What its instructions took longer, since their lines had to be fetched. */
static int pay_lines(struct smp_vcpu *v)
{
	int r = pay(v, COUNT_guarded_line, &v->owed_lines);

	return r ? r : pay(v, COUNT_l2_miss, &v->owed);
}

int vcpu_work(struct smp_vcpu *v, uint64_t n, uint64_t *done)
{
	int r;

	*done = 0;
	if (is_due(v))
		return smp_service(v);
	r = sched_work(v->th, COUNT_insn, n, done);
	if (v->missing)
		v->owed += refill_due(v, *done);
	if (v->foreign)
		v->owed_lines += guarded_due(v, *done);
	if (!r && (*done < n || is_due(v)))
		r = smp_service(v);
	return (v->owed || v->owed_lines) && !r ? pay_lines(v) : r;
}

int smp_work(struct smp_vcpu *v, uint64_t n)
{
	uint64_t done;
	int r = 0;

	for (; !r && n; n -= done)
		r = vcpu_work(v, n, &done);
	return r;
}

/* ---- interrupts, on and off ---- */

bool smp_irqs_on(const struct smp_vcpu *v)
{
	return v->irqs_on;
}

bool smp_irq_save(struct smp_vcpu *v)
{
	bool was = v->irqs_on;

	v->irqs_on = false;
	return was;
}

int smp_irq_restore(struct smp_vcpu *v, bool was)
{
	struct task *t = smp_task(v);
	uint16_t act;
	int r;

	if (!was || v->irqs_on)
		return 0;
	v->irqs_on = true;
	/* What could have come by now has been sent, unless the task is past its horizon. */
	if (task_now(t) >= task_horizon(t)) {
		r = sync(t);
		if (r)
			return r;
	}
	if (!v->window && v->kick_at > task_now(t))
		return 0;
	r = sync(t);
	if (r)
		return r;
	act = activity_enter(t, ACT_exit);
	r = take_irqs(v, false);
	activity_leave(t, act);
	return r;
}
