// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/hostmem.h"

#include <stdlib.h>
#include <string.h>

#include "model/mmu/mmu.h"
#include "model/mmu/notifier.h"
#include "model/policy/preset.h"

#define HUGE_PAGES pages_per_level(PG_LEVEL_2M)

/* Frames from @first to before @end. */
struct range {
	gfn_t first, end;
};

static gfn_t block_of(gfn_t gfn)
{
	return gfn & ~(HUGE_PAGES - 1);
}

static bool bit(const struct kvm_memory_slot *slot, const uint64_t *bitmap, gfn_t gfn)
{
	uint64_t i = gfn - slot->base_gfn;

	return bitmap && bitmap[i / 64] >> (i % 64) & 1;
}

static void set_bits(const struct kvm_memory_slot *slot, uint64_t *bitmap, gfn_t gfn,
		     uint64_t npages, bool on)
{
	for (uint64_t i = gfn - slot->base_gfn, end = i + npages; i < end; i++) {
		if (on)
			bitmap[i / 64] |= 1ull << (i % 64);
		else
			bitmap[i / 64] &= ~(1ull << (i % 64));
	}
}

static uint8_t *pmd_of(const struct kvm_memory_slot *slot, gfn_t gfn)
{
	return &slot->host.pmd[memslot_index(slot, gfn, PG_LEVEL_2M)];
}

static bool is_huge(enum host_pmd pmd)
{
	return pmd == HOST_PMD_HUGE || pmd == HOST_PMD_HUGE_ZERO;
}

/* The largest page of the slot's size around @gfn that the slot has whole. */
static int fitting_level(const struct kvm_memory_slot *slot, gfn_t gfn)
{
	int level;

	for (level = slot->host.level; level > PG_LEVEL_4K; level--) {
		gfn_t first = gfn & ~(pages_per_level(level) - 1);

		if (first >= slot->base_gfn &&
		    first + pages_per_level(level) <= slot->base_gfn + slot->npages)
			break;
	}
	return level;
}

bool host_mem_init(struct kvm_memory_slot *slot, const struct memslot_host *host)
{
	struct host_mem *h = &slot->host;
	uint64_t words = memslot_bitmap_words(slot), blocks = memslot_lpages(slot, PG_LEVEL_2M);

	h->level = host->level ? (int)host->level : PG_LEVEL_4K;
	h->anonymous = host->anonymous;
	h->active = calloc(words, 8);
	if (!h->active)
		return false;
	if (!host->populated || host->anonymous)
		h->absent = calloc(words, 8);
	if (host->anonymous) {
		h->zero = calloc(words, 8);
		h->readonly = calloc(words, 8);
		h->pmd = calloc(blocks, 1);
	}
	if (((!host->populated || host->anonymous) && !h->absent) ||
	    (host->anonymous && (!h->zero || !h->readonly || !h->pmd)))
		return false;
	if (!host->populated)
		memset(h->absent, 0xff, words * 8);
	for (uint64_t i = 0; host->anonymous && host->populated && i < blocks; i++) {
		gfn_t gfn = block_of(slot->base_gfn) + i * HUGE_PAGES;

		h->pmd[i] =
			fitting_level(slot, gfn) == PG_LEVEL_2M ? HOST_PMD_HUGE : HOST_PMD_TABLE;
	}
	return true;
}

void host_mem_free(struct host_mem *h)
{
	free(h->active);
	free(h->absent);
	free(h->zero);
	free(h->readonly);
	free(h->pmd);
}

int memslot_host_level(const struct kvm_memory_slot *slot, gfn_t gfn)
{
	if (!slot->host.anonymous)
		return fitting_level(slot, gfn);
	return is_huge(*pmd_of(slot, gfn)) ? PG_LEVEL_2M : PG_LEVEL_4K;
}

bool memslot_host_writable(const struct kvm_memory_slot *slot, gfn_t gfn)
{
	return !bit(slot, slot->host.absent, gfn) && !bit(slot, slot->host.zero, gfn) &&
	       !bit(slot, slot->host.readonly, gfn);
}

/* The mapping (VMA) that @gfn is of: neighbours with the same protection are one. */
static struct range mapping_of(const struct kvm_memory_slot *slot, gfn_t gfn)
{
	bool readonly = bit(slot, slot->host.readonly, gfn);
	struct range vma = {gfn, gfn + 1};

	while (vma.first > slot->base_gfn &&
	       bit(slot, slot->host.readonly, vma.first - 1) == readonly)
		vma.first--;
	while (vma.end < slot->base_gfn + slot->npages &&
	       bit(slot, slot->host.readonly, vma.end) == readonly)
		vma.end++;
	return vma;
}

/* ---- faults ---- */

static void charge_populated(struct task *t, int level)
{
	charge(t, COUNT_host_fault, 1);
	charge(t, COUNT_host_page, 1);
	if (level > PG_LEVEL_4K)
		charge(t, COUNT_host_clear, pages_per_level(level) - 1);
}

/* The page is made and cleared beside others', but not beside a change of the address space. */
static int populate_shared(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn)
{
	int level = fitting_level(slot, gfn), r;

	set_bits(slot, slot->host.absent, gfn & ~(pages_per_level(level) - 1),
		 pages_per_level(level), false);
	set_bits(slot, slot->host.active, gfn & ~(pages_per_level(level) - 1),
		 pages_per_level(level), true); /* before it is on any list */
	lock_called_by(t, kvm, "get_user_pages_unlocked");
	r = read_lock(t, &kvm->mmap_lock);
	if (r)
		return r;
	charge_populated(t, level);
	read_unlock(t, &kvm->mmap_lock);
	return 0;
}

/* The zero page, or one of the guest's own; a huge one where the whole of it is still nothing. */
static void populate_anonymous(struct task *t, struct kvm_memory_slot *slot, gfn_t gfn, bool write)
{
	uint8_t *pmd = pmd_of(slot, gfn);
	int level = PG_LEVEL_4K;

	if (*pmd == HOST_PMD_NONE && fitting_level(slot, gfn) == PG_LEVEL_2M) {
		struct range vma = mapping_of(slot, gfn);

		if (vma.first <= block_of(gfn) && block_of(gfn) + HUGE_PAGES <= vma.end)
			level = PG_LEVEL_2M;
	}
	if (level == PG_LEVEL_4K)
		*pmd = HOST_PMD_TABLE;
	else
		*pmd = write ? HOST_PMD_HUGE : HOST_PMD_HUGE_ZERO;
	gfn &= ~(pages_per_level(level) - 1);
	set_bits(slot, slot->host.absent, gfn, pages_per_level(level), false);
	set_bits(slot, slot->host.zero, gfn, pages_per_level(level), !write);
	/* A new page becomes active before it is on any list. */
	set_bits(slot, slot->host.active, gfn, pages_per_level(level), write);
	if (write)
		charge_populated(t, level);
	else
		charge(t, COUNT_host_fault, 1);
}

/* Small pages take the place of a huge one, or of none: the notifier does not know. */
static void split_pmd(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t block)
{
	mmu_notifier_invalidate_start(t, kvm, slot, block, block + HUGE_PAGES);
	touch_shared(t);
	task_assert_first(t, "the host's page tables");
	if (is_huge(*pmd_of(slot, block)))
		*pmd_of(slot, block) = HOST_PMD_TABLE;
	mmu_notifier_invalidate_end(t, kvm, slot, block, block + HUGE_PAGES);
}

/* None was faster, nothing was given back. */
static bool still_zero(struct task *t, struct kvm_memory_slot *slot, gfn_t gfn, int level)
{
	touch_shared(t);
	task_assert_first(t, "the host's page tables");
	return bit(slot, slot->host.zero, gfn) &&
	       (level == PG_LEVEL_2M) == (*pmd_of(slot, gfn) == HOST_PMD_HUGE_ZERO);
}

/* Pages of its own for what is still the zero page. The notifier is told before they can be found.
 */
static void copy_zero(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn,
		      int level)
{
	uint64_t n = pages_per_level(level);

	charge_populated(t, level);
	mmu_notifier_invalidate_start(t, kvm, slot, gfn, gfn + n);
	if (level == PG_LEVEL_4K && !kvm->preset->no_change_pte && still_zero(t, slot, gfn, level))
		mmu_notifier_change_pte(t, kvm, slot, gfn);
	if (still_zero(t, slot, gfn, level)) {
		set_bits(slot, slot->host.zero, gfn, n, false);
		set_bits(slot, slot->host.active, gfn, n, true);
		if (level == PG_LEVEL_2M)
			*pmd_of(slot, gfn) = HOST_PMD_HUGE;
	}
	mmu_notifier_invalidate_end(t, kvm, slot, gfn, gfn + n);
}

static void copy_on_write(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn)
{
	if (*pmd_of(slot, gfn) != HOST_PMD_HUGE_ZERO) {
		copy_zero(t, kvm, slot, gfn, PG_LEVEL_4K);
	} else if (kvm->preset->huge_zero_copy) {
		copy_zero(t, kvm, slot, block_of(gfn), PG_LEVEL_2M);
	} else {
		split_pmd(t, kvm, slot, block_of(gfn));
		copy_zero(t, kvm, slot, gfn, PG_LEVEL_4K);
	}
}

/* A fault of the host's, as often as it takes: others give memory back meanwhile. */
int host_fault_in(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn,
		  bool write, bool *writable)
{
	/* Who could not be told that a page is read-only asked for a writable one. */
	bool store = write || !kvm->preset->host_read_faults;
	int r;

	while (!task_canceled(t)) {
		touch_shared(t);
		task_assert_first(t, "the host's page tables");
		if (store && bit(slot, slot->host.readonly, gfn))
			return kvmsim_err(sim_errors(kvm->sim), KVMSIM_EINVAL,
					  "gfn %#llx: the VMM has mapped the memory read-only, "
					  "KVM_RUN ends with EFAULT",
					  (unsigned long long)gfn);
		if (bit(slot, slot->host.absent, gfn) && !slot->host.anonymous) {
			r = populate_shared(t, kvm, slot, gfn);
			if (r)
				return r;
		} else if (bit(slot, slot->host.absent, gfn)) {
			populate_anonymous(t, slot, gfn, store);
		} else if (store && bit(slot, slot->host.zero, gfn)) {
			copy_on_write(t, kvm, slot, gfn);
		} else {
			*writable = memslot_host_writable(slot, gfn);
			return 0;
		}
	}
	return KVMSIM_ECANCELED;
}

#define LRU_BATCH 15 /* PAGEVEC_SIZE */

static void lru_drain(struct task *t, struct kvm *kvm)
{
	charge(t, COUNT_host_move, kvm->lru_batch);
	kvm->lru_batch = 0;
}

/* Pages wait until a batch of them can be moved; a large one, which the list has as a whole, does
 * not wait. The zero page is on no list. */
void host_page_used(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn)
{
	int level = memslot_host_level(slot, gfn);
	gfn_t first = gfn & ~(pages_per_level(level) - 1);

	touch_shared(t);
	task_assert_first(t, "which host pages are active");
	if (bit(slot, slot->host.zero, gfn) || bit(slot, slot->host.active, first))
		return;
	set_bits(slot, slot->host.active, first, 1, true);
	kvm->lru_batch++;
	charge(t, COUNT_host_activate, 1);
	touch_shared(t);
	if (level > PG_LEVEL_4K || kvm->lru_batch >= LRU_BATCH)
		lru_drain(t, kvm);
}

void host_gfn_used(struct task *t, struct kvm *kvm, gfn_t gfn)
{
	struct kvm_memory_slot *slot = memslot_now(t, kvm, gfn);

	if (slot)
		host_page_used(t, kvm, slot, gfn);
}

void host_store(struct kvm_memory_slot *slot, gfn_t gfn)
{
	if (!slot->host.anonymous)
		return;
	if (!is_huge(*pmd_of(slot, gfn)))
		*pmd_of(slot, gfn) = HOST_PMD_TABLE;
	set_bits(slot, slot->host.absent, gfn, 1, false);
	set_bits(slot, slot->host.zero, gfn, 1, false);
}

/* ---- madvise and mprotect ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static gfn_t next_block(gfn_t gfn, gfn_t end)
{
	return least(block_of(gfn) + HUGE_PAGES, end);
}

static uint64_t present_pages(const struct kvm_memory_slot *slot, gfn_t gfn, gfn_t end)
{
	uint64_t n = 0;

	for (; gfn < end; gfn++)
		n += !bit(slot, slot->host.absent, gfn);
	return n;
}

static void give_back(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn,
		      gfn_t end)
{
	for (gfn_t next; gfn < end; gfn = next) {
		uint8_t *pmd = pmd_of(slot, gfn);

		next = next_block(gfn, end);
		touch_shared(t);
		task_assert_first(t, "the host's page tables");
		if (is_huge(*pmd) && next - gfn < HUGE_PAGES) {
			split_pmd(t, kvm, slot, block_of(gfn));
			touch_shared(t);
			task_assert_first(t, "the host's page tables");
		}
		if (is_huge(*pmd)) {
			charge(t, COUNT_host_unmap, 1);
			*pmd = HOST_PMD_NONE;
		} else {
			charge(t, COUNT_host_unmap, present_pages(slot, gfn, next));
		}
		set_bits(slot, slot->host.absent, gfn, next - gfn, true);
		set_bits(slot, slot->host.zero, gfn, next - gfn, false);
		set_bits(slot, slot->host.active, gfn, next - gfn, false);
		gmem_clear(&kvm->gmem, gfn, next - gfn);
	}
}

void host_dontneed(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn,
		   uint64_t npages)
{
	gfn_t end = gfn + npages, next;

	for (; gfn < end; gfn = next) {
		touch_shared(t);
		task_assert_first(t, "the host's mappings");
		next = least(mapping_of(slot, gfn).end, end);
		lru_drain(t, kvm);
		mmu_notifier_invalidate_start(t, kvm, slot, gfn, next);
		give_back(t, kvm, slot, gfn, next);
		mmu_notifier_invalidate_end(t, kvm, slot, gfn, next);
	}
}

/* A mapping that is split in the middle of 2 MiB that were all its own must not have a huge page
 * there. The host looks for one with the notifiers running, whether there is one or not. (Inferred
 * from two calls for one mprotect() of small pages; its tables are taken to have a PMD there.) */
static void split_mapping(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t at,
			  struct range vma)
{
	gfn_t block = block_of(at);

	if (at > block && at > vma.first && at < vma.end && block >= vma.first &&
	    block + HUGE_PAGES <= vma.end)
		split_pmd(t, kvm, slot, block);
}

static void charge_protected(struct task *t, const struct kvm_memory_slot *slot, gfn_t gfn,
			     gfn_t end)
{
	for (gfn_t next; gfn < end; gfn = next) {
		next = next_block(gfn, end);
		charge(t, COUNT_host_protect,
		       is_huge(*pmd_of(slot, gfn)) ? 1 : present_pages(slot, gfn, next));
	}
}

/* One mapping's part. The notifier is called by the GiB, from the first 2 MiB that have something
 * on. */
static void protect_part(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			 struct range part, bool writable)
{
	const gfn_t gib = pages_per_level(PG_LEVEL_1G);

	for (gfn_t gfn = part.first, next; gfn < part.end; gfn = next) {
		next = least((gfn & ~(gib - 1)) + gib, part.end);
		touch_shared(t);
		task_assert_first(t, "the host's page tables");
		gfn_t first = gfn;

		while (first < next && *pmd_of(slot, first) == HOST_PMD_NONE)
			first = next_block(first, next);
		if (first < next)
			mmu_notifier_invalidate_start(t, kvm, slot, first, next);
		touch_shared(t);
		task_assert_first(t, "the host's page tables");
		charge_protected(t, slot, first, next);
		touch_shared(t);
		task_assert_first(t, "the host's page tables");
		set_bits(slot, slot->host.readonly, gfn, next - gfn, !writable);
		if (first < next)
			mmu_notifier_invalidate_end(t, kvm, slot, first, next);
	}
}

/* Mappings begin where the protection changes. A border that is new splits one, one that goes
 * merges two, and one of each is one mapping that grows at the other's expense. */
static void charge_borders(struct task *t, const struct kvm_memory_slot *slot, gfn_t gfn, gfn_t end,
			   bool writable)
{
	uint64_t made = 0, gone = 0;

	for (gfn_t at = gfn > slot->base_gfn ? gfn : gfn + 1;
	     at <= end && at < slot->base_gfn + slot->npages; at++) {
		bool before = bit(slot, slot->host.readonly, at - 1);
		bool here = bit(slot, slot->host.readonly, at);
		bool was = before != here;
		bool is = (at > gfn ? !writable : before) != (at < end ? !writable : here);

		made += is && !was;
		gone += was && !is;
	}
	charge(t, COUNT_host_vma, made > gone ? made : gone);
}

void host_protect(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn,
		  uint64_t npages, bool writable)
{
	gfn_t end = gfn + npages, next;

	touch_shared(t);
	task_assert_first(t, "the host's mappings");
	charge_borders(t, slot, gfn, end, writable);
	for (; gfn < end; gfn = next) {
		touch_shared(t);
		task_assert_first(t, "the host's mappings");
		struct range vma = mapping_of(slot, gfn);
		struct range part = {gfn, least(vma.end, end)};

		next = part.end;
		if (bit(slot, slot->host.readonly, gfn) == !writable)
			continue;
		split_mapping(t, kvm, slot, part.first, vma);
		vma.first = part.first;
		split_mapping(t, kvm, slot, part.end, vma);
		protect_part(t, kvm, slot, part, writable);
	}
}

/* ---- the checker ---- */

const char *host_mem_check(const struct kvm_memory_slot *slot, gfn_t gfn, int level, uint64_t spte)
{
	if (memslot_host_level(slot, gfn) < level)
		return "is mapped larger than its host page";
	for (uint64_t i = 0; i < pages_per_level(level); i++) {
		if (bit(slot, slot->host.absent, gfn + i))
			return "is mapped, and the host does not have it";
		if ((spte & (PT_WRITABLE | SPTE_HOST_WRITABLE)) &&
		    !memslot_host_writable(slot, gfn + i))
			return "is writable, and the host maps it read-only";
	}
	return NULL;
}
