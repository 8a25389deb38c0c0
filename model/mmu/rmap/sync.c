// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

#include "model/policy/preset.h"
#include "model/policy/spte.h"

/*
 * Shadow pages out of step. The guest may write to a table of 4K entries that is shadowed, without
 * an exit, from the first write on: its shadow page is unsync, and what the guest flushes from its
 * TLB is what KVM brings in line. INVLPG does so with one entry; a load of CR3 write-protects the
 * tables of all unsync pages below the root again, and syncs them. Each page above knows by which
 * entries such pages may be reached.
 */

static void mark_parents_unsync(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp)
{
	struct rmap_iter it;
	uint64_t *sptep;

	for_each_rmap_spte (t, kvm, &sp->parent_ptes, &it, sptep)
		mark_unsync(t, kvm, sptep);
}

/* The bit of entry @i in the bitmap. */
static uint64_t child_bit(unsigned i)
{
	return 1ull << (i % 64);
}

void mark_unsync(struct task *t, struct kvm *kvm, uint64_t *sptep)
{
	struct kvm_mmu_page *sp = sptep_to_sp(sptep);
	unsigned i = spte_index(sptep);

	kvm_touch(t, kvm, sp->header_addr, KADDR_SP_HEADER_BYTES, true);
	if (sp->unsync_child_bitmap[i / 64] & child_bit(i))
		return;
	sp->unsync_child_bitmap[i / 64] |= child_bit(i);
	if (!sp->unsync_children++)
		mark_parents_unsync(t, kvm, sp);
}

static void clear_unsync_child(struct kvm_mmu_page *sp, unsigned i)
{
	sp->unsync_child_bitmap[i / 64] &= ~child_bit(i);
	sp->unsync_children--;
}

static void unsync_page(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp)
{
	mmu_lock_assert_held(t, kvm, "which shadow pages are in step");
	kvm_trace_page(t, kvm, NULL, TRACE_kvm_mmu_unsync_page, sp, false);
	kvm->stat[STAT_mmu_unsync]++;
	sp->unsync = true;
	mark_parents_unsync(t, kvm, sp);
}

void unlink_unsync_page(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp)
{
	mmu_lock_assert_held(t, kvm, "which shadow pages are in step");
	kvm_trace_page(t, kvm, NULL, TRACE_kvm_mmu_sync_page, sp, false);
	sp->unsync = false;
	kvm->stat[STAT_mmu_unsync]--;
}

bool mmu_try_to_unsync_pages(struct task *t, struct kvm *kvm, const struct kvm_memory_slot *slot,
			     gfn_t gfn, bool can_unsync, bool prefetch)
{
	struct kvm_mmu_page *sp;

	if (slot->write_track[gfn - slot->base_gfn])
		return false;
	for (sp = shadow_pages_of(kvm, gfn); sp; sp = sp->hash_next) {
		charge(t, COUNT_sp_hash, 1);
		kvm_touch(t, kvm, sp->header_addr, KADDR_SP_HOT_BYTES, false);
		if (sp->gfn != gfn || sp->role.direct || sp_obsolete(kvm, sp))
			continue;
		/* While pages are synced none may go out of step. */
		if (!can_unsync || !kvm->spte_params.value[SPTE_UNSYNC])
			return false;
		if (sp->unsync)
			continue;
		/* Nobody has asked yet to write there. */
		if (prefetch)
			return false;
		unsync_page(t, kvm, sp);
	}
	return true;
}

/* What its entries mean is known while the vCPU pages as it did when the page was made. */
static bool same_context(const struct kvm_vcpu *v, const struct kvm_mmu_page *sp)
{
	union kvm_mmu_page_role role = v->paging.root_role;

	role.level = sp->role.level;
	role.access = sp->role.access;
	role.quadrant = sp->role.quadrant;
	return role.word == sp->role.word;
}

/* One entry that is there. 1: flush; 0; KVMSIM_EINVAL: there is no table. */
static int sync_spte(struct kvm_vcpu *v, struct kvm_mmu_page *sp, unsigned i, uint64_t old)
{
	struct kvm *kvm = v->kvm;
	struct task *t = v->task;
	uint64_t *sptep = &sp->spt[i], gpte, spte;
	unsigned access;
	bool wrprot;
	gfn_t gfn;

	charge(t, COUNT_sync_spte, 1);
	if (!memslot_visible(t, kvm, sp->gfn))
		return KVMSIM_EINVAL;
	gpte = gmem_load(t, kvm, sp_gpte_gpa(sp, i), sp_gpte_bytes(sp));
	gfn = gpte_gfn(&v->paging, gpte, PG_LEVEL_4K);
	access = shadowed_access(sp, gpte);
	if (!prefetch_invalid_gpte(v, gpte) && sync_mmio_spte(v, sptep, gfn, access))
		return 0;
	if (prefetch_invalid_gpte(v, gpte) || gfn != sp_gfn(sp, i)) {
		page_zap_pte(t, kvm, sp, sptep);
		return 1;
	}
	if (kvm->preset->sync_by_access && (sp->translation[i] & ACC_ALL) == access)
		return 0;
	sp->translation[i] = gfn << PAGE_SHIFT | access;
	kvm_touch(t, kvm, sp->translation_addr + i * 8, 8, true);
	spte = make_spte(v, sp, memslot_now(t, kvm, gfn), access, gfn, spte_pfn(old), old, true,
			 false, old & SPTE_HOST_WRITABLE, &wrprot);
	return spte_update(t, kvm, sptep, spte);
}

int sync_page(struct kvm_vcpu *v, struct kvm_mmu_page *sp)
{
	bool flush = false;

	if (sp->role.direct || !same_context(v, sp))
		return KVMSIM_EINVAL;
	charge(v->task, COUNT_sync_page, 1);
	for (unsigned i = 0; i < PTES_PER_PAGE; i++) {
		uint64_t old = spte_read(v->task, v->kvm, &sp->spt[i]);
		int r = old ? sync_spte(v, sp, i, old) : 0;

		if (r < 0)
			return r;
		flush |= r;
	}
	return flush;
}

/* Found below a page: the pages on the way, each before those below it, with the index of the entry
 * that leads to each. The first is the page itself. */
#define UNSYNC_BATCH 16 /* the kernel's */
struct unsync_pages {
	unsigned nr;
	struct {
		struct kvm_mmu_page *sp;
		unsigned index;
	} page[UNSYNC_BATCH];
};

/* True: full. One that is out of step is there once, whatever leads to it. */
static bool pages_add(struct unsync_pages *p, struct kvm_mmu_page *sp, unsigned index)
{
	for (unsigned i = 0; sp->unsync && i < p->nr; i++)
		if (p->page[i].sp == sp)
			return false;
	p->page[p->nr].sp = sp;
	p->page[p->nr++].index = index;
	return p->nr == UNSYNC_BATCH;
}

/* Adds those below @sp, and forgets about entries that lead to none. How many are out of step, or
 * -1: there may be more. */
static int collect_below(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp,
			 struct unsync_pages *p)
{
	int n = 0, below;

	for (unsigned i = 0; i < PTES_PER_PAGE; i++) {
		struct kvm_mmu_page *child = NULL;
		uint64_t spte;

		if (!(sp->unsync_child_bitmap[i / 64] & child_bit(i)))
			continue;
		spte = spte_read(t, kvm, &sp->spt[i]);
		if (spte_present(spte) && !(spte & PT_PAGE_SIZE))
			child = spte_to_child(kvm, spte);
		if (child && child->unsync_children) {
			if (pages_add(p, child, i))
				return -1;
			below = collect_below(t, kvm, child, p);
			if (below < 0)
				return below;
			if (!below)
				clear_unsync_child(sp, i);
			n += below;
		} else if (child && child->unsync) {
			n++;
			if (pages_add(p, child, i))
				return -1;
		} else {
			clear_unsync_child(sp, i);
		}
	}
	return n;
}

/* False: none. */
static bool collect_unsync(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp,
			   struct unsync_pages *p)
{
	p->nr = 0;
	if (!sp->unsync_children)
		return false;
	pages_add(p, sp, 0);
	return collect_below(t, kvm, sp, p);
}

/* The way to a page among them, by level - 1: the entry that leads to it, and the page above. */
struct unsync_path {
	struct kvm_mmu_page *parent[ROOT_LEVEL_4];
	unsigned index[ROOT_LEVEL_4];
	unsigned i;
};

static struct kvm_mmu_page *next_unsync(const struct unsync_pages *p, struct unsync_path *path)
{
	while (++path->i < p->nr) {
		struct kvm_mmu_page *sp = p->page[path->i].sp;
		int level = sp->role.level;

		path->index[level - 1] = p->page[path->i].index;
		if (level == PG_LEVEL_4K)
			return sp;
		path->parent[level - 2] = sp;
	}
	return NULL;
}

static struct kvm_mmu_page *first_unsync(const struct unsync_pages *p, struct unsync_path *path)
{
	int level = p->page[0].sp->role.level;

	path->i = 0;
	path->parent[level - 2] = p->page[0].sp;
	path->parent[level - 1] = NULL;
	return next_unsync(p, path);
}

#define for_each_unsync(sp, p, path) for (sp = first_unsync(p, path); sp; sp = next_unsync(p, path))

/* The page at the end of the path is dealt with. */
static void clear_parents(const struct unsync_path *path)
{
	for (int l = 0; path->parent[l]; l++) {
		clear_unsync_child(path->parent[l], path->index[l]);
		if (path->parent[l]->unsync_children)
			return;
	}
}

static bool protect_tables(struct task *t, struct kvm *kvm, const struct unsync_pages *p)
{
	struct unsync_path path;
	struct kvm_mmu_page *sp;
	bool wrprot = false;

	for_each_unsync(sp, p, &path)
	{
		struct kvm_memory_slot *slot = memslot_now(t, kvm, sp->gfn);

		if (slot)
			wrprot |= write_protect_gfn_levels(t, kvm, slot, sp->gfn, PG_LEVEL_4K);
	}
	return wrprot;
}

static bool sync_pages(struct kvm_vcpu *v, const struct unsync_pages *p, struct list *invalid)
{
	struct unsync_path path;
	struct kvm_mmu_page *sp;
	bool flush = false;
	unsigned nr;
	int r;

	for_each_unsync(sp, p, &path)
	{
		unlink_unsync_page(v->task, v->kvm, sp);
		r = sync_page(v, sp);
		if (r < 0)
			prepare_zap_page(v->task, v->kvm, sp, invalid, &nr);
		flush |= r > 0;
		clear_parents(&path);
	}
	return flush;
}

int mmu_sync_children(struct kvm_vcpu *v, struct kvm_mmu_page *parent, bool can_yield)
{
	struct kvm *kvm = v->kvm;
	struct unsync_pages pages;
	struct list invalid;
	bool flush = false;

	list_init(&invalid);
	while (collect_unsync(v->task, kvm, parent, &pages)) {
		if (protect_tables(v->task, kvm, &pages)) {
			flush_or_zap(v->task, kvm, &invalid, true);
			flush = false;
		}
		flush |= sync_pages(v, &pages, &invalid);
		if (!mmu_lock_contended(v->task, kvm))
			continue;
		flush_or_zap(v->task, kvm, &invalid, flush);
		flush = false;
		if (!can_yield) {
			v->requests |= REQ_MMU_SYNC;
			return 1;
		}
		if (mmu_lock_break(v->task, kvm, "mmu_sync_children"))
			return 0;
	}
	flush_or_zap(v->task, kvm, &invalid, flush);
	return 0;
}

unsigned zap_unsync_children(struct task *t, struct kvm *kvm, struct kvm_mmu_page *parent,
			     struct list *invalid)
{
	struct unsync_pages pages;
	unsigned zapped = 0, nr;

	while (parent->role.level > PG_LEVEL_4K && collect_unsync(t, kvm, parent, &pages)) {
		struct unsync_path path;
		struct kvm_mmu_page *sp;

		for_each_unsync(sp, &pages, &path)
		{
			prepare_zap_page(t, kvm, sp, invalid, &nr);
			clear_parents(&path);
			zapped++;
		}
	}
	return zapped;
}

/* The entry is dropped and made anew from the guest's. */
static void replace_spte(struct kvm_vcpu *v, struct kvm_mmu_page *sp, unsigned i, uint64_t old)
{
	struct kvm *kvm = v->kvm;
	uint64_t gpte;

	page_zap_pte(v->task, kvm, sp, &sp->spt[i]);
	if (spte_present(old))
		kvm_flush_remote_tlbs(v->task, kvm);
	if (!memslot_visible(v->task, kvm, sp->gfn))
		return;
	gpte = gmem_load(v->task, kvm, sp_gpte_gpa(sp, i), sp_gpte_bytes(sp));
	prefetch_gpte(v, sp, &sp->spt[i], gpte, false);
}

static void invalidate_spte(struct kvm_vcpu *v, struct kvm_mmu_page *sp, unsigned i)
{
	uint64_t old = spte_read(v->task, v->kvm, &sp->spt[i]);
	int r;

	if (!v->kvm->preset->invlpg_syncs) {
		replace_spte(v, sp, i, old);
		return;
	}
	r = !old ? 0 : same_context(v, sp) ? sync_spte(v, sp, i, old) : KVMSIM_EINVAL;
	if (r < 0)
		page_zap_pte(v->task, v->kvm, sp, &sp->spt[i]);
	if (r)
		kvm_flush_remote_tlbs(v->task, v->kvm);
}

/* One root's entry for @gva. */
static void invlpg_root(struct kvm_vcpu *v, struct kvm_mmu_page *root, gva_t gva)
{
	struct kvm *kvm = v->kvm;
	struct shadow_walk w;

	mmu_topup(v, true); /* the entry may be mapped anew */
	if (mmu_lock(v->task, kvm, "kvm_mmu_invlpg"))
		return;
	charge(v->task, COUNT_invlpg_root, 1);
	for (shadow_walk_init_root(&w, root, gva); shadow_walk_okay(&w);
	     shadow_walk_next(&w, kvm)) {
		charge(v->task, COUNT_shadow_level, 1);
		if (w.sp->unsync)
			invalidate_spte(v, w.sp, w.index);
		/* Nothing below is out of step. */
		if (!w.sp->unsync_children)
			break;
	}
	mmu_unlock(v->task, kvm);
}

void kvm_mmu_invlpg(struct kvm_vcpu *v, gva_t gva)
{
	struct kvm_mmu_page *root = v->root.sp ? v->root.sp : v->pae_root[(gva >> 30) & 3];

	vcpu_clear_mmio_info(v, gva);
	if (root)
		invlpg_root(v, root, gva);
	for (int i = 0; i < MMU_NUM_PREV_ROOTS; i++)
		if (v->prev_roots[i].sp)
			invlpg_root(v, v->prev_roots[i].sp, gva);
}
