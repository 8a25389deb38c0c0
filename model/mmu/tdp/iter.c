// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/tdp/tdp.h"

static gfn_t round_gfn(gfn_t gfn, int level)
{
	return gfn & ~(pages_per_level(level) - 1);
}

/* A page that was freed under a reader has no level, or another's. */
static void read_entry(struct tdp_iter *it)
{
	charge(it->t, it->count, 1);
	it->old_spte = spte_read(it->t, it->kvm, it->sptep);
	if (!it->kvm->check || (int)sptep_to_sp(it->sptep)->role.level == it->level)
		return;
	sim_fail(it->kvm->sim, KVMSIM_ECHECK);
	kvmsim_err(sim_errors(it->kvm->sim), KVMSIM_ECHECK,
		   "task %s walks through a page table for gfn %#llx that was freed",
		   task_name(it->t), (unsigned long long)it->gfn);
}

static void enter_table(struct tdp_iter *it, gfn_t gfn)
{
	it->gfn = round_gfn(gfn, it->level);
	it->sptep = it->table[it->level - 1] + pt_index(it->gfn << PAGE_SHIFT, it->level);
	read_entry(it);
}

static void restart(struct tdp_iter *it)
{
	it->yielded = false;
	it->yielded_gfn = it->next_gfn;
	it->level = it->root_level;
	enter_table(it, it->next_gfn);
}

void tdp_iter_begin(struct tdp_iter *it, struct task *t, struct kvm *kvm, struct kvm_mmu_page *root,
		    int min_level, gfn_t gfn, uint16_t count)
{
	it->t = t;
	it->kvm = kvm;
	it->count = count;
	it->next_gfn = gfn;
	it->root_level = root->role.level;
	it->min_level = min_level;
	it->table[it->root_level - 1] = root->spt;
	it->valid = true;
	charge(t, COUNT_tdp_walk, 1);
	rcu_read_lock(t, kvm, &it->rcu);
	restart(it);
}

void tdp_iter_end(struct tdp_iter *it)
{
	rcu_read_unlock(it->t, it->kvm, &it->rcu);
}

static bool step_down(struct tdp_iter *it)
{
	if (it->level == it->min_level)
		return false;
	/* What it leads to may have been taken out since, or put there by who walks. */
	it->old_spte = spte_reread(it->t, it->sptep);
	if (!spte_present(it->old_spte) || spte_last(it->old_spte, it->level))
		return false;
	it->level--;
	it->table[it->level - 1] = it->kvm->page_of_pfn[spte_pfn(it->old_spte)]->spt;
	enter_table(it, it->next_gfn);
	return true;
}

static bool step_side(struct tdp_iter *it)
{
	if (spte_index(it->sptep) == PTES_PER_PAGE - 1)
		return false;
	it->gfn += pages_per_level(it->level);
	it->next_gfn = it->gfn;
	it->sptep++;
	read_entry(it);
	return true;
}

static bool step_up(struct tdp_iter *it)
{
	if (it->level == it->root_level)
		return false;
	it->level++;
	enter_table(it, it->gfn);
	return true;
}

void tdp_iter_next(struct tdp_iter *it)
{
	if (task_canceled(it->t)) { /* mmu_lock may be lost */
		it->valid = false;
		return;
	}
	if (it->yielded) {
		restart(it);
		return;
	}
	if (step_down(it))
		return;
	do {
		if (step_side(it))
			return;
	} while (step_up(it));
	it->valid = false;
}

bool tdp_iter_need_resched(struct tdp_iter *it)
{
	charge(it->t, COUNT_tdp_resched, 1);
	if (it->next_gfn == it->yielded_gfn)
		return false;
	return mmu_lock_contended(it->t, it->kvm);
}

void tdp_iter_unlock(struct tdp_iter *it, bool shared)
{
	rcu_read_unlock(it->t, it->kvm, &it->rcu);
	if (shared)
		mmu_read_unlock(it->t, it->kvm);
	else
		mmu_unlock(it->t, it->kvm);
}

void tdp_iter_relock(struct tdp_iter *it, bool shared, const char *caller)
{
	/* When it fails the task is cancelled, and what unlocks looks whether it is held. */
	if (shared)
		(void)mmu_read_lock(it->t, it->kvm, caller);
	else
		(void)mmu_lock(it->t, it->kvm, caller);
	rcu_read_lock(it->t, it->kvm, &it->rcu);
	it->yielded = true;
}

bool tdp_iter_cond_resched(struct tdp_iter *it, bool shared)
{
	if (!tdp_iter_need_resched(it))
		return false;
	tdp_iter_unlock(it, shared);
	tdp_iter_relock(it, shared, "tdp_mmu_iter_cond_resched");
	return true;
}
