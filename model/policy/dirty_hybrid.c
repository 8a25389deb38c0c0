// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmu.h"
#include "model/policy/dirty.h"

/*
 * As merged in November 2011 (3.3): when fewer pages are dirty than there are shadow pages, each
 * is found by its rmap, mmu_lock taken page by page; else all shadow pages are walked. The bitmaps
 * are swapped, and the number of dirty pages is kept as they are marked.
 */

/* threshold: the rmaps are taken below threshold/100 times the number of shadow pages. */
static const struct policy_param params[] = {
	{"threshold", 100, 0, 1000000, 1,
	 "per cent of the active shadow pages below which rmaps are used"},
	{0},
};

static int protect_by_rmap(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	for (uint64_t i = 0; i < memslot_bitmap_words(slot); i++) {
		charge(t, COUNT_bitmap_word, 1);
		for (uint64_t mask = slot->dirty_snapshot[i]; mask; mask &= mask - 1) {
			int r = mmu_lock(t, kvm, "write_protect_slot");

			if (r)
				return r;
			charge(t, COUNT_dirty_page, 1);
			kvm->backend->write_protect_gfn(
				t, kvm, slot, slot->base_gfn + i * 64 + __builtin_ctzll(mask));
			mmu_unlock(t, kvm);
		}
	}
	return 0;
}

static long harvest(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *bitmap)
{
	uint64_t n = dirty_count(t, slot), pages;
	int r;

	if (!n) {
		dirty_copy_out(t, kvm, slot, false, bitmap);
		return 0;
	}
	dirty_swap_bitmap(t, kvm, slot);
	touch_shared(t);
	task_assert_first(t, "the number of shadow pages");
	pages = kvm->n_used_pages + kvm->n_background;
	if (n * 100 < pages * kvm->dirty_params.value[0]) {
		r = protect_by_rmap(t, kvm, slot);
	} else {
		r = mmu_lock(t, kvm, "write_protect_slot");
		if (!r) {
			dirty_protect_by_walk(t, kvm, slot);
			mmu_unlock(t, kvm);
		}
	}
	if (r)
		return r;
	dirty_flush(t, kvm, slot);
	dirty_copy_out(t, kvm, slot, true, bitmap);
	n = 0;
	for (uint64_t i = 0; i < memslot_bitmap_words(slot); i++)
		n += __builtin_popcountll(bitmap[i]);
	return n;
}

static const struct policy_proof proofs[] = {
	{"6.1-tdp",
	 "tcg",
	 {[MMU_TDP] = EVIDENCE_REFUSED},
	 "the TDP MMU has no list of shadow pages"},
	{0},
};

const struct dirty_policy dirty_hybrid = {
	.desc = {.name = "hybrid",
		 .family = FAMILY_DIRTY,
		 .summary = "rmaps when few pages are dirty, else a walk of the shadow pages (3.3)",
		 .params = params,
		 .proofs = proofs},
	.walks = true,
	.harvest = harvest,
};
