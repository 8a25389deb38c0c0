// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "model/mmu/check.h"
#include "model/mmu/mmu.h"
#include "model/policy/dirty.h"

/*
 * KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2 (5.0; initially-all-set: 5.7). GET copies the bitmap out, takes
 * no lock, clears and protects nothing. CLEAR takes from the bitmap what userspace passes and
 * write-protects those pages, word by word under one hold of mmu_lock; so userspace chooses how
 * long that hold is, and reads a page after its CLEAR, not after the GET that reported it.
 *
 * With initially-all-set the log begins with every bit set and nothing protected: CLEAR does all of
 * it, of mappings larger than 4K too, once per word.
 */

/* chunk: what QEMU asks for per CLEAR is 1 GiB unless x-clear-bitmap-shift says otherwise
 * (migration/options.c: CLEAR_BITMAP_SHIFT_DEFAULT 18). */
static const struct policy_param params[] = {
	{"initially-all-set", 0, 0, 1, 1, "1: all pages are dirty at first, none is protected"},
	{"chunk", 1u << 18, 64, 1u << 31, 64, "pages per CLEAR, a multiple of 64"},
	{"pml", 0, 0, 1, 1, "1: CLEAR takes D, and the CPU's log is used, as policy pml does"},
	{0},
};

static bool all_set(const struct kvm *kvm)
{
	return kvm->dirty_params.value[0];
}

static bool cpu_log(const struct kvm *kvm)
{
	return kvm->dirty_params.value[2];
}

static uint64_t clear_chunk(const struct kvm *kvm)
{
	return kvm->dirty_params.value[1];
}

static int enable(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	return all_set(kvm) ? 0 : dirty_enable_base(t, kvm, slot);
}

static long get(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t *bitmap)
{
	uint64_t words = memslot_bitmap_words(slot);
	long n = 0;

	charge(t, COUNT_bitmap_copy, words);
	kvm_touch(t, kvm, slot->bitmap_addr, (uint32_t)(words * 8), false);
	touch_shared(t);
	task_assert_first(t, "a dirty bitmap");
	memcpy(bitmap, slot->dirty_bitmap, words * 8);
	for (uint64_t i = 0; i < words; i++)
		n += __builtin_popcountll(bitmap[i]);
	return n;
}

/* Large mappings were left writable when logging began; they are found at the first and the last
 * page of the word, which may lie in two of them. The kernel compares the ends of the pages'
 * 2 MiB, rounded up: a word that begins with the first page of a mapping looks there twice. */
static void protect_huge(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			 uint64_t first_page, uint64_t mask)
{
	const uint64_t huge = pages_per_level(PG_LEVEL_2M);
	gfn_t start = slot->base_gfn + first_page + (uint64_t)__builtin_ctzll(mask);
	gfn_t end = slot->base_gfn + first_page + 63 - (uint64_t)__builtin_clzll(mask);

	/* The kernel's end is the last page: one page alone is an empty range. */
	(void)dirty_try_split(t, kvm, slot, start, end, true);
	kvm->backend->write_protect_huge(t, kvm, slot, start);
	if ((start + huge - 1) / huge != (end + huge - 1) / huge)
		kvm->backend->write_protect_huge(t, kvm, slot, end);
}

static void rearm(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
		  uint64_t first_page, uint64_t mask)
{
	if (all_set(kvm))
		protect_huge(t, kvm, slot, first_page, mask);
	dirty_rearm_word(t, kvm, slot, first_page, mask);
}

static int clear(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot, uint64_t first_page,
		 uint64_t npages, const uint64_t *bitmap)
{
	return dirty_clear_words(t, kvm, slot, first_page, npages, bitmap, rearm);
}

/* Cases C_cap1 and C_cap3 of the reference matrix, without and with initially-all-set, on QEMU's
 * TCG, in chunks of 64, 1,024 and 4,096 pages; of 6.12 C_cap3, nested. */
static const struct policy_proof proofs[] = {
	{"6.1-shadow", "tcg", {EVIDENCE_ORACLE, EVIDENCE_ORACLE, EVIDENCE_ORACLE}, NULL},
	{"6.1-tdp", "tcg", {[MMU_TDP] = EVIDENCE_ORACLE}, NULL},
	{"6.12-shadow", "tcg", {[MMU_TDP_RMAP] = EVIDENCE_ORACLE}, NULL},
	{0},
};

const struct dirty_policy dirty_manual = {
	.desc = {.name = "manual",
		 .family = FAMILY_DIRTY,
		 .summary = "GET only reports; CLEAR write-protects, a chunk at a time (5.0 on)",
		 .params = params,
		 .proofs = proofs},
	.cpu_log = cpu_log,
	.initially_all_set = all_set,
	.clear_chunk = clear_chunk,
	.enable = enable,
	.harvest = get,
	.clear = clear,
};
