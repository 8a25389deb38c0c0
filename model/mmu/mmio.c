// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmio.h"

#include "model/mmu/mmu.h"
#include "model/policy/preset.h"

/* Of the generation in an spte the low 8 bits begin at bit 3, the others at bit 52. */
#define GEN_LOW_SHIFT  3
#define GEN_LOW_BITS   8
#define GEN_LOW_MASK   (((1ull << GEN_LOW_BITS) - 1) << GEN_LOW_SHIFT)
#define GEN_HIGH_SHIFT 52
#define GEN_HIGH_MASK  (0x7ffull << GEN_HIGH_SHIFT)

/* No CPU with fewer than 52 bits of physical addresses lets this one be set. */
#define RESERVED_BIT (1ull << 51)
/* EPT: written and executed, but not read. */
#define EPT_MISCONFIG_WX 6ull
#define EPT_RWX		 7ull

/* ---- what a vCPU remembers ---- */

static uint64_t generation(struct task *t, const struct kvm *kvm)
{
	touch_shared(t);
	task_assert_first(t, "the memslots' generation");
	return kvm->memslots_generation;
}

void vcpu_cache_mmio_info(struct kvm_vcpu *v, gva_t gva, gfn_t gfn, unsigned access)
{
	uint64_t gen = generation(v->task, v->kvm);

	/* Which set of slots it is of, is not known then. */
	if (!v->kvm->spte->vcpu_cache ||
	    (v->kvm->memslots_updating && v->kvm->preset->mmio_cache_generation))
		return;
	v->mmio = (struct mmio_info){.gva = gva & ~(PAGE_SIZE - 1),
				     .gfn = gfn,
				     .access = access & (ACC_WRITE | ACC_USER),
				     .generation = gen};
}

void vcpu_clear_mmio_info(struct kvm_vcpu *v, gva_t gva)
{
	if (gva == MMIO_GVA_ANY || v->mmio.gva == (gva & ~(PAGE_SIZE - 1)))
		v->mmio.gva = 0;
}

static bool match_generation(struct kvm_vcpu *v)
{
	charge(v->task, COUNT_mmio_cache_check, 1);
	if (!v->kvm->preset->mmio_cache_generation)
		return true;
	return v->mmio.generation == generation(v->task, v->kvm) && !v->kvm->memslots_updating;
}

bool vcpu_match_mmio_gva(struct kvm_vcpu *v, gva_t gva)
{
	return v->kvm->spte->vcpu_cache && match_generation(v) && v->mmio.gva &&
	       v->mmio.gva == (gva & ~(PAGE_SIZE - 1));
}

bool vcpu_match_mmio_gpa(struct kvm_vcpu *v, gpa_t gpa)
{
	return v->kvm->spte->vcpu_cache && match_generation(v) && v->mmio.gfn &&
	       v->mmio.gfn == gpa >> PAGE_SHIFT;
}

bool mmio_info_in_cache(struct kvm_vcpu *v, uint64_t addr)
{
	return vcpu_direct(v) ? vcpu_match_mmio_gpa(v, addr) : vcpu_match_mmio_gva(v, addr);
}

/* ---- MMIO sptes ---- */

void mmio_spte_init(struct kvm *kvm, bool ept, unsigned phys_bits)
{
	if (!kvm->spte->mmio_sptes)
		return;
	if (ept) {
		kvm->mmio_mask = EPT_RWX;
		kvm->mmio_value = EPT_MISCONFIG_WX;
	} else if (phys_bits < 52) {
		kvm->mmio_mask = kvm->mmio_value = RESERVED_BIT | PT_PRESENT;
		kvm->mmio_access_mask = ACC_WRITE | ACC_USER; /* W's and U/S's bits, too */
	}
}

/* The part of the memslots' generation that an spte holds. */
static uint64_t spte_generation(const struct kvm *kvm)
{
	return kvm->memslots_generation & ((1ull << kvm->spte->generation_bits(kvm)) - 1);
}

static uint64_t generation_in(uint64_t spte)
{
	return (spte & GEN_LOW_MASK) >> GEN_LOW_SHIFT |
	       (spte & GEN_HIGH_MASK) >> GEN_HIGH_SHIFT << GEN_LOW_BITS;
}

uint64_t make_mmio_spte(struct kvm_vcpu *v, gfn_t gfn, unsigned access)
{
	struct kvm *kvm = v->kvm;
	uint64_t gen = 0;

	(void)generation(v->task, kvm);
	if (kvm->spte->generation_bits)
		gen = spte_generation(kvm);
	charge(v->task, COUNT_make_mmio_spte, 1);
	return kvm->mmio_value | (access & kvm->mmio_access_mask) | gfn << PAGE_SHIFT |
	       ((gen << GEN_LOW_SHIFT) & GEN_LOW_MASK) | gen >> GEN_LOW_BITS << GEN_HIGH_SHIFT;
}

gfn_t mmio_spte_gfn(const struct kvm *kvm, uint64_t spte)
{
	return (spte & PT_ADDR_MASK & ~kvm->mmio_mask) >> PAGE_SHIFT;
}

void trace_mark_mmio_spte(struct kvm_vcpu *v, gfn_t gfn, uint64_t spte)
{
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_mark_mmio_spte, .gfn = gfn, .spte = spte,
			.access = spte & ACC_ALL, .gen = (uint32_t)generation_in(spte));
}

void mark_mmio_spte(struct kvm_vcpu *v, uint64_t *sptep, gfn_t gfn, unsigned access)
{
	uint64_t spte = make_mmio_spte(v, gfn, access);

	mmu_lock_assert_held(v->task, v->kvm, "an spte");
	sptep_to_sp(sptep)->mmio_cached = true;
	trace_mark_mmio_spte(v, gfn, spte);
	spte_write(v->task, v->kvm, sptep, spte);
}

bool sync_mmio_spte(struct kvm_vcpu *v, uint64_t *sptep, gfn_t gfn, unsigned access)
{
	uint64_t spte = spte_reread(v->task, sptep);

	if (!is_mmio_spte(v->kvm, spte))
		return false;
	if (gfn == mmio_spte_gfn(v->kvm, spte)) {
		/* With the generation of now, whatever it had: the kernel looks for no slot. */
		v->kvm->mmio_refreshed |= gfn_to_memslot(v->kvm, gfn) != NULL;
		mark_mmio_spte(v, sptep, gfn, access);
	} else {
		spte_write(v->task, v->kvm, sptep, 0);
	}
	return true;
}

/* Whether no slot has come or gone since it was made. */
static bool check_mmio_spte(struct kvm_vcpu *v, uint64_t spte)
{
	struct kvm *kvm = v->kvm;
	bool valid;

	(void)generation(v->task, kvm);
	charge(v->task, COUNT_mmio_spte_check, 1);
	if (!kvm->spte->generation_bits)
		return true;
	if (kvm->memslots_updating)
		return false;
	valid = generation_in(spte) == spte_generation(kvm);
	kvm_trace_event(v->task, kvm, v, .id = TRACE_check_mmio_spte, .spte = spte, .valid = valid);
	return valid;
}

/* The last entry on the way of @addr, 0 without one. Only MMIO sptes may fault by reserved bits. */
static int walked_spte(struct kvm_vcpu *v, uint64_t addr, uint64_t *spte)
{
	*spte = 0;
	walk_lockless_begin(v);
	v->kvm->backend->walk_lockless(v, addr, spte);
	walk_lockless_end(v);
	if (spte_present(*spte) && (*spte & RESERVED_BIT))
		return kvmsim_err(sim_errors(v->kvm->sim), KVMSIM_ECHECK,
				  "vCPU %u: spte %#llx at %#llx maps memory and has reserved bits",
				  v->id, (unsigned long long)*spte, (unsigned long long)addr);
	return 0;
}

int handle_mmio_page_fault(struct kvm_vcpu *v, uint64_t addr)
{
	bool direct = vcpu_direct(v);
	unsigned access;
	uint64_t spte;
	gfn_t gfn;
	int r;

	if (mmio_info_in_cache(v, addr))
		return RET_PF_EMULATE;
	r = walked_spte(v, addr, &spte);
	if (r)
		return r;
	if (!is_mmio_spte(v->kvm, spte))
		return RET_PF_RETRY; /* zapped meanwhile */
	if (!check_mmio_spte(v, spte))
		return RET_PF_INVALID;
	gfn = mmio_spte_gfn(v->kvm, spte);
	access = spte & v->kvm->mmio_access_mask;
	if (direct)
		addr = 0;
	kvm_trace_event(v->task, v->kvm, v, .id = TRACE_handle_mmio_page_fault, .addr = addr,
			.gfn = gfn, .access = access);
	vcpu_cache_mmio_info(v, addr, gfn, access);
	return RET_PF_EMULATE;
}

/* ---- checkers ---- */

const char *mmio_spte_check(const struct kvm *kvm, uint64_t spte)
{
	if (kvm->mmio_refreshed ||
	    (kvm->spte->generation_bits && generation_in(spte) != spte_generation(kvm)))
		return NULL;
	return gfn_to_memslot(kvm, mmio_spte_gfn(kvm, spte))
		       ? "an MMIO spte for a frame that a slot has"
		       : NULL;
}

const char *mmio_info_check(const struct kvm_vcpu *v)
{
	const struct kvm *kvm = v->kvm;

	/* Without a generation what is remembered counts only where an access faults. */
	if (kvm->mmio_refreshed || !kvm->spte->vcpu_cache || !kvm->preset->mmio_cache_generation ||
	    !v->mmio.gfn || v->mmio.generation != kvm->memslots_generation)
		return NULL;
	return gfn_to_memslot(kvm, v->mmio.gfn)
		       ? "remembers a device's access to a frame that a slot has"
		       : NULL;
}
