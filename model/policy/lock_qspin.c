// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/lock.h"

/*
 * Queued spinlocks, since 4.2 (kernel/locking/qspinlock.c): the first who waits sets the pending
 * bit and spins on the lock, others queue, each at a line of its own, MCS locks; the head of the
 * queue spins on the lock after the pending one. With tas=1 who finds it taken tests and sets
 * instead, as virt_spin_lock() does in a guest whose hypervisor has no paravirtual ones. Not
 * modelled: that who comes while the lock goes to the pending one waits for the end of that, it
 * queues.
 */
enum { TAS };

static const struct policy_param params[] = {
	{"tas", 0, 0, 1, 1, "1: test and set in the place of queues (virt_spin_lock())"},
	{.name = NULL}};

struct qnode {
	struct spinner s;
	struct smp_line line;
	struct qnode *next;
};

struct qspin_state {
	struct tas_state tas;		/* .locked is the lock's with queues too */
	struct spinner *pending, *head; /* who spins on the lock's own line */
	bool pending_bit;
	struct qnode *tail;
};

static int init(struct smp_vm *vm, struct smp_lock *l)
{
	(void)vm;
	return lock_alloc_state(l, sizeof(struct qspin_state));
}

/* [running, synced] The lock was let go, or the pending one has it. */
static void tell(struct smp_vcpu *v, struct qspin_state *s)
{
	if (s->tas.locked)
		return;
	if (s->pending)
		spin_release(v, s->pending);
	else if (s->head && !s->pending_bit)
		spin_release(v, s->head);
}

/* [running] Spins on the lock's line until told; *@place says that it does. */
static int wait_at_lock(struct smp_vcpu *v, struct smp_lock *l, struct spinner **place)
{
	struct spinner w = {.v = v, .line = &l->line};
	int r;

	*place = &w;
	r = spin_wait(v, &w, 0);
	*place = NULL;
	return r < 0 ? r : 0;
}

/* [running, synced] The pending bit is this one's. */
static int lock_pending(struct smp_vcpu *v, struct smp_lock *l, struct qspin_state *s)
{
	int r = 0;

	s->pending_bit = true;
	smp_lock_arrived(v, l);
	while (!r && s->tas.locked)
		r = wait_at_lock(v, l, &s->pending);
	if (!r)
		r = smp_line_store(v, &l->line);
	s->pending_bit = false;
	s->tas.locked = true;
	return r;
}

static int lock_queued(struct smp_vcpu *v, struct smp_lock *l, struct qspin_state *s)
{
	struct qnode n = {.s = {.v = v, .line = &n.line}}, *prev;
	int r = smp_line_rmw(v, &l->line);

	if (r)
		return r;
	smp_line_init(&n.line);
	smp_lock_arrived(v, l);
	prev = s->tail;
	s->tail = &n;
	if (prev) {
		prev->next = &n;
		r = spin_wait(v, &n.s, 0);
		r = r < 0 ? r : 0;
	}
	while (!r && (s->tas.locked || s->pending_bit))
		r = wait_at_lock(v, l, &s->head);
	if (!r)
		r = smp_line_rmw(v, &l->line);
	if (r) {
		s->tail = NULL; /* cancelled: nobody goes on */
		return r;
	}
	s->tas.locked = true;
	if (s->tail == &n) {
		s->tail = NULL;
		return 0;
	}
	spin_release(v, &n.next->s);
	return 0;
}

static int lock(struct smp_vcpu *v, struct smp_lock *l, bool *contended)
{
	struct qspin_state *s = l->state;
	int r;

	if (lock_param(v, TAS))
		return tas_lock(v, l, &s->tas, contended);
	r = smp_line_rmw(v, &l->line);
	if (r)
		return r;
	if (!s->tas.locked && !s->pending_bit && !s->tail) {
		smp_lock_arrived(v, l);
		s->tas.locked = true;
		return 0;
	}
	*contended = true;
	if (s->pending_bit || s->tail)
		return lock_queued(v, l, s);
	r = smp_line_rmw(v, &l->line); /* sets the pending bit, and sees what else there is */
	if (r)
		return r;
	return s->pending_bit || s->tail ? lock_queued(v, l, s) : lock_pending(v, l, s);
}

static int trylock(struct smp_vcpu *v, struct smp_lock *l)
{
	struct qspin_state *s = l->state;
	int r = smp_line_rmw(v, &l->line);

	if (r || s->tas.locked || s->pending_bit || s->tail)
		return r;
	if (!lock_param(v, TAS))
		smp_lock_arrived(v, l);
	s->tas.locked = true;
	return 1;
}

static int unlock(struct smp_vcpu *v, struct smp_lock *l)
{
	struct qspin_state *s = l->state;
	int r = smp_line_store(v, &l->line);

	if (r)
		return r;
	if (lock_param(v, TAS)) {
		tas_release(v, &s->tas);
		return 0;
	}
	s->tas.locked = false;
	tell(v, s);
	return 0;
}

const struct lock_policy lock_qspin = {
	.desc =
		{
			.name = "qspin",
			.family = FAMILY_LOCK,
			.summary = "queued spinlocks: who waits spins on a line of its own",
			.params = params,
		},
	.fifo = true,
	.init = init,
	.free = lock_free_state,
	.lock = lock,
	.trylock = trylock,
	.unlock = unlock,
};
