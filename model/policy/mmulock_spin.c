// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/mmulock.h"

/* A spinlock: nobody shares it, the TDP MMU's walks neither, as in 5.10 and 5.11. */
const struct mmulock_policy mmulock_spin = {
	.desc = {.name = "spin",
		 .family = FAMILY_MMULOCK,
		 .summary = "a spinlock: one fault, one walk at a time (to 5.11)"},
};
