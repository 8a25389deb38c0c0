// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The dirty policy `manual`. Numbers of faults, flushes and dirty pages are the kernel's, from
 * analysis/evidence/kernel/manual-6.1.0-57.csv (cases C_store1 and C_store3) unless a comment
 * derives them.
 */
#include <string.h>

#include "model/counts.h"
#include "model/mmu/mmu.h"
#include "model/policy/dirty.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define EQ    CU_ASSERT_EQUAL
#define PAGES 1000
#define WORDS 16

static const struct scene_opts mmus[] = {
	{.pte = SCENE_2M, .slot_pages = PAGES, .check = true},
	{.pte = SCENE_4K, .slot_pages = PAGES, .check = true},
	{.pte = SCENE_FLAT, .slot_pages = PAGES, .check = true},
	{.paging = PAGING_TDP, .pte = SCENE_2M, .slot_pages = PAGES, .check = true},
	{.paging = PAGING_TDP,
	 .preset = "6.1-tdp",
	 .pte = SCENE_2M,
	 .slot_pages = PAGES,
	 .check = true},
};
#define N_MMUS (sizeof(mmus) / sizeof(mmus[0]))

static uint64_t stat_base[N_KVM_STATS], count_base[N_COUNTS];

static uint64_t total(const struct scene *s, uint16_t count)
{
	return ledger_sum_count(sim_ledger(s->sim), LEDGER_ALL_TASKS, ACT_clear_dirty_log, count).n;
}

static void mark(const struct scene *s)
{
	for (int i = 0; i < N_KVM_STATS; i++)
		stat_base[i] = kvm_stat(s->kvm, (enum kvm_stat_id)i);
	for (uint16_t i = 0; i < N_COUNTS; i++)
		count_base[i] = total(s, i);
}
#define STAT(s, n)  (kvm_stat((s)->kvm, STAT_##n) - stat_base[STAT_##n])
#define COUNT(s, n) (total(s, COUNT_##n) - count_base[COUNT_##n])

/* Page i of 64 spread evenly over the slot. */
static int write_even(struct scene *s)
{
	int err = 0;

	for (uint64_t i = 0; i < 64 && !err; i++)
		err = scene_write(s, SCENE_TEST + (i * PAGES / 64 << 12), 4, i);
	return err ? err : scene_out(s);
}

static int clear_in_chunks(struct scene *s, struct task *t, uint64_t chunk, const uint64_t *bitmap)
{
	int err = 0;

	for (uint64_t first = 0; first < PAGES && !err; first += chunk)
		err = kvm_clear_dirty_log(t, s->kvm, 1, first,
					  PAGES - first < chunk ? PAGES - first : chunk,
					  bitmap + first / 64);
	return err;
}

/* Pages that were got stay writable until CLEAR: a store to one of them is in what userspace reads
 * after CLEAR, and is not reported again. Stores to others are. */
static int stores_between(struct scene *s, struct task *t)
{
	bool all_set = strstr(s->o->dirty, "all-set=1"),
	     direct = s->o->pte == SCENE_FLAT || s->o->paging == PAGING_TDP;
	uint64_t bitmap[WORDS], later[WORDS];

	EQ(scene_setup(s), 0);
	EQ(scene_loop(s, true, 0, PAGES), 0);
	mark(s);
	EQ(scene_log(s, t, true), 0);
	EQ(STAT(s, remote_tlb_flush_requests), !all_set);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), all_set ? PAGES : 0);
	mark(s);
	EQ(clear_in_chunks(s, t, 1024, bitmap), 0);
	EQ(STAT(s, remote_tlb_flush_requests), all_set);

	mark(s);
	EQ(write_even(s), 0);
	EQ(STAT(s, pf_taken), 64);
	EQ(STAT(s, pf_fast), direct ? 64 : 0);
	mark(s);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 64);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, later), 64); /* it takes nothing */
	EQ(memcmp(bitmap, later, sizeof(bitmap)), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 0);

	mark(s);
	EQ(scene_loop(s, true, 0, 64), 0);
	EQ(STAT(s, pf_taken), 59); /* 5 of the 64 are in the bitmap and writable */
	mark(s);
	EQ(clear_in_chunks(s, t, 64, bitmap), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 16); /* each chunk has one of the 64 */
	EQ(kvm_get_dirty_log(t, s->kvm, 1, later), 59);
	for (int i = 0; i < WORDS; i++)
		EQ(bitmap[i] & later[i], 0);
	mark(s);
	EQ(scene_loop(s, true, 0, 64), 0);
	EQ(STAT(s, pf_taken), 5); /* what was not named stays writable, and dirty */
	mark(s);
	EQ(write_even(s), 0);
	EQ(STAT(s, pf_taken), 59);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, later), 123);
	EQ(kvm_lost_stores(s->kvm), 0);
	/* The first report of a log that begins full is of pages not stored to since. */
	EQ(kvm_false_dirties(s->kvm), all_set ? PAGES : 0);
	mark(s);
	EQ(scene_log(s, t, false), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 0);
	return kvm_check(s->kvm);
}

static void get_and_clear(void)
{
	for (size_t i = 0; i < N_MMUS; i++) {
		struct scene_opts o = mmus[i];

		o.dirty = "manual";
		EQ(scene(&o, stores_between), 0);
		o.dirty = "manual,initially-all-set=1";
		EQ(scene(&o, stores_between), 0);
	}
}

/* What a CLEAR does: ten pages of one word and one of another are dirty, all of the slot is named.
 * Page 64 + 448 = 512 begins a 2 MiB mapping. */
static int clear_counts(struct scene *s, struct task *t)
{
	bool all_set = strstr(s->o->dirty, "all-set=1");
	uint64_t bitmap[WORDS], all[WORDS];

	memset(all, 0xff, sizeof(all));
	EQ(scene_setup(s), 0);
	EQ(scene_loop(s, true, 0, PAGES), 0);
	EQ(scene_log(s, t, true), 0);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 0, PAGES, all), 0);
	EQ(scene_loop(s, true, 512, 522), 0);
	EQ(scene_loop(s, true, 999, 1000), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 11);
	mark(s);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 0, PAGES, all), 0);
	EQ(COUNT(s, clear_dirty_log), 1);
	EQ(COUNT(s, ioctl), 1);
	EQ(COUNT(s, lock), 2); /* slots_lock and mmu_lock */
	EQ(COUNT(s, bitmap_copy), WORDS);
	EQ(COUNT(s, bitmap_word), WORDS);
	EQ(COUNT(s, clear_word), WORDS); /* each was named, two had anything */
	EQ(COUNT(s, dirty_word), 0);
	EQ(COUNT(s, rearm_word), 2);
	EQ(COUNT(s, dirty_page), 11);
	EQ(COUNT(s, write_protect), 11);
	/* With all-set two larger rmaps per look: one look for the word of page 999; two for the
	 * other, since its first page is rounded up to itself and its last to the next mapping. */
	EQ(COUNT(s, rmap_head), 11 + (all_set ? (1 + 2) * 2 : 0));
	mark(s);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 0, PAGES, all), 0); /* nothing is left */
	EQ(COUNT(s, clear_word), WORDS);
	EQ(COUNT(s, rearm_word), 0);
	EQ(COUNT(s, lock), 2);
	EQ(STAT(s, remote_tlb_flush_requests), 0);
	memset(bitmap, 0, sizeof(bitmap));
	mark(s);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 0, PAGES, bitmap), 0); /* nothing is named */
	EQ(COUNT(s, bitmap_word), WORDS);
	EQ(COUNT(s, clear_word), 0);
	return kvm_check(s->kvm);
}

static void what_a_clear_does(void)
{
	struct scene_opts o = mmus[2];

	o.dirty = "manual";
	EQ(scene(&o, clear_counts), 0);
	o.dirty = "manual,initially-all-set=1";
	EQ(scene(&o, clear_counts), 0);
}

/* As KVM_CLEAR_DIRTY_LOG answers, by Documentation/virt/kvm/api.rst, 4.117. */
static int ranges(struct scene *s, struct task *t)
{
	uint64_t bitmap[WORDS] = {0};

	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 0, PAGES, bitmap), KVMSIM_ENOENT); /* not logged */
	EQ(scene_log(s, t, true), 0);
	EQ(kvm_clear_dirty_log(t, s->kvm, 9, 0, PAGES, bitmap), KVMSIM_ENOENT);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 0, PAGES, bitmap), 0);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 960, 40, bitmap), 0);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 128, 64, bitmap), 0);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 32, 64, bitmap), KVMSIM_EINVAL);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 64, 65, bitmap), KVMSIM_EINVAL);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 960, 64, bitmap), KVMSIM_EINVAL);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 1024, 0, bitmap), KVMSIM_EINVAL);
	return 0;
}

static int no_clear(struct scene *s, struct task *t)
{
	uint64_t bitmap[WORDS] = {0};

	EQ(scene_log(s, t, true), 0);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 0, PAGES, bitmap), KVMSIM_EUNSUPPORTED);
	return 0;
}

static void errors(void)
{
	struct scene_opts o = mmus[0];

	o.dirty = "manual";
	EQ(scene(&o, ranges), 0);
	o.dirty = "mask";
	EQ(scene(&o, no_clear), 0);
}

/* A VMM's collection: chunks without a dirty page are left out. Pages 0, 63 and 500 lie in the
 * chunks of 128 from 0 and from 384. */
static int collection(struct scene *s, struct task *t)
{
	uint64_t bitmap[WORDS];

	EQ(scene_setup(s), 0);
	EQ(scene_log(s, t, true), 0);
	EQ(kvm_collect_dirty_log(t, s->kvm, 1, bitmap), 0);
	EQ(total(s, COUNT_clear_dirty_log), 0);
	EQ(scene_write(s, SCENE_TEST, 4, 1), 0);
	EQ(scene_write(s, SCENE_TEST + (63 << 12), 4, 1), 0);
	EQ(scene_write(s, SCENE_TEST + (500 << 12), 4, 1), 0);
	EQ(kvm_collect_dirty_log(t, s->kvm, 1, bitmap), 3);
	EQ(bitmap[0], 1ull << 63 | 1);
	EQ(bitmap[7], 1ull << (500 - 7 * 64));
	EQ(total(s, COUNT_clear_dirty_log), 2);
	EQ(kvm_collect_dirty_log(t, s->kvm, 1, bitmap), 0);
	return kvm_check(s->kvm);
}

static void collections(void)
{
	struct scene_opts o = mmus[1];

	o.dirty = "manual,chunk=128";
	EQ(scene(&o, collection), 0);
}

/* ---- the checker ---- */

static int clear_without_protecting(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
				    uint64_t first_page, uint64_t npages, const uint64_t *bitmap)
{
	return dirty_clear_words(t, kvm, slot, first_page, npages, bitmap, NULL);
}

/* Takes whole words, whatever of them was named. */
static int clear_too_much(struct task *t, struct kvm *kvm, struct kvm_memory_slot *slot,
			  uint64_t first_page, uint64_t npages, const uint64_t *bitmap)
{
	uint64_t whole[WORDS];

	for (uint64_t i = 0; i < WORDS; i++)
		whole[i] = bitmap[i] ? UINT64_MAX : 0;
	return dirty_clear_words(t, kvm, slot, first_page, npages, whole, dirty_rearm_word);
}

static int got(struct scene *s, struct task *t, uint64_t *bitmap)
{
	EQ(scene_setup(s), 0);
	EQ(scene_log(s, t, true), 0);
	EQ(scene_loop(s, true, 0, 20), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 20);
	return 0;
}

/* Of the 20 pages that were cleared and left writable, 7 are stored to: 7 stores are lost. */
static int forgets_to_protect(struct scene *s, struct task *t)
{
	struct dirty_policy broken = dirty_manual;
	uint64_t bitmap[WORDS];

	broken.clear = clear_without_protecting;
	s->kvm->dirty = &broken;
	EQ(got(s, t, bitmap), 0);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 0, PAGES, bitmap), 0);
	EQ(kvm_lost_stores(s->kvm), 0);
	EQ(scene_loop(s, true, 0, 7), 0);
	EQ(kvm_lost_stores(s->kvm), 7);
	EQ(kvm_check(s->kvm), KVMSIM_ECHECK);
	s->kvm->dirty = &dirty_manual;
	return 0;
}

/* Between GET and CLEAR 3 further pages are stored to, and their bits go with the others'. */
static int takes_unreported(struct scene *s, struct task *t)
{
	struct dirty_policy broken = dirty_manual;
	uint64_t bitmap[WORDS];

	broken.clear = clear_too_much;
	s->kvm->dirty = &broken;
	EQ(got(s, t, bitmap), 0);
	EQ(scene_loop(s, true, 18, 23), 0);
	EQ(kvm_lost_stores(s->kvm), 0);
	EQ(kvm_clear_dirty_log(t, s->kvm, 1, 0, PAGES, bitmap), 0);
	EQ(kvm_lost_stores(s->kvm), 3);
	/* a harvest that misses them twice says so for good */
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 0);
	EQ(scene_log(s, t, false), 0);
	EQ(kvm_lost_stores(s->kvm), 3);
	EQ(kvm_check(s->kvm), KVMSIM_ECHECK);
	s->kvm->dirty = &dirty_manual;
	return 0;
}

static void lost_stores(void)
{
	for (size_t i = 0; i < N_MMUS; i++) {
		struct scene_opts o = mmus[i];

		o.dirty = "manual";
		EQ(scene(&o, forgets_to_protect), 0);
		EQ(scene(&o, takes_unreported), 0);
	}
}

static CU_TestInfo tests[] = {
	{"get_and_clear", get_and_clear},
	{"what_a_clear_does", what_a_clear_does},
	{"errors", errors},
	{"collections", collections},
	{"lost_stores", lost_stores},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("manual", tests)
