// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/mmulock.h"

/* Only faults that find a page of 4 KiB mapped, and give it W back while its slot is logged, hold
 * the rwlock for reading: the first that Arm's did (5.18). */
const struct mmulock_policy mmulock_rwlock_relax = {
	.desc = {.name = "rwlock-relax",
		 .family = FAMILY_MMULOCK,
		 .summary =
			 "an rwlock that nested tables' faults hold for reading when they give a "
			 "logged page W back (Arm, 5.18)"},
	.rw = true,
	.read_relax = true,
};
