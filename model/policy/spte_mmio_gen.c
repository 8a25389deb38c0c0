// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmu.h"
#include "model/policy/spte.h"

enum { GEN_BITS = N_SPTE_PARAMS };

static const struct policy_param params[] = {
	SPTE_PARAMS,
	{"gen-bits", 19, 2, 19, 1, "of the memslots' generation in each; each change counts two"},
	{0}};

/* Of 6.12: V_slots (analysis/evidence/kernel-6.12). */
static const struct policy_proof proofs[] = {
	SPTE_PROOFS,
	{"6.12-shadow", "tcg", {[MMU_SHADOW_LONG64] = EVIDENCE_ORACLE}, NULL},
	{"6.12-tdp", "tcg", {[MMU_TDP] = EVIDENCE_ORACLE}, NULL},
	{0}};

static unsigned generation_bits(const struct kvm *kvm)
{
	return (unsigned)kvm->spte_params.value[GEN_BITS];
}

/* Those of long ago would be good again: they must go. */
static void memslots_updated(struct task *t, struct kvm *kvm, uint64_t generation, bool placed)
{
	(void)placed;
	if (!(generation & ((1ull << generation_bits(kvm)) - 1)))
		kvm_mmu_zap_all(t, kvm);
}

/* Since 3.11: each MMIO spte holds the generation of the slots that it is of. One that is older
 * costs a full fault, which makes it anew; when the bits for it wrap around, all shadow pages go.
 */
const struct spte_policy spte_mmio_gen = {
	.desc = {.name = "mmio-gen",
		 .family = FAMILY_SPTE,
		 .summary = "as vcpu-cache, and MMIO sptes, stale once the slots change (3.11 on)",
		 .params = params,
		 .proofs = proofs},
	.vcpu_cache = true,
	.mmio_sptes = true,
	.generation_bits = generation_bits,
	.memslots_updated = memslots_updated,
};
