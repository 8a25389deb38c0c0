/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_HOST_LOCK_H
#define KVMSIM_HOST_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "model/sim/sim.h"

/* What the kernel makes of it, as perf lock names them. */
enum lock_kind { LOCK_SPINLOCK, LOCK_RWLOCK, LOCK_MUTEX, LOCK_RWSEM };

/*
 * The host's locks: a task that has to wait blocks in virtual time, entered as WAIT_lock, and the
 * lock is handed over in order of arrival, as the kernel's queued spinlock, queued rwlock and
 * mutex (with its hand-off) do. Each acquisition charges COUNT_lock, which stands for taking and
 * releasing, once the lock is held.
 *
 * A reader-writer lock is fair: a reader that comes while anyone waits, waits behind; when a reader
 * at the head gets the lock, so do the readers right behind it.
 *
 * What contention costs is the profile's line_transfer (0: nothing), the time in which the line of
 * the lock's word comes from another core:
 *
 *	- The line serves one core after the other. A reader's lock and unlock and a free lock's
 *	  taking are read-modify-writes: each waits until the line is at its core, entered as
 *	  COUNT_lock_line. Threads of one core share the line while it is there.
 *	- A writer that waited gets the lock line_transfer * log2(n) after its release, n CPUs
 *	  competing: the holder, the heads of the queue and who comes all take lines of the lock
 *	  from each other in a hand-over, and the more the more of them there are. The law is an
 *	  observation (analysis/evidence), not a derivation; it is 1 transfer with one waiter. Where
 *	  who waits sleeps until the line changes (Arm's WFE), the profile's queue_transfers stand
 *	  in its place: one alone waits at the lock's word, 1 transfer; of more all but the first
 *	  wait in a queue, at a line of their own each.
 *
 * All calls sync() first: the lock word is visible to others. Locks are taken in the order that
 * their classes declare: a lock whose rank is not above that of every lock already held is an
 * error, and so are a second acquisition and a release by a task that does not hold it. Such a
 * call changes nothing, tells the sink, and the run ends with KVMSIM_ECHECK.
 */
struct lock_class {
	const char *name; /* "mmu_lock" */
	uint32_t rank;	  /* outermost first; from 1. 0: taken under anything, takes part in no
			   * order */
	enum lock_kind kind;
};

struct lock_stats {
	uint64_t acquired, contended; /* contended: had to wait */
	cycles_t wait, longest_wait, longest_hold;
};

struct lock_waiter;

/* For whoever wants to know of each wait for a lock and each hold of it, when it is over. */
struct lock_spell {
	const struct lock_class *class;
	const struct task *task;
	bool held, shared; /* held: else it was waited for */
	cycles_t start, cycles;
	const struct task *by; /* of a wait: who held it longest meanwhile; NULL: nobody */
	const char *caller;    /* of a wait: host_watch's; may be NULL */
};
struct lock_watch {
	void (*spell)(void *ctx, const struct lock_spell *s);
	void *ctx;
};

/* What the three have in common. Only lock.c looks inside. */
struct lock_queue {
	const struct lock_class *class;
	struct lock_waiter *head, **tail;
	const struct task *writer;
	uint32_t readers, waiting;
	uint32_t line_core; /* that the lock's line is at, or comes to at line_at */
	cycles_t line_at;
	struct lock_stats stats[2];	/* exclusive, shared */
	const struct lock_watch *watch; /* may be NULL */
};

struct spinlock {
	struct lock_queue q;
};
struct rwlock {
	struct lock_queue q;
};
struct mutex {
	struct lock_queue q;
};

/* @class must outlive the lock. No lock may be freed while it is held or waited for. */
void spin_lock_init(struct spinlock *l, const struct lock_class *class);
void rwlock_init(struct rwlock *l, const struct lock_class *class);
void mutex_init(struct mutex *l, const struct lock_class *class);
/* From now on @watch, which must outlive the lock, is told of the lock that @q is the queue of. */
void lock_watch(struct lock_queue *q, const struct lock_watch *watch);
bool lock_is_watched(const struct lock_queue *q);

/* [running] 0 with the lock held. Without it: KVMSIM_ECANCELED, KVMSIM_ECHECK, KVMSIM_ENOMEM. */
int spin_lock(struct task *t, struct spinlock *l);
int read_lock(struct task *t, struct rwlock *l);
int write_lock(struct task *t, struct rwlock *l);
int mutex_lock(struct task *t, struct mutex *l);

/* [running] 1 with the lock held, 0 when it was not free at once, or an error as above. A failed
 * try counts neither as acquired nor as contended. */
int spin_trylock(struct task *t, struct spinlock *l);
int read_trylock(struct task *t, struct rwlock *l);
int write_trylock(struct task *t, struct rwlock *l);
int mutex_trylock(struct task *t, struct mutex *l);

/* [running] Also while the task unwinds from a cancellation. */
void spin_unlock(struct task *t, struct spinlock *l);
void read_unlock(struct task *t, struct rwlock *l);
void write_unlock(struct task *t, struct rwlock *l);
void mutex_unlock(struct task *t, struct mutex *l);

/* [running, synced] Whether anyone waits, which is when cond_resched_rwlock_write() lets go. */
bool spin_is_contended(const struct spinlock *l);
bool rwlock_is_contended(const struct rwlock *l);
bool mutex_is_contended(const struct mutex *l);

/* Whether the task holds the lock, in either mode: for lockdep_assert_held(). */
bool spin_is_held(const struct task *t, const struct spinlock *l);
bool rwlock_is_held(const struct task *t, const struct rwlock *l);
bool mutex_is_held(const struct task *t, const struct mutex *l);

struct lock_stats spin_lock_stats(const struct spinlock *l);
struct lock_stats read_lock_stats(const struct rwlock *l);
struct lock_stats write_lock_stats(const struct rwlock *l);
struct lock_stats mutex_lock_stats(const struct mutex *l);
/* The statistics of the lock that @q is the queue of start anew. */
void lock_stats_reset(struct lock_queue *q);

#endif
