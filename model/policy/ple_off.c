// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/ple.h"

/* CPUs without pause-loop exits, and KVM with ple_gap=0. */
const struct ple_policy ple_off = {
	.desc =
		{
			.name = "off",
			.family = FAMILY_PLE,
			.summary = "no pause-loop exits: who spins does so until it is preempted",
		},
	.eligible = ple_eligible_preempted, /* for halts that yield */
};
