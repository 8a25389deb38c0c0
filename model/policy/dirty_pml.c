// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmu.h"
#include "model/policy/dirty.h"

/*
 * Since 4.0, on CPUs of Intel's since Broadwell: 4K pages are armed by taking D, and the CPU itself
 * logs which it sets again (model/mmu/cpu_log.h), so that a store takes no fault. Larger mappings
 * are write-protected as ever, and split by the first store. In the kernel this is not a policy
 * beside the others but what GET, CLEAR and the ring arm with when the CPU has the log; so
 * `manual,pml=1`. Shadow page tables are no nested ones: under shadow paging this is `mask`.
 */

static bool cpu_log(const struct kvm *kvm)
{
	(void)kvm;
	return true;
}

static long harvest(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *bitmap)
{
	return dirty_harvest_words(t, kvm, slot, dirty_rearm_word, bitmap);
}

#define ALL_REFUSED                                                                                \
	{                                                                                          \
		EVIDENCE_REFUSED, EVIDENCE_REFUSED, EVIDENCE_REFUSED, EVIDENCE_REFUSED             \
	}
static const struct policy_proof proofs[] = {
	{"6.1-shadow", "tcg", ALL_REFUSED, "the CPU has no page-modification log"},
	{"6.1-tdp", "tcg", ALL_REFUSED, "the CPU has no page-modification log"},
	{0},
};

const struct dirty_policy dirty_pml = {
	.desc = {.name = "pml",
		 .family = FAMILY_DIRTY,
		 .summary =
			 "as mask, but D is taken and Intel's page-modification log used (4.0 on)",
		 .proofs = proofs},
	.cpu_log = cpu_log,
	.harvest = harvest,
};
