// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>

#include "model/smp/smp_priv.h"

/*
 * Spinlocks: what is the same whichever policy they have. A lock's holder, its statistics and the
 * order of arrivals are changed at the moment at which the policy's operation takes effect: it
 * returns synced.
 */

/* A place in a lock's order. An interrupt's, on the same vCPU, has its own. */
struct smp_arrival {
	bool arrived;
	uint64_t number;
};

int smp_lock_init(struct smp_vm *vm, struct smp_lock *l, const struct smp_lock_class *class)
{
	const struct lock_policy *p = vm->opts.lock;

	*l = (struct smp_lock){.class = class, .vm = vm};
	smp_line_init(&l->line);
	if (!p)
		return kvmsim_err(sim_errors(vm->sim), KVMSIM_EINVAL,
				  "VM %s has no lock policy, but takes lock %s", vm->opts.name,
				  class->name);
	return p->init(vm, l);
}

void smp_lock_free(struct smp_lock *l)
{
	const struct lock_policy *p = l->vm ? l->vm->opts.lock : NULL;

	if (p && p->free && l->state)
		p->free(l);
	l->state = NULL;
}

static int broken(const struct smp_vcpu *v, const struct smp_lock *l, const char *what,
		  const struct smp_vcpu *other)
{
	sim_fail(v->vm->sim, KVMSIM_ECHECK);
	if (other)
		return kvmsim_err(sim_errors(v->vm->sim), KVMSIM_ECHECK,
				  "lock %s at %" PRIu64 ": vCPU %u %s vCPU %u", l->class->name,
				  task_now(smp_task(v)), v->id, what, other->id);
	return kvmsim_err(sim_errors(v->vm->sim), KVMSIM_ECHECK,
			  "lock %s at %" PRIu64 ": vCPU %u %s", l->class->name,
			  task_now(smp_task(v)), v->id, what);
}

void smp_lock_arrived(struct smp_vcpu *v, struct smp_lock *l)
{
	v->arrival->arrived = true;
	v->arrival->number = l->arrivals++;
}

/* [running, synced] The policy says that it has it. */
static int taken(struct smp_vcpu *v, struct smp_lock *l, const struct smp_arrival *a, cycles_t from,
		 bool contended)
{
	cycles_t now = task_now(smp_task(v));
	struct smp_lock_stats *s = &l->stats;

	if (l->owner)
		return broken(v, l, "takes what is held by", l->owner);
	if (a->arrived && a->number != l->departures++)
		return broken(v, l, "takes it before one who came first", NULL);
	l->owner = v;
	l->since = now;
	guarded_taken(v, l);
	s->acquired++;
	if (!contended)
		return 0;
	s->contended++;
	s->wait += now - from;
	if (now - from > s->longest_wait)
		s->longest_wait = now - from;
	return 0;
}

/* [running] With preemption off. */
static int lock(struct smp_vcpu *v, struct smp_lock *l)
{
	struct task *t = smp_task(v);
	struct smp_arrival here = {.arrived = false}, *outer = v->arrival;
	uint16_t was = activity_enter(t, ACT_guest_lock);
	cycles_t from = task_now(t);
	bool contended = false;
	int r;

	if (l->owner == v)
		return broken(v, l, "takes again what it holds", NULL);
	v->arrival = &here;
	r = v->vm->opts.lock->lock(v, l, &contended);
	v->arrival = outer;
	if (!r)
		r = taken(v, l, &here, from, contended);
	activity_leave(t, was);
	return r;
}

/* [running] With preemption off: it stays so. */
static int unlock(struct smp_vcpu *v, struct smp_lock *l)
{
	struct task *t = smp_task(v);
	cycles_t hold = task_now(t) - l->since;
	uint16_t was;
	int r;

	if (l->owner != v)
		return broken(v, l, "releases what it does not hold", l->owner);
	l->stats.hold += hold;
	if (hold > l->stats.longest_hold)
		l->stats.longest_hold = hold;
	l->owner = NULL;
	guarded_given(v, l);
	was = activity_enter(t, ACT_guest_lock);
	r = v->vm->opts.lock->unlock(v, l);
	activity_leave(t, was);
	return r;
}

int smp_spin_lock(struct smp_vcpu *v, struct smp_lock *l)
{
	guest_preempt_disable(v);
	return lock(v, l);
}

int smp_spin_trylock(struct smp_vcpu *v, struct smp_lock *l)
{
	struct task *t = smp_task(v);
	struct smp_arrival here = {.arrived = false}, *outer = v->arrival;
	uint16_t was = activity_enter(t, ACT_guest_lock);
	int r;

	guest_preempt_disable(v);
	v->arrival = &here;
	r = v->vm->opts.lock->trylock(v, l);
	v->arrival = outer;
	if (r > 0) {
		int e = taken(v, l, &here, task_now(t), false);

		r = e ? e : r;
	}
	activity_leave(t, was);
	if (!r) {
		int e = guest_preempt_enable(v);

		r = e ? e : r;
	}
	return r;
}

int smp_spin_unlock(struct smp_vcpu *v, struct smp_lock *l)
{
	int r = unlock(v, l);

	return r ? r : guest_preempt_enable(v);
}

int smp_spin_lock_irqsave(struct smp_vcpu *v, struct smp_lock *l, bool *flags)
{
	*flags = smp_irq_save(v);
	return smp_spin_lock(v, l);
}

int smp_spin_unlock_irqrestore(struct smp_vcpu *v, struct smp_lock *l, bool flags)
{
	int r = unlock(v, l);

	if (!r)
		r = smp_irq_restore(v, flags);
	return r ? r : guest_preempt_enable(v);
}
