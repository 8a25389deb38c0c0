/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_MMU_H
#define KVMSIM_MMU_MMU_H

#include <stdbool.h>
#include <stdint.h>

#include "model/counts.h"
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
 * The MMU's own view of a VM and a vCPU. Internal to model/mmu, model/policy and model/guest;
 * workloads see guest/vm.h and guest/vcpu.h.
 *
 * Everything here that another task can see (slots, shadow pages, sptes, bitmaps, requests, modes)
 * is touched only after touch_shared(): then the running task is the first in the total order.
 */
struct kvm_preset;
struct spte_policy;
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
	uint64_t mmio_mask, mmio_value;	  /* by which MMIO sptes are told; 0: there are none */
	unsigned mmio_access_mask;	  /* bits of ACC_* that they hold */
	unsigned prefetch; /* aligned group of sptes filled per fault; below 2: only the one */
	bool tdp_enabled;
	bool ad_enabled;	    /* the tables that KVM makes have A and D */
	bool eager_page_split;	    /* mappings are split ahead of the stores, on this back end */
	struct cpu_regs reset_regs; /* of a new vCPU */
	unsigned gpa_bits;	    /* of the guests' physical addresses */
	bool pdptrs_in_memory; /* nested paging reads the guest's PDPTEs there, as its other tables
				*/
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
	uint32_t lru_batch; /* host pages that wait to be moved to the active list, hostmem.c */

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
	uint64_t operand;	       /* of a read-modify-write: what its store has */
	enum insn_store insn;	       /* how the instruction that runs stores */
	uint64_t retried_rip;  /* of the one that was run again last after an unprotection, */
	uint64_t retried_addr; /* and what it stored to; 0: none */
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

/* [running] Before any touch of what another task can see; task_assert_first() stands beside each.
 * A cancelled task goes on, to an end that its caller finds with task_canceled(). */
static inline void touch_shared(struct task *t)
{
	(void)sync(t);
}

static inline void kvm_touch(struct task *t, struct kvm *kvm, uint64_t addr, uint32_t bytes,
			     bool write)
{
	if (kvm->cache && cache_touch(t, kvm->cache, addr, bytes, write) == KVMSIM_ENOMEM)
		kvm->dead = true;
}

static inline void kvm_prefetch(struct task *t, struct kvm *kvm, uint64_t addr, uint32_t bytes)
{
	if (kvm->cache && cache_prefetch(t, kvm->cache, addr, bytes) == KVMSIM_ENOMEM)
		kvm->dead = true;
}

static inline struct kvm_mmu_page *sptep_to_sp(const uint64_t *sptep)
{
	return (struct kvm_mmu_page *)((uintptr_t)sptep & ~(uintptr_t)(PAGE_SIZE - 1));
}

static inline unsigned spte_index(const uint64_t *sptep)
{
	return ((uintptr_t)sptep & (PAGE_SIZE - 1)) / sizeof(*sptep);
}

static inline uint64_t sptep_addr(const uint64_t *sptep)
{
	return sptep_to_sp(sptep)->spt_addr + spte_index(sptep) * sizeof(*sptep);
}

/* The slot of @gfn now: slots come and go under slots_lock, which no fault takes. */
static inline struct kvm_memory_slot *memslot_now(struct task *t, const struct kvm *kvm, gfn_t gfn)
{
	touch_shared(t);
	task_assert_first(t, "the memslots");
	return gfn_to_memslot(kvm, gfn);
}

/* Whether a slot has @gfn that is not about to be deleted. */
static inline bool memslot_visible(struct task *t, const struct kvm *kvm, gfn_t gfn)
{
	const struct kvm_memory_slot *slot = memslot_now(t, kvm, gfn);

	return slot && !(slot->flags & MEMSLOT_INVALID);
}

/* Whether the guest's memory at @gfn cannot be stored to. */
static inline bool memslot_readonly(struct task *t, const struct kvm *kvm, gfn_t gfn)
{
	const struct kvm_memory_slot *slot = memslot_now(t, kvm, gfn);

	return slot && (slot->flags & MEMSLOT_READONLY);
}

/* The slot of @gfn now, searched for and priced as the fault path does. */
static inline struct kvm_memory_slot *memslot_lookup(struct task *t, struct kvm *kvm, gfn_t gfn)
{
	struct kvm_memory_slot *slot = memslot_now(t, kvm, gfn);

	charge(t, COUNT_memslot_lookup, 1);
	if (slot)
		kvm_touch(t, kvm, slot->slot_addr, 64, false);
	return slot;
}

/* The slot's flags now, MEMSLOT_*. */
static inline uint32_t memslot_flags(struct task *t, const struct kvm_memory_slot *slot)
{
	touch_shared(t);
	task_assert_first(t, "a memslot's flags");
	return slot->flags;
}

/* [synced] Guest memory that the model keeps, see gmem.h. */
static inline uint64_t gmem_load(struct task *t, const struct kvm *kvm, gpa_t gpa, unsigned len)
{
	task_assert_first(t, "guest memory");
	return gmem_read(&kvm->gmem, gpa, len);
}

static inline void gmem_store(struct task *t, struct kvm *kvm, gpa_t gpa, unsigned len,
			      uint64_t value, bool create)
{
	task_assert_first(t, "guest memory");
	if (!gmem_write(&kvm->gmem, gpa, len, value, create))
		kvm->dead = true;
}

/* sptes are seen by hardware walks and fast faults, which take no lock. */
static inline uint64_t spte_read(struct task *t, struct kvm *kvm, const uint64_t *sptep)
{
	kvm_touch(t, kvm, sptep_addr(sptep), sizeof(*sptep), false);
	touch_shared(t);
	task_assert_first(t, "an spte");
	return *sptep;
}

/* Once more, when it was read just before: hardware and fast faults may have changed it. */
static inline uint64_t spte_reread(struct task *t, const uint64_t *sptep)
{
	touch_shared(t);
	task_assert_first(t, "an spte");
	return *sptep;
}

static inline void spte_write(struct task *t, struct kvm *kvm, uint64_t *sptep, uint64_t spte)
{
	kvm_touch(t, kvm, sptep_addr(sptep), sizeof(*sptep), true);
	touch_shared(t);
	task_assert_first(t, "an spte");
	*sptep = spte;
}

/* See mmio.h. */
static inline bool is_mmio_spte(const struct kvm *kvm, uint64_t spte)
{
	return kvm->mmio_mask && (spte & kvm->mmio_mask) == kvm->mmio_value;
}

/* No slot reaches beyond what a gpa of 52 bits, or nested tables of four levels, can. */
static inline gfn_t kvm_mmu_max_gfn(const struct kvm *kvm)
{
	return (1ull << ((kvm->tdp_enabled ? 48 : 52) - PAGE_SHIFT)) - 1;
}

static inline enum kvm_stat_id page_stat(int level)
{
	return level == PG_LEVEL_4K   ? STAT_pages_4k
	       : level == PG_LEVEL_2M ? STAT_pages_2m
				      : STAT_pages_1g;
}

static inline bool vcpu_direct(const struct kvm_vcpu *v)
{
	return v->paging.root_role.direct;
}

/* The bit of an error code that an access has from its privilege level. */
static inline uint64_t vcpu_user(const struct kvm_vcpu *v)
{
	return v->regs.cpl == 3 ? PFERR_USER : 0;
}

/* ---- trace.c ---- */
void kvm_trace(struct task *t, struct kvm *kvm, const struct kvm_vcpu *v,
	       struct kvm_trace_event *e);
#define kvm_trace_event(t, kvm, v, ...)                                                            \
	do {                                                                                       \
		if ((kvm)->observer)                                                               \
			kvm_trace(t, kvm, v, &(struct kvm_trace_event){__VA_ARGS__});              \
	} while (0)

/* An event about a shadow page: what it says is the page's. */
void kvm_trace_page(struct task *t, struct kvm *kvm, const struct kvm_vcpu *v, enum kvm_trace_id id,
		    const struct kvm_mmu_page *sp, bool created);

/* ---- flush.c ---- */
/* KVM_REQ_*: asks every vCPU, kicks those in guest mode and waits until they have left it. True
 * when an IPI was sent. */
bool kvm_make_all_cpus_request(struct task *t, struct kvm *kvm, uint32_t req);
void kvm_flush_remote_tlbs(struct task *t, struct kvm *kvm);
/* Between them the shadow pages that the vCPU reads are not freed: who frees them first flushes,
 * and waits for the end. */
void walk_lockless_begin(struct kvm_vcpu *v);
void walk_lockless_end(struct kvm_vcpu *v);

/* ---- load.c ---- */
/* The root for the current CR3, made if there is none. KVMSIM_ENOMEM, KVMSIM_ECANCELED, or
 * KVMSIM_EINVAL, with a message, where CR3 is in no slot (the kernel: a triple fault). */
int kvm_mmu_load(struct kvm_vcpu *v);
void kvm_mmu_free_obsolete_roots(struct kvm_vcpu *v);
/* What a load of CR3 flushes: the shadow pages below the current root that are out of step. */
void kvm_mmu_sync_roots(struct kvm_vcpu *v);
/* The previous roots that are out of step are let go of. */
void kvm_mmu_sync_prev_roots(struct kvm_vcpu *v);
void kvm_mmu_new_pgd(struct kvm_vcpu *v, gpa_t cr3);
/* The same, when a control register is written: what follows from it. False: the CPU answers with a
 * general-protection fault. */
bool kvm_mmu_load_pdptrs(struct kvm_vcpu *v, gpa_t cr3);
void kvm_mmu_unload(struct kvm_vcpu *v);
/* v->regs have changed: what they say of paging; and the roots let go of, since their role has. */
void kvm_init_mmu(struct kvm_vcpu *v);
void kvm_mmu_reset_context(struct kvm_vcpu *v);

/* ---- topup.c ---- */
/* Before a fault, or the making of a root: fills up what is low. @indirect: shadow pages of guest
 * tables may be made. */
void mmu_topup(struct kvm_vcpu *v, bool indirect);
/* A shadow page, of a guest table if @indirect, is made of the vCPU's stock; a descriptor of that
 * of the vCPU that runs on @t, if one does. */
void mmu_stock_take_sp(struct kvm_vcpu *v, bool indirect);
void mmu_stock_take_desc(struct task *t, const struct kvm *kvm);

/* ---- fault.c ---- */
/* An intercepted #PF or nested page fault. A positive enum ret_pf or a negative error. */
int kvm_mmu_page_fault(struct kvm_vcpu *v, uint64_t addr, uint64_t error_code);

/* ---- guest_walk.c ---- */
/* Walks the guest's tables for @addr; 1, or 0 with w->fault_code set when the guest must take the
 * fault. */
int guest_walk_addr(struct kvm_vcpu *v, struct guest_walk *w, gva_t addr, uint64_t access);
/* The PDPTE of @addr of a guest with PAE tables. [synced] */
uint64_t guest_pdpte(struct kvm_vcpu *v, gva_t addr);
/* What CR3 loads: the four PDPTEs at @cr3. Where one of them is invalid nothing is. [synced] */
enum { PDPTRS_INVALID, PDPTRS_SAME, PDPTRS_CHANGED };
int load_pdptrs(struct kvm_vcpu *v, gpa_t cr3);
/* Of the guest entry that entry @index of @sp, of level 1 or 2, shadows (of two such the first):
 * where it is, and its length. */
gpa_t sp_gpte_gpa(const struct kvm_mmu_page *sp, unsigned index);
static inline unsigned sp_gpte_bytes(const struct kvm_mmu_page *sp)
{
	return sp->role.has_4_byte_gpte ? 4 : 8;
}

/* The guest would have to handle a fault of its own: a message, KVMSIM_EINVAL. */
int guest_fault_error(const struct kvm_vcpu *v, gva_t gva, uint64_t code);

/* ---- dirty.c ---- */
/* A page of @slot is written or was made writable. @slot may be NULL or not logged. */
void mark_page_dirty_in_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			     gfn_t gfn);
void kvm_mark_page_dirty(struct task *t, struct kvm *kvm, gfn_t gfn);

/* ---- rmap/zap.c ---- */
#define MIN_ALLOC_MMU_PAGES 64 /* no VM is limited to fewer shadow pages */
void kvm_mmu_change_mmu_pages(struct task *t, struct kvm *kvm, uint64_t goal);
/* All of them become obsolete, and go; mmu_lock is taken. */
void kvm_mmu_zap_all_fast(struct task *t, struct kvm *kvm);
/* The same as the preset does it; and of those alone that MMIO sptes were put into, where there is
 * a list of them. */
void kvm_mmu_zap_all(struct task *t, struct kvm *kvm);
void kvm_mmu_zap_mmio_pages(struct task *t, struct kvm *kvm);
/* A write to a guest page table that is shadowed, by the emulator: takes mmu_lock itself. */
void kvm_mmu_pte_write(struct kvm_vcpu *v, gpa_t gpa, unsigned bytes);
/* The guest's page @gfn holds no page table that is shadowed any more: takes mmu_lock itself. False:
 * it held none. */
bool kvm_mmu_unprotect_page(struct task *t, struct kvm *kvm, gfn_t gfn);

/* ---- rmap/sync.c ---- */
/* INVLPG of a guest that pages over shadow pages: takes mmu_lock itself. */
void kvm_mmu_invlpg(struct kvm_vcpu *v, gva_t gva);
/* Before @gfn is mapped writable: the pages that shadow it as a table of 4K entries are out of step
 * from now on. False: it must stay write-protected. */
bool mmu_try_to_unsync_pages(struct task *t, struct kvm *kvm, const struct kvm_memory_slot *slot,
			     gfn_t gfn, bool can_unsync, bool prefetch);

/* ---- rmap/fetch.c, rmap/spte.c, rmap/page.c: what both back ends make mappings with ---- */
/* The level that slot and host allow for @gfn, at most @max_level; a look at the host's tables is
 * charged as @count. */
int max_mapping_level(struct task *t, struct kvm *kvm, const struct kvm_memory_slot *slot,
		      gfn_t gfn, int max_level, uint16_t count);
/* The largest page that guest, slot and host allow: f->goal_level, and f->pfn its first frame. */
void hugepage_adjust(struct kvm_vcpu *v, struct kvm_page_fault *f);
/* The spte for @pfn in a page like @sp, and its dirty bit where it grants W; @old is what is there
 * now. @can_unsync: a table that it would map writable may go out of step. *wrprot: W was asked for
 * and denied. */
uint64_t make_spte(struct kvm_vcpu *v, const struct kvm_mmu_page *sp, struct kvm_memory_slot *slot,
		   unsigned access, gfn_t gfn, pfn_t pfn, uint64_t old, bool prefetch,
		   bool can_unsync, bool host_writable, bool *wrprot);
uint64_t nonleaf_spte(const struct kvm *kvm, const struct kvm_mmu_page *sp);
/* An empty page of the pool. NULL, and kvm->dead: out of memory. */
struct kvm_mmu_page *alloc_page_table(struct task *t, struct kvm *kvm);
gfn_t sp_gfn(const struct kvm_mmu_page *sp, unsigned index);

/* ---- rmap/page.c ---- */
/* Before anything else: empty lists, and @background_sps pages that only a walk meets.
 * KVMSIM_ENOMEM. */
int kvm_mmu_init_vm(struct kvm *kvm, uint64_t background_sps);
void kvm_mmu_uninit_vm(struct kvm *kvm);

#endif
