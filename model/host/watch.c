// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/host/watch.h"

#include "model/host/host.h"

struct host_watch *host_watch(struct task *t)
{
	struct host_task *h = host_task(t);

	return h ? &h->watch : NULL;
}

void host_watch_waits(struct task *t)
{
	struct host_watch *w = host_watch(t);

	if (!w)
		return;
	w->waited = 0;
	w->longest = w->interrupt = (struct host_wait){0};
}

void host_watch_holds(struct task *t, const struct lock_queue *lock)
{
	struct host_watch *w = host_watch(t);

	if (!w)
		return;
	w->lock = lock;
	w->hold[0] = w->hold[1] = 0;
}

void host_waited(struct task *t, const struct host_wait *wait)
{
	struct host_watch *w = host_watch(t);

	if (!w)
		return;
	w->waited += wait->cycles;
	if (wait->cycles > w->longest.cycles)
		w->longest = *wait;
}

void host_blame(struct host_wait *w, struct task *by)
{
	const struct host_watch *watch = host_watch(by);

	w->by = by;
	w->operation = watch ? watch->operation : 0;
	w->activity = task_activity(by);
}
