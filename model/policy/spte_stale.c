// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/spte.h"

static const struct policy_param params[] = {SPTE_PARAMS, {0}};

/* Broken on purpose: an MMIO spte stays good when a slot takes the device's place. The checkers
 * must say so. */
const struct spte_policy spte_stale = {
	.desc = {.name = "stale",
		 .family = FAMILY_SPTE,
		 .summary = "deliberately broken: MMIO sptes outlive what they are about",
		 .params = params,
		 .broken = true},
	.vcpu_cache = true,
	.mmio_sptes = true,
};
