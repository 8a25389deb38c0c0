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

/* No guest frame is at or above this: four levels. */
#define TDP_END_GFN (1ull << (9 * ROOT_LEVEL_4))

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
/* Lets go of mmu_lock (@shared: held for read) when others wait for it and the walk has come on
 * since the last time. True: go on with tdp_iter_next(), which starts again from the root. */
bool tdp_iter_cond_resched(struct tdp_iter *it, bool shared);

#define for_each_tdp_spte(it, end) for (; (it)->valid && (it)->gfn < (end); tdp_iter_next(it))

static inline bool tdp_iter_leaf(const struct tdp_iter *it)
{
	return spte_present(it->old_spte) && spte_last(it->old_spte, it->level);
}

/* ---- spte.c: changes, and what follows from them ---- */

/* mmu_lock is held for write. it->old_spte becomes what was there. */
void tdp_set_spte(struct tdp_iter *it, uint64_t spte);
/* mmu_lock is held for read. False: another was there first, it->old_spte is the value now. */
bool tdp_set_spte_atomic(struct tdp_iter *it, uint64_t spte);

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

/* ---- fault.c ---- */

/* A new table, told to the tracepoint, part of nothing yet. NULL: out of memory. */
struct kvm_mmu_page *tdp_alloc_sp(struct kvm_vcpu *v, gfn_t gfn, union kvm_mmu_page_role role);
int tdp_map(struct kvm_vcpu *v, struct kvm_page_fault *f);
uint64_t *tdp_walk_lockless(struct kvm_vcpu *v, uint64_t addr, uint64_t *spte);

/* ---- check.c ---- */
int tdp_check(const struct kvm *kvm);

#endif
