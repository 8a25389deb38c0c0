// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/lock.h"

#include <stdlib.h>

uint64_t lock_param(const struct smp_vcpu *v, unsigned i)
{
	return smp_vm_opts(smp_vm_of(v))->lock_params.value[i];
}

int lock_alloc_state(struct smp_lock *l, size_t size)
{
	l->state = calloc(1, size);
	return l->state ? 0 : KVMSIM_ENOMEM;
}

void lock_free_state(struct smp_lock *l)
{
	free(l->state);
}

int tas_lock(struct smp_vcpu *v, struct smp_lock *l, struct tas_state *s, bool *contended)
{
	for (;;) {
		struct spinner w = {.v = v, .line = &l->line};
		int r = smp_line_rmw(v, &l->line);

		if (r)
			return r;
		if (!s->locked) {
			s->locked = true;
			return 0;
		}
		*contended = true;
		w.next = s->waiters;
		s->waiters = &w;
		r = spin_wait(v, &w, 0);
		if (r < 0)
			return r;
	}
}

void tas_release(struct smp_vcpu *v, struct tas_state *s)
{
	struct spinner *first = s->waiters;

	s->locked = false;
	s->waiters = NULL;
	spin_release_all(v, first);
}

int pv_halt(struct smp_vcpu *v, bool flags)
{
	return flags ? smp_safe_halt(v) : smp_halt(v);
}
