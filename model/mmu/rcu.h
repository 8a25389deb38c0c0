/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_RCU_H
#define KVMSIM_MMU_RCU_H

#include <stdint.h>

#include "model/mmu/list.h"
#include "model/sim/sim.h"

/*
 * Read-copy-update, as far as page tables need it: a table that was taken out of the tree is not
 * used again before everyone who may still be walking through it has ended his walk. Readers take
 * no lock and wait for nobody; a hardware walk is one moment in time and needs none of this.
 */
struct kvm;
struct kvm_mmu_page;

struct rcu {
	struct list readers;				/* oldest first */
	uint64_t removals;				/* pages handed over so far */
	struct kvm_mmu_page *deferred, **deferred_tail; /* oldest first, linked by hash_next */
};

struct rcu_reader {
	struct list link;
	uint64_t since; /* rcu.removals when it began: it cannot see what was removed before */
};

void rcu_init(struct rcu *rcu);
/* [running] @r stays where it is until rcu_read_unlock(). */
void rcu_read_lock(struct task *t, struct kvm *kvm, struct rcu_reader *r);
void rcu_read_unlock(struct task *t, struct kvm *kvm, struct rcu_reader *r);
/* [running] Frees @sp, which nothing leads to any more, once all readers of now have ended. */
void call_rcu(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp);

/*
 * Sleepable read-copy-update, of the memslots: who changes them goes on when every fault that may
 * have seen them as they were is done with, so that a page is not mapped writable, unlogged, behind
 * the walk that protects the slot. One at a time changes them: slots_lock is held.
 */
struct srcu {
	struct list readers; /* oldest first */
	uint64_t updates;
	struct task *waiter;
};

void srcu_init(struct srcu *srcu);
/* [running] @r stays where it is until srcu_read_unlock(). */
void srcu_read_lock(struct task *t, struct srcu *srcu, struct rcu_reader *r);
void srcu_read_unlock(struct task *t, struct srcu *srcu, struct rcu_reader *r);
/* [running] Waits for the readers of now. */
void synchronize_srcu(struct task *t, struct srcu *srcu);

#endif
