// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>

#include "model/smp/smp_priv.h"

/* Interrupts between vCPUs, and what the guest does at one. */

void vcpu_kick(struct smp_vcpu *from, struct smp_vcpu *target)
{
	struct task *t = smp_task(from);

	if (target == from)
		return; /* not in the guest: looks before it enters */
	if (target->blocking) {
		if (target->wake_sent)
			return;
		target->wake_sent = true;
		(void)sched_wake(t, from->th, target->th);
	} else if (target->polling) {
		sched_notify(t, target->th, task_now(t));
	} else if (target->in_guest) {
		cycles_t at = task_now(t) + from->vm->ipi;

		if (at >= target->kick_at)
			return; /* one is under way */
		target->kick_at = at;
		sched_notify(t, target->th, at);
	}
	/* Otherwise it is outside the guest, or preempted: it looks when it enters. */
}

/* [running] The guest's write of the ICR for @target, of which the host's part is left to the
 * caller: whether it has to exit for that. */
static bool icr_exits(const struct smp_vcpu *v, const struct smp_vcpu *target)
{
	return !v->vm->opts.apicv || target->blocking;
}

/* [running, synced] In the host, or in hardware. */
static void send_irq(struct smp_vcpu *v, struct smp_vcpu *target, enum smp_irq irq)
{
	target->irr |= 1u << irq;
	if (target == v)
		v->window = true;
	else
		vcpu_kick(v, target);
}

/* [running] One IPI, by the register. */
static int send_ipi(struct smp_vcpu *v, struct smp_vcpu *target, enum smp_irq irq)
{
	struct task *t = smp_task(v);
	uint16_t was;
	bool exits;
	int r = sync(t);

	if (r)
		return r;
	exits = icr_exits(v, target);
	was = activity_enter(t, ACT_exit);
	if (exits)
		smp_vmexit(v);
	charge(t, COUNT_ipi, 1);
	r = sync(t);
	if (!r) {
		send_irq(v, target, irq);
		r = exits ? smp_vmenter(v) : 0;
	}
	activity_leave(t, was);
	return r;
}

int smp_send_reschedule(struct smp_vcpu *v, struct smp_vcpu *target)
{
	return send_ipi(v, target, IRQ_RESCHEDULE);
}

/* ---- hypercalls ---- */

/* [running] kvm_sched_yield(), kvm_vcpu_yield_to(): 1, 0. */
static int host_yield_to(struct smp_vcpu *v, struct smp_vcpu *target)
{
	bool alone;
	int r;

	v->stats.yield_attempted++;
	if (target == v || target->blocking || !target->preempted ||
	    sched_nr_running(v->vm->host, sched_cpu(v->th)) == 1)
		return 0;
	r = sched_yield_to(v->th, target->th, true, &alone);
	if (r > 0)
		v->stats.yield_successful++;
	return r < 0 && r != KVMSIM_ECANCELED ? 0 : r;
}

int smp_kick_cpu(struct smp_vcpu *v, struct smp_vcpu *target)
{
	struct task *t = smp_task(v);
	uint16_t was = activity_enter(t, ACT_exit);
	int r;

	smp_vmexit(v);
	v->stats.hypercalls++;
	v->stats.kicks++;
	charge(t, COUNT_hypercall, 1);
	r = sync(t);
	if (!r) {
		target->pv_unhalted = true;
		target->kicked = target->in_guest;
		vcpu_kick(v, target);
		r = sync(t);
	}
	if (!r && v->vm->opts.kick_yields) {
		r = host_yield_to(v, target);
		r = r < 0 ? r : 0;
	}
	if (!r)
		r = smp_vmenter(v);
	activity_leave(t, was);
	return r;
}

int smp_yield_to(struct smp_vcpu *v, struct smp_vcpu *target)
{
	struct task *t = smp_task(v);
	uint16_t was = activity_enter(t, ACT_exit);
	int r, yielded;

	smp_vmexit(v);
	v->stats.hypercalls++;
	charge(t, COUNT_hypercall, 1);
	r = sync(t);
	yielded = r ? r : host_yield_to(v, target);
	r = yielded < 0 ? yielded : smp_vmenter(v);
	activity_leave(t, was);
	return r ? r : yielded;
}

/* ---- calls of functions ---- */

/* csd_lock_wait(): until @c's target is done with it. With irqs on it takes interrupts meanwhile.
 */
static int csd_wait(struct smp_vcpu *v, struct smp_line *line, struct smp_csd *c)
{
	struct spinner s = {.v = v, .line = line};
	int r = sync(smp_task(v));

	if (r || !c->locked)
		return r;
	c->waiter = &s;
	r = spin_wait(v, &s, 0);
	c->waiter = NULL;
	return r < 0 ? r : 0;
}

/* Leaves a call with @target; *@first is set where its list was empty: then it has to be told. */
static int queue_call(struct smp_vcpu *v, struct smp_vcpu *target, uint64_t insns, bool wait,
		      bool *first)
{
	struct smp_csd *c = &v->csd[target->id];
	struct smp_line line;
	int r;

	smp_line_init(&line);
	r = csd_wait(v, &line, c);
	if (r)
		return r;
	*c = (struct smp_csd){
		.next = target->calls, .from = v, .insns = insns, .locked = true, .wait = wait};
	*first = !target->calls;
	target->calls = c;
	return 0;
}

/* One hypercall for all of the VM's vCPUs: KVM_HC_SEND_IPI. @told: of each whether it needs one. */
static int send_pv_ipi(struct smp_vcpu *v, struct smp_vcpu *const *targets, size_t n,
		       const bool *told)
{
	struct task *t = smp_task(v);
	uint16_t was = activity_enter(t, ACT_exit);
	int r = 0;

	smp_vmexit(v);
	v->stats.hypercalls++;
	charge(t, COUNT_hypercall, 1);
	for (size_t i = 0; !r && i < n; i++) {
		if (!told[targets[i]->id])
			continue;
		charge(t, COUNT_ipi, 1);
		r = sync(t);
		if (!r)
			send_irq(v, targets[i], IRQ_CALL);
	}
	if (!r)
		r = smp_vmenter(v);
	activity_leave(t, was);
	return r;
}

int smp_call_function_many(struct smp_vcpu *v, struct smp_vcpu *const *targets, size_t n,
			   uint64_t insns, bool wait)
{
	bool told[512] = {false}, any = false;
	struct smp_line line;
	int r = 0;

	if (!v->csd) {
		v->csd = calloc(v->vm->opts.vcpus, sizeof(*v->csd));
		if (!v->csd)
			return KVMSIM_ENOMEM;
	}
	for (size_t i = 0; !r && i < n; i++) {
		if (targets[i] == v)
			continue;
		r = queue_call(v, targets[i], insns, wait, &told[targets[i]->id]);
		any |= told[targets[i]->id];
	}
	if (!r && any && v->vm->opts.pv_ipi && !v->vm->opts.apicv) {
		r = send_pv_ipi(v, targets, n, told);
	} else {
		for (size_t i = 0; !r && i < n; i++) {
			if (told[targets[i]->id])
				r = send_ipi(v, targets[i], IRQ_CALL);
		}
	}
	smp_line_init(&line);
	for (size_t i = 0; !r && wait && i < n; i++) {
		if (targets[i] != v)
			r = csd_wait(v, &line, &v->csd[targets[i]->id]);
	}
	return r;
}

static void csd_unlock(struct smp_vcpu *v, struct smp_csd *c)
{
	c->locked = false;
	if (c->waiter)
		spin_release(v, c->waiter);
}

/* The handler: all calls that have been queued, in their order. */
static int run_calls(struct smp_vcpu *v)
{
	struct smp_csd *c, *list = NULL;
	int r = sync(smp_task(v));

	if (r)
		return r;
	while ((c = v->calls)) {
		v->calls = c->next;
		c->next = list;
		list = c;
	}
	while ((c = list) && !r) {
		uint64_t insns = c->insns;
		bool wait = c->wait;

		list = c->next; /* once it is unlocked it is its sender's */
		if (!wait)
			csd_unlock(v, c);
		r = smp_work(v, insns);
		if (!r)
			r = sync(smp_task(v));
		if (!r && wait)
			csd_unlock(v, c);
	}
	return r;
}

int irq_handle(struct smp_vcpu *v, enum smp_irq irq)
{
	struct task *t = smp_task(v);
	uint16_t was = activity_enter(t, ACT_guest_irq);
	int r;

	v->irqs_on = false;
	v->stats.irqs++;
	charge(t, COUNT_guest_irq, 1);
	r = sync(t);
	if (!r && irq == IRQ_TIMER)
		r = guest_timer_irq(v);
	else if (!r && irq == IRQ_CALL)
		r = run_calls(v);
	else if (!r)
		guest_reschedule_irq(v);
	v->irqs_on = true;
	activity_leave(t, was);
	return r;
}
