// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/dirty.h"

#include <string.h>

#include "model/mmu/check.h"
#include "model/mmu/mmu.h"
#include "model/policy/preset.h"

#define LINE_WORDS 8 /* 64-bit words in a cache line */

int dirty_try_split(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t start,
		    uint64_t end, bool locked)
{
	if (!kvm->eager_page_split || !kvm->backend->split_huge)
		return 0;
	return kvm->backend->split_huge(t, kvm, slot, start, end, locked);
}

int dirty_enable_base(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	int r = dirty_try_split(t, kvm, slot, slot->base_gfn, slot->base_gfn + slot->npages, false);

	if (r < 0)
		return r;
	if (kvm->preset->protect_by_walk && !kvm->cpu_dirty_log_size) {
		r = mmu_lock(t, kvm, "kvm_mmu_slot_apply_flags");
		if (r)
			return r;
		dirty_protect_by_walk(t, kvm, slot);
		mmu_unlock(t, kvm);
	} else {
		if (kvm->cpu_dirty_log_size)
			r = kvm->backend->clear_dirty_slot(t, kvm, slot);
		if (r >= 0)
			r = kvm->backend->protect_slot(
				t, kvm, slot, kvm->cpu_dirty_log_size ? PG_LEVEL_2M : PG_LEVEL_4K);
		if (r < 0)
			return r;
	}
	/* Always: a spte may have been made read-only by others who leave the flush to us. */
	kvm_flush_remote_tlbs(t, kvm);
	return 0;
}

int dirty_log_enable(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	return kvm->dirty->enable ? kvm->dirty->enable(t, kvm, slot)
				  : dirty_enable_base(t, kvm, slot);
}

int dirty_log_disable(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	int r;

	if (kvm->dirty->disable)
		return kvm->dirty->disable(t, kvm, slot);
	if (!kvm->preset->zap_collapsible)
		return 0;
	r = kvm->backend->zap_collapsible(t, kvm, slot);
	if (r > 0)
		kvm_flush_remote_tlbs(t, kvm);
	return r < 0 ? r : 0;
}

static void touch_word(struct task *t, struct kvm *kvm, uint64_t base, uint64_t i, bool write)
{
	if (i % LINE_WORDS == 0)
		kvm_touch(t, kvm, base + i * 8, LINE_WORDS * 8, write);
}

static void clear_snapshot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	uint64_t words = memslot_bitmap_words(slot);

	charge(t, COUNT_bitmap_clear, words);
	kvm_touch(t, kvm, slot->snapshot_addr, words * 8, true);
	memset(slot->dirty_snapshot, 0, words * 8);
}

long dirty_take_words(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		      dirty_rearm_fn rearm)
{
	uint64_t words = memslot_bitmap_words(slot), mask;
	long n = 0;
	int r;

	clear_snapshot(t, kvm, slot);
	r = mmu_lock(t, kvm, "kvm_get_dirty_log_protect");
	if (r)
		return r;
	for (uint64_t i = 0; i < words; i++) {
		charge(t, COUNT_bitmap_word, 1);
		touch_word(t, kvm, slot->bitmap_addr, i, false);
		touch_shared(t);
		task_assert_first(t, "a dirty bitmap");
		if (!slot->dirty_bitmap[i])
			continue;
		charge(t, COUNT_dirty_word, 1);
		kvm_touch(t, kvm, slot->bitmap_addr + i * 8, 8, true);
		touch_shared(t);
		task_assert_first(t, "a dirty bitmap");
		mask = slot->dirty_bitmap[i];
		slot->dirty_bitmap[i] = 0;
		slot->dirty_snapshot[i] = mask;
		kvm_touch(t, kvm, slot->snapshot_addr + i * 8, 8, true);
		n += __builtin_popcountll(mask);
		if (rearm)
			rearm(t, kvm, slot, i * 64, mask);
	}
	mmu_unlock(t, kvm);
	return n;
}

void dirty_rearm_word(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		      uint64_t first_page, uint64_t mask)
{
	charge(t, COUNT_rearm_word, 1);
	if (kvm->cpu_dirty_log_size)
		kvm->backend->clear_dirty_masked(t, kvm, slot, slot->base_gfn + first_page, mask);
	else
		kvm->backend->write_protect_masked(t, kvm, slot, slot->base_gfn + first_page, mask);
}

long dirty_harvest_words(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			 dirty_rearm_fn rearm, uint64_t *bitmap)
{
	long n = dirty_take_words(t, kvm, slot, rearm);

	if (n < 0)
		return n;
	if (n)
		dirty_flush(t, kvm, slot);
	dirty_copy_out(t, kvm, slot, true, bitmap);
	return n;
}

int dirty_clear_words(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		      uint64_t first_page, uint64_t npages, const uint64_t *bitmap,
		      dirty_rearm_fn rearm)
{
	uint64_t words = (npages + 63) / 64, *cleared = slot->dirty_snapshot;
	bool any = false;
	int r;

	charge(t, COUNT_bitmap_copy, words);
	kvm_touch(t, kvm, slot->snapshot_addr, (uint32_t)(words * 8), true);
	r = mmu_lock(t, kvm, "kvm_clear_dirty_log_protect");
	if (r)
		return r;
	for (uint64_t i = 0; i < words; i++) {
		uint64_t *word = &slot->dirty_bitmap[first_page / 64 + i];

		cleared[i] = 0;
		charge(t, COUNT_bitmap_word, 1);
		touch_word(t, kvm, slot->snapshot_addr, i, false);
		if (!bitmap[i])
			continue;
		charge(t, COUNT_clear_word, 1);
		kvm_touch(t, kvm, slot->bitmap_addr + (first_page / 64 + i) * 8, 8, true);
		touch_shared(t);
		task_assert_first(t, "a dirty bitmap");
		cleared[i] = bitmap[i] & *word;
		*word &= ~bitmap[i];
		any |= cleared[i];
		if (cleared[i] && rearm)
			rearm(t, kvm, slot, first_page + i * 64, cleared[i]);
	}
	mmu_unlock(t, kvm);
	if (any)
		dirty_flush(t, kvm, slot);
	return 0;
}

void dirty_swap_bitmap(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	uint64_t words = memslot_bitmap_words(slot), *bitmap, addr;

	charge(t, COUNT_bitmap_alloc, (words * 8 + PAGE_SIZE - 1) / PAGE_SIZE);
	clear_snapshot(t, kvm, slot);
	charge(t, COUNT_memslot_update, 1);
	touch_shared(t);
	task_assert_first(t, "a dirty bitmap");
	bitmap = slot->dirty_bitmap;
	addr = slot->bitmap_addr;
	slot->dirty_bitmap = slot->dirty_snapshot;
	slot->bitmap_addr = slot->snapshot_addr;
	slot->dirty_snapshot = bitmap;
	slot->snapshot_addr = addr;
	synchronize_srcu(t, &kvm->srcu);
}

uint64_t dirty_count(struct task *t, const struct kvm_memory_slot *slot)
{
	uint64_t n = 0;

	touch_shared(t);
	task_assert_first(t, "a dirty bitmap");
	for (uint64_t i = 0; i < memslot_bitmap_words(slot); i++)
		n += __builtin_popcountll(slot->dirty_bitmap[i]);
	return n;
}

bool dirty_any(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	for (uint64_t i = 0; i < memslot_bitmap_words(slot); i++) {
		charge(t, COUNT_bitmap_word, 1);
		touch_word(t, kvm, slot->bitmap_addr, i, false);
		touch_shared(t);
		task_assert_first(t, "a dirty bitmap");
		if (slot->dirty_bitmap[i])
			return true;
	}
	return false;
}

void dirty_flush(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	kvm_flush_remote_tlbs(t, kvm);
	store_log_flushed(slot, task_now(t));
}

void dirty_copy_out(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, bool dirty,
		    uint64_t *bitmap)
{
	uint64_t words = memslot_bitmap_words(slot);

	charge(t, COUNT_bitmap_copy, words);
	if (dirty) {
		kvm_touch(t, kvm, slot->snapshot_addr, words * 8, false);
		memcpy(bitmap, slot->dirty_snapshot, words * 8);
	} else {
		memset(bitmap, 0, words * 8);
	}
}

/* An old kernel takes W from every spte of a shadow page that maps anything of the slot; a newer
 * one that walks asks of each writable spte whether it is the slot's. */
static bool walk_sp(struct task *t, struct kvm *kvm, struct kvm_mmu_page *sp, void *ctx)
{
	struct kvm_memory_slot *slot = ctx;
	bool old = kvm->preset->slot_bitmap;

	if (old ? !(sp->slot_bitmap >> slot->id & 1) : sp->role.level != PG_LEVEL_4K)
		return true;
	/* 512 tests take longer than a line from memory: the next header is there when needed. */
	if (kvm->preset->list_prefetch && sp->link.next != &kvm->active_pages)
		kvm_prefetch(t, kvm,
			     list_entry(sp->link.next, struct kvm_mmu_page, link)->header_addr,
			     KADDR_SP_HOT_BYTES);
	for (unsigned i = 0; i < PTES_PER_PAGE; i++) {
		uint64_t *sptep = &sp->spt[i], spte;

		charge(t, COUNT_walk_spte, 1);
		touch_word(t, kvm, sp->spt_addr, i, false);
		spte = spte_reread(t, sptep);
		if (!spte_present(spte) || !spte_writable(spte))
			continue;
		if (!old) {
			gfn_t gfn = kvm->backend->spte_gfn(t, kvm, sptep);

			charge(t, sp->role.direct ? COUNT_walk_gfn_direct : COUNT_walk_gfn, 1);
			if (gfn < slot->base_gfn || gfn >= slot->base_gfn + slot->npages)
				continue;
		}
		charge(t, COUNT_write_protect, 1);
		kvm_touch(t, kvm, sptep_addr(sptep), sizeof(*sptep), true);
		*sptep = spte_reread(t, sptep) & ~PT_WRITABLE;
	}
	return true;
}

void dirty_protect_by_walk(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	kvm->backend->for_each_shadow_page (t, kvm, walk_sp, slot);
}
