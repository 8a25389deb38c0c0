// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>

#include "model/host/sched_priv.h"

/* A binary heap of entities by virtual run time; the kernel has a red-black tree. */

void queue_init(struct cfs_rq *q, struct rq *rq, struct sched_group *g)
{
	q->rq = rq;
	q->group = g;
}

static bool before(const struct sched_entity *a, const struct sched_entity *b)
{
	return a->vruntime != b->vruntime ? a->vruntime < b->vruntime : a->seq < b->seq;
}

static void put(struct cfs_rq *q, uint32_t i, struct sched_entity *se)
{
	q->heap[i] = se;
	se->at = i;
}

static void up(struct cfs_rq *q, uint32_t i, struct sched_entity *se)
{
	for (; i > 1 && before(se, q->heap[i / 2]); i /= 2)
		put(q, i, q->heap[i / 2]);
	put(q, i, se);
}

static void down(struct cfs_rq *q, uint32_t i, struct sched_entity *se)
{
	for (uint32_t c; (c = 2 * i) <= q->n; i = c) {
		if (c < q->n && before(q->heap[c + 1], q->heap[c]))
			c++;
		if (before(se, q->heap[c]))
			break;
		put(q, i, q->heap[c]);
	}
	put(q, i, se);
}

void queue_insert(struct cfs_rq *q, struct sched_entity *se)
{
	if (q->n + 1 >= q->cap) {
		uint32_t cap = q->cap ? q->cap * 2 : 8;
		struct sched_entity **p = realloc(q->heap, cap * sizeof(struct sched_entity *));

		if (!p) {
			sim_fail(q->rq->s->sim, KVMSIM_ENOMEM);
			return;
		}
		q->heap = p;
		q->cap = cap;
	}
	se->seq = ++q->seq;
	up(q, ++q->n, se);
}

void queue_remove(struct cfs_rq *q, struct sched_entity *se)
{
	uint32_t i = se->at;
	struct sched_entity *last;

	if (!i)
		return;
	se->at = 0;
	last = q->heap[q->n--];
	if (last == se)
		return;
	if (i > 1 && before(last, q->heap[i / 2]))
		up(q, i, last);
	else
		down(q, i, last);
}

struct sched_entity *queue_first(const struct cfs_rq *q)
{
	return q->n ? q->heap[1] : NULL;
}

struct sched_entity *queue_second(const struct cfs_rq *q)
{
	if (q->n < 2)
		return NULL;
	return q->n > 2 && before(q->heap[3], q->heap[2]) ? q->heap[3] : q->heap[2];
}
