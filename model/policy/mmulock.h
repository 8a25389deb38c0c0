/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_POLICY_MMULOCK_H
#define KVMSIM_POLICY_MMULOCK_H

#include "model/policy/policy.h"

struct kvm_preset;

/* What a preset's kernel has; @tdp_mmu: the VM has the TDP MMU's tables. */
const struct mmulock_policy *mmulock_default(const struct kvm_preset *preset, bool tdp_mmu);

extern const struct mmulock_policy mmulock_spin, mmulock_rwlock, mmulock_rwlock_relax,
	mmulock_rwlock_tdp;

#endif
