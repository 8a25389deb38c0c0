// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/run_watch.h"

#include <stdio.h>
#include <string.h>

static void on_ioctl(void *ctx, const struct kvm_ioctl *i)
{
	struct run_watch *w = ctx;
	struct run_operation *o = &w->operations[i->operation];

	o->calls++;
	o->total += i->cycles;
	if (i->cycles > o->longest)
		o->longest = i->cycles;
	if (i->hold > o->hold)
		o->hold = i->hold;
	if (i->hold_shared > o->hold_shared)
		o->hold_shared = i->hold_shared;
}

/* Whose fault it is: an operation; another task that was in none, a vCPU; nobody's but its own. */
static unsigned cause_of(const struct kvm_stall *s)
{
	if (!s->why.by)
		return RUN_OP_own;
	return s->why.operation ? s->why.operation : RUN_OP_vcpus;
}

static void on_stall(void *ctx, const struct kvm_stall *s)
{
	struct run_watch *w = ctx;
	struct run_stall one = {.start = s->start - w->start,
				.cycles = s->cycles,
				.waited = s->waited,
				.vcpu = s->vcpu,
				.exit = s->exit,
				.cause = cause_of(s),
				.wait = s->waited ? s->why.wait : RUN_NO_WAIT,
				.activity = s->why.activity};
	struct run_operation *o = &w->operations[one.cause];

	snprintf(one.by, sizeof(one.by), "%s", s->why.by ? task_name(s->why.by) : "");
	o->stalls++;
	o->stalled += s->waited ? s->waited : s->cycles;
	if (s->cycles > o->longest_stall.cycles || o->stalls == 1)
		o->longest_stall = one;
	if (s->cycles > w->longest.cycles)
		w->longest = one;
}

void run_watch_init(struct run_watch *w)
{
	memset(w, 0, sizeof(*w));
	w->watch = (struct kvm_watch){.ioctl = on_ioctl, .stall = on_stall, .ctx = w};
}

void run_watch_start(struct run_watch *w, cycles_t start)
{
	memset(w->operations, 0, sizeof(w->operations));
	w->longest = (struct run_stall){0};
	w->start = start;
}
