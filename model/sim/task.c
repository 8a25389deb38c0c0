// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/sim/profile.h"
#include "model/sim/task.h"

#define DEFAULT_STACK (64u << 10)

int task_create(struct sim *s, const struct task_opts *opts, struct task **out)
{
	struct task *t;
	uint32_t id = s->n_tasks;
	int r;

	*out = NULL;
	if (!opts->fn || !opts->name || s->canceled)
		return KVMSIM_EINVAL;
	if (opts->start == CYCLES_MAX || (s->running && opts->start < sim_now(s)))
		return kvmsim_err(s->errors, KVMSIM_EINVAL, "task %s starts in the past",
				  opts->name);
	if (s->running) /* ids are given in order of creation */
		task_assert_first(s->running, "the list of tasks");
	if (id == s->cap_tasks) {
		uint32_t cap = s->cap_tasks ? s->cap_tasks * 2 : 16;
		struct task **p = realloc(s->task, cap * sizeof(struct task *));

		if (!p)
			return KVMSIM_ENOMEM;
		s->task = p;
		s->cap_tasks = cap;
	}
	r = evq_reserve(&s->queue, id + 1);
	if (r)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return KVMSIM_ENOMEM;
	t->sim = s;
	t->id = id;
	/* Bias the sign away, so that an unsigned compare puts lower priorities first. */
	t->order = (uint64_t)((uint32_t)opts->priority ^ 0x80000000u) << 32 | id;
	t->daemon = opts->daemon;
	t->ticks = opts->ticks;
	t->turn = NO_TURN;
	t->fn = opts->fn;
	t->arg = opts->arg;
	t->start = opts->start;
	t->hot.now = opts->start;
#ifdef KVMSIM_DEBUG
	t->hot.first_at = t->hot.now;
#endif
	t->hot.message = CYCLES_MAX;
	t->hot.price = opts->prices ? opts->prices : profile_prices(s->profile);
	t->name = strdup(opts->name);
	r = t->name ? ledger_add_task(&s->ledger, id) : KVMSIM_ENOMEM;
	if (!r) {
		t->hot.row = ledger_row(&s->ledger, id, 0);
		r = t->hot.row ? coro_create(&s->pool, &t->coro,
					     opts->stack_bytes ? opts->stack_bytes : DEFAULT_STACK,
					     sim_task_body, t)
			       : KVMSIM_ENOMEM;
	}
	if (r) {
		free(t->name);
		free(t);
		return r;
	}
	s->task[id] = t;
	s->n_tasks++;
	if (!t->daemon)
		s->waited_for++;
	sim_move_event(s, t, t->start);
	*out = t;
	return 0;
}

cycles_t task_start(const struct task *t)
{
	return t->start;
}

struct sim *task_sim(const struct task *t)
{
	return t->sim;
}

const char *task_name(const struct task *t)
{
	return t->name;
}

uint32_t task_id(const struct task *t)
{
	return t->id;
}

bool task_canceled(const struct task *t)
{
	return t->sim->canceled;
}

bool task_ended(const struct task *t)
{
	return t->state == TASK_DONE;
}

void task_at_end(struct task *t, void (*fn)(struct task *t))
{
	t->at_end = fn;
}

void task_set_private(struct task *t, void *p)
{
	t->private_data = p;
}

void *task_private(const struct task *t)
{
	return t->private_data;
}

void task_set_host(struct task *t, void *p)
{
	t->host = p;
}

void *task_host(const struct task *t)
{
	return t->host;
}

uint16_t activity_enter(struct task *t, uint16_t activity)
{
	uint16_t was = t->activity;
	struct ledger_entry *row = ledger_row(&t->sim->ledger, t->id, activity);

	if (!row) {
		sim_fail(t->sim, KVMSIM_ENOMEM);
		row = t->sim->ledger.scrap;
	}
	t->activity = activity;
	t->hot.row = row;
	return was;
}

void activity_leave(struct task *t, uint16_t was)
{
	activity_enter(t, was);
}

uint16_t task_activity(const struct task *t)
{
	return t->activity;
}

int task_sync_slow(struct task *t)
{
	struct sim *s = t->sim;

	if (s->canceled)
		return KVMSIM_ECANCELED;
	sim_look(s, t);
	if (t->hot.now < t->hot.bound)
		return 0;
	evq_set(&s->queue, t->id, (struct evq_key){t->hot.now, t->order});
	sim_yield(s, t);
	return s->canceled ? KVMSIM_ECANCELED : 0;
}

bool task_is_first(const struct task *t)
{
	return !evq_before(evq_first_other(&t->sim->queue, t->id),
			   (struct evq_key){t->hot.now, t->order});
}

void task_not_first(struct task *t, const char *what)
{
	struct sim *s = t->sim;

	if (!s->check || s->canceled || s->error)
		return;
#ifndef KVMSIM_DEBUG
	/* What it has woken for this very moment comes after it. */
	if (evq_first_other(&s->queue, t->id).time >= t->hot.now)
		return;
#endif
	sim_fail(s, KVMSIM_ECHECK);
	kvmsim_err(s->errors, KVMSIM_ECHECK,
		   "task %s at %llu touches %s, but another task may come first: no sync() since "
		   "its clock moved",
		   t->name, (unsigned long long)t->hot.now, what);
}

void task_clock_overflow(struct task *t)
{
	struct sim *s = t->sim;

	if (s->error)
		return;
	sim_fail(s, KVMSIM_EINVAL);
	kvmsim_err(s->errors, KVMSIM_EINVAL,
		   "the clock of task %s, at %llu, would pass 2^64 - 1: are the prices right?",
		   t->name, (unsigned long long)t->hot.now);
}

cycles_t task_horizon(const struct task *t)
{
	struct sim *s = t->sim;
	cycles_t h;

	if (s->reference || s->canceled)
		return t->hot.now;
	if (!t->hot.bound)
		sim_look(s, s->running);
	h = s->other.time > CYCLES_MAX - s->lookahead ? CYCLES_MAX : s->other.time + s->lookahead;
	return h < t->hot.message ? h : t->hot.message;
}

/* ---- waking: @wakes is sorted with the earliest at the end ---- */

static cycles_t first_wake(const struct task *t)
{
	return t->wakes.n ? t->wakes.when[t->wakes.n - 1] : CYCLES_MAX;
}

static bool take_due_wakes(struct task *t)
{
	bool any = false;

	while (first_wake(t) <= t->hot.now) {
		t->wakes.n--;
		any = true;
	}
	return any;
}

void task_wake(struct task *t, cycles_t when)
{
	struct wake_list *w = &t->wakes;
	struct sim *s = t->sim;
	uint32_t i;

	if (t->state == TASK_DONE)
		return;
	if (s->running)
		task_assert_first(s->running, "another task's wake-ups");
	if (w->n == w->cap) {
		uint32_t cap = w->cap ? w->cap * 2 : 4;
		cycles_t *p = realloc(w->when, cap * sizeof(*p));

		if (!p) {
			sim_fail(s, KVMSIM_ENOMEM);
			return;
		}
		w->when = p;
		w->cap = cap;
	}
	for (i = w->n; i && w->when[i - 1] < when; i--)
		;
	if (i && w->when[i - 1] == when)
		return; /* the block that one of them ends would use up both */
	memmove(&w->when[i + 1], &w->when[i], (w->n - i) * sizeof(*w->when));
	w->when[i] = when;
	w->n++;
	if (t->state == TASK_BLOCKED) {
		if (when < t->hot.now)
			when = t->hot.now; /* it blocked ahead of the caller */
		if (when < evq_key(&s->queue, t->id).time)
			sim_move_event(s, t, when);
	}
}

/* Sleeps until its next turn. */
static bool between_ticks(const struct sim *s, const struct task *t)
{
	return t->ticks && evq_key(&s->queue, t->id).time != EVQ_NEVER;
}

/*
 * @t, which ticks, is about to sleep until its next turn. When all others are blocked, but for
 * those that tick, only a tick can wake them. None will when each has slept and had its turn, and
 * nobody went on meanwhile: the next turns would be like the last ones.
 */
static bool ticks_in_vain(struct sim *s, struct task *t)
{
	bool all_vain = true, blocked = false;

	t->vain = t->turn == s->resumed;
	t->turn = s->resumed;
	for (uint32_t i = 0; i < s->n_tasks; i++) {
		const struct task *o = s->task[i];

		if (o == t || o->state == TASK_DONE || o->daemon)
			continue;
		if (between_ticks(s, o))
			all_vain &= o->vain && o->turn == t->turn;
		else if (evq_key(&s->queue, o->id).time == EVQ_NEVER)
			blocked = true;
		else
			t->turn = NO_TURN; /* it goes on */
	}
	t->vain &= t->turn != NO_TURN;
	return all_vain && blocked && t->vain;
}

/* Blocks until a wake-up or the time @until. */
static int block(struct task *t, uint16_t wait, cycles_t until)
{
	struct sim *s = t->sim;
	cycles_t from = t->hot.now, wake = first_wake(t);
	bool ticks;

	if (s->canceled)
		return KVMSIM_ECANCELED;
	if (take_due_wakes(t))
		return 1;
	if (until < from)
		until = from;
	t->state = TASK_BLOCKED;
	t->wait = wait;
	ticks = t->ticks && until != CYCLES_MAX;
	if (ticks && ticks_in_vain(s, t))
		sim_fail(s, sim_deadlock(s));
	evq_set(&s->queue, t->id, (struct evq_key){wake < until ? wake : until, t->order});
	sim_yield(s, t);
	t->state = TASK_READY;
	t->vain = false;
	s->resumed += !ticks;
	if (s->canceled)
		return KVMSIM_ECANCELED;
	t->hot.now = evq_key(&s->queue, t->id).time;
#ifdef KVMSIM_DEBUG
	t->hot.first_at = t->hot.now;
#endif
	t->hot.row[s->vocabulary->n_counts + wait].n++;
	t->hot.row[s->vocabulary->n_counts + wait].cycles += t->hot.now - from;
	return take_due_wakes(t);
}

int task_block(struct task *t, uint16_t wait)
{
	int r = block(t, wait, CYCLES_MAX);

	return r < 0 ? r : 0;
}

int task_block_until(struct task *t, uint16_t wait, cycles_t until)
{
	return block(t, wait, until);
}
