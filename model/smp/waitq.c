// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/smp/guest_sched.h"

/* Wait queues: first come, first woken. */

struct waiter {
	struct guest_thread *g;
	bool woken;
	TAILQ_ENTRY(waiter) link;
};

struct guest_waitq {
	char *name;
	TAILQ_HEAD(, waiter) waiters;
};

int guest_waitq_create(struct smp_vm *vm, const char *name, struct guest_waitq **out)
{
	struct guest_waitq *w = calloc(1, sizeof(*w));

	(void)vm;
	*out = NULL;
	if (!w)
		return KVMSIM_ENOMEM;
	w->name = strdup(name);
	if (!w->name) {
		free(w);
		return KVMSIM_ENOMEM;
	}
	TAILQ_INIT(&w->waiters);
	*out = w;
	return 0;
}

void guest_waitq_destroy(struct guest_waitq *w)
{
	if (!w)
		return;
	free(w->name);
	free(w);
}

int guest_wait(struct guest_thread *g, struct guest_waitq *w)
{
	struct waiter me = {.g = g};
	int r = sync(g->task); /* of no effect where the caller just looked at its condition */

	if (r)
		return r;
	TAILQ_INSERT_TAIL(&w->waiters, &me, link);
	r = guest_sleep_for(g, &me.woken, CYCLES_MAX);
	if (!me.woken)
		TAILQ_REMOVE(&w->waiters, &me, link);
	return r;
}

int guest_wake_up(struct guest_thread *g, struct guest_waitq *w, unsigned n)
{
	int r = sync(g->task);

	while (!r && n--) {
		struct waiter *first = TAILQ_FIRST(&w->waiters);
		struct guest_thread *sleeper;

		if (!first)
			break;
		sleeper = first->g;
		TAILQ_REMOVE(&w->waiters, first, link);
		first->woken = true;
		r = guest_wake_for(g->v, sleeper, &first->woken);
	}
	return r;
}
