/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_POLICY_LOCK_H
#define KVMSIM_POLICY_LOCK_H

#include "model/policy/policy.h"
#include "model/smp/spin.h"

/*
 * What lock policies share. Those that wait are on their own stacks, and in the lock's lists from
 * the operation that puts them there until the one that lets them go: when a run is cancelled
 * nobody looks at these any more.
 */

/* Iterations before a waiter of a paravirtual lock halts: SPIN_THRESHOLD, 1 << 15 since 3.12. */
#define LOCK_THRESHOLD_PARAM                                                                       \
	{                                                                                          \
		"threshold", 1u << 15, 1, 1u << 30, 1, "iterations of spinning before a halt"      \
	}

/* Parameter @i of the VM's lock policy. */
uint64_t lock_param(const struct smp_vcpu *v, unsigned i);
/* .init with a zeroed state of @size; .free. */
int lock_alloc_state(struct smp_lock *l, size_t size);
void lock_free_state(struct smp_lock *l);

/* ---- test and set ---- */

struct tas_state {
	bool locked;
	struct spinner *waiters; /* in any order */
};
/* [running] Of a lock whose state begins with that: tests, and if it is free sets. */
int tas_lock(struct smp_vcpu *v, struct smp_lock *l, struct tas_state *s, bool *contended);
/* [running, synced] It is free: all who spin see it. */
void tas_release(struct smp_vcpu *v, struct tas_state *s);

/* ---- tickets ---- */

struct ticket_waiter {
	struct spinner s;
	uint32_t want;
};
struct ticket_state {
	uint32_t head, tail; /* steps of 1: a flag in the tail is a member of its own here */
	bool slowpath;	     /* somebody halts, or is about to */
	struct spinner *first, *last; /* who waits, by tickets */
};
int ticket_init(struct smp_vm *vm, struct smp_lock *l);
/* [running] Takes a ticket. 1: it is its turn; 0: *@w is in the queue, waiting for it. */
int ticket_take(struct smp_vcpu *v, struct smp_lock *l, struct ticket_waiter *w);
int ticket_trylock(struct smp_vcpu *v, struct smp_lock *l);
/* [running, synced] The next one's turn. */
void ticket_advance(struct smp_vcpu *v, struct ticket_state *s);

/* ---- paravirtual ---- */

int pvticket_vm_init(struct smp_vm *vm);
void pvticket_vm_free(struct smp_vm *vm);
int pvticket_lock(struct smp_vcpu *v, struct smp_lock *l, bool *contended);
int pvticket_unlock(struct smp_vcpu *v, struct smp_lock *l);
/* [running] Halts until kicked, with irqs on while it does if they are on now and off afterwards.
 * Interrupts have to be off, @flags says what they were. */
int pv_halt(struct smp_vcpu *v, bool flags);

extern const struct policy_param pvticket_params[];
extern const struct lock_policy lock_tas, lock_ticket, lock_pvticket, lock_pvticket_yield,
	lock_qspin, lock_pvqspin, lock_busted;

#endif
