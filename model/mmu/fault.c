// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/rmap/rmap.h"

#include "model/policy/preset.h"

/* A write to a page whose shadowed entries would go stale: no fault can make it writable. */
static bool page_tracked(struct task *t, const struct kvm_page_fault *f)
{
	if (!f->present || !f->write || !f->slot || f->rsvd)
		return false;
	touch_shared(t);
	task_assert_first(t, "a memslot's write tracking");
	return f->slot->write_track[f->gfn - f->slot->base_gfn];
}

static bool access_allowed(const struct kvm_page_fault *f, uint64_t spte)
{
	if (f->exec)
		return !(spte & PT_NX) && (spte & PT_PRESENT);
	return f->write ? spte_writable(spte) : spte & PT_PRESENT;
}

/* What a fault can be answered with without mmu_lock: W again where only dirty logging has taken
 * it, and, without A and D, what access tracking has taken. */
static uint64_t restored_spte(const struct kvm_vcpu *v, const struct kvm_page_fault *f,
			      uint64_t spte)
{
	if (!v->kvm->ad_enabled && spte_access_track(spte))
		spte |= PT_PRESENT;
	if (f->write && (spte & SPTE_MMU_WRITABLE))
		spte |= PT_WRITABLE;
	return spte;
}

/* The cmpxchg is one touch: nobody can come between its look and its store. D stays clear, so that
 * a CPU with a log logs the store once more. */
static bool fix_spte(struct kvm_vcpu *v, const struct kvm_page_fault *f, uint64_t *sptep,
		     uint64_t old, uint64_t spte)
{
	kvm_touch(v->task, v->kvm, sptep_addr(sptep), sizeof(*sptep), true);
	if (spte_reread(v->task, sptep) != old)
		return false;
	*sptep = spte;
	if (spte_writable(spte) && !spte_writable(old))
		mark_page_dirty_in_slot(v->task, v->kvm, f->slot, f->gfn);
	return true;
}

static enum ret_pf fast_page_fault(struct kvm_vcpu *v, const struct kvm_page_fault *f)
{
	enum ret_pf ret = RET_PF_INVALID;
	uint64_t spte = 0, fixed = 0, *sptep;

	/* Not present may mean not used yet where there are no A bits. */
	if (!v->kvm->preset->fast_page_fault || f->rsvd ||
	    (f->present ? !f->write : v->kvm->ad_enabled))
		return ret;
	charge(v->task, COUNT_fast_page_fault, 1);
	walk_lockless_begin(v);
	for (int try = 0; try < 5; try++) {
		sptep = v->kvm->backend->walk_lockless(v, f->addr, &spte);
		if (!sptep || !spte_present(spte) ||
		    !spte_last(spte, sptep_to_sp(sptep)->role.level))
			break;
		if (access_allowed(f, spte)) {
			ret = RET_PF_SPURIOUS;
			break;
		}
		fixed = restored_spte(v, f, spte);
		if (fixed == spte || !access_allowed(f, fixed))
			break;
		/* A large page must be split first, to be logged page by page. */
		if (sptep_to_sp(sptep)->role.level > PG_LEVEL_4K && spte_writable(fixed) &&
		    (memslot_flags(v->task, f->slot) & MEMSLOT_LOG_DIRTY))
			break;
		if (fix_spte(v, f, sptep, spte, fixed)) {
			ret = RET_PF_FIXED;
			break;
		}
	}
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_fast_page_fault, .gfn = f->gfn,
			.addr = f->addr, .error_code = f->error_code, .old_spte = spte,
			.spte = ret == RET_PF_FIXED ? fixed : spte, .code = ret);
	walk_lockless_end(v);
	if (ret != RET_PF_INVALID)
		v->stat[STAT_pf_fast]++;
	return ret;
}

/* No slot has the frame: a device. Its spte is made as others are, where there are such. */
static int device_fault(struct kvm_vcpu *v, struct kvm_page_fault *f, unsigned access)
{
	vcpu_cache_mmio_info(v, v->kvm->tdp_enabled ? 0 : f->addr, f->gfn, access);
	f->pfn = NOSLOT_PFN;
	return v->kvm->mmio_mask && f->gfn <= kvm_mmu_max_gfn(v->kvm) ? RET_PF_CONTINUE
								      : RET_PF_EMULATE;
}

/* Finds the host's page: an enum ret_pf, or a negative error. RET_PF_EMULATE: no spte can answer
 * the fault. @access: what the guest's tables allow. */
static int faultin_pfn(struct kvm_vcpu *v, struct kvm_page_fault *f, unsigned access)
{
	uint32_t flags;
	int r;

	if (!f->slot)
		return device_fault(v, f, access);
	flags = memslot_flags(v->task, f->slot);
	if (flags & MEMSLOT_INVALID) {
		v->restarts.why = "its memslot is about to go or to move";
		return RET_PF_RETRY;
	}
	if (f->write && (flags & MEMSLOT_READONLY))
		return RET_PF_EMULATE;
	charge(v->task, COUNT_gfn_to_pfn, 1);
	touch_shared(v->task);
	task_assert_first(v->task, "the invalidations that have ended");
	f->mmu_seq = v->kvm->notifiers.seq;
	if (!memslot_host_writable(f->slot, f->gfn))
		charge(v->task, COUNT_host_slow_gup, 1);
	r = host_fault_in(v->task, v->kvm, f->slot, f->gfn, f->write, &f->map_writable);
	if (flags & MEMSLOT_READONLY)
		f->map_writable = false;
	f->pfn = memslot_pfn(f->slot, f->gfn);
	if (r)
		return r;
	host_page_used(v->task, v->kvm, f->slot,
		       f->gfn); /* as the reference is dropped, in the end */
	return RET_PF_CONTINUE;
}

static bool root_obsolete(const struct kvm_vcpu *v)
{
	if (v->root.sp)
		return sp_obsolete(v->kvm, v->root.sp);
	touch_shared(v->task);
	task_assert_first(v->task, "its vCPU's requests");
	return v->requests & REQ_FREE_OBSOLETE_ROOTS;
}

static bool fault_stale(struct kvm_vcpu *v, const struct kvm_page_fault *f)
{
	const char *why = NULL;

	if (root_obsolete(v))
		why = "the root of its tables is obsolete";
	else if (f->slot)
		why = mmu_invalidate_retry(v->kvm, f);
	v->restarts.why = why;
	return why;
}

/* Who takes mmu_lock for a fault: the functions of 6.1. */
#define DIRECT_FAULT "direct_page_fault"
#define PAGING_FAULT "paging_page_fault"

/* Whether all that the fault asks for is W, of a page of 4 KiB that logging took it from. The CPU
 * tells the level. */
static bool gives_back(struct kvm_vcpu *v, const struct kvm_page_fault *f)
{
	uint64_t spte = 0, *sptep;

	if (!f->present || !f->write || !f->slot ||
	    !(memslot_flags(v->task, f->slot) & MEMSLOT_LOG_DIRTY))
		return false;
	walk_lockless_begin(v);
	sptep = v->kvm->backend->walk_lockless(v, f->addr, &spte);
	walk_lockless_end(v);
	return sptep && spte_present(spte) && sptep_to_sp(sptep)->role.level == PG_LEVEL_4K;
}

static int map_fault_shared(struct kvm_vcpu *v, struct kvm_page_fault *f)
{
	bool read =
		v->kvm->mmulock->read_fault || (v->kvm->mmulock->read_relax && gives_back(v, f));
	int r = read ? mmu_read_lock(v->task, v->kvm, DIRECT_FAULT)
		     : mmu_lock(v->task, v->kvm, DIRECT_FAULT);

	if (r)
		return r;
	r = fault_stale(v, f) ? RET_PF_RETRY : v->kvm->backend->map_shared(v, f);
	if (read)
		mmu_read_unlock(v->task, v->kvm);
	else
		mmu_unlock(v->task, v->kvm);
	return r;
}

/* The part under mmu_lock. */
static int map_fault(struct kvm_vcpu *v, struct kvm_page_fault *f, struct guest_walk *gw)
{
	int r;

	if (v->kvm->backend->map_shared)
		return map_fault_shared(v, f);
	r = mmu_lock(v->task, v->kvm, gw ? PAGING_FAULT : DIRECT_FAULT);
	if (r)
		return r;
	r = make_mmu_pages_available(v);
	if (!r && fault_stale(v, f))
		r = RET_PF_RETRY;
	else if (!r)
		r = gw ? fetch_guest_mapping(v, f, gw) : direct_map(v, f);
	mmu_unlock(v->task, v->kvm);
	return r;
}

static int direct_page_fault(struct kvm_vcpu *v, struct kvm_page_fault *f)
{
	int r;

	f->gfn = f->addr >> PAGE_SHIFT;
	f->slot = memslot_lookup(v->task, v->kvm, f->gfn);
	if (page_tracked(v->task, f))
		return RET_PF_EMULATE;
	r = fast_page_fault(v, f);
	if (r != RET_PF_INVALID)
		return r;
	mmu_topup(v, false);
	r = faultin_pfn(v, f, ACC_ALL);
	if (r != RET_PF_CONTINUE)
		return r;
	return map_fault(v, f, NULL);
}

/* The mapping holds the very tables that it is walked by: it must be made of small pages, since
 * those are write-protected. */
static bool maps_own_tables(const struct kvm_vcpu *v, const struct kvm_page_fault *f,
			    const struct guest_walk *gw)
{
	gfn_t mask = ~(pages_per_level(gw->level) - 1);
	bool self = false;

	if (!(gw->pte_access & ACC_WRITE) && (v->paging.wp || f->user))
		return false;
	for (int l = gw->level; l <= gw->max_level; l++)
		self |= !((gw->gfn ^ gw->table_gfn[l - 1]) & mask);
	return self;
}

/* Without CR0.WP the supervisor writes to what only he may write: the page becomes one that only
 * he may use, and with SMEP none that he may execute, since for the guest it still is the user's.
 */
static void grant_supervisor_write(const struct kvm_vcpu *v, const struct kvm_page_fault *f,
				   struct guest_walk *gw)
{
	if (!f->write || f->user || v->paging.wp || (gw->pte_access & ACC_WRITE) || !f->slot)
		return;
	gw->pte_access |= ACC_WRITE;
	gw->pte_access &= ~ACC_USER;
	if (v->paging.smep)
		gw->pte_access &= ~ACC_EXEC;
}

static int shadow_page_fault(struct kvm_vcpu *v, struct kvm_page_fault *f)
{
	struct guest_walk gw;
	struct shadow_walk w;
	int r;

	if (!guest_walk_addr(v, &gw, f->addr, f->error_code & ~PFERR_RSVD)) {
		v->stat[STAT_pf_guest]++;
		return guest_fault_error(v, f->addr, gw.fault_code);
	}
	f->gfn = gw.gfn;
	f->slot = memslot_lookup(v->task, v->kvm, f->gfn);
	if (page_tracked(v->task, f)) {
		walk_lockless_begin(v);
		for (shadow_walk_init(&w, v, f->addr); shadow_walk_okay(&w);
		     shadow_walk_next_at(&w, v->kvm, spte_read(v->task, v->kvm, w.sptep)))
			clear_write_flooding(w.sptep);
		walk_lockless_end(v);
		return RET_PF_EMULATE;
	}
	mmu_topup(v, true);
	f->max_level = maps_own_tables(v, f, &gw) ? PG_LEVEL_4K : gw.level;
	r = faultin_pfn(v, f, gw.pte_access);
	if (r != RET_PF_CONTINUE)
		return r;
	grant_supervisor_write(v, f, &gw);
	return map_fault(v, f, &gw);
}

static int do_page_fault(struct kvm_vcpu *v, uint64_t addr, uint64_t error_code)
{
	struct kvm_page_fault f = {
		.addr = addr,
		.error_code = error_code & UINT32_MAX,
		.exec = error_code & PFERR_FETCH,
		.write = error_code & PFERR_WRITE,
		.user = error_code & PFERR_USER,
		.present = error_code & PFERR_PRESENT,
		.rsvd = error_code & PFERR_RSVD,
		.max_level = v->kvm->tdp_enabled ? MAX_HUGE_LEVEL : PG_LEVEL_2M,
		.goal_level = PG_LEVEL_4K,
	};
	int r;

	charge(v->task, COUNT_page_fault, 1);
	v->stat[STAT_pf_taken]++;
	r = vcpu_direct(v) ? direct_page_fault(v, &f) : shadow_page_fault(v, &f);
	v->restarts.gfn = f.gfn;
	if (v->kvm->dead)
		r = KVMSIM_ENOMEM;
	if (r == RET_PF_FIXED)
		v->stat[STAT_pf_fixed]++;
	else if (r == RET_PF_EMULATE)
		v->stat[STAT_pf_emulate]++;
	else if (r == RET_PF_SPURIOUS)
		v->stat[STAT_pf_spurious]++;
	return r;
}

/* A nested walk was to set A or D in a guest's table that is mapped without W: KVM takes it for one
 * that it shadows for a guest's guest, and lets the walk go on. Of a read-only slot it never will.
 */
static bool unprotects_table(const struct kvm_vcpu *v, uint64_t error_code)
{
	const uint64_t all = PFERR_GUEST_PAGE | PFERR_WRITE | PFERR_PRESENT;
	const struct kvm_preset *preset = v->kvm->preset;

	return preset->unprotect_nested && !preset->retry_by_fault && vcpu_direct(v) &&
	       (error_code & all) == all;
}

int kvm_mmu_page_fault(struct kvm_vcpu *v, uint64_t addr, uint64_t error_code)
{
	uint16_t was = activity_enter(v->task, ACT_page_fault);
	int r = RET_PF_INVALID;

	v->restarts.why = NULL;
	srcu_read_lock(v->task, &v->kvm->srcu, &v->srcu);
	if (error_code & PFERR_RSVD)
		r = handle_mmio_page_fault(v, addr);
	v->mmio_fault = r == RET_PF_EMULATE;
	if (r == RET_PF_INVALID) {
		r = do_page_fault(v, addr, error_code);
		if (r == RET_PF_EMULATE && unprotects_table(v, error_code)) {
			kvm_mmu_unprotect_page(v->task, v->kvm, addr >> PAGE_SHIFT);
			v->restarts.why = "its walk writes to a table that stays read-only";
			r = RET_PF_RETRY;
		}
	}
	srcu_read_unlock(v->task, &v->kvm->srcu, &v->srcu);
	activity_leave(v->task, was);
	return r;
}
