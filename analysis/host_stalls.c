// SPDX-License-Identifier: GPL-3.0-or-later
/* What the threads of a host's trace stand still for, and who ends it. */
#include <string.h>

#include "analysis/host_threads_priv.h"

/* flags of contention_begin, from the kernel's lock events */
#define LCB_F_READ 2

const char *host_stall_name(enum host_stall_kind k)
{
	static const char *const names[HOST_N_STALLS] = {"dirty ring full", "lock", "halted",
							 "preempted", "slept"};

	return names[k];
}

void host_stalls_begin(struct host_threads *t, struct thread *th, struct pending *p,
		       enum host_stall_kind kind, const struct host_event *e)
{
	*p = (struct pending){.on = true, .mark = t->losses, .cpu = e->cpu};
	p->stall = (struct host_stall){.kind = kind,
				       .who = th->pub.who,
				       .begin = e->time_ns,
				       .in = th->state,
				       .by = {.tid = HOST_NOBODY, .vcpu = -1},
				       .by_cpu = -1};
	t->rings += kind == HOST_STALL_RING;
}

int host_stalls_finish(struct host_threads *t, struct pending *p, uint64_t end, int64_t cpu)
{
	struct host_stall *s = &p->stall;

	if (!p->on)
		return 0;
	p->on = false;
	t->rings -= s->kind == HOST_STALL_RING;
	if (end < s->begin) /* counted as backwards */
		return 0;
	s->end = end;
	s->unsure |= host_threads_lost_since(t, p->mark, p->cpu) ||
		     host_threads_lost_since(t, p->mark, cpu);
	if (s->blame == HOST_BLAME_UNSEEN && host_threads_lost_since(t, p->mark, -1))
		s->blame = HOST_BLAME_LOST;
	return t->sink->stall ? t->sink->stall(t->sink->ctx, s) : 0;
}

int host_stalls_close(struct host_threads *t, struct thread *th, uint64_t end, int64_t cpu,
		      bool open)
{
	struct pending *all[3 + HOST_LOCK_NESTED] = {&th->ring, &th->halt, &th->off};
	int err = 0;

	for (int i = 0; i < HOST_LOCK_NESTED; i++)
		all[3 + i] = &th->lock[i];
	for (int i = 0; !err && i < 3 + HOST_LOCK_NESTED; i++) {
		all[i]->stall.open = open;
		err = host_stalls_finish(t, all[i], end, cpu);
	}
	return err;
}

static void blame(struct pending *p, const struct host_who *by, uint64_t when)
{
	if (!p->on || p->stall.blame != HOST_BLAME_UNSEEN)
		return;
	p->stall.blame = HOST_BLAME_KNOWN;
	p->stall.by = *by;
	p->stall.until = when;
}

/* ---- dirty rings ---- */

int host_stalls_reset(struct host_threads *t, const struct host_event *e)
{
	struct host_who by;

	if (!t->rings || !host_has(e, HOST_F_ring))
		return 0;
	by = host_who_of(t, e);
	for (struct thread *th = t->oldest; th; th = th->next) {
		if (!th->ring.on || th->pub.who.vcpu != (int64_t)e->v[HOST_F_ring])
			continue;
		if (e->tgid >= 0 && th->pub.tgid >= 0 && e->tgid != th->pub.tgid)
			continue; /* another VM's */
		th->ring.stall.resets++;
		blame(&th->ring, &by, e->time_ns);
	}
	return 0;
}

/* ---- scheduling ---- */

/* Where only sched_wakeup is recorded, a task's wake-up on another CPU is seen as the interrupt
 * that it sends there: no task can be told then, either. */
static enum host_blame waker(const struct host_event *e)
{
	switch (e->context) {
	case HOST_CONTEXT_NMI:
	case HOST_CONTEXT_HARDIRQ:
		return HOST_BLAME_INTERRUPT;
	case HOST_CONTEXT_SOFTIRQ:
		return HOST_BLAME_SOFTIRQ;
	default:
		return e->tid ? HOST_BLAME_KNOWN : HOST_BLAME_INTERRUPT;
	}
}

static void woken(struct pending *p, const struct host_who *by, const struct host_event *e)
{
	if (!p->on || p->stall.blame != HOST_BLAME_UNSEEN)
		return;
	blame(p, by, e->time_ns);
	p->stall.blame = waker(e);
	p->stall.by_cpu = e->cpu;
}

void host_stalls_wake(struct host_threads *t, const struct host_event *e)
{
	struct thread *th =
		host_has(e, HOST_F_pid) ? host_thread_find(t, (int64_t)e->v[HOST_F_pid]) : NULL;
	struct host_who by;

	if (!th)
		return;
	by = host_who_of(t, e);
	woken(&th->halt, &by, e);
	if (th->off.stall.kind == HOST_STALL_SLEPT)
		woken(&th->off, &by, e);
}

static bool waits_for_lock(const struct thread *th)
{
	for (int i = 0; i < HOST_LOCK_NESTED; i++)
		if (th->lock[i].on)
			return true;
	return false;
}

void host_stalls_off(struct host_threads *t, struct thread *th, const struct host_event *e)
{
	bool could_run = host_has(e, HOST_F_prev_state) && e->v[HOST_F_prev_state] == 'R';
	struct host_who next = {.tid = HOST_NOBODY, .vcpu = -1};
	const struct thread *other;

	if (th->pub.who.vcpu < 0)
		return;
	if (!could_run && (th->halt.on || th->ring.on || waits_for_lock(th)))
		return;
	host_stalls_begin(t, th, &th->off, could_run ? HOST_STALL_PREEMPTED : HOST_STALL_SLEPT, e);
	if (!could_run || !host_has(e, HOST_F_next_pid))
		return;
	next.tid = (int64_t)e->v[HOST_F_next_pid];
	other = host_thread_find(t, next.tid);
	if (other)
		next = other->pub.who;
	blame(&th->off, &next, 0);
}

int host_stalls_on(struct host_threads *t, struct thread *th, const struct host_event *e, bool seen)
{
	th->off.stall.unsure |= !seen;
	return host_stalls_finish(t, &th->off, e->time_ns, e->cpu);
}

/* ---- locks ---- */

static struct lock_slot *lock_slot(struct host_threads *t, uint64_t addr)
{
	return &t->lock[(addr * 0x9e3779b97f4a7c15ull) >> 52];
}
_Static_assert(HOST_LOCKS == 1 << 12, "12 bits of the hash");

static struct pending *lock_find(struct thread *th, uint64_t addr)
{
	for (int i = 0; i < HOST_LOCK_NESTED; i++)
		if (th->lock[i].on && th->lock[i].stall.lock == addr)
			return &th->lock[i];
	return NULL;
}

static void contention_begin(struct host_threads *t, struct thread *th, const struct host_event *e,
			     uint64_t addr)
{
	if (lock_find(th, addr)) /* a mutex: first it spins, then it sleeps */
		return;
	for (int i = 0; i < HOST_LOCK_NESTED; i++) {
		if (th->lock[i].on)
			continue;
		host_stalls_begin(t, th, &th->lock[i], HOST_STALL_LOCK, e);
		th->lock[i].stall.lock = addr;
		th->lock[i].stall.depth = (unsigned)i;
		th->lock[i].stall.flags = host_has(e, HOST_F_flags) ? e->v[HOST_F_flags] : 0;
		return;
	}
}

/*
 * Locks that are waited for are handed over in order of arrival: who got it last, during the wait,
 * had it until the wait's end. A reader may have waited for a writer alone.
 */
static int contention_end(struct host_threads *t, struct thread *th, const struct host_event *e,
			  uint64_t addr)
{
	struct pending *p = lock_find(th, addr);
	struct lock_slot *l = lock_slot(t, addr);
	bool reader = p && p->stall.flags & LCB_F_READ;
	bool got = !host_has(e, HOST_F_ret) || !e->v[HOST_F_ret];
	uint64_t now = e->time_ns;
	int err = 0;

	if (l->addr != addr)
		*l = (struct lock_slot){.addr = addr};
	if (p && l->any.there) {
		if (reader && l->writer.there && l->writer.time >= p->stall.begin)
			blame(p, &l->writer.who, l->writer.time);
		if (!reader && l->any.time >= p->stall.begin)
			blame(p, &l->any.who, l->any.time);
	}
	if (p)
		err = host_stalls_finish(t, p, now, e->cpu);
	if (got) {
		l->any.there = true;
		l->any.time = now;
		l->any.who = th->pub.who;
		if (!reader)
			l->writer = l->any;
	}
	return err;
}

int host_stalls_contention(struct host_threads *t, struct thread *th, const struct host_event *e)
{
	uint64_t addr = host_has(e, HOST_F_lock_addr) ? e->v[HOST_F_lock_addr] : 0;

	if (e->id == HOST_contention_end)
		return contention_end(t, th, e, addr);
	contention_begin(t, th, e, addr);
	return 0;
}
