// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/lock.h"

/*
 * Ticket locks: x86 from 2.6.25 to 4.1. All who wait read one line, in which the turn is.
 */
int ticket_init(struct smp_vm *vm, struct smp_lock *l)
{
	(void)vm;
	return lock_alloc_state(l, sizeof(struct ticket_state));
}

int ticket_take(struct smp_vcpu *v, struct smp_lock *l, struct ticket_waiter *w)
{
	struct ticket_state *s = l->state;
	int r = smp_line_rmw(v, &l->line);

	if (r)
		return r;
	smp_lock_arrived(v, l);
	if (s->tail == s->head) {
		s->tail++;
		return 1;
	}
	*w = (struct ticket_waiter){.s = {.v = v, .line = &l->line}, .want = s->tail++};
	if (s->first)
		s->last->next = &w->s;
	else
		s->first = &w->s;
	s->last = &w->s;
	return 0;
}

int ticket_trylock(struct smp_vcpu *v, struct smp_lock *l)
{
	struct ticket_state *s = l->state;
	int r = smp_line_rmw(v, &l->line);

	if (r || s->tail != s->head)
		return r;
	smp_lock_arrived(v, l);
	s->tail++;
	return 1;
}

void ticket_advance(struct smp_vcpu *v, struct ticket_state *s)
{
	struct spinner *next = s->first;

	s->head++;
	if (!next)
		return;
	s->first = next->next;
	spin_release(v, next);
}

static int lock(struct smp_vcpu *v, struct smp_lock *l, bool *contended)
{
	struct ticket_waiter w;
	int r = ticket_take(v, l, &w);

	if (r)
		return r < 0 ? r : 0;
	*contended = true;
	r = spin_wait(v, &w.s, 0);
	return r < 0 ? r : 0;
}

static int unlock(struct smp_vcpu *v, struct smp_lock *l)
{
	int r = smp_line_store(v, &l->line);

	if (!r)
		ticket_advance(v, l->state);
	return r;
}

const struct lock_policy lock_ticket = {
	.desc =
		{
			.name = "ticket",
			.family = FAMILY_LOCK,
			.summary = "ticket locks: first come, first served, who waits spins",
		},
	.fifo = true,
	.init = ticket_init,
	.free = lock_free_state,
	.lock = lock,
	.trylock = ticket_trylock,
	.unlock = unlock,
};
