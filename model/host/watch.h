/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_HOST_WATCH_H
#define KVMSIM_HOST_WATCH_H

#include <stdint.h>

#include "model/sim/sim.h"

/*
 * What a task waited for, and who made it wait; how long it held a lock. The ledger has the sums,
 * here is the longest of each kind since the layer above last began.
 *
 * Who made it wait is, for a lock, the one of its holders that held it longest during the wait; for
 * the acknowledgement of IPIs, the task whose acknowledgement came last. Beside the task stands
 * what it was doing: its activity, and its operation, a word of the layer above (0: none), which
 * lasts over the activities within.
 */
struct lock_queue;

struct host_wait {
	cycles_t cycles;
	uint16_t wait; /* WAIT_* */
	uint16_t operation, activity;
	const struct task *by; /* NULL: there was none */
};

struct host_watch {
	uint16_t operation; /* the task's own, now */
	const char *caller; /* the function that took a lock last, where somebody watches */
	/* since host_watch_waits() */
	cycles_t waited; /* for locks and IPIs */
	struct host_wait longest;
	struct host_wait interrupt; /* the IPI received last; cycles: from its arrival until then */
	/* since host_watch_holds() */
	const struct lock_queue *lock;
	cycles_t hold[2]; /* longest exclusive hold, longest shared one */
};

/* [running] The task's, never NULL but when memory ran out. */
struct host_watch *host_watch(struct task *t);
/* [running] Waits are counted anew; holds of @lock are. */
void host_watch_waits(struct task *t);
void host_watch_holds(struct task *t, const struct lock_queue *lock);

/* ---- for model/host ---- */

/* [running] The task has waited: w->by and the rest are filled in by the waker, see below. */
void host_waited(struct task *t, const struct host_wait *w);
/* Makes @by, as it is now, the cause of @w. */
void host_blame(struct host_wait *w, struct task *by);

#endif
