/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_HOST_HOST_H
#define KVMSIM_HOST_HOST_H

#include <stdint.h>

#include "model/host/watch.h"
#include "model/sim/sim.h"

/* What the files of model/host keep with a task, behind task_host(). For them only. */
#define HOST_MAX_HELD 8

struct lock_queue;

/* A core, of one task or of two that share it: the lock's line that it asked for last. */
struct host_core {
	uint32_t id;
	const struct lock_queue *line;
	cycles_t line_at;
};

struct held_lock {
	struct lock_queue *lock;
	cycles_t since;
};

struct host_task {
	uint32_t n_held;
	struct held_lock held[HOST_MAX_HELD]; /* in the order of taking */
	cycles_t line_transfer;		      /* the profile's */
	cycles_t queue_transfers;	      /* the same */
	struct host_core *core;		      /* its own one unless it was placed */
	struct host_core own_core;
	struct host_watch watch;
};

/* Made at the first use; NULL when memory ran out. */
struct host_task *host_task(struct task *t);

#endif
