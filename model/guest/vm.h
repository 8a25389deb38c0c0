/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_GUEST_VM_H
#define KVMSIM_GUEST_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/host/lock.h"
#include "model/mmu/stats.h"
#include "model/sim/sim.h"

/*
 * A VM, seen from its VMM: the ioctls. The one header that workloads need beside vcpu.h.
 *
 * Functions that take a task run in virtual time on that task and charge it; the others are free
 * and are for building a scene before the clock starts. Names and order of effects are those of
 * the kernel's ioctls (Documentation/virt/kvm/api.rst).
 */
struct kvm;
struct kvm_vcpu;
struct dirty_policy;
struct spte_policy;
struct policy_params;
struct kvm_observer;
struct kvm_watch;
struct cpu_personality;
struct cache;

enum kvm_paging {
	PAGING_SHADOW, /* npt=0: shadow page tables; direct ones while the guest does not page */
	PAGING_TDP     /* npt=1: over the rmap back end (tdp_mmu=0), or the preset's own */
};
/* What a new vCPU's registers say: its guest may change them. */
enum guest_paging_mode {
	GUEST_FLAT32, /* CR0.PG=0 */
	GUEST_LONG64, /* 4-level, 4K and 2M PTEs, CR0.WP=1 */
	GUEST_PAE,    /* 32-bit, 3-level, 4K and 2M PTEs, CR0.WP=1 */
	GUEST_32BIT /* 32-bit, 2-level with 4-byte entries, 4K and 4M PTEs (CR4.PSE=1), CR0.WP=1 */
};

/* The module's parameter eager_page_split: whether large mappings are split when logging begins (or
 * at the first CLEAR), not by the first store to each. */
enum kvm_eager_page_split {
	EAGER_PAGE_SPLIT_PRESET, /* as the kernel's default is */
	EAGER_PAGE_SPLIT_OFF,
	EAGER_PAGE_SPLIT_ON /* where the preset's kernel does it at all */
};

struct kvm_vm_opts {
	struct sim *sim;
	enum kvm_paging paging;
	enum guest_paging_mode mode;
	const char *preset;	 /* "6.1-shadow" (NULL), "6.1-tdp"...: algorithms */
	const char *dirty;	 /* "mask", "hybrid", or "walk,key=value"; NULL: the preset's */
	const char *spte;	 /* "none,flood=5"; NULL: the preset's */
	const char *mmulock;	 /* "spin", "rwlock"; NULL: the preset's */
	const char *personality; /* "tcg", "amd", "intel", ...; NULL: "tcg" */
	const struct kvm_observer *observer; /* may be NULL */
	const struct kvm_watch *watch;	     /* of ioctls and stalls, may be NULL: watch.h */
	struct cache *cache; /* touched by the host's structures; NULL: no cache model */
	bool keep_stores;    /* keep what the guest stores in every page, not only in pages that
			      * exist (see kvm_write_guest_u64): for guests that build their own
			      * page tables in fresh memory */
	enum kvm_eager_page_split eager_page_split;
	uint64_t background_sps; /* active shadow pages of the rest of the guest, which a walk meets
				  * and the trace does not show (see --shadow-pages) */
	uint64_t invalidations;	 /* MMU notifiers' that the VM has had before: its sequence of them
				  * begins there */
	uint32_t restarts; /* of one instruction, until it is taken for a livelock beside other
			    * tasks (mmu/livelock.h); 0: 2^20 */
	bool no_irqchip; /* the VMM has the interrupt controller, on Arm: each exit sets the timer's
			  * state at the host's, under a lock that all CPUs share */
	bool check;	 /* keep the checkers on: every store reported, sptes consistent */
};

/* Errors: KVMSIM_ENOENT (policy, preset or personality, with the names that exist),
 * KVMSIM_EPARSE (parameter), KVMSIM_EUNSUPPORTED (pair that cannot work), KVMSIM_ENOMEM. */
int kvm_create_vm(const struct kvm_vm_opts *opts, struct kvm **out);
/* Page frames that a guest can address on the CPU @personality, whose name kvm_create_vm() takes;
 * 0: there is none of that name. */
uint64_t kvm_guest_frames(const char *personality);
/* After sim_destroy() where tasks may be alive (interrupted, failed): they unwind through the VM.
 * NULL is fine. */
void kvm_destroy_vm(struct kvm *kvm);
int kvm_create_vcpu(struct kvm *kvm, struct kvm_vcpu **out);

#define KVM_MEM_LOG_DIRTY_PAGES 1u
#define KVM_MEM_READONLY	2u /* a store is handed to userspace, as a device's is */

struct kvm_memory_region {
	uint32_t slot;
	uint32_t flags; /* KVM_MEM_LOG_DIRTY_PAGES, KVM_MEM_READONLY */
	uint64_t base_gfn;
	uint64_t npages;     /* 0 deletes the slot */
	bool host_populated; /* every host page present and writable before the first fault */
	unsigned host_level; /* size of the host's pages: 0, 1: 4 KiB; 2: 2 MiB, as transparent huge
			      * pages are; 3: 1 GiB, as hugetlbfs has them. They lie as the guest's
			      * frames do; where the slot has no whole one it has smaller ones */
	bool host_anonymous; /* private memory: a page that the guest reads before it stores to it
			      * is the host's zero page, which is not mapped writable, nor dirty for
			      * being read; with @host_level 2 there are huge pages where a fault
			      * finds 2 MiB untouched. host_madvise_dontneed() and host_mprotect()
			      * are for such memory. Otherwise it is as a shared file is: the first
			      * access, a read too, makes a page present and writable */
};
/* KVM_SET_USER_MEMORY_REGION: creates, deletes, moves, or changes flags. Errors: KVMSIM_EINVAL
 * (overlap, a change of size or of KVM_MEM_READONLY, 2^31 pages or more, beyond what a gpa of 52
 * bits can reach, 48 with PAGING_TDP, no such size of pages), KVMSIM_EUNSUPPORTED (a large size, in
 * an era whose way with large pages is not modelled; moved by a part of a large page),
 * KVMSIM_ENOMEM, KVMSIM_ECANCELED. */
int kvm_set_user_memory_region(struct task *t, struct kvm *kvm, const struct kvm_memory_region *r);

/* KVM_SET_NR_MMU_PAGES: at most so many shadow pages, from now on whatever the slots' size. Errors:
 * KVMSIM_EINVAL (fewer than 64), KVMSIM_ECANCELED. */
int kvm_set_nr_mmu_pages(struct task *t, struct kvm *kvm, uint64_t n);

/* KVM_GET_DIRTY_LOG: @bitmap of (npages + 63) / 64 words is overwritten. Returns the number of
 * bits set, or KVMSIM_ENOENT (no such slot, or not logged), KVMSIM_EUNSUPPORTED (there are dirty
 * rings), KVMSIM_ECANCELED. */
long kvm_get_dirty_log(struct task *t, struct kvm *kvm, uint32_t slot, uint64_t *bitmap);

/* KVM_CLEAR_DIRTY_LOG, where the dirty policy leaves that to the VMM: of @npages pages from
 * @first_page, those set in @bitmap are no longer dirty, and their next store is reported. Bit 0 of
 * @bitmap is @first_page's; it has (npages + 63) / 64 words. 0, or KVMSIM_EINVAL (@first_page not a
 * multiple of 64, @npages neither one nor up to the slot's end, beyond the end), KVMSIM_ENOENT (no
 * such slot, or not logged), KVMSIM_EUNSUPPORTED (KVM_GET_DIRTY_LOG clears), KVMSIM_ECANCELED. */
int kvm_clear_dirty_log(struct task *t, struct kvm *kvm, uint32_t slot, uint64_t first_page,
			uint64_t npages, const uint64_t *bitmap);

/* What a VMM does that wants the log: KVM_GET_DIRTY_LOG, then, where that does not clear,
 * KVM_CLEAR_DIRTY_LOG of what it got in chunks of the dirty policy's size, leaving out those
 * without a dirty page. Where vCPUs log into rings: kvm_reap_dirty_rings() (ring.h); the bitmap has
 * what was reaped since the last call for this slot, by whomever. Returns and errors as
 * kvm_get_dirty_log(). */
long kvm_collect_dirty_log(struct task *t, struct kvm *kvm, uint32_t slot, uint64_t *bitmap);

/* The VMM's madvise(MADV_DONTNEED) and mprotect(PROT_READ, or with PROT_WRITE) of @npages pages
 * from
 * @first_page on of the slot's memory. What was given back reads as zero. A guest's store to what
 * is read-only ends its KVM_RUN with EFAULT, here the run, with a message and KVMSIM_EINVAL.
 * Errors: KVMSIM_ENOENT (no such slot), KVMSIM_EINVAL (no pages, or beyond its end),
 * KVMSIM_EUNSUPPORTED (not anonymous memory), KVMSIM_ENOMEM, KVMSIM_ECANCELED. */
int host_madvise_dontneed(struct task *t, struct kvm *kvm, uint32_t slot, uint64_t first_page,
			  uint64_t npages);
int host_mprotect(struct task *t, struct kvm *kvm, uint32_t slot, uint64_t first_page,
		  uint64_t npages, bool writable);
/* The VMM changes its own address space (maps a thread's stack): under mmap_lock, so that it waits
 * for the vCPUs whose host pages are being made, and others wait behind it. KVMSIM_ECANCELED. */
int kvm_change_address_space(struct task *t, struct kvm *kvm);

/* Pages of the VMM's own memory are unmapped or protected where no slot has them (a thread's
 * stack): the MMU notifier tells KVM, which finds nothing to zap. */
void kvm_unmap_hva_elsewhere(struct task *t, struct kvm *kvm);

/* Guest memory, as the host sees it, for page tables, op lists and code: pages that were written
 * here exist, and what the guest stores in them is kept; others read as zero (but see keep_stores
 * above). No time passes. */
void kvm_write_guest_u64(struct kvm *kvm, uint64_t gpa, uint64_t value);
uint64_t kvm_read_guest_u64(struct kvm *kvm, uint64_t gpa);

/* ---- what happened ---- */

/* KVM_GET_STATS_FD's names: enum kvm_stat_id in model/mmu/stats.h. */
uint64_t kvm_stat(const struct kvm *kvm, enum kvm_stat_id id);

uint64_t kvm_active_shadow_pages(const struct kvm *kvm);
/* Exclusive holds of mmu_lock, and those for reading, which only the TDP MMU has: since the VM's
 * creation or the last reset. */
struct lock_stats kvm_mmu_lock_stats(const struct kvm *kvm);
struct lock_stats kvm_mmu_lock_read_stats(const struct kvm *kvm);
void kvm_mmu_lock_stats_reset(struct kvm *kvm);

/* Runs every consistency check: sptes agree with guest PTEs and memslots, rmaps and parent ptes
 * are exact inverses, no TLB entry grants what its spte denies, no store was lost.
 * 0 or KVMSIM_ECHECK with a message. */
int kvm_check(const struct kvm *kvm);

/* The checker's tallies: reports of pages not written since the harvest before. */
uint64_t kvm_false_dirties(const struct kvm *kvm);
uint64_t kvm_lost_stores(const struct kvm *kvm);

#endif
