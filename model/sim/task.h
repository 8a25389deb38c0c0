/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SIM_TASK_H
#define KVMSIM_SIM_TASK_H

#include <signal.h>

#include "model/sim/coro.h"
#include "model/sim/evq.h"
#include "model/sim/ledger.h"
#include "model/sim/sim.h"

/* The insides that sim.c, task.c, message.c and ledger.c share. Nobody else includes this. */

/* Sorted, the first at the end, where it is cheap to take. */
struct wake_list {
	cycles_t *when;
	uint32_t n, cap;
};

struct inbox {
	struct task_message *msg;
	uint32_t n, cap;
};

#define NO_TURN UINT64_MAX

enum task_state {
	TASK_READY, /* wants to run at the time of its event (or runs) */
	TASK_BLOCKED,
	TASK_WORKING, /* charge_interruptible(): its event moves to a message's arrival */
	TASK_DONE
};

struct task {
	struct task_hot hot; /* must be first: task_inline.h */
	struct sim *sim;
	struct coro coro;
	uint64_t order; /* (priority, id), see evq.h */
	uint32_t id;
	uint16_t activity;
	uint16_t wait; /* while blocked */
	enum task_state state;
	bool daemon, ticks;
	/* Ticks: sim.resumed when it last began to sleep, NO_TURN when others went on; whether they
	 * all stood still since the sleep before that one. */
	uint64_t turn;
	bool vain;
	struct wake_list wakes;
	struct inbox inbox;
	uint64_t sent;
	cycles_t start;
	task_fn fn;
	void *arg;
	void (*at_end)(struct task *t);
	void *private_data, *host;
	char *name;
};

struct ledger {
	const struct sim_vocabulary *vocabulary;
	/* [task][activity] -> n_counts + n_waits entries, or NULL when never entered. */
	struct ledger_entry **rows;
	uint32_t n_tasks, cap_tasks;
	/* Where charges go when memory ran out; the run has failed by then. */
	struct ledger_entry *scrap;
};

struct sim {
	const struct sim_vocabulary *vocabulary;
	const struct profile *profile;
	const struct kvmsim_errsink *errors;
	uint64_t seed;
	uint32_t replicate;
	bool reference, canceled, check;
	volatile sig_atomic_t stop;
	int error; /* what sim_run() has to return from now on */

	struct evq queue;
	struct task **task;
	uint32_t n_tasks, cap_tasks;
	uint32_t waited_for; /* alive and no daemon */
	struct task *running;
	struct evq_key other; /* first event of the others, while running->hot.bound != 0 */
	cycles_t until, lookahead;
	uint64_t switches, events;
	uint64_t resumed; /* blocks that ended, but for sleeps between ticks */
	struct coro main;
	struct coro_pool pool;
	struct ledger ledger;
};

/* Leaves @t, whose event is set, for the first in the order or for sim_run(). Returns at @t's
 * event, or because of the cancellation. */
void sim_yield(struct sim *s, struct task *t);
/* Says who is blocked without a time, for good. Returns KVMSIM_EDEADLOCK. */
int sim_deadlock(struct sim *s);
/* Looks up the others' first event and sets @t's bound. */
void sim_look(struct sim *s, struct task *t);
/* @t's event moves to @time; the running task's bound follows. */
void sim_move_event(struct sim *s, struct task *t, cycles_t time);
/* The body of every task's coroutine. */
void sim_task_body(void *task);

int ledger_add_task(struct ledger *l, uint32_t task);
/* The row of an activity, made on first use; NULL when memory ran out. */
struct ledger_entry *ledger_row(struct ledger *l, uint32_t task, uint16_t activity);
int ledger_init(struct ledger *l, const struct sim_vocabulary *v);
void ledger_free(struct ledger *l);

#endif
