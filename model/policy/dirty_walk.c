// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmu.h"
#include "model/policy/dirty.h"
#include "model/policy/preset.h"

/* Until 3.3: every active shadow page is walked whenever a page of the slot is dirty. */

static long walk_and_flush(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	int r = mmu_lock(t, kvm, "kvm_vm_ioctl_get_dirty_log");

	if (r)
		return r;
	dirty_protect_by_walk(t, kvm, slot);
	mmu_unlock(t, kvm);
	dirty_flush(t, kvm, slot);
	return 0;
}

static long harvest_swap(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			 uint64_t *bitmap)
{
	bool any = dirty_any(t, kvm, slot);
	long n = 0, r;

	if (any) {
		dirty_swap_bitmap(t, kvm, slot);
		r = walk_and_flush(t, kvm, slot);
		if (r)
			return r;
	}
	dirty_copy_out(t, kvm, slot, any, bitmap);
	for (uint64_t i = 0; i < memslot_bitmap_words(slot); i++)
		n += __builtin_popcountll(bitmap[i]);
	return n;
}

static long harvest(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *bitmap)
{
	long n, r;

	if (kvm->preset->bitmap == BITMAP_SWAP)
		return harvest_swap(t, kvm, slot, bitmap);
	n = dirty_take_words(t, kvm, slot, NULL);
	if (n < 0)
		return n;
	if (n) {
		r = walk_and_flush(t, kvm, slot);
		if (r)
			return r;
	}
	dirty_copy_out(t, kvm, slot, true, bitmap);
	return n;
}

/* 6.1: the reference matrix, on QEMU's TCG. 2.6.36: a walk's time in the 2010 thread depends on
 * what was not reported. */
static const struct policy_proof proofs[] = {
	{"6.1-shadow", "tcg", {EVIDENCE_ORACLE, EVIDENCE_ORACLE, EVIDENCE_ORACLE}, NULL},
	{"6.1-tdp",
	 "tcg",
	 {[MMU_TDP] = EVIDENCE_REFUSED},
	 "the TDP MMU has no list of shadow pages"},
	{"2.6.36", "tcg", {EVIDENCE_NONE}, "its rows identify the number of shadow pages"},
	{0},
};

const struct dirty_policy dirty_walk = {
	.desc = {.name = "walk",
		 .family = FAMILY_DIRTY,
		 .summary = "write-protects the slot by walking all active shadow pages (to 3.2)",
		 .proofs = proofs},
	.walks = true,
	.harvest = harvest,
};
