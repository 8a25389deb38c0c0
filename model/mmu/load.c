// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

/* Roots: the shadow page that CR3 stands for, the four of a guest that does not page, or the one of
 * the nested tables; and the last three before it. */

static struct kvm_mmu_page *alloc_root(struct kvm_vcpu *v, gfn_t gfn, int level)
{
	union kvm_mmu_page_role role = {
		.level = level, .access = ACC_ALL, .direct = vcpu_direct(v)};
	struct kvm_mmu_page *sp = get_shadow_page(v, gfn, role);

	if (sp)
		sp->root_count++;
	return sp;
}

static int alloc_roots(struct kvm_vcpu *v)
{
	if (make_mmu_pages_available(v))
		return KVMSIM_ENOMEM;
	if (v->kvm->backend->get_root) {
		v->root.sp = v->kvm->backend->get_root(v);
		return v->root.sp ? 0 : KVMSIM_ENOMEM;
	}
	if (v->kvm->tdp_enabled || v->kvm->guest_paging) {
		gpa_t pgd = vcpu_direct(v) ? 0 : v->cr3;

		v->root.sp = alloc_root(v, pgd >> PAGE_SHIFT, ROOT_LEVEL_4);
		v->root.pgd = pgd;
		return v->root.sp ? 0 : KVMSIM_ENOMEM;
	}
	for (int i = 0; i < 4; i++) {
		v->pae_root[i] = alloc_root(v, (gfn_t)i << (30 - PAGE_SHIFT), PG_LEVEL_2M);
		if (!v->pae_root[i])
			return KVMSIM_ENOMEM;
	}
	return 0;
}

int kvm_mmu_load(struct kvm_vcpu *v)
{
	int r;

	if (!vcpu_direct(v) && !memslot_visible(v->task, v->kvm, v->cr3 >> PAGE_SHIFT))
		return kvmsim_err(sim_errors(v->kvm->sim), KVMSIM_EINVAL,
				  "vCPU %u: its CR3, %#llx, is in no memory slot", v->id,
				  (unsigned long long)v->cr3);
	r = mmu_lock(v->task, v->kvm);
	if (r)
		return r;
	r = alloc_roots(v);
	mmu_unlock(v->task, v->kvm);
	if (r)
		return r;
	v->root_valid = true;
	/* Where the root comes from is unknown: nothing cached may survive. */
	tlb_flush(&v->tlb);
	return 0;
}

static void put_root(struct task *t, struct kvm *kvm, struct kvm_mmu_page **sp,
		     struct list *invalid)
{
	unsigned nr;

	if (*sp && kvm->backend->put_root)
		kvm->backend->put_root(t, kvm, *sp);
	else if (*sp && !--(*sp)->root_count && (*sp)->role.invalid)
		prepare_zap_page(t, kvm, *sp, invalid, &nr);
	*sp = NULL;
}

void kvm_mmu_free_obsolete_roots(struct kvm_vcpu *v)
{
	struct kvm *kvm = v->kvm;
	struct list invalid;

	if (mmu_lock(v->task, kvm))
		return;
	list_init(&invalid);
	for (int i = 0; i < MMU_NUM_PREV_ROOTS; i++)
		if (v->prev_roots[i].sp && sp_obsolete(kvm, v->prev_roots[i].sp))
			put_root(v->task, kvm, &v->prev_roots[i].sp, &invalid);
	/* The four roots of a guest that does not page count as obsolete. */
	if (v->root_valid && (!v->root.sp || sp_obsolete(kvm, v->root.sp))) {
		put_root(v->task, kvm, &v->root.sp, &invalid);
		for (int i = 0; i < 4; i++)
			put_root(v->task, kvm, &v->pae_root[i], &invalid);
		v->root_valid = false;
	}
	commit_zap_page(v->task, kvm, &invalid);
	mmu_unlock(v->task, kvm);
}

static bool root_usable(const struct mmu_root *r, gpa_t pgd)
{
	return r->sp && r->pgd == pgd && !r->sp->role.invalid;
}

/* The current root goes to the front of the previous ones and the one for @pgd, if it is among
 * them, takes its place; else the last is let go. */
static bool find_cached_root(struct kvm_vcpu *v, gpa_t pgd)
{
	struct mmu_root tmp;

	if (root_usable(&v->root, pgd))
		return true;
	for (int i = 0; i < MMU_NUM_PREV_ROOTS; i++) {
		tmp = v->root;
		v->root = v->prev_roots[i];
		v->prev_roots[i] = tmp;
		if (root_usable(&v->root, pgd))
			return true;
	}
	return false;
}

void kvm_mmu_new_pgd(struct kvm_vcpu *v, gpa_t cr3)
{
	struct list invalid;

	if (vcpu_direct(v))
		return;
	charge(v->task, COUNT_root_switch, 1);
	touch_shared(v->task); /* a root may be made invalid meanwhile, and no lock is held */
	task_assert_first(v->task, "its vCPU's roots and requests");
	if (find_cached_root(v, cr3)) {
		v->requests |= REQ_LOAD_MMU_PGD;
		v->root.sp->write_flooding = 0;
		v->root_valid = true;
		return;
	}
	if (v->root.sp && !mmu_lock(v->task, v->kvm)) {
		list_init(&invalid);
		put_root(v->task, v->kvm, &v->root.sp, &invalid);
		commit_zap_page(v->task, v->kvm, &invalid);
		mmu_unlock(v->task, v->kvm);
	}
	v->root_valid = false;
}
