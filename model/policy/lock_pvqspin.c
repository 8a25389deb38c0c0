// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/lock.h"

#include "model/counts.h"

/*
 * Paravirtual queued spinlocks (kernel/locking/qspinlock_paravirt.h, W. Long and P. Zijlstra): who
 * waits in the queue spins for a while, not at all when the one before it does not run (wait-early,
 * 4.5), then halts. The head sets the pending bit while it spins: with the bit not set others take
 * the lock past the queue (4.5). A head that halts puts itself in a hash table and a mark on the
 * lock, or the one before it does so for it, and who unlocks finds it there and kicks it.
 *
 * What it notes of whom, it looks up in the lock's state: the hash table has at most one entry per
 * lock.
 */
enum { THRESHOLD, STEALING, WAIT_EARLY };

static const struct policy_param params[] = {
	LOCK_THRESHOLD_PARAM,
	{"stealing", 1, 0, 1, 1, "1: others may take the lock past a queue whose head halts"},
	{"wait-early", 1, 0, 1, 1, "1: who queues behind one that does not run halts soon"},
	{.name = NULL}};

/* The one before is looked at every so many iterations. */
#define PREV_CHECK 256u

enum node_state { NODE_RUNNING, NODE_HALTED, NODE_HASHED };

struct pvnode {
	struct spinner s;
	struct smp_line line;
	struct pvnode *prev, *next;
	enum node_state state;
	bool locked; /* it is the head */
	bool waits;  /* in spin_wait() for that */
};

enum lock_byte { LOCK_FREE, LOCK_HELD, LOCK_SLOW };

struct pvqspin_state {
	enum lock_byte locked;
	bool pending;
	struct pvnode *tail;
	struct pvnode *hashed;
	struct spinner *head;	  /* the queue's, spinning on the lock */
	struct spinner *stealers; /* those who spin on it to take it past the queue */
};

static int init(struct smp_vm *vm, struct smp_lock *l)
{
	(void)vm;
	return lock_alloc_state(l, sizeof(struct pvqspin_state));
}

/* [running, synced] What stealers look at has changed. */
static void tell_stealers(struct smp_vcpu *v, struct pvqspin_state *s)
{
	struct spinner *first = s->stealers;

	s->stealers = NULL;
	spin_release_all(v, first);
}

static void set_pending(struct smp_vcpu *v, struct pvqspin_state *s)
{
	s->pending = true;
	tell_stealers(v, s);
}

/* pv_hybrid_queued_unfair_trylock(): 1, 0 or negative. */
static int steal(struct smp_vcpu *v, struct smp_lock *l, struct pvqspin_state *s)
{
	const bool stealing = lock_param(v, STEALING);

	for (;;) {
		struct spinner w = {.v = v, .line = &l->line};
		int r = smp_line_rmw(v, &l->line);

		if (r)
			return r;
		if (s->locked == LOCK_FREE && !s->pending && (stealing || !s->tail)) {
			s->locked = LOCK_HELD;
			return 1;
		}
		if (!stealing || !s->tail || s->pending)
			return 0;
		w.next = s->stealers;
		s->stealers = &w;
		r = spin_wait(v, &w, 0);
		if (r < 0)
			return r;
	}
}

/* [running, synced] @n's state changes: the one behind looks at it. */
static void set_state(struct smp_vcpu *v, struct pvnode *n, enum node_state state)
{
	n->state = state;
	if (state != NODE_RUNNING && n->next && n->next->waits && !n->next->locked &&
	    lock_param(v, WAIT_EARLY))
		spin_release(v, &n->next->s);
}

/* [running, synced] kvm_wait(): @still says whether what it is to halt for is so at this moment. A
 * kick that comes between is not lost. */
static int pv_wait(struct smp_vcpu *v, bool still)
{
	bool flags;
	int r;

	if (!still)
		return 0;
	flags = smp_irq_save(v);
	r = pv_halt(v, flags);
	return r ? r : smp_irq_restore(v, flags);
}

/* Spins until @n is the head: 1; until the time to halt: 0. */
static int spin_in_queue(struct smp_vcpu *v, struct pvnode *n)
{
	const bool early = lock_param(v, WAIT_EARLY);
	uint64_t left = lock_param(v, THRESHOLD);
	int r = sync(smp_task(v));

	while (!r && !n->locked && left) {
		uint64_t loops = left, done;

		if (early && n->prev->state != NODE_RUNNING) {
			if (left % PREV_CHECK == 0)
				return 0;
			loops = left % PREV_CHECK;
		}
		n->s.released = false;
		n->waits = true;
		r = spin_wait(v, &n->s, loops);
		n->waits = false;
		done = r ? smp_pause_loops(smp_vm_of(v), n->s.spun) : loops;
		left -= done < left ? done : left;
		r = r < 0 ? r : 0;
	}
	return r ? r : n->locked;
}

/* pv_wait_node(). */
static int wait_in_queue(struct smp_vcpu *v, struct smp_lock *l, struct pvnode *n)
{
	for (;;) {
		int r = spin_in_queue(v, n);

		if (r)
			return r < 0 ? r : 0;
		r = smp_line_rmw(v, &n->line);
		if (r)
			return r;
		set_state(v, n, NODE_HALTED);
		if (!n->locked) {
			l->stats.slowpath++;
			r = pv_wait(v, true);
		}
		if (!r)
			r = smp_line_rmw(v, &n->line);
		if (r)
			return r;
		if (n->state == NODE_HALTED)
			set_state(v, n, NODE_RUNNING);
		if (n->locked)
			return 0;
	}
}

/* Spins until the lock is let go: 1 got it, 0 the time is over. The pending bit is set. */
static int spin_at_head(struct smp_vcpu *v, struct smp_lock *l, struct pvqspin_state *s)
{
	uint64_t left = lock_param(v, THRESHOLD);
	int r = 0;

	while (!r && left) {
		struct spinner w = {.v = v, .line = &l->line};

		if (s->locked == LOCK_FREE) {
			r = smp_line_rmw(v, &l->line);
			if (r)
				return r;
			if (s->locked == LOCK_FREE) {
				s->pending = false;
				s->locked = LOCK_HELD;
				return 1;
			}
		}
		s->head = &w;
		r = spin_wait(v, &w, left);
		s->head = NULL;
		if (!r)
			return 0;
		left -= smp_pause_loops(smp_vm_of(v), w.spun);
		r = r < 0 ? r : 0;
	}
	return r;
}

/* pv_wait_head_or_lock(). */
static int wait_as_head(struct smp_vcpu *v, struct smp_lock *l, struct pvnode *n)
{
	struct pvqspin_state *s = l->state;
	bool hashed = n->state == NODE_HASHED;
	int r;

	for (;;) {
		r = smp_line_store(v, &l->line);
		if (r)
			return r;
		set_state(v, n, NODE_RUNNING);
		set_pending(v, s);
		r = spin_at_head(v, l, s);
		if (r)
			return r < 0 ? r : 0;
		r = smp_line_rmw(v, &l->line);
		if (r)
			return r;
		s->pending = false;
		if (!hashed) { /* once: who unlocks takes it out */
			hashed = true;
			if (s->locked == LOCK_FREE) {
				s->locked = LOCK_HELD;
				return 0;
			}
			s->locked = LOCK_SLOW;
			s->hashed = n;
		}
		set_state(v, n, NODE_HASHED);
		if (s->locked == LOCK_SLOW)
			l->stats.slowpath++;
		r = pv_wait(v, s->locked == LOCK_SLOW);
		if (r)
			return r;
	}
}

static int lock_queued(struct smp_vcpu *v, struct smp_lock *l, struct pvqspin_state *s)
{
	struct pvnode n = {.s = {.v = v, .line = &n.line}}, *next;
	int r = steal(v, l, s);

	if (!r)
		r = smp_line_rmw(v, &l->line);
	if (r)
		return r < 0 ? r : 0;
	smp_line_init(&n.line);
	n.prev = s->tail;
	s->tail = &n;
	if (n.prev) {
		n.prev->next = &n;
		r = wait_in_queue(v, l, &n);
	}
	if (!r)
		r = wait_as_head(v, l, &n);
	if (!r)
		r = smp_line_rmw(v, &l->line);
	if (r) {
		s->tail = NULL; /* cancelled: nobody goes on */
		return r;
	}
	if (s->tail == &n) {
		s->tail = NULL;
		tell_stealers(v, s);
		return 0;
	}
	next = n.next;
	next->locked = true;
	if (next->state == NODE_HALTED) { /* pv_kick_node(): it will be kicked at the unlock */
		next->state = NODE_HASHED;
		s->locked = LOCK_SLOW;
		s->hashed = next;
	} else {
		spin_release(v, &next->s);
	}
	return 0;
}

static int lock(struct smp_vcpu *v, struct smp_lock *l, bool *contended)
{
	struct pvqspin_state *s = l->state;
	int r = smp_line_rmw(v, &l->line);

	if (r)
		return r;
	if (s->locked == LOCK_FREE && !s->pending && !s->tail) {
		s->locked = LOCK_HELD;
		return 0;
	}
	*contended = true;
	return lock_queued(v, l, s);
}

static int trylock(struct smp_vcpu *v, struct smp_lock *l)
{
	struct pvqspin_state *s = l->state;
	int r = smp_line_rmw(v, &l->line);

	if (r || s->locked != LOCK_FREE || s->pending || s->tail)
		return r;
	s->locked = LOCK_HELD;
	return 1;
}

static int unlock(struct smp_vcpu *v, struct smp_lock *l)
{
	struct pvqspin_state *s = l->state;
	struct smp_vcpu *kick = NULL;
	int r;

	charge(smp_task(v), COUNT_pv_unlock, 1);
	r = smp_line_store(v, &l->line);
	if (r)
		return r;
	if (s->locked == LOCK_SLOW) {
		kick = s->hashed->s.v;
		s->hashed = NULL;
	}
	s->locked = LOCK_FREE;
	if (s->head)
		spin_release(v, s->head);
	if (!s->pending)
		tell_stealers(v, s);
	if (!kick)
		return 0;
	l->stats.kicks++;
	return smp_kick_cpu(v, kick);
}

const struct lock_policy lock_pvqspin = {
	.desc =
		{
			.name = "pvqspin",
			.family = FAMILY_LOCK,
			.summary =
				"paravirtual queued spinlocks: who waits for long halts; stealing",
			.params = params,
		},
	.init = init,
	.free = lock_free_state,
	.lock = lock,
	.trylock = trylock,
	.unlock = unlock,
};
