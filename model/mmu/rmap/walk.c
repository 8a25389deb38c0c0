// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

void shadow_walk_init(struct shadow_walk *w, struct kvm_vcpu *v, uint64_t addr)
{
	w->addr = addr;
	w->sp = v->root.sp ? v->root.sp : v->pae_root[(addr >> 30) & 3];
	w->level = w->sp ? w->sp->role.level : 0;
}

void shadow_walk_init_root(struct shadow_walk *w, struct kvm_mmu_page *root, uint64_t addr)
{
	w->addr = addr;
	w->sp = root;
	w->level = root->role.level;
}

bool shadow_walk_okay(struct shadow_walk *w)
{
	if (w->level < PG_LEVEL_4K)
		return false;
	w->index = pt_index(w->addr, w->level);
	w->sptep = &w->sp->spt[w->index];
	return true;
}

void shadow_walk_next_at(struct shadow_walk *w, const struct kvm *kvm, uint64_t spte)
{
	if (!spte_present(spte) || spte_last(spte, w->level)) {
		w->level = 0;
		return;
	}
	w->sp = spte_to_child(kvm, spte);
	w->level--;
}

void shadow_walk_next(struct shadow_walk *w, const struct kvm *kvm)
{
	shadow_walk_next_at(w, kvm, *w->sptep);
}
