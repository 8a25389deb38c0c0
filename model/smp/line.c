// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>

#include "model/sim/profile.h"
#include "model/smp/smp_priv.h"

/* Cache lines, and those who spin on them. */

void vm_init_lines(struct smp_vm *vm)
{
	const struct profile *p = sim_profile(vm->sim);
	char name[64];

	vm->line_transfer = profile_param(p, "line_transfer");
	vm->pause_price = profile_prices(p)[COUNT_pause];
	if (!vm->pause_price) /* a loop takes some time, also where none is priced */
		vm->pause_price = 1u << 16;
	snprintf(name, sizeof(name), "turns/%.48s", vm->opts.name);
	rng_init(&vm->turns, sim_seed(vm->sim), sim_replicate(vm->sim), name);
}

void smp_line_init(struct smp_line *l)
{
	*l = (struct smp_line){.cpu = SMP_LINE_NEW};
}

/* [running, synced] Others have it, or are to get it anew. */
static int fetch(struct smp_vcpu *v, struct smp_line *l, uint32_t cpu)
{
	struct task *t = smp_task(v);
	const cycles_t transfer = v->vm->line_transfer;
	cycles_t now = task_now(t), at = now;

	if (l->cpu != cpu && l->cpu != SMP_LINE_NEW)
		at = (l->free_at > now ? l->free_at : now) + transfer;
	l->cpu = l->readers ? SMP_LINE_SHARED : cpu;
	l->free_at = at + l->readers * transfer;
	if (at == now)
		return 0;
	charge_cycles(t, COUNT_lock_line, 1, at - now);
	return sync(t);
}

int smp_line_store(struct smp_vcpu *v, struct smp_line *l)
{
	struct task *t = smp_task(v);
	uint32_t cpu;
	int r = sync(t);

	if (r)
		return r;
	cpu = sched_cpu(v->th);
	return l->cpu == cpu && !l->readers ? 0 : fetch(v, l, cpu);
}

int smp_line_rmw(struct smp_vcpu *v, struct smp_line *l)
{
	charge(smp_task(v), COUNT_lock, 1);
	return smp_line_store(v, l);
}

cycles_t smp_pause_cycles(const struct smp_vm *vm, uint64_t loops)
{
	unsigned __int128 cycles = (unsigned __int128)loops * vm->pause_price >> 16;

	return cycles >> 63 ? CYCLES_MAX : (cycles_t)cycles;
}

uint64_t smp_pause_loops(const struct smp_vm *vm, cycles_t cycles)
{
	return (uint64_t)(((unsigned __int128)cycles << 16) / vm->pause_price);
}

/* What is left of the window that the CPU grants a PAUSE loop: it starts again with each entry, and
 * where the last loop is further back than the gap. */
static cycles_t window_left(struct smp_vcpu *v, cycles_t now)
{
	const struct ple_policy *ple = v->vm->opts.ple;
	uint64_t window;

	if (!ple || !ple->window)
		return CYCLES_MAX;
	window = ple->window(v);
	if (!window)
		return CYCLES_MAX;
	if (v->stats.exits != v->pause_exits_seen || now - v->pause_last > ple->gap(v)) {
		v->pause_exits_seen = v->stats.exits;
		v->pause_spent = 0;
	}
	v->pause_last = now;
	return v->pause_spent < window ? window - v->pause_spent : 0;
}

/* [running, synced] Spins up to @until; 1: ended earlier; synced. */
static int spin_until(struct smp_vcpu *v, struct spinner *s, cycles_t until)
{
	struct task *t = smp_task(v);
	cycles_t from = task_now(t), used;
	int r, e;

	s->spinning = true;
	s->line->readers++;
	r = sched_spin(v->th, WAIT_spin, until);
	e = r < 0 ? r : sync(t);
	s->spinning = false;
	s->line->readers--;
	used = task_now(t) - from;
	charge_cycles(t, COUNT_pause, smp_pause_loops(v->vm, used), 0);
	s->spun += used;
	v->stats.spun += used;
	v->pause_spent += used;
	v->pause_last = task_now(t);
	return e ? e : r;
}

static bool seen(const struct spinner *s, cycles_t now)
{
	return s->released && s->seen_at <= now;
}

int spin_wait(struct smp_vcpu *v, struct spinner *s, uint64_t loops)
{
	struct task *t = smp_task(v);
	const cycles_t budget = loops ? smp_pause_cycles(v->vm, loops) : CYCLES_MAX;
	int r = sync(t);

	s->spun = 0;
	while (!r) {
		cycles_t now = task_now(t), left, until;

		if (seen(s, now))
			return 1;
		left = window_left(v, now);
		if (!left) {
			r = smp_pause_exit(v);
			if (!r)
				r = sync(t);
			continue;
		}
		if (s->spun >= budget)
			return 0;
		if (left > budget - s->spun)
			left = budget - s->spun;
		until = left > CYCLES_MAX - now ? CYCLES_MAX : now + left;
		if (s->released && s->seen_at < until)
			until = s->seen_at;
		r = spin_until(v, s, until);
		if (r <= 0)
			continue;
		if (seen(s, task_now(t))) {
			vcpu_arm(v); /* what else there is may still come */
			return 1;
		}
		r = smp_service(v);
		if (!r)
			r = sync(t);
	}
	return r;
}

/* [running, synced] @turn: how many transfers after this moment it sees it. */
static void let_go(struct smp_vcpu *by, struct spinner *s, uint64_t turn)
{
	struct task *t = smp_task(by);

	s->released = true;
	s->seen_at = task_now(t);
	if (!s->spinning)
		return;
	s->seen_at += turn * by->vm->line_transfer;
	sched_notify(t, s->v->th, s->seen_at);
}

void spin_release(struct smp_vcpu *by, struct spinner *s)
{
	struct smp_vm *vm = by->vm;
	uint64_t turn = 1;

	task_assert_first(smp_task(by), "who spins on a line");
	if (s->released)
		return;
	if (s->spinning && s->line->readers > 1 && vm->line_transfer)
		turn += rng_below(&vm->turns, s->line->readers);
	let_go(by, s, turn);
}

void spin_release_all(struct smp_vcpu *by, struct spinner *first)
{
	struct smp_vm *vm = by->vm;
	uint64_t n = first ? first->line->readers : 0, turn = 0;

	task_assert_first(smp_task(by), "who spins on a line");
	if (n > 1 && vm->line_transfer)
		turn = rng_below(&vm->turns, n);
	for (struct spinner *s = first; s; s = s->next) {
		if (s->released)
			continue;
		let_go(by, s, 1 + turn);
		if (s->spinning && ++turn >= n)
			turn = 0;
	}
}
