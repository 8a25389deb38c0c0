// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>

#include "model/mmu/check.h"

bool store_log_alloc(struct kvm_memory_slot *slot)
{
	slot->stores =
		calloc(1, sizeof(*slot->stores) + slot->npages * sizeof(slot->stores->page[0]));
	return slot->stores;
}

static bool bit(const uint64_t *bitmap, uint64_t i)
{
	return bitmap[i / 64] >> (i % 64) & 1;
}

/* The store of page @i is on its way to a report: its bit is set, or the CPU has logged it. */
static bool pending(const struct kvm *kvm, const struct kvm_memory_slot *slot, uint64_t i)
{
	return bit(slot->dirty_bitmap, i) || cpu_log_has(kvm, slot->base_gfn + i);
}

void store_log_disarm(struct kvm *kvm, struct kvm_memory_slot *slot)
{
	if (!kvm->dirty->harvest) {
		store_log_ring_disarm(kvm, slot);
		return;
	}
	for (uint64_t i = 0; slot->stores && i < slot->npages; i++) {
		kvm->lost_stores += slot->stores->page[i].missed && !pending(kvm, slot, i);
		slot->stores->page[i].missed = false;
	}
}

void store_log_arm(struct kvm_memory_slot *slot, cycles_t now)
{
	if (!slot->stores)
		return;
	slot->stores->since = slot->stores->flushed = now;
	/* While logging was being switched on a reset of another slot's may have looked here. */
	for (uint64_t i = 0; i < slot->npages; i++)
		slot->stores->page[i].missed = false;
}

void store_log_flushed(struct kvm_memory_slot *slot, cycles_t now)
{
	if (slot->stores)
		slot->stores->flushed = now;
}

void store_log_add(struct kvm *kvm, gfn_t gfn, cycles_t now)
{
	struct kvm_memory_slot *slot = kvm->check ? gfn_to_memslot(kvm, gfn) : NULL;

	if (slot)
		slot->stores->page[gfn - slot->base_gfn].time = now + 1;
}

void store_log_harvest(struct kvm *kvm, struct kvm_memory_slot *slot, const uint64_t *bitmap)
{
	struct store_log *log = slot->stores;

	if (!log)
		return;
	for (uint64_t i = 0; i < slot->npages; i++) {
		bool stored = log->page[i].time > log->since + 1, missed = log->page[i].missed;

		log->page[i].missed = false;
		if (bit(bitmap, i))
			kvm->false_dirties += !stored && !missed;
		else if (bit(slot->dirty_bitmap, i))
			continue;
		else if (missed && !cpu_log_has(kvm, slot->base_gfn + i))
			kvm->lost_stores++;
		else if (missed)
			log->page[i].missed = true;
		else
			log->page[i].missed = stored;
	}
	log->since = log->flushed;
}

void store_log_get(struct kvm *kvm, struct kvm_memory_slot *slot)
{
	struct store_log *log = slot->stores;

	for (uint64_t i = 0; log && i < slot->npages; i++) {
		bool stored = log->page[i].time > log->since + 1;

		if (bit(slot->dirty_bitmap, i)) {
			log->page[i].missed = false;
		} else if (stored && log->page[i].missed) {
			if (cpu_log_has(kvm, slot->base_gfn + i))
				continue;
			kvm->lost_stores++;
			log->page[i].time = 0;
			log->page[i].missed = false;
		} else {
			log->page[i].missed = stored;
		}
	}
}

void store_log_clear(struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t first_page,
		     uint64_t npages, const uint64_t *bitmap)
{
	struct store_log *log = slot->stores;

	for (uint64_t i = 0; log && i < npages; i++) {
		uint64_t page = first_page + i;

		if (!bit(bitmap, i) || !bit(slot->dirty_snapshot, i))
			continue;
		kvm->false_dirties += log->page[page].time <= log->since + 1;
		if (log->page[page].time <= log->flushed + 1)
			log->page[page].time = 0;
		log->page[page].missed = false;
	}
}

uint64_t store_log_lost(const struct kvm *kvm, const struct kvm_memory_slot *slot)
{
	const struct store_log *log = slot->stores;
	uint64_t lost = 0;

	if (!kvm->dirty->harvest)
		return store_log_ring_lost(kvm, slot, false);
	if (!log || !slot->dirty_bitmap)
		return 0;
	for (uint64_t i = 0; i < slot->npages; i++)
		lost += (log->page[i].time > log->since + 1 || log->page[i].missed) &&
			!pending(kvm, slot, i);
	return lost;
}
