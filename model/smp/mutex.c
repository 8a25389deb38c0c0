// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/smp/guest_sched.h"

/*
 * The mutex of kernel/locking/mutex.c from 4.10 on: who finds it taken spins while the owner runs,
 * at most one at a time, the others in an MCS queue (osq_lock.c) behind; who cannot spin queues and
 * sleeps. The first sleeper that was woken in vain asks for a hand-off: the next unlock makes it
 * the owner. Where the guest knows which vCPUs are preempted (4.11 on) it does not spin for such a
 * one.
 *
 * Each atomic operation moves its line (spin.h). The lock of the list of sleepers is held for
 * moments only: its line moves, nobody waits for it.
 */
struct mutex_waiter {
	struct guest_thread *g;
	bool woken;
	TAILQ_ENTRY(mutex_waiter) link;
};

/* Of one who queues to spin. */
struct osq_node {
	struct smp_vcpu *v;
	struct osq_node *prev, *next;
	struct smp_line line;
	struct smp_watch watch;
	bool locked;
};

struct guest_mutex {
	struct smp_vm *vm;
	char *name;
	bool spin;
	struct guest_thread *owner;
	bool handoff; /* asked for by the first who sleeps */
	bool pickup;  /* done: the owner does not know yet */
	struct smp_line line, list_line;
	TAILQ_HEAD(, mutex_waiter) waiters;
	struct osq_node *tail;
	cycles_t since;
	struct smp_lock_stats stats;
};

int guest_mutex_create(struct smp_vm *vm, const char *name, bool spin, struct guest_mutex **out)
{
	struct guest_mutex *m = calloc(1, sizeof(*m));

	*out = NULL;
	if (!m)
		return KVMSIM_ENOMEM;
	m->name = strdup(name);
	if (!m->name) {
		free(m);
		return KVMSIM_ENOMEM;
	}
	m->vm = vm;
	m->spin = spin;
	smp_line_init(&m->line);
	smp_line_init(&m->list_line);
	TAILQ_INIT(&m->waiters);
	*out = m;
	return 0;
}

void guest_mutex_destroy(struct guest_mutex *m)
{
	if (!m)
		return;
	free(m->name);
	free(m);
}

struct smp_lock_stats guest_mutex_stats(const struct guest_mutex *m)
{
	return m->stats;
}

/* [running, synced] __mutex_trylock(); with @ask, of the first who sleeps, asks for a hand-off. */
static bool try(struct guest_thread *g, struct guest_mutex *m, bool ask)
{
	if (m->owner && !(m->pickup && m->owner == g)) {
		m->handoff |= ask && !m->pickup;
		return false;
	}
	m->owner = g;
	m->pickup = false;
	m->since = task_now(g->task);
	return true;
}

/* [running] The same, as the atomic operation that it is: 1, 0. */
static int trylock(struct guest_thread *g, struct guest_mutex *m, bool ask)
{
	int r = smp_line_rmw(g->v, &m->line);

	return r ? r : try(g, m, ask);
}

/* ---- spinning ---- */

/* [running, synced] Spins until the vCPU @on changes, or what is on it is done with @what. */
static int watch(struct smp_vcpu *v, struct smp_watch *w, struct smp_vcpu *on,
		 struct smp_line *line, const void *what)
{
	int r;

	w->s = (struct spinner){.v = v, .line = line};
	w->what = what;
	w->listed = true;
	LIST_INSERT_HEAD(&on->watches, w, link);
	v->watching = w;
	r = spin_wait(v, &w->s, 0);
	v->watching = NULL;
	if (w->listed)
		LIST_REMOVE(w, link);
	w->listed = false;
	return r < 0 ? r : 0;
}

/* [running, synced] Those on @v's list who wait for @what look again. */
static void end_watches_of(struct smp_vcpu *v, const void *what)
{
	struct smp_watch *w, *next;

	for (w = LIST_FIRST(&v->watches); w; w = next) {
		next = LIST_NEXT(w, link);
		if (w->what != what)
			continue;
		LIST_REMOVE(w, link);
		w->listed = false;
		spin_release(v, &w->s);
	}
}

static bool owner_on_cpu(const struct guest_mutex *m)
{
	return m->owner->v && !smp_vcpu_is_preempted(m->owner->v);
}

/* [running, synced] The one behind gets its place; as the first it may go on. */
static void osq_leave(struct smp_vcpu *v, struct guest_mutex *m, struct osq_node *n)
{
	if (n->prev)
		n->prev->next = n->next;
	if (!n->next) {
		m->tail = n->prev;
		return;
	}
	n->next->prev = n->prev;
	n->next->locked = !n->prev;
	end_watches_of(v, n->next); /* what it watches is this vCPU: it looks again */
}

/* [running] osq_lock(): 1, or 0 where it should not wait on. */
static int osq_lock(struct smp_vcpu *v, struct guest_mutex *m, struct osq_node *n)
{
	int r = smp_line_rmw(v, &m->line);

	if (r)
		return r;
	*n = (struct osq_node){.v = v, .prev = m->tail};
	smp_line_init(&n->line);
	m->tail = n;
	if (!n->prev)
		return 1;
	n->prev->next = n;
	while (!n->locked) {
		if (v->need_resched || smp_vcpu_is_preempted(n->prev->v))
			break;
		r = watch(v, &n->watch, n->prev->v, &n->line, n);
		if (!r)
			r = sync(smp_task(v));
		if (r)
			break;
	}
	if (n->locked && !r)
		return 1;
	osq_leave(v, m, n);
	return r;
}

static int osq_unlock(struct smp_vcpu *v, struct guest_mutex *m, struct osq_node *n)
{
	int r = smp_line_rmw(v, &m->line);

	osq_leave(v, m, n); /* also while it unwinds: the node is on its stack */
	return r;
}

/* [running] Tries while the owner runs: 1 got it, 0 not. */
static int spin_on_owner(struct guest_thread *g, struct guest_mutex *m)
{
	struct smp_vcpu *v = g->v;
	struct smp_watch w;
	int r;

	for (;;) {
		r = trylock(g, m, false);
		if (r)
			return r;
		if (v->need_resched || m->pickup || !owner_on_cpu(m))
			return 0;
		r = watch(v, &w, m->owner->v, &m->line, m);
		if (!r)
			r = sync(g->task);
		if (r)
			return r;
	}
}

/* [running] mutex_optimistic_spin(): 1 got it, 0 not. Who has slept needs not queue. */
static int optimistic_spin(struct guest_thread *g, struct guest_mutex *m, bool slept)
{
	struct osq_node node = {0};
	int got, r;

	if (!m->spin)
		return 0;
	if (slept)
		return spin_on_owner(g, m);
	if (g->v->need_resched || (m->owner && !owner_on_cpu(m)))
		return 0;
	r = osq_lock(g->v, m, &node);
	if (r <= 0)
		return r;
	got = spin_on_owner(g, m);
	r = osq_unlock(g->v, m, &node);
	return r ? r : got;
}

/* ---- sleeping ---- */

/* [running] Until it is the owner. */
static int sleep_for(struct guest_thread *g, struct guest_mutex *m)
{
	struct mutex_waiter me = {.g = g};
	int r = smp_line_rmw(g->v, &m->list_line);

	if (r)
		return r;
	m->stats.slowpath++;
	TAILQ_INSERT_TAIL(&m->waiters, &me, link);
	r = trylock(g, m, false);
	while (!r) {
		bool first;

		r = guest_sleep_for(g, &me.woken, CYCLES_MAX);
		if (r)
			break;
		me.woken = false;
		first = TAILQ_FIRST(&m->waiters) == &me;
		r = trylock(g, m, first);
		if (!r && first)
			r = optimistic_spin(g, m, true);
	}
	if (r > 0)
		r = smp_line_rmw(g->v, &m->list_line);
	TAILQ_REMOVE(&m->waiters, &me, link);
	if (TAILQ_EMPTY(&m->waiters))
		m->handoff = false;
	return r;
}

int guest_mutex_lock(struct guest_thread *g, struct guest_mutex *m)
{
	uint16_t was = activity_enter(g->task, ACT_guest_lock);
	cycles_t from = task_now(g->task), wait;
	int r = trylock(g, m, false);

	if (!r) {
		m->stats.contended++;
		r = optimistic_spin(g, m, false);
		if (!r)
			r = sleep_for(g, m);
		if (r >= 0)
			r = sync(g->task);
		if (!r) {
			wait = task_now(g->task) - from;
			m->stats.wait += wait;
			if (wait > m->stats.longest_wait)
				m->stats.longest_wait = wait;
		}
	}
	if (r >= 0)
		m->stats.acquired++;
	activity_leave(g->task, was);
	return r < 0 ? r : 0;
}

int guest_mutex_unlock(struct guest_thread *g, struct guest_mutex *m)
{
	uint16_t was = activity_enter(g->task, ACT_guest_lock);
	struct mutex_waiter *first;
	cycles_t hold;
	int r = smp_line_rmw(g->v, &m->line);

	if (!r && m->owner != g) {
		r = kvmsim_err(sim_errors(m->vm->sim), KVMSIM_ECHECK,
			       "mutex %s is unlocked by %s, who does not hold it", m->name,
			       g->name);
		sim_fail(m->vm->sim, KVMSIM_ECHECK);
	}
	if (r)
		goto out;
	hold = task_now(g->task) - m->since;
	m->stats.hold += hold;
	if (hold > m->stats.longest_hold)
		m->stats.longest_hold = hold;
	if (!m->handoff)
		m->owner = NULL;
	end_watches_of(g->v, m);
	if (TAILQ_EMPTY(&m->waiters) && !m->handoff)
		goto out;
	r = smp_line_rmw(g->v, &m->list_line);
	if (r)
		goto out;
	first = TAILQ_FIRST(&m->waiters);
	if (m->owner == g) { /* still: the hand-off */
		m->handoff = false;
		m->owner = first ? first->g : NULL;
		m->pickup = first;
	}
	if (first && !first->woken) {
		first->woken = true;
		m->stats.kicks++;
		r = guest_wake_for(g->v, first->g, &first->woken);
	}
out:
	activity_leave(g->task, was);
	return r;
}
