// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/tdp/tdp.h"
#include "model/policy/preset.h"

/*
 * Roots. One is shared by all vCPUs and counted by each; the MMU itself holds a reference until the
 * root is made invalid, as when a memslot goes, and everything below it was zapped.
 */

struct kvm_mmu_page *tdp_get_root(struct kvm_vcpu *v)
{
	const union kvm_mmu_page_role role = v->paging.root_role;
	struct kvm *kvm = v->kvm;
	struct kvm_mmu_page *root;

	mmu_lock_assert_held(v->task, kvm, "the roots");
	list_for_each_entry (root, &kvm->tdp_roots, link)
		if (root->role.word == role.word) {
			root->root_count++;
			return root;
		}
	mmu_stock_take_sp(v, false);
	root = tdp_alloc_sp(v->task, kvm);
	if (!root)
		return NULL;
	tdp_init_sp(v->task, kvm, v, root, 0, role);
	root->root_count = 2;
	list_add(&root->link, &kvm->tdp_roots);
	kvm->n_tdp_pages++;
	return root;
}

void tdp_put_root(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root)
{
	mmu_lock_assert_held(t, kvm, "the roots");
	touch_shared(t);
	task_assert_first(t, "a root's references");
	if (--root->root_count)
		return;
	list_del(&root->link);
	kvm->n_tdp_pages--;
	call_rcu(t, kvm, root);
}

struct kvm_mmu_page *tdp_next_root(struct task *t, struct kvm *kvm, struct kvm_mmu_page *prev,
				   bool only_valid)
{
	struct kvm_mmu_page *root = NULL;
	struct list *pos;

	touch_shared(t);
	task_assert_first(t, "the roots");
	for (pos = prev ? prev->link.next : kvm->tdp_roots.next; pos != &kvm->tdp_roots && !root;
	     pos = pos->next) {
		root = list_entry(pos, struct kvm_mmu_page, link);
		if (only_valid && root->role.invalid)
			root = NULL;
	}
	if (root)
		root->root_count++;
	if (prev)
		tdp_put_root(t, kvm, prev);
	return root;
}

void tdp_invalidate_roots(struct task *t, struct kvm *kvm)
{
	struct kvm_mmu_page *root;

	mmu_lock_assert_held(t, kvm, "the roots");
	list_for_each_entry (root, &kvm->tdp_roots, link)
		if (!root->role.invalid) {
			root->zap_scheduled = true;
			root->role.invalid = 1;
		}
}

static void zap_level(struct task *t, struct kvm *kvm, struct kvm_mmu_page *root, int level)
{
	/* No further than the CPU's physical addresses reach. */
	gfn_t end = 1ull << (kvm->gpa_bits - PAGE_SHIFT);
	struct tdp_iter it;

	tdp_iter_begin(&it, t, kvm, root, level, 0, COUNT_tdp_spte);
	for_each_tdp_spte(&it, end)
	{
		if (tdp_iter_cond_resched(&it, true))
			continue;
		while (spte_present(it.old_spte) && it.level <= level)
			if (tdp_set_spte_atomic(&it, 0))
				break;
	}
	tdp_iter_end(&it);
}

void tdp_zap_invalidated_roots(struct task *t, struct kvm *kvm)
{
	struct kvm_mmu_page *root;

	if (mmu_read_lock(t, kvm, "kvm_tdp_mmu_zap_invalidated_roots"))
		return;
	for_each_tdp_root(t, kvm, root, false)
	{
		if (!root->zap_scheduled)
			continue;
		root->zap_scheduled = false;
		/* By the gigabyte first, so that no single removal is too long. No flush: a vCPU
		 * flushes when it loads its next root. */
		if (kvm->preset->zap_by_pages) {
			zap_level(t, kvm, root, PG_LEVEL_4K);
			zap_level(t, kvm, root, PG_LEVEL_2M);
		}
		zap_level(t, kvm, root, PG_LEVEL_1G);
		zap_level(t, kvm, root, ROOT_LEVEL_4);
		tdp_put_root(t, kvm, root);
	}
	mmu_read_unlock(t, kvm);
}
