// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/mmulock.h"

/* Faults of the TDP MMU hold the rwlock for reading; who loses an entry's compare-and-exchange to
 * another takes the fault again. */
const struct mmulock_policy mmulock_rwlock_tdp = {
	.desc = {.name = "rwlock-tdp",
		 .family = FAMILY_MMULOCK,
		 .summary = "an rwlock that faults of the TDP MMU hold for reading (5.12 on)"},
	.rw = true,
	.read_fault = true,
};
