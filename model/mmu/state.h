/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_STATE_H
#define KVMSIM_MMU_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/host/cache.h"
#include "model/mmu/backend.h"
#include "model/mmu/cpu_log.h"
#include "model/mmu/gmem.h"
#include "model/mmu/kaddr.h"
#include "model/mmu/list.h"
#include "model/mmu/livelock.h"
#include "model/mmu/memslot.h"
#include "model/mmu/mmio.h"
#include "model/mmu/mmulock.h"
#include "model/mmu/notifier.h"
#include "model/mmu/paging.h"
#include "model/mmu/rcu.h"
#include "model/mmu/spte.h"
#include "model/mmu/stats.h"
#include "model/mmu/tlb.h"
#include "model/mmu/trace.h"
#include "model/policy/policy.h"
#include "model/sim/sim.h"

/*
 * What there is of a VM and a vCPU: what mmu.h works on. Internal to model/mmu, model/policy and
 * model/guest.
 */
struct kvm_preset;
struct spte_policy;
struct mmulock_policy;
struct kvm_vcpu;
struct kvm_watch;
struct kvm_dirty_ring;
struct ring_user;

/* One shadow page. Its 512 entries come first and it is allocated aligned to their size, so that
 * an entry's address gives its page (the kernel looks in struct page). */
struct kvm_mmu_page {
	uint64_t spt[PTES_PER_PAGE];
	uint64_t translation[PTES_PER_PAGE]; /* indirect: gfn << 12 | access shadowed by each */
	struct list link; /* in kvm->active_pages, newest first, or a list of invalid ones */
	struct kvm_mmu_page *hash_next, **hash_pprev;
	union kvm_mmu_page_role role;
	gfn_t gfn;
	uint32_t root_count;
	uint32_t write_flooding;
	uint8_t valid_gen;
	bool unsync;		  /* the guest may write the table that it shadows */
	uint32_t unsync_children; /* bits set below: entries that may lead to such a page */
	uint64_t unsync_child_bitmap[PTES_PER_PAGE / 64];
	bool tdp_mmu_page;    /* of the TDP back end: takes no part in generations */
	bool zap_scheduled;   /* such a root, invalid and not zapped yet */
	uint64_t removal;     /* its number among those that wait for an RCU grace period */
	bool mmio_cached;     /* MMIO sptes were put into it */
	uint64_t slot_bitmap; /* slots that its leaf entries map, where the preset keeps it */
	struct kvm_rmap_head parent_ptes;
	pfn_t pfn; /* of the entries' page: what a parent entry holds */
	uint64_t spt_addr, header_addr, translation_addr; /* synthetic */
};

#define PTE_LIST_EXT 14
struct pte_list_desc {
	struct pte_list_desc *more;
	uint64_t count;
	uint64_t *sptes[PTE_LIST_EXT];
	uint64_t addr;
};

#define DESCS_PER_CHUNK 63
struct desc_chunk {
	struct desc_chunk *next;
	struct pte_list_desc desc[DESCS_PER_CHUNK];
};

#define MAX_HASH_SHIFT	   12
#define MMU_NUM_PREV_ROOTS 3
#define KVM_MAX_VCPUS	   512

struct kvm {
	struct sim *sim;
	struct cache *cache;
	const struct kvm_observer *observer;
	const struct kvm_preset *preset;
	const struct mmu_backend *backend;
	const struct cpu_personality *cpu;
	const struct dirty_policy *dirty;
	struct policy_params dirty_params;
	const struct spte_policy *spte;
	struct policy_params spte_params; /* the first ones are enum spte_param's */
	const struct mmulock_policy *mmulock;
	uint64_t mmio_mask, mmio_value; /* by which MMIO sptes are told; 0: there are none */
	unsigned mmio_access_mask;	/* bits of ACC_* that they hold */
	unsigned prefetch; /* aligned group of sptes filled per fault; below 2: only the one */
	bool tdp_enabled;
	bool ad_enabled;	    /* the tables that KVM makes have A and D */
	bool eager_page_split;	    /* mappings are split ahead of the stores, on this back end */
	struct cpu_regs reset_regs; /* of a new vCPU */
	unsigned gpa_bits;	    /* of the guests' physical addresses */
	bool pdptrs_in_memory; /* nested paging reads the guest's PDPTEs there, as its other tables
				*/
	cycles_t tlbi_broadcast, tlbi_at; /* a broadcast invalidation; when the last one is done */
	bool no_irqchip;
	struct spinlock timer_lock; /* the host's, of the timer's interrupt: with no_irqchip */
	bool check;
	bool keep_stores;
	bool dead;		       /* an allocation failed in the middle of an operation */
	const struct kvm_watch *watch; /* guest/watch.h */

	struct mmu_lock mmu_lock;
	struct rwlock mmap_lock; /* the VMM's: a host page is made with it held for reading */
	struct mutex slots_lock;

	struct kvm_memory_slot *slots[KVM_MAX_MEMSLOTS]; /* by id */
	struct kvm_memory_slot *by_gfn[KVM_MAX_MEMSLOTS];
	uint32_t nr_by_gfn;
	struct kvm_memory_slot *deleted_slots;
	uint64_t nr_memslot_pages;
	uint64_t memslots_generation; /* of the set: two more with each change */
	bool memslots_updating;	      /* the next set is seen, its generation not yet */
	bool mmio_refreshed; /* a sync gave an MMIO spte a new generation where a slot had come, as
			      * the kernel's does: the checkers know */
	pfn_t next_pfn;

	struct list active_pages;
	struct kvm_mmu_page *hash[1u << MAX_HASH_SHIFT];
	uint64_t n_used_pages, n_max_pages, indirect_pages;
	uint64_t split_stock;	  /* tables at hand for splits of large sptes */
	bool mmu_pages_requested; /* n_max_pages is the VMM's, not the slots' */
	uint8_t valid_gen;
	struct kvm_mmu_page **page_of_pfn; /* by pfn - SPT_BASE_PFN */
	uint64_t n_page_of_pfn;
	struct kvm_mmu_page *free_pages;
	struct pte_list_desc *free_descs;
	struct desc_chunk *desc_chunks;

	/* The TDP back end's: roots, newest first, and tables in use, which have no limit. */
	struct list tdp_roots;
	uint64_t n_tdp_pages;
	struct list frozen_waiters; /* who waits until an entry is no longer frozen */
	struct rcu rcu;

	struct srcu srcu; /* of the memslots */
	struct mmu_notifiers notifiers;
	uint32_t most_restarts; /* of one instruction: livelock.h */
	uint32_t lru_batch;	/* host pages that wait to be moved to the active list, hostmem.c */

	/* Shadow pages of a part of the guest that no trace shows: a walk meets them. They map
	 * pages of the logged slot, none of them writable, and never change. */
	uint64_t n_background;
	uint64_t *background_header_addr, *background_spt_addr;

	struct kaddr kaddr;
	struct gmem gmem;
	struct kvm_vcpu *vcpus[KVM_MAX_VCPUS];
	uint32_t n_vcpus;
	struct ring_user *ring_user; /* what the VMM keeps of dirty rings, see guest/ring.c */
	uint64_t stat[N_KVM_STATS];  /* only VM-wide ones are used */

	uint32_t cpu_dirty_log_size;	  /* entries of each vCPU's log; 0: none is used */
	uint32_t cpu_dirty_logging_count; /* slots that are logged, when there is one */

	uint64_t false_dirties, lost_stores;
	uint64_t ring_resets; /* calls of RESET_DIRTY_RINGS; changes under slots_lock */
};

enum vcpu_mode { OUTSIDE_GUEST_MODE, IN_GUEST_MODE, EXITING_GUEST_MODE, READING_SHADOW_TABLES };

enum vcpu_request {
	REQ_TLB_FLUSH = 1u << 0,
	REQ_TLB_FLUSH_CURRENT = 1u << 1,
	REQ_FREE_OBSOLETE_ROOTS = 1u << 2,
	REQ_LOAD_MMU_PGD = 1u << 3,
	REQ_MASTERCLOCK_UPDATE = 1u << 4,
	REQ_EVENT = 1u << 5,
	REQ_UPDATE_CPU_DIRTY_LOGGING = 1u << 6,
	REQ_MMU_SYNC = 1u << 7,
	REQ_TLB_FLUSH_GUEST = 1u << 8,
};

/* A plain store; one that reads what it changes; one that does so under a lock prefix, or is XCHG.
 * The second is none that page tables are written with. */
enum insn_store { INSN_MOV, INSN_RMW, INSN_XCHG };

/* The access that the emulator is about to do, or has done. */
struct vcpu_emulation {
	uint64_t fault_addr; /* of the fault: gpa where the vCPU's are, else gva */
	gva_t gva;
	gpa_t gpa;
	uint64_t store, loaded;
	unsigned len;
	bool fetch; /* of code, not of data */
	bool whole; /* a read-modify-write, load and store */
};

struct mmu_root {
	struct kvm_mmu_page *sp; /* NULL: none */
	gpa_t pgd;
};

/* What a vCPU has at hand for its faults (topup.c). */
struct mmu_stock {
	uint16_t descs, pages, translations, headers;
};

struct kvm_vcpu {
	struct kvm *kvm;
	struct task *task;
	uint32_t id;
	gpa_t cr3;
	struct cpu_regs regs;
	struct paging_mode paging; /* what they say */
	uint64_t pdptrs[4];	   /* of a PAE guest, as CR3 loaded them */
	/* the MMU context */
	struct mmu_root root, prev_roots[MMU_NUM_PREV_ROOTS];
	struct kvm_mmu_page *pae_root[4]; /* one per GiB, where the guest has no 4-level tables */
	bool root_valid;
	struct mmu_stock stock;
	struct rcu_reader rcu;	/* of a lockless walk */
	struct rcu_reader srcu; /* of a fault */
	/* run state */
	enum vcpu_mode mode;
	uint32_t requests;
	cycles_t entered;	       /* time of the last entry; for the checkers */
	bool in_run;		       /* inside KVM_RUN */
	uint32_t exit_reason;	       /* enum kvm_exit_reason of the pending userspace exit */
	struct vcpu_restarts restarts; /* of the instruction that runs */
	uint64_t rip;		       /* of the instruction fetched last: the emulator reads it */
	bool mmio_read_pending;	       /* userspace is to answer a read of a device */
	bool mmio_store_follows;       /* the read is the first half of a read-modify-write */
	uint64_t operand;	       /* of a read-modify-write: what its store has, */
	unsigned operand_len;	       /* and its bytes */
	enum insn_store insn;	       /* how the instruction that runs stores */
	uint64_t retried_rip;  /* of the one that was run again last after an unprotection, */
	uint64_t retried_addr; /* and what it stored to; 0: none */
	bool mmio_fault;       /* an MMIO spte, or what is remembered, told that the fault is one */
	struct mmio_info mmio; /* of the device that was accessed last */
	struct vcpu_emulation emulated;
	struct {
		cycles_t start;
		unsigned exit;
		bool begun;
	} stall;			   /* out of the guest, for a watch */
	struct kvm_dirty_ring *dirty_ring; /* NULL: the dirty policy has none */
	struct vcpu_tlb tlb;
	struct cpu_log log;
	uint64_t stat[N_KVM_STATS]; /* only per-vCPU ones are used */
};

/* One fault on its way through the handler. */
struct kvm_page_fault {
	uint64_t addr; /* gva when shadowing a paging guest, else gpa */
	uint64_t error_code;
	bool exec, write, user, present, rsvd;
	bool map_writable;
	uint64_t mmu_seq; /* kvm->notifiers.seq when the host's page was looked up */
	int max_level, goal_level;
	gfn_t gfn;
	pfn_t pfn;
	struct kvm_memory_slot *slot;
};

/* A guest page-table walk by software. */
struct guest_walk {
	int level, max_level; /* of the last entry read; of the root */
	gfn_t table_gfn[ROOT_LEVEL_4];
	uint64_t ptes[ROOT_LEVEL_4]; /* by level - 1 */
	gpa_t pte_gpa[ROOT_LEVEL_4];
	unsigned pt_access[ROOT_LEVEL_4], pte_access;
	uint64_t prefetch_ptes[8];
	gfn_t gfn;
	uint64_t fault_code; /* when the guest itself must take the fault */
};

#endif
