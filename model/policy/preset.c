// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/preset.h"

#include <string.h>

/* What 6.1 and those about it do whichever MMU they have. */
#define LINUX_6_13 LINUX_6_12, .huge_zero_copy = true
#define LINUX_6_12                                                                                 \
	LINUX_6_1, .no_change_pte = true, .invlpg_syncs = true, .sync_by_access = true,            \
		   .retry_by_fault = true, .sregs_flush = true
#define LINUX_6_1 LINUX_5_16, .eager_split = EAGER_SPLIT_TDP
#define LINUX_5_16                                                                                 \
	.prev_roots = 3, .dirty = "mask", .spte = "mmio-gen", .bitmap = BITMAP_SNAPSHOT,           \
	.prefetch = 8, .emulator_retry = true, .mmio_fault_known = true, .zap_all_fast = true,     \
	.mmio_cache_generation = true, .emulator_has_gpa = true, .hash_shift = 12,                 \
	.fast_page_fault = true, .mmu_lock_rw = true, .get_kicks = true, .zap_collapsible = true,  \
	.huge_pages = true, .host_read_faults = true, .unprotect_nested = true, SCHED_5_4

/* Queued spinlocks came with 4.2, what makes their paravirtual part halt early and steal with 4.4
 * to 4.15; hosts that poll in halts with 4.2, steal times that tell who is preempted with 4.11,
 * IPIs by hypercall with 4.19, a window per vCPU with 3.18; candidates for yields that were just
 * woken with 5.3, kicks that yield with 5.4. */
#define SCHED_5_4                                                                                  \
	.lock = "pvqspin", .ple = "window,candidates=2,ready=1", .halt_poll_ns = 200000,           \
	.pv_ipi = true, .kick_yields = true, .steal_time = true

/* Masks of dirty bits: 3.5; the slots' rmaps took the place of slot bitmaps in 3.9. */
#define LINUX_3_5                                                                                  \
	.dirty = "mask", .spte = "mmio-spte", .bitmap = BITMAP_SNAPSHOT, .prefetch = 8,            \
	.emulator_retry = true, .hash_shift = 10, .slot_bitmap = true, .lock = "ticket"

/* The emulator's second try came with 3.3, as did the bitmap's snapshots; MMIO sptes with 3.1. */
#define LINUX_3_0                                                                                  \
	.dirty = "walk", .bitmap = BITMAP_SWAP, .prefetch = 8, .hash_shift = 10,                   \
	.slot_bitmap = true, .protect_by_walk = true, .lock = "ticket",                            \
	.ple = "fixed,gap=41,candidates=0"

/* Arm's stage 2 as the TDP MMU of 5.16, as far as faults and logging go: a block that is written
 * while it is logged goes, and comes back page by page. It has no fast page faults, and no block
 * comes back when logging ends. */
#define LINUX_ARM64                                                                                \
	.arm64 = true, .tdp_mmu = true, .tdp_collapse = TDP_ZAP_TABLES, .dirty = "mask",           \
	.spte = "none", .bitmap = BITMAP_SNAPSHOT, .hash_shift = 12, .zap_all_fast = true,         \
	.huge_pages = true, .host_read_faults = true, .emulator_has_gpa = true, .lock = "qspin",   \
	.ple = "off", .halt_poll_ns = 500000

static const struct kvm_preset presets[] = {
	{
		.name = "6.1-shadow",
		.summary = "Linux 6.1, shadow pages and rmaps (npt=0, or npt=1 with tdp_mmu=0)",
		LINUX_6_1,
	},
	{
		.name = "6.1-tdp",
		.summary = "Linux 6.1 with the TDP MMU (npt=1, tdp_mmu=1)",
		LINUX_6_1,
		.tdp_mmu = true,
		.tdp_collapse = TDP_ZAP_TABLES,
	},
	{
		/* What is told apart here of the TDP MMU's kernels is what they do with large
		 * mappings: eager splits came with 5.18, zapping tables with 5.19, splits by a
		 * fault with 6.2, recovery in place with 6.13. */
		.name = "6.13-tdp",
		.summary =
			"Linux 6.13: as 6.12-tdp, but large pages come back at once when logging "
			"ends",
		LINUX_6_13,
		.tdp_mmu = true,
		.tdp_collapse = TDP_RECOVER,
		.zap_by_pages = true,
		.split_on_fault = true,
		.split_unlocked = true,
	},
	{
		.name = "6.13-shadow",
		.summary = "Linux 6.13: as 6.12-shadow; the host copies its huge zero page whole",
		LINUX_6_13,
	},
	{
		.name = "6.18-shadow",
		.summary =
			"Linux 6.18: as 6.13-shadow; what would map a page as it is mapped leaves "
			"it alone",
		LINUX_6_13,
		.spte_keeps_dirty = true,
	},
	{
		.name = "6.12-tdp",
		.summary = "Linux 6.12: as 6.2-tdp; registers that the VMM sets flush",
		LINUX_6_12,
		.tdp_mmu = true,
		.tdp_collapse = TDP_ZAP_TABLES,
		.zap_by_pages = true,
		.split_on_fault = true,
	},
	{
		.name = "6.12-shadow",
		.summary = "Linux 6.12: as 6.1-shadow; INVLPG syncs, a sync goes by access",
		LINUX_6_12,
	},
	{
		.name = "6.2-tdp",
		.summary = "Linux 6.2: as 6.1-tdp, but a fault splits a large page",
		LINUX_6_1,
		.int_mmu_seq = true,
		.tdp_mmu = true,
		.tdp_collapse = TDP_ZAP_TABLES,
		.split_on_fault = true,
	},
	{
		.name = "5.18-tdp",
		.summary = "Linux 5.18: as 6.1-tdp, but ending logging takes sptes out one by one",
		LINUX_6_1,
		.int_mmu_seq = true,
		.tdp_mmu = true,
		.tdp_collapse = TDP_ZAP_LEAVES,
	},
	{
		.name = "5.16-tdp",
		.summary = "Linux 5.16: as 5.18-tdp, but large pages are split by the first store",
		LINUX_5_16,
		.int_mmu_seq = true,
		.tdp_mmu = true,
		.tdp_collapse = TDP_ZAP_LEAVES,
	},
	{
		/* "KVM: Extend Eager Page Splitting to the shadow MMU", versions 1 to 3 (2022),
		 * whose rmaps were split with tdp_mmu=0 and for shadow paging; what was merged, in
		 * 6.0, does it only for nested guests with tdp_mmu=1. */
		.name = "5.18-eager",
		.summary = "Linux 5.18 and a series that splits shadow pages' large mappings early",
		LINUX_5_16,
		.int_mmu_seq = true,
		.eager_split = EAGER_SPLIT_ALL,
	},
	{
		.name = "5.16-arm64",
		.summary = "Linux 5.16 on Arm, its faults and logging: one fault at a time",
		LINUX_ARM64,
		.mmulock = "spin",
	},
	{
		.name = "5.18-arm64",
		.summary =
			"Linux 5.18 on Arm: as 5.16-arm64, but rights are given back side by side",
		LINUX_ARM64,
		.mmu_lock_rw = true,
		.mmulock = "rwlock-relax",
	},
	{
		.name = "6.2-arm64",
		.summary = "Linux 6.2 on Arm: as 5.18-arm64, but all faults run side by side",
		LINUX_ARM64,
		.mmu_lock_rw = true,
	},
	{
		/* Zapping by generation and MMIO sptes with one came with 3.11, read faults that
		 * take the page as it is with 3.8; of candidates for yields it looks at preempted
		 * ones alone since 3.10. */
		.name = "3.12",
		.summary = "Linux 3.12: as 3.6; generations of slots and shadow pages; paravirtual "
			   "ticket locks",
		.dirty = "mask",
		.spte = "mmio-gen",
		.bitmap = BITMAP_SNAPSHOT,
		.prefetch = 8,
		.emulator_retry = true,
		.hash_shift = 10,
		.fast_page_fault = true,
		.zap_all_fast = true,
		.host_read_faults = true,
		.lock = "pvticket",
		.ple = "fixed,gap=41,candidates=2",
	},
	{
		.name = "3.6",
		.summary = "Linux 3.6: as 3.5, but write protection of logging is lifted without "
			   "mmu_lock",
		LINUX_3_5,
		.fast_page_fault = true,
		.ple = "fixed,gap=41,candidates=1",
	},
	{
		.name = "3.5",
		.summary = "Linux 3.5: a dirty log call protects by the bits that it takes",
		LINUX_3_5,
		.ple = "fixed,gap=41,candidates=0",
	},
	{
		.name = "3.1",
		.summary = "Linux 3.1: as 3.0, with MMIO sptes",
		LINUX_3_0,
		.spte = "mmio-spte",
	},
	{
		.name = "3.0",
		.summary = "Linux 3.0: a dirty log call walks the shadow pages; nothing is "
			   "remembered of devices",
		LINUX_3_0,
		.spte = "none",
	},
	{
		/* Prefetching came with 2.6.37, fast page faults with 3.6, the slot's rmaps took
		 * the place of shadow pages' slot bitmaps in 3.9. */
		.name = "2.6.36",
		.summary = "Linux 2.6.36: every dirty log call walks the shadow pages",
		.dirty = "walk",
		.spte = "none",
		.bitmap = BITMAP_SWAP,
		.hash_shift = 10,
		.slot_bitmap = true,
		.lock = "ticket",
		.ple = "off", /* at an exit it slept for 100 us, which is not modelled */
		.list_prefetch = true,
		.protect_by_walk = true,
	},
};

const struct kvm_preset *preset_at(size_t i)
{
	return i < sizeof(presets) / sizeof(presets[0]) ? &presets[i] : NULL;
}

const struct kvm_preset *preset_find(const char *name)
{
	const struct kvm_preset *p;

	if (!name)
		return &presets[0];
	for (size_t i = 0; (p = preset_at(i)); i++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}
