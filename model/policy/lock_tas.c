// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/lock.h"

/*
 * Test and set: who is quickest gets it. What qspinlocks become in guests of hypervisors without
 * paravirtual ones, "because fair locks have horrible lock holder preemption issues".
 */
static int init(struct smp_vm *vm, struct smp_lock *l)
{
	(void)vm;
	return lock_alloc_state(l, sizeof(struct tas_state));
}

static int lock(struct smp_vcpu *v, struct smp_lock *l, bool *contended)
{
	return tas_lock(v, l, l->state, contended);
}

static int trylock(struct smp_vcpu *v, struct smp_lock *l)
{
	struct tas_state *s = l->state;
	int r = smp_line_rmw(v, &l->line);

	if (r || s->locked)
		return r;
	s->locked = true;
	return 1;
}

static int unlock(struct smp_vcpu *v, struct smp_lock *l)
{
	int r = smp_line_store(v, &l->line);

	if (!r)
		tas_release(v, l->state);
	return r;
}

const struct lock_policy lock_tas = {
	.desc =
		{
			.name = "tas",
			.family = FAMILY_LOCK,
			.summary = "test and set: unfair, all who wait spin on one line",
		},
	.init = init,
	.free = lock_free_state,
	.lock = lock,
	.trylock = trylock,
	.unlock = unlock,
};
