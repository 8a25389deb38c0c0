// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/host/lock.h"

#include "model/counts.h"
#include "model/host/host.h"

enum mode { EXCLUSIVE, SHARED };

/* On the stack of the task that waits. */
struct lock_waiter {
	struct task *task;
	enum mode mode;
	bool granted;
	cycles_t from;
	struct host_wait cause; /* the longest hold that it waited for, so far */
	struct lock_waiter *next;
};

static void init(struct lock_queue *q, const struct lock_class *class)
{
	*q = (struct lock_queue){.class = class, .line_core = UINT32_MAX};
	q->tail = &q->head;
}

static struct held_lock *find_held(const struct task *t, const struct lock_queue *q)
{
	struct host_task *h = task_host(t);

	for (uint32_t i = 0; h && i < h->n_held; i++)
		if (h->held[i].lock == q)
			return &h->held[i];
	return NULL;
}

/* Tells the sink, makes the run fail, returns the error. */
static int broken(struct task *t, const char *what, const struct lock_queue *q, const char *other)
{
	struct sim *s = task_sim(t);

	sim_fail(s, KVMSIM_ECHECK);
	return kvmsim_err(sim_errors(s), KVMSIM_ECHECK, "task %s at %llu: %s %s%s%s", task_name(t),
			  (unsigned long long)task_now(t), what, q->class->name,
			  other ? " while holding " : "", other ? other : "");
}

void lock_watch(struct lock_queue *q, const struct lock_watch *watch)
{
	q->watch = watch;
}

bool lock_is_watched(const struct lock_queue *q)
{
	return q->watch;
}

static void tell(const struct lock_queue *q, const struct lock_spell *s)
{
	if (q->watch)
		q->watch->spell(q->watch->ctx, s);
}

/* May @t take @q now, by the declared order? */
static int check_order(struct task *t, const struct lock_queue *q)
{
	const struct host_task *h = host_task(t);

	if (!h)
		return KVMSIM_ENOMEM;
	if (find_held(t, q))
		return broken(t, "takes again", q, q->class->name);
	if (h->n_held == HOST_MAX_HELD)
		return broken(t, "holds too many locks to take", q, NULL);
	for (uint32_t i = 0; i < h->n_held; i++) {
		const struct lock_class *other = h->held[i].lock->class;

		if (q->class->rank && other->rank >= q->class->rank)
			return broken(t, "lock order: takes", q, other->name);
	}
	return 0;
}

static bool is_free(const struct lock_queue *q, enum mode mode)
{
	return !q->head && !q->writer && (mode == SHARED || !q->readers);
}

/* Gives the lock to @t in the lock's own state. */
static void give(struct lock_queue *q, struct task *t, enum mode mode)
{
	if (mode == SHARED)
		q->readers++;
	else
		q->writer = t;
}

/* When the line, asked for at @now, is at @core. */
static cycles_t line_arrives(struct lock_queue *q, struct host_core *core, cycles_t now,
			     cycles_t transfer)
{
	cycles_t from = q->line_at > now ? q->line_at : now;

	if (q->line_core == core->id)
		return from;
	if (core->line == q && core->line_at > now) /* the core's other thread asked */
		return core->line_at;
	q->line_core = core->id;
	q->line_at = from + transfer;
	core->line = q;
	core->line_at = q->line_at;
	return q->line_at;
}

/* @t changes the lock's word. */
static void fetch_line(struct task *t, struct lock_queue *q)
{
	struct host_task *h = task_host(t);
	cycles_t now = task_now(t), at;

	if (!h || !h->line_transfer)
		return;
	at = line_arrives(q, h->core, now, h->line_transfer);
	if (at > now)
		charge_cycles(t, COUNT_lock_line, 1, at - now);
}

/* log2(@n) * 256, linear between powers of two. */
static uint64_t log2_256(uint64_t n)
{
	unsigned whole = 63 - (unsigned)__builtin_clzll(n);

	return ((uint64_t)whole << 8) + (((n << 8) >> whole) - 256);
}

/* When @w, first of the queue, has the lock that is let go at @now. */
static cycles_t handed_over(struct lock_queue *q, const struct lock_waiter *w, cycles_t now)
{
	const struct host_task *h = task_host(w->task);

	if (!h->line_transfer)
		return now;
	if (w->mode == SHARED)
		return line_arrives(q, h->core, now, h->line_transfer);
	q->line_core = h->core->id;
	if (h->queue_transfers)
		q->line_at = now + h->line_transfer * (q->waiting > 1 ? h->queue_transfers : 1);
	else
		q->line_at = now + (h->line_transfer * log2_256(q->waiting + 1) >> 8);
	return q->line_at;
}

/* Gives the lock to whoever is first in line, as far as it is free, from @now on. */
static void hand_over(struct lock_queue *q, cycles_t now)
{
	while (q->head && !q->writer && (q->head->mode == SHARED || !q->readers)) {
		struct lock_waiter *w = q->head;
		cycles_t at = handed_over(q, w, now);

		q->head = w->next;
		if (!q->head)
			q->tail = &q->head;
		q->waiting--;
		w->granted = true;
		give(q, w->task, w->mode);
		task_wake(w->task, at);
	}
}

/* @t, who held the lock since @since, is about to release it: what it cost those who wait. */
static void blame_holder(struct lock_queue *q, struct task *t, cycles_t since)
{
	for (struct lock_waiter *w = q->head; w; w = w->next) {
		cycles_t share = task_now(t) - (since > w->from ? since : w->from);

		if (w->cause.by && share <= w->cause.cycles)
			continue;
		host_blame(&w->cause, t);
		w->cause.cycles = share;
	}
}

static void leave_queue(struct lock_queue *q, struct lock_waiter *w)
{
	struct lock_waiter **p = &q->head;

	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
	if (!*p)
		q->tail = p;
	q->waiting--;
}

/* What follows when @t has been given the lock. */
static void acquired(struct task *t, struct lock_queue *q, enum mode mode)
{
	struct host_task *h = task_host(t);

	h->held[h->n_held++] = (struct held_lock){q, task_now(t)};
	q->stats[mode].acquired++;
	charge(t, COUNT_lock, 1);
}

static int try_lock(struct task *t, struct lock_queue *q, enum mode mode)
{
	int r = sync(t);

	if (!r)
		r = check_order(t, q);
	if (r)
		return r;
	task_assert_first(t, q->class->name);
	if (!is_free(q, mode))
		return 0;
	give(q, t, mode);
	fetch_line(t, q);
	acquired(t, q, mode);
	return 1;
}

static int lock(struct task *t, struct lock_queue *q, enum mode mode)
{
	struct lock_waiter w = {.task = t, .mode = mode};
	struct lock_stats *stats = &q->stats[mode];
	int r = try_lock(t, q, mode);
	cycles_t waited;

	if (r)
		return r < 0 ? r : 0;
	w.from = task_now(t);
	*q->tail = &w;
	q->tail = &w.next;
	q->waiting++;
	while (!w.granted && !r) /* another's wake-up may come between */
		r = task_block(t, WAIT_lock);
	if (r && !w.granted) {
		leave_queue(q, &w);
		return r;
	}
	if (r) { /* cancelled between the hand-over and here: pass it on */
		if (mode == SHARED)
			q->readers--;
		else
			q->writer = NULL;
		hand_over(q, task_now(t));
		return r;
	}
	waited = task_now(t) - w.from;
	w.cause.wait = WAIT_lock;
	w.cause.cycles = waited;
	host_waited(t, &w.cause);
	tell(q, &(struct lock_spell){.class = q->class,
				     .task = t,
				     .shared = mode == SHARED,
				     .start = w.from,
				     .cycles = waited,
				     .by = w.cause.by,
				     .caller = host_watch(t)->caller});
	stats->contended++;
	stats->wait += waited;
	if (waited > stats->longest_wait)
		stats->longest_wait = waited;
	acquired(t, q, mode);
	return 0;
}

static void unlock(struct task *t, struct lock_queue *q, enum mode mode)
{
	struct host_task *h = task_host(t);
	struct held_lock *held = find_held(t, q);
	struct lock_stats *stats = &q->stats[mode];
	cycles_t hold;

	/* When cancelled it fails, and the lock is released all the same. */
	(void)sync(t);
	task_assert_first(t, q->class->name);
	if (!held || (mode == SHARED) != (q->writer != t)) {
		broken(t, mode == SHARED ? "not a reader, releases" : "not the owner, releases", q,
		       NULL);
		return;
	}
	if (mode == SHARED) {
		fetch_line(t, q);
		(void)sync(t);
	}
	hold = task_now(t) - held->since;
	tell(q, &(struct lock_spell){.class = q->class,
				     .task = t,
				     .held = true,
				     .shared = mode == SHARED,
				     .start = held->since,
				     .cycles = hold});
	if (hold > stats->longest_hold)
		stats->longest_hold = hold;
	if (h->watch.lock == q && hold > h->watch.hold[mode])
		h->watch.hold[mode] = hold;
	blame_holder(q, t, held->since);
	for (; held + 1 < h->held + h->n_held; held++)
		held[0] = held[1];
	h->n_held--;
	if (mode == SHARED)
		q->readers--;
	else
		q->writer = NULL;
	hand_over(q, task_now(t));
}

void spin_lock_init(struct spinlock *l, const struct lock_class *class)
{
	init(&l->q, class);
}

void rwlock_init(struct rwlock *l, const struct lock_class *class)
{
	init(&l->q, class);
}

void mutex_init(struct mutex *l, const struct lock_class *class)
{
	init(&l->q, class);
}

int spin_lock(struct task *t, struct spinlock *l)
{
	return lock(t, &l->q, EXCLUSIVE);
}

int read_lock(struct task *t, struct rwlock *l)
{
	return lock(t, &l->q, SHARED);
}

int write_lock(struct task *t, struct rwlock *l)
{
	return lock(t, &l->q, EXCLUSIVE);
}

int mutex_lock(struct task *t, struct mutex *l)
{
	return lock(t, &l->q, EXCLUSIVE);
}

int spin_trylock(struct task *t, struct spinlock *l)
{
	return try_lock(t, &l->q, EXCLUSIVE);
}

int read_trylock(struct task *t, struct rwlock *l)
{
	return try_lock(t, &l->q, SHARED);
}

int write_trylock(struct task *t, struct rwlock *l)
{
	return try_lock(t, &l->q, EXCLUSIVE);
}

int mutex_trylock(struct task *t, struct mutex *l)
{
	return try_lock(t, &l->q, EXCLUSIVE);
}

void spin_unlock(struct task *t, struct spinlock *l)
{
	unlock(t, &l->q, EXCLUSIVE);
}

void read_unlock(struct task *t, struct rwlock *l)
{
	unlock(t, &l->q, SHARED);
}

void write_unlock(struct task *t, struct rwlock *l)
{
	unlock(t, &l->q, EXCLUSIVE);
}

void mutex_unlock(struct task *t, struct mutex *l)
{
	unlock(t, &l->q, EXCLUSIVE);
}

bool spin_is_contended(const struct spinlock *l)
{
	return l->q.head;
}

bool rwlock_is_contended(const struct rwlock *l)
{
	return l->q.head;
}

bool mutex_is_contended(const struct mutex *l)
{
	return l->q.head;
}

bool spin_is_held(const struct task *t, const struct spinlock *l)
{
	return find_held(t, &l->q);
}

bool rwlock_is_held(const struct task *t, const struct rwlock *l)
{
	return find_held(t, &l->q);
}

bool mutex_is_held(const struct task *t, const struct mutex *l)
{
	return find_held(t, &l->q);
}

struct lock_stats spin_lock_stats(const struct spinlock *l)
{
	return l->q.stats[EXCLUSIVE];
}

struct lock_stats read_lock_stats(const struct rwlock *l)
{
	return l->q.stats[SHARED];
}

struct lock_stats write_lock_stats(const struct rwlock *l)
{
	return l->q.stats[EXCLUSIVE];
}

struct lock_stats mutex_lock_stats(const struct mutex *l)
{
	return l->q.stats[EXCLUSIVE];
}

void lock_stats_reset(struct lock_queue *q)
{
	q->stats[EXCLUSIVE] = q->stats[SHARED] = (struct lock_stats){0};
}
