// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/counts.h"
#include "model/host/sched_priv.h"

/*
 * CPUs and the threads on them. A thread's task looks at three times before it works on: when it
 * has to give way, when it was told to look, its CPU's next tick. It works up to the first of them,
 * by a message to itself. Another task that sets an earlier one sends it a message, or ends its
 * busy wait.
 */

void charge_sched(struct task *t, uint16_t count)
{
	uint16_t was = activity_enter(t, ACT_sched);

	charge(t, count, 1);
	activity_leave(t, was);
}

/* ---- reaching a running thread ---- */

static void arm(struct sched_thread *th, cycles_t when, struct task *by)
{
	struct task *t = th->task;

	if (by == t)
		return;
	if (th->mode == MODE_SPIN) {
		task_wake(t, when);
	} else if (th->mode == MODE_WORK && (th->armed_task != t || th->armed_at > when)) {
		task_post(by, t, when, SCHED_MESSAGE, 0, NULL);
		th->armed_task = t;
		th->armed_at = when;
	}
}

static void disarm(struct sched_thread *th)
{
	struct task_message m;

	while (task_take_message(th->task, SCHED_MESSAGE, &m))
		;
	if (th->armed_task == th->task)
		th->armed_at = CYCLES_MAX;
}

static cycles_t least(cycles_t a, cycles_t b)
{
	return a < b ? a : b;
}

static cycles_t deadline(const struct sched_thread *th)
{
	return least(sched_rq(th)->tick_at, least(th->resched_at, th->notify_at));
}

void resched_curr(struct rq *rq, struct task *by)
{
	struct sched_thread *th = rq->curr;
	cycles_t when = task_now(by) + (by == th->task ? 0 : rq->s->ipi);

	if (when >= th->resched_at)
		return;
	th->resched_at = when;
	arm(th, when, by);
}

void sched_notify(struct task *by, struct sched_thread *th, cycles_t when)
{
	cycles_t earliest;

	if (by != th->task) { /* its own timer needs no interrupt */
		if (sync(by))
			return;
		earliest = task_now(by) + (th->mode == MODE_SPIN ? 0 : th->s->ipi);
		if (when < earliest)
			when = earliest;
	}
	if (when >= th->notify_at)
		return;
	th->notify_at = when;
	arm(th, when, by);
}

/* ---- ticks ---- */

static cycles_t tick_from(const struct sched *s, cycles_t from)
{
	return from > CYCLES_MAX - s->tick ? CYCLES_MAX : (from + s->tick - 1) / s->tick * s->tick;
}

void update_tick(struct rq *rq, struct task *by)
{
	const struct sched *s = rq->s;
	cycles_t now = task_now(by), at = CYCLES_MAX;

	if (!rq->curr) {
		rq->tick_at = CYCLES_MAX;
		return;
	}
	at = now + 1 + (by == rq->curr->task ? 0 : s->ipi);
	if (rq->nr_running == 1 && balance_due(rq) > at)
		at = balance_due(rq);
	at = tick_from(s, at);
	if (at < rq->tick_at || rq->tick_at <= now || rq->nr_running == 1)
		rq->tick_at = at;
	if (at != CYCLES_MAX)
		arm(rq->curr, rq->tick_at, by);
}

static int tick(struct sched_thread *th)
{
	struct rq *rq = sched_rq(th);
	struct task *t = th->task;
	int r = sync(t);

	if (r)
		return r;
	update_curr(rq, task_now(t));
	if (th->se.parent)
		reweight_group(th->se.parent);
	if (tick_preempts(rq))
		resched_curr(rq, t);
	balance_tick(rq, t);
	update_tick(rq, t);
	charge_sched(t, COUNT_sched_tick);
	return 0;
}

/* Does what is due. 1: the caller has to look; 0: nothing more for now; KVMSIM_ECANCELED. */
static int look(struct sched_thread *th)
{
	struct task *t = th->task;
	int r = 0;

	while (!r && sched_rq(th)->tick_at <= task_now(t))
		r = tick(th);
	if (r)
		return r;
	r = th->resched_at <= task_now(t) || th->notify_at <= task_now(t);
	if (th->notify_at <= task_now(t))
		th->notify_at = CYCLES_MAX;
	return r;
}

/* ---- what a running thread does ---- */

int sched_work(struct sched_thread *th, uint16_t count, uint64_t n, uint64_t *done)
{
	struct task *t = th->task;
	int r = 0;

	*done = 0;
	while (*done < n) {
		uint64_t part;
		cycles_t until;

		r = look(th);
		if (r)
			return r < 0 ? r : 0;
		until = deadline(th);
		if (until != CYCLES_MAX && (th->armed_task != t || th->armed_at > until)) {
			task_post(t, t, until, SCHED_MESSAGE, 0, NULL);
			th->armed_task = t;
			th->armed_at = until;
		}
		th->mode = MODE_WORK;
		r = charge_interruptible(t, count, n - *done, &part);
		th->mode = MODE_OTHER;
		*done += part;
		if (r || *done == n)
			break;
		disarm(th);
		if (task_message_due(t))
			break;
	}
	if (th->notify_at <= task_now(t))
		th->notify_at = CYCLES_MAX;
	return r;
}

int sched_spin(struct sched_thread *th, uint16_t wait, cycles_t until)
{
	struct task *t = th->task;
	int r = sync(t);

	while (!r) {
		r = look(th);
		if (r || task_now(t) >= until)
			return r;
		r = sync(t);
		if (r)
			return r;
		th->mode = MODE_SPIN;
		r = task_block_until(t, wait, least(until, deadline(th)));
		th->mode = MODE_OTHER;
		r = r < 0 ? r : 0;
	}
	return r;
}

bool sched_need_resched(const struct sched_thread *th)
{
	struct task *t = th->task;

	if (task_now(t) >= task_horizon(t))
		(void)sync(t);
	return th->resched_at <= task_now(t);
}

/* ---- from one thread to another ---- */

static void switch_to(struct rq *rq, struct sched_thread *th, cycles_t when)
{
	rq->curr = th;
	th->state = SCHED_RUNNING;
	th->run_at = when;
	th->se.exec_start = when;
	th->stats.run_delay += when - th->queued_at;
	th->resched_at = CYCLES_MAX;
	if (th->se.parent)
		th->se.parent->exec_start = when;
	task_wake(th->task, when);
}

void start_idle(struct rq *rq, struct task *by, cycles_t when)
{
	struct sched *s = rq->s;
	cycles_t slept = task_now(by) - rq->idle_since;
	cycles_t most = 2 * s->migration_cost;

	rq->idle += when - rq->idle_since;
	/* update_avg(), clamped */
	rq->avg_idle =
		(cycles_t)((int64_t)rq->avg_idle + ((int64_t)slept - (int64_t)rq->avg_idle) / 8);
	if (rq->avg_idle > most)
		rq->avg_idle = most;
	s->idle[rq->cpu / 64] &= ~(1ull << rq->cpu % 64);
	s->n_idle--;
	switch_to(rq, pick_next(rq, when), when);
	update_tick(rq, by);
}

static void go_idle(struct rq *rq, cycles_t now)
{
	struct sched *s = rq->s;

	rq->curr = NULL;
	rq->idle_since = now;
	rq->tick_at = CYCLES_MAX;
	s->idle[rq->cpu / 64] |= 1ull << rq->cpu % 64;
	s->n_idle++;
}

void give_up_cpu(struct sched_thread *th, struct rq *rq)
{
	struct task *t = th->task;
	struct sched_thread *next;

	if (!rq->nr_running)
		balance_newidle(rq, t);
	next = pick_next(rq, task_now(t));
	if (!next) {
		go_idle(rq, task_now(t));
		return;
	}
	switch_to(rq, next, task_now(t));
	update_tick(rq, t);
}

int wait_for_cpu(struct sched_thread *th)
{
	struct task *t = th->task;

	while (th->state != SCHED_RUNNING || task_now(t) < th->run_at) {
		int r = task_block(t, WAIT_cpu);

		if (r)
			return r;
	}
	if (th->opts.sched_in)
		th->opts.sched_in(th, th->cpu);
	charge_sched(t, COUNT_context_switch);
	for (; th->moves; th->moves--)
		charge_sched(t, COUNT_migrate);
	return 0;
}

static void preempted(struct sched_thread *th)
{
	th->stats.involuntary++;
	if (th->opts.sched_out)
		th->opts.sched_out(th, true);
}

int sched_schedule(struct sched_thread *th)
{
	struct rq *rq = sched_rq(th);
	struct task *t = th->task;
	struct sched_thread *next;
	int r = sync(t);

	if (r)
		return r;
	update_curr(rq, task_now(t));
	th->resched_at = CYCLES_MAX;
	if (th->move_to >= 0 && balance_away(th)) {
		preempted(th);
		give_up_cpu(th, rq);
		return wait_for_cpu(th);
	}
	put_prev(rq);
	next = pick_next(rq, task_now(t));
	if (next == th)
		return 0;
	th->state = SCHED_QUEUED;
	th->queued_at = task_now(t);
	preempted(th);
	switch_to(rq, next, task_now(t));
	update_tick(rq, t);
	return wait_for_cpu(th);
}

/* 1: the time came. */
static int sleep_until(struct sched_thread *th, uint16_t wait, cycles_t until)
{
	struct rq *rq = sched_rq(th);
	struct task *t = th->task;
	int r = sync(t), came = 0;

	if (r)
		return r;
	if (th->woken) {
		th->woken = false;
		return 0;
	}
	if (task_now(t) >= until)
		return 1;
	dequeue_thread(rq, th, true, task_now(t));
	th->state = SCHED_SLEEPING;
	th->stats.voluntary++;
	if (th->opts.sched_out)
		th->opts.sched_out(th, false);
	put_prev(rq);
	give_up_cpu(th, rq);
	while (th->state == SCHED_SLEEPING) {
		r = task_block_until(t, wait, until);
		if (r < 0)
			return r;
		if (th->state == SCHED_SLEEPING && task_now(t) >= until) {
			wake_thread(t, NULL, th, task_now(t));
			came = 1;
		}
	}
	th->woken = false;
	r = wait_for_cpu(th);
	if (!r && came)
		charge_sched(t, COUNT_wake_up);
	return r ? r : came;
}

int sched_sleep(struct sched_thread *th, uint16_t wait)
{
	int r = sleep_until(th, wait, CYCLES_MAX);

	return r < 0 ? r : 0;
}

int sched_sleep_until(struct sched_thread *th, uint16_t wait, cycles_t until)
{
	int r = sleep_until(th, wait, until);

	return r < 0 ? r : !r;
}

void sched_embody(struct sched_thread *th, struct task *t)
{
	if (th->task)
		disarm(th);
	th->task = t;
}

int sched_start(struct sched_thread *th, struct task *t)
{
	struct sched *s = th->s;
	int r = sync(t);
	struct rq *rq;

	if (r)
		return r;
	th->task = t;
	rq = &s->rq[select_new(s, th)];
	enqueue_thread(rq, th, ENQUEUE_NEW, task_now(t));
	if (rq_idle(rq)) {
		start_idle(rq, t, task_now(t));
	} else {
		if (wakeup_preempts(rq, th, task_now(t)))
			resched_curr(rq, t);
		update_tick(rq, t);
	}
	return wait_for_cpu(th);
}

void sched_end(struct sched_thread *th)
{
	struct rq *rq = sched_rq(th);
	struct task *t = th->task;

	if (sync(t) || th->state != SCHED_RUNNING)
		return;
	dequeue_thread(rq, th, true, task_now(t));
	th->state = SCHED_ENDED;
	if (th->opts.sched_out)
		th->opts.sched_out(th, false);
	put_prev(rq);
	give_up_cpu(th, rq);
}
