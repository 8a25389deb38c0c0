// SPDX-License-Identifier: GPL-2.0-or-later
/* What a VM is made of: its preset, CPU and policies, and whether they go together. */
#include <string.h>

#include "model/guest/personality.h"
#include "model/guest/run.h"
#include "model/guest/vm.h"
#include "model/policy/mmulock.h"
#include "model/policy/preset.h"
#include "model/policy/spte.h"
#include "model/sim/profile.h"

static const char *preset_name(size_t i)
{
	return preset_at(i) ? preset_at(i)->name : NULL;
}

static const char *personality_name(size_t i)
{
	return personality_at(i) ? personality_at(i)->name : NULL;
}

/* That there is no @what called @name, and which there are. */
static int unknown(const struct kvmsim_errsink *errors, const char *what, const char *name,
		   const char *(*name_at)(size_t i))
{
	char names[256] = "";

	for (size_t i = 0; name_at(i); i++) {
		if (i)
			strncat(names, ", ", sizeof(names) - strlen(names) - 1);
		strncat(names, name_at(i), sizeof(names) - strlen(names) - 1);
	}
	return kvmsim_err(errors, KVMSIM_ENOENT, "no %s \"%s\"; there are %s", what, name, names);
}

/* Shadow page tables have no log: there the policy write-protects. */
static int use_cpu_log(struct kvm *kvm, const struct kvmsim_errsink *errors)
{
	if (!kvm->dirty->cpu_log || !kvm->dirty->cpu_log(kvm))
		return 0;
	if (!kvm->cpu->pml)
		return kvmsim_err(errors, KVMSIM_EUNSUPPORTED,
				  "dirty policy %s: CPU %s has no page-modification log%s",
				  kvm->dirty->desc.name, kvm->cpu->name,
				  kvm->cpu->nested_ad ? "" : ", nor D in its nested tables");
	kvm->cpu_dirty_log_size = kvm->tdp_enabled ? CPU_LOG_ENTRIES : 0;
	return 0;
}

/* The preset's, or the one that was asked for. */
static int choose_mmulock(struct kvm *kvm, const char *name, const struct kvmsim_errsink *errors)
{
	bool tdp_mmu = kvm->backend->map_shared;
	const struct policy_desc *d;
	struct policy_params none;
	int r;

	kvm->mmulock = mmulock_default(kvm->preset, tdp_mmu);
	if (!name)
		return 0;
	r = policy_parse(FAMILY_MMULOCK, name, errors, &d, &none);
	if (r)
		return r;
	kvm->mmulock = mmulock_policy_find(d->name, strlen(d->name));
	if ((kvm->mmulock->read_fault || kvm->mmulock->read_relax) && !tdp_mmu)
		return kvmsim_err(errors, KVMSIM_EUNSUPPORTED,
				  "mmulock policy %s: a fault that makes shadow pages cannot share "
				  "mmu_lock, and back end %s has no others",
				  d->name, kvm->backend->name);
	return 0;
}

int kvm_choose_algorithms(struct kvm *kvm, const struct kvm_vm_opts *o)
{
	const struct kvmsim_errsink *errors = sim_errors(o->sim);
	const struct policy_desc *d;
	int r;

	kvm->preset = preset_find(o->preset);
	if (!kvm->preset)
		return unknown(errors, "kernel preset", o->preset, preset_name);
	kvm->cpu = personality_find(o->personality);
	if (!kvm->cpu)
		return unknown(errors, "CPU personality", o->personality, personality_name);
	r = policy_parse(FAMILY_DIRTY, o->dirty ? o->dirty : kvm->preset->dirty, errors, &d,
			 &kvm->dirty_params);
	if (r)
		return r;
	kvm->dirty = dirty_policy_find(d->name, strlen(d->name));
	r = policy_parse(FAMILY_SPTE, o->spte ? o->spte : kvm->preset->spte, errors, &d,
			 &kvm->spte_params);
	if (r)
		return r;
	kvm->spte = spte_policy_find(d->name, strlen(d->name));
	kvm->prefetch = (unsigned)kvm->spte_params.value[SPTE_PREFETCH];
	if (!kvm->prefetch)
		kvm->prefetch = kvm->preset->prefetch;
	mmio_spte_init(kvm, kvm->tdp_enabled && kvm->cpu->vmx, kvm->cpu->phys_bits);
	kvm->ad_enabled = !kvm->tdp_enabled || kvm->cpu->nested_ad;
	kvm->gpa_bits = kvm->cpu->phys_bits;
	kvm->pdptrs_in_memory = kvm->tdp_enabled && !kvm->cpu->vmx;
	kvm->backend =
		kvm->tdp_enabled && kvm->preset->tdp_mmu ? &mmu_backend_tdp : &mmu_backend_rmap;
	kvm->eager_page_split =
		o->eager_page_split != EAGER_PAGE_SPLIT_OFF &&
		(kvm->preset->eager_split == EAGER_SPLIT_ALL ||
		 (kvm->preset->eager_split == EAGER_SPLIT_TDP && kvm->preset->tdp_mmu));
	if (kvm->dirty->walks && !kvm->backend->for_each_shadow_page)
		return kvmsim_err(errors, KVMSIM_EUNSUPPORTED,
				  "dirty policy %s visits shadow pages: back end %s has none",
				  kvm->dirty->desc.name, kvm->backend->name);
	kvm->tlbi_broadcast = profile_param(sim_profile(o->sim), "tlbi_broadcast");
	kvm->no_irqchip = o->no_irqchip;
	if (o->no_irqchip && !kvm->preset->arm64)
		return kvmsim_err(errors, KVMSIM_EUNSUPPORTED,
				  "kernel preset %s: without an interrupt controller of KVM's only "
				  "Arm is modelled",
				  kvm->preset->name);
	r = choose_mmulock(kvm, o->mmulock, errors);
	return r ? r : use_cpu_log(kvm, errors);
}
