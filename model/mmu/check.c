// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/check.h"

#include "model/mmu/rmap/rmap.h"

#define bad(kvm, ...) kvmsim_err(sim_errors((kvm)->sim), KVMSIM_ECHECK, "MMU check: " __VA_ARGS__)

/* Entries of a chain, and how many of them are @sptep (NULL: any). */
static uint64_t chain_count(const struct kvm_rmap_head *head, const uint64_t *sptep)
{
	const struct pte_list_desc *d;
	uint64_t n = 0;

	if (!head->val)
		return 0;
	if (!(head->val & 1))
		return !sptep || (const uint64_t *)head->val == sptep;
	for (d = (const struct pte_list_desc *)(head->val & ~(uintptr_t)1); d; d = d->more)
		for (unsigned i = 0; i < d->count; i++)
			n += !sptep || d->sptes[i] == sptep;
	return n;
}

/* A leaf that shadows a guest entry grants no more than that does. */
static int check_against_gpte(const struct kvm *kvm, const struct kvm_mmu_page *sp, unsigned i,
			      gfn_t gfn, uint64_t spte)
{
	uint64_t gpte = gmem_read(&kvm->gmem, sp_gpte_gpa(sp, i), sp_gpte_bytes(sp));
	/* Without CR0.WP a page that the guest has read-only may be the supervisor's to write. */
	bool wp = sp->role.cr0_wp || (spte & PT_USER);

	if (!(gpte & PT_PRESENT) || (gpte & PT_ADDR_MASK) >> PAGE_SHIFT != gfn)
		return bad(kvm, "spte %u of table %#llx maps gfn %#llx, the guest's entry is %#llx",
			   i, (unsigned long long)sp->gfn, (unsigned long long)gfn,
			   (unsigned long long)gpte);
	if (spte_writable(spte) && ((wp && !(gpte & PT_WRITABLE)) || !(gpte & PT_DIRTY)))
		return bad(kvm, "spte %u of table %#llx is writable, the guest's entry is %#llx", i,
			   (unsigned long long)sp->gfn, (unsigned long long)gpte);
	return 0;
}

int check_leaf_host(const struct kvm *kvm, const struct kvm_mmu_page *sp, unsigned i)
{
	uint64_t spte = sp->spt[i];
	gfn_t gfn = sp_gfn(sp, i);
	const struct kvm_memory_slot *slot = gfn_to_memslot(kvm, gfn);
	int level = sp->role.level;
	const char *what;

	if (!slot)
		return bad(kvm, "spte for gfn %#llx, which no slot has", (unsigned long long)gfn);
	if (spte_pfn(spte) != memslot_pfn(slot, gfn))
		return bad(kvm, "gfn %#llx maps pfn %#llx, its slot says %#llx",
			   (unsigned long long)gfn, (unsigned long long)spte_pfn(spte),
			   (unsigned long long)memslot_pfn(slot, gfn));
	what = host_mem_check(slot, gfn, level, spte);
	if (spte_writable(spte) && (slot->flags & MEMSLOT_READONLY))
		what = "its slot is read-only";
	if (what)
		return bad(kvm, "gfn %#llx, level %d, %s", (unsigned long long)gfn, level, what);
	return 0;
}

/* Whether a page shadows table @gfn that is to know of each store to it. */
static bool in_step(const struct kvm *kvm, gfn_t gfn)
{
	const struct kvm_mmu_page *sp;

	for (sp = shadow_pages_of(kvm, gfn); sp; sp = sp->hash_next)
		if (sp->gfn == gfn && !sp->role.direct && !sp_obsolete(kvm, sp) && !sp->unsync)
			return true;
	return false;
}

int check_mmio_spte_place(const struct kvm *kvm, const struct kvm_mmu_page *sp, unsigned i)
{
	const char *what = mmio_spte_check(kvm, sp->spt[i]);
	gfn_t gfn = mmio_spte_gfn(kvm, sp->spt[i]);

	if (what)
		return bad(kvm, "gfn %#llx: %s", (unsigned long long)gfn, what);
	if (sp->role.direct && gfn != sp_gfn(sp, i))
		return bad(kvm, "the MMIO spte of gfn %#llx is gfn %#llx's",
			   (unsigned long long)sp_gfn(sp, i), (unsigned long long)gfn);
	return 0;
}

static int check_leaf(const struct kvm *kvm, const struct kvm_mmu_page *sp, unsigned i)
{
	uint64_t spte = sp->spt[i], addr;
	gfn_t gfn = sp_gfn(sp, i);
	int level = sp->role.level, r = check_leaf_host(kvm, sp, i);

	if (r)
		return r;
	if (chain_count(gfn_to_rmap(gfn_to_memslot(kvm, gfn), gfn, level, &addr), &sp->spt[i]) != 1)
		return bad(kvm, "spte for gfn %#llx is not once in its rmap",
			   (unsigned long long)gfn);
	if (spte_writable(spte) && in_step(kvm, gfn))
		return bad(kvm, "table %#llx is writable, and a page that shadows it in step",
			   (unsigned long long)gfn);
	if (sp->role.direct || sp->unsync || level > PG_LEVEL_4K)
		return 0;
	return check_against_gpte(kvm, sp, i, gfn, spte);
}

static bool marked_unsync(const struct kvm_mmu_page *sp, unsigned i)
{
	return sp->unsync_child_bitmap[i / 64] >> (i % 64) & 1;
}

/* What is out of step can be found from above, by entries that are counted. */
static int check_unsync(const struct kvm *kvm, const struct kvm_mmu_page *sp)
{
	uint32_t marked = 0;

	for (unsigned i = 0; i < PTES_PER_PAGE; i++) {
		uint64_t spte = sp->spt[i];
		const struct kvm_mmu_page *child;

		marked += marked_unsync(sp, i);
		if (!spte_present(spte) || spte_last(spte, sp->role.level) || marked_unsync(sp, i))
			continue;
		child = spte_to_child(kvm, spte);
		if (child->unsync || child->unsync_children)
			return bad(kvm,
				   "entry %u of a level %u page leads to pages out of step, and "
				   "does not say so",
				   i, sp->role.level);
	}
	if (marked != sp->unsync_children || (marked && sp->role.level == PG_LEVEL_4K))
		return bad(kvm, "a level %u page has %u entries marked as unsync, %u are counted",
			   sp->role.level, marked, sp->unsync_children);
	if (sp->unsync && (sp->role.direct || sp->role.level > PG_LEVEL_4K))
		return bad(kvm, "a level %u page is out of step", sp->role.level);
	return 0;
}

/* A table that leads to others may never be out of step: its frame is tracked, and no other is. */
static int check_tracking(const struct kvm *kvm)
{
	uint64_t tables = 0, tracked = 0;
	const struct kvm_mmu_page *sp;

	list_for_each_entry (sp, &kvm->active_pages, link) {
		const struct kvm_memory_slot *slot = gfn_to_memslot(kvm, sp->gfn);

		if (sp->role.direct || sp->role.level == PG_LEVEL_4K || !slot)
			continue;
		tables++;
		if (!slot->write_track[sp->gfn - slot->base_gfn])
			return bad(kvm, "writes to table %#llx of level %u are not tracked",
				   (unsigned long long)sp->gfn, sp->role.level);
	}
	for (uint32_t s = 0; s < KVM_MAX_MEMSLOTS; s++)
		for (uint64_t i = 0; kvm->slots[s] && i < kvm->slots[s]->npages; i++)
			tracked += kvm->slots[s]->write_track[i];
	if (tables != tracked)
		return bad(kvm, "%llu shadowed tables lead to others, %llu are tracked",
			   (unsigned long long)tables, (unsigned long long)tracked);
	return 0;
}

/* Where a slot begins or ends within a large page there is none, nor where a table is shadowed:
 * each counts once. Together with that no shadowed table is without, the sum is enough. */
static int check_large_pages(const struct kvm *kvm, const struct kvm_memory_slot *slot, int level)
{
	const int32_t *disallowed = slot->disallow_lpage[level - 1];
	uint64_t n = memslot_lpages(slot, level), mask = pages_per_level(level) - 1;
	bool first = slot->base_gfn & mask, last = (slot->base_gfn + slot->npages) & mask;
	int64_t want = first + last - (first && last && n == 1), have = 0;
	const struct kvm_mmu_page *sp;

	list_for_each_entry (sp, &kvm->active_pages, link) {
		if (sp->role.direct || sp->gfn - slot->base_gfn >= slot->npages)
			continue;
		want++;
		if (disallowed[memslot_index(slot, sp->gfn, level)] <= 0)
			return bad(kvm,
				   "table %#llx is shadowed, and may be mapped by a page of "
				   "level %d",
				   (unsigned long long)sp->gfn, level);
	}
	for (uint64_t i = 0; i < n; i++)
		have += disallowed[i];
	if (have == want)
		return 0;
	return bad(kvm, "slot %u: %lld reasons against pages of level %d, %lld are counted",
		   slot->id, (long long)want, level, (long long)have);
}

/* Counters against what they count. Nobody runs. */
static int check_accounts(const struct kvm *kvm, const uint64_t *leaves)
{
	const struct kvm_mmu_page *sp;
	uint64_t indirect = 0;
	int r = 0;

	for (int l = PG_LEVEL_4K; l <= MAX_HUGE_LEVEL; l++)
		if (leaves[l] != kvm->stat[page_stat(l)])
			return bad(kvm, "%llu leaf sptes of level %d, %s is %llu",
				   (unsigned long long)leaves[l], l, kvm_stat_name(page_stat(l)),
				   (unsigned long long)kvm->stat[page_stat(l)]);
	list_for_each_entry (sp, &kvm->active_pages, link)
		indirect += !sp->role.direct;
	if (indirect != kvm->indirect_pages)
		return bad(kvm, "%llu tables are shadowed, %llu are counted",
			   (unsigned long long)indirect, (unsigned long long)kvm->indirect_pages);
	for (uint32_t s = 0; s < KVM_MAX_MEMSLOTS; s++)
		for (int l = PG_LEVEL_2M; kvm->slots[s] && l <= MAX_HUGE_LEVEL && !r; l++)
			r = check_large_pages(kvm, kvm->slots[s], l);
	return r;
}

static int check_sp(const struct kvm *kvm, const struct kvm_mmu_page *sp, uint64_t *leaves,
		    uint64_t *links)
{
	int r = 0;

	for (unsigned i = 0; i < PTES_PER_PAGE && !r; i++) {
		uint64_t spte = sp->spt[i];
		const struct kvm_mmu_page *child;

		if (is_mmio_spte(kvm, spte))
			r = check_mmio_spte_place(kvm, sp, i);
		if (!spte_present(spte))
			continue;
		if (spte_last(spte, sp->role.level)) {
			leaves[sp->role.level]++;
			r = check_leaf(kvm, sp, i);
			continue;
		}
		++*links;
		child = spte_to_child(kvm, spte);
		if (!child || child->role.level + 1 != sp->role.level || child->role.invalid)
			r = bad(kvm, "entry %u of a level %u page leads nowhere", i,
				sp->role.level);
		else if (chain_count(&child->parent_ptes, &sp->spt[i]) != 1)
			r = bad(kvm,
				"entry %u of a level %u page is not once among its child's "
				"parents",
				i, sp->role.level);
	}
	return r;
}

int rmap_check(const struct kvm *kvm)
{
	uint64_t leaves[MAX_HUGE_LEVEL + 1] = {0}, all_leaves = 0, links = 0, mapped = 0,
					 parents = 0, pages = 0, unsync = 0;
	const struct kvm_mmu_page *sp;
	int r;

	list_for_each_entry (sp, &kvm->active_pages, link) {
		r = check_sp(kvm, sp, leaves, &links);
		r = r ? r : check_unsync(kvm, sp);
		if (r)
			return r;
		unsync += sp->unsync;
		parents += chain_count(&sp->parent_ptes, NULL);
		pages++;
	}
	for (uint32_t s = 0; s < KVM_MAX_MEMSLOTS; s++)
		for (int l = PG_LEVEL_4K; kvm->slots[s] && l <= MAX_HUGE_LEVEL; l++)
			for (uint64_t i = 0; i < memslot_lpages(kvm->slots[s], l); i++)
				mapped += chain_count(&kvm->slots[s]->rmap[l - 1][i], NULL);
	for (int l = PG_LEVEL_4K; l <= MAX_HUGE_LEVEL; l++)
		all_leaves += leaves[l];
	if (all_leaves != mapped)
		return bad(kvm, "%llu leaf sptes, %llu entries in rmaps",
			   (unsigned long long)all_leaves, (unsigned long long)mapped);
	if (links != parents)
		return bad(kvm, "%llu links to shadow pages, %llu parent entries",
			   (unsigned long long)links, (unsigned long long)parents);
	/* A root that was zapped is counted until the last vCPU lets go of it. */
	for (uint64_t i = 0; i < kvm->n_page_of_pfn; i++)
		pages += kvm->page_of_pfn[i] && kvm->page_of_pfn[i]->role.invalid &&
			 kvm->page_of_pfn[i]->root_count;
	if (pages != kvm->n_used_pages)
		return bad(kvm, "%llu shadow pages are active, %llu are counted",
			   (unsigned long long)pages, (unsigned long long)kvm->n_used_pages);
	if (unsync != kvm->stat[STAT_mmu_unsync])
		return bad(kvm, "%llu shadow pages are out of step, mmu_unsync is %llu",
			   (unsigned long long)unsync,
			   (unsigned long long)kvm->stat[STAT_mmu_unsync]);
	r = check_tracking(kvm);
	return r ? r : check_accounts(kvm, leaves);
}

int mmu_check(const struct kvm *kvm)
{
	const struct mmu_notifiers *n = &kvm->notifiers;

	if (n->in_progress || n->active || n->waiter)
		return bad(kvm, "%u invalidations are under way, %u unmap, and nobody runs",
			   n->active, n->in_progress);
	return kvm->backend->check(kvm);
}

/* A translation of @gva that is cached with @flags, TLB_*. @gfn: its frame. */
static int check_cached(const struct kvm_vcpu *v, gva_t gva, gfn_t gfn, uint64_t flags)
{
	const struct kvm *kvm = v->kvm;
	uint64_t addr = kvm->tdp_enabled ? gfn << PAGE_SHIFT : gva, spte = 0;
	struct shadow_walk w;
	int level = PG_LEVEL_4K;

	for (shadow_walk_init(&w, (struct kvm_vcpu *)v, addr); shadow_walk_okay(&w);
	     shadow_walk_next(&w, kvm)) {
		spte = *w.sptep;
		level = w.level;
	}
	if ((spte & PT_PRESENT) && (!(flags & TLB_WPERM) || spte_writable(spte)) &&
	    kvm_pfn_to_gfn(kvm, spte_pfn(spte)) +
			    ((addr >> PAGE_SHIFT) & (pages_per_level(level) - 1)) ==
		    gfn)
		return 0;
	return bad(kvm, "vCPU %u has gva %#llx cached %s, its spte is %#llx", v->id,
		   (unsigned long long)gva, flags & TLB_WPERM ? "writable" : "readable",
		   (unsigned long long)spte);
}

int tlb_check(const struct kvm_vcpu *v)
{
	const uint32_t flushing = REQ_TLB_FLUSH | REQ_TLB_FLUSH_CURRENT | REQ_FREE_OBSOLETE_ROOTS;
	const char *what = mmio_info_check(v);
	int r = 0;

	if (what)
		return bad(v->kvm, "vCPU %u %s, gfn %#llx", v->id, what,
			   (unsigned long long)v->mmio.gfn);

	/* Between a change of the tables and the flush that was asked for, anything goes; a new
	 * root begins with one. */
	if (!v->root_valid || v->requests & flushing)
		return 0;
	for (uint64_t i = 0; i <= v->tlb.mask && !r; i++) {
		const struct vcpu_tlb_entry *e = &v->tlb.entry[i];
		gva_t gva = e->tag >> TLB_GEN_BITS << PAGE_SHIFT;

		if (e->tag == tlb_tag(&v->tlb, gva))
			r = check_cached(v, gva, tlb_gfn(e), e->gfn_flags);
	}
	for (unsigned i = 0; i < VCPU_TLB_HUGE_ENTRIES && !r; i++) {
		const struct vcpu_tlb_entry *e = &v->tlb.huge[i];
		gva_t gva = e->tag >> TLB_GEN_BITS << TLB_HUGE_SHIFT;

		if (e->tag != tlb_huge_tag(&v->tlb, gva))
			continue;
		for (unsigned p = 0; p < pages_per_level(PG_LEVEL_2M) && !r; p++)
			r = check_cached(v, gva + ((gva_t)p << PAGE_SHIFT), tlb_gfn(e) + p,
					 e->gfn_flags);
	}
	return r;
}
