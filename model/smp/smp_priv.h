/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SMP_SMP_PRIV_H
#define KVMSIM_SMP_SMP_PRIV_H

#include <sys/queue.h>

#include "model/counts.h"
#include "model/smp/thread.h"

/*
 * The insides that the files of model/smp share. Nobody else includes this.
 *
 * Others' vCPUs and threads are touched by tasks that are first in the total order. A vCPU's own
 * task reads @kick_at ahead of it: others set that no earlier than their now + ipi_latency.
 */

/* A vCPU's interrupts, as bits of its IRR; of two that are pending the higher goes first. */
enum smp_irq { IRQ_TIMER, IRQ_CALL, IRQ_RESCHEDULE };

/* A function call that @from asks of one vCPU: call_single_data. It is @locked from being queued
 * until it ran, or, if nobody waits, was taken. */
struct smp_csd {
	struct smp_csd *next;
	struct smp_vcpu *from;
	struct spinner *waiter; /* NULL: nobody spins for it */
	uint64_t insns;
	bool locked, wait;
};

/* One who spins until something about a vCPU changes: what runs on it, whether it is preempted; or
 * until something on it is done with @what. */
struct smp_watch {
	struct spinner s;
	const void *what;
	bool listed;
	LIST_ENTRY(smp_watch) link;
};

TAILQ_HEAD(guest_queue, guest_thread);
LIST_HEAD(watch_list, smp_watch);

struct smp_vcpu {
	struct smp_vm *vm;
	uint32_t id;
	struct sched_thread *th;

	/* As KVM has it. */
	bool in_guest;	   /* else the host's code runs for it, or nothing */
	bool blocking;	   /* halted and asleep, or about to be */
	bool wake_sent;	   /* and woken */
	bool polling;	   /* halted, looks for an interrupt */
	bool preempted;	   /* lost its CPU while it was runnable */
	bool reported;	   /* in its steal time's page */
	bool steal_due;	   /* got a CPU since its last entry */
	bool pv_unhalted;  /* kicked */
	bool window;	   /* interrupts are pending that it takes as soon as it can */
	bool kicked;	   /* has to exit, also where interrupts need none */
	uint32_t irr;	   /* 1 << enum smp_irq */
	cycles_t kick_at;  /* in the guest: when the host's IPI arrives; CYCLES_MAX: none */
	cycles_t timer_at; /* its next timer; CYCLES_MAX: none */
	uint64_t halt_poll_ns;

	/* As the guest has it. */
	bool irqs_on;
	bool need_resched;
	uint32_t preempt_count;
	struct smp_csd *calls;	   /* to be run here, the last one first */
	struct smp_csd *csd;	   /* [vcpus] of its calls to others; NULL: none yet */
	struct guest_thread *curr; /* the idle one where there is nothing to do */
	struct guest_thread *idle;
	struct guest_queue queue;  /* runnable, by virtual run time */
	struct guest_queue timers; /* asleep, by the time that they wake up at */
	uint32_t nr_queued;
	cycles_t min_vruntime, next_tick;
	cycles_t steal_seen; /* of the current thread's time */

	/* Its lines in the private cache of @cache_cpu: those that are not there; what the CPU had
	 * fetched when it left it; thousandths of a line touched; lines to be paid. */
	uint32_t cache_cpu;
	uint64_t missing, fetched, touched, owed;
	/* Locks held whose data another CPU had last; thousandths of a line of it; lines to be
	 * paid. */
	uint32_t foreign;
	uint64_t guarded, owed_lines;
	struct watch_list watches;
	struct smp_watch *watching; /* its own, which a wish to reschedule ends */

	/* Of busy waiting: how long its last PAUSE loop has lasted, when that paused last, and how
	 * often it had exited by then. */
	cycles_t pause_spent, pause_last;
	uint64_t pause_exits_seen;
	struct smp_spin_loop spin_loop;
	struct smp_arrival *arrival; /* at the lock that it waits for */

	void *lock_private, *ple_private;
	struct smp_vcpu_stats stats;
};

struct smp_vm {
	struct sim *sim;
	struct sched *host;
	struct smp_opts opts;
	uint32_t *pin;
	struct sched_group *group;
	void *lock_private;
	bool started, locks_made;
	uint64_t guarded;	      /* guarded_permille */
	uint64_t cache_lines, refill; /* refill 0: private caches are not looked at */
	cycles_t ipi, tick;	      /* 0: none */
	cycles_t line_transfer;
	uint64_t pause_price; /* cycles << 16 */
	struct rng turns;     /* of who spins on a line */
	uint32_t last_boosted;
	cycles_t latency, min_granularity, wakeup_granularity;
	uint64_t idle[512 / 64]; /* vCPUs that have nothing to do, nor anything coming */
	uint32_t n_idle, n_queued;
	struct guest_queue threads; /* all but the idle ones */
	struct smp_vcpu vcpu[];
};

enum guest_state { GUEST_RUNNABLE, GUEST_RUNNING, GUEST_SLEEPING, GUEST_ENDED };

struct guest_thread {
	struct smp_vm *vm;
	char *name;
	guest_fn fn;
	void *arg;
	struct task *task;
	uint32_t pin; /* UINT32_MAX: anywhere */
	enum guest_state state;
	struct smp_vcpu *v;    /* that it is on; NULL: none */
	struct smp_vcpu *home; /* that it is on, or was last, or queues at */
	bool is_idle, woken, timed, timed_out;
	const bool *sleeps_for; /* asleep: what ends it */
	cycles_t wake_at;
	cycles_t vruntime, exec_start, sum_exec, prev_sum_exec;
	cycles_t since; /* of the state */
	struct guest_thread_stats stats;
	TAILQ_ENTRY(guest_thread) link; /* in a queue, or among a vCPU's timers */
	TAILQ_ENTRY(guest_thread) all;
};

/* ---- vcpu.c ---- */

void vcpu_sched_in(struct sched_thread *th, uint32_t cpu);
void vcpu_sched_out(struct sched_thread *th, bool preempted);
/* [running] Work as smp_work(), until the vCPU was serviced; *@done of it is done. */
int vcpu_work(struct smp_vcpu *v, uint64_t n, uint64_t *done);
/* [running] What it does is to end when a kick arrives or its timer fires. */
void vcpu_arm(struct smp_vcpu *v);

/* ---- line.c ---- */

void vm_init_lines(struct smp_vm *vm);

/* ---- refill.c ---- */

void refill_init(struct smp_vm *vm);
void refill_sched_in(struct smp_vcpu *v, uint32_t cpu);
void refill_sched_out(struct smp_vcpu *v);
/* [running] Lines that it has to fetch for having run @insns instructions, some of its lines
 * missing: to be charged. */
uint64_t refill_due(struct smp_vcpu *v, uint64_t insns);
/* [running, synced] A lock was taken, is about to be given back. */
void guarded_taken(struct smp_vcpu *v, struct smp_lock *l);
void guarded_given(struct smp_vcpu *v, struct smp_lock *l);
/* [running] As refill_due(), of what locks guard. */
uint64_t guarded_due(struct smp_vcpu *v, uint64_t insns);

/* ---- irq.c ---- */

/* [running, synced] Makes the vCPU see what was made pending: wakes it, or interrupts it. @by's
 * vCPU is @from. */
void vcpu_kick(struct smp_vcpu *from, struct smp_vcpu *target);
/* [running] One interrupt: in the guest, with irqs off meanwhile. */
int irq_handle(struct smp_vcpu *v, enum smp_irq irq);

/* ---- thread.c and guest_sched.c ---- */

int guest_sched_init(struct smp_vm *vm);
void guest_sched_free(struct smp_vm *vm);
/* Makes the vCPU's idle thread, which starts the host's thread. */
int guest_idle_create(struct smp_vcpu *v);
/* Handlers of the timer's and the reschedule interrupt. */
int guest_timer_irq(struct smp_vcpu *v);
void guest_reschedule_irq(struct smp_vcpu *v);
/* The vCPU's next timer. */
cycles_t guest_next_timer(const struct smp_vcpu *v);
/* [running, synced] Those who watch the vCPU look again. */
void guest_end_watches(struct smp_vcpu *v, struct smp_vcpu *by);

#endif
