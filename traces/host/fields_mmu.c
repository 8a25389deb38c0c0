// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/grammar.h"

/*
 * The page tables: the texts of the kernel's mmutrace.h from 2.6.32 to 6.1x, of the notifiers in
 * include/trace/events/kvm.h, and of libtraceevent's plugin_kvm, whose roles follow a layout of
 * bits that the kernel has left.
 */
#define ROLE(s)                                                                                    \
	{                                                                                          \
		STEP_ROLE, STEP_NO_FIELD, sizeof(s) - 1, s                                         \
	}
#define PFERR(s)                                                                                   \
	{                                                                                          \
		STEP_PFERR, HOST_F_error_code, sizeof(s) - 1, s                                    \
	}
/* Levels of 3.x and later, with or without the size of an entry; the generation is hex to 5.0, 5.1
 * to 5.3 have none. */
#define PAGE_LEVEL(gen) L("sp gen "), gen, L("gfn "), X(gfn), L("l"), D(level)
#define PAGE_END                                                                                   \
	L("q"), D(quadrant), PUT(direct, 0), ROLE("root "), L("root "), D(root_count),             \
		ONE(unsync, 2, "sync,unsync")
#define PAGE_NEW    PAGE_LEVEL(D(gen)), D(gpte_bytes), L("-byte "), PAGE_END
#define PAGE_BYTES  PAGE_LEVEL(X(gen)), D(gpte_bytes), L("-byte "), PAGE_END
#define PAGE_PAE    PAGE_LEVEL(X(gen)), ROLE("q"), PAGE_END
#define PAGE_NO_GEN L("sp gfn "), X(gfn), L("l"), D(level), D(gpte_bytes), L("-byte "), PAGE_END
/* 2.6.3x */
#define PAGE_OLD	L("sp gen "), X(gen), L("gfn "), X(gfn), D(level), ROLE("q"), PAGE_END
#define PAGE_PLUGIN_OLD L("sp gfn "), X(gfn), D(level), L("/"), D_, PAGE_END
#define PAGE_PLUGIN	L("sp gfn "), X(gfn), D(level), ROLE("q"), PAGE_END
/* prepare_zap_page, whose record has the role alone */
#define PAGE_PLUGIN_ROLE D(level), ROLE("q"), PAGE_END
#define CREATED		 ONE(created, 2, "existing,new")

#define PAGE_EVENT(name)                                                                           \
	{                                                                                          \
		name,                                                                              \
		{                                                                                  \
			LAYOUT(PAGE_NEW), LAYOUT(PAGE_BYTES), LAYOUT(PAGE_PAE), LAYOUT(PAGE_OLD),  \
				LAYOUT(PAGE_NO_GEN), LAYOUT(PAGE_PLUGIN_OLD), LAYOUT(PAGE_PLUGIN), \
				LAYOUT(PAGE_PLUGIN_ROLE)                                           \
		}                                                                                  \
	}

const struct grammar host_grammars_mmu[] = {
	{"kvm_mmu_pagetable_walk",
	 {LAYOUT(L("addr "), X(address), L("pferr "), X(error_code),
		 {STEP_PFERR, STEP_NO_FIELD, 0, NULL})}},
	{"kvm_mmu_paging_element", {LAYOUT(L("pte "), X(spte), L("level "), D(level))}},
	{"kvm_mmu_walker_error",
	 {LAYOUT(L("pferr "), X(error_code), {STEP_PFERR, HOST_F_flags, 0, NULL})}},
	{"kvm_mmu_set_accessed_bit", {LAYOUT(L("gpa "), X(gpa))}},
	{"kvm_mmu_set_dirty_bit", {LAYOUT(L("gpa "), X(gpa))}},
	{"kvm_mmu_get_page",
	 {LAYOUT(PAGE_NEW, CREATED), LAYOUT(PAGE_BYTES, CREATED), LAYOUT(PAGE_PAE, CREATED),
	  LAYOUT(PAGE_OLD, CREATED), LAYOUT(PAGE_NO_GEN, CREATED), LAYOUT(CREATED, PAGE_PLUGIN_OLD),
	  LAYOUT(CREATED, PAGE_PLUGIN), LAYOUT(PAGE_PLUGIN_OLD, OPT(1), CREATED)}},
	PAGE_EVENT("kvm_mmu_sync_page"),
	PAGE_EVENT("kvm_mmu_unsync_page"),
	PAGE_EVENT("kvm_mmu_prepare_zap_page"),
	{"mark_mmio_spte",
	 {LAYOUT(L("sptep:"), X(sptep), L("gfn "), X(gfn), L("access "), X(access), OPT(2),
		 L("gen "), X(gen))}},
	{"handle_mmio_page_fault",
	 {LAYOUT(L("addr:"), X(address), L("gfn "), X(gfn), L("access "), X(access))}},
	{"check_mmio_spte",
	 {LAYOUT(L("spte "), X(spte), L("kvm_gen "), X(gen), L("spte-gen "), X_, L("valid "), D_)}},
	{"fast_page_fault",
	 {LAYOUT(L("vcpu "), D(vcpu), L("gva "), X(gva), L("error_code "), PFERR("sptep"),
		 L("sptep "), X(sptep), L("old "), X(old), L("new "), X(new), L("spurious "),
		 D(spurious), L("fixed "), D(fixed))}},
	{"kvm_mmu_set_spte",
	 {LAYOUT(L("gfn "), X(gfn), L("spte "), X(spte), L("("), WORD, L(")"), L("level "),
		 D(level), L("at "), X(sptep))}},
	{"kvm_mmu_spte_requested",
	 {LAYOUT(L("gfn "), X(gfn), L("pfn "), X(pfn), L("level "), D(level))}},
	{"kvm_mmu_split_huge_page",
	 {LAYOUT(L("gfn "), X(gfn), L("spte "), X(spte), L("level "), D(level), L("errno "),
		 D(ret))}},
	{"kvm_tdp_mmu_spte_changed",
	 {LAYOUT(L("as id "), D(as_id), L("gfn "), X(gfn), L("level "), D(level), L("old_spte "),
		 X(old), L("new_spte "), X(new))}},
	{"kvm_mmu_zap_all_fast",
	 {LAYOUT(L("kvm-mmu-valid-gen "), D(gen), L("used_pages "), X(count))}},
	{"kvm_mmu_invalidate_zap_all_pages",
	 {LAYOUT(L("kvm-mmu-valid-gen "), X(gen), L("used_pages "), X(count))}},
	{"kvm_unmap_hva_range",
	 {LAYOUT(L("mmu notifier unmap range: "), X(address), L("-- "), X_)}},
	{"kvm_set_spte_hva", {LAYOUT(L("mmu notifier set pte hva: "), X(address))}},
	{"kvm_age_hva", {LAYOUT(L("mmu notifier age hva: "), X(address), OPT(2), L("-- "), X_)}},
	{"kvm_test_age_hva", {LAYOUT(L("mmu notifier test age hva: "), X(address))}},
};
const size_t host_n_grammars_mmu = sizeof(host_grammars_mmu) / sizeof(*host_grammars_mmu);
