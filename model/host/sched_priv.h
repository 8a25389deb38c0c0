/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_HOST_SCHED_PRIV_H
#define KVMSIM_HOST_SCHED_PRIV_H

#include <sys/queue.h>

#include "model/host/ipi.h"
#include "model/host/sched.h"

/*
 * The insides that the files of the scheduler share. Nobody else includes this.
 *
 * All of it is seen by all tasks: it is touched only by a task that is first in the total order.
 * But for three times, @resched_at, @notify_at and the run queue's @tick_at, which the thread's own
 * task reads when it works ahead: others set them no earlier than their now + lookahead.
 */
#define NICE_0_LOAD    1024u
#define SCHED_MESSAGE  0x5c4edu /* something is due at its arrival: look */
#define SCHED_MAX_CPUS 512u
#define SCHED_LEVELS   2 /* of domains: CPUs of one last-level cache, those of the machine */

/* A thread, or a group on one CPU, as a queue sees it. */
struct sched_entity {
	int64_t vruntime;
	uint64_t weight;
	uint64_t seq; /* of the last insertion: equals are first come, first served */
	uint32_t at;  /* in the heap, from 1; 0: not there */
	bool on_rq;   /* queued, or current */
	cycles_t exec_start, sum_exec, prev_sum_exec;
	struct cfs_rq *queue;	     /* that it is on, or was last */
	struct cfs_rq *own;	     /* a group's; NULL: a thread */
	struct sched_entity *parent; /* the group's on this CPU; NULL: in the root's queue */
	struct sched_thread *thread; /* NULL: a group */
};

/* A queue ordered by virtual run time: a CPU's, or a group's on it. */
struct cfs_rq {
	struct sched_entity **heap; /* [1..n] */
	uint32_t n, cap;
	uint64_t seq;
	int64_t min_vruntime;
	uint64_t load; /* of all entities on it, the current too */
	uint32_t nr_running;
	struct sched_entity *curr, *next, *last, *skip;
	struct rq *rq;
	struct sched_group *group; /* NULL: the root's */
};

struct sched_group {
	struct sched *s;
	const char *name;
	uint64_t shares, load; /* sum of its queues' */
	struct cfs_rq *queue;  /* [cpus] */
	struct sched_entity *se;
	struct sched_group *next;
};

enum sched_state { SCHED_NEW, SCHED_RUNNING, SCHED_QUEUED, SCHED_SLEEPING, SCHED_ENDED };
/* What the task of a running thread is in: how it is reached. */
enum sched_mode { MODE_OTHER, MODE_WORK, MODE_SPIN };

struct sched_thread {
	struct sched *s;
	struct sched_thread_opts opts;
	struct sched_entity se;
	struct task *task;
	enum sched_state state;
	enum sched_mode mode;
	uint32_t cpu;
	cycles_t run_at; /* running: when it got, or gets, its CPU */
	cycles_t queued_at;
	cycles_t resched_at, notify_at; /* CYCLES_MAX: not asked to */
	cycles_t armed_at;		/* a message of ours that @armed_task has: the first */
	const struct task *armed_task;
	uint32_t moves;	      /* to other CPUs, not charged yet */
	int32_t move_to;      /* by active balancing; -1: nowhere */
	bool woken;	      /* since the last sleep */
	uint64_t wakee_flips; /* wake_wide() */
	const struct sched_thread *last_wakee;
	cycles_t flips_decayed;
	struct sched_thread_stats stats; /* exec and run_delay: up to the last change */
	TAILQ_ENTRY(sched_thread) on_cpu;
	struct sched_thread *next;
};

TAILQ_HEAD(thread_list, sched_thread);

struct rq {
	uint64_t fetched; /* sched_cpu_fetched() */
	struct sched *s;
	uint32_t cpu, nr_running;
	struct cfs_rq cfs;
	struct sched_thread *curr;  /* NULL: idle */
	struct thread_list threads; /* runnable; the last run longest ago */
	cycles_t tick_at;	    /* CYCLES_MAX: none */
	cycles_t idle_since, idle, avg_idle;
	cycles_t balanced_at[SCHED_LEVELS], interval[SCHED_LEVELS];
	uint32_t failed[SCHED_LEVELS];
};

struct sched {
	struct sim *sim;
	struct sched_opts opts;
	uint64_t hz; /* of the profile; 0: a unit is 1 ns */
	cycles_t ipi, tick, latency, min_granularity, wakeup_granularity, migration_cost, clock;
	uint32_t nr_latency;		    /* threads that a latency is enough for */
	uint32_t n_llc, overloaded, n_idle; /* CPUs with two threads or more; without any */
	uint64_t idle[SCHED_MAX_CPUS / 64];
	cycles_t next_nohz;
	struct sched_thread *threads;
	struct sched_group *groups;
	struct rq rq[];
};

static inline struct rq *sched_rq(const struct sched_thread *th)
{
	return &th->s->rq[th->cpu];
}

static inline bool rq_idle(const struct rq *rq)
{
	return !rq->curr;
}

static inline bool may_run_on(const struct sched_thread *th, uint32_t cpu)
{
	return th->opts.pin < 0 || (uint32_t)th->opts.pin == cpu;
}

static inline uint32_t llc_of(const struct sched *s, uint32_t cpu)
{
	return cpu / s->opts.cpus_per_llc;
}

/* ---- sched_queue.c: the order of entities ---- */

void queue_init(struct cfs_rq *q, struct rq *rq, struct sched_group *g);
void queue_insert(struct cfs_rq *q, struct sched_entity *se);
void queue_remove(struct cfs_rq *q, struct sched_entity *se);
/* NULL: there is none. The current entity is not in it. */
struct sched_entity *queue_first(const struct cfs_rq *q);
struct sched_entity *queue_second(const struct cfs_rq *q);

/* ---- sched_fair.c: who deserves the CPU. @now is the caller's, who is first in the order ---- */

uint64_t nice_weight(int nice);
/* @delta of a CPU's time as virtual time of weight @weight. */
uint64_t calc_delta(uint64_t delta, uint64_t weight);
/* The current thread and its group are charged for their time up to now. */
void update_curr(struct rq *rq, cycles_t now);

enum enqueue { ENQUEUE_NEW, ENQUEUE_WAKEUP, ENQUEUE_MIGRATED };
/* The thread, on no queue, goes to that of @rq. */
void enqueue_thread(struct rq *rq, struct sched_thread *th, enum enqueue how, cycles_t now);
/* The thread leaves its queue: to sleep, or else for another CPU's. It may be the current one,
 * which the caller replaces. */
void dequeue_thread(struct rq *rq, struct sched_thread *th, bool sleep, cycles_t now);
/* The current thread goes back to the queue; takes the first, which is current then. */
void put_prev(struct rq *rq);
struct sched_thread *pick_next(struct rq *rq, cycles_t now);
/* Whether the current thread has had its slice, as a tick finds; whether the newly woken @th should
 * run in its place. */
bool tick_preempts(struct rq *rq);
bool wakeup_preempts(struct rq *rq, struct sched_thread *th, cycles_t now);
/* The entity and its group: to be picked next, to be picked again, not to be picked, as far as that
 * is not too unfair. */
enum buddy { BUDDY_NEXT, BUDDY_LAST, BUDDY_SKIP };
void set_buddy(struct sched_entity *se, enum buddy which);

/* ---- sched_group.c ---- */

/* Sets the thread's queue and parent to those on @rq. */
void set_queue(struct sched_thread *th, struct rq *rq);
/* The weight of a group's entity changed with its queue's load. */
void reweight_group(struct sched_entity *se);
/* What the thread weighs on its CPU: its part of its group's weight. */
uint64_t thread_load(const struct sched_thread *th);

/* ---- sched_run.c: CPUs and their current threads ---- */

/* The current thread of @rq has to give way: at once where that is @by's own thread, else when an
 * interrupt arrives. */
void resched_curr(struct rq *rq, struct task *by);
/* Puts the first of an idle CPU's queue on it, at @when. */
void start_idle(struct rq *rq, struct task *by, cycles_t when);
/* The number of threads changed: has the CPU a tick? */
void update_tick(struct rq *rq, struct task *by);
/* [running] Until the thread has its CPU. */
int wait_for_cpu(struct sched_thread *th);
/* [running] The thread, dequeued and put back, gives its CPU to the next. */
void give_up_cpu(struct sched_thread *th, struct rq *rq);
/* charge() as the scheduler. */
void charge_sched(struct task *t, uint16_t count);

/* ---- sched_wake.c ---- */

/* Where a new thread starts. */
uint32_t select_new(struct sched *s, const struct sched_thread *th);
/* Wakes a sleeping thread; @waker may be NULL. @when: the earliest that an idle CPU starts it. */
void wake_thread(struct task *by, struct sched_thread *waker, struct sched_thread *th,
		 cycles_t when);

/* ---- sched_balance.c ---- */

void balance_init(struct rq *rq);
/* A tick of the current thread's CPU, @by its task. */
void balance_tick(struct rq *rq, struct task *by);
/* The CPU has nobody to run: pulls somebody. */
void balance_newidle(struct rq *rq, struct task *by);
/* When the CPU looks next at others. */
cycles_t balance_due(const struct rq *rq);
/* [running] The thread is taken off its CPU, to that which active balancing chose; whether it was.
 */
bool balance_away(struct sched_thread *th);

#endif
