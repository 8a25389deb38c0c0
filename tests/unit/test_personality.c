// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What one CPU does that another does not. Exit reasons and qualifications are those of Intel's SDM
 * (volume 3, appendix C and "Exit Qualification for EPT Violations"): a store to a page that is not
 * mapped is 0x182, one to a page that logging protects 0x1aa, as in traces of real machines.
 */
#include <string.h>

#include "model/guest/personality.h"
#include "model/mmu/mmu.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define EQ CU_ASSERT_EQUAL

static bool is(const struct scene *s, const char *cpu)
{
	return !strcmp(s->o->personality, cpu);
}

static int qualifications(struct scene *s, struct task *t)
{
	uint64_t table = is(s, "intel-nehalem") ? 0x81 : 0x83;

	EQ(vcpu_fetch(s->vcpu[0], SCENE_CODE), VCPU_RESTART);
	EQ(s->last[TRACE_kvm_exit].code, 48);
	EQ(s->last[TRACE_kvm_page_fault].code, table);
	EQ(s->last[TRACE_kvm_page_fault].gfn, SCENE_PML4 >> 12);
	EQ(scene_setup(s), 0);
	EQ(s->last[TRACE_kvm_exit].code, 30); /* OUT */
	EQ(scene_read(s, SCENE_TEST), 0);
	EQ(s->last[TRACE_kvm_page_fault].code, 0x181);
	EQ(scene_write(s, SCENE_TEST + 0x20000, 4, 0), 0);
	EQ(s->last[TRACE_kvm_page_fault].code, 0x182);
	EQ(vcpu_fetch(s->vcpu[0], SCENE_TEST + 0x40000), VCPU_RESTART);
	EQ(s->last[TRACE_kvm_page_fault].code, 0x184);
	EQ(scene_log(s, t, true), 0);
	EQ(scene_write(s, SCENE_TEST + 0x20000, 4, 0), 0);
	EQ(s->last[TRACE_kvm_page_fault].code, 0x1aa);
	EQ(vcpu_hlt(s->vcpu[0]), VCPU_USERSPACE);
	EQ(s->last[TRACE_kvm_exit].code, 12);
	return kvm_check(s->kvm);
}

static void ept_violations(void)
{
	static const char *const cpus[] = {"intel", "intel-haswell", "intel-nehalem"};
	struct scene_opts o = {
		.paging = PAGING_TDP, .pte = SCENE_4K, .slot_pages = 512, .check = true};

	for (int i = 0; i < 3; i++) {
		o.personality = cpus[i];
		o.preset = NULL;
		EQ(scene(&o, qualifications), 0);
		o.preset = "6.1-tdp";
		EQ(scene(&o, qualifications), 0);
	}
}

/* Under shadow paging every exit of the guest's own has a reason of its own. */
static int shadow_exits(struct scene *s, struct task *t)
{
	(void)t;
	EQ(vcpu_fetch(s->vcpu[0], SCENE_CODE), VCPU_RESTART);
	EQ(s->last[TRACE_kvm_exit].code, 0);
	EQ(s->last[TRACE_kvm_page_fault].code, PFERR_FETCH);
	EQ(scene_setup(s), 0);
	EQ(vcpu_invlpg(s->vcpu[0], SCENE_TEST), 0);
	EQ(s->last[TRACE_kvm_exit].code, 14);
	EQ(vcpu_mov_cr3(s->vcpu[0], SCENE_PML4), 0);
	EQ(s->last[TRACE_kvm_exit].code, 28);
	return kvm_check(s->kvm);
}

static void exits_under_shadow_paging(void)
{
	struct scene_opts o = {
		.pte = SCENE_4K, .slot_pages = 64, .check = true, .personality = "intel"};

	EQ(scene(&o, shadow_exits), 0);
}

/* The emulator is for stores to page tables and for devices where the exit says all of INVLPG, MOV
 * to CR3 and HLT; whether it has to fetch the instruction is another matter. */
static int emulated(struct scene *s, struct task *t)
{
	bool tcg = is(s, "tcg"), bytes = is(s, "amd");
	uint64_t walks;

	(void)t;
	EQ(scene_setup(s), 0);
	EQ(vcpu_invlpg(s->vcpu[0], SCENE_TEST), 0);
	EQ(vcpu_mov_cr3(s->vcpu[0], SCENE_PML4), 0);
	EQ(vcpu_hlt(s->vcpu[0]), VCPU_USERSPACE);
	EQ(kvm_stat(s->kvm, STAT_insn_emulation), tcg ? 3 : 0);
	walks = s->events[TRACE_kvm_mmu_pagetable_walk];
	EQ(scene_write(s, 0x12000 + 8 * 300, 8, 0), 0); /* a table of level 2 that is shadowed */
	EQ(kvm_stat(s->kvm, STAT_insn_emulation), tcg ? 4 : 1);
	/* of the fault (twice: it maps the table itself first), of the fetch, of the store */
	EQ(s->events[TRACE_kvm_mmu_pagetable_walk] - walks, bytes ? 2 : 3);
	return kvm_check(s->kvm);
}

static void what_is_emulated(void)
{
	static const char *const cpus[] = {"tcg", "amd", "intel"};
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 64, .check = true};

	for (int i = 0; i < 3; i++) {
		o.personality = cpus[i];
		EQ(scene(&o, emulated), 0);
	}
}

/* Without A and D in nested tables what is prefetched grants nothing until it is used: then the
 * first fault of each page is answered without mmu_lock. With them there is no such fault. */
static int prefetched(struct scene *s, struct task *t)
{
	bool nehalem = is(s, "intel-nehalem");
	uint64_t taken, fast, held;

	(void)t;
	EQ(scene_setup(s), 0);
	EQ(scene_read(s, SCENE_TEST + 0x8000), 0); /* maps pages 8 to 15 */
	taken = kvm_stat(s->kvm, STAT_pf_taken);
	fast = kvm_stat(s->kvm, STAT_pf_fast);
	held = kvm_mmu_lock_stats(s->kvm).acquired;
	for (uint64_t i = 9; i < 16; i++)
		EQ(i % 2 ? scene_read(s, SCENE_TEST + (i << 12))
			 : scene_write(s, SCENE_TEST + (i << 12), 4, 1),
		   0);
	EQ(kvm_stat(s->kvm, STAT_pf_taken) - taken, nehalem ? 7 : 0);
	EQ(kvm_stat(s->kvm, STAT_pf_fast) - fast, nehalem ? 7 : 0);
	EQ(kvm_mmu_lock_stats(s->kvm).acquired, held);
	for (uint64_t i = 8; i < 16; i++)
		EQ(scene_write(s, SCENE_TEST + (i << 12), 4, 1), 0);
	/* what a read has got back is not W: the four odd pages */
	EQ(kvm_stat(s->kvm, STAT_pf_taken) - taken, nehalem ? 11 : 0);
	return kvm_check(s->kvm);
}

static void access_tracking(void)
{
	struct scene_opts o = {.paging = PAGING_TDP,
			       .pte = SCENE_FLAT,
			       .slot_pages = 512,
			       .check = true,
			       .personality = "intel-nehalem"};

	EQ(scene(&o, prefetched), 0);
	o.personality = "intel-haswell";
	EQ(scene(&o, prefetched), 0);
}

static CU_TestInfo tests[] = {
	{"ept_violations", ept_violations},
	{"exits_under_shadow_paging", exits_under_shadow_paging},
	{"what_is_emulated", what_is_emulated},
	{"access_tracking", access_tracking},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("personality", tests)
