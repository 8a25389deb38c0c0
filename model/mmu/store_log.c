// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>

#include "model/mmu/check.h"

bool store_log_alloc(struct kvm_memory_slot *slot)
{
	slot->stores = calloc(1, sizeof(*slot->stores) + slot->npages * sizeof(cycles_t));
	return slot->stores;
}

void store_log_arm(struct kvm_memory_slot *slot, cycles_t now)
{
	if (slot->stores)
		slot->stores->since = slot->stores->flushed = now;
}

void store_log_flushed(struct kvm_memory_slot *slot, cycles_t now)
{
	if (slot->stores)
		slot->stores->flushed = now;
}

void store_log_add(struct kvm_memory_slot *slot, gfn_t gfn, cycles_t now)
{
	slot->stores->last[gfn - slot->base_gfn] = now + 1;
}

static bool bit(const uint64_t *bitmap, uint64_t i)
{
	return bitmap[i / 64] >> (i % 64) & 1;
}

void store_log_harvest(struct kvm *kvm, struct kvm_memory_slot *slot, const uint64_t *bitmap)
{
	struct store_log *log = slot->stores;

	if (!log)
		return;
	for (uint64_t i = 0; i < slot->npages; i++) {
		bool stored = log->last[i] > log->since + 1;

		if (bit(bitmap, i))
			kvm->false_dirties += !stored;
		else if (stored && !bit(slot->dirty_bitmap, i))
			kvm->lost_stores++;
	}
	log->since = log->flushed;
}

uint64_t store_log_lost(const struct kvm_memory_slot *slot)
{
	uint64_t lost = 0;

	if (!slot->stores || !slot->dirty_bitmap)
		return 0;
	for (uint64_t i = 0; i < slot->npages; i++)
		lost += slot->stores->last[i] > slot->stores->since + 1 &&
			!bit(slot->dirty_bitmap, i);
	return lost;
}
