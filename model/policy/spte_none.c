// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/spte.h"

static const struct policy_param params[] = {SPTE_PARAMS, {0}};

static const struct policy_proof proofs[] = {SPTE_PROOFS, {0}};

/* Until 3.0: an access to a device leaves nothing behind, each one is a full fault. */
const struct spte_policy spte_none = {
	.desc = {.name = "none",
		 .family = FAMILY_SPTE,
		 .summary = "remembers nothing of device accesses: each is a full fault (to 3.0)",
		 .params = params,
		 .proofs = proofs},
};
