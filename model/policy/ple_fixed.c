// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/ple.h"
#include "model/smp/smp.h"

static const struct policy_param params[] = {PLE_COMMON_PARAMS, {.name = NULL}};

static uint64_t window(const struct smp_vcpu *v)
{
	return smp_vm_opts(smp_vm_of(v))->ple_params.value[PLE_WINDOW];
}

const struct ple_policy ple_fixed = {
	.desc =
		{
			.name = "fixed",
			.family = FAMILY_PLE,
			.summary = "pause-loop exits after a window that stays as it is",
			.params = params,
		},
	.window = window,
	.gap = ple_gap,
	.rounds = ple_rounds,
	.eligible = ple_eligible,
};
