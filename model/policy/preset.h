/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_POLICY_PRESET_H
#define KVMSIM_POLICY_PRESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A kernel of an era, as a bundle of policies and algorithms, so that an old figure is predicted
 * with what was old then.
 */
enum bitmap_scheme {
	BITMAP_SNAPSHOT, /* words are exchanged one by one under mmu_lock (since 3.3) */
	BITMAP_SWAP	 /* an empty bitmap takes the full one's place, with the set of memslots */
};

/* Where large mappings are split ahead of the stores, unless the module's parameter says no. */
enum eager_split {
	EAGER_SPLIT_NONE,
	EAGER_SPLIT_TDP, /* in nested tables, with tdp_mmu=1 (since 5.18) */
	EAGER_SPLIT_ALL	 /* in shadow pages too */
};

/* What the TDP MMU does about sptes that could be larger, when logging ends. */
enum tdp_collapse {
	TDP_ZAP_LEAVES, /* takes each out, and flushes for each */
	TDP_ZAP_TABLES, /* takes the tables out that they are in (since 5.19) */
	TDP_RECOVER /* puts the larger one in the table's place, and flushes once (since 6.13) */
};

struct kvm_preset {
	const char *name;
	const char *summary;
	const char *dirty, *spte; /* default policies */
	const char *mmulock;	  /* the same; NULL: by mmu_lock_rw and tdp_mmu */
	enum bitmap_scheme bitmap;
	enum eager_split eager_split;
	unsigned prefetch;    /* aligned group of sptes filled per fault; 0: only the one */
	unsigned hash_shift;  /* shadow page hash: 1 << hash_shift buckets */
	bool fast_page_fault; /* write protection of logging is lifted without mmu_lock */
	bool mmu_lock_rw;     /* an rwlock, and long walks look who waits for it; otherwise a
			       * spinlock. Policies of FAMILY_MMULOCK override the lock */
	bool huge_pages;      /* what it does with large host pages is modelled */
	bool slot_bitmap;     /* shadow pages know the slots that they map: a walk skips the rest */
	bool list_prefetch;   /* walking a list prefetches the next node (list.h until 3.0) */
	bool protect_by_walk; /* enabling the log walks the shadow pages */
	bool tdp_mmu;	      /* two-dimensional paging has the TDP back end */
	/* and there: */
	enum tdp_collapse tdp_collapse;
	bool split_on_fault; /* a fault splits a large spte; otherwise it takes it out */
	bool split_unlocked; /* a split lets go of mmu_lock for its table, each time */
	bool zap_by_pages;   /* a root that goes loses its pages first, then its tables (by 6.12) */
	/* On either: */
	bool zap_all_fast;   /* what takes all shadow pages makes them obsolete, and takes them one
			      * by one later (3.11 on); otherwise under one hold of mmu_lock */
	unsigned prev_roots; /* that a vCPU keeps beside the current one, at most three (4.19 on);
			      * otherwise each load of CR3 looks its root up */
	bool invlpg_syncs;   /* INVLPG syncs an entry as a load of CR3 does (6.4 on); otherwise it
			      * makes it anew from the guest's */
	bool sync_by_access; /* a sync leaves an entry alone that is to grant what it does (6.4 on);
			      * otherwise it begins without A and D again */
	bool spte_keeps_dirty; /* a writable spte that takes the place of one has D as the first
				* had, and one that is synced A (by 6.18); otherwise neither */
	bool mmio_cache_generation; /* what a vCPU remembers of devices is void once the slots
				     * have changed (3.17 on) */
	bool emulator_retry;   /* it has a page unprotected and the instruction run again, if page
				* tables are not written with that (3.3 on) */
	bool mmio_fault_known; /* a fault that an MMIO spte told is not asked about again before
				* that (4.6 on) */
	bool retry_by_fault; /* and only if the page was protected; the same instruction and address
			      * once, until another write meets a protected page (6.12 on);
			      * otherwise until something is emulated */
	bool emulator_has_gpa; /* of a nested fault the emulator is told the address (4.12 on) */
	bool unprotect_nested; /* a nested walk's write to a table that is mapped read-only is taken
				* for one to a table that is shadowed, and tried again (4.11 on);
				* with retry_by_fault it is only where it is one */
	bool sregs_flush;      /* a vCPU whose special registers were set flushes (by 6.12) */
	bool get_kicks; /* GET and CLEAR make vCPUs exit, log of the CPU's or not (5.12 on) */
	bool host_read_faults; /* a read has the host's page as it is, the zero page too; otherwise
				* it asks for a writable one, as a store does (to 3.7) */
	bool int_mmu_seq;      /* a fault has the sequence of invalidations pass an int (5.16 to
				* 6.2): see mmu_invalidate_retry() */
	bool no_change_pte;    /* no MMU notifier for a page that takes another's place (6.10 on) */
	bool huge_zero_copy;   /* the host's mm: a store to the huge zero page gets a huge page
				* (6.13 on); otherwise the zero page is split */
	bool arm64; /* stage 2 of 64-bit Arm: the CPU broadcasts TLB invalidations, no vCPU
		     * exits for one; and there is one after rights were given back */
	bool zap_collapsible; /* disabling it looks for sptes that can be larger */
	/* Scheduling and locks (model/smp/smp.h): the host's part, and that of a guest of the same
	 * kernel. */
	const char *lock, *ple; /* "NAME,key=value", for policy_parse() */
	uint64_t halt_poll_ns;
	bool pv_ipi, kick_yields, steal_time;
};

/* NULL when there is none of that name. NULL as a name is the first. */
const struct kvm_preset *preset_find(const char *name);
/* All of them, in order; NULL past the last. */
const struct kvm_preset *preset_at(size_t i);

#endif
