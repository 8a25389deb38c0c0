// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

#include "model/policy/preset.h"
#include "model/policy/spte.h"

/* The kernel's: keep this many pages free for one fault, and refill up to so many. */
#define MIN_FREE_MMU_PAGES 5
#define REFILL_PAGES	   25

static void unlink_hash(struct kvm_mmu_page *sp)
{
	*sp->hash_pprev = sp->hash_next;
	if (sp->hash_next)
		sp->hash_next->hash_pprev = sp->hash_pprev;
}

static void unaccount_shadowed(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp)
{
	struct kvm_memory_slot *slot = memslot_now(t, kvm, sp->gfn);

	kvm->indirect_pages--;
	if (!slot)
		return;
	for (int l = PG_LEVEL_2M; l <= MAX_HUGE_LEVEL; l++)
		slot->disallow_lpage[l - 1][memslot_index(slot, sp->gfn, l)]--;
	if (sp->role.level > PG_LEVEL_4K)
		slot->write_track[sp->gfn - slot->base_gfn]--;
}

bool prepare_zap_page(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp,
		      struct list *invalid, unsigned *nr)
{
	bool zapped_root = false, others;

	mmu_lock_assert_held(t, kvm, "the list of shadow pages");
	kvm_trace_page(t, kvm, NULL, TRACE_kvm_mmu_prepare_zap_page, sp, false);
	charge(t, COUNT_zap_sp, 1);
	kvm->stat[STAT_mmu_shadow_zapped]++;
	*nr = zap_unsync_children(t, kvm, sp, invalid);
	for (unsigned i = 0; i < PTES_PER_PAGE; i++)
		page_zap_pte(t, kvm, sp, &sp->spt[i]);
	while (sp->parent_ptes.val) {
		struct rmap_iter it;

		drop_parent_pte(t, kvm, sp, rmap_first(t, kvm, &sp->parent_ptes, &it));
	}
	others = *nr;
	if (!sp->role.invalid && !sp->role.direct)
		unaccount_shadowed(t, kvm, sp);
	if (sp->unsync)
		unlink_unsync_page(t, kvm, sp);
	if (!sp->root_count) {
		++*nr;
		if (sp->role.invalid)
			list_add(&sp->link, invalid);
		else
			list_move(&sp->link, invalid);
		kvm->n_used_pages--;
	} else {
		/* Freed when the last vCPU lets go of its root. */
		if (!sp->role.invalid)
			list_del(&sp->link);
		zapped_root = !sp_obsolete(kvm, sp);
	}
	sp->role.invalid = 1;
	if (zapped_root)
		kvm_make_all_cpus_request(t, kvm, REQ_FREE_OBSOLETE_ROOTS);
	return others;
}

void commit_zap_page(struct task *t, struct kvm *kvm, struct list *invalid)
{
	if (list_empty(invalid))
		return;
	kvm_flush_remote_tlbs(t, kvm);
	while (!list_empty(invalid)) {
		struct kvm_mmu_page *sp = list_entry(invalid->next, struct kvm_mmu_page, link);

		list_del(&sp->link);
		unlink_hash(sp);
		sp->hash_next = kvm->free_pages;
		kvm->free_pages = sp;
	}
}

void flush_or_zap(struct task *t, struct kvm *kvm, struct list *invalid, bool flush)
{
	if (!list_empty(invalid))
		commit_zap_page(t, kvm, invalid);
	else if (flush)
		kvm_flush_remote_tlbs(t, kvm);
}

static uint64_t zap_oldest(struct task *t, struct kvm *kvm, uint64_t goal)
{
	struct list invalid, *pos, *prev;
	uint64_t total = 0;
	unsigned nr;

	list_init(&invalid);
	for (pos = kvm->active_pages.prev; pos != &kvm->active_pages && total < goal; pos = prev) {
		struct kvm_mmu_page *sp = list_entry(pos, struct kvm_mmu_page, link);

		prev = pos->prev;
		if (sp->root_count)
			continue;
		/* With pages below it, the one before may be gone, too. */
		if (prepare_zap_page(t, kvm, sp, &invalid, &nr))
			prev = kvm->active_pages.prev;
		total += nr;
	}
	commit_zap_page(t, kvm, &invalid);
	kvm->stat[STAT_mmu_recycled] += total;
	return total;
}

uint64_t available_mmu_pages(const struct kvm *kvm)
{
	return kvm->n_max_pages > kvm->n_used_pages ? kvm->n_max_pages - kvm->n_used_pages : 0;
}

int make_mmu_pages_available(struct kvm_vcpu *v)
{
	uint64_t avail = available_mmu_pages(v->kvm);

	if (avail >= MIN_FREE_MMU_PAGES)
		return 0;
	zap_oldest(v->task, v->kvm, REFILL_PAGES - avail);
	return available_mmu_pages(v->kvm) ? 0 : KVMSIM_ENOMEM;
}

void kvm_mmu_change_mmu_pages(struct task *t, struct kvm *kvm, uint64_t goal)
{
	if (mmu_lock(t, kvm, "kvm_mmu_change_mmu_pages"))
		return;
	if (kvm->n_used_pages > goal) {
		zap_oldest(t, kvm, kvm->n_used_pages - goal);
		goal = kvm->n_used_pages;
	}
	kvm->n_max_pages = goal;
	mmu_unlock(t, kvm);
}

/* Under one hold of mmu_lock, newest first. @mmio: those that MMIO sptes were put into. */
static void zap_all_at_once(struct task *t, struct kvm *kvm, bool mmio)
{
	struct kvm_mmu_page *sp;
	struct list invalid;
	unsigned nr;

	if (mmu_lock(t, kvm, "kvm_mmu_zap_all"))
		return;
	list_init(&invalid);
restart:
	list_for_each_entry (sp, &kvm->active_pages, link)
		if (!mmio || sp->mmio_cached) {
			prepare_zap_page(t, kvm, sp, &invalid, &nr);
			goto restart;
		}
	commit_zap_page(t, kvm, &invalid);
	mmu_unlock(t, kvm);
}

void kvm_mmu_zap_all(struct task *t, struct kvm *kvm)
{
	if (kvm->preset->zap_all_fast)
		kvm_mmu_zap_all_fast(t, kvm);
	else
		zap_all_at_once(t, kvm, false);
}

void kvm_mmu_zap_mmio_pages(struct task *t, struct kvm *kvm)
{
	if (kvm->backend->rmaps)
		zap_all_at_once(t, kvm, true);
	else
		kvm_mmu_zap_all_fast(t, kvm);
}

void kvm_mmu_zap_all_fast(struct task *t, struct kvm *kvm)
{
	struct list invalid, *pos, *prev;
	unsigned nr;

	if (mmu_lock(t, kvm, "kvm_mmu_zap_all_fast"))
		return;
	kvm_trace_event(t, kvm, NULL, .id = TRACE_kvm_mmu_zap_all_fast, .gen = kvm->valid_gen,
			.used_pages = kvm->n_used_pages);
	kvm->valid_gen = !kvm->valid_gen;
	if (kvm->backend->invalidate_roots)
		kvm->backend->invalidate_roots(t, kvm);
	kvm_make_all_cpus_request(t, kvm, REQ_FREE_OBSOLETE_ROOTS);
	list_init(&invalid);
	for (pos = kvm->active_pages.prev; pos != &kvm->active_pages; pos = prev) {
		struct kvm_mmu_page *sp = list_entry(pos, struct kvm_mmu_page, link);

		prev = pos->prev;
		if (!sp_obsolete(kvm, sp))
			break;
		if (prepare_zap_page(t, kvm, sp, &invalid, &nr))
			prev = kvm->active_pages.prev;
	}
	commit_zap_page(t, kvm, &invalid);
	mmu_unlock(t, kvm);
	if (kvm->backend->zap_invalidated_roots)
		kvm->backend->zap_invalidated_roots(t, kvm);
}

/* A write of less than 4 bytes, or across entries, is no write of a page-table entry; a single
 * byte at an entry's start is (a flag is set or cleared there). */
static bool write_misaligned(const struct kvm_mmu_page *sp, gpa_t gpa, unsigned bytes)
{
	unsigned offset = gpa & (PAGE_SIZE - 1), within = sp_gpte_bytes(sp) - 1;

	if (!(offset & within) && bytes == 1)
		return false;
	return ((offset ^ (offset + bytes - 1)) & ~within) || bytes < 4;
}

/* The sptes of @sp that shadow the entry written at @gpa: the first, and how many. NULL where it is
 * another quadrant's. An entry of a directory with 4-byte entries has two. */
static uint64_t *written_sptes(struct kvm_mmu_page *sp, gpa_t gpa, unsigned *n)
{
	unsigned index = (gpa & (PAGE_SIZE - 1)) / sp_gpte_bytes(sp);

	*n = 1;
	if (sp->role.has_4_byte_gpte) {
		if (sp->role.level > PG_LEVEL_4K) {
			index *= 2;
			*n = 2;
		}
		if (index / PTES_PER_PAGE != sp->role.quadrant)
			return NULL;
		index %= PTES_PER_PAGE;
	}
	return &sp->spt[index];
}

/* What the guest's entry is after a write of it, or of half of it; else 0. */
static uint64_t written_gpte(const struct kvm_vcpu *v, gpa_t *gpa, unsigned *bytes)
{
	if (*bytes == 4 && (v->regs.cr4 & CR4_PAE)) {
		*gpa &= ~7ull;
		*bytes = 8;
	}
	return *bytes == 4 || *bytes == 8 ? gmem_load(v->task, v->kvm, *gpa, *bytes) : 0;
}

/* So many emulated writes without a walk through the table: it counts as no table any more. */
static bool write_flooding(const struct kvm *kvm, struct kvm_mmu_page *sp)
{
	uint64_t most = kvm->spte_params.value[SPTE_FLOOD];

	return sp->role.level > PG_LEVEL_4K && ++sp->write_flooding >= most && most;
}

void kvm_mmu_pte_write(struct kvm_vcpu *v, gpa_t gpa, unsigned bytes)
{
	struct kvm *kvm = v->kvm;
	struct task *t = v->task;
	struct kvm_mmu_page *sp;
	struct list invalid;
	bool flush = false;
	uint64_t gentry;
	unsigned nr, n;

	touch_shared(t); /* the kernel looks without the lock, too */
	task_assert_first(t, "the number of shadowed tables");
	if (!kvm->indirect_pages || mmu_lock(t, kvm, "kvm_mmu_pte_write"))
		return;
	touch_shared(t);
	gentry = written_gpte(v, &gpa, &bytes);
	kvm->stat[STAT_mmu_pte_write]++;
	list_init(&invalid);
	for (sp = first_indirect_sp(t, kvm, gpa >> PAGE_SHIFT); sp;
	     sp = next_indirect_sp(t, kvm, sp)) {
		uint64_t *sptep;

		if (write_misaligned(sp, gpa, bytes) || write_flooding(kvm, sp)) {
			prepare_zap_page(t, kvm, sp, &invalid, &nr);
			kvm->stat[STAT_mmu_flooded]++;
			continue;
		}
		for (sptep = written_sptes(sp, gpa, &n); sptep && n; sptep++, n--) {
			flush |= spte_present(*sptep);
			page_zap_pte(t, kvm, sp, sptep);
			if (gentry && sp->role.level != PG_LEVEL_4K)
				kvm->stat[STAT_mmu_pde_zapped]++;
		}
	}
	flush_or_zap(t, kvm, &invalid, flush);
	mmu_unlock(t, kvm);
}

bool kvm_mmu_unprotect_page(struct task *t, struct kvm *kvm, gfn_t gfn)
{
	struct kvm_mmu_page *sp;
	struct list invalid;
	bool zapped = false;
	unsigned nr;

	if (mmu_lock(t, kvm, "kvm_mmu_unprotect_page"))
		return false;
	list_init(&invalid);
	for (sp = first_indirect_sp(t, kvm, gfn); sp; sp = next_indirect_sp(t, kvm, sp)) {
		prepare_zap_page(t, kvm, sp, &invalid, &nr);
		zapped = true;
	}
	commit_zap_page(t, kvm, &invalid);
	mmu_unlock(t, kvm);
	return zapped;
}
