// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/sim/profile.h"
#include "model/sim/task.h"

int sim_create(const struct sim_opts *opts, struct sim **out)
{
	struct sim *s;
	int r;

	*out = NULL;
	if (!opts->vocabulary || !opts->vocabulary->n_counts || !opts->vocabulary->n_activities ||
	    !opts->vocabulary->n_waits)
		return kvmsim_err(opts->errors, KVMSIM_EINVAL, "simulation without a vocabulary");
	if (!opts->profile || !profile_unit(opts->profile))
		return kvmsim_err(opts->errors, KVMSIM_EINVAL,
				  "simulation without a profile that states its unit");
	s = calloc(1, sizeof(*s));
	if (!s)
		return KVMSIM_ENOMEM;
	s->vocabulary = opts->vocabulary;
	s->profile = opts->profile;
	s->errors = opts->errors;
	s->seed = opts->seed;
	s->replicate = opts->replicate;
	s->reference = opts->reference;
#ifdef KVMSIM_DEBUG
	s->check = true;
#endif
	r = evq_reserve(&s->queue, 1);
	if (!r)
		r = ledger_init(&s->ledger, s->vocabulary);
	if (r) {
		evq_free(&s->queue);
		free(s);
		return r;
	}
	*out = s;
	return 0;
}

void sim_destroy(struct sim *s)
{
	if (!s)
		return;
	s->canceled = true;
	for (uint32_t i = 0; i < s->n_tasks; i++) {
		struct task *t = s->task[i];

		/* Whatever it calls from now on returns at once, so it comes back only at its end.
		 */
		if (t->state != TASK_DONE) {
			s->running = t;
			t->hot.bound = 0;
			coro_switch(&s->main, &t->coro);
		}
	}
	for (uint32_t i = 0; i < s->n_tasks; i++) {
		struct task *t = s->task[i];

		free(t->wakes.when);
		free(t->inbox.msg);
		free(t->host);
		free(t->name);
		free(t);
	}
	free(s->task);
	coro_pool_free(&s->pool);
	ledger_free(&s->ledger);
	evq_free(&s->queue);
	free(s);
}

const char *sim_task_name(const struct sim *s, uint32_t id)
{
	return id < s->n_tasks ? s->task[id]->name : NULL;
}

static bool blocked_for_good(const struct sim *s, const struct task *t)
{
	return t->state == TASK_BLOCKED && !t->daemon &&
	       evq_key(&s->queue, t->id).time == EVQ_NEVER;
}

/* Names the tasks. */
int sim_deadlock(struct sim *s)
{
	char list[768] = "";
	size_t used = 0;
	uint32_t more = 0;

	for (uint32_t i = 0; i < s->n_tasks; i++) {
		const struct task *t = s->task[i];
		char one[160];
		int n;

		if (!blocked_for_good(s, t))
			continue;
		n = snprintf(one, sizeof(one), "%s%.64s (%.32s since %llu)", used ? ", " : "",
			     t->name, s->vocabulary->waits[t->wait],
			     (unsigned long long)t->hot.now);
		if (used + (size_t)n >= sizeof(list)) {
			more++;
			continue;
		}
		memcpy(list + used, one, (size_t)n + 1);
		used += (size_t)n;
	}
	if (more)
		return kvmsim_err(s->errors, KVMSIM_EDEADLOCK,
				  "deadlock: nothing is pending and these tasks are blocked: %s "
				  "and %u more",
				  list, more);
	return kvmsim_err(s->errors, KVMSIM_EDEADLOCK,
			  "deadlock: nothing is pending and these tasks are blocked: %s", list);
}

int sim_run(struct sim *s, cycles_t until)
{
	if (s->running)
		return KVMSIM_EINVAL;
	s->until = until;
	while (!s->stop && !s->error && s->waited_for) {
		struct evq_key first = evq_first(&s->queue);

		if (first.time == EVQ_NEVER) {
			s->error = sim_deadlock(s);
			break;
		}
		if (first.time > until)
			break;
		s->running = s->task[evq_slot(first)];
		s->switches++;
		coro_switch(&s->main, &s->running->coro);
		s->running = NULL;
	}
	s->stop = 0;
	return s->error;
}

void sim_stop(struct sim *s)
{
	struct task *t = s->running;

	s->stop = 1;
	if (t)
		*(volatile cycles_t *)&t->hot.bound = 0;
}

void sim_fail(struct sim *s, enum kvmsim_error err)
{
	if (!s->error)
		s->error = err;
	sim_stop(s);
}

void sim_yield(struct sim *s, struct task *t)
{
	struct evq_key first = evq_first(&s->queue);
	struct coro *next;

	s->events++;
	t->hot.bound = 0;
	if (s->stop || first.time > s->until || first.time == EVQ_NEVER) {
		next = &s->main;
	} else if (evq_slot(first) == t->id) {
		return;
	} else {
		s->running = s->task[evq_slot(first)];
		next = &s->running->coro;
	}
	s->switches++;
	coro_switch(&t->coro, next);
}

void sim_task_body(void *task)
{
	struct task *t = task;
	struct sim *s = t->sim;
	int r = t->fn(t, t->arg);

	(void)sync(t); /* fails when cancelled: it ends all the same */
	task_assert_first(t, "its own end");
	if (t->at_end)
		t->at_end(t);
	t->state = TASK_DONE;
	t->hot.bound = 0;
	evq_cancel(&s->queue, t->id);
	if (!t->daemon)
		s->waited_for--;
	if (r < 0 && r != KVMSIM_ECANCELED)
		sim_fail(s, (enum kvmsim_error)r);

	struct evq_key first = evq_first(&s->queue);

	s->events++;
	s->switches++;
	if (s->canceled || s->stop || first.time > s->until || first.time == EVQ_NEVER ||
	    !s->waited_for)
		coro_exit(&s->pool, &t->coro, &s->main);
	s->running = s->task[evq_slot(first)];
	coro_exit(&s->pool, &t->coro, &s->running->coro);
}

/* The first time at which @t may no longer run before an event at @other. */
static cycles_t bound_of(const struct task *t, struct evq_key other)
{
	return other.time + (t->order < other.order && other.time != CYCLES_MAX);
}

void sim_look(struct sim *s, struct task *t)
{
	cycles_t bound;

	s->other = evq_first_other(&s->queue, t->id);
	bound = bound_of(t, s->other);
	if (bound > s->until)
		bound = s->until == CYCLES_MAX ? CYCLES_MAX : s->until + 1;
	*(volatile cycles_t *)&t->hot.bound = bound;
	/* A signal handler may have stopped us before the store; after it, it zeroes the bound. */
	if (s->stop)
		*(volatile cycles_t *)&t->hot.bound = 0;
}

void sim_move_event(struct sim *s, struct task *t, cycles_t time)
{
	struct evq_key key = {time, t->order};
	struct task *r = s->running;

	evq_set(&s->queue, t->id, key);
	if (!r || r == t || !r->hot.bound || !evq_before(key, s->other))
		return;
	s->other = key;
	if (bound_of(r, key) < r->hot.bound)
		r->hot.bound = bound_of(r, key);
}

bool task_is_alone(const struct task *t)
{
	return evq_first_other(&t->sim->queue, t->id).time == CYCLES_MAX;
}

cycles_t sim_now(const struct sim *s)
{
	const struct task *r = s->running;
	cycles_t other;

	if (!r)
		return evq_first(&s->queue).time;
	other = evq_first_other(&s->queue, r->id).time;
	return other < r->hot.now ? other : r->hot.now;
}

const struct profile *sim_profile(const struct sim *s)
{
	return s->profile;
}

const struct ledger *sim_ledger(const struct sim *s)
{
	return &s->ledger;
}

bool sim_reference(const struct sim *s)
{
	return s->reference;
}

uint64_t sim_seed(const struct sim *s)
{
	return s->seed;
}

uint32_t sim_replicate(const struct sim *s)
{
	return s->replicate;
}

const struct kvmsim_errsink *sim_errors(const struct sim *s)
{
	return s->errors;
}

uint64_t sim_switches(const struct sim *s)
{
	return s->switches;
}

uint64_t sim_events(const struct sim *s)
{
	return s->events;
}

void sim_set_check(struct sim *s)
{
	s->check = true;
}

void sim_set_lookahead(struct sim *s, cycles_t lookahead)
{
	s->lookahead = lookahead;
}
