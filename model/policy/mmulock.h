/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_POLICY_MMULOCK_H
#define KVMSIM_POLICY_MMULOCK_H

#include "model/policy/policy.h"

/* What a preset's kernel has: its mmu_lock by kvm_preset.mmu_lock_rw; with an rwlock, what the TDP
 * MMU takes it for. */
const struct mmulock_policy *mmulock_default(bool rw, bool tdp_mmu);

extern const struct mmulock_policy mmulock_spin, mmulock_rwlock, mmulock_rwlock_tdp;

#endif
