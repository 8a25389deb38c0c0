/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SIM_SIM_H
#define KVMSIM_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "model/sim/error.h"

/*
 * The simulator: virtual time, tasks and their total order. Knows nothing of KVM.
 *
 * A task is a stackful coroutine with a clock of its own. Its clock moves only by charge() (work,
 * priced by the profile) and by waiting; both are entered in the ledger, so that over any task
 *
 *	sum of the ledger's cycles == task_now() - the task's start time
 *
 * holds at every instant. A task may run ahead of the others as long as it touches nothing that
 * another task can see. Before it does, it calls sync(), which returns when the task is the first
 * in the total order (time, priority, task id, sequence number). Every task has at most one
 * pending event, so the event queue has one slot per task (evq.h).
 *
 * All functions marked [running] may be called only by the running task, on itself.
 */

typedef uint64_t cycles_t; /* in the profile's unit: TSC cycles, or instructions under icount */
#define CYCLES_MAX UINT64_MAX

struct sim;
struct task;
struct profile;
struct ledger;

/* The names behind the small integers that the model charges: sim/ does not know them. */
struct sim_vocabulary {
	const char *const *counts; /* n_counts names; index = the `count` of charge() */
	const char *const *activities;
	const char *const *waits; /* n_waits names; index 0 is the wait for the CPU */
	uint16_t n_counts, n_activities, n_waits;
};

struct sim_opts {
	const struct sim_vocabulary *vocabulary; /* must outlive the sim */
	const struct profile *profile;		 /* prices; must outlive the sim */
	uint64_t seed; /* with replicate and a name: every random stream */
	uint32_t replicate;
	bool reference; /* the slow mode: no run-ahead at all; results must be the same */
	const struct kvmsim_errsink *errors;
};

/* Errors: KVMSIM_ENOMEM, KVMSIM_EINVAL (no vocabulary, profile without unit). */
int sim_create(const struct sim_opts *opts, struct sim **out);

/* Cancels every task still alive (see task_fn), runs them to their end, frees all. NULL is fine. */
void sim_destroy(struct sim *sim);

/* Runs until no task is left but daemons, sim_stop() is called, or virtual time would pass @until
 * (events at @until still happen). Returns 0, KVMSIM_EDEADLOCK with a message naming the blocked
 * tasks (nothing is pending, or nothing but ticks, of which each has come round once and woken
 * nobody), KVMSIM_EINVAL from inside a task, or the first negative value that a task returned
 * (other than KVMSIM_ECANCELED) or sim_fail() was given; such an error stays. May be called again
 * to go on. */
int sim_run(struct sim *sim, cycles_t until);

/* From inside a task, between runs, or from a signal handler: sim_run() returns at the next switch
 * or sync() that has to look. Tasks stay alive. */
void sim_stop(struct sim *sim);

/* For functions that cannot return an error: as sim_stop(), and sim_run() returns @err. The first
 * one counts. The message is the caller's. */
void sim_fail(struct sim *sim, enum kvmsim_error err);

/* The time of the first event in the total order: no task can be earlier. While a task runs ahead
 * that is another task's. CYCLES_MAX when nothing is pending. */
cycles_t sim_now(const struct sim *sim);
const struct profile *sim_profile(const struct sim *sim);
const struct ledger *sim_ledger(const struct sim *sim);
bool sim_reference(const struct sim *sim);
/* Of a task that was ever created, by task_id(); NULL: there is none of that number. */
const char *sim_task_name(const struct sim *sim, uint32_t id);
uint64_t sim_seed(const struct sim *sim);
uint32_t sim_replicate(const struct sim *sim);
const struct kvmsim_errsink *sim_errors(const struct sim *sim);
/* Coroutine switches and events so far, for benches. */
uint64_t sim_switches(const struct sim *sim);
uint64_t sim_events(const struct sim *sim);

/* ---- tasks ---- */

/* A task ends by returning: 0, or a negative error. When the sim is cancelled, every blocking call
 * returns KVMSIM_ECANCELED from then on and the function must unwind and return it: a task is
 * never abandoned in the middle of its stack. */
typedef int (*task_fn)(struct task *t, void *arg);

struct task_opts {
	const char *name; /* copied */
	task_fn fn;
	void *arg;
	cycles_t start;	    /* not before sim_now() */
	int priority;	    /* lower runs first at equal times; 0 is usual */
	size_t stack_bytes; /* 0: the default of 64 KiB; a guard page is added below */
	bool daemon;	    /* serves others: sim_run() does not wait for its end */
	bool ticks;	    /* serves others at intervals: that it will be woken by the clock is no
			     * sign that anything goes on */
	/* [count], cycles << 16, of the CPU that it runs on; outlives the task. NULL: the profile's
	 */
	const uint64_t *prices;
};

/* Errors: KVMSIM_ENOMEM, KVMSIM_EINVAL. May be called from inside another task. */
int task_create(struct sim *sim, const struct task_opts *opts, struct task **out);

static inline cycles_t task_now(const struct task *t);
cycles_t task_start(const struct task *t);
struct sim *task_sim(const struct task *t);
const char *task_name(const struct task *t);
uint32_t task_id(const struct task *t); /* in order of creation from 0: the ledger's row */
bool task_canceled(const struct task *t);
/* Its function has returned. Others see that in the total order, so the task syncs at its end. */
bool task_ended(const struct task *t);
/* Calls @fn on the task, synced, when its function has returned and before it counts as ended, in
 * place of an earlier @fn: for a layer below the function that owes somebody an answer. */
void task_at_end(struct task *t, void (*fn)(struct task *t));

/* [running] Advances the clock by @n times the profile's price of @count and enters it in the
 * ledger under the current activity. Prices are fixed point: the remainder is carried per task. A
 * clock that would pass CYCLES_MAX stays, and the run fails with KVMSIM_EINVAL and a message. */
static inline void charge(struct task *t, uint16_t count, uint64_t n);

/* [running] Advances the clock by exactly @cycles, entered as @n of @count (for costs that are
 * computed rather than priced, as a cache miss's latency). */
static inline void charge_cycles(struct task *t, uint16_t count, uint64_t n, cycles_t cycles);

/* [running] charge() of up to @n units that a message can interrupt: stops at the first boundary
 * between units at or after the arrival of a message, at once when one is due. *@done is the number
 * of units charged. Runs ahead as far as task_horizon() allows; the result is the same without.
 * 0, KVMSIM_ECANCELED, or KVMSIM_EINVAL when the clock would pass CYCLES_MAX. */
int charge_interruptible(struct task *t, uint16_t count, uint64_t n, uint64_t *done);

/* [running] Returns when no other task's event comes before this task's now. 0 or
 * KVMSIM_ECANCELED. One compare when nothing is earlier. */
static inline int task_sync(struct task *t);
/* Its short name. libc declares a sync() too, hence a macro, after libc's header was read. */
#define sync(t) task_sync(t)

/* [running] Whether nothing of another task's comes before this task's now. */
bool task_is_first(const struct task *t);

/* [running] Whether no other task has anything pending, at any time: nothing can come in between as
 * long as this one wakes nobody. */
bool task_is_alone(const struct task *t);

/* [running] The caller is about to touch @what, which another task can see. With the check on
 * (sim_set_check(); always in a debug build) the run fails with KVMSIM_ECHECK, and a message that
 * names the task and @what, if another task's time may be earlier. In a debug build it is enough
 * that time has passed since the task last synced or was resumed, whether or not another's event
 * happens to lie between. A task whose moment it is may touch until its clock moves. */
static inline void task_assert_first(struct task *t, const char *what);
void sim_set_check(struct sim *sim);

/* [running] The time strictly before which this task may retire private work without sync(): the
 * first event of any other task + lookahead (only another task can send a message), or its own
 * next message if that is earlier; task_now() in reference mode. Holds until the task next blocks,
 * syncs, posts or wakes. */
cycles_t task_horizon(const struct task *t);

/* The least latency of any message that can change a running task's private state. 0 (the start
 * value): no run-ahead. Constant while tasks run. */
void sim_set_lookahead(struct sim *sim, cycles_t lookahead);

/* [running] Blocks until task_wake(), entered in the ledger as @wait. 0 or KVMSIM_ECANCELED. */
int task_block(struct task *t, uint16_t wait);

/* [running] Blocks until task_wake() or the time @until, whichever is first. Returns 1 when woken,
 * 0 when the time came, KVMSIM_ECANCELED. */
int task_block_until(struct task *t, uint16_t wait, cycles_t until);

/* [on another task] Makes a blocked task runnable at @when (not before the caller's now). Waking a
 * task that is not blocked is remembered: its next task_block() returns at once, or at @when.
 * Several wake-ups are all kept in order of @when; a block ends at the first and uses up those that
 * are due by then. So a block may end for a reason that is past: look, and block again. */
void task_wake(struct task *other, cycles_t when);

/* A message takes effect at the receiver's first op boundary at or after its arrival: the receiver
 * asks for it there. It does not end a task_block(); who wants that wakes as well. */
struct task_message {
	cycles_t arrival;
	struct task *from;
	uint64_t seq; /* of the sender; messages are ordered by (arrival, sender, seq) */
	uint32_t kind;
	uint64_t arg;
	void *ptr;
};

/* [running] Sends. @arrival is not before the sender's now + lookahead, except to itself (a timer,
 * not before its now). On lack of memory the run fails with KVMSIM_ENOMEM. */
void task_post(struct task *from, struct task *to, cycles_t arrival, uint32_t kind, uint64_t arg,
	       void *ptr);
/* [running] Whether a message is due: one compare. */
static inline bool task_message_due(const struct task *t);
/* [running] Takes the first message with arrival <= now. False: none is due, or cancelled. */
bool task_next_message(struct task *t, struct task_message *m);
/* [running] Takes the first message of that kind, even if it is still under way. */
bool task_take_message(struct task *t, uint32_t kind, struct task_message *m);

/* [running] The activity that charges are entered under. Returns the one before, to be restored:
 *	uint16_t was = activity_enter(t, ACT_PAGE_FAULT); ... activity_leave(t, was); */
uint16_t activity_enter(struct task *t, uint16_t activity);
void activity_leave(struct task *t, uint16_t was);
/* The activity that the task is in, whichever task asks. */
uint16_t task_activity(const struct task *t);

/* A place for the layer above to hang its own per-task state (the vCPU, held locks). */
void task_set_private(struct task *t, void *p);
void *task_private(const struct task *t);
/* The same for model/host; @p comes from malloc() and is freed with the task. */
void task_set_host(struct task *t, void *p);
void *task_host(const struct task *t);

#include "model/sim/task_inline.h"

#endif
