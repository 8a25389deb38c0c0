/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_QEMU_LOCKS_H
#define KVMSIM_QEMU_LOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The spin locks that a guest's Linux kernel takes and gives back, from what its CPUs run, apart
 * from QEMU. Those are qspinlocks and qrwlocks, whose functions (_raw_spin_lock*, _raw_read_lock*,
 * _raw_write_lock*, their trylocks and unlocks) are not inlined and lie side by side: an atomic
 * instruction in one that locks takes the lock at that address, one in a slow path waits until its
 * return, a store of a zero byte (a reader's: an atomic) in one that unlocks gives it back. Where
 * the functions are, the guest says before (/proc/kallsyms), in the order of their addresses.
 *
 * Times are a vCPU's own instructions: its work. Those in slow paths are not among them, nor those
 * of timer interrupts (up to the return, with what softirqs do then, or until it schedules): a
 *guest whose instructions are slow and whose clock is the host's has far too many ticks. Locks that
 *are taken in those are told as such; they have a clock of their own, which goes on with each tick.
 * One vCPU at a time runs. Lines, in phases only:
 *
 *	WORK VCPU L LOCK CALLER FUNCTION DEPTH GAP HOLD WAIT TICK
 *		at each unlock. WORK: when the lock was taken, since the phase began. LOCK, CALLER
 *		(of the jump or call; 0: not known) and FUNCTION that took it: guest addresses,
 *		hexadecimal. DEPTH: locks that this vCPU held then. GAP: work since it held none, or
 *		where DEPTH is not 0 since it took the one before. HOLD: work until the unlock.
 *		WAIT: instructions in the slow path, 0 when it was not entered. TICK: 1 in a timer
 *		interrupt, 0 elsewhere
 *	# vcpu PHASE VCPU WORK WAIT TICKS
 *		at a phase's end: all its work, instructions in slow paths and in timer interrupts
 *	# locks LINES LEFT STRANGE
 *		before the last line: lines of L; locks that were still held at an end of a phase;
 *		unlocks of a lock that was not known to be taken (before the phase, as a rule)
 */
#define LOCKS_VCPUS	64
#define LOCKS_HELD	32
#define LOCKS_FUNCTIONS 128

enum locks_kind { LOCKS_TAKE, LOCKS_TRY, LOCKS_GIVE, LOCKS_WAIT };

struct locks_function {
	uint64_t start, end;
	enum locks_kind kind;
};

struct locks_held {
	uint64_t lock, caller, function, work, gap, wait;
	unsigned depth;
	bool tick;
};

/* A translated block: what of it matters here. */
struct locks_block {
	uint64_t start, last; /* addresses of its first and its last instruction */
	uint64_t to;	      /* where that jumps or calls to, if it says so; else 0 */
	uint32_t n;	      /* instructions */
	bool calls;	      /* calls or jumps to an address that it does not say */
	bool returns, irets;
};

struct locks_vcpu {
	const struct locks_block *block; /* that it runs */
	uint64_t insns;			 /* with all of that block */
	uint64_t began;			 /* of the phase */
	uint64_t waited, waiting_since;	 /* in slow paths; insns at the entry, if @waiting */
	uint64_t ticked, tick_since;	 /* in timer interrupts; time at the entry, if @ticks */
	uint64_t ticked_before;		 /* the wait */
	bool waiting;
	unsigned ticks;	       /* timer interrupts that it is in */
	uint64_t free_since;   /* work when it last held no lock */
	uint64_t free_before;  /* the same outside of the tick */
	unsigned depth_before; /* locks held when the tick began */
	uint64_t caller;       /* of the locking function that it entered last */
	unsigned depth;
	struct locks_held held[LOCKS_HELD];
};

struct locks {
	FILE *out;
	struct locks_function functions[LOCKS_FUNCTIONS];
	unsigned n_functions;
	bool open;		 /* the last function's end is not told yet */
	uint64_t lo, hi;	 /* of all of them */
	uint64_t tick, schedule; /* a timer interrupt's entry, the scheduler's; 0: not told */
	unsigned phase;
	uint64_t lines, left, strange;
	struct locks_vcpu vcpu[LOCKS_VCPUS];
};

/* @out stays the caller's. */
void locks_open(struct locks *l, FILE *out);
/* The guest's words: a symbol of its kernel. */
void locks_symbol(struct locks *l, uint64_t addr, const char *name);
/* Whether functions that lock and that unlock are known. */
bool locks_ready(const struct locks *l);
/* A phase begins, or ends (0). */
void locks_phase(struct locks *l, unsigned phase);
/* Instructions of all vCPUs. */
uint64_t locks_time(const struct locks *l);
/* Writes the last line. */
void locks_close(struct locks *l);

/* Inside: a block in the functions' range; one that begins or ends a tick. */
void locks_enter(struct locks *l, unsigned vcpu, const struct locks_block *before);
void locks_tick(struct locks *l, unsigned vcpu);
/* A store to @addr by the instruction at @pc, an atomic one or a zero byte's, with @rest of the
 * block's instructions from it on. */
void locks_store(struct locks *l, unsigned vcpu, uint64_t pc, bool atomic, unsigned rest,
		 uint64_t addr);

/* A vCPU, below LOCKS_VCPUS, begins a block, which stays. */
static inline void locks_run(struct locks *l, unsigned vcpu, const struct locks_block *block)
{
	struct locks_vcpu *v = &l->vcpu[vcpu];
	const struct locks_block *before = v->block;

	v->block = block;
	v->insns += block->n;
	if (block->start - l->lo < l->hi - l->lo)
		locks_enter(l, vcpu, before);
	else if (block->start == l->tick ||
		 (v->ticks && (block->irets || block->start == l->schedule)))
		locks_tick(l, vcpu);
}

#endif
