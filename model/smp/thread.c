// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/smp/guest_sched.h"

/* Guest threads: their making and end, work, sleep, wake-ups. */

static int thread_body(struct task *t, void *arg)
{
	struct guest_thread *g = arg;
	int r = guest_off(g), end;
	struct smp_vcpu *v;
	uint16_t was;

	if (r)
		return r;
	r = g->fn(g, g->arg);
	if (task_canceled(t))
		return r;
	v = g->v;
	was = activity_enter(t, ACT_guest_sched);
	charge(t, COUNT_guest_switch, 1);
	activity_leave(t, was);
	end = sync(t);
	if (end)
		return r ? r : end;
	guest_update_curr(v, task_now(t));
	guest_set_state(g, GUEST_ENDED, task_now(t));
	guest_switch(v, task_now(t));
	return r;
}

static struct guest_thread *alloc_thread(struct smp_vm *vm, const char *name)
{
	struct guest_thread *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->vm = vm;
	g->name = strdup(name);
	g->pin = UINT32_MAX;
	if (!g->name) {
		free(g);
		return NULL;
	}
	return g;
}

static void free_thread(struct guest_thread *g)
{
	if (!g)
		return;
	free(g->name);
	free(g);
}

/* Before the run: the vCPU with the shortest queue. */
static struct smp_vcpu *place(struct smp_vm *vm, uint32_t pin)
{
	struct smp_vcpu *best = &vm->vcpu[0];

	if (pin != UINT32_MAX)
		return &vm->vcpu[pin];
	for (uint32_t i = 1; i < vm->opts.vcpus; i++) {
		if (vm->vcpu[i].nr_queued < best->nr_queued)
			best = &vm->vcpu[i];
	}
	return best;
}

int guest_thread_create(struct smp_vm *vm, const char *name, guest_fn fn, void *arg, uint32_t vcpu,
			struct guest_thread **out)
{
	struct task_opts o = {.name = name, .fn = thread_body};
	struct guest_thread *g;
	int r;

	if (out)
		*out = NULL;
	if (vcpu != UINT32_MAX && vcpu >= vm->opts.vcpus)
		return kvmsim_err(sim_errors(vm->sim), KVMSIM_EINVAL,
				  "guest thread %s is to stay on vCPU %u of %u", name, vcpu,
				  vm->opts.vcpus);
	g = alloc_thread(vm, name);
	if (!g)
		return KVMSIM_ENOMEM;
	g->fn = fn;
	g->arg = arg;
	g->pin = vcpu;
	o.arg = g;
	o.start = sim_now(vm->sim) == CYCLES_MAX ? 0 : sim_now(vm->sim);
	r = task_create(vm->sim, &o, &g->task);
	if (r) {
		free_thread(g);
		return r;
	}
	g->since = o.start;
	g->home = place(vm, vcpu);
	guest_enqueue(g->home, g, false, o.start);
	TAILQ_INSERT_TAIL(&vm->threads, g, all);
	if (out)
		*out = g;
	return 0;
}

static int create_idle(struct smp_vcpu *v)
{
	v->idle = alloc_thread(v->vm, "idle");
	if (!v->idle)
		return KVMSIM_ENOMEM;
	v->idle->is_idle = true;
	v->idle->home = v;
	v->idle->v = v;
	v->idle->state = GUEST_RUNNING;
	v->curr = v->idle;
	return 0;
}

int guest_sched_init(struct smp_vm *vm)
{
	uint32_t cpus = vm->opts.vcpus < 8 ? vm->opts.vcpus : 8;
	uint64_t factor = 32u - (uint64_t)__builtin_clz(cpus);
	int r = 0;

	vm->latency = sched_cycles(vm->host, 6000000 * factor);
	vm->min_granularity = sched_cycles(vm->host, 750000 * factor);
	vm->wakeup_granularity = sched_cycles(vm->host, 1000000 * factor);
	for (uint32_t i = 0; !r && i < vm->opts.vcpus; i++)
		r = create_idle(&vm->vcpu[i]);
	return r;
}

void guest_sched_free(struct smp_vm *vm)
{
	struct guest_thread *g;

	while ((g = TAILQ_FIRST(&vm->threads))) {
		TAILQ_REMOVE(&vm->threads, g, all);
		free_thread(g);
	}
	for (uint32_t i = 0; i < vm->opts.vcpus; i++)
		free_thread(vm->vcpu[i].idle);
}

struct smp_vm *guest_vm(const struct guest_thread *g)
{
	return g->vm;
}

struct smp_vcpu *guest_vcpu(const struct guest_thread *g)
{
	return g->v;
}

struct guest_thread_stats guest_thread_stats(const struct guest_thread *g)
{
	struct guest_thread_stats s = g->stats;
	cycles_t now = sim_now(g->vm->sim), d = now > g->since ? now - g->since : 0;

	if (now == CYCLES_MAX || g->state == GUEST_ENDED)
		return s;
	*(g->state == GUEST_RUNNING    ? &s.run
	  : g->state == GUEST_RUNNABLE ? &s.runnable
				       : &s.asleep) += d;
	return s;
}

/* ---- giving way ---- */

/* [running] The thread goes back to the queue, if there is anybody else. */
static int give_way(struct guest_thread *g)
{
	struct smp_vcpu *v = g->v;
	struct task *t = g->task;
	uint16_t was = activity_enter(t, ACT_guest_sched);
	int r;

	charge(t, COUNT_guest_switch, 1);
	r = sync(t);
	if (!r) {
		cycles_t now = task_now(t);

		guest_update_curr(v, now);
		v->need_resched = false;
		if (TAILQ_FIRST(&v->queue)) {
			guest_set_state(g, GUEST_RUNNABLE, now);
			guest_enqueue(v, g, false, now);
			guest_switch(v, now);
			r = guest_off(g);
		}
	}
	activity_leave(t, was);
	return r;
}

static bool must_give_way(const struct smp_vcpu *v)
{
	return v->need_resched && !v->preempt_count && v->irqs_on;
}

int guest_work(struct guest_thread *g, uint64_t n)
{
	uint64_t done;
	int r = 0;

	while (!r && n) {
		r = vcpu_work(g->v, n, &done);
		n -= done;
		if (!r && must_give_way(g->v))
			r = give_way(g);
	}
	return r;
}

/* The first of the others runs; the thread comes after it. */
int guest_yield(struct guest_thread *g)
{
	struct guest_thread *first;
	int r = sync(g->task);

	first = TAILQ_FIRST(&g->v->queue);
	if (r || !first)
		return r;
	guest_update_curr(g->v, task_now(g->task));
	if (g->vruntime < first->vruntime)
		g->vruntime = first->vruntime;
	return give_way(g);
}

void guest_preempt_disable(struct smp_vcpu *v)
{
	v->preempt_count++;
}

int guest_preempt_enable(struct smp_vcpu *v)
{
	v->preempt_count--;
	return must_give_way(v) && !v->curr->is_idle ? give_way(v->curr) : 0;
}

/* ---- sleep ---- */

static void insert_timer(struct smp_vcpu *v, struct guest_thread *g)
{
	struct guest_thread *o;

	TAILQ_FOREACH_REVERSE(o, &v->timers, guest_queue, link)
	{
		if (o->wake_at <= g->wake_at)
			break;
	}
	if (o)
		TAILQ_INSERT_AFTER(&v->timers, o, g, link);
	else
		TAILQ_INSERT_HEAD(&v->timers, g, link);
}

/* [running] schedule() of a thread that sleeps until *@done, or until @until where that is not
 * CYCLES_MAX. */
int guest_sleep_for(struct guest_thread *g, const bool *done, cycles_t until)
{
	struct task *t = g->task;
	uint16_t was = activity_enter(t, ACT_guest_sched);
	int r;

	g->timed_out = false;
	charge(t, COUNT_guest_switch, 1);
	r = sync(t);
	while (!r && !*done && !g->timed_out) {
		cycles_t now = task_now(t);
		struct smp_vcpu *v = g->v;

		if (until <= now) {
			g->timed_out = true;
			break;
		}
		guest_update_curr(v, now);
		guest_set_state(g, GUEST_SLEEPING, now);
		g->sleeps_for = done;
		g->timed = until != CYCLES_MAX;
		g->wake_at = until;
		if (g->timed) {
			insert_timer(v, g);
			v->timer_at = guest_next_timer(v);
		}
		guest_switch(v, now);
		r = guest_off(g);
	}
	activity_leave(t, was);
	return r;
}

int guest_sleep(struct guest_thread *g)
{
	int r = guest_sleep_for(g, &g->woken, CYCLES_MAX);

	g->woken = false;
	return r;
}

int guest_sleep_until(struct guest_thread *g, cycles_t until)
{
	int r = guest_sleep_for(g, &g->woken, until);

	g->woken = false;
	return r ? r : !g->timed_out;
}

/* [running, synced] try_to_wake_up() of a sleeping thread. */
static int wake_sleeper(struct smp_vcpu *v, struct guest_thread *g)
{
	cycles_t now = task_now(smp_task(v));
	struct smp_vcpu *target;
	bool tell;

	if (g->timed) {
		TAILQ_REMOVE(&g->home->timers, g, link);
		g->timed = false;
	}
	guest_set_state(g, GUEST_RUNNABLE, now);
	target = guest_select(g);
	guest_enqueue(target, g, true, now);
	task_wake(g->task, now); /* from now on it waits for a vCPU */
	tell = guest_preempts(target, g);
	guest_set_idle(target, false);
	if (target == v && tell)
		guest_reschedule_irq(v);
	else if (tell)
		return smp_send_reschedule(v, target);
	return 0;
}

int guest_wake_for(struct smp_vcpu *v, struct guest_thread *g, const bool *done)
{
	struct task *t = smp_task(v);
	uint16_t was = activity_enter(t, ACT_guest_sched);
	int r;

	charge(t, COUNT_guest_wake_up, 1);
	r = sync(t);
	if (!r && g->state == GUEST_SLEEPING && g->sleeps_for == done)
		r = wake_sleeper(v, g);
	activity_leave(t, was);
	return r;
}

int guest_wake(struct smp_vcpu *v, struct guest_thread *g)
{
	int r = sync(smp_task(v));

	if (r)
		return r;
	g->woken = true;
	return guest_wake_for(v, g, &g->woken);
}

int guest_time_out(struct smp_vcpu *v, struct guest_thread *g)
{
	struct task *t = smp_task(v);
	uint16_t was = activity_enter(t, ACT_guest_sched);
	int r;

	charge(t, COUNT_guest_wake_up, 1);
	r = sync(t);
	if (!r && g->timed && g->home == v && g->wake_at <= task_now(t)) { /* still */
		g->timed_out = true;
		r = wake_sleeper(v, g);
	}
	activity_leave(t, was);
	return r;
}
