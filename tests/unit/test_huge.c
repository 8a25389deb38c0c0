// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/mmu/mmu.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

/*
 * Host pages of 2 MiB and 1 GiB on shadow pages and rmaps: which size is mapped where, and what an
 * early split does, which 6.1 does on the TDP MMU alone. What 6.1 does with 2 MiB is in the
 * matrix's cases G; the numbers here follow from the sizes by hand.
 */
#define AT    0x40000000ull /* a slot at 1 GiB */
#define MIB2  512ull	    /* pages */
#define GIB   (512 * MIB2)
#define SLOT  2
#define STOCK 40ull /* tables that a split has at hand, model/mmu/rmap/split.c */

#define STAT(s, n)  scene_stat(s, STAT_##n)
#define NOW(s, n)   kvm_stat((s)->kvm, STAT_##n)
#define EVENT(s, n) scene_event(s, TRACE_##n)
#define COUNT(s, n) scene_count(s, COUNT_##n)
#define EQ	    CU_ASSERT_EQUAL

static struct kvm_memory_region region;

static int slot(struct scene *s, struct task *t, uint64_t npages, unsigned host_level, bool log)
{
	region = (struct kvm_memory_region){.slot = SLOT,
					    .flags = log ? KVM_MEM_LOG_DIRTY_PAGES : 0,
					    .base_gfn = AT >> 12,
					    .npages = npages,
					    .host_populated = true,
					    .host_level = host_level};
	return kvm_set_user_memory_region(t, s->kvm, &region);
}

static int store(struct scene *s, uint64_t page)
{
	return scene_write(s, AT + (page << 12), 4, 1);
}

/* ---- which size ---- */

static const struct {
	enum kvm_paging paging;
	enum scene_pte pte;
	unsigned host_level;
	const char *preset;
	uint64_t mapped[3]; /* 4K, 2M and 1G, of the three stores */
} sizes[] = {
	/* One store in the whole GiB, one in the 2 MiB after it, one in what is left: the host has
	 * pages of 1 GiB, 2 MiB and 4 KiB there, where it has large ones. The guest of npt0 has 2M
	 * PTEs; tables without a guest's are no larger than 2M. */
	{PAGING_SHADOW, SCENE_FLAT, 3, NULL, {1, 2, 0}},
	{PAGING_SHADOW, SCENE_2M, 3, NULL, {1, 2, 0}},
	{PAGING_SHADOW, SCENE_2M, 2, NULL, {1, 2, 0}},
	{PAGING_TDP, SCENE_2M, 3, NULL, {1, 1, 1}},
	{PAGING_TDP, SCENE_2M, 2, NULL, {1, 2, 0}},
	{PAGING_TDP, SCENE_2M, 1, NULL, {3, 0, 0}},
	{PAGING_TDP, SCENE_2M, 0, NULL, {3, 0, 0}},
	{PAGING_TDP, SCENE_2M, 3, "6.1-tdp", {1, 1, 1}},
	{PAGING_TDP, SCENE_2M, 2, "6.1-tdp", {1, 2, 0}},
};
static unsigned size;

static int sized(struct scene *s, struct task *t)
{
	EQ(slot(s, t, GIB + MIB2 + 100, sizes[size].host_level, false), 0);
	EQ(scene_setup(s), 0);
	EQ(scene_read(s, 0x13000), 0); /* the guest's tables for the slot, that walks need */
	EQ(scene_read(s, 0x14000), 0);
	scene_mark(s);
	EQ(store(s, 5), 0);
	EQ(store(s, GIB + 7), 0);
	EQ(store(s, GIB + MIB2 + 99), 0);
	/* neighbours are prefetched where sptes are small, but on the TDP MMU */
	for (int l = 0; l < 3; l++) {
		uint64_t n = scene_stat(s, (enum kvm_stat_id)(STAT_pages_4k + l));

		CU_ASSERT_TRUE(l ? n == sizes[size].mapped[l] : n >= sizes[size].mapped[0]);
		CU_ASSERT_TRUE(n <= 8 * sizes[size].mapped[l]);
	}
	EQ(STAT(s, pf_taken), 3);
	/* what one mapping has is there */
	EQ(store(s, 5 + 8), 0);
	EQ(STAT(s, pf_taken), sizes[size].host_level > 1 ? 3 : 4);
	EQ(store(s, MIB2 + 9), 0);
	EQ(STAT(s, pf_taken), sizes[size].mapped[2] ? 3 : sizes[size].host_level > 1 ? 4 : 5);
	return kvm_check(s->kvm);
}

static void mapped_sizes(void)
{
	for (size = 0; size < sizeof(sizes) / sizeof(*sizes); size++) {
		const struct scene_opts o = {.paging = sizes[size].paging,
					     .pte = sizes[size].pte,
					     .preset = sizes[size].preset,
					     .slot_pages = 64,
					     .check = true};

		EQ(scene(&o, sized), 0);
	}
}

/* An era whose large pages are not modelled refuses them; so does a size that there is not. */
static int refused(struct scene *s, struct task *t)
{
	EQ(slot(s, t, GIB, 2, false), KVMSIM_EUNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "2.6.36"));
	EQ(slot(s, t, GIB, 4, false), KVMSIM_EUNSUPPORTED);
	EQ(slot(s, t, GIB, 1, false), 0);
	return 0;
}

static int no_such_size(struct scene *s, struct task *t)
{
	EQ(slot(s, t, GIB, 4, false), KVMSIM_EINVAL);
	return 0;
}

static void refusals(void)
{
	struct scene_opts o = {.slot_pages = 64, .preset = "2.6.36"};

	EQ(scene(&o, refused), 0);
	o.preset = NULL;
	EQ(scene(&o, no_such_size), 0);
}

/* ---- early splits ---- */

/* All of a GiB that one spte maps: 1 table of 512 of 2M, 512 of 4K. mmu_lock is let go for each
 * stock of tables. */
static int split_gib(struct scene *s, struct task *t)
{
	EQ(slot(s, t, GIB, 3, false), 0);
	EQ(store(s, 5), 0);
	EQ(NOW(s, pages_1g), 1);
	scene_mark(s);
	EQ(slot(s, t, GIB, 3, true), 0);
	EQ(NOW(s, pages_1g), 0);
	EQ(NOW(s, pages_2m), 0);
	EQ(STAT(s, pages_4k), GIB);
	EQ(STAT(s, mmu_cache_miss), 513);
	EQ(EVENT(s, kvm_mmu_split_huge_page), 513 + (513 + STOCK - 1) / STOCK);
	EQ(COUNT(s, split_huge), 513);
	EQ(COUNT(s, split_spte), 513 * 512);
	EQ(COUNT(s, write_protect), GIB);
	EQ(STAT(s, remote_tlb_flush_requests), 1); /* at the end, as ever */
	EQ(kvm_check(s->kvm), 0);
	scene_mark(s);
	EQ(store(s, 6), 0);
	EQ(STAT(s, pf_fast), 1);
	/* Logging off: 4K sptes go, and the 2M table's are none. */
	EQ(slot(s, t, GIB, 3, false), 0);
	EQ(STAT(s, pages_4k), -GIB);
	scene_mark(s);
	EQ(store(s, 7), 0);
	EQ(NOW(s, pages_1g), 1);
	EQ(STAT(s, pf_taken), 1);
	return kvm_check(s->kvm);
}

/* The same without: the first store makes way for one spte of 4K, others do for one each. */
static int split_lazily(struct scene *s, struct task *t)
{
	EQ(slot(s, t, GIB, 3, false), 0);
	EQ(store(s, 5), 0);
	scene_mark(s);
	EQ(slot(s, t, GIB, 3, true), 0);
	EQ(NOW(s, pages_1g), 1);
	EQ(COUNT(s, write_protect), 1);
	EQ(EVENT(s, kvm_mmu_split_huge_page), 0);
	EQ(store(s, 6), 0);
	EQ(NOW(s, pages_1g), 0);
	EQ(STAT(s, pages_4k), 1);
	EQ(STAT(s, pf_fast), 0);
	EQ(store(s, 7), 0);
	EQ(STAT(s, pages_4k), 2);
	return kvm_check(s->kvm);
}

/* The tables of an earlier split are there still, empty, when the page is large again and split
 * once more: what their 2M table leads to is unmapped, so TLBs are flushed before mmu_lock is let
 * go, beside the flush at the end. */
static int split_again(struct scene *s, struct task *t)
{
	EQ(slot(s, t, GIB, 3, false), 0);
	EQ(store(s, 5), 0);
	EQ(slot(s, t, GIB, 3, true), 0);
	EQ(slot(s, t, GIB, 3, false), 0);
	EQ(store(s, 5), 0);
	EQ(NOW(s, pages_1g), 1);
	scene_mark(s);
	EQ(slot(s, t, GIB, 3, true), 0);
	EQ(NOW(s, pages_1g), 0);
	EQ(NOW(s, pages_2m), 0);
	EQ(STAT(s, pages_4k), 0);
	EQ(STAT(s, mmu_cache_miss), 0);
	EQ(COUNT(s, split_huge), 1);
	EQ(COUNT(s, split_spte), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 2);
	EQ(store(s, 5), 0);
	EQ(STAT(s, pf_taken), 1);
	EQ(STAT(s, pf_fast), 0);
	EQ(NOW(s, pages_1g), 0);
	return kvm_check(s->kvm);
}

/* With few shadow pages left some stay large, and the store splits them. */
static int split_budget(struct scene *s, struct task *t)
{
	const uint64_t large = 100, limit = 64, keep = 5;
	uint64_t used, n;

	EQ(slot(s, t, large * MIB2, 2, false), 0);
	for (uint64_t i = 0; i < large; i++)
		EQ(store(s, i * MIB2), 0);
	EQ(NOW(s, pages_2m), large);
	EQ(kvm_set_nr_mmu_pages(t, s->kvm, limit), 0);
	used = kvm_active_shadow_pages(s->kvm);
	n = limit - keep - used;
	scene_mark(s);
	EQ(slot(s, t, large * MIB2, 2, true), 0);
	EQ(kvm_active_shadow_pages(s->kvm), limit - keep);
	EQ(NOW(s, pages_2m), large - n);
	EQ(STAT(s, pages_4k), n * MIB2);
	EQ(STAT(s, mmu_recycled), 0);
	/* one error for each that stays, and two for the stock */
	EQ(EVENT(s, kvm_mmu_split_huge_page), n + (large - n) + (n + STOCK - 1) / STOCK);
	EQ(store(s, (large - 1) * MIB2 + 3), 0);
	EQ(NOW(s, pages_2m), large - n - 1);
	return kvm_check(s->kvm);
}

/* Two of the guest's mappings of one page have one table: the second split finds it. */
static int split_alias(struct scene *s, struct task *t)
{
	const uint64_t pd = 0x12000, alias = 3ull << 30;

	EQ(slot(s, t, 4 * MIB2, 2, false), 0);
	kvm_write_guest_u64(s->kvm, pd + 3 * 0x1000, AT | 0xe7);
	EQ(store(s, 5), 0);
	EQ(scene_write(s, alias + (6 << 12), 4, 1), 0);
	EQ(NOW(s, pages_2m), 2);
	EQ(NOW(s, max_mmu_rmap_size), 1);
	scene_mark(s);
	EQ(slot(s, t, 4 * MIB2, 2, true), 0);
	EQ(NOW(s, pages_2m), 0);
	EQ(STAT(s, pages_4k), MIB2);
	EQ(STAT(s, mmu_cache_miss), 1);
	EQ(EVENT(s, kvm_mmu_get_page), 2);
	EQ(COUNT(s, split_spte), MIB2);
	return kvm_check(s->kvm);
}

/* At CLEAR, of what it names: the word's large page, when first it is named. */
static int split_at_clear(struct scene *s, struct task *t)
{
	static uint64_t bitmap[4 * MIB2 / 64];

	EQ(slot(s, t, 4 * MIB2, 2, false), 0);
	for (uint64_t i = 0; i < 4; i++)
		EQ(store(s, i * MIB2), 0);
	scene_mark(s);
	EQ(slot(s, t, 4 * MIB2, 2, true), 0);
	EQ(NOW(s, pages_2m), 4);
	EQ(kvm_get_dirty_log(t, s->kvm, SLOT, bitmap), 4 * MIB2);
	EQ(kvm_clear_dirty_log(t, s->kvm, SLOT, MIB2 + 64, 64, bitmap), 0);
	EQ(NOW(s, pages_2m), 3);
	EQ(COUNT(s, split_huge), 1);
	EQ(COUNT(s, write_protect), 64);
	EQ(store(s, MIB2 + 3), 0); /* writable still */
	EQ(STAT(s, pf_taken), 0);
	EQ(store(s, MIB2 + 64), 0);
	EQ(STAT(s, pf_fast), 1);
	/* One page alone, the slot's first: an empty range, and the walk looks at its begin. */
	bitmap[0] = 1;
	EQ(kvm_clear_dirty_log(t, s->kvm, SLOT, 0, 64, bitmap), 0);
	EQ(NOW(s, pages_2m), 2);
	return kvm_check(s->kvm);
}

static void early_splits(void)
{
	struct scene_opts o = {.paging = PAGING_TDP,
			       .pte = SCENE_2M,
			       .slot_pages = 64,
			       .preset = "5.18-eager",
			       .check = true};

	EQ(scene(&o, split_gib), 0);
	EQ(scene(&o, split_again), 0);
	EQ(scene(&o, split_budget), 0);
	o.dirty = "manual,initially-all-set=1";
	EQ(scene(&o, split_at_clear), 0);
	o.dirty = NULL;
	o.paging = PAGING_SHADOW;
	EQ(scene(&o, split_alias), 0);
}

static void lazy_splits(void)
{
	struct scene_opts o = {
		.paging = PAGING_TDP, .pte = SCENE_2M, .slot_pages = 64, .check = true};

	EQ(scene(&o, split_lazily), 0);
	o.preset = "5.18-eager";
	o.eager_page_split = EAGER_PAGE_SPLIT_OFF;
	EQ(scene(&o, split_lazily), 0);
}

/* ---- the TLB ---- */

/* One walk for all of 2 MiB, and none of what it found outlives the flush. */
static int cached(struct scene *s, struct task *t)
{
	uint64_t n;

	EQ(slot(s, t, 4 * MIB2, 2, false), 0);
	EQ(store(s, MIB2), 0);
	EQ(store(s, 0), 0);
	scene_mark(s);
	for (uint64_t i = 0; i < MIB2; i++)
		EQ(store(s, i), 0);
	CU_ASSERT_TRUE(COUNT(s, tlb_walk) <= 2); /* the code's, which page 1 displaces */
	EQ(slot(s, t, 4 * MIB2, 2, true), 0);
	scene_mark(s);
	EQ(store(s, 100), 0);
	EQ(STAT(s, pf_taken), 1);
	EQ(store(s, 101), 0);
	EQ(STAT(s, pf_taken), 2);
	EQ(scene_read(s, AT + (102 << 12)), 0); /* what was not stored to is not mapped */
	EQ(STAT(s, pf_taken), 3);
	/* In what is large still, a load. */
	EQ(scene_read(s, AT + (MIB2 << 12)), 0);
	n = STAT(s, pf_taken);
	scene_mark(s);
	for (uint64_t i = 0; i < MIB2; i++)
		EQ(scene_read(s, AT + ((MIB2 + i) << 12)), 0);
	CU_ASSERT_TRUE(COUNT(s, tlb_walk) <= 2); /* the code's, which page 1 displaces */
	EQ(n, 3);
	EQ(STAT(s, pf_taken), 0);
	return kvm_check(s->kvm);
}

static void large_translations(void)
{
	const struct scene_opts o = {.paging = PAGING_TDP,
				     .pte = SCENE_2M,
				     .slot_pages = 64,
				     .personality = "amd",
				     .check = true};

	EQ(scene(&o, cached), 0);
}

/* INVLPG of one page of a large translation takes all that came of it. */
static void invlpg(void)
{
	static struct vcpu_tlb tlb;
	const gva_t gva = 0x40200000;

	tlb_init(&tlb, 4096);
	tlb_fill_huge(&tlb, gva + 0x5000, 0x777 + 5, TLB_READ);
	EQ(tlb_gfn(tlb_lookup_huge(&tlb, gva + 0x1ff000, TLB_READ)), 0x600);
	CU_ASSERT_PTR_NULL(tlb_lookup_huge(&tlb, gva, TLB_WRITE));
	CU_ASSERT_PTR_NULL(tlb_lookup_huge(&tlb, gva + 0x200000, TLB_READ));
	tlb_fill(&tlb, gva + 0x3000, 0x603, TLB_READ);
	tlb_fill(&tlb, gva + 0x200000, 0x900, TLB_READ);
	tlb_flush_gva(&tlb, gva + 0x9123);
	CU_ASSERT_PTR_NULL(tlb_lookup_huge(&tlb, gva, TLB_READ));
	CU_ASSERT_PTR_NULL(tlb_lookup(&tlb, gva + 0x3000, TLB_READ));
	CU_ASSERT_PTR_NOT_NULL(tlb_lookup(&tlb, gva + 0x200000, TLB_READ));
	tlb_fill_huge(&tlb, gva, 0x600, TLB_READ);
	tlb_flush(&tlb);
	CU_ASSERT_PTR_NULL(tlb_lookup_huge(&tlb, gva, TLB_READ));
}

/* ---- the host's side ---- */

/* A fault brings the host's whole page: 512 are cleared, once. */
static int populate(struct scene *s, struct task *t)
{
	const struct kvm_memory_region r = {.slot = SLOT,
					    .base_gfn = AT >> 12,
					    .npages = 2 * MIB2 + 8,
					    .host_level = 2,
					    .flags = KVM_MEM_LOG_DIRTY_PAGES};

	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	scene_mark(s);
	EQ(store(s, 3), 0);
	EQ(COUNT(s, host_fault), 1);
	EQ(COUNT(s, host_clear), 511);
	EQ(store(s, 4), 0);
	EQ(store(s, MIB2 - 1), 0);
	EQ(COUNT(s, host_fault), 1);
	EQ(store(s, 2 * MIB2 + 1), 0); /* of what is left the host has small ones */
	EQ(COUNT(s, host_fault), 2);
	EQ(COUNT(s, host_clear), 511);
	return kvm_check(s->kvm);
}

static void host_pages(void)
{
	const struct scene_opts o = {
		.paging = PAGING_TDP, .pte = SCENE_2M, .slot_pages = 64, .check = true};

	EQ(scene(&o, populate), 0);
}

static CU_TestInfo tests[] = {
	{"mapped_sizes", mapped_sizes},
	{"refusals", refusals},
	{"early_splits", early_splits},
	{"lazy_splits", lazy_splits},
	{"large_translations", large_translations},
	{"invlpg", invlpg},
	{"host_pages", host_pages},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("huge", tests)
