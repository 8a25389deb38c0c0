// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

#include "model/policy/preset.h"

/* Roots: the shadow page that CR3 stands for, the four of a guest that does not page, or the one of
 * the nested tables; and the last three before it. */

static struct kvm_mmu_page *alloc_root(struct kvm_vcpu *v, gfn_t gfn, unsigned quadrant, int level)
{
	union kvm_mmu_page_role role = v->paging.root_role;
	struct kvm_mmu_page *sp;

	role.level = level;
	role.quadrant = quadrant;
	sp = get_shadow_page(v, gfn, role);
	if (sp)
		sp->root_count++;
	return sp;
}

/* One for each GiB: of all of memory, of a guest's directories of PAE, or of the quarters of its
 * one directory with 4-byte entries. */
static int alloc_pae_roots(struct kvm_vcpu *v)
{
	for (unsigned i = 0; i < 4; i++) {
		gpa_t gpa = v->cr3;
		unsigned quadrant = 0;

		if (!v->paging.level) {
			gpa = (gpa_t)i << 30;
		} else if (v->paging.level == PT32_ROOT_LEVEL) {
			quadrant = i;
		} else {
			gpa = v->pdptrs[i] & PT_ADDR_MASK;
			if (!(v->pdptrs[i] & PT_PRESENT))
				continue;
		}
		v->pae_root[i] = alloc_root(v, gpa >> PAGE_SHIFT, quadrant, PG_LEVEL_2M);
		if (!v->pae_root[i])
			return KVMSIM_ENOMEM;
	}
	return 0;
}

static int alloc_roots(struct kvm_vcpu *v)
{
	if (make_mmu_pages_available(v))
		return KVMSIM_ENOMEM;
	if (v->kvm->backend->get_root) {
		v->root.sp = v->kvm->backend->get_root(v);
		return v->root.sp ? 0 : KVMSIM_ENOMEM;
	}
	v->root.pgd = vcpu_direct(v) ? 0 : v->cr3;
	if (v->paging.root_role.level == PT32E_ROOT_LEVEL)
		return alloc_pae_roots(v);
	v->root.sp = alloc_root(v, v->root.pgd >> PAGE_SHIFT, 0, ROOT_LEVEL_4);
	return v->root.sp ? 0 : KVMSIM_ENOMEM;
}

/* The kernel would answer a root or a directory outside the slots with a triple fault. */
static int check_roots(struct kvm_vcpu *v)
{
	if (vcpu_direct(v))
		return 0;
	if (!memslot_visible(v->task, v->kvm, v->cr3 >> PAGE_SHIFT))
		return kvmsim_err(sim_errors(v->kvm->sim), KVMSIM_EINVAL,
				  "vCPU %u: its CR3, %#llx, is in no memory slot", v->id,
				  (unsigned long long)v->cr3);
	for (int i = 0; i < 4 && v->paging.level == PT32E_ROOT_LEVEL; i++)
		if ((v->pdptrs[i] & PT_PRESENT) &&
		    !memslot_visible(v->task, v->kvm, (v->pdptrs[i] & PT_ADDR_MASK) >> PAGE_SHIFT))
			return kvmsim_err(sim_errors(v->kvm->sim), KVMSIM_EINVAL,
					  "vCPU %u: its PDPTE %d, %#llx, leads to no memory slot",
					  v->id, i, (unsigned long long)v->pdptrs[i]);
	return 0;
}

int kvm_mmu_load(struct kvm_vcpu *v)
{
	int r = check_roots(v);

	if (r)
		return r;
	mmu_topup(v, !vcpu_direct(v));
	r = mmu_lock(v->task, v->kvm,
		     vcpu_direct(v) ? "mmu_alloc_direct_roots" : "mmu_alloc_shadow_roots");
	if (r)
		return r;
	r = alloc_roots(v);
	mmu_unlock(v->task, v->kvm);
	if (r)
		return r;
	v->root_valid = true;
	kvm_mmu_sync_roots(v);
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

/* Lets go of the current root or, by bit, of the previous ones. */
#define ROOT_CURRENT	 1u
#define ROOT_PREVIOUS(i) (2u << (i))
#define ROOTS_ALL	 (ROOT_CURRENT | (ROOT_PREVIOUS(MMU_NUM_PREV_ROOTS) - 1))
static void free_roots(struct kvm_vcpu *v, unsigned which)
{
	struct kvm *kvm = v->kvm;
	struct list invalid;

	if (!v->root_valid)
		which &= ~ROOT_CURRENT;
	for (int i = 0; i < MMU_NUM_PREV_ROOTS; i++)
		if (!v->prev_roots[i].sp)
			which &= ~ROOT_PREVIOUS(i);
	if (!which || mmu_lock(v->task, kvm, "kvm_mmu_free_roots"))
		return;
	list_init(&invalid);
	for (int i = 0; i < MMU_NUM_PREV_ROOTS; i++)
		if (which & ROOT_PREVIOUS(i))
			put_root(v->task, kvm, &v->prev_roots[i].sp, &invalid);
	if (which & ROOT_CURRENT) {
		put_root(v->task, kvm, &v->root.sp, &invalid);
		for (int i = 0; i < 4; i++)
			put_root(v->task, kvm, &v->pae_root[i], &invalid);
		v->root_valid = false;
	}
	commit_zap_page(v->task, kvm, &invalid);
	mmu_unlock(v->task, kvm);
}

/* PAE's four roots are synced whatever is below them. */
static bool out_of_step(const struct kvm_mmu_page *root)
{
	return !root || root->unsync || root->unsync_children;
}

void kvm_mmu_sync_roots(struct kvm_vcpu *v)
{
	if (vcpu_direct(v) || !v->root_valid)
		return;
	vcpu_clear_mmio_info(v, MMIO_GVA_ANY);
	touch_shared(v->task); /* the kernel looks without the lock, too */
	task_assert_first(v->task, "which shadow pages are in step");
	if (!out_of_step(v->root.sp) || mmu_lock(v->task, v->kvm, "kvm_mmu_sync_roots"))
		return;
	if (v->root.sp)
		(void)mmu_sync_children(v, v->root.sp, true);
	for (int i = 0; i < 4; i++)
		if (v->pae_root[i])
			(void)mmu_sync_children(v, v->pae_root[i], true);
	mmu_unlock(v->task, v->kvm);
}

void kvm_mmu_sync_prev_roots(struct kvm_vcpu *v)
{
	unsigned which = 0;

	touch_shared(v->task);
	task_assert_first(v->task, "which shadow pages are in step");
	for (int i = 0; i < MMU_NUM_PREV_ROOTS; i++)
		if (v->prev_roots[i].sp && out_of_step(v->prev_roots[i].sp))
			which |= ROOT_PREVIOUS(i);
	free_roots(v, which);
}

void kvm_mmu_unload(struct kvm_vcpu *v)
{
	free_roots(v, ROOTS_ALL);
	vcpu_clear_mmio_info(v, MMIO_GVA_ANY);
}

void kvm_mmu_free_obsolete_roots(struct kvm_vcpu *v)
{
	unsigned which = 0;

	touch_shared(v->task);
	task_assert_first(v->task, "the generation of shadow pages");
	for (int i = 0; i < MMU_NUM_PREV_ROOTS; i++)
		if (v->prev_roots[i].sp && sp_obsolete(v->kvm, v->prev_roots[i].sp))
			which |= ROOT_PREVIOUS(i);
	/* Four roots count as obsolete. */
	if (v->root_valid && (!v->root.sp || sp_obsolete(v->kvm, v->root.sp)))
		which |= ROOT_CURRENT;
	free_roots(v, which);
}

static bool root_usable(const struct kvm_vcpu *v, const struct mmu_root *r, gpa_t pgd)
{
	return r->sp && (vcpu_direct(v) || r->pgd == pgd) &&
	       r->sp->role.word == v->paging.root_role.word;
}

/* The current root goes to the front of the previous ones and the one for @pgd, if it is among
 * them, takes its place; else the last is let go. */
static bool keep_current_root(struct kvm_vcpu *v, gpa_t pgd)
{
	struct mmu_root tmp;

	if (root_usable(v, &v->root, pgd))
		return true;
	for (unsigned i = 0; i < v->kvm->preset->prev_roots; i++) {
		tmp = v->root;
		v->root = v->prev_roots[i];
		v->prev_roots[i] = tmp;
		if (root_usable(v, &v->root, pgd))
			return true;
	}
	v->root_valid = v->root.sp;
	free_roots(v, ROOT_CURRENT);
	return false;
}

/* There is none now: the one for @pgd is taken out of the previous ones. */
static bool find_previous_root(struct kvm_vcpu *v, gpa_t pgd)
{
	int i = 0;

	while (i < MMU_NUM_PREV_ROOTS && !root_usable(v, &v->prev_roots[i], pgd))
		i++;
	if (i == MMU_NUM_PREV_ROOTS)
		return false;
	v->root = v->prev_roots[i];
	v->root_valid = true;
	for (; i < MMU_NUM_PREV_ROOTS - 1; i++)
		v->prev_roots[i] = v->prev_roots[i + 1];
	v->prev_roots[i].sp = NULL;
	return true;
}

void kvm_mmu_new_pgd(struct kvm_vcpu *v, gpa_t cr3)
{
	charge(v->task, COUNT_root_switch, 1);
	touch_shared(v->task); /* a root may be made invalid meanwhile, and no lock is held */
	task_assert_first(v->task, "its vCPU's roots and requests");
	/* Four roots are not kept. */
	if (v->root_valid && !v->root.sp)
		free_roots(v, ROOT_CURRENT);
	if (v->root_valid ? !keep_current_root(v, cr3) : !find_previous_root(v, cr3))
		return;
	v->requests |= REQ_LOAD_MMU_PGD;
	vcpu_clear_mmio_info(v, MMIO_GVA_ANY); /* its gva may mean something else now */
	if (!vcpu_direct(v))
		v->root.sp->write_flooding = 0;
}

bool kvm_mmu_load_pdptrs(struct kvm_vcpu *v, gpa_t cr3)
{
	int r;

	touch_shared(v->task);
	r = load_pdptrs(v, cr3);
	if (r == PDPTRS_INVALID)
		return false;
	if (r == PDPTRS_CHANGED && !v->kvm->tdp_enabled)
		free_roots(v, ROOT_CURRENT);
	touch_shared(v->task);
	task_assert_first(v->task, "its vCPU's requests");
	v->requests |= REQ_LOAD_MMU_PGD;
	return true;
}

void kvm_init_mmu(struct kvm_vcpu *v)
{
	paging_mode_init(&v->paging, &v->regs, v->kvm->tdp_enabled, v->kvm->ad_enabled,
			 v->kvm->gpa_bits);
	tlb_flush(&v->tlb); /* the model's has what is allowed now, the CPU's what the tables say */
}

void kvm_mmu_reset_context(struct kvm_vcpu *v)
{
	kvm_mmu_unload(v);
	kvm_init_mmu(v);
}
