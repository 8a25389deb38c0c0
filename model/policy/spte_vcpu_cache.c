// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/spte.h"

static const struct policy_param params[] = {SPTE_PARAMS, {0}};

static const struct policy_proof proofs[] = {SPTE_PROOFS, {0}};

/* Since 3.1, and with the module's parameter mmio_caching=0 since 5.19: each access is a full
 * fault, but the emulator finds in the vCPU that it is a device's. It walks no tables for that
 * where the fault's address is the guest's own, and searches no slots. */
const struct spte_policy spte_vcpu_cache = {
	.desc = {.name = "vcpu-cache",
		 .family = FAMILY_SPTE,
		 .summary = "each vCPU remembers the device's page that it accessed last "
			    "(mmio_caching=0)",
		 .params = params,
		 .proofs = proofs},
	.vcpu_cache = true,
};
