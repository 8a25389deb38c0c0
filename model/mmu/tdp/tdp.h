/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_TDP_TDP_H
#define KVMSIM_MMU_TDP_TDP_H

#include "model/mmu/mmu.h"

/*
 * The back end of two-dimensional paging without reverse maps, Linux's TDP MMU of 6.1: one tree of
 * page tables for all vCPUs, found by guest frame. Faults install sptes by compare-and-exchange
 * with mmu_lock held for read, so that they run in parallel; a table that is taken out is freed
 * after an RCU grace period. Internal to mmu/tdp.
 */

/* What a walk finds in an entry of a table that is being taken out, or while TLBs are flushed
 * before something else takes its place: not present, and nobody may put anything there. */
#define REMOVED_SPTE 0x5a0ull

/* ---- iter.c: walks in the order of frames, a table before what it leads to ---- */

struct tdp_iter {
	struct task *t;
	struct kvm *kvm;
	struct rcu_reader rcu;
	uint16_t count;		       /* what an entry read is charged as */
	gfn_t next_gfn;		       /* the frame that the walk is on its way to */
	gfn_t yielded_gfn;	       /* the same when it last let go of mmu_lock */
	uint64_t *table[ROOT_LEVEL_4]; /* by level - 1 */
	uint64_t *sptep;
	uint64_t old_spte; /* *sptep when it was read */
	gfn_t gfn;	   /* the first frame that *sptep maps */
	int root_level, min_level, level;
	bool valid, yielded;
};

/* An RCU read section around a walk from @gfn on, down to @min_level. */
void tdp_iter_begin(struct tdp_iter *it, struct task *t, struct kvm *kvm, struct kvm_mmu_page *root,
		    int min_level, gfn_t gfn, uint16_t count);
void tdp_iter_end(struct tdp_iter *it);
void tdp_iter_next(struct tdp_iter *it);
/* Whether others wait for mmu_lock and the walk has come on since it last let go. */
bool tdp_iter_need_resched(struct tdp_iter *it);
/* Lets go of mmu_lock (@shared: held for read), and takes it again, unless the task is cancelled.
 * After it: tdp_iter_next(), which starts again from the root. */
void tdp_iter_unlock(struct tdp_iter *it, bool shared);
void tdp_iter_relock(struct tdp_iter *it, bool shared, const char *caller);
/* All of these. True: it did, and the walk goes on with tdp_iter_next(). */
bool tdp_iter_cond_resched(struct tdp_iter *it, bool shared);

#define for_each_tdp_spte(it, end) for (; (it)->valid && (it)->gfn < (end); tdp_iter_next(it))

static inline bool tdp_iter_leaf(const struct tdp_iter *it)
{
	return spte_present(it->old_spte) && spte_last(it->old_spte, it->level);
}

static inline bool tdp_iter_huge(const struct tdp_iter *it)
{
	return spte_present(it->old_spte) && (it->old_spte & PT_PAGE_SIZE);
}

/* ---- spte.c: changes, and what follows from them ---- */

/* mmu_lock is held for write. it->old_spte becomes what was there. */
void tdp_set_spte(struct tdp_iter *it, uint64_t spte);
/* mmu_lock is held for read. False: another was there first, it->old_spte is the value now. */
bool tdp_set_spte_atomic(struct tdp_iter *it, uint64_t spte);
/* The same, to not present: nothing takes its place before the TLBs are flushed. */
bool tdp_zap_spte_atomic(struct tdp_iter *it);

/* ---- root.c ---- */

struct kvm_mmu_page *tdp_get_root(struct kvm_vcpu *v);
void tdp_put_root(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root);
void tdp_invalidate_roots(struct task *t, struct kvm *kvm);
void tdp_zap_invalidated_roots(struct task *t, struct kvm *kvm);
/* The root after @prev (NULL: the first), with a reference taken, which @prev gives up. */
struct kvm_mmu_page *tdp_next_root(struct task *t, struct kvm *kvm, struct kvm_mmu_page *prev,
				   bool only_valid);
#define for_each_tdp_root(t, kvm, root, only_valid)                                                \
	for (root = tdp_next_root(t, kvm, NULL, only_valid); root;                                 \
	     root = tdp_next_root(t, kvm, root, only_valid))

/* ---- table.c: new tables, and those that take the place of something larger ---- */

/* A table that is part of nothing yet. NULL: out of memory. */
struct kvm_mmu_page *tdp_alloc_sp(struct task *t, struct kvm *kvm);
/* Makes it the one that holds @gfn's in @role, and tells the tracepoint. @v may be NULL. */
void tdp_init_sp(struct task *t, struct kvm *kvm, const struct kvm_vcpu *v, struct kvm_mmu_page *sp,
		 gfn_t gfn, union kvm_mmu_page_role role);
/* The same of one below the entry that @it is at. */
void tdp_init_child_sp(struct tdp_iter *it, const struct kvm_vcpu *v, struct kvm_mmu_page *sp);
/* Puts it there; @shared: mmu_lock is held for read. False: another changed the entry meanwhile. */
bool tdp_link_sp(struct tdp_iter *it, struct kvm_mmu_page *sp, bool shared);
/* Puts @sp, filled, in the place of the large leaf that @it is at. False as above. */
bool tdp_split_huge_page(struct tdp_iter *it, const struct kvm_vcpu *v, struct kvm_mmu_page *sp,
			 bool shared);
int tdp_split_huge(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t start,
		   gfn_t end, bool locked);

/* ---- collapse.c ---- */
int tdp_zap_collapsible(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot);

/* ---- unmap.c ---- */
bool tdp_unmap_range(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t start,
		     gfn_t end, bool may_yield);

/* ---- fault.c ---- */

int tdp_map(struct kvm_vcpu *v, struct kvm_page_fault *f);
uint64_t *tdp_walk_lockless(struct kvm_vcpu *v, uint64_t addr, uint64_t *spte);

/* ---- check.c ---- */
int tdp_check(const struct kvm *kvm);

#endif
