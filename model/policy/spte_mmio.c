// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmu.h"
#include "model/policy/spte.h"

enum { MMIO_CACHED = N_SPTE_PARAMS };

static const struct policy_param params[] = {
	SPTE_PARAMS,
	{"mmio-cached", 0, 0, 1, 1, "a new slot zaps only shadow pages with MMIO sptes (3.9)"},
	{0}};

static const struct policy_proof proofs[] = {SPTE_PROOFS, {0}};

static void memslots_updated(struct task *t, struct kvm *kvm, uint64_t generation, bool placed)
{
	(void)generation;
	if (!placed)
		return;
	if (kvm->spte_params.value[MMIO_CACHED])
		kvm_mmu_zap_mmio_pages(t, kvm);
	else
		kvm_mmu_zap_all(t, kvm);
}

/* From 3.1 to 3.10: a slot that is made or moved takes all MMIO sptes away, and with them all
 * shadow pages, or from 3.9 on those that have such sptes; one that is deleted takes all anyway.
 * The reserved bits were bypass_guest_pf's before, which marked absent guest entries by them: it
 * went when MMIO sptes came, and is not modelled, since guests here have no faults of their own. */
const struct spte_policy spte_mmio = {
	.desc = {.name = "mmio-spte",
		 .family = FAMILY_SPTE,
		 .summary =
			 "as vcpu-cache, and MMIO sptes, which every new slot zaps (3.1 to 3.10)",
		 .params = params,
		 .proofs = proofs},
	.vcpu_cache = true,
	.mmio_sptes = true,
	.memslots_updated = memslots_updated,
};
