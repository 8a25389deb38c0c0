// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmu.h"
#include "model/policy/dirty.h"

/* Every rmap of the slot is looked at whenever a page of it is dirty; the TDP back end, which has
 * none, walks the slot's part of its tables. */

static long harvest(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *bitmap)
{
	long n = dirty_take_words(t, kvm, slot, NULL);
	int r;

	if (n < 0)
		return n;
	if (n) {
		r = kvm->backend->protect_slot(t, kvm, slot, PG_LEVEL_4K);
		if (r < 0)
			return r;
		dirty_flush(t, kvm, slot);
	}
	dirty_copy_out(t, kvm, slot, true, bitmap);
	return n;
}

/* 6.1: the reference matrix, on QEMU's TCG. */
static const struct policy_proof proofs[] = {
	{"6.1-shadow", "tcg", {EVIDENCE_ORACLE, EVIDENCE_ORACLE, EVIDENCE_ORACLE}, NULL},
	{"6.1-tdp", "tcg", {[MMU_TDP] = EVIDENCE_ORACLE}, NULL},
	{0},
};

const struct dirty_policy dirty_rmap_slot = {
	.desc = {.name = "rmap-slot",
		 .family = FAMILY_DIRTY,
		 .summary = "write-protects the whole slot through its rmaps, or its tables",
		 .proofs = proofs},
	.harvest = harvest,
};
