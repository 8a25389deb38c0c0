// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/mmu/memslot.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

/* What is done ahead of its use, and by the batch: the pages and objects that a vCPU has at hand
 * for its faults, and the host's list of active pages. The kernel's sizes are 40 objects, filled up
 * below 5 pages and headers and 14 descriptors, and 15 pages of a batch; how far a phase gets
 * through them, the reference's costs show. */
#define EQ    CU_ASSERT_EQUAL
#define CHUNK (2ull << 20)

/* ---- stocks ---- */

static int fill_tables(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	EQ(scene_count(s, COUNT_stock_page), 40);
	EQ(scene_count(s, COUNT_stock_object), 80); /* headers, and descriptors */
	EQ(scene_count(s, COUNT_sp_alloc), 4);
	/* One table each: the 36th leaves 4 pages, one too few. */
	scene_mark(s);
	for (uint64_t i = 0; i < 32; i++)
		EQ(scene_read(s, SCENE_TEST + i * CHUNK), 0);
	EQ(scene_count(s, COUNT_sp_alloc), 32);
	EQ(scene_count(s, COUNT_stock_page), 0);
	EQ(scene_read(s, SCENE_TEST + 32 * CHUNK), 0);
	EQ(scene_count(s, COUNT_stock_page), 36);
	EQ(scene_count(s, COUNT_stock_object), 36); /* no reverse map needs a descriptor */
	return 0;
}

static void stocks_are_filled_when_low(void)
{
	struct scene_opts o = {
		.paging = PAGING_TDP, .pte = SCENE_2M, .slot_pages = 40 * 512, .check = true};

	EQ(scene(&o, fill_tables), 0);
	o.preset = "6.1-tdp";
	EQ(scene(&o, fill_tables), 0);
}

static int shadow_setup(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	/* and 40 pages for what the tables of guest tables translate */
	EQ(scene_count(s, COUNT_stock_page), 80);
	EQ(scene_count(s, COUNT_stock_object), 80);
	return 0;
}

static void guest_tables_take_two_pages(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 512};

	EQ(scene(&o, shadow_setup), 0);
}

/* ---- prefetch ---- */

static int one_group(struct scene *s, struct task *t)
{
	bool guest = s->o->pte == SCENE_4K;

	(void)t;
	EQ(scene_setup(s), 0);
	scene_mark(s);
	EQ(scene_read(s, SCENE_TEST), 0);
	EQ(scene_count(s, COUNT_prefetch_spte), 7);
	EQ(scene_count(s, COUNT_prefetch_pfn), 7);
	/* One walk for the run beside it; along a guest's table one for each entry, whose page
	 * counts as used like the one that faulted. */
	EQ(scene_count(s, COUNT_prefetch_gup), guest ? 7 : 1);
	EQ(scene_count(s, COUNT_host_activate), guest ? 8 : 1);
	return 0;
}

static void prefetches_walk_the_host(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 512, .check = true};

	EQ(scene(&o, one_group), 0);
	o.pte = SCENE_2M;
	EQ(scene(&o, one_group), 0);
}

/* ---- active pages ---- */

static int activate(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	/* Code, lists and three of the guest's tables, each by its own fault. */
	EQ(scene_count(s, COUNT_host_activate), 20);
	EQ(scene_count(s, COUNT_host_move), 15);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 9), 0);
	EQ(scene_count(s, COUNT_host_activate), 9);
	EQ(scene_count(s, COUNT_host_move), 0);
	EQ(scene_loop(s, true, 9, 10), 0);
	EQ(scene_count(s, COUNT_host_move), 15);
	EQ(scene_loop(s, true, 0, 10), 0);
	EQ(scene_count(s, COUNT_host_activate), 10); /* once */
	EQ(scene_loop(s, true, 10, 14), 0);
	/* What waits is moved before pages are given back; a new one is active from the start. */
	EQ(host_madvise_dontneed(t, s->kvm, 1, 0, 2), 0);
	EQ(scene_count(s, COUNT_host_move), 19);
	EQ(scene_count(s, COUNT_host_unmap), 2);
	EQ(scene_count(s, COUNT_host_page), 0);
	EQ(scene_loop(s, true, 0, 2), 0);
	EQ(scene_count(s, COUNT_host_activate), 14);
	EQ(scene_count(s, COUNT_host_slow_gup), 2);
	EQ(scene_count(s, COUNT_host_fault), 2);
	EQ(scene_count(s, COUNT_host_page), 2);
	return 0;
}

static void used_pages_become_active(void)
{
	struct scene_opts o = {.paging = PAGING_TDP,
			       .preset = "6.1-tdp",
			       .pte = SCENE_2M,
			       .slot_pages = 64,
			       .host_anonymous = true,
			       .check = true};

	EQ(scene(&o, activate), 0);
}

static int large_page(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 512), 0);
	/* As a whole, and at once, with the five that waited. */
	EQ(scene_count(s, COUNT_host_activate), 1);
	EQ(scene_count(s, COUNT_host_move), 6);
	return 0;
}

static void a_large_page_does_not_wait(void)
{
	struct scene_opts o = {.paging = PAGING_TDP,
			       .preset = "6.1-tdp",
			       .pte = SCENE_2M,
			       .slot_pages = 512,
			       .host_anonymous = true,
			       .host_level = 2};

	EQ(scene(&o, large_page), 0);
}

static CU_TestInfo tests[] = {
	{"stocks_are_filled_when_low", stocks_are_filled_when_low},
	{"guest_tables_take_two_pages", guest_tables_take_two_pages},
	{"prefetches_walk_the_host", prefetches_walk_the_host},
	{"used_pages_become_active", used_pages_become_active},
	{"a_large_page_does_not_wait", a_large_page_does_not_wait},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("stock", tests)
