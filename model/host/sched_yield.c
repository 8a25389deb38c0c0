// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/counts.h"
#include "model/host/sched_priv.h"

/* Yields, to the next and to a certain one. */

int sched_yield_thread(struct sched_thread *th)
{
	struct rq *rq = sched_rq(th);
	int r = sync(th->task);

	if (r)
		return r;
	if (rq->nr_running > 1) {
		update_curr(rq, task_now(th->task));
		set_buddy(&th->se, BUDDY_SKIP);
	}
	return sched_schedule(th);
}

int sched_boost(struct sched_thread *th, struct sched_thread *target, bool preempt, bool *alone)
{
	struct task *t = th->task;
	struct rq *rq, *other;
	int r;

	charge_sched(t, COUNT_yield_to);
	r = sync(t);
	*alone = false;
	if (r)
		return r;
	rq = sched_rq(th);
	other = sched_rq(target);
	*alone = rq->nr_running == 1 && other->nr_running == 1;
	if (*alone || target->state != SCHED_QUEUED)
		return 0;
	th->stats.yields_to++;
	set_buddy(&target->se, BUDDY_NEXT);
	if (rq->nr_running > 1) {
		update_curr(rq, task_now(t));
		set_buddy(&th->se, BUDDY_SKIP);
	}
	if (preempt && other != rq && other->curr)
		resched_curr(other, t);
	return 1;
}

int sched_yield_to(struct sched_thread *th, struct sched_thread *target, bool preempt, bool *alone)
{
	int r = sched_boost(th, target, preempt, alone), e;

	if (r <= 0)
		return r;
	e = sched_schedule(th);
	return e ? e : r;
}
