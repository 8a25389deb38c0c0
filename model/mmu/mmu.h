/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_MMU_H
#define KVMSIM_MMU_MMU_H

#include <stdbool.h>
#include <stdint.h>

#include "model/counts.h"
#include "model/mmu/state.h"

/*
 * The MMU's own view of a VM and a vCPU, which state.h has. Internal to model/mmu, model/policy and
 * model/guest; workloads see guest/vm.h and guest/vcpu.h.
 *
 * Everything here that another task can see (slots, shadow pages, sptes, bitmaps, requests, modes)
 * is touched only after touch_shared(): then the running task is the first in the total order.
 */

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
/* The guest's page @gfn holds no page table that is shadowed any more: takes mmu_lock itself.
 * False: it held none. */
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
