// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/dirty.h"

/* Since 3.10: each dirty page is found by its rmap, a word of the bitmap at a time. */

static long harvest(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *bitmap)
{
	return dirty_harvest_words(t, kvm, slot, dirty_rearm_word, bitmap);
}

const struct dirty_policy dirty_mask = {
	.desc = {.name = "mask",
		 .family = FAMILY_DIRTY,
		 .summary = "write-protects the dirty pages by their rmaps, word by word (3.10 on)",
		 .evidence = {EVIDENCE_ORACLE, EVIDENCE_ORACLE, EVIDENCE_ORACLE}},
	.harvest = harvest,
};
