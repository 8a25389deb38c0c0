/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_CPU_LOG_H
#define KVMSIM_MMU_CPU_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mmu/rcu.h"
#include "model/mmu/spte.h"

/*
 * The CPU's own dirty log: Intel's page-modification log (SDM volume 3, "Page-Modification
 * Logging"). Where a nested walk sets D, the CPU writes the page's address into a buffer of the
 * vCPU's; the index counts down, and below 0 the walk exits instead. KVM moves the entries to the
 * dirty log at every exit, and arms a page by taking D, not W. The CPU logs while a slot of the VM
 * is logged, whichever slot a store goes to.
 */
struct kvm;
struct kvm_memory_slot;
struct kvm_vcpu;
struct task;

#define CPU_LOG_ENTRIES 512

struct cpu_log {
	gpa_t *gpa;		       /* NULL: the VM uses none */
	struct kvm_memory_slot **slot; /* of each, from cpu_log_stop() to cpu_log_flush() */
	struct rcu_reader srcu;
	int index;	   /* of the next entry; -1: full */
	unsigned unpriced; /* entries that their guest has not been charged yet */
	bool enabled;
	uint64_t addr; /* synthetic */
};

/* Gives the vCPU its buffer where the VM uses one. False: out of memory. */
bool cpu_log_init(struct kvm_vcpu *v);
/* [synced] What hardware does before it sets D of @gpa's page. False: there is no room. */
bool cpu_log_push(struct kvm_vcpu *v, gpa_t gpa);
/* The guest's part of what was logged. It moves the clock. */
void cpu_log_charge(struct kvm_vcpu *v);
/* [synced] The vCPU has left guest mode, and nobody knows yet: from here to the end of its log's
 * flush it reads the memslots as they are now, under SRCU. Else a slot that is moved, which waits
 * for the exit only, would be elsewhere, and what was logged of it nowhere. (The kernel takes SRCU
 * a few instructions after the interrupt: it can lose an entry there.) */
void cpu_log_stop(struct kvm_vcpu *v);
/* [running] What KVM does then: what the CPU has logged goes to the dirty log. */
void cpu_log_flush(struct kvm_vcpu *v);
/* Its buffer is freed. */
void cpu_log_free(struct kvm_vcpu *v);
/* How many entries it has. */
uint64_t cpu_log_entries(const struct kvm_vcpu *v);
/* Whether any vCPU's log has @gfn: its store is going to be reported. */
bool cpu_log_has(const struct kvm *kvm, gfn_t gfn);
/* [running] A slot's logging was switched on or off: with the first one and after the last one
 * every vCPU is told, and has left guest mode on return. */
void kvm_update_cpu_dirty_logging(struct task *t, struct kvm *kvm, bool on);
/* [running] Before the log is read: vCPUs in guest mode are made to exit, and not waited for. */
void kvm_sync_dirty_log(struct task *t, struct kvm *kvm);

#endif
