/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_HOSTMEM_H
#define KVMSIM_MMU_HOSTMEM_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mmu/spte.h"

/*
 * The VMM's memory behind a slot, as the host's mm has it. It is contiguous and lies as the guest's
 * frames do: a frame and its host address leave the same remainder by 1 GiB, as every VMM that
 * wants large pages sees to. Three kinds:
 *
 *	present		every page is there and writable, by pages of one size, and by smaller ones
 *			where the slot has no whole one;
 *	shared		as in a file that is shared: the first fault on a page brings it, writable;
 *	anonymous	private: a read of a page that was never stored to finds the zero page,
 * which the host maps without W, and the first store gets a page of its own. It can be given back
 * and be write-protected.
 *
 * Behind anonymous memory there are pages of 4 KiB, or of 2 MiB where a fault finds nothing of a
 * whole 2 MiB that is of one mapping (transparent huge pages, the huge zero page among them).
 * Nothing merges small pages into large ones later (khugepaged), and of mmap_lock
 * there is no more than that shared memory's pages are made with it held for reading, and that a
 * change of the address space elsewhere waits for it (guest/vm.h).
 *
 * The model gives a page of a slot one frame number for good. So the zero page has the number of
 * the page that will take its place, and nothing but W tells the two apart.
 */
struct kvm;
struct kvm_memory_slot;
struct task;

/* The memory that the VMM gives for a slot. */
struct memslot_host {
	unsigned level; /* of the pages that map it, PG_LEVEL_*; 0 is PG_LEVEL_4K */
	bool populated;
	bool anonymous; /* and then level is at most PG_LEVEL_2M */
};

/* What the host's tables have for 2 MiB of anonymous memory. */
enum host_pmd { HOST_PMD_NONE, HOST_PMD_TABLE, HOST_PMD_HUGE, HOST_PMD_HUGE_ZERO };

struct host_mem {
	int level;
	bool anonymous;
	uint64_t *absent;   /* bit per page that the host does not have; NULL: none */
	uint64_t *zero;	    /* anonymous: bit per page that is the zero page */
	uint64_t *readonly; /* anonymous: bit per page of a mapping without PROT_WRITE */
	uint8_t *pmd;	    /* anonymous: enum host_pmd, by memslot_index() of 2 MiB */
	uint64_t *active;   /* bit per page that was seen to be in use, see host_page_used() */
};

/* Of a slot whose place is known. False: out of memory; free it all the same. */
bool host_mem_init(struct kvm_memory_slot *slot, const struct memslot_host *host);
void host_mem_free(struct host_mem *h);

/* The level of the host page that holds @gfn; of one that is absent, the level that it would have,
 * but 4K in anonymous memory. */
int memslot_host_level(const struct kvm_memory_slot *slot, gfn_t gfn);
/* Whether the host has the page and maps it writable: what a look-up without sleeping finds. */
bool memslot_host_writable(const struct kvm_memory_slot *slot, gfn_t gfn);

/* [running] The host's part of a fault on @gfn: its page is there afterwards, *@writable says
 * whether the host maps it writable, which it does after a store. May run MMU notifiers: mmu_lock
 * is not held. KVMSIM_EINVAL, with a message: a store to a mapping that is read-only, which ends
 * KVM_RUN with EFAULT. */
int host_fault_in(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn,
		  bool write, bool *writable);
/* [running] A fault or a prefetch of the guest's lets go of the page that it has looked up, and
 * marks it as used: the first time, that moves it to the list of active pages. */
void host_page_used(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn);
/* The same of the page of @gfn, if it has a slot, when an spte that says so goes. */
void host_gfn_used(struct task *t, struct kvm *kvm, gfn_t gfn);
/* The host itself has stored to @gfn, before the clock ran. */
void host_store(struct kvm_memory_slot *slot, gfn_t gfn);

/* [running] madvise(MADV_DONTNEED) and mprotect() of the anonymous memory of @npages frames from
 * @gfn on. What is given back reads as zero. */
void host_dontneed(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn,
		   uint64_t npages);
void host_protect(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn,
		  uint64_t npages, bool writable);

/* What a leaf spte of @level for @gfn grants that the host does not: some words, or NULL. Nobody
 * runs. */
const char *host_mem_check(const struct kvm_memory_slot *slot, gfn_t gfn, int level, uint64_t spte);

#endif
