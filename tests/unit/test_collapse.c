// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What goes and what stays where sptes are changed: when logging ends, when a pass names pages of
 * what is mapped in large, when a table was made for nothing. Numbers follow from the tables'
 * shape.
 */
#include "model/counts.h"
#include "model/mmu/mmu.h"
#include "model/policy/preset.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define EQ   CU_ASSERT_EQUAL
#define SLOT 2
#define AT   0x40000000ull /* 1 GiB */
#define GFN  (AT >> 12)
#define MIB2 512ull /* pages */

static uint64_t base[N_COUNTS], base_changes;

static uint64_t total(const struct scene *s, uint16_t count)
{
	return ledger_sum_count(sim_ledger(s->sim), LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, count)
		.n;
}

static void mark(const struct scene *s)
{
	for (uint16_t i = 0; i < N_COUNTS; i++)
		base[i] = total(s, i);
	base_changes = s->events[TRACE_kvm_tdp_mmu_spte_changed];
}

#define COUNT(s, n) (total(s, COUNT_##n) - base[COUNT_##n])
#define CHANGES(s)  ((s)->events[TRACE_kvm_tdp_mmu_spte_changed] - base_changes)
#define STAT(s, n)  kvm_stat((s)->kvm, STAT_##n)

static struct kvm_memory_region region;

static int slot(struct scene *s, struct task *t, uint64_t base_gfn, uint64_t npages, bool log)
{
	region = (struct kvm_memory_region){.slot = SLOT,
					    .flags = log ? KVM_MEM_LOG_DIRTY_PAGES : 0,
					    .base_gfn = base_gfn,
					    .npages = npages,
					    .host_populated = true,
					    .host_level = PG_LEVEL_2M};
	return kvm_set_user_memory_region(t, s->kvm, &region);
}

static int store(struct scene *s, uint64_t page)
{
	return scene_write(s, AT + (page << 12), 4, 1);
}

static struct kvm_memory_slot *the_slot(const struct scene *s)
{
	return id_to_memslot(s->kvm, SLOT);
}

/* ---- when logging ends ---- */

/* Large sptes of a slot that begins within 1 GiB stay: there is no larger page for them, and their
 * table's begin, before the slot, is none of its pages. One rmap for each page of 4K and of 2M is
 * looked at, none of 1G. */
static int begins_within(struct scene *s, struct task *t)
{
	uint64_t flushes;

	EQ(slot(s, t, GFN + MIB2, 4 * MIB2, false), 0);
	for (uint64_t i = 1; i <= 4; i++)
		EQ(store(s, i * MIB2), 0);
	EQ(STAT(s, pages_2m), 4);
	EQ(slot(s, t, GFN + MIB2, 4 * MIB2, true), 0);
	mark(s);
	flushes = STAT(s, remote_tlb_flush_requests);
	EQ(slot(s, t, GFN + MIB2, 4 * MIB2, false), 0);
	EQ(STAT(s, pages_2m), 4);
	EQ(STAT(s, remote_tlb_flush_requests), flushes);
	EQ(CHANGES(s), 0);
	EQ(COUNT(s, slot_rmap_head), s->kvm->preset->tdp_mmu ? 0 : 4 * MIB2 + 4);
	EQ(COUNT(s, zap_spte), 0);
	return kvm_check(s->kvm);
}

/* Each entry that leads to a table is one question to the host: of 1 GiB and of 2 MiB; there is no
 * page as large as an entry of the root's. */
static int questions(struct scene *s, struct task *t)
{
	struct kvm_memory_region low = {
		.flags = KVM_MEM_LOG_DIRTY_PAGES, .npages = 512, .host_populated = true};

	EQ(scene_setup(s), 0);
	EQ(kvm_set_user_memory_region(t, s->kvm, &low), 0);
	mark(s);
	low.flags = 0;
	EQ(kvm_set_user_memory_region(t, s->kvm, &low), 0);
	EQ(COUNT(s, host_level), 2);
	EQ(CHANGES(s), 0);
	return kvm_check(s->kvm);
}

static void what_stays(void)
{
	static const char *const presets[] = {"6.1-shadow", "6.1-tdp", "6.13-tdp", "5.18-tdp"};
	struct scene_opts o = {
		.paging = PAGING_TDP, .pte = SCENE_FLAT, .slot_pages = 64, .check = true};

	o.eager_page_split = EAGER_PAGE_SPLIT_OFF;
	for (size_t i = 0; i < sizeof(presets) / sizeof(*presets); i++) {
		o.preset = presets[i];
		EQ(scene(&o, begins_within), 0);
	}
	o.preset = "6.1-tdp";
	EQ(scene(&o, questions), 0);
}

/* A guest that maps the large page of the host by 4K PTEs: its shadow pages hold no larger ones
 * than it asks for. */
static int small_in_guest(struct scene *s, struct task *t)
{
	const uint64_t pd = 0x13000, pt = 0x30000;
	uint64_t mapped;

	for (uint64_t i = 0; i < 512; i++)
		kvm_write_guest_u64(s->kvm, pt + i * 8, (AT + (i << 12)) | 0x67);
	kvm_write_guest_u64(s->kvm, pd, pt | 0x27);
	EQ(slot(s, t, GFN, MIB2, true), 0);
	EQ(store(s, 5), 0);
	mapped = STAT(s, pages_4k);
	EQ(slot(s, t, GFN, MIB2, false), 0);
	EQ(STAT(s, pages_4k), mapped);
	EQ(STAT(s, pages_2m), 0);
	return kvm_check(s->kvm);
}

/* One frame that two tables map, one of them without W: both sptes go. */
static int two_sptes(struct scene *s, struct task *t)
{
	const uint64_t pd = 0x12000, alias = 3ull << 30;
	const struct kvm_memory_slot *of;

	EQ(slot(s, t, GFN, MIB2, true), 0);
	of = the_slot(s);
	kvm_write_guest_u64(s->kvm, pd + 3 * 0x1000, AT | 0xe5); /* P US A D PS */
	EQ(store(s, 5), 0);
	EQ(scene_read(s, alias + (5 << 12)), 0);
	EQ(of->rmap[0][5].val & 1, 1); /* a chain */
	EQ(slot(s, t, GFN, MIB2, false), 0);
	EQ(of->rmap[0][5].val, 0);
	return kvm_check(s->kvm);
}

static void shadow_pages(void)
{
	const struct scene_opts o = {.pte = SCENE_2M, .slot_pages = 64, .check = true};

	EQ(scene(&o, small_in_guest), 0);
	EQ(scene(&o, two_sptes), 0);
}

/* ---- by mask and by page ---- */

/* A pass by mask is about 4K sptes: a large one is others' business, though its first page is in
 * the mask. What has lost W already is looked at, not changed. */
static int masked(struct scene *s, struct task *t)
{
	const struct mmu_backend *b = s->kvm->backend;

	EQ(slot(s, t, GFN, 2 * MIB2, false), 0);
	EQ(store(s, 5), 0);
	EQ(slot(s, t, GFN, 2 * MIB2, true), 0);
	EQ(store(s, MIB2 + 7), 0); /* 4K */
	EQ(mmu_lock(t, s->kvm, "test"), 0);
	mark(s);
	b->clear_dirty_masked(t, s->kvm, the_slot(s), GFN, 1);
	EQ(CHANGES(s), 0);
	EQ(COUNT(s, tdp_dirty), 0);
	b->write_protect_masked(t, s->kvm, the_slot(s), GFN + MIB2, 1 << 7 | 1 << 9);
	EQ(COUNT(s, tdp_dirty), 1);
	EQ(COUNT(s, write_protect), 1);
	EQ(CHANGES(s), 1);
	b->write_protect_masked(t, s->kvm, the_slot(s), GFN + MIB2, 1 << 7);
	EQ(COUNT(s, tdp_dirty), 2);
	EQ(COUNT(s, write_protect), 1);
	EQ(CHANGES(s), 1);
	kvm_flush_remote_tlbs(t, s->kvm);
	mmu_unlock(t, s->kvm);
	return kvm_check(s->kvm);
}

/* A large one loses W, and the right to have it back, once. */
static int huge_once(struct scene *s, struct task *t)
{
	const struct mmu_backend *b = s->kvm->backend;

	EQ(slot(s, t, GFN, MIB2, false), 0);
	EQ(store(s, 5), 0);
	EQ(mmu_lock(t, s->kvm, "test"), 0);
	mark(s);
	EQ(b->write_protect_huge(t, s->kvm, the_slot(s), GFN + 5), true);
	EQ(b->write_protect_huge(t, s->kvm, the_slot(s), GFN + 6), false);
	EQ(COUNT(s, write_protect), 1);
	kvm_flush_remote_tlbs(t, s->kvm);
	mmu_unlock(t, s->kvm);
	return kvm_check(s->kvm);
}

/* A frame is unmapped in roots that are to go, too: vCPUs may walk them still. */
static int in_invalid_roots(struct scene *s, struct task *t)
{
	const struct mmu_backend *b = s->kvm->backend;

	EQ(slot(s, t, GFN, MIB2, false), 0);
	EQ(store(s, 5), 0);
	EQ(mmu_lock(t, s->kvm, "test"), 0);
	b->invalidate_roots(t, s->kvm);
	EQ(b->zap_gfn(t, s->kvm, the_slot(s), GFN + 5), true);
	EQ(b->zap_gfn(t, s->kvm, the_slot(s), GFN + 5), false);
	EQ(STAT(s, pages_2m), 0);
	mmu_unlock(t, s->kvm);
	return 0;
}

static void passes(void)
{
	const struct scene_opts o = {.paging = PAGING_TDP,
				     .pte = SCENE_FLAT,
				     .slot_pages = 64,
				     .preset = "6.1-tdp",
				     .eager_page_split = EAGER_PAGE_SPLIT_OFF,
				     .check = true};

	EQ(scene(&o, masked), 0);
	EQ(scene(&o, huge_once), 0);
	EQ(scene(&o, in_invalid_roots), 0);
}

/* ---- a table for nothing ---- */

static bool switching;

/* Unmaps the large page while its table is made, mmu_lock let go. */
static int unmaps(struct task *t, void *arg)
{
	struct scene *s = arg;
	uint64_t made;
	int r = sync(t);

	made = total(s, COUNT_get_page);
	while (!r && switching && total(s, COUNT_get_page) == made) {
		charge(t, COUNT_insn, 1);
		r = sync(t);
	}
	r = r ? r : mmu_lock(t, s->kvm, "test");
	if (r)
		return r;
	EQ(s->kvm->backend->zap_gfn(t, s->kvm, the_slot(s), GFN), true);
	kvm_flush_remote_tlbs(t, s->kvm);
	mmu_unlock(t, s->kvm);
	return 0;
}

/* The table is used for nothing, and to be had again. */
static int for_nothing(struct scene *s, struct task *t)
{
	struct task_opts o = {.name = "unmaps", .fn = unmaps, .arg = s};
	struct task *task;
	uint64_t tables;

	EQ(slot(s, t, GFN, MIB2, false), 0);
	EQ(store(s, 5), 0);
	EQ(sync(t), 0);
	o.start = task_now(t);
	EQ(task_create(s->sim, &o, &task), 0);
	CU_ASSERT_PTR_NULL(s->kvm->free_pages);
	tables = kvm_active_shadow_pages(s->kvm);
	mark(s);
	switching = true;
	EQ(slot(s, t, GFN, MIB2, true), 0);
	switching = false;
	EQ(COUNT(s, get_page), 1);
	EQ(s->events[TRACE_kvm_mmu_split_huge_page], 0);
	EQ(kvm_active_shadow_pages(s->kvm), tables);
	CU_ASSERT_PTR_NOT_NULL(s->kvm->free_pages);
	return kvm_check(s->kvm);
}

static void unused_tables(void)
{
	const struct scene_opts o = {.paging = PAGING_TDP,
				     .pte = SCENE_FLAT,
				     .slot_pages = 64,
				     .preset = "6.13-tdp",
				     .check = true};

	EQ(scene(&o, for_nothing), 0);
}

static CU_TestInfo tests[] = {
	{"what_stays", what_stays}, {"shadow_pages", shadow_pages},
	{"passes", passes},	    {"unused_tables", unused_tables},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("collapse", tests)
