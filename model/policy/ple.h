/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_POLICY_PLE_H
#define KVMSIM_POLICY_PLE_H

#include "model/policy/policy.h"

/* What policies of pause-loop exits share: their first parameters, and who may be yielded to. */
enum ple_param { PLE_WINDOW, PLE_GAP, PLE_CANDIDATES, PLE_READY, PLE_N_COMMON };

/* 4096 cycles since 2.6.32; the gap was 41 until 3.15. */
#define PLE_COMMON_PARAMS                                                                          \
	{"window", 4096, 0, UINT32_MAX, 1, "cycles of a pause loop up to an exit; 0: no exits"},   \
		{"gap", 128, 0, UINT32_MAX, 1, "cycles between PAUSEs of one loop"},               \
		{"candidates",                                                                     \
		 2,                                                                                \
		 0,                                                                                \
		 3,                                                                                \
		 1,                                                                                \
		 "vCPUs to yield to: 0 any runnable, 1 not those in a pause loop every second "    \
		 "time, 2 preempted ones of them, 3 first those that owe an answer to a call"},    \
	{                                                                                          \
		"ready", 0, 0, 1, 1,                                                               \
			"1: with candidates 2 and 3 also those woken that have no CPU yet"         \
	}

uint64_t ple_gap(const struct smp_vcpu *v);
unsigned ple_rounds(const struct smp_vcpu *v);
bool ple_eligible(struct smp_vcpu *v, struct smp_vcpu *target, unsigned pass);
/* As with candidates=2. */
bool ple_eligible_preempted(struct smp_vcpu *v, struct smp_vcpu *target, unsigned pass);

extern const struct ple_policy ple_off, ple_fixed, ple_window;

#endif
