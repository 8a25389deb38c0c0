/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_POLICY_POLICY_H
#define KVMSIM_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sim/sim.h"

/*
 * Policies: one file each, one const struct each, one line in table.c each. A NULL member means the
 * family's base behaviour. Parameters are declared, so that `--dirty hybrid,threshold=3` and
 * `kvmsim list` need no further code.
 */
struct policy_param {
	const char *name;
	uint64_t def, min, max;
	uint64_t step; /* the value is a multiple of it; 0: the value is a power of two */
	const char *help;
};

#define POLICY_MAX_PARAMS 8
struct policy_params {
	uint64_t value[POLICY_MAX_PARAMS]; /* in the order of the declaration */
};

enum policy_family {
	FAMILY_DIRTY,
	FAMILY_SPTE,
	FAMILY_LOCK,
	FAMILY_PLE,
	FAMILY_MMULOCK,
	N_FAMILIES
};

/* What a prediction rests on; more is greater. Refused: the pair cannot work. */
enum policy_evidence { EVIDENCE_REFUSED = -1, EVIDENCE_NONE, EVIDENCE_PUBLISHED, EVIDENCE_ORACLE };
enum mmu_kind { MMU_SHADOW_LONG64, MMU_SHADOW_FLAT32, MMU_TDP_RMAP, MMU_TDP, N_MMU_KINDS };

/* What is known of a policy with one kernel (a preset's name) on one CPU (a personality's). */
struct policy_proof {
	const char *preset, *cpu;
	enum policy_evidence on[N_MMU_KINDS];
	const char *why; /* what rows there are prove nothing for, in a few words; may be NULL */
};

/* What every policy says of itself. */
struct policy_desc {
	const char *name;
	enum policy_family family;
	const char *summary;		   /* one line for `kvmsim list` */
	const struct policy_param *params; /* ended by a NULL name; NULL: none */
	bool broken;			   /* deliberately wrong: a checker must catch it */
	const struct policy_proof *proofs; /* ended by a NULL preset; NULL: none */
};

const char *mmu_kind_name(enum mmu_kind k); /* npt0-long64, npt0-flat32, npt1-tdp0, npt1-tdp1 */
/* What is known with this kernel on this CPU, never NULL: what a policy does not list has none. */
const struct policy_proof *policy_proof(const struct policy_desc *d, const char *preset,
					const char *cpu);
/* refused, none, published, oracle-exact */
const char *policy_evidence_name(enum policy_evidence e);

struct kvm;
struct kvm_memory_slot;
struct kvm_vcpu;

struct dirty_policy {
	struct policy_desc desc;
	bool walks; /* visits shadow pages: not on a back end that has none to visit */
	/* Whether pages of nested tables are armed by taking D, for the CPU to log (model/mmu/
	 * cpu_log.h), where others take W. NULL: no. */
	bool (*cpu_log)(const struct kvm *kvm);
	/* Whether every bit of a new bitmap is set. NULL: none is. */
	bool (*initially_all_set)(const struct kvm *kvm);
	/* LOG_DIRTY_PAGES was set on @slot: arm it. NULL: write-protect the slot, flush. */
	int (*enable)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
	/* The flag was taken away. NULL: what is armed stays armed. */
	int (*disable)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
	/* GET_DIRTY_LOG under slots_lock: copies the bitmap out, clears and re-arms, flushes.
	 * Takes mmu_lock itself. Returns the number of dirty pages or a negative error. With
	 * .clear it copies out and does no more. NULL: slots have no bitmap, .reset_rings is
	 * there. */
	long (*harvest)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			uint64_t *bitmap);
	/* CLEAR_DIRTY_LOG under slots_lock: clears and re-arms those of @npages pages from
	 * @first_page, a multiple of 64, that are set in @bitmap, whose bit 0 is @first_page's;
	 * flushes. What it cleared stays in slot->dirty_snapshot, from its word 0 on. 0 or
	 * KVMSIM_ECANCELED. NULL: harvest does it. */
	int (*clear)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		     uint64_t first_page, uint64_t npages, const uint64_t *bitmap);
	/* Pages that userspace clears per call, a multiple of 64. NULL where .clear is. */
	uint64_t (*clear_chunk)(const struct kvm *kvm);
	/* A page of a logged slot was made writable or written. NULL: set its bit. */
	void (*mark)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t gfn);
	/* A vCPU is made (0 or KVMSIM_ENOMEM) and freed, also one whose making failed. */
	int (*vcpu_create)(struct kvm_vcpu *v);
	void (*vcpu_free)(struct kvm_vcpu *v);
	/* Before each entry to the guest: whether the vCPU has no room to log what it may dirty, so
	 * that KVM_RUN returns instead. NULL: never. */
	bool (*vcpu_full)(struct kvm_vcpu *v);
	/* RESET_DIRTY_RINGS under slots_lock: re-arms the pages of the entries that userspace has
	 * read, of all vCPUs, and frees them; the caller flushes. Takes mmu_lock itself. Returns
	 * the number of entries or KVMSIM_ECANCELED. NULL: there are no rings. */
	long (*reset_rings)(struct task *t, struct kvm *kvm);
	/* Microseconds between two passes of the VMM's thread that empties the rings; 0: none. NULL
	 * where .reset_rings is. */
	uint64_t (*reaper_us)(const struct kvm *kvm);
};

/* What the MMU remembers of accesses to devices (model/mmu/mmio.h), and by its parameters how it
 * follows guests' page tables (spte.h). */
struct spte_policy {
	struct policy_desc desc;
	bool vcpu_cache; /* each vCPU the page that it accessed last */
	bool mmio_sptes; /* such pages have sptes that fault in a way of their own */
	/* How many bits of the memslots' generation these hold: one that differs is stale. NULL:
	 * none, they are good for as long as they are there. */
	unsigned (*generation_bits)(const struct kvm *kvm);
	/* A new set of memslots is there, which @generation will be that of; until it is, no vCPU
	 * remembers anything new. @placed: a slot is where none was, new or moved. NULL: nothing.
	 */
	void (*memslots_updated)(struct task *t, struct kvm *kvm, uint64_t generation, bool placed);
};

struct smp_vm;
struct smp_vcpu;
struct smp_lock;

/* A guest kernel's spinlocks (model/smp/spin.h, which checks and counts around these). The policy
 * keeps its part of a lock in l->state, what it has per VM and vCPU behind smp_vm_lock_private()
 * and smp_vcpu_lock_private(). Functions return 0, or a negative error that ends the run. */
struct lock_policy {
	struct policy_desc desc;
	bool fifo;	  /* whoever comes first gets it first, without parameters that say
			   * otherwise: checked */
	bool halt_yields; /* the host's handler of a halt tries what that of a pause-loop exit does,
			   * before the vCPU sleeps */
	int (*vm_init)(struct smp_vm *vm); /* NULL: nothing to make */
	void (*vm_free)(struct smp_vm *vm);
	int (*init)(struct smp_vm *vm, struct smp_lock *l);
	void (*free)(struct smp_lock *l); /* NULL: nothing to free */
	/* [running] @contended is set when it had to wait. */
	int (*lock)(struct smp_vcpu *v, struct smp_lock *l, bool *contended);
	int (*trylock)(struct smp_vcpu *v, struct smp_lock *l); /* 1, 0 */
	int (*unlock)(struct smp_vcpu *v, struct smp_lock *l);
};

/* Pause-loop exits, and what the host does at one. */
struct ple_policy {
	struct policy_desc desc;
	/* Units of time of a pause loop after which the vCPU exits; 0: never. NULL: never. */
	uint64_t (*window)(const struct smp_vcpu *v);
	/* Units of time between two PAUSEs up to which they are of one loop. NULL where .window is.
	 */
	uint64_t (*gap)(const struct smp_vcpu *v);
	/* At each such exit, and when the vCPU's thread gets a CPU. NULL: nothing. */
	void (*exited)(struct smp_vcpu *v);
	void (*sched_in)(struct smp_vcpu *v);
	/* How often the exit's handler goes round all vCPUs before it gives up. NULL: once. */
	unsigned (*rounds)(const struct smp_vcpu *v);
	/* [running, synced] Whether the exit's handler may yield to @target. NULL: to any that is
	 * runnable. @pass: of round r 2r from the one after the last boosted, 2r + 1 from the first
	 * up to it. */
	bool (*eligible)(struct smp_vcpu *v, struct smp_vcpu *target, unsigned pass);
};

/* What protects a VM's shadow pages: overrides the preset's. */
struct mmulock_policy {
	struct policy_desc desc;
	bool rw;	 /* an rwlock */
	bool read_fault; /* faults of the TDP MMU hold it for reading */
	bool read_relax; /* those that give a logged page W back do */
};

/* Finds a policy by name. NULL when there is none. */
const struct dirty_policy *dirty_policy_find(const char *name, size_t len);
const struct spte_policy *spte_policy_find(const char *name, size_t len);
const struct lock_policy *lock_policy_find(const char *name, size_t len);
const struct ple_policy *ple_policy_find(const char *name, size_t len);
const struct mmulock_policy *mmulock_policy_find(const char *name, size_t len);
/* All policies in the table, in its order. */
size_t policy_count(void);
const struct policy_desc *policy_at(size_t i);

/* Parses "name,key=value,..." of @family. Errors: KVMSIM_ENOENT (the names that exist are in the
 * message), KVMSIM_EPARSE (unknown parameter, value out of range). */
int policy_parse(enum policy_family family, const char *text, const struct kvmsim_errsink *errors,
		 const struct policy_desc **desc, struct policy_params *params);

#endif
