// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/policy/dirty.h"
#include "model/policy/lock.h"
#include "model/policy/mmulock.h"
#include "model/policy/ple.h"
#include "model/policy/policy.h"
#include "model/policy/preset.h"
#include "model/policy/spte.h"

/* All policies, family by family. The description is a policy's first member. */
static const struct policy_desc *const policies[] = {
	&dirty_walk.desc,
	&dirty_rmap_slot.desc,
	&dirty_mask.desc,
	&dirty_hybrid.desc,
	&dirty_manual.desc,
	&dirty_pml.desc,
	&dirty_ring.desc,
	&dirty_lossy.desc,
	&spte_none.desc,
	&spte_vcpu_cache.desc,
	&spte_mmio.desc,
	&spte_mmio_gen.desc,
	&spte_stale.desc,
	&mmulock_spin.desc,
	&mmulock_rwlock.desc,
	&mmulock_rwlock_relax.desc,
	&mmulock_rwlock_tdp.desc,
	&lock_tas.desc,
	&lock_ticket.desc,
	&lock_pvticket.desc,
	&lock_pvticket_yield.desc,
	&lock_qspin.desc,
	&lock_pvqspin.desc,
	&lock_busted.desc,
	&ple_off.desc,
	&ple_fixed.desc,
	&ple_window.desc,
};

#define N_POLICIES (sizeof(policies) / sizeof(policies[0]))

const char *mmu_kind_name(enum mmu_kind k)
{
	static const char *const names[N_MMU_KINDS] = {
		[MMU_SHADOW_LONG64] = "npt0-long64",
		[MMU_SHADOW_FLAT32] = "npt0-flat32",
		[MMU_TDP_RMAP] = "npt1-tdp0",
		[MMU_TDP] = "npt1-tdp1",
	};

	return names[k];
}

const char *policy_evidence_name(enum policy_evidence e)
{
	static const char *const names[] = {
		[EVIDENCE_NONE] = "none",
		[EVIDENCE_PUBLISHED] = "published",
		[EVIDENCE_ORACLE] = "oracle-exact",
	};

	return e == EVIDENCE_REFUSED ? "refused" : names[e];
}

const struct policy_proof *policy_proof(const struct policy_desc *d, const char *preset,
					const char *cpu)
{
	static const struct policy_proof none;

	for (const struct policy_proof *p = d->proofs; p && p->preset; p++)
		if (!strcmp(p->preset, preset) && !strcmp(p->cpu, cpu))
			return p;
	return &none;
}

size_t policy_count(void)
{
	return N_POLICIES;
}

const struct policy_desc *policy_at(size_t i)
{
	return i < N_POLICIES ? policies[i] : NULL;
}

static const struct policy_desc *find(enum policy_family family, const char *name, size_t len)
{
	const struct policy_desc *d;

	for (size_t i = 0; (d = policy_at(i)); i++)
		if (d->family == family && strlen(d->name) == len && !memcmp(d->name, name, len))
			return d;
	return NULL;
}

const struct dirty_policy *dirty_policy_find(const char *name, size_t len)
{
	return (const struct dirty_policy *)find(FAMILY_DIRTY, name, len);
}

const struct spte_policy *spte_policy_find(const char *name, size_t len)
{
	return (const struct spte_policy *)find(FAMILY_SPTE, name, len);
}

const struct lock_policy *lock_policy_find(const char *name, size_t len)
{
	return (const struct lock_policy *)find(FAMILY_LOCK, name, len);
}

const struct ple_policy *ple_policy_find(const char *name, size_t len)
{
	return (const struct ple_policy *)find(FAMILY_PLE, name, len);
}

const struct mmulock_policy *mmulock_policy_find(const char *name, size_t len)
{
	return (const struct mmulock_policy *)find(FAMILY_MMULOCK, name, len);
}

const struct mmulock_policy *mmulock_default(const struct kvm_preset *preset, bool tdp_mmu)
{
	if (preset->mmulock)
		return mmulock_policy_find(preset->mmulock, strlen(preset->mmulock));
	return !preset->mmu_lock_rw ? &mmulock_spin
	       : tdp_mmu	    ? &mmulock_rwlock_tdp
				    : &mmulock_rwlock;
}

static int unknown_policy(enum policy_family family, const char *name, size_t len,
			  const struct kvmsim_errsink *errors)
{
	static const char *const families[N_FAMILIES] = {
		[FAMILY_DIRTY] = "dirty", [FAMILY_SPTE] = "spte",	[FAMILY_LOCK] = "lock",
		[FAMILY_PLE] = "ple",	  [FAMILY_MMULOCK] = "mmulock",
	};
	const struct policy_desc *d;
	char names[256] = "";

	for (size_t i = 0; (d = policy_at(i)); i++) {
		if (d->family != family)
			continue;
		if (names[0])
			strncat(names, ", ", sizeof(names) - strlen(names) - 1);
		strncat(names, d->name, sizeof(names) - strlen(names) - 1);
	}
	return kvmsim_err(errors, KVMSIM_ENOENT, "no %s policy \"%.*s\"; there are %s",
			  families[family], (int)len, name, names);
}

/* One "key=value" of @len characters. @given: a bit for each that was there before. */
static int parse_param(const struct policy_desc *d, const char *text, size_t len,
		       const struct kvmsim_errsink *errors, struct policy_params *params,
		       uint64_t *given)
{
	const char *eq = memchr(text, '=', len);
	size_t key = eq ? (size_t)(eq - text) : len, digits = eq ? len - key - 1 : 0;
	uint64_t value = 0;

	for (int i = 0; d->params && d->params[i].name; i++) {
		const struct policy_param *p = &d->params[i];

		if (strlen(p->name) != key || memcmp(p->name, text, key))
			continue;
		if (*given & 1ull << i)
			return kvmsim_err(errors, KVMSIM_EPARSE,
					  "policy %s: %s is given twice, again as \"%.*s\"",
					  d->name, p->name, (int)len, text);
		*given |= 1ull << i;
		for (size_t j = 0; j < digits; j++) {
			unsigned digit = (unsigned char)eq[1 + j] - '0';

			if (digit > 9 || value > (UINT64_MAX - digit) / 10)
				digits = 0;
			else
				value = value * 10 + digit;
		}
		if (!digits || value < p->min || value > p->max)
			return kvmsim_err(
				errors, KVMSIM_EPARSE,
				"policy %s: \"%.*s\": expected a whole number from %llu to "
				"%llu",
				d->name, (int)len, text, (unsigned long long)p->min,
				(unsigned long long)p->max);
		if (!p->step && (value & (value - 1)))
			return kvmsim_err(errors, KVMSIM_EPARSE,
					  "policy %s: \"%.*s\": expected a power of two", d->name,
					  (int)len, text);
		if (p->step && value % p->step)
			return kvmsim_err(errors, KVMSIM_EPARSE,
					  "policy %s: \"%.*s\": expected a multiple of %llu",
					  d->name, (int)len, text, (unsigned long long)p->step);
		params->value[i] = value;
		return 0;
	}
	return kvmsim_err(errors, KVMSIM_EPARSE, "policy %s has no parameter \"%.*s\"", d->name,
			  (int)key, text);
}

int policy_parse(enum policy_family family, const char *text, const struct kvmsim_errsink *errors,
		 const struct policy_desc **desc, struct policy_params *params)
{
	size_t len = strcspn(text, ",");
	const struct policy_desc *d = find(family, text, len);
	uint64_t given = 0;
	int r;

	if (!d)
		return unknown_policy(family, text, len, errors);
	memset(params, 0, sizeof(*params));
	for (int i = 0; d->params && d->params[i].name; i++)
		params->value[i] = d->params[i].def;
	for (text += len; *text; text += len) {
		text++;
		len = strcspn(text, ",");
		r = parse_param(d, text, len, errors, params, &given);
		if (r)
			return r;
	}
	*desc = d;
	return 0;
}
