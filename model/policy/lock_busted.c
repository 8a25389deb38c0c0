// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/counts.h"
#include "model/policy/lock.h"

/* Deliberately wrong: tests and sets by two operations, between which another may come. */
static int init(struct smp_vm *vm, struct smp_lock *l)
{
	(void)vm;
	return lock_alloc_state(l, sizeof(struct tas_state));
}

static int test_then_set(struct smp_vcpu *v, struct tas_state *s)
{
	int r;

	if (s->locked)
		return 0;
	charge(smp_task(v), COUNT_lock, 1);
	r = sync(smp_task(v));
	s->locked = true;
	return r ? r : 1;
}

static int trylock(struct smp_vcpu *v, struct smp_lock *l)
{
	int r = smp_line_store(v, &l->line);

	return r ? r : test_then_set(v, l->state);
}

static int lock(struct smp_vcpu *v, struct smp_lock *l, bool *contended)
{
	struct tas_state *s = l->state;

	for (;;) {
		struct spinner w = {.v = v, .line = &l->line};
		int r = trylock(v, l);

		if (r)
			return r < 0 ? r : 0;
		*contended = true;
		w.next = s->waiters;
		s->waiters = &w;
		r = spin_wait(v, &w, 0);
		if (r < 0)
			return r;
	}
}

static int unlock(struct smp_vcpu *v, struct smp_lock *l)
{
	int r = smp_line_store(v, &l->line);

	if (!r)
		tas_release(v, l->state);
	return r;
}

const struct lock_policy lock_busted = {
	.desc =
		{
			.name = "busted",
			.family = FAMILY_LOCK,
			.summary = "deliberately wrong: two may hold it; for tests of the checks",
			.broken = true,
		},
	.init = init,
	.free = lock_free_state,
	.lock = lock,
	.trylock = trylock,
	.unlock = unlock,
};
