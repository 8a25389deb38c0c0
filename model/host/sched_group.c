// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/host/sched_priv.h"

/* Groups: a queue and an entity on each CPU, which has that CPU's part of the shares. */
#define MIN_SHARES 2u

int sched_group_create(struct sched *s, const char *name, uint64_t shares, struct sched_group **out)
{
	struct sched_group *g = calloc(1, sizeof(*g));

	*out = NULL;
	if (!g)
		return KVMSIM_ENOMEM;
	g->name = strdup(name);
	g->queue = calloc(s->opts.cpus, sizeof(*g->queue));
	g->se = calloc(s->opts.cpus, sizeof(*g->se));
	if (!g->name || !g->queue || !g->se) {
		free(g->queue);
		free(g->se);
		free((void *)g->name);
		free(g);
		return KVMSIM_ENOMEM;
	}
	g->s = s;
	g->shares = shares < MIN_SHARES ? MIN_SHARES : shares;
	for (uint32_t i = 0; i < s->opts.cpus; i++) {
		queue_init(&g->queue[i], &s->rq[i], g);
		g->se[i] = (struct sched_entity){
			.queue = &s->rq[i].cfs, .own = &g->queue[i], .weight = g->shares};
	}
	g->next = s->groups;
	s->groups = g;
	*out = g;
	return 0;
}

void set_queue(struct sched_thread *th, struct rq *rq)
{
	struct sched_group *g = th->opts.group;

	th->se.queue = g ? &g->queue[rq->cpu] : &rq->cfs;
	th->se.parent = g ? &g->se[rq->cpu] : NULL;
}

/* calc_group_shares(): as its queue's load is to the group's load on all CPUs. */
static uint64_t group_weight(const struct cfs_rq *q)
{
	const struct sched_group *g = q->group;
	uint64_t w = g->load ? g->shares * q->load / g->load : g->shares;

	return w < MIN_SHARES ? MIN_SHARES : w > g->shares ? g->shares : w;
}

void reweight_group(struct sched_entity *se)
{
	uint64_t w = group_weight(se->own);

	if (se->on_rq)
		se->queue->load += w - se->weight;
	se->weight = w;
}

uint64_t thread_load(const struct sched_thread *th)
{
	const struct sched_entity *se = &th->se;
	const struct cfs_rq *q;

	if (!th->opts.group)
		return se->weight;
	q = se->queue;
	return se->weight * group_weight(q) / (q->load ? q->load : se->weight);
}
