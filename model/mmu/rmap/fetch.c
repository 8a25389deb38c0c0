// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

/*
 * Filling shadow page tables: along the guest's own (fetch_guest_mapping) or straight to host
 * frames (direct_map), and the neighbours of the entry that faulted.
 */

/* The slot for a prefetch; none where a writable spte would have to be logged. */
static struct kvm_memory_slot *prefetch_slot(struct kvm_vcpu *v, gfn_t gfn, bool write)
{
	struct kvm_memory_slot *slot = memslot_lookup(v->task, v->kvm, gfn);
	/* The host's pages are looked up for writing. */
	uint32_t no = MEMSLOT_INVALID | MEMSLOT_READONLY | (write ? MEMSLOT_LOG_DIRTY : 0);

	return slot && !(memslot_flags(v->task, slot) & no) ? slot : NULL;
}

/* Maps the entries from @start to before @end of a direct page, as far as the host has the pages
 * at hand. False: stop. */
static bool direct_prefetch_run(struct kvm_vcpu *v, struct kvm_mmu_page *sp, unsigned start,
				unsigned end)
{
	gfn_t gfn = sp_gfn(sp, start);
	struct kvm_memory_slot *slot = prefetch_slot(v, gfn, sp->role.access & ACC_WRITE);
	unsigned n;

	/* A run that goes past the slot's end is not looked up at all. */
	if (!slot || gfn + (end - start) > slot->base_gfn + slot->npages)
		return false;
	charge(v->task, COUNT_prefetch_gup, 1);
	for (n = 0; n < end - start; n++)
		if (!memslot_host_writable(slot, gfn + n))
			break;
	charge(v->task, COUNT_prefetch_pfn, n);
	for (unsigned i = 0; i < n; i++)
		set_spte(v, slot, &sp->spt[start + i], sp->role.access, gfn + i,
			 memslot_pfn(slot, gfn + i), NULL);
	return n > 0;
}

static void direct_prefetch(struct kvm_vcpu *v, uint64_t *sptep)
{
	struct kvm_mmu_page *sp = sptep_to_sp(sptep);
	unsigned group = v->kvm->prefetch, index = spte_index(sptep);
	unsigned first = index & ~(group - 1), start = first;
	bool open = false;

	if (sp->role.level > PG_LEVEL_4K || group < 2 || v->kvm->notifiers.in_progress)
		return;
	for (unsigned i = first; i < first + group; i++) {
		if (i == index || spte_present(spte_read(v->task, v->kvm, &sp->spt[i]))) {
			if (open && !direct_prefetch_run(v, sp, start, i))
				return;
			open = false;
		} else if (!open) {
			start = i;
			open = true;
		}
	}
	if (open)
		direct_prefetch_run(v, sp, start, first + group);
}

int max_mapping_level(struct task *t, struct kvm *kvm, const struct kvm_memory_slot *slot,
		      gfn_t gfn, int max_level, uint16_t count)
{
	int level, host_level;

	for (level = max_level; level > PG_LEVEL_4K; level--) {
		uint64_t i = memslot_index(slot, gfn, level);

		kvm_touch(t, kvm, slot->lpage_addr[level - 1] + i * sizeof(int32_t),
			  sizeof(int32_t), false);
		touch_shared(t);
		task_assert_first(t, "where large pages are allowed");
		if (!slot->disallow_lpage[level - 1][i])
			break;
	}
	if (level == PG_LEVEL_4K)
		return level;
	charge(t, count, 1);
	host_level = memslot_host_level(slot, gfn);
	return host_level < level ? host_level : level;
}

/* A slot that is logged has no large pages made: they could not be logged one by one. */
void hugepage_adjust(struct kvm_vcpu *v, struct kvm_page_fault *f)
{
	if (f->max_level == PG_LEVEL_4K || !f->slot ||
	    (memslot_flags(v->task, f->slot) & MEMSLOT_LOG_DIRTY))
		return;
	f->goal_level =
		max_mapping_level(v->task, v->kvm, f->slot, f->gfn, f->max_level, COUNT_host_walk);
	f->pfn &= ~(pages_per_level(f->goal_level) - 1);
}

static gfn_t round_gfn(gfn_t gfn, int level)
{
	return gfn & ~(pages_per_level(level) - 1);
}

int direct_map(struct kvm_vcpu *v, struct kvm_page_fault *f)
{
	struct shadow_walk w;
	struct kvm_mmu_page *sp;
	enum ret_pf ret;

	hugepage_adjust(v, f);
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_spte_requested, .gfn = f->gfn,
			.level = f->goal_level);
	for (shadow_walk_init(&w, v, f->addr); shadow_walk_okay(&w); shadow_walk_next(&w, v->kvm)) {
		charge(v->task, COUNT_shadow_level, 1);
		if (w.level == f->goal_level)
			break;
		sp = get_child_sp(v, w.sptep, round_gfn(f->gfn, w.level), true, ACC_ALL);
		if (sp == SP_EXISTS)
			continue;
		if (!sp)
			return KVMSIM_ENOMEM;
		link_shadow_page(v, w.sptep, sp);
	}
	ret = set_spte(v, f->slot, w.sptep, ACC_ALL, round_gfn(f->gfn, w.level), f->pfn, f);
	if (ret != RET_PF_SPURIOUS)
		direct_prefetch(v, w.sptep);
	return ret;
}

bool prefetch_invalid_gpte(const struct kvm_vcpu *v, uint64_t gpte)
{
	return !(gpte & PT_PRESENT) || !(gpte & PT_ACCESSED) ||
	       gpte_reserved(&v->paging, gpte, PG_LEVEL_4K);
}

unsigned shadowed_access(const struct kvm_mmu_page *sp, uint64_t gpte)
{
	unsigned access = sp->role.access & gpte_access(gpte);

	return gpte & PT_DIRTY ? access : access & ~ACC_WRITE;
}

bool prefetch_gpte(struct kvm_vcpu *v, struct kvm_mmu_page *sp, uint64_t *sptep, uint64_t gpte,
		   bool no_dirty_log)
{
	gfn_t gfn = gpte_gfn(&v->paging, gpte, PG_LEVEL_4K);
	unsigned access = shadowed_access(sp, gpte);
	struct kvm_memory_slot *slot;

	if (prefetch_invalid_gpte(v, gpte)) {
		page_zap_pte(v->task, v->kvm, sp, sptep); /* an mmio spte that is out of date */
		return false;
	}
	slot = prefetch_slot(v, gfn, no_dirty_log && (access & ACC_WRITE));
	if (!slot)
		return false;
	charge(v->task, COUNT_prefetch_gup, 1);
	if (!memslot_host_writable(slot, gfn))
		return false;
	charge(v->task, COUNT_prefetch_pfn, 1);
	host_page_used(v->task, v->kvm, slot, gfn);
	set_spte(v, slot, sptep, access, gfn, memslot_pfn(slot, gfn), NULL);
	return true;
}

static void guest_prefetch(struct kvm_vcpu *v, const struct guest_walk *gw, uint64_t *sptep)
{
	struct kvm_mmu_page *sp = sptep_to_sp(sptep);
	unsigned group = v->kvm->prefetch, index = spte_index(sptep);
	unsigned first = index & ~(group - 1);

	if (sp->role.level > PG_LEVEL_4K || group < 2)
		return;
	if (sp->role.direct) {
		direct_prefetch(v, sptep);
		return;
	}
	if (v->kvm->notifiers.in_progress) /* what it would find may be going */
		return;
	for (unsigned i = first; i < first + group; i++)
		if (i != index && !spte_present(spte_read(v->task, v->kvm, &sp->spt[i])) &&
		    !prefetch_gpte(v, sp, &sp->spt[i], gw->prefetch_ptes[i - first], true))
			break;
}

/* Whether the guest has changed the entry of @level since the walk; at the last level the entries
 * beside it are read along for the prefetch. */
static bool gpte_changed(struct kvm_vcpu *v, struct guest_walk *gw, int level)
{
	gpa_t gpa = gw->pte_gpa[level - 1];
	unsigned group = v->kvm->prefetch, bytes = gpte_bytes(&v->paging);

	charge(v->task, COUNT_gpte_check, 1);
	touch_shared(v->task);
	if (level == PG_LEVEL_4K && group > 1) {
		gpa_t base = gpa & ~(gpa_t)(group * bytes - 1);

		for (unsigned i = 0; i < group; i++)
			gw->prefetch_ptes[i] = gmem_load(v->task, v->kvm, base + i * bytes, bytes);
	}
	return gmem_load(v->task, v->kvm, gpa, bytes) != gw->ptes[level - 1];
}

/* A direct page below a guest's large page whose access has changed gives way to a new one. */
static void validate_direct_spte(struct kvm_vcpu *v, uint64_t *sptep, unsigned access)
{
	struct kvm_mmu_page *child;

	if (!spte_present(*sptep) || (*sptep & PT_PAGE_SIZE))
		return;
	child = spte_to_child(v->kvm, *sptep);
	if (child->role.access == access)
		return;
	drop_parent_pte(v->task, v->kvm, child, sptep);
	kvm_flush_remote_tlbs(v->task, v->kvm);
}

int fetch_guest_mapping(struct kvm_vcpu *v, struct kvm_page_fault *f, struct guest_walk *gw)
{
	struct shadow_walk w;
	struct kvm_mmu_page *sp;
	enum ret_pf ret;

	if (gpte_changed(v, gw, gw->max_level))
		return RET_PF_RETRY;
	for (shadow_walk_init(&w, v, f->addr); shadow_walk_okay(&w) && w.level > gw->level;
	     shadow_walk_next(&w, v->kvm)) {
		charge(v->task, COUNT_shadow_level, 1);
		clear_write_flooding(w.sptep);
		sp = get_child_sp(v, w.sptep, gw->table_gfn[w.level - 2], false,
				  gw->pt_access[w.level - 2]);
		if (!sp)
			return KVMSIM_ENOMEM;
		/* An entry that becomes present needs no flush by the guest: what is linked must
		 * be in step. get_child_sp() has seen to a page of 4K entries. */
		if (sp != SP_EXISTS && sp->unsync_children && mmu_sync_children(v, sp, false))
			return RET_PF_RETRY;
		/* The table is write-protected now: is the entry what it was? */
		if (gpte_changed(v, gw, w.level - 1))
			return RET_PF_RETRY;
		if (sp != SP_EXISTS)
			link_shadow_page(v, w.sptep, sp);
	}
	hugepage_adjust(v, f);
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_mmu_spte_requested, .gfn = f->gfn,
			.level = f->goal_level);
	for (; shadow_walk_okay(&w); shadow_walk_next(&w, v->kvm)) {
		charge(v->task, COUNT_shadow_level, 1);
		clear_write_flooding(w.sptep);
		if (w.level == f->goal_level)
			break;
		validate_direct_spte(v, w.sptep, gw->pte_access);
		sp = get_child_sp(v, w.sptep, round_gfn(f->gfn, w.level), true, gw->pte_access);
		if (sp == SP_EXISTS)
			continue;
		if (!sp)
			return KVMSIM_ENOMEM;
		link_shadow_page(v, w.sptep, sp);
	}
	ret = set_spte(v, f->slot, w.sptep, gw->pte_access, round_gfn(f->gfn, w.level), f->pfn, f);
	if (ret != RET_PF_SPURIOUS)
		guest_prefetch(v, gw, w.sptep);
	return ret;
}
