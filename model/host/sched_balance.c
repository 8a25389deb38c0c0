// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "model/host/sched_priv.h"

/*
 * Load balancing: load_balance() of kernel/sched/fair.c, 5.10 to 6.5, with as many domains as there
 * are levels. A domain's groups are its CPUs (of one last-level cache) or the caches (of the
 * machine). A CPU pulls from the busiest group's busiest queue: at intervals, short when it is idle
 * (some busy CPU's tick then does it for all idle ones), long when it is busy; and whenever it
 * becomes idle.
 */
enum idleness { BUSY, IDLE, NEWLY_IDLE };
enum group_type { HAS_SPARE, FULLY_BUSY, OVERLOADED };
enum unit { MOVE_LOAD, MOVE_THREADS };

#define MAX_MOVED	 32 /* sysctl_sched_nr_migrate */
#define BUSY_FACTOR	 16 /* of the interval */
#define CACHE_NICE_TRIES 1  /* failures before threads are moved that ran just now */

struct env {
	struct sched *s;
	struct rq *dst;
	struct task *by;
	cycles_t now;
	uint32_t level, pct;
	enum idleness idle;
	enum unit unit;
	uint64_t imbalance;
	uint64_t allowed[SCHED_MAX_CPUS / 64];
	bool all_pinned;
};

struct group {
	uint32_t first, weight, nr, n_idle;
	uint64_t load, avg;
	enum group_type type;
};

static uint32_t levels(const struct sched *s)
{
	return s->opts.cpus == 1 ? 0 : s->n_llc == 1 || s->opts.cpus_per_llc == 1 ? 1 : 2;
}

/* CPUs of a group at that level, and of its domain. */
static uint32_t group_size(const struct sched *s, uint32_t level)
{
	return level || s->opts.cpus_per_llc == 1 ? s->opts.cpus_per_llc : 1;
}

static uint32_t domain_size(const struct sched *s, uint32_t level)
{
	uint32_t n = level || s->opts.cpus_per_llc == 1 ? s->opts.cpus : s->opts.cpus_per_llc;

	return n ? n : 1; /* never none, which a reader of this file alone cannot know */
}

static bool machine_wide(const struct sched *s, uint32_t level)
{
	return domain_size(s, level) > s->opts.cpus_per_llc;
}

/* ---- who is busiest ---- */

static void measure(const struct env *e, struct group *g)
{
	uint64_t busy;

	g->nr = g->n_idle = 0;
	g->load = 0;
	for (uint32_t i = g->first; i < g->first + g->weight; i++) {
		const struct rq *rq = &e->s->rq[i];

		if (!(e->allowed[i / 64] >> i % 64 & 1))
			continue;
		g->nr += rq->nr_running;
		g->n_idle += !rq->nr_running;
		g->load += rq->cfs.load;
	}
	busy = g->weight - g->n_idle;
	g->avg = g->load / g->weight;
	g->type = FULLY_BUSY;
	if (g->nr > g->weight &&
	    (g->weight * 100ull < busy * e->pct || (uint64_t)g->weight * e->pct < g->nr * 100ull))
		g->type = OVERLOADED;
	else if (g->nr < g->weight || g->weight * 100ull > busy * e->pct)
		g->type = HAS_SPARE;
}

/* update_sd_pick_busiest() */
static bool busier(const struct group *g, const struct group *than)
{
	if (!g->nr)
		return false;
	if (!than->weight || g->type != than->type)
		return !than->weight || g->type > than->type;
	if (g->type == OVERLOADED)
		return g->avg > than->avg;
	if (g->type == FULLY_BUSY)
		return false;
	return g->n_idle != than->n_idle ? g->n_idle < than->n_idle : g->nr > than->nr;
}

/* calculate_imbalance(), when the local group has room: threads. */
static uint64_t spread(const struct env *e, const struct group *local, const struct group *busiest)
{
	bool by_number = busiest->weight == 1 || machine_wide(e->s, e->level);
	uint32_t more = by_number ? busiest->nr : local->n_idle;
	uint32_t less = by_number ? local->nr : busiest->n_idle;

	return more > less ? (more - less) / 2 : 0;
}

/* find_busiest_group(): the imbalance to be mended, 0: none. */
static uint64_t find_imbalance(struct env *e, struct group *busiest)
{
	uint32_t size = group_size(e->s, e->level), all = domain_size(e->s, e->level);
	uint32_t first = all == e->s->opts.cpus ? 0 : llc_of(e->s, e->dst->cpu) * all;
	struct group local = {0};
	uint64_t total = 0, avg;

	for (uint32_t i = first; i < first + all; i += size) {
		struct group g = {.first = i, .weight = size};

		measure(e, &g);
		total += g.load;
		if (e->dst->cpu - i < size) /* unsigned: not before it either */
			local = g;
		else if (busier(&g, busiest))
			*busiest = g;
	}
	avg = total / all;
	if (!busiest->weight || local.type > busiest->type)
		return 0;
	e->unit = MOVE_THREADS;
	if (local.type == OVERLOADED && (local.avg >= busiest->avg || local.avg >= avg ||
					 100 * busiest->avg <= e->pct * local.avg))
		return 0;
	if (busiest->type != OVERLOADED &&
	    !(machine_wide(e->s, e->level) && local.type == HAS_SPARE &&
	      busiest->nr > local.nr + 1) &&
	    (e->idle == BUSY || (busiest->weight > 1 && local.n_idle <= busiest->n_idle + 1) ||
	     busiest->nr == 1))
		return 0;
	if (local.type == HAS_SPARE) {
		uint64_t n = spread(e, &local, busiest);

		/* An idle CPU beside an overloaded cache's takes one at least. */
		return n ? n : busiest->type == OVERLOADED && e->idle != BUSY;
	}
	if (local.avg >= busiest->avg || local.avg >= avg)
		return 0;
	e->unit = MOVE_LOAD;
	avg = busiest->avg - avg < avg - local.avg ? busiest->avg - avg : avg - local.avg;
	return avg * size;
}

static struct rq *find_busiest_queue(const struct env *e, const struct group *g)
{
	struct rq *best = NULL;

	for (uint32_t i = g->first; i < g->first + g->weight; i++) {
		struct rq *rq = &e->s->rq[i];

		if (!(e->allowed[i / 64] >> i % 64 & 1) || !rq->nr_running)
			continue;
		if (e->unit == MOVE_LOAD && rq->nr_running == 1 && rq->cfs.load > e->imbalance)
			continue;
		if (!best || (e->unit == MOVE_LOAD ? rq->cfs.load > best->cfs.load
						   : rq->nr_running > best->nr_running))
			best = rq;
	}
	return best;
}

/* ---- moving ---- */

static bool cache_hot(const struct env *e, const struct sched_thread *th)
{
	const struct sched_entity *se = &th->se;

	if (e->dst->nr_running && (se->queue->next == se || se->queue->last == se))
		return true;
	return e->now < se->exec_start + e->s->migration_cost;
}

static bool can_move(struct env *e, const struct rq *src, const struct sched_thread *th)
{
	if (!may_run_on(th, e->dst->cpu))
		return false;
	e->all_pinned = false;
	if (th == src->curr)
		return false;
	return !cache_hot(e, th) || e->dst->failed[e->level] > CACHE_NICE_TRIES;
}

static void move(struct env *e, struct rq *src, struct sched_thread *th)
{
	struct rq *dst = e->dst;
	cycles_t since = th->queued_at;

	dequeue_thread(src, th, false, e->now);
	enqueue_thread(dst, th, ENQUEUE_MIGRATED, e->now);
	th->queued_at = since;
	th->moves++;
	th->stats.migrations++;
	if (rq_idle(dst)) {
		start_idle(dst, e->by, e->now + e->s->ipi);
	} else if (e->idle != NEWLY_IDLE) {
		if (wakeup_preempts(dst, th, e->now))
			resched_curr(dst, e->by);
		update_tick(dst, e->by);
	}
	update_tick(src, e->by);
}

static uint32_t move_threads(struct env *e, struct rq *src)
{
	uint32_t loops = src->nr_running < MAX_MOVED ? src->nr_running : MAX_MOVED, moved = 0;

	for (; loops && (e->idle == BUSY || src->nr_running > 1); loops--) {
		struct sched_thread *th = TAILQ_LAST(&src->threads, thread_list);
		uint64_t weight = e->unit == MOVE_LOAD ? thread_load(th) : 1;
		uint32_t relax = e->unit == MOVE_LOAD ? e->dst->failed[e->level] : 0;

		if (!can_move(e, src, th) || weight >> (relax < 63 ? relax : 63) > e->imbalance) {
			TAILQ_REMOVE(&src->threads, th, on_cpu);
			TAILQ_INSERT_HEAD(&src->threads, th, on_cpu);
			continue;
		}
		move(e, src, th);
		moved++;
		if (e->idle == NEWLY_IDLE || weight >= e->imbalance)
			break;
		e->imbalance -= weight;
	}
	return moved;
}

/* The running thread is pushed off its CPU. */
static bool push(struct env *e, struct rq *src)
{
	uint32_t *failed = &e->dst->failed[e->level];

	if (*failed <= CACHE_NICE_TRIES + 2 || !src->curr || !may_run_on(src->curr, e->dst->cpu) ||
	    src->curr->move_to >= 0)
		return false;
	src->curr->move_to = (int32_t)e->dst->cpu;
	resched_curr(src, e->by);
	*failed = 0;
	return true;
}

/* A ms for each CPU of the domain. */
static cycles_t least_interval(const struct sched *s, uint32_t level)
{
	return sched_cycles(s, domain_size(s, level) * 1000000ull);
}

/* At the machine's level one CPU looks for its cache's: the first idle one, or the first. */
static bool should_balance(const struct env *e)
{
	uint32_t size = group_size(e->s, e->level), first = e->dst->cpu / size * size;

	if (e->idle == NEWLY_IDLE)
		return true;
	for (uint32_t i = first; i < first + size; i++)
		if (rq_idle(&e->s->rq[i]))
			return i == e->dst->cpu;
	return e->dst->cpu == first;
}

static uint32_t load_balance(struct rq *dst, struct task *by, uint32_t level, enum idleness idle)
{
	struct sched *s = dst->s;
	struct env e = {.s = s,
			.dst = dst,
			.by = by,
			.now = task_now(by),
			.level = level,
			.idle = idle,
			.pct = machine_wide(s, level) ? 125 : 117};
	uint32_t moved = 0;
	bool balanced = true;

	memset(e.allowed, 0xff, sizeof(e.allowed));
	while (should_balance(&e)) {
		struct group busiest = {0};
		struct rq *src;

		e.imbalance = find_imbalance(&e, &busiest);
		src = e.imbalance ? find_busiest_queue(&e, &busiest) : NULL;
		if (!src || src == dst)
			break;
		e.all_pinned = true;
		if (src->nr_running > 1)
			moved = move_threads(&e, src);
		else
			e.all_pinned = src->curr && !may_run_on(src->curr, dst->cpu);
		if (!moved && e.all_pinned) {
			e.allowed[src->cpu / 64] &= ~(1ull << src->cpu % 64);
			continue;
		}
		balanced = false;
		if (moved)
			break;
		if (idle != NEWLY_IDLE)
			dst->failed[level]++;
		push(&e, src);
		break;
	}
	if (moved || balanced)
		dst->failed[level] = 0;
	if (!balanced)
		dst->interval[level] = least_interval(s, level);
	else if (idle != NEWLY_IDLE && dst->interval[level] < 2 * least_interval(s, level))
		dst->interval[level] *= 2;
	return moved;
}

/* ---- when ---- */

static cycles_t next_balance(const struct rq *rq, uint32_t level)
{
	const struct sched *s = rq->s;
	cycles_t interval = rq->interval[level], most = s->tick * s->opts.hz * s->opts.cpus / 10;

	if (rq->nr_running)
		interval = interval * BUSY_FACTOR - s->tick;
	return rq->balanced_at[level] + (interval > most && most > s->tick ? most : interval);
}

void balance_init(struct rq *rq)
{
	/* On a machine that has been up for a while they are not in step. */
	rq->balanced_at[0] = rq->cpu * rq->s->tick;
	rq->avg_idle = 2 * rq->s->migration_cost;
	for (uint32_t i = 0; i < levels(rq->s); i++)
		rq->interval[i] = least_interval(rq->s, i);
}

cycles_t balance_due(const struct rq *rq)
{
	cycles_t due = CYCLES_MAX;

	for (uint32_t i = 0; i < levels(rq->s) && !rq->s->opts.no_balance; i++)
		if (next_balance(rq, i) < due)
			due = next_balance(rq, i);
	return due;
}

static void balance_domains(struct rq *rq, struct task *by)
{
	for (uint32_t i = 0; i < levels(rq->s); i++) {
		if (task_now(by) < next_balance(rq, i))
			continue;
		(void)load_balance(rq, by, i, rq_idle(rq) ? IDLE : BUSY);
		rq->balanced_at[i] = task_now(by);
	}
}

/* _nohz_idle_balance(): idle CPUs have no tick, so that others' look for them. */
static void balance_idle_cpus(struct rq *rq, struct task *by)
{
	struct sched *s = rq->s;
	cycles_t now = task_now(by), next = CYCLES_MAX;

	for (uint32_t k = 1; k < s->opts.cpus && s->n_idle; k++) {
		struct rq *idle = &s->rq[(rq->cpu + k) % s->opts.cpus];

		if (!rq_idle(idle))
			continue;
		if (balance_due(idle) <= now)
			balance_domains(idle, by);
		if (rq_idle(idle) && balance_due(idle) < next)
			next = balance_due(idle);
	}
	s->next_nohz = next == CYCLES_MAX ? now + s->tick : next;
}

void balance_tick(struct rq *rq, struct task *by)
{
	struct sched *s = rq->s;

	if (s->opts.no_balance || !levels(s))
		return;
	balance_domains(rq, by);
	if (s->n_idle && task_now(by) >= s->next_nohz)
		balance_idle_cpus(rq, by);
}

void balance_newidle(struct rq *rq, struct task *by)
{
	struct sched *s = rq->s;

	if (s->opts.no_balance || !s->overloaded ||
	    (!s->opts.eager_newidle && rq->avg_idle < s->migration_cost))
		return;
	for (uint32_t i = 0; i < levels(s); i++)
		if (load_balance(rq, by, i, NEWLY_IDLE))
			return;
}

bool balance_away(struct sched_thread *th)
{
	struct rq *rq = sched_rq(th), *dst = &th->s->rq[th->move_to];
	struct task *t = th->task;

	th->move_to = -1;
	if (dst == rq || !may_run_on(th, dst->cpu))
		return false;
	dequeue_thread(rq, th, false, task_now(t));
	put_prev(rq);
	th->moves++;
	th->stats.migrations++;
	enqueue_thread(dst, th, ENQUEUE_MIGRATED, task_now(t));
	if (rq_idle(dst)) {
		start_idle(dst, t, task_now(t) + th->s->ipi);
	} else {
		if (wakeup_preempts(dst, th, task_now(t)))
			resched_curr(dst, t);
		update_tick(dst, t);
	}
	return true;
}
