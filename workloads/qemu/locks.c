// SPDX-License-Identifier: GPL-2.0-or-later
#include "workloads/qemu/locks.h"

#include <inttypes.h>
#include <string.h>

void locks_open(struct locks *l, FILE *out)
{
	memset(l, 0, sizeof(*l));
	l->out = out;
}

/* ---- functions ---- */

/* False: not one of them. */
static bool kind_of(const char *name, enum locks_kind *kind)
{
	static const char *const locks[] = {"_raw_spin_", "_raw_read_", "_raw_write_"};
	static const char *const slow[] = {"native_queued_spin_lock_slowpath",
					   "queued_read_lock_slowpath",
					   "queued_write_lock_slowpath"};

	for (unsigned i = 0; i < 3; i++) {
		const char *what = name + strlen(locks[i]);

		if (!strcmp(name, slow[i])) {
			*kind = LOCKS_WAIT;
			return true;
		}
		if (strncmp(name, locks[i], strlen(locks[i])) != 0)
			continue;
		*kind = !strncmp(what, "trylock", 7)  ? LOCKS_TRY
			: !strncmp(what, "unlock", 6) ? LOCKS_GIVE
						      : LOCKS_TAKE;
		return *kind != LOCKS_TAKE || !strncmp(what, "lock", 4);
	}
	return false;
}

void locks_symbol(struct locks *l, uint64_t addr, const char *name)
{
	struct locks_function *f = &l->functions[l->n_functions];
	enum locks_kind kind;

	if (!strcmp(name, "asm_sysvec_apic_timer_interrupt"))
		l->tick = addr;
	if (!strcmp(name, "__schedule"))
		l->schedule = addr;
	if (l->open && addr > f[-1].start) {
		f[-1].end = addr;
		l->open = false;
		if (addr > l->hi)
			l->hi = addr;
	}
	if (l->n_functions == LOCKS_FUNCTIONS || l->open || !kind_of(name, &kind))
		return; /* @open: another name of the same function */
	*f = (struct locks_function){.start = addr, .end = addr, .kind = kind};
	if (!l->n_functions || addr < l->lo)
		l->lo = addr;
	l->n_functions++;
	l->open = true;
}

bool locks_ready(const struct locks *l)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < l->n_functions; i++)
		seen |= 1u << l->functions[i].kind;
	return !l->open && seen == 0xf && l->tick && l->schedule;
}

static const struct locks_function *function_at(const struct locks *l, uint64_t pc)
{
	for (unsigned i = 0; i < l->n_functions; i++) {
		if (pc >= l->functions[i].start && pc < l->functions[i].end)
			return &l->functions[i];
	}
	return NULL;
}

/* ---- phases ---- */

/* Work up to @rest instructions before the end of the block that it runs, or the ticks' time. */
static uint64_t work(const struct locks_vcpu *v, unsigned rest)
{
	uint64_t now = v->waiting && !v->ticks ? v->waiting_since : v->insns - rest;
	uint64_t out = v->began + v->waited + (v->ticks ? 0 : v->ticked);

	return now > out ? now - out : 0;
}

void locks_tick(struct locks *l, unsigned vcpu)
{
	struct locks_vcpu *v = &l->vcpu[vcpu];

	if (!l->phase)
		return;
	if (v->block->start == l->tick) {
		if (v->ticks++)
			return;
		v->tick_since = work(v, v->block->n);
		v->free_before = v->free_since;
		v->free_since = v->tick_since;
		v->depth_before = v->depth;
	} else if (v->block->start == l->schedule || v->ticks == 1) {
		v->ticked += work(v, 0) - v->tick_since;
		v->free_since = v->free_before;
		v->ticks = 0;
	} else {
		v->ticks--;
	}
}

uint64_t locks_time(const struct locks *l)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < LOCKS_VCPUS; i++)
		sum += l->vcpu[i].insns;
	return sum;
}

void locks_phase(struct locks *l, unsigned phase)
{
	for (unsigned i = 0; i < LOCKS_VCPUS; i++) {
		struct locks_vcpu *v = &l->vcpu[i];

		if (l->phase && v->block) {
			v->ticks = 0; /* the guest's words come from a process */
			fprintf(l->out, "# vcpu %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
				l->phase, i, work(v, 0), v->waited, v->ticked);
			l->left += v->depth;
		}
		v->began = v->insns;
		v->waited = 0;
		v->waiting = false;
		v->ticked = 0;
		v->ticks = 0;
		v->free_since = 0;
		v->caller = 0;
		v->depth = 0;
	}
	l->phase = phase;
}

void locks_close(struct locks *l)
{
	fprintf(l->out, "# locks %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", l->lines, l->left,
		l->strange);
}

/* ---- locks ---- */

static void begin_wait(struct locks_vcpu *v)
{
	if (v->waiting || v->ticks || !v->depth) /* a tick's own wait is the tick's */
		return;
	v->waiting = true;
	v->waiting_since = v->insns - v->block->n;
	v->ticked_before = v->ticked;
}

static void end_wait(struct locks_vcpu *v)
{
	uint64_t waited;

	if (!v->waiting || v->ticks)
		return;
	v->waiting = false;
	waited = v->insns - v->waiting_since - (v->ticked - v->ticked_before);
	v->waited += waited;
	if (v->depth)
		v->held[v->depth - 1].wait = waited;
}

void locks_enter(struct locks *l, unsigned vcpu, const struct locks_block *before)
{
	struct locks_vcpu *v = &l->vcpu[vcpu];
	const struct locks_block *b = v->block;
	const struct locks_function *f = l->phase ? function_at(l, b->start) : NULL;

	if (!f)
		return;
	if (f->kind == LOCKS_WAIT) {
		if (b->start == f->start)
			begin_wait(v);
		if (b->returns)
			end_wait(v);
	} else if (b->start == f->start) {
		v->caller = before && (before->to == b->start || before->calls) ? before->last : 0;
	}
}

/* Somebody else has it: then a try was in vain. */
static bool held_elsewhere(const struct locks *l, unsigned vcpu, uint64_t lock)
{
	for (unsigned i = 0; i < LOCKS_VCPUS; i++) {
		const struct locks_vcpu *v = &l->vcpu[i];

		for (unsigned d = 0; i != vcpu && d < v->depth; d++) {
			if (v->held[d].lock == lock)
				return true;
		}
	}
	return false;
}

static void take(struct locks *l, unsigned vcpu, const struct locks_function *f, uint64_t now,
		 uint64_t lock)
{
	struct locks_vcpu *v = &l->vcpu[vcpu];
	struct locks_held *h = &v->held[v->depth];
	unsigned base = v->ticks ? v->depth_before : 0;

	if (f->kind == LOCKS_TRY) {
		/* a second atomic in a try takes back what the first did */
		if (v->depth && h[-1].lock == lock && h[-1].function == f->start) {
			v->depth--;
			return;
		}
		if (held_elsewhere(l, vcpu, lock))
			return;
	}
	if (v->depth == LOCKS_HELD) {
		l->strange++;
		return;
	}
	*h = (struct locks_held){.lock = lock,
				 .caller = v->caller,
				 .function = f->start,
				 .work = now,
				 .depth = v->depth - base,
				 .gap = now - (v->depth > base ? h[-1].work : v->free_since),
				 .tick = v->ticks};
	v->depth++;
}

static void give(struct locks *l, unsigned vcpu, uint64_t now, uint64_t lock)
{
	struct locks_vcpu *v = &l->vcpu[vcpu];
	unsigned d = v->depth;

	while (d && v->held[d - 1].lock != lock)
		d--;
	if (!d) {
		l->strange++;
		return;
	}
	d--;
	fprintf(l->out,
		"%" PRIu64 " %u L %" PRIx64 " %" PRIx64 " %" PRIx64 " %u %" PRIu64 " %" PRIu64
		" %" PRIu64 " %d\n",
		v->held[d].work, vcpu, lock, v->held[d].caller, v->held[d].function,
		v->held[d].depth, v->held[d].gap, now - v->held[d].work, v->held[d].wait,
		v->held[d].tick);
	l->lines++;
	v->depth--;
	memmove(&v->held[d], &v->held[d + 1], (v->depth - d) * sizeof(v->held[0]));
	if (v->depth == (v->ticks ? v->depth_before : 0))
		v->free_since = now;
}

void locks_store(struct locks *l, unsigned vcpu, uint64_t pc, bool atomic, unsigned rest,
		 uint64_t addr)
{
	const struct locks_function *f;
	uint64_t now;

	if (!l->phase || pc - l->lo >= l->hi - l->lo)
		return;
	f = function_at(l, pc);
	if (!f || f->kind == LOCKS_WAIT)
		return;
	now = work(&l->vcpu[vcpu], rest);
	if (f->kind == LOCKS_GIVE)
		give(l, vcpu, now, addr);
	else if (atomic)
		take(l, vcpu, f, now, addr);
}
