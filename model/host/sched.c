// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/host/sched.h"

#include <stdlib.h>
#include <string.h>

#include "model/host/sched_priv.h"
#include "model/sim/profile.h"

/* Machines and threads; what is told of them. */

static int check(const struct sim *sim, const struct sched_opts *o)
{
	const struct kvmsim_errsink *errors = sim_errors(sim);

	if (!o->cpus || o->cpus > SCHED_MAX_CPUS)
		return kvmsim_err(errors, KVMSIM_EINVAL, "a host has 1 to %u CPUs, not %u",
				  SCHED_MAX_CPUS, o->cpus);
	if (o->cpus_per_llc && o->cpus % o->cpus_per_llc)
		return kvmsim_err(errors, KVMSIM_EINVAL,
				  "%u CPUs are no multiple of the %u that share a cache", o->cpus,
				  o->cpus_per_llc);
	if (o->hz > 100000)
		return kvmsim_err(errors, KVMSIM_EINVAL, "a tick of %u Hz is above 100000", o->hz);
	return 0;
}

static void set_tunables(struct sched *s)
{
	struct sched_opts *o = &s->opts;
	uint64_t cpus = o->cpus < 8 ? o->cpus : 8, scale = 1;

	while (cpus >>= 1)
		scale++;
	if (!o->latency_ns)
		o->latency_ns = 6000000 * scale;
	if (!o->min_granularity_ns)
		o->min_granularity_ns = 750000 * scale;
	if (!o->wakeup_granularity_ns)
		o->wakeup_granularity_ns = 1000000 * scale;
	if (!o->migration_cost_ns)
		o->migration_cost_ns = 500000;
	if (!o->hz)
		o->hz = 1000;
	if (!o->cpus_per_llc)
		o->cpus_per_llc = o->cpus;
	s->latency = sched_cycles(s, o->latency_ns);
	s->min_granularity = sched_cycles(s, o->min_granularity_ns);
	s->wakeup_granularity = sched_cycles(s, o->wakeup_granularity_ns);
	s->migration_cost = sched_cycles(s, o->migration_cost_ns);
	s->nr_latency =
		(uint32_t)((o->latency_ns + o->min_granularity_ns - 1) / o->min_granularity_ns);
	s->tick = sched_cycles(s, 1000000000u / o->hz);
	if (!s->tick)
		s->tick = 1;
	s->n_llc = o->cpus / o->cpus_per_llc;
}

int sched_create(struct sim *sim, const struct sched_opts *opts, struct sched **out)
{
	struct sched *s;
	int r = check(sim, opts);

	*out = NULL;
	if (r)
		return r;
	s = calloc(1, sizeof(*s) + opts->cpus * sizeof(s->rq[0]));
	if (!s)
		return KVMSIM_ENOMEM;
	s->sim = sim;
	s->opts = *opts;
	s->hz = profile_hz(sim_profile(sim));
	s->ipi = profile_param(sim_profile(sim), "ipi_latency");
	s->n_idle = opts->cpus;
	set_tunables(s);
	ipi_init(sim);
	for (uint32_t i = 0; i < opts->cpus; i++) {
		struct rq *rq = &s->rq[i];

		rq->s = s;
		rq->cpu = i;
		rq->tick_at = CYCLES_MAX;
		queue_init(&rq->cfs, rq, NULL);
		TAILQ_INIT(&rq->threads);
		balance_init(rq);
		s->idle[i / 64] |= 1ull << i % 64;
	}
	*out = s;
	return 0;
}

void sched_destroy(struct sched *s)
{
	struct sched_thread *th;
	struct sched_group *g;

	if (!s)
		return;
	while ((th = s->threads)) {
		s->threads = th->next;
		free((void *)th->opts.name);
		free(th);
	}
	while ((g = s->groups)) {
		s->groups = g->next;
		for (uint32_t i = 0; i < s->opts.cpus; i++)
			free(g->queue[i].heap);
		free(g->queue);
		free(g->se);
		free((void *)g->name);
		free(g);
	}
	for (uint32_t i = 0; i < s->opts.cpus; i++)
		free(s->rq[i].cfs.heap);
	free(s);
}

uint32_t sched_cpus(const struct sched *s)
{
	return s->opts.cpus;
}

cycles_t sched_cycles(const struct sched *s, uint64_t ns)
{
	return s->hz ? (cycles_t)((unsigned __int128)ns * s->hz / 1000000000u) : ns;
}

uint64_t sched_ns(const struct sched *s, cycles_t cycles)
{
	return s->hz ? (uint64_t)((unsigned __int128)cycles * 1000000000u / s->hz) : cycles;
}

int sched_thread_create(struct sched *s, const struct sched_thread_opts *opts,
			struct sched_thread **out)
{
	const struct kvmsim_errsink *errors = sim_errors(s->sim);
	struct sched_thread *th;

	*out = NULL;
	if (opts->nice < -20 || opts->nice > 19)
		return kvmsim_err(errors, KVMSIM_EINVAL, "thread %s: nice is -20 to 19, not %d",
				  opts->name, opts->nice);
	if (opts->pin >= 0 && (uint32_t)opts->pin >= s->opts.cpus)
		return kvmsim_err(errors, KVMSIM_EINVAL,
				  "thread %s: there is no CPU %d on a host with %u", opts->name,
				  opts->pin, s->opts.cpus);
	th = calloc(1, sizeof(*th));
	if (!th)
		return KVMSIM_ENOMEM;
	th->opts = *opts;
	th->opts.name = strdup(opts->name);
	if (!th->opts.name) {
		free(th);
		return KVMSIM_ENOMEM;
	}
	th->s = s;
	th->se.thread = th;
	th->se.weight = nice_weight(opts->nice);
	th->resched_at = th->notify_at = th->armed_at = CYCLES_MAX;
	th->move_to = -1;
	th->next = s->threads;
	s->threads = th;
	*out = th;
	return 0;
}

void *sched_private(const struct sched_thread *th)
{
	return th->opts.private;
}

const char *sched_name(const struct sched_thread *th)
{
	return th->opts.name;
}

struct task *sched_task(const struct sched_thread *th)
{
	return th->task;
}

/* Now, or when nothing is left to happen: when something last did. */
static cycles_t now_of(const struct sched *s)
{
	cycles_t now = sim_now(s->sim);

	return now == CYCLES_MAX ? s->clock : now;
}

struct sched_thread_stats sched_thread_stats(const struct sched_thread *th)
{
	struct sched_thread_stats st = th->stats;
	cycles_t now = now_of(th->s);

	st.exec = th->se.sum_exec;
	if (th->state == SCHED_RUNNING && now > th->se.exec_start)
		st.exec += now - th->se.exec_start;
	if (th->state == SCHED_QUEUED && now > th->queued_at)
		st.run_delay += now - th->queued_at;
	return st;
}

bool sched_on_cpu(const struct sched_thread *th)
{
	return th->state == SCHED_RUNNING;
}

bool sched_runnable(const struct sched_thread *th)
{
	return th->state == SCHED_RUNNING || th->state == SCHED_QUEUED;
}

uint32_t sched_cpu(const struct sched_thread *th)
{
	return th->cpu;
}

uint32_t sched_nr_running(const struct sched *s, uint32_t cpu)
{
	return s->rq[cpu].nr_running;
}

uint64_t sched_idle_cycles(const struct sched *s, uint32_t cpu)
{
	const struct rq *rq = &s->rq[cpu];
	cycles_t now = now_of(s);

	return rq->idle + (rq_idle(rq) && now > rq->idle_since ? now - rq->idle_since : 0);
}

uint64_t *sched_cpu_fetched(struct sched *s, uint32_t cpu)
{
	return &s->rq[cpu].fetched;
}
