// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmu.h"
#include "model/policy/dirty.h"

/* Broken on purpose: reports and clears every dirty page, and forgets to re-arm some. A guest that
 * writes such a page again is not seen: the checkers must say so. */

static const struct policy_param params[] = {
	{"every", 8, 1, 1000000, 1, "one page in so many is forgotten"},
	{0},
};

static void rearm(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		  uint64_t first_page, uint64_t mask)
{
	uint64_t kept = 0;

	for (; mask; mask &= mask - 1)
		if ((first_page + __builtin_ctzll(mask)) % kvm->dirty_params.value[0])
			kept |= mask & -mask;
	dirty_rearm_word(t, kvm, slot, first_page, kept);
}

static long harvest(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *bitmap)
{
	return dirty_harvest_words(t, kvm, slot, rearm, bitmap);
}

const struct dirty_policy dirty_lossy = {
	.desc = {.name = "lossy",
		 .family = FAMILY_DIRTY,
		 .summary = "broken on purpose: as mask, but leaves some dirty pages writable",
		 .params = params,
		 .broken = true},
	.harvest = harvest,
};
