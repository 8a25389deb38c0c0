// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/sim/task.h"

/* Messages between tasks, and the work that they interrupt. */

static bool later(const struct task_message *a, const struct task_message *b)
{
	if (a->arrival != b->arrival)
		return a->arrival > b->arrival;
	if (a->from != b->from)
		return a->from->order > b->from->order;
	return a->seq > b->seq;
}

void task_post(struct task *from, struct task *to, cycles_t arrival, uint32_t kind, uint64_t arg,
	       void *ptr)
{
	struct task_message m = {arrival, from, from->sent++, kind, arg, ptr};
	struct inbox *in = &to->inbox;
	struct sim *s = to->sim;
	uint32_t i;

	if (to != from)
		task_assert_first(from, "another task's messages");
	if (to->state == TASK_DONE)
		return;
	if (in->n == in->cap) {
		uint32_t cap = in->cap ? in->cap * 2 : 4;
		struct task_message *p = realloc(in->msg, cap * sizeof(*p));

		if (!p) {
			sim_fail(s, KVMSIM_ENOMEM);
			return;
		}
		in->msg = p;
		in->cap = cap;
	}
	for (i = in->n; i && later(&m, &in->msg[i - 1]); i--)
		;
	memmove(&in->msg[i + 1], &in->msg[i], (in->n - i) * sizeof(*in->msg));
	in->msg[i] = m;
	in->n++;
	to->hot.message = in->msg[in->n - 1].arrival;
	if (to->state == TASK_WORKING && arrival < evq_key(&s->queue, to->id).time)
		sim_move_event(s, to, arrival < to->hot.now ? to->hot.now : arrival);
}

static void take(struct task *t, uint32_t i, struct task_message *m)
{
	struct inbox *in = &t->inbox;

	*m = in->msg[i];
	in->n--;
	memmove(&in->msg[i], &in->msg[i + 1], (in->n - i) * sizeof(*in->msg));
	t->hot.message = in->n ? in->msg[in->n - 1].arrival : CYCLES_MAX;
}

bool task_next_message(struct task *t, struct task_message *m)
{
	if (!task_message_due(t) || t->sim->canceled)
		return false;
	take(t, t->inbox.n - 1, m);
	return true;
}

bool task_take_message(struct task *t, uint32_t kind, struct task_message *m)
{
	for (uint32_t i = t->inbox.n; i-- && !t->sim->canceled;) {
		if (t->inbox.msg[i].kind == kind) {
			take(t, i, m);
			return true;
		}
	}
	return false;
}

int charge_interruptible(struct task *t, uint16_t count, uint64_t n, uint64_t *done)
{
	struct sim *s = t->sim;
	uint64_t price = t->hot.price[count];
	unsigned __int128 cost = (unsigned __int128)n * price + t->hot.remainder;
	cycles_t from = t->hot.now, end = from + (cycles_t)(cost >> 16), until = end;

	*done = 0;
	if (s->canceled)
		return KVMSIM_ECANCELED;
	if (task_message_due(t))
		return 0;
	if (cost >> 16 >= CYCLES_MAX - from) {
		task_clock_overflow(t);
		return KVMSIM_EINVAL;
	}
	if (end != from && end >= task_horizon(t)) {
		/* Somebody may yet send a message that arrives before the end. */
		t->state = TASK_WORKING;
		if (t->hot.message < until)
			until = t->hot.message;
		evq_set(&s->queue, t->id, (struct evq_key){until, t->order});
		sim_yield(s, t);
		t->state = TASK_READY;
		if (s->canceled)
			return KVMSIM_ECANCELED;
		until = evq_key(&s->queue, t->id).time;
		if (until < end) {
			/* The least k with remainder + k * price >= (until - from) << 16. */
			cost = ((unsigned __int128)(until - from) << 16) - t->hot.remainder;
			n = (uint64_t)((cost + price - 1) / price);
		}
	}
	charge(t, count, n);
	*done = n;
	return 0;
}
