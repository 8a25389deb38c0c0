// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmu.h"

void mark_page_dirty_in_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			     gfn_t gfn)
{
	uint64_t i;

	if (!slot || !(memslot_flags(t, slot) & MEMSLOT_LOG_DIRTY))
		return;
	if (kvm->dirty->mark) {
		kvm->dirty->mark(t, kvm, slot, gfn);
		return;
	}
	i = gfn - slot->base_gfn;
	charge(t, COUNT_mark_dirty, 1);
	touch_shared(t); /* a harvest may exchange the bitmaps */
	task_assert_first(t, "where a dirty bitmap lies");
	kvm_touch(t, kvm, slot->bitmap_addr + i / 64 * 8, 8, true);
	touch_shared(t);
	task_assert_first(t, "a dirty bitmap");
	if (!slot->dirty_bitmap) /* logging has just ended */
		return;
	slot->dirty_bitmap[i / 64] |= 1ull << (i % 64);
}

void kvm_mark_page_dirty(struct task *t, struct kvm *kvm, gfn_t gfn)
{
	mark_page_dirty_in_slot(t, kvm, memslot_now(t, kvm, gfn), gfn);
}
