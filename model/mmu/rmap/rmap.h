/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_RMAP_RMAP_H
#define KVMSIM_MMU_RMAP_RMAP_H

#include "model/mmu/mmu.h"

/*
 * The back end of shadow pages and reverse maps: shadow paging of guests that page, direct maps of
 * guests that do not, two-dimensional paging over the same structures. Internal to mmu/rmap.
 * Unless a comment says otherwise the caller holds mmu_lock.
 */

/* ---- rmap.c: who maps what ---- */

/* Adds @sptep to the chain; returns how many were there before, or KVMSIM_ENOMEM. */
long pte_list_add(struct task *t, struct kvm *kvm, struct kvm_rmap_head *head, uint64_t head_addr,
		  uint64_t *sptep);
void pte_list_remove(struct task *t, struct kvm *kvm, struct kvm_rmap_head *head,
		     uint64_t head_addr, uint64_t *sptep);

struct rmap_iter {
	struct pte_list_desc *desc;
	unsigned pos;
};
/* First and next spte of a chain; NULL at the end. Descriptors are touched. */
uint64_t *rmap_first(struct task *t, struct kvm *kvm, const struct kvm_rmap_head *head,
		     struct rmap_iter *it);
uint64_t *rmap_next(struct task *t, struct kvm *kvm, struct rmap_iter *it);
#define for_each_rmap_spte(t, kvm, head, it, sptep)                                                \
	for (sptep = rmap_first(t, kvm, head, it); sptep; sptep = rmap_next(t, kvm, it))

struct kvm_rmap_head *gfn_to_rmap(const struct kvm_memory_slot *slot, gfn_t gfn, int level,
				  uint64_t *addr);
/* The spte maps @gfn now. */
void rmap_add(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *sptep,
	      gfn_t gfn, unsigned access);
/* Clears a present leaf spte and takes it out of its chain. */
void drop_spte(struct task *t, struct kvm *kvm, uint64_t *sptep);
/* The same for an entry of a chain that is at hand. */
void zap_one_rmap_spte(struct task *t, struct kvm *kvm, struct kvm_rmap_head *head,
		       uint64_t head_addr, uint64_t *sptep);
/* All of a chain; true: there were some. zap_rmap(): that of @gfn's pages of @level. */
bool zap_all_rmap_sptes(struct task *t, struct kvm *kvm, struct kvm_rmap_head *head,
			uint64_t head_addr);
bool zap_rmap(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn, int level);

/* ---- page.c: shadow pages ---- */

struct kvm_mmu_page *spte_to_child(const struct kvm *kvm, uint64_t spte);
bool sp_obsolete(const struct kvm *kvm, const struct kvm_mmu_page *sp);

/* kvm_mmu_get_page: the shadow page of that gfn and role, found or made. NULL: out of memory. */
struct kvm_mmu_page *get_shadow_page(struct kvm_vcpu *v, gfn_t gfn, union kvm_mmu_page_role role);
/* The child below @sptep: SP_EXISTS when it is linked there already, NULL: out of memory. */
#define SP_EXISTS ((struct kvm_mmu_page *)1)
struct kvm_mmu_page *get_child_sp(struct kvm_vcpu *v, const uint64_t *sptep, gfn_t gfn, bool direct,
				  unsigned access);
void link_shadow_page(struct kvm_vcpu *v, uint64_t *sptep, struct kvm_mmu_page *sp);
/* The table below a large spte that is going to be split, from kvm->split_stock where it is new.
 * Its entries may be in use already. */
struct kvm_mmu_page *get_split_sp(struct task *t, struct kvm *kvm, const uint64_t *sptep);
/* @sp in the place of the large spte, if there is one; @flush: before others can have it. */
void replace_by_table(struct task *t, struct kvm *kvm, uint64_t *sptep, struct kvm_mmu_page *sp,
		      bool flush);
void drop_parent_pte(struct task *t, struct kvm *kvm, struct kvm_mmu_page *child, uint64_t *sptep);
void page_zap_pte(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp, uint64_t *sptep);
/* The shadow pages in use that shadow the guest's table @gfn: the first, and the one after @sp. A
 * page may be prepared for zapping meanwhile. */
struct kvm_mmu_page *first_indirect_sp(struct task *t, struct kvm *kvm, gfn_t gfn);
struct kvm_mmu_page *next_indirect_sp(struct task *t, struct kvm *kvm,
				      const struct kvm_mmu_page *sp);
/* The hash chain that @gfn's are in. */
struct kvm_mmu_page *shadow_pages_of(const struct kvm *kvm, gfn_t gfn);
void clear_write_flooding(uint64_t *sptep);

/* ---- zap.c: taking shadow pages away ---- */

/* Unlinks @sp from above and below and moves it to @invalid, with the pages below it that are out
 * of step; counts the pages that went. True: others than @sp went too. */
bool prepare_zap_page(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp,
		      struct list *invalid, unsigned *nr);
/* Flushes and frees what was prepared. */
void commit_zap_page(struct task *t, struct kvm *kvm, struct list *invalid);
/* Frees what was prepared or, if nothing was, flushes if @flush. */
void flush_or_zap(struct task *t, struct kvm *kvm, struct list *invalid, bool flush);
/* How many more there may be. */
uint64_t available_mmu_pages(const struct kvm *kvm);
/* Frees old pages when few are left below the limit. 0, or KVMSIM_ENOMEM when none can be. */
int make_mmu_pages_available(struct kvm_vcpu *v);

/* ---- sync.c: shadow pages out of step with their tables ---- */

/* Entry @sptep leads to a page that is, or has such pages below it. */
void mark_unsync(struct task *t, struct kvm *kvm, uint64_t *sptep);
/* @sp is in step again, or gone. */
void unlink_unsync_page(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp);
/* Brings the sptes of @sp in line with its guest table, which may go on changing. 1: flush, 0, or
 * KVMSIM_EINVAL when it has no table any more: zap it. */
int sync_page(struct kvm_vcpu *v, struct kvm_mmu_page *sp);
/* Write-protects the tables of all pages below @parent that are out of step, and syncs them, batch
 * by batch. 0; or 1, a request left to go on, where others want mmu_lock and it is not @can_yield
 * that they have it in between. */
int mmu_sync_children(struct kvm_vcpu *v, struct kvm_mmu_page *parent, bool can_yield);
/* Prepares all pages below @parent that are out of step for zapping. */
unsigned zap_unsync_children(struct task *t, struct kvm *kvm, struct kvm_mmu_page *parent,
			     struct list *invalid);

/* ---- spte.c: making and setting sptes ---- */

/* Overwrites a spte that maps the same page. True: flush. */
bool spte_update(struct task *t, struct kvm *kvm, uint64_t *sptep, uint64_t spte);
/* make_spte() and mmu_set_spte(); @fault NULL: a prefetch. @slot NULL: a device, RET_PF_EMULATE. */
enum ret_pf set_spte(struct kvm_vcpu *v, struct kvm_memory_slot *slot, uint64_t *sptep,
		     unsigned access, gfn_t gfn, pfn_t pfn, const struct kvm_page_fault *fault);

/* ---- walk.c: shadow walks ---- */

struct shadow_walk {
	uint64_t addr;
	struct kvm_mmu_page *sp;
	uint64_t *sptep;
	int level;
	unsigned index;
};
void shadow_walk_init(struct shadow_walk *w, struct kvm_vcpu *v, uint64_t addr);
void shadow_walk_init_root(struct shadow_walk *w, struct kvm_mmu_page *root, uint64_t addr);
/* False at the end; else the next entry is w->sptep. */
bool shadow_walk_okay(struct shadow_walk *w);
void shadow_walk_next(struct shadow_walk *w, const struct kvm *kvm);
/* The same with the value read before, without mmu_lock. */
void shadow_walk_next_at(struct shadow_walk *w, const struct kvm *kvm, uint64_t spte);

/* ---- fetch.c ---- */

int fetch_guest_mapping(struct kvm_vcpu *v, struct kvm_page_fault *f, struct guest_walk *gw);
int direct_map(struct kvm_vcpu *v, struct kvm_page_fault *f);
/* A guest entry that is not taken over before it is used: not present, without A, or wrong. */
bool prefetch_invalid_gpte(const struct kvm_vcpu *v, uint64_t gpte);
/* What guest entry @gpte grants in @sp. Without D no W, so that the first write sets it. */
unsigned shadowed_access(const struct kvm_mmu_page *sp, uint64_t gpte);
/* Maps what guest entry @gpte says, unless there is a reason not to (@no_dirty_log: a slot that is
 * logged, and W). False: stop. */
bool prefetch_gpte(struct kvm_vcpu *v, struct kvm_mmu_page *sp, uint64_t *sptep, uint64_t gpte,
		   bool no_dirty_log);

/* ---- protect.c ---- */
bool write_protect_gfn_levels(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			      gfn_t gfn, int min_level);
/* The sptes of a chain. @pt_protect: the page becomes a shadowed page table, so W may not come back
 * by a fast fault. */
bool rmap_write_protect(struct task *t, struct kvm *kvm, const struct kvm_rmap_head *head,
			bool pt_protect);
bool rmap_clear_dirty(struct task *t, struct kvm *kvm, const struct kvm_rmap_head *head);

/* ---- slot.c ---- */

/* What is done to the rmaps of a slot's frames @first to @last, level by level. */
struct slot_pass {
	/* True: flush. May let go of mmu_lock, or lose it where the task is cancelled. */
	bool (*fn)(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		   struct kvm_rmap_head *head, uint64_t head_addr);
	int min_level, max_level;
	gfn_t first, last;
	bool flush_on_yield;
};
/* mmu_lock is let go between two of them when others wait for it. 1: flush, 0, or
 * KVMSIM_ECANCELED, with or without the lock, or what mmu_lock() said. */
int slot_handle_rmaps(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		      const struct slot_pass *p);
int rmap_protect_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, int min_level);
int rmap_clear_dirty_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);
bool rmap_unmap_range(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t start,
		      gfn_t end, bool may_yield);
int rmap_zap_collapsible(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);

/* ---- split.c ---- */
int rmap_split_huge(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t start,
		    gfn_t end, bool locked);

/* ---- ../check.c ---- */
int rmap_check(const struct kvm *kvm);

#endif
