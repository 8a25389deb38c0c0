/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_POLICY_SPTE_H
#define KVMSIM_POLICY_SPTE_H

#include "model/policy/policy.h"

/*
 * What spte policies share: the parameters that each begins with, in this order, so that
 * kvm->spte_params.value[SPTE_FLOOD] is the flood threshold whatever the policy. A policy's own
 * follow from N_SPTE_PARAMS on.
 */
enum spte_param { SPTE_UNSYNC, SPTE_PREFETCH, SPTE_FLOOD, N_SPTE_PARAMS };

#define SPTE_PARAMS                                                                                \
	{                                                                                          \
		"unsync",                                                                          \
		1,                                                                                 \
		0,                                                                                 \
		1,                                                                                 \
		1,                                                                                 \
		"a guest's last-level tables may be written without exits, until it flushes"},     \
		{"prefetch",                                                                       \
		 0,                                                                                \
		 0,                                                                                \
		 8,                                                                                \
		 0,                                                                                \
		 "aligned group of sptes filled per fault, 1: only the one; 0: the kernel's"},     \
	{                                                                                          \
		"flood", 3, 0, 1000, 1,                                                            \
			"emulated writes to a table, unused meanwhile, that zap it; 0: never"      \
	}

/* Of Debian's 6.1 under QEMU: cases E of the reference matrix, with mmio_caching on and off, and op
 * programs with modules patched for the others (analysis/evidence/kernel/policies-*). */
#define SPTE_PROOFS                                                                                \
	{.preset = "6.1-shadow",                                                                   \
	 .cpu = "tcg",                                                                             \
	 .on = {[MMU_SHADOW_LONG64] = EVIDENCE_ORACLE,                                             \
		[MMU_SHADOW_FLAT32] = EVIDENCE_ORACLE,                                             \
		[MMU_TDP_RMAP] = EVIDENCE_ORACLE}},                                                \
	{                                                                                          \
		.preset = "6.1-tdp", .cpu = "tcg", .on = { [MMU_TDP] = EVIDENCE_ORACLE }           \
	}

extern const struct spte_policy spte_none, spte_vcpu_cache, spte_mmio, spte_mmio_gen, spte_stale;

#endif
