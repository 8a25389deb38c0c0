// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <stdlib.h>

#include "model/smp/guest_sched.h"

/*
 * Who runs on a vCPU: as CFS with equal weights (kernel/sched/fair.c, 3.11 to 6.5), whose numbers
 * these are: a latency of 6 ms, a least slice of 0.75 ms, 1 ms that a woken thread must be behind
 * to preempt, each scaled by 1 + log2 of the vCPUs, at most 8. Time is the vCPU's clock; what was
 * stolen is not counted where the guest knows of it. Idle vCPUs pull when they become idle, or are
 * told to by a tick elsewhere.
 */

/* ---- queues ---- */

static cycles_t steal_of(const struct smp_vcpu *v)
{
	return v->vm->opts.steal_time ? v->stats.steal : 0;
}

void guest_update_curr(struct smp_vcpu *v, cycles_t now)
{
	struct guest_thread *g = v->curr, *first = TAILQ_FIRST(&v->queue);
	cycles_t steal = steal_of(v), delta, least;

	if (g->is_idle)
		return;
	delta = now - g->exec_start;
	steal = steal - v->steal_seen < delta ? steal - v->steal_seen : delta;
	v->steal_seen += steal;
	delta -= steal;
	g->exec_start = now;
	g->sum_exec += delta;
	g->vruntime += delta;
	least = first && first->vruntime < g->vruntime ? first->vruntime : g->vruntime;
	if (least > v->min_vruntime)
		v->min_vruntime = least;
}

void guest_enqueue(struct smp_vcpu *v, struct guest_thread *g, bool woken, cycles_t now)
{
	struct guest_thread *o;

	guest_update_curr(v, now);
	if (g->home != v) { /* what it is ahead or behind by goes with it */
		int64_t lag = (int64_t)(g->vruntime - g->home->min_vruntime);

		if (lag < -(int64_t)v->min_vruntime)
			lag = -(int64_t)v->min_vruntime;
		g->vruntime = v->min_vruntime + (cycles_t)lag;
		g->home = v;
		g->stats.migrations++;
	}
	if (woken) {
		cycles_t bonus = v->vm->latency / 2;
		cycles_t least = v->min_vruntime > bonus ? v->min_vruntime - bonus : 0;

		if (g->vruntime < least)
			g->vruntime = least;
	}
	TAILQ_FOREACH_REVERSE(o, &v->queue, guest_queue, link)
	{
		if (o->vruntime <= g->vruntime)
			break;
	}
	if (o)
		TAILQ_INSERT_AFTER(&v->queue, o, g, link);
	else
		TAILQ_INSERT_HEAD(&v->queue, g, link);
	v->nr_queued++;
	v->vm->n_queued++;
}

void guest_dequeue(struct guest_thread *g)
{
	struct smp_vcpu *v = g->home;

	TAILQ_REMOVE(&v->queue, g, link);
	v->nr_queued--;
	v->vm->n_queued--;
}

bool guest_preempts(struct smp_vcpu *v, const struct guest_thread *g)
{
	return v->curr->is_idle || v->curr->vruntime > g->vruntime + v->vm->wakeup_granularity;
}

/* check_preempt_tick(). */
static bool tick_preempts(const struct smp_vcpu *v)
{
	const struct smp_vm *vm = v->vm;
	const struct guest_thread *g = v->curr, *first = TAILQ_FIRST(&v->queue);
	uint64_t n = v->nr_queued + 1;
	cycles_t period = vm->latency, slice, ran;

	if (!first)
		return false;
	if (n * vm->min_granularity > period)
		period = n * vm->min_granularity;
	slice = period / n;
	ran = g->sum_exec - g->prev_sum_exec;
	if (ran > slice)
		return true;
	return ran >= vm->min_granularity && g->vruntime > first->vruntime + slice;
}

/* ---- idle vCPUs ---- */

void guest_set_idle(struct smp_vcpu *v, bool idle)
{
	uint64_t *word = &v->vm->idle[v->id / 64], bit = 1ull << v->id % 64;

	if (idle == !!(*word & bit))
		return;
	*word ^= bit;
	v->vm->n_idle += idle ? 1 : -1u;
}

static bool is_idle(const struct smp_vcpu *v)
{
	return v->vm->idle[v->id / 64] >> v->id % 64 & 1;
}

/* The first idle one from @from on, around. */
static struct smp_vcpu *find_idle(struct smp_vm *vm, uint32_t from)
{
	uint32_t words = (vm->opts.vcpus + 63) / 64, w = from / 64;
	uint64_t bits = vm->idle[w] & ~0ull << from % 64;

	if (!vm->n_idle)
		return NULL;
	for (uint32_t i = 0; !bits && i < words; i++) {
		w = (w + 1) % words;
		bits = vm->idle[w];
	}
	return &vm->vcpu[w * 64 + (uint32_t)__builtin_ctzll(bits)];
}

struct smp_vcpu *guest_select(struct guest_thread *g)
{
	struct smp_vcpu *idle;

	if (g->pin != UINT32_MAX || is_idle(g->home))
		return g->home;
	idle = find_idle(g->vm, g->home->id);
	return idle ? idle : g->home;
}

/* The last of @from's queue that may move; NULL: none may. */
static struct guest_thread *movable(const struct smp_vcpu *from)
{
	struct guest_thread *g;

	TAILQ_FOREACH_REVERSE(g, &from->queue, guest_queue, link)
	{
		if (g->pin == UINT32_MAX)
			return g;
	}
	return NULL;
}

static uint32_t load(const struct smp_vcpu *v)
{
	return v->nr_queued + !v->curr->is_idle;
}

/* [running] An idle vCPU takes a thread from the longest queue; none that the other is about to
 * run. */
static int pull(struct smp_vcpu *v)
{
	struct smp_vm *vm = v->vm;
	struct guest_thread *g, *best = NULL;
	uint16_t was;

	if (!vm->n_queued)
		return 0;
	for (uint32_t i = 1; i < vm->opts.vcpus; i++) {
		const struct smp_vcpu *o = &vm->vcpu[(v->id + i) % vm->opts.vcpus];

		if (load(o) < 2 || (best && load(o) <= load(best->home)))
			continue;
		g = movable(o);
		if (g)
			best = g;
	}
	if (!best)
		return 0;
	guest_dequeue(best);
	guest_enqueue(v, best, false, task_now(smp_task(v)));
	was = activity_enter(smp_task(v), ACT_guest_sched);
	charge(smp_task(v), COUNT_migrate, 1);
	activity_leave(smp_task(v), was);
	return sync(smp_task(v));
}

/* ---- switches ---- */

void guest_set_state(struct guest_thread *g, enum guest_state state, cycles_t now)
{
	cycles_t d = now - g->since;

	if (g->state == GUEST_RUNNING)
		g->stats.run += d;
	else if (g->state == GUEST_RUNNABLE)
		g->stats.runnable += d;
	else if (g->state == GUEST_SLEEPING)
		g->stats.asleep += d;
	g->since = now;
	g->state = state;
}

void guest_end_watches(struct smp_vcpu *v, struct smp_vcpu *by)
{
	struct smp_watch *w;

	while ((w = LIST_FIRST(&v->watches))) {
		LIST_REMOVE(w, link);
		w->listed = false;
		spin_release(by, &w->s);
	}
}

static cycles_t next_tick(const struct smp_vcpu *v, cycles_t now)
{
	cycles_t tick = v->vm->tick;

	return tick ? (now / tick + 1) * tick : CYCLES_MAX;
}

cycles_t guest_next_timer(const struct smp_vcpu *v)
{
	const struct guest_thread *g = TAILQ_FIRST(&v->timers);

	return g && g->wake_at < v->next_tick ? g->wake_at : v->next_tick;
}

void guest_switch(struct smp_vcpu *v, cycles_t now)
{
	struct guest_thread *prev = v->curr, *next = TAILQ_FIRST(&v->queue);

	guest_end_watches(v, v);
	if (next)
		guest_dequeue(next);
	else
		next = v->idle;
	v->need_resched = false;
	v->curr = next;
	if (next == prev) {
		if (!next->is_idle)
			guest_set_state(next, GUEST_RUNNING, now);
		return;
	}
	prev->v = NULL;
	next->v = v;
	if (!next->is_idle) {
		guest_set_state(next, GUEST_RUNNING, now);
		next->stats.switches++;
		next->exec_start = now;
		next->prev_sum_exec = next->sum_exec;
		v->steal_seen = steal_of(v);
	}
	if (next->is_idle || prev->is_idle) { /* without a tick, or with one again */
		v->next_tick = next->is_idle ? CYCLES_MAX : next_tick(v, now);
		v->timer_at = guest_next_timer(v);
	}
	sched_embody(v->th, next->task);
	task_wake(next->task, now);
}

int guest_off(struct guest_thread *g)
{
	int r = 0;

	while (!r && !g->v) {
		uint16_t wait = g->is_idle		     ? WAIT_idle
				: g->state == GUEST_SLEEPING ? WAIT_guest_sleep
							     : WAIT_vcpu;

		r = task_block(g->task, wait);
	}
	if (!r)
		r = sync(g->task);
	if (!r)
		vcpu_arm(g->v);
	return r;
}

/* ---- interrupts ---- */

void guest_reschedule_irq(struct smp_vcpu *v)
{
	if (TAILQ_FIRST(&v->queue)) {
		v->need_resched = true;
		if (v->watching)
			spin_release(v, &v->watching->s);
	}
}

static int tick(struct smp_vcpu *v)
{
	struct task *t = smp_task(v);
	struct smp_vcpu *idle;
	int r;

	v->stats.ticks++;
	charge(t, COUNT_guest_tick, 1);
	r = sync(t);
	if (r)
		return r;
	guest_update_curr(v, task_now(t));
	v->next_tick = next_tick(v, task_now(t));
	if (tick_preempts(v))
		guest_reschedule_irq(v);
	if (!movable(v))
		return 0;
	idle = find_idle(v->vm, v->id); /* to pull it */
	if (!idle)
		return 0;
	guest_set_idle(idle, false);
	return smp_send_reschedule(v, idle);
}

int guest_timer_irq(struct smp_vcpu *v)
{
	struct task *t = smp_task(v);
	struct guest_thread *g;
	int r = 0;

	while (!r && (g = TAILQ_FIRST(&v->timers)) && g->wake_at <= task_now(t))
		r = guest_time_out(v, g);
	if (!r && v->next_tick <= task_now(t))
		r = tick(v);
	if (!r) {
		v->timer_at = guest_next_timer(v);
		vcpu_arm(v);
	}
	return r;
}

/* ---- the idle loop ---- */

static int idle_body(struct task *t, void *arg)
{
	struct guest_thread *g = arg;
	struct smp_vcpu *v = g->home;
	int r = sched_start(v->th, t);

	if (!r)
		r = sync(t);
	if (!r)
		r = smp_vmenter(v);
	while (!r) {
		v->irqs_on = false;
		r = sync(t);
		if (!r && !TAILQ_FIRST(&v->queue))
			r = pull(v);
		if (!r && TAILQ_FIRST(&v->queue)) {
			uint16_t was = activity_enter(t, ACT_guest_sched);

			guest_set_idle(v, false);
			charge(t, COUNT_guest_switch, 1);
			activity_leave(t, was);
			r = smp_irq_restore(v, true);
			if (!r)
				r = sync(t);
			if (r || !TAILQ_FIRST(&v->queue))
				continue;
			guest_switch(v, task_now(t));
			r = guest_off(g);
			continue;
		}
		if (r)
			break;
		guest_set_idle(v, true);
		r = smp_safe_halt(v);
		if (!r)
			r = sync(t);
		guest_set_idle(v, false);
	}
	return r;
}

int guest_idle_create(struct smp_vcpu *v)
{
	struct guest_thread *g = v->idle;
	char name[80];
	struct task_opts o = {.name = name, .fn = idle_body, .arg = g, .daemon = true};

	snprintf(name, sizeof(name), "%.40s/idle%u", v->vm->opts.name, v->id);
	o.start = sim_now(v->vm->sim) == CYCLES_MAX ? 0 : sim_now(v->vm->sim);
	return task_create(v->vm->sim, &o, &g->task);
}
