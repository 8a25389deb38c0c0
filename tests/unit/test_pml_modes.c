// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The CPU's dirty log with GET and CLEAR, large mappings and shadow paging; machines that have
 * none. What is expected follows from its description, as in test_pml.c.
 */
#include <string.h>

#include "model/counts.h"
#include "model/mmu/mmu.h"
#include "tests/unit/harness.h"
#include "tests/unit/pml_util.h"

#define EQ    CU_ASSERT_EQUAL
#define PAGES 2048
#define WORDS (PAGES / 64)

static uint64_t bitmap[WORDS];

static bool bit(uint64_t i)
{
	return bitmap[i / 64] >> (i % 64) & 1;
}

static int clear_all(struct scene *s, struct task *t, uint64_t n)
{
	return kvm_clear_dirty_log(t, s->kvm, 1, 0, n, bitmap);
}

static int manual(struct scene *s, struct task *t)
{
	bool all_set = strstr(s->o->dirty, "all-set=1");

	EQ(pml_begin(s, t), 0);
	EQ(COUNT(s, clear_dirty), all_set ? 0 : 64);
	EQ(COUNT(s, write_protect), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), all_set ? 64 : 0);
	pml_mark(s);
	EQ(clear_all(s, t, 64), 0);
	EQ(COUNT(s, clear_dirty), all_set ? 64 : 0);
	for (int round = 0; round < 2; round++) {
		pml_mark(s);
		EQ(pml_stores(s, 20, 30), 0);
		EQ(STAT(s, pf_taken), 0);
		EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 10);
		EQ(COUNT(s, pml_log), 10);
		EQ(pml_stores(s, 20, 30), 0); /* D is still set */
		EQ(COUNT(s, pml_log), 10);
		EQ(clear_all(s, t, 64), 0);
		EQ(COUNT(s, clear_dirty), 10);
		EQ(COUNT(s, write_protect), 0);
	}
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 0);
	return kvm_check(s->kvm);
}

static void get_and_clear(void)
{
	pml_on_both("manual,pml=1", 64, manual);
	pml_on_both("manual,pml=1,initially-all-set=1", 64, manual);
}

/* Large mappings lose W as ever: the first store to one splits it, and is not the log's. Where they
 * are split when logging begins, all that they become is armed by D. */
static int large(struct scene *s, struct task *t)
{
	struct kvm_memory_region r = {.slot = 2,
				      .base_gfn = 0x20000,
				      .npages = PAGES,
				      .host_populated = true,
				      .host_level = PG_LEVEL_2M};
	const uint64_t at = r.base_gfn << 12, n_large = PAGES / 512;
	bool eager = s->kvm->eager_page_split && s->kvm->backend->rcu;

	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	EQ(scene_setup(s), 0);
	for (uint64_t i = 0; i < PAGES; i += 512)
		EQ(scene_write(s, at + (i << 12), 4, 1), 0);
	EQ(kvm_stat(s->kvm, STAT_pages_2m), n_large);
	r.flags = KVM_MEM_LOG_DIRTY_PAGES;
	pml_mark(s);
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	EQ(COUNT(s, write_protect), eager ? 0 : n_large);
	/* the TDP MMU takes D from large mappings, too */
	EQ(COUNT(s, clear_dirty), eager ? PAGES : s->kvm->backend->rcu ? n_large : 0);
	for (int round = 0; round < 3; round++) {
		pml_mark(s);
		EQ(scene_write(s, at + (700ull << 12), 4, 1), 0);
		EQ(STAT(s, pf_taken), !round && !eager);
		EQ(kvm_get_dirty_log(t, s->kvm, 2, bitmap), 1);
		EQ(bit(700), true);
	}
	EQ(kvm_stat(s->kvm, STAT_pages_2m), eager ? 0 : n_large - 1);
	return kvm_check(s->kvm);
}

static void large_mappings(void)
{
	struct scene_opts o = {.paging = PAGING_TDP,
			       .pte = SCENE_FLAT,
			       .slot_pages = 64,
			       .dirty = "pml",
			       .personality = "intel",
			       .check = true};

	EQ(scene(&o, large), 0);
	o.preset = "6.1-tdp";
	EQ(scene(&o, large), 0);
	o.preset = "5.16-tdp";
	EQ(scene(&o, large), 0);
}

/* Shadow paging has no nested tables to log: everything counts as under mask. */
static uint64_t counts[2][N_COUNTS];

static int fallback(struct scene *s, struct task *t)
{
	EQ(pml_begin(s, t), 0);
	for (int round = 0; round < 3; round++) {
		EQ(pml_stores(s, 0, 40), 0);
		EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 40);
	}
	for (uint16_t i = 0; i < N_COUNTS; i++)
		counts[strcmp(s->o->dirty, "mask") != 0][i] = pml_total(s, i);
	EQ(pml_total(s, COUNT_write_protect), 64 + 3 * 40);
	EQ(pml_total(s, COUNT_pml_log), 0);
	return kvm_check(s->kvm);
}

static void shadow_paging_write_protects(void)
{
	struct scene_opts o = {
		.pte = SCENE_FLAT, .slot_pages = 64, .personality = "intel", .check = true};

	o.dirty = "mask";
	EQ(scene(&o, fallback), 0);
	o.dirty = "pml";
	EQ(scene(&o, fallback), 0);
	EQ(memcmp(counts[0], counts[1], sizeof(counts[0])), 0);
}

static void refused(void)
{
	static const struct {
		const char *cpu, *dirty, *why;
	} no[] = {
		{"tcg", "pml", "policy pml: CPU tcg has no page-modification log"},
		{"amd", "manual,pml=1", "policy manual: CPU amd has no page-modification log"},
		{"intel-haswell", "pml", "CPU intel-haswell has no page-modification log"},
		{"intel", "ring,size=512,pml=1", "of 512 entries 576 would be reserved"},
		{"intel-nehalem", "pml", "no page-modification log, nor D in its nested tables"},
	};

	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		struct scene_opts o = {.paging = PAGING_TDP,
				       .pte = SCENE_FLAT,
				       .slot_pages = 64,
				       .dirty = no[i].dirty,
				       .personality = no[i].cpu};

		EQ(scene(&o, fallback), KVMSIM_EUNSUPPORTED);
		CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, no[i].why));
	}
}

static CU_TestInfo tests[] = {
	{"get_and_clear", get_and_clear},
	{"large_mappings", large_mappings},
	{"shadow_paging_write_protects", shadow_paging_write_protects},
	{"refused", refused},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("pml-modes", tests)
