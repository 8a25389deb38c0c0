// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/check.h"
#include "model/mmu/tdp/tdp.h"

#define bad(kvm, ...) kvmsim_err(sim_errors((kvm)->sim), KVMSIM_ECHECK, "MMU check: " __VA_ARGS__)

struct tally {
	uint64_t leaves[MAX_HUGE_LEVEL + 1], pages;
};

static int check_leaf(const struct kvm *kvm, const struct kvm_mmu_page *sp, unsigned i,
		      struct tally *n)
{
	int r = check_leaf_host(kvm, sp, i);

	if (r)
		return r;
	n->leaves[sp->role.level]++;
	return 0;
}

/* Four levels deep at most. */
static int check_table(const struct kvm *kvm, const struct kvm_mmu_page *sp, struct tally *n)
{
	int r = 0;

	n->pages++;
	for (unsigned i = 0; i < PTES_PER_PAGE && !r; i++) {
		uint64_t spte = sp->spt[i];
		const struct kvm_mmu_page *child;

		if (!spte_present(spte)) {
			if (is_mmio_spte(kvm, spte))
				r = check_mmio_spte_place(kvm, sp, i);
			else if (spte)
				r = bad(kvm, "entry %u of a level %u table is left as removed", i,
					sp->role.level);
			continue;
		}
		if (spte_last(spte, sp->role.level)) {
			r = check_leaf(kvm, sp, i, n);
			continue;
		}
		child = kvm->page_of_pfn[spte_pfn(spte)];
		if (!child || child->role.level + 1 != sp->role.level ||
		    child->gfn != sp_gfn(sp, i))
			r = bad(kvm, "entry %u of a level %u table leads nowhere", i,
				sp->role.level);
		else
			r = check_table(kvm, child, n);
	}
	return r;
}

int tdp_check(const struct kvm *kvm)
{
	const struct kvm_mmu_page *root;
	struct tally n = {0};
	int r;

	list_for_each_entry (root, &kvm->tdp_roots, link) {
		r = check_table(kvm, root, &n);
		if (r)
			return r;
	}
	if (n.pages != kvm->n_tdp_pages)
		return bad(kvm, "%llu page tables are reachable, %llu are counted",
			   (unsigned long long)n.pages, (unsigned long long)kvm->n_tdp_pages);
	for (int l = PG_LEVEL_4K; l <= MAX_HUGE_LEVEL; l++)
		if (n.leaves[l] != kvm->stat[page_stat(l)])
			return bad(kvm, "%llu leaves of level %d, %s is %llu",
				   (unsigned long long)n.leaves[l], l, kvm_stat_name(page_stat(l)),
				   (unsigned long long)kvm->stat[page_stat(l)]);
	if (kvm->rcu.deferred || !list_empty(&kvm->rcu.readers))
		return bad(kvm, "a page table waits to be freed, and nobody walks");
	return 0;
}
