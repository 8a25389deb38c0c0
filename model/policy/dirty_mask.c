// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmu.h"
#include "model/policy/dirty.h"

/* Since 3.10: each dirty page is found by its rmap, a word of the bitmap at a time. */

static void rearm(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		  uint64_t first_page, uint64_t mask)
{
	charge(t, COUNT_rearm_word, 1);
	for (; mask; mask &= mask - 1) {
		charge(t, COUNT_dirty_page, 1);
		kvm->backend->write_protect_gfn(
			t, kvm, slot, slot->base_gfn + first_page + __builtin_ctzll(mask));
	}
}

static long harvest(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *bitmap)
{
	long n = dirty_take_words(t, kvm, slot, rearm);

	if (n < 0)
		return n;
	if (n)
		dirty_flush(t, kvm, slot);
	dirty_copy_out(t, kvm, slot, true, bitmap);
	return n;
}

const struct dirty_policy dirty_mask = {
	.desc = {.name = "mask",
		 .family = FAMILY_DIRTY,
		 .summary = "write-protects the dirty pages by their rmaps, word by word (3.10 on)",
		 .evidence = {EVIDENCE_ORACLE, EVIDENCE_ORACLE, EVIDENCE_ORACLE}},
	.harvest = harvest,
};
