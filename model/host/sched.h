/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_HOST_SCHED_H
#define KVMSIM_HOST_SCHED_H

#include <sched.h> /* libc's own sched_yield(), before the macro below */
#include <stdbool.h>
#include <stdint.h>

#include "model/sim/sim.h"

/*
 * The host's scheduler, after CFS (Linux 3.x to 6.5): a run queue per CPU ordered by virtual run
 * time, weights by nice level, groups (one per VM), wake-up preemption, slices, affinity of
 * wake-ups, load balancing at intervals and by CPUs that become idle, buddies, directed yields.
 *
 * A thread is what is put on a CPU. The task that embodies it is resumed when the thread gets one,
 * and all functions marked [running] are called by that task while its thread is on a CPU. Which
 * task that is may change: a vCPU's thread is embodied by the guest thread that the vCPU runs.
 * A task's time off the CPU while its thread is runnable is entered as WAIT_cpu.
 *
 * A running thread is not stopped in the middle of a charge: its work is done by sched_work() and
 * its busy waiting by sched_spin(), which end when the thread is to give way (sched_need_resched())
 * or when somebody called sched_notify(). The caller then does what it must first (a vCPU exits),
 * calls sched_schedule(), and goes on with what is left.
 *
 * All functions sync() first where they touch what others can see. Times are in the profile's unit,
 * tunables in ns at the profile's hz (1 unit is 1 ns where it states none). Numbers as in
 * kernel/sched/fair.c, features.h and core.c of 3.11 and 6.1.
 *
 * What differs from them: a load is that of the threads runnable now, not its average (PELT), so
 * that a group's weight on a CPU and a waker's choice do not remember who slept just before; a CPU
 * with one thread is interrupted only when its balancing is due; there are no SMT siblings.
 */
struct sched;
struct sched_group;
struct sched_thread;

struct sched_opts {
	uint32_t cpus;	       /* 1 to 512 */
	uint32_t cpus_per_llc; /* that share a last-level cache: wake-ups look for idle CPUs there;
				* 0: all; must divide cpus */
	uint32_t hz;	       /* of the tick; 0: 1000. Of CPUs with two threads or more */
	/* 0: the kernel's, scaled by 1 + log2 of the CPUs, at most 8: 6 ms, 0.75 ms, 1 ms; and
	 * 0.5 ms */
	uint64_t latency_ns, min_granularity_ns, wakeup_granularity_ns, migration_cost_ns;
	bool no_gentle_sleepers; /* who wakes up gets the whole latency, not half of it */
	bool no_wakeup_preemption;
	bool eager_newidle; /* CPUs that become idle pull threads however short their idle times
			     * are (5.17 on); else on average at least migration_cost_ns */
	bool no_balance;    /* threads stay where they are put first, but for wake-ups */
};

/* Errors: KVMSIM_EINVAL with a message, KVMSIM_ENOMEM. */
int sched_create(struct sim *sim, const struct sched_opts *opts, struct sched **out);
/* After the sim. NULL is fine. */
void sched_destroy(struct sched *s);
uint32_t sched_cpus(const struct sched *s);
/* ns as units of time, and back. */
cycles_t sched_cycles(const struct sched *s, uint64_t ns);
uint64_t sched_ns(const struct sched *s, cycles_t cycles);

/* A cgroup below the root with @shares (1024 is usual), which it has against other groups and
 * single threads, however many threads it has. Lives as long as @s. KVMSIM_ENOMEM. */
int sched_group_create(struct sched *s, const char *name, uint64_t shares,
		       struct sched_group **out);

struct sched_thread_opts {
	const char *name;
	struct sched_group *group; /* NULL: the root's */
	int nice;		   /* -20 to 19 */
	int32_t pin;		   /* the CPU that it may run on; -1: any */
	/* Preempt notifiers, called on the thread's task: it got a CPU; it loses it, and stays
	 * runnable (@preempted) or sleeps. NULL: nothing. */
	void (*sched_in)(struct sched_thread *th, uint32_t cpu);
	void (*sched_out)(struct sched_thread *th, bool preempted);
	void *private;
};
/* Lives as long as @s. KVMSIM_EINVAL, KVMSIM_ENOMEM. */
int sched_thread_create(struct sched *s, const struct sched_thread_opts *opts,
			struct sched_thread **out);
void *sched_private(const struct sched_thread *th);
const char *sched_name(const struct sched_thread *th);
/* The task that embodies the thread. */
struct task *sched_task(const struct sched_thread *th);
/* [running, or before sched_start()] From now on it is @t, which is resumed in the place of this
 * task: the CPU goes on to be its. The caller wakes @t and blocks itself by task_block(), both at
 * this moment. */
void sched_embody(struct sched_thread *th, struct task *t);

/* The thread, embodied by the running task @t, becomes runnable; returns when it has a CPU. 0,
 * KVMSIM_ECANCELED. */
int sched_start(struct sched_thread *th, struct task *t);
/* [running] It ends: the CPU goes to the next. Also while the task unwinds. */
void sched_end(struct sched_thread *th);

/* [running] charge() of up to @n units of @count; *@done of them were charged. Fewer when the
 * thread is to give way, was notified, or its task has a message that is due. 0, KVMSIM_ECANCELED,
 * KVMSIM_EINVAL. */
int sched_work(struct sched_thread *th, uint16_t count, uint64_t n, uint64_t *done);
/* [running] Keeps the CPU busy until @until, entered as @wait. 1: notified or to give way before
 * that, 0: the time came; KVMSIM_ECANCELED. */
int sched_spin(struct sched_thread *th, uint16_t wait, cycles_t until);
/* [running] Ends @th's sched_work() or sched_spin() at @when. Of another's: not before the caller's
 * now + ipi_latency unless it is sched_spin(), then not before now (a line that it looks at). Where
 * @th does neither, its next one ends at once. Of several the first counts: whoever is notified
 * looks at all that may be due, goes on, and notifies itself of what is still to come. */
void sched_notify(struct task *by, struct sched_thread *th, cycles_t when);

/* [running] TIF_NEED_RESCHED. */
bool sched_need_resched(const struct sched_thread *th);
/* [running] Gives the CPU to whoever should have it, maybe itself. Returns when it has one again.
 */
int sched_schedule(struct sched_thread *th);
/* [running] Sleeps until sched_wake(), entered as @wait up to there, as WAIT_cpu from there. A
 * wake-up that came since the last sleep ended it already. 0, KVMSIM_ECANCELED. */
int sched_sleep(struct sched_thread *th, uint16_t wait);
/* The same; 0 when the time came (a timer wakes it), 1 when woken. */
int sched_sleep_until(struct sched_thread *th, uint16_t wait, cycles_t until);
/* [running task @by, on a CPU of the host or not] try_to_wake_up(): chooses a CPU, near the waker
 * where it is a thread (@waker, may be NULL), enqueues, preempts. Charges COUNT_wake_up to @by.
 * Whether it was asleep. */
bool sched_wake(struct task *by, struct sched_thread *waker, struct sched_thread *th);

/* [running] sched_yield(): behind the others of its queue once. */
int sched_yield_thread(struct sched_thread *th);
#define sched_yield(th) sched_yield_thread(th) /* libc's is called by sanitizers */
/* [running] yield_to() of @preempt: makes @target the next buddy of its CPU, itself the one to be
 * skipped, and reschedules. 1: done (returns when it has a CPU again); 0: @target runs already,
 * sleeps, is of another group's queue or other CPU's rules; KVMSIM_ESRCH-like -1 is told by
 * @alone: both CPUs' queues have one thread. KVMSIM_ECANCELED. */
int sched_yield_to(struct sched_thread *th, struct sched_thread *target, bool preempt, bool *alone);
/* [running] The same up to the rescheduling, for one who is about to sleep. */
int sched_boost(struct sched_thread *th, struct sched_thread *target, bool preempt, bool *alone);

struct sched_thread_stats {
	cycles_t exec, run_delay; /* on a CPU; runnable without one (what a guest sees as steal) */
	uint64_t voluntary, involuntary, migrations, wakeups, wakeup_preempted, yields_to;
};
/* [synced] Up to now. */
struct sched_thread_stats sched_thread_stats(const struct sched_thread *th);
/* [synced] */
bool sched_on_cpu(const struct sched_thread *th);
bool sched_runnable(const struct sched_thread *th); /* on a CPU or waiting for one */
uint32_t sched_cpu(const struct sched_thread *th);  /* on it, or where it was last */
uint32_t sched_nr_running(const struct sched *s, uint32_t cpu);
uint64_t sched_idle_cycles(const struct sched *s, uint32_t cpu); /* [synced] up to now */

/* Lines that the CPU's private cache has fetched: a number that those keep who model it, 0 at
 * first. Only by the thread that is on the CPU. */
uint64_t *sched_cpu_fetched(struct sched *s, uint32_t cpu);

#endif
