// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/check.h"
#include "model/policy/dirty_ring.h"

/*
 * The checkers where vCPUs log into rings. A page is reported when userspace reads an entry of it;
 * it reads the page's content after the reset of that entry. So stores up to the flush of the reset
 * are accounted for, and each later one needs an entry that was not reset yet.
 */

static struct store_log *log_of(const struct kvm *kvm, uint32_t id, uint64_t offset)
{
	const struct kvm_memory_slot *slot = kvm->check ? id_to_memslot(kvm, id) : NULL;

	return slot && memslot_logged(slot) && offset < slot->npages ? slot->stores : NULL;
}

void store_log_ring_collected(struct kvm *kvm, uint32_t id, uint64_t offset)
{
	struct store_log *log = log_of(kvm, id, offset);

	if (log)
		log->page[offset].collected++;
}

void store_log_ring_reset(struct kvm *kvm, uint32_t id, uint64_t offset)
{
	struct store_log *log = log_of(kvm, id, offset);

	/* An entry of which userspace knows nothing accounts for no store. */
	if (!log || !log->page[offset].collected)
		return;
	log->page[offset].collected--;
	log->page[offset].reset_by = kvm->ring_resets;
}

static void find_logged(const struct kvm_vcpu *v, const struct kvm_memory_slot *slot)
{
	for (int i = v->log.index + 1; v->log.gpa && i < CPU_LOG_ENTRIES; i++) {
		uint64_t page = (v->log.gpa[i] >> PAGE_SHIFT) - slot->base_gfn;

		if (page < slot->npages)
			slot->stores->page[page].pending = true;
	}
}

/* Which pages have an entry that was not reset yet, or by a reset that has not flushed yet (it does
 * so without slots_lock), or are on their way to one. */
static void find_pending(const struct kvm *kvm, const struct kvm_memory_slot *slot)
{
	struct store_log *log = slot->stores;

	for (uint64_t i = 0; i < slot->npages; i++)
		log->page[i].pending = log->page[i].reset_by != 0;
	for (uint32_t v = 0; v < kvm->n_vcpus; v++) {
		struct kvm_dirty_ring *r = kvm->vcpus[v]->dirty_ring;

		find_logged(kvm->vcpus[v], slot);
		for (uint32_t i = r->reset_index; i != r->dirty_index; i++) {
			const struct kvm_dirty_gfn *e = dirty_ring_entry(r, i);

			if (e->slot == slot->id && e->offset < slot->npages)
				log->page[e->offset].pending = true;
		}
	}
}

/* No vCPU is still in the exit that it was in at @when: what a fault then was about to push has
 * been pushed. */
static bool settled(const struct kvm *kvm, cycles_t when)
{
	for (uint32_t i = 0; i < kvm->n_vcpus; i++) {
		const struct kvm_vcpu *v = kvm->vcpus[i];

		if (v->in_run && v->mode != IN_GUEST_MODE && v->entered <= when)
			return false;
	}
	return true;
}

static void check_slot(struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t call, cycles_t now)
{
	struct store_log *log = slot->stores;
	bool over = settled(kvm, log->flushed);

	for (uint64_t i = 0; i < slot->npages; i++) {
		if (log->page[i].reset_by == call) {
			kvm->false_dirties += log->page[i].time <= log->since + 1;
			if (log->page[i].time <= now + 1)
				log->page[i].time = 0;
			log->page[i].reset_by = 0;
		}
	}
	find_pending(kvm, slot);
	for (uint64_t i = 0; i < slot->npages; i++) {
		if (log->page[i].time <= log->since + 1 || log->page[i].pending) {
			log->page[i].missed = false;
		} else if (log->page[i].missed && over) {
			kvm->lost_stores++;
			log->page[i].time = 0;
			log->page[i].missed = false;
		} else {
			log->page[i].missed = true;
		}
	}
	log->flushed = now;
}

void store_log_ring_flushed(struct kvm *kvm, uint64_t call, cycles_t now)
{
	for (uint32_t s = 0; kvm->check && s < KVM_MAX_MEMSLOTS; s++)
		if (kvm->slots[s] && memslot_logged(kvm->slots[s]))
			check_slot(kvm, kvm->slots[s], call, now);
}

void store_log_ring_disarm(struct kvm *kvm, struct kvm_memory_slot *slot)
{
	struct store_log *log = slot->stores;

	if (!log)
		return;
	if (settled(kvm, log->flushed))
		kvm->lost_stores += store_log_ring_lost(kvm, slot, true);
	for (uint64_t i = 0; i < slot->npages; i++) {
		log->page[i].missed = false;
		log->page[i].collected = 0;
	}
}

uint64_t store_log_ring_lost(const struct kvm *kvm, const struct kvm_memory_slot *slot, bool missed)
{
	const struct store_log *log = slot->stores;
	uint64_t lost = 0;

	if (!log || !memslot_logged(slot))
		return 0;
	find_pending(kvm, slot);
	for (uint64_t i = 0; i < slot->npages; i++)
		lost += log->page[i].time > log->since + 1 && !log->page[i].pending &&
			(log->page[i].missed || !missed);
	return lost;
}
