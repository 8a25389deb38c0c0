/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SMP_SPIN_H
#define KVMSIM_SMP_SPIN_H

#include "model/smp/smp.h"

/*
 * Cache lines, busy waiting, and the guest's spinlocks over the lock policies.
 *
 * A line is at one CPU of the host, or at several that read it. Who changes it has to fetch it if
 * others have it, which takes the profile's line_transfer, after those who asked before. Who spins
 * reading a line gets it anew after each change, one after the other: of n who run, the one that
 * the store lets go on sees it after its turn among them (uniformly drawn), and the next who
 * changes the line waits for them all, so a hand-over between n waiters on one line costs O(n),
 * which is what queued locks avoid (S. Boyd-Wickizer et al., Non-scalable locks are dangerous,
 * 2012).
 */
#define SMP_LINE_NEW	UINT32_MAX
#define SMP_LINE_SHARED (UINT32_MAX - 1)

struct smp_line {
	uint32_t cpu;	  /* that has it; SMP_LINE_NEW: none yet; SMP_LINE_SHARED: those who read */
	uint32_t readers; /* running vCPUs that spin on it */
	cycles_t free_at; /* when it can move on */
};
void smp_line_init(struct smp_line *l);
/* [running] The line is this CPU's alone afterwards, the task is the first in the total order and
 * may change what is in it at this moment. Fetching is entered as COUNT_lock_line. 0,
 * KVMSIM_ECANCELED. */
int smp_line_store(struct smp_vcpu *v, struct smp_line *l);
/* [running] The same for an atomic operation: COUNT_lock more, before. */
int smp_line_rmw(struct smp_vcpu *v, struct smp_line *l);

/* One who spins; on the waiter's stack or in its vCPU. */
struct spinner {
	struct smp_vcpu *v;
	struct smp_line *line;
	struct spinner *next; /* the policy's */
	bool released;
	bool spinning;	  /* on a CPU, reading */
	cycles_t seen_at; /* released: when it can see that */
	cycles_t spun;	  /* in the last spin_wait() */
};
/* [running] A PAUSE loop on @line of at most @loops iterations (0: no bound) by the vCPU's own time
 * on a CPU, each COUNT_pause's price, until spin_release(). 1: released, 0: the loops are over;
 * negative. PLE exits, preemption and, with irqs on, interrupts happen inside. The released state
 * of a @s that was let go before is seen at once. Returns synced. */
int spin_wait(struct smp_vcpu *v, struct spinner *s, uint64_t loops);
/* Iterations as cycles, and back, rounded down. */
cycles_t smp_pause_cycles(const struct smp_vm *vm, uint64_t loops);
uint64_t smp_pause_loops(const struct smp_vm *vm, cycles_t cycles);
/* [running, synced] By a store to its line @s may go on: seen in its turn if it runs, when it runs
 * again otherwise. */
void spin_release(struct smp_vcpu *by, struct spinner *s);
/* [running, synced] All of the list from @first by one store to their line: each in a turn of its
 * own. */
void spin_release_all(struct smp_vcpu *by, struct spinner *first);

/* ---- spinlocks ---- */

/* Who a lock is, for statistics and reports: lock and caller as `perf lock contention` names them.
 */
struct smp_lock_class {
	const char *name, *caller;
};
struct smp_lock_stats {
	uint64_t acquired, contended, slowpath, kicks; /* slowpath: halted */
	cycles_t wait, longest_wait, hold, longest_hold;
};
struct smp_lock {
	const struct smp_lock_class *class;
	struct smp_vm *vm;
	struct smp_line line;
	void *state; /* the policy's */
	struct smp_vcpu *owner;
	cycles_t since;
	uint32_t last_cpu;	       /* + 1 of the host's, that it was held at last; 0: none */
	bool foreign;		       /* what it guards is in another CPU's cache: see refill.c */
	uint64_t arrivals, departures; /* of the check that locks are FIFO */
	struct smp_lock_stats stats;
};
/* KVMSIM_EINVAL: the VM has no lock policy; KVMSIM_ENOMEM. */
int smp_lock_init(struct smp_vm *vm, struct smp_lock *l, const struct smp_lock_class *class);
/* After the run, before smp_vm_destroy(). */
void smp_lock_free(struct smp_lock *l);
/* [running] Spinlocks as the policy has them. Checked always: mutual exclusion, release by the
 * owner (the run ends with KVMSIM_ECHECK and a message); of who smp_lock_arrived() that they get it
 * in that order. Preemption is off while they are held. */
int smp_spin_lock(struct smp_vcpu *v, struct smp_lock *l);
int smp_spin_trylock(struct smp_vcpu *v, struct smp_lock *l); /* 1, 0, or negative */
int smp_spin_unlock(struct smp_vcpu *v, struct smp_lock *l);
/* [running] With irqs off meanwhile: *@flags is for the unlock. */
int smp_spin_lock_irqsave(struct smp_vcpu *v, struct smp_lock *l, bool *flags);
int smp_spin_unlock_irqrestore(struct smp_vcpu *v, struct smp_lock *l, bool flags);

/* [running, synced] Of policies that are fair: @v, in its .lock, has its place in the order. */
void smp_lock_arrived(struct smp_vcpu *v, struct smp_lock *l);

/* Reader-writer spinlocks: qrwlock over the policy's lock (3.16 on). */
struct smp_rwlock {
	struct smp_lock wait; /* of those that queue */
	struct smp_line line;
	uint32_t readers;
	struct smp_vcpu *writer;
	bool writer_waits;
	struct spinner *head; /* of the queue, spinning: for no writer, or for nobody */
	cycles_t since;	      /* of the writer's hold, or of that of the first of the readers */
	struct smp_lock_stats stats[2]; /* exclusive, shared */
};
int smp_rwlock_init(struct smp_vm *vm, struct smp_rwlock *l, const struct smp_lock_class *class);
void smp_rwlock_free(struct smp_rwlock *l);
int smp_read_lock(struct smp_vcpu *v, struct smp_rwlock *l);
int smp_read_unlock(struct smp_vcpu *v, struct smp_rwlock *l);
int smp_write_lock(struct smp_vcpu *v, struct smp_rwlock *l);
int smp_write_unlock(struct smp_vcpu *v, struct smp_rwlock *l);

#endif
