// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/dirty.h"

/* Since 3.10: each dirty page is found by its rmap, a word of the bitmap at a time; the TDP back
 * end walks its tables over the word's frames. */

static long harvest(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *bitmap)
{
	return dirty_harvest_words(t, kvm, slot, dirty_rearm_word, bitmap);
}

/* 6.1: the reference matrix, on QEMU's TCG. 6.12: cases A, B and N
 * (analysis/evidence/kernel-6.12). 2.6.36: the rows of the 2010 thread that were not fitted, of a
 * 64-bit guest under shadow paging; `kvmsim validate` predicts them. */
static const struct policy_proof proofs[] = {
	{"6.1-shadow", "tcg", {EVIDENCE_ORACLE, EVIDENCE_ORACLE, EVIDENCE_ORACLE}, NULL},
	{"6.1-tdp", "tcg", {[MMU_TDP] = EVIDENCE_ORACLE}, NULL},
	{"6.12-shadow", "tcg", {EVIDENCE_ORACLE, EVIDENCE_ORACLE, EVIDENCE_ORACLE}, NULL},
	{"6.12-tdp", "tcg", {[MMU_TDP] = EVIDENCE_ORACLE}, NULL},
	{"2.6.36", "tcg", {[MMU_SHADOW_LONG64] = EVIDENCE_PUBLISHED}, NULL},
	{0},
};

const struct dirty_policy dirty_mask = {
	.desc = {.name = "mask",
		 .family = FAMILY_DIRTY,
		 .summary = "write-protects the dirty pages, word by word (3.10 on)",
		 .proofs = proofs},
	.harvest = harvest,
};
