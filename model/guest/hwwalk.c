// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/guest/personality.h"
#include "model/guest/run.h"
#include "model/guest/vcpu.h"
#include "model/guest/vcpu_tlb.h"
#include "model/mmu/check.h"

/*
 * What the CPU does on a TLB miss: walks the shadow tables, or the guest's tables with each step
 * through the nested ones, setting A and D. A walk is one moment in virtual time: it is charged
 * first and nobody comes between its steps.
 */

struct hw_fault {
	uint64_t addr, code;
	uint64_t grants; /* EPT_VIOLATION_READABLE and so on, of the entry that denies it */
	bool guest;	 /* the guest's own tables deny it */
	bool misconfig;	 /* an EPT entry makes no sense */
	bool log_full;	 /* D cannot be set before the CPU's log was emptied */
};

static uint64_t spte_grants(uint64_t spte)
{
	return EPT_VIOLATION_READABLE | (spte_writable(spte) ? EPT_VIOLATION_WRITABLE : 0) |
	       (spte & PT_NX ? 0 : EPT_VIOLATION_EXECUTABLE);
}

/* What the CPU makes of an spte's bits, and of all of a table's: only the last entry takes away. */
static unsigned spte_access(uint64_t spte)
{
	return (spte & PT_NX ? 0 : ACC_EXEC) | (spte_writable(spte) ? ACC_WRITE : 0) |
	       (spte & PT_USER ? ACC_USER : 0);
}

/* Through the tables that KVM made. @need: PFERR_WRITE, PFERR_FETCH, PFERR_USER. True with the last
 * entry and its level, or false with the error code's PRESENT bit in f->code. An entry without A
 * and D counts as accessed and dirty. */
static bool walk_kvm_tables(struct kvm_vcpu *v, uint64_t addr, uint64_t need, uint64_t *leaf,
			    int *leaf_level, struct hw_fault *f)
{
	struct kvm_mmu_page *sp = v->root.sp ? v->root.sp : v->pae_root[(addr >> 30) & 3];
	bool ad = v->kvm->ad_enabled;
	unsigned access = ACC_ALL;

	task_assert_first(v->task, "sptes, as hardware does");
	f->code = f->grants = 0;
	f->misconfig = false;
	if (v->kvm->tdp_enabled && addr >> 48) /* no nested table reaches so far */
		return false;
	if (!sp) /* a PDPTE that is not present */
		return false;
	for (int level = sp->role.level;; level--) {
		uint64_t *sptep = &sp->spt[pt_index(addr, level)], spte = *sptep;

		if (is_mmio_spte(v->kvm, spte)) {
			f->code = PFERR_RSVD | (v->kvm->cpu->rsvd_not_present ? 0 : PFERR_PRESENT);
			f->misconfig = v->kvm->tdp_enabled && v->kvm->cpu->vmx;
			return false;
		}
		if (!(spte & PT_PRESENT))
			return false;
		access &= spte_access(spte);
		if (spte_last(spte, level) &&
		    permission_fault(v->paging.hw_permissions, access, need)) {
			f->code = PFERR_PRESENT;
			f->grants = spte_grants(spte);
			return false;
		}
		if (ad)
			spte |= PT_ACCESSED;
		if (ad && spte_last(spte, level) && (need & PFERR_WRITE) && !(spte & PT_DIRTY)) {
			f->log_full = !cpu_log_push(v, addr);
			if (f->log_full)
				return false;
			spte |= PT_DIRTY;
		}
		if (*sptep != spte) /* most walks find them set: leave the line clean */
			*sptep = spte;
		if (spte_last(spte, level)) {
			*leaf = ad ? spte : spte | PT_DIRTY;
			*leaf_level = level;
			return true;
		}
		sp = v->kvm->page_of_pfn[spte_pfn(spte)];
	}
}

void vcpu_prefetch_walk(const struct kvm_vcpu *v, gva_t gva)
{
	const struct kvm_mmu_page *sp = v->root.sp ? v->root.sp : v->pae_root[(gva >> 30) & 3];

	if (!sp || (v->kvm->tdp_enabled && v->paging.level))
		return;
	for (int level = sp->role.level;; level--) {
		const uint64_t *sptep = &sp->spt[pt_index(gva, level)];

		if (level == PG_LEVEL_4K) {
			__builtin_prefetch(sptep);
			return;
		}
		if (!(*sptep & PT_PRESENT) || spte_last(*sptep, level))
			return;
		sp = v->kvm->page_of_pfn[spte_pfn(*sptep)];
	}
}

struct hw_translation {
	gfn_t gfn;
	int level; /* of the page that all tables map alike: the smallest of theirs */
	bool readable, writable, dirty, executable;
};

/* One entry of the guest's tables, read or changed. */
static bool walk_to_table(struct kvm_vcpu *v, gpa_t gpa, uint64_t need, struct hw_fault *f)
{
	uint64_t leaf;
	int level;

	f->addr = gpa;
	if (walk_kvm_tables(v, gpa, need | PFERR_USER, &leaf, &level, f))
		return true;
	f->code |= PFERR_GUEST_PAGE | PFERR_USER | need;
	return false;
}

/* The guest's own fault. */
static bool guest_denies(gva_t gva, uint64_t need, uint64_t code, struct hw_fault *f)
{
	f->addr = gva;
	f->code = need | code;
	f->guest = true;
	return false;
}

/* What the entry at @gpa is, with A and D set where they are due. */
static bool read_guest_entry(struct kvm_vcpu *v, gva_t gva, gpa_t gpa, int level, uint64_t need,
			     unsigned *access, uint64_t *gpte, struct hw_fault *f)
{
	uint64_t table_need = v->kvm->cpu->nested_pt_writes ? PFERR_WRITE : 0;
	const struct paging_mode *m = &v->paging;
	uint64_t pte, set = PT_ACCESSED;

	if (!walk_to_table(v, gpa, table_need, f))
		return false;
	pte = gmem_load(v->task, v->kvm, gpa, gpte_bytes(m));
	*gpte = pte;
	if (!(pte & PT_PRESENT))
		return guest_denies(gva, need, 0, f);
	if (gpte_reserved(m, pte, level))
		return guest_denies(gva, need, PFERR_PRESENT | PFERR_RSVD, f);
	*access &= gpte_access(pte);
	if (gpte_last(m, pte, level)) {
		if (permission_fault(m->permissions, *access, need))
			return guest_denies(gva, need, PFERR_PRESENT, f);
		if (need & PFERR_WRITE)
			set |= PT_DIRTY;
	}
	if (~pte & set) {
		if (!table_need && !walk_to_table(v, gpa, PFERR_WRITE, f))
			return false;
		*gpte |= set;
		gmem_store(v->task, v->kvm, gpa, gpte_bytes(m), *gpte, true);
		store_log_add(v->kvm, gpa >> PAGE_SHIFT, task_now(v->task));
	}
	return true;
}

/* The table of the guest's highest level, or of the one below the PDPTEs. */
static bool read_guest_root(struct kvm_vcpu *v, gva_t gva, uint64_t need, uint64_t *entry,
			    int *level, struct hw_fault *f)
{
	uint64_t table_need = v->kvm->cpu->nested_pt_writes ? PFERR_WRITE : 0;
	gpa_t gpa = (v->cr3 & ~31ull) + ((gva >> 30) & 3) * 8;

	*entry = v->cr3;
	*level = v->paging.level;
	if (*level != PT32E_ROOT_LEVEL)
		return true;
	--*level;
	if (!v->kvm->pdptrs_in_memory) {
		*entry = v->pdptrs[(gva >> 30) & 3];
	} else {
		if (!walk_to_table(v, gpa, table_need, f))
			return false;
		*entry = gmem_load(v->task, v->kvm, gpa, 8);
		if (v->kvm->cpu->pdpte_accessed && (*entry & PT_PRESENT) &&
		    !(*entry & PT_ACCESSED)) {
			*entry |= PT_ACCESSED;
			gmem_store(v->task, v->kvm, gpa, 8, *entry, true);
			store_log_add(v->kvm, gpa >> PAGE_SHIFT, task_now(v->task));
		}
	}
	return *entry & PT_PRESENT || guest_denies(gva, need, 0, f);
}

static bool walk_nested(struct kvm_vcpu *v, gva_t gva, uint64_t need, struct hw_translation *tr,
			struct hw_fault *f)
{
	const struct paging_mode *m = &v->paging;
	uint64_t pte, leaf, code = need | vcpu_user(v), offset;
	unsigned access = ACC_ALL;
	int level, leaf_level;
	gpa_t gpa;

	if (!read_guest_root(v, gva, code, &pte, &level, f))
		return false;
	for (;; level--) {
		gpa = (pte & PT_ADDR_MASK) + gpte_offset(m, gva, level);
		if (!read_guest_entry(v, gva, gpa, level, code, &access, &pte, f))
			return false;
		if (gpte_last(m, pte, level))
			break;
	}
	offset = (gpte_pages(m, level) << PAGE_SHIFT) - 1;
	gpa = gpte_gfn(m, pte, level) << PAGE_SHIFT | (gva & offset);
	f->addr = gpa;
	if (!walk_kvm_tables(v, gpa, need | PFERR_USER, &leaf, &leaf_level, f)) {
		f->code |= PFERR_GUEST_FINAL | PFERR_USER | need;
		return false;
	}
	code = vcpu_user(v);
	*tr = (struct hw_translation){
		.gfn = gpa >> PAGE_SHIFT,
		.level = level < leaf_level ? level : leaf_level,
		.readable = !permission_fault(m->permissions, access, code),
		.writable = spte_writable(leaf) &&
			    !permission_fault(m->permissions, access, code | PFERR_WRITE),
		.dirty = (pte & PT_DIRTY) && (leaf & PT_DIRTY),
		.executable = !(leaf & PT_NX) &&
			      !permission_fault(m->permissions, access, code | PFERR_FETCH)};
	return true;
}

/* Shadow tables, or those of a guest that does not page. */
static bool walk_shadow(struct kvm_vcpu *v, gva_t gva, uint64_t need, struct hw_translation *tr,
			struct hw_fault *f)
{
	const uint8_t *permissions = v->paging.hw_permissions;
	uint64_t leaf, code = v->kvm->tdp_enabled ? PFERR_USER : vcpu_user(v);
	unsigned access;
	int level;

	f->addr = gva;
	if (!walk_kvm_tables(v, gva, need | code, &leaf, &level, f)) {
		f->code |= need | code;
		if (v->kvm->tdp_enabled)
			f->code |= PFERR_GUEST_FINAL;
		return false;
	}
	access = spte_access(leaf);
	*tr = (struct hw_translation){
		.gfn = kvm_pfn_to_gfn(v->kvm, spte_pfn(leaf)) +
		       ((gva >> PAGE_SHIFT) & (pages_per_level(level) - 1)),
		.level = level,
		.readable = !permission_fault(permissions, access, code),
		.writable = !permission_fault(permissions, access, code | PFERR_WRITE),
		.dirty = leaf & PT_DIRTY,
		.executable = !permission_fault(permissions, access, code | PFERR_FETCH)};
	return true;
}

/* Of an EPT violation. A guest's table counts as written where EPT has A and D, and as read, too.
 */
static uint64_t ept_qualification(const struct hw_fault *f)
{
	bool table = f->code & PFERR_GUEST_PAGE;
	uint64_t q = f->grants | EPT_VIOLATION_GVA_IS_VALID;

	if (!table)
		q |= EPT_VIOLATION_GVA_TRANSLATED;
	if (f->code & PFERR_WRITE)
		return q | EPT_VIOLATION_ACC_WRITE | (table ? EPT_VIOLATION_ACC_READ : 0);
	return q | (f->code & PFERR_FETCH ? EPT_VIOLATION_ACC_INSTR : EPT_VIOLATION_ACC_READ);
}

static uint64_t ept_error_code(uint64_t q)
{
	uint64_t rwx = EPT_VIOLATION_READABLE | EPT_VIOLATION_WRITABLE | EPT_VIOLATION_EXECUTABLE;

	return (q & EPT_VIOLATION_ACC_READ ? PFERR_USER : 0) |
	       (q & EPT_VIOLATION_ACC_WRITE ? PFERR_WRITE : 0) |
	       (q & EPT_VIOLATION_ACC_INSTR ? PFERR_FETCH : 0) | (q & rwx ? PFERR_PRESENT : 0) |
	       (q & EPT_VIOLATION_GVA_TRANSLATED ? PFERR_GUEST_FINAL : PFERR_GUEST_PAGE);
}

/* What keeps an access from being done whose fault was answered with @ret. */
static const char *why_again(const struct kvm_vcpu *v, int ret)
{
	if (ret == RET_PF_RETRY)
		return v->restarts.why ? v->restarts.why : "others change what it needs";
	if (ret == RET_PF_EMULATE)
		return "the emulator has it run again";
	return ret == RET_PF_SPURIOUS ? "each time its spte grants it already"
				      : "each time it is mapped, and gone when it runs";
}

static int handle_fault(struct kvm_vcpu *v, const struct hw_fault *f, gva_t gva, uint64_t need,
			unsigned len, uint64_t value)
{
	uint16_t was = activity_enter(v->task, ACT_exit);
	struct kvm *kvm = v->kvm;
	bool ept = kvm->tdp_enabled && kvm->cpu->vmx;
	uint64_t told = ept ? ept_qualification(f) : f->code;
	int r, ret;

	if (f->misconfig) {
		vcpu_exit(v, EXIT_EPT_MISCONFIG);
		r = kvm_mmu_page_fault(v, f->addr, PFERR_RSVD);
	} else {
		vcpu_exit(v, kvm->tdp_enabled ? EXIT_NPF : EXIT_PF);
		kvm_trace_event(v->task, kvm, v, .id = TRACE_kvm_page_fault, .code = told,
				.addr = f->addr, .gfn = f->addr >> PAGE_SHIFT);
		r = kvm_mmu_page_fault(v, f->addr, ept ? ept_error_code(told) : told);
	}
	ret = r;
	if (r == RET_PF_EMULATE)
		r = emulate_access(v, f->addr, gva, need, len, value);
	else if (r >= 0)
		r = VCPU_RESTART;
	if (r == VCPU_EMULATED)
		vcpu_progressed(v);
	else if (r == VCPU_RESTART && vcpu_restarted(v, gva, need, why_again(v, ret)))
		r = KVMSIM_ELIVELOCK;
	if (r == VCPU_RESTART || r == VCPU_EMULATED) {
		int err = vcpu_ready(v);

		r = err ? err : r;
	}
	activity_leave(v->task, was);
	return r;
}

/* What was logged is where it belongs once the vCPU has exited. */
static int handle_log_full(struct kvm_vcpu *v)
{
	uint16_t was = activity_enter(v->task, ACT_exit);
	int r;

	charge(v->task, COUNT_pml_full_entry, cpu_log_entries(v));
	vcpu_exit(v, EXIT_PML_FULL);
	charge(v->task, COUNT_pml_full_exit, 1);
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_kvm_pml_full);
	r = vcpu_ready(v);
	activity_leave(v->task, was);
	return r ? r : VCPU_RESTART;
}

/* Canonical in long mode; else what it can form: 32 bits, or as many as nested tables have of a
 * recorded stream of guest-physical addresses. */
static bool addressable(const struct kvm_vcpu *v, gva_t gva)
{
	if (v->paging.level == ROOT_LEVEL_4)
		return canonical(gva);
	return !(gva >> (v->kvm->tdp_enabled && !v->paging.level ? 48 : 32));
}

static void fill_tlb(struct kvm_vcpu *v, gva_t gva, gfn_t gfn, unsigned flags)
{
	if (!v->kvm->check && !v->kvm->keep_stores && !gmem_page(&v->kvm->gmem, gfn))
		flags |= TLB_PRIVATE;
	tlb_fill(&v->tlb, gva, gfn, flags);
}

/* From the entry of a larger page around it. */
static bool fill_from_huge(struct kvm_vcpu *v, gva_t gva, uint64_t need)
{
	const struct vcpu_tlb_entry *e = tlb_lookup_huge(&v->tlb, gva, tlb_flag(need));

	if (!e)
		return false;
	fill_tlb(v, gva, tlb_gfn(e) + pt_index(gva, PG_LEVEL_4K), e->gfn_flags & 0xff);
	return true;
}

int vcpu_translate(struct kvm_vcpu *v, gva_t gva, uint64_t need, unsigned len, uint64_t value)
{
	struct hw_translation tr;
	struct hw_fault f = {0};
	unsigned flags;
	bool ok;

	if (!addressable(v, gva))
		return kvmsim_err(sim_errors(v->kvm->sim), KVMSIM_EINVAL,
				  "vCPU %u: %#llx is no address that its guest can have", v->id,
				  (unsigned long long)gva);
	touch_shared(v->task); /* which pages are kept may change meanwhile */
	if (fill_from_huge(v, gva, need))
		return 0;
	charge(v->task, COUNT_tlb_walk, 1);
	cpu_log_charge(v);
	touch_shared(v->task);
	ok = v->kvm->tdp_enabled && v->paging.level ? walk_nested(v, gva, need, &tr, &f)
						    : walk_shadow(v, gva, need, &tr, &f);
	if (!ok && f.log_full)
		return handle_log_full(v);
	if (!ok && f.guest)
		return guest_fault_error(v, f.addr, f.code);
	if (!ok)
		return handle_fault(v, &f, gva, need, len, value);
	flags = (tr.readable ? TLB_READ : 0) | (tr.executable ? TLB_EXEC : 0);
	if (tr.writable)
		flags |= tr.dirty ? TLB_WPERM | TLB_WRITE : TLB_WPERM;
	if (tr.level > PG_LEVEL_4K)
		tlb_fill_huge(&v->tlb, gva, tr.gfn, flags);
	fill_tlb(v, gva, tr.gfn, flags);
	return 0;
}
