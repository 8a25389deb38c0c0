// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/policy/preset.h"

#include <string.h>

/* What 6.1 does whichever MMU it has. */
#define LINUX_6_1                                                                                  \
	.dirty = "mask", .spte = "none", .bitmap = BITMAP_SNAPSHOT, .prefetch = 8,                 \
	.hash_shift = 12, .fast_page_fault = true, .mmu_lock_rw = true, .zap_collapsible = true,   \
	.eager_split = EAGER_SPLIT_TDP

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
