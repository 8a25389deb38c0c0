// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/memslot.h"

#include <stdlib.h>
#include <string.h>

#include "model/mmu/check.h"
#include "model/mmu/mmu.h"
#include "model/policy/dirty.h"
#include "model/policy/preset.h"

/* With SMM there is a second set of slots: generations are even here and odd there. */
#define KVM_ADDRESS_SPACE_NUM 2

/* One shadow page is allowed per so many guest pages. */
#define MEMSLOT_PAGES_TO_MMU_PAGES 50

struct kvm_memory_slot *gfn_to_memslot(const struct kvm *kvm, gfn_t gfn)
{
	uint32_t lo = 0, hi = kvm->nr_by_gfn;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (gfn < kvm->by_gfn[mid]->base_gfn)
			hi = mid;
		else if (gfn >= kvm->by_gfn[mid]->base_gfn + kvm->by_gfn[mid]->npages)
			lo = mid + 1;
		else
			return kvm->by_gfn[mid];
	}
	return NULL;
}

struct kvm_memory_slot *id_to_memslot(const struct kvm *kvm, uint32_t id)
{
	return id < KVM_MAX_MEMSLOTS ? kvm->slots[id] : NULL;
}

gfn_t kvm_pfn_to_gfn(const struct kvm *kvm, pfn_t pfn)
{
	for (uint32_t i = 0; i < kvm->nr_by_gfn; i++)
		if (pfn - kvm->by_gfn[i]->base_pfn < kvm->by_gfn[i]->npages)
			return kvm->by_gfn[i]->base_gfn + (pfn - kvm->by_gfn[i]->base_pfn);
	return 0;
}

static void slot_free(struct kvm_memory_slot *slot)
{
	if (!slot)
		return;
	for (int i = 0; i < NR_PAGE_SIZES; i++) {
		free(slot->rmap[i]);
		free(slot->disallow_lpage[i]);
	}
	host_mem_free(&slot->host);
	free(slot->write_track);
	free(slot->dirty_bitmap);
	free(slot->dirty_snapshot);
	free(slot->stores);
	free(slot);
}

void memslots_free(struct kvm *kvm)
{
	for (uint32_t i = 0; i < KVM_MAX_MEMSLOTS; i++)
		slot_free(kvm->slots[i]);
	while (kvm->deleted_slots) {
		struct kvm_memory_slot *slot = kvm->deleted_slots;

		kvm->deleted_slots = slot->next_deleted;
		slot_free(slot);
	}
}

static void fill_bitmap(uint64_t *bitmap, uint64_t npages)
{
	for (uint64_t i = 0; i < npages / 64; i++)
		bitmap[i] = UINT64_MAX;
	if (npages % 64)
		bitmap[npages / 64] = (1ull << (npages % 64)) - 1;
}

static bool initially_all_set(const struct kvm *kvm)
{
	return kvm->dirty->initially_all_set && kvm->dirty->initially_all_set(kvm);
}

/* True as well where the policy keeps none. */
static bool alloc_bitmap(struct kvm *kvm, struct kvm_memory_slot *slot)
{
	uint64_t words = memslot_bitmap_words(slot);

	if (!kvm->dirty->harvest)
		return true;
	slot->dirty_bitmap = calloc(words, 8);
	slot->dirty_snapshot = calloc(words, 8);
	slot->bitmap_addr = kaddr_pages(&kvm->kaddr, 2 * words * 8);
	slot->snapshot_addr = slot->bitmap_addr + words * 8;
	if (!slot->dirty_bitmap || !slot->dirty_snapshot)
		return false;
	if (initially_all_set(kvm))
		fill_bitmap(slot->dirty_bitmap, slot->npages);
	return true;
}

/* What a bitmap that was just made costs. */
static void charge_bitmap(struct task *t, struct kvm *kvm, const struct kvm_memory_slot *slot,
			  bool logged)
{
	uint64_t words = memslot_bitmap_words(slot);

	if (!logged || !slot->dirty_bitmap)
		return;
	/* and as much for what a call takes out of it */
	charge(t, COUNT_bitmap_alloc, (2 * words * 8 + PAGE_SIZE - 1) / PAGE_SIZE);
	if (!initially_all_set(kvm))
		return;
	charge(t, COUNT_bitmap_set, words);
	kvm_touch(t, kvm, slot->bitmap_addr, (uint32_t)(words * 8), true);
	touch_shared(t);
}

static void free_bitmap(struct kvm_memory_slot *slot)
{
	free(slot->dirty_bitmap);
	free(slot->dirty_snapshot);
	slot->dirty_bitmap = slot->dirty_snapshot = NULL;
}

static bool alloc_metadata(struct kvm *kvm, struct kvm_memory_slot *slot)
{
	gfn_t end = slot->base_gfn + slot->npages;

	for (int l = PG_LEVEL_4K; l <= MAX_HUGE_LEVEL; l++) {
		uint64_t n = memslot_lpages(slot, l), mask = pages_per_level(l) - 1;

		if (kvm->backend->rmaps) {
			slot->rmap[l - 1] = calloc(n, sizeof(*slot->rmap[0]));
			if (!slot->rmap[l - 1])
				return false;
			slot->rmap_addr[l - 1] =
				kaddr_pages(&kvm->kaddr, n * sizeof(*slot->rmap[0]));
		}
		if (l == PG_LEVEL_4K)
			continue;
		slot->disallow_lpage[l - 1] = calloc(n, sizeof(*slot->disallow_lpage[0]));
		if (!slot->disallow_lpage[l - 1])
			return false;
		slot->lpage_addr[l - 1] =
			kaddr_pages(&kvm->kaddr, n * sizeof(*slot->disallow_lpage[0]));
		if (slot->base_gfn & mask)
			slot->disallow_lpage[l - 1][0] = 1;
		if (end & mask)
			slot->disallow_lpage[l - 1][n - 1] = 1;
	}
	slot->write_track = calloc(slot->npages, sizeof(*slot->write_track));
	return slot->write_track;
}

static uint64_t array_pages(uint64_t n, uint64_t bytes)
{
	return (n * bytes + PAGE_SIZE - 1) / PAGE_SIZE;
}

/* What a slot's arrays cost, each of whole pages: reverse maps, where large pages are allowed, and
 * whose writes are tracked. */
static void charge_metadata(struct task *t, const struct kvm *kvm,
			    const struct kvm_memory_slot *slot)
{
	uint64_t pages = 0;

	for (int l = PG_LEVEL_4K; l <= MAX_HUGE_LEVEL; l++) {
		if (kvm->backend->rmaps)
			pages += array_pages(memslot_lpages(slot, l), sizeof(*slot->rmap[0]));
		if (l > PG_LEVEL_4K)
			pages += array_pages(memslot_lpages(slot, l),
					     sizeof(*slot->disallow_lpage[0]));
	}
	if (!kvm->tdp_enabled)
		pages += array_pages(slot->npages, sizeof(*slot->write_track));
	charge(t, COUNT_bitmap_alloc, pages);
}

static struct kvm_memory_slot *slot_new(struct kvm *kvm, uint32_t id, uint32_t flags,
					gfn_t base_gfn, uint64_t npages,
					const struct memslot_host *host)
{
	const uint64_t largest = pages_per_level(MAX_HUGE_LEVEL);
	struct kvm_memory_slot *slot = calloc(1, sizeof(*slot));

	if (!slot)
		return NULL;
	slot->id = id;
	slot->flags = flags;
	slot->base_gfn = base_gfn;
	slot->npages = npages;
	slot->base_pfn = kvm->next_pfn + ((base_gfn - kvm->next_pfn) & (largest - 1));
	slot->slot_addr = kaddr_object(&kvm->kaddr, KADDR_MEMSLOT_BYTES);
	if (!host_mem_init(slot, host) || !alloc_metadata(kvm, slot) ||
	    (memslot_logged(slot) && !alloc_bitmap(kvm, slot)) ||
	    (kvm->check && !store_log_alloc(slot)))
		goto fail;
	kvm->next_pfn = slot->base_pfn + npages;
	return slot;
fail:
	slot_free(slot);
	return NULL;
}

static int cmp_base(const void *a, const void *b)
{
	const struct kvm_memory_slot *x = *(struct kvm_memory_slot *const *)a;
	const struct kvm_memory_slot *y = *(struct kvm_memory_slot *const *)b;

	return (x->base_gfn > y->base_gfn) - (x->base_gfn < y->base_gfn);
}

/* The new set of slots becomes visible, and nobody sees the old one any more. It has a generation
 * of its own from then on: until it has, what is learnt of devices is not kept. @placed: a slot is
 * where none was. */
static void install_memslots(struct task *t, struct kvm *kvm, bool placed)
{
	uint64_t next = kvm->memslots_generation + KVM_ADDRESS_SPACE_NUM;

	charge(t, COUNT_memslot_update, 1);
	mmu_notifier_wait(t, kvm);
	touch_shared(t);
	task_assert_first(t, "the memslots");
	kvm->memslots_updating = true;
	kvm->nr_by_gfn = 0;
	kvm->nr_memslot_pages = 0;
	for (uint32_t i = 0; i < KVM_MAX_MEMSLOTS; i++)
		if (kvm->slots[i]) {
			kvm->by_gfn[kvm->nr_by_gfn++] = kvm->slots[i];
			kvm->nr_memslot_pages += kvm->slots[i]->npages;
		}
	qsort(kvm->by_gfn, kvm->nr_by_gfn, sizeof(kvm->by_gfn[0]), cmp_base);
	synchronize_srcu(t, &kvm->srcu);
	if (kvm->spte->memslots_updated)
		kvm->spte->memslots_updated(t, kvm, next, placed);
	touch_shared(t);
	task_assert_first(t, "the memslots' generation");
	kvm->memslots_generation = next;
	kvm->memslots_updating = false;
}

/* The slot is there for nobody any more, and nothing is mapped from it. */
static void invalidate_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	touch_shared(t);
	task_assert_first(t, "a memslot's flags");
	slot->flags |= MEMSLOT_INVALID;
	install_memslots(t, kvm, false);
	kvm_mmu_zap_all(t, kvm);
	touch_shared(t);
}

/* A fault that has found it may still hold it: SRCU keeps it, here until the VM's end. */
static void retire_slot(struct kvm *kvm, struct kvm_memory_slot *slot)
{
	slot->next_deleted = kvm->deleted_slots;
	kvm->deleted_slots = slot;
}

static void limit_mmu_pages(struct task *t, struct kvm *kvm)
{
	uint64_t n = kvm->nr_memslot_pages / MEMSLOT_PAGES_TO_MMU_PAGES;

	if (kvm->mmu_pages_requested)
		return;
	kvm_mmu_change_mmu_pages(t, kvm, n > MIN_ALLOC_MMU_PAGES ? n : MIN_ALLOC_MMU_PAGES);
}

static int change_flags(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			uint32_t flags)
{
	bool logged = flags & MEMSLOT_LOG_DIRTY;
	int r;

	if (slot->flags == flags)
		return 0;
	touch_shared(t);
	task_assert_first(t, "a memslot's flags and synthetic addresses");
	if (logged && !alloc_bitmap(kvm, slot)) {
		free_bitmap(slot);
		return KVMSIM_ENOMEM;
	}
	charge_bitmap(t, kvm, slot, logged);
	/* What is on its way to the log from now on comes to nothing. */
	if (!logged)
		store_log_disarm(kvm, slot);
	slot->flags = flags;
	install_memslots(t, kvm, false);
	kvm_update_cpu_dirty_logging(t, kvm, logged);
	if (logged) {
		/* What is read-only has no spte to arm. */
		r = flags & MEMSLOT_READONLY ? 0 : dirty_log_enable(t, kvm, slot);
		store_log_arm(slot, task_now(t));
		return r;
	}
	task_assert_first(t, "a dirty bitmap");
	free_bitmap(slot);
	return flags & MEMSLOT_READONLY ? 0 : dirty_log_disable(t, kvm, slot);
}

static int delete_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	invalidate_slot(t, kvm, slot);
	kvm->slots[slot->id] = NULL;
	install_memslots(t, kvm, false);
	if (memslot_logged(slot))
		kvm_update_cpu_dirty_logging(t, kvm, false);
	retire_slot(kvm, slot);
	limit_mmu_pages(t, kvm);
	return 0;
}

/* What @slot had is @to's, which is made for another place; of the bitmap, where both are logged.
 */
static void hand_over(struct kvm_memory_slot *slot, struct kvm_memory_slot *to)
{
	host_mem_free(&to->host);
	to->host = slot->host;
	slot->host = (struct host_mem){.level = PG_LEVEL_4K};
	free(to->stores);
	to->stores = slot->stores;
	slot->stores = NULL;
	if (!slot->dirty_bitmap || !to->dirty_bitmap)
		return;
	free_bitmap(to);
	to->dirty_bitmap = slot->dirty_bitmap;
	to->dirty_snapshot = slot->dirty_snapshot;
	to->bitmap_addr = slot->bitmap_addr;
	to->snapshot_addr = slot->snapshot_addr;
	/* It has them, too, until all who may have found it are done: what they mark, @to has. */
}

/* The memory's host pages lie in the guest's frames as before only where these move by whole ones.
 */
static bool movable(const struct kvm_memory_slot *slot, gfn_t base_gfn)
{
	int level = slot->host.pmd ? PG_LEVEL_2M : slot->host.level;

	return !((slot->base_gfn ^ base_gfn) & (pages_per_level(level) - 1));
}

static int move_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint32_t flags,
		     gfn_t base_gfn)
{
	const struct memslot_host none = {.populated = true};
	bool was_logged = memslot_logged(slot);
	struct kvm_memory_slot *to;

	if (!movable(slot, base_gfn))
		return kvmsim_err(sim_errors(kvm->sim), KVMSIM_EUNSUPPORTED,
				  "slot %u: moving it by a part of its host pages is not modelled",
				  slot->id);
	touch_shared(t);
	task_assert_first(t, "synthetic addresses");
	to = slot_new(kvm, slot->id, flags, base_gfn, slot->npages, &none);
	if (!to)
		return KVMSIM_ENOMEM;
	charge_metadata(t, kvm, to); /* its frames have other neighbours: arrays of its own */
	charge_bitmap(t, kvm, to, memslot_logged(to) && !was_logged);
	invalidate_slot(t, kvm, slot);
	hand_over(slot, to);
	if (!gmem_move(&kvm->gmem, slot->base_gfn, base_gfn, slot->npages))
		kvm->dead = true;
	if (was_logged && !memslot_logged(to))
		store_log_disarm(kvm, to);
	else if (memslot_logged(to) && !was_logged)
		store_log_arm(to, task_now(t));
	kvm->slots[slot->id] = to;
	install_memslots(t, kvm, true);
	if (slot->dirty_bitmap == to->dirty_bitmap)
		slot->dirty_bitmap = slot->dirty_snapshot = NULL;
	if (was_logged != memslot_logged(to))
		kvm_update_cpu_dirty_logging(t, kvm, memslot_logged(to));
	retire_slot(kvm, slot);
	return 0;
}

/* Whether a slot other than @id has one of the frames. */
static bool overlaps(const struct kvm *kvm, uint32_t id, gfn_t base_gfn, uint64_t npages)
{
	for (uint32_t i = 0; i < kvm->nr_by_gfn; i++) {
		const struct kvm_memory_slot *s = kvm->by_gfn[i];

		if (s->id != id && base_gfn < s->base_gfn + s->npages &&
		    s->base_gfn < base_gfn + npages)
			return true;
	}
	return false;
}

static int change_slot(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		       uint32_t flags, gfn_t base_gfn, uint64_t npages)
{
	if (slot->npages != npages || ((slot->flags ^ flags) & MEMSLOT_READONLY))
		return KVMSIM_EINVAL;
	if (slot->base_gfn == base_gfn)
		return change_flags(t, kvm, slot, flags);
	return overlaps(kvm, slot->id, base_gfn, npages) ? KVMSIM_EINVAL
							 : move_slot(t, kvm, slot, flags, base_gfn);
}

int memslot_set(struct task *t, struct kvm *kvm, uint32_t id, uint32_t flags, gfn_t base_gfn,
		uint64_t npages, const struct memslot_host *host)
{
	gfn_t end = kvm_mmu_max_gfn(kvm) + 1;
	struct kvm_memory_slot *slot;

	if (id >= KVM_MAX_MEMSLOTS || flags & ~(MEMSLOT_LOG_DIRTY | MEMSLOT_READONLY) ||
	    npages > KVM_MEM_MAX_NR_PAGES || base_gfn > end || npages > end - base_gfn ||
	    host->level > (host->anonymous ? PG_LEVEL_2M : MAX_HUGE_LEVEL))
		return KVMSIM_EINVAL;
	slot = kvm->slots[id];
	if (!npages)
		return slot ? delete_slot(t, kvm, slot) : KVMSIM_EINVAL;
	if (slot)
		return change_slot(t, kvm, slot, flags, base_gfn, npages);
	if (overlaps(kvm, id, base_gfn, npages))
		return KVMSIM_EINVAL;
	touch_shared(t); /* shadow pages take addresses too, under another lock */
	task_assert_first(t, "synthetic addresses");
	slot = slot_new(kvm, id, flags, base_gfn, npages, host);
	if (!slot)
		return KVMSIM_ENOMEM;
	charge_metadata(t, kvm, slot);
	charge_bitmap(t, kvm, slot, memslot_logged(slot));
	if (memslot_logged(slot))
		store_log_arm(slot, task_now(t));
	kvm->slots[id] = slot;
	install_memslots(t, kvm, true);
	if (memslot_logged(slot))
		kvm_update_cpu_dirty_logging(t, kvm, true);
	limit_mmu_pages(t, kvm);
	return 0;
}
