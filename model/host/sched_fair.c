// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/host/sched_priv.h"

/* sched_prio_to_weight[]: each nice level is worth a tenth of the CPU. */
static const uint32_t prio_to_weight[40] = {88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705,
					    14949, 11916, 9548,	 7620,	6100,  4904,  3906,  3121,
					    2501,  1991,  1586,	 1277,	1024,  820,   655,   526,
					    423,   335,	  272,	 215,	172,   137,   110,   87,
					    70,	   56,	  45,	 36,	29,    23,    18,    15};

uint64_t nice_weight(int nice)
{
	return prio_to_weight[nice + 20];
}

uint64_t calc_delta(uint64_t delta, uint64_t weight)
{
	if (weight == NICE_0_LOAD)
		return delta;
	return (uint64_t)((unsigned __int128)delta * NICE_0_LOAD / weight);
}

static void update_min_vruntime(struct cfs_rq *q)
{
	const struct sched_entity *first = queue_first(q), *curr = q->curr;
	int64_t v = q->min_vruntime;

	if (curr && curr->on_rq)
		v = first && first->vruntime < curr->vruntime ? first->vruntime : curr->vruntime;
	else if (first)
		v = first->vruntime;
	if (v > q->min_vruntime)
		q->min_vruntime = v;
}

void update_curr(struct rq *rq, cycles_t now)
{
	if (now > rq->s->clock)
		rq->s->clock = now;
	if (!rq->curr)
		return;
	for (struct sched_entity *se = &rq->curr->se; se; se = se->parent) {
		cycles_t delta;

		if (se->queue->curr != se || now <= se->exec_start)
			continue;
		delta = now - se->exec_start;
		se->exec_start = now;
		se->sum_exec += delta;
		se->vruntime += (int64_t)calc_delta(delta, se->weight);
		update_min_vruntime(se->queue);
	}
}

/* What the entity should get of a period in which everybody has a turn; features ALT_PERIOD and
 * BASE_SLICE. */
static cycles_t sched_slice(const struct sched_entity *se)
{
	const struct rq *rq = se->queue->rq;
	const struct sched *s = rq->s;
	uint64_t nr = rq->nr_running + !se->on_rq;
	cycles_t slice = nr > s->nr_latency ? nr * s->min_granularity : s->latency;

	for (; se; se = se->parent) {
		uint64_t load = se->queue->load + (se->on_rq ? 0 : se->weight);

		slice = (cycles_t)((unsigned __int128)slice * se->weight / load);
	}
	return slice > s->min_granularity ? slice : s->min_granularity;
}

/* Where it joins: a new one after a slice, so that forking gains nothing; a sleeper not further
 * back than half a latency, so that it gains something, though not its whole sleep. */
static void place(struct cfs_rq *q, struct sched_entity *se, bool initial)
{
	const struct sched *s = q->rq->s;
	int64_t v = q->min_vruntime;

	if (initial)
		v += (int64_t)calc_delta(sched_slice(se), se->weight);
	else
		v -= (int64_t)(s->opts.no_gentle_sleepers ? s->latency : s->latency / 2);
	if (initial || v > se->vruntime)
		se->vruntime = v;
}

static void account(struct cfs_rq *q, const struct sched_entity *se, bool in)
{
	q->load += in ? se->weight : -se->weight;
	q->nr_running += in ? 1u : -1u;
	if (q->group)
		q->group->load += in ? se->weight : -se->weight;
}

void enqueue_thread(struct rq *rq, struct sched_thread *th, enum enqueue how, cycles_t now)
{
	struct sched_entity *se = &th->se;
	const struct cfs_rq *was = se->queue;

	update_curr(rq, now);
	set_queue(th, rq);
	if (how == ENQUEUE_MIGRATED)
		se->vruntime += se->queue->min_vruntime;
	else if (how == ENQUEUE_WAKEUP && was != se->queue)
		se->vruntime += se->queue->min_vruntime - was->min_vruntime;
	for (bool first = true; se; se = se->parent, first = false) {
		struct cfs_rq *q = se->queue;

		if (se->own)
			reweight_group(se);
		if (se->on_rq)
			continue;
		if (!first || how != ENQUEUE_MIGRATED)
			place(q, se, first && how == ENQUEUE_NEW);
		account(q, se, true);
		se->on_rq = true;
		if (q->curr != se)
			queue_insert(q, se);
	}
	th->cpu = rq->cpu;
	th->state = SCHED_QUEUED;
	th->queued_at = now;
	TAILQ_INSERT_HEAD(&rq->threads, th, on_cpu);
	if (++rq->nr_running == 2)
		rq->s->overloaded++;
}

static void clear_buddies(struct sched_entity *of)
{
	struct sched_entity *se;

	for (se = of; se && se->queue->last == se; se = se->parent)
		se->queue->last = NULL;
	for (se = of; se && se->queue->next == se; se = se->parent)
		se->queue->next = NULL;
	for (se = of; se && se->queue->skip == se; se = se->parent)
		se->queue->skip = NULL;
}

void dequeue_thread(struct rq *rq, struct sched_thread *th, bool sleep, cycles_t now)
{
	bool leaves = true;

	update_curr(rq, now);
	for (struct sched_entity *se = &th->se; se; se = se->parent) {
		struct cfs_rq *q = se->queue;

		if (leaves) {
			clear_buddies(se);
			queue_remove(q, se);
			se->on_rq = false;
			account(q, se, false);
			if (!se->own && !sleep)
				se->vruntime -= q->min_vruntime;
			update_min_vruntime(q);
			leaves = !q->nr_running;
		}
		if (se->parent)
			reweight_group(se->parent);
	}
	TAILQ_REMOVE(&rq->threads, th, on_cpu);
	if (--rq->nr_running == 1)
		rq->s->overloaded--;
}

void put_prev(struct rq *rq)
{
	for (struct sched_entity *se = &rq->curr->se; se; se = se->parent) {
		se->queue->curr = NULL;
		if (se->on_rq)
			queue_insert(se->queue, se);
	}
}

/* 1: @se is so far behind @curr that it should run; 0: behind it; -1: not. */
static int wakeup_preempt_entity(const struct sched *s, const struct sched_entity *curr,
				 const struct sched_entity *se)
{
	int64_t diff = curr->vruntime - se->vruntime;

	if (diff <= 0)
		return -1;
	return diff > (int64_t)calc_delta(s->wakeup_granularity, se->weight);
}

static struct sched_entity *pick_entity(const struct cfs_rq *q)
{
	const struct sched *s = q->rq->s;
	struct sched_entity *first = queue_first(q), *se = first;

	if (q->skip && q->skip == se) {
		struct sched_entity *second = queue_second(q);

		if (second && wakeup_preempt_entity(s, second, first) < 1)
			se = second;
	}
	if (q->next && wakeup_preempt_entity(s, q->next, first) < 1)
		return q->next;
	if (q->last && wakeup_preempt_entity(s, q->last, first) < 1)
		return q->last;
	return se;
}

struct sched_thread *pick_next(struct rq *rq, cycles_t now)
{
	const struct sched_thread *prev = rq->curr;
	struct sched_entity *se = NULL;

	if (!rq->nr_running)
		return NULL;
	for (struct cfs_rq *q = &rq->cfs; q; q = se->own) {
		se = pick_entity(q);
		clear_buddies(se);
		queue_remove(q, se);
		q->curr = se;
		se->exec_start = now;
		/* Whoever goes on, itself or by another thread, is still in the same slice. */
		if (!prev || (se != &prev->se && se != prev->se.parent))
			se->prev_sum_exec = se->sum_exec;
	}
	TAILQ_REMOVE(&rq->threads, se->thread, on_cpu);
	TAILQ_INSERT_HEAD(&rq->threads, se->thread, on_cpu);
	return se->thread;
}

static bool slice_over(struct sched_entity *se)
{
	const struct sched *s = se->queue->rq->s;
	const struct sched_entity *first = queue_first(se->queue);
	cycles_t ideal = sched_slice(se), ran = se->sum_exec - se->prev_sum_exec;

	if (!first)
		return false;
	if (ran > ideal) {
		clear_buddies(se);
		return true;
	}
	return ran >= s->min_granularity && se->vruntime - first->vruntime > (int64_t)ideal;
}

bool tick_preempts(struct rq *rq)
{
	bool over = false;

	for (struct sched_entity *se = &rq->curr->se; se; se = se->parent)
		over |= slice_over(se);
	return over;
}

void set_buddy(struct sched_entity *se, enum buddy which)
{
	for (; se && se->on_rq; se = se->parent) {
		if (which == BUDDY_NEXT)
			se->queue->next = se;
		else if (which == BUDDY_LAST)
			se->queue->last = se;
		else
			se->queue->skip = se;
	}
}

bool wakeup_preempts(struct rq *rq, struct sched_thread *th, cycles_t now)
{
	struct sched_entity *curr = &rq->curr->se, *se = &th->se;
	bool crowded = curr->queue->nr_running >= rq->s->nr_latency;

	if (rq->curr->resched_at != CYCLES_MAX || rq->s->opts.no_wakeup_preemption)
		return false;
	if (curr->queue != se->queue) {
		curr = curr->parent ? curr->parent : curr;
		se = se->parent ? se->parent : se;
	}
	update_curr(rq, now);
	if (wakeup_preempt_entity(rq->s, curr, se) < 1)
		return false;
	set_buddy(se, BUDDY_NEXT);
	if (crowded && curr->on_rq && curr->thread)
		set_buddy(curr, BUDDY_LAST);
	return true;
}
