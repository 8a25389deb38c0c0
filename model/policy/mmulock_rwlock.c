// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/mmulock.h"

/* A fair rwlock, which faults hold for writing: those of shadow pages in any kernel since 5.12.
 * Walks of the TDP MMU's that change no more than bits of entries share it. */
const struct mmulock_policy mmulock_rwlock = {
	.desc = {.name = "rwlock",
		 .family = FAMILY_MMULOCK,
		 .summary = "an rwlock that every fault holds for writing (5.12 on, shadow pages)"},
	.rw = true,
};
