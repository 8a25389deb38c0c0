// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/counts.h"
#include "model/guest/personality.h"
#include "model/policy/policy.h"
#include "model/policy/preset.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define EQ CU_ASSERT_EQUAL

static char message[256];

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	strncpy(message, msg, sizeof(message) - 1);
}
static const struct kvmsim_errsink errors = {keep, NULL};

static int parse(const char *text, struct policy_params *params)
{
	const struct policy_desc *d = NULL;

	message[0] = 0;
	return policy_parse(FAMILY_DIRTY, text, &errors, &d, params);
}

static void parameters(void)
{
	struct policy_params p;

	EQ(parse("mask", &p), 0);
	EQ(parse("hybrid", &p), 0);
	EQ(p.value[0], 100);
	EQ(parse("hybrid,threshold=3", &p), 0);
	EQ(p.value[0], 3);
	EQ(parse("hybrid,threshold=3,threshold=4", &p), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "threshold is given twice"));
	EQ(parse("hybrid,threshold=1000000", &p), 0);
	EQ(parse("hybrid,threshold=1000001", &p), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "from 0 to 1000000"));
	EQ(parse("hybrid,threshold=", &p), KVMSIM_EPARSE);
	EQ(parse("hybrid,threshold", &p), KVMSIM_EPARSE);
	EQ(parse("hybrid,threshold=-1", &p), KVMSIM_EPARSE);
	EQ(parse("hybrid,threshold=0x10", &p), KVMSIM_EPARSE);
	EQ(parse("hybrid,threshold=18446744073709551616", &p), KVMSIM_EPARSE);
	EQ(parse("hybrid,thresh=3", &p), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "no parameter \"thresh\""));
	EQ(parse("hybrid,", &p), KVMSIM_EPARSE);
	EQ(parse("mask,chunk=64", &p), KVMSIM_EPARSE);
	EQ(parse("lossy,every=0", &p), KVMSIM_EPARSE);
	EQ(parse("manual,chunk=128,initially-all-set=1", &p), 0);
	EQ(p.value[0], 1);
	EQ(p.value[1], 128);
	EQ(parse("manual,chunk=100", &p), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "a multiple of 64"));
	EQ(parse("manual,chunk=0", &p), KVMSIM_EPARSE);
	EQ(parse("manual,initially-all-set=2", &p), KVMSIM_EPARSE);
	EQ(parse("ring,size=256,reaper=0", &p), 0);
	EQ(p.value[0], 256);
	EQ(p.value[1], 0);
	EQ(parse("ring,size=65536", &p), 0);
	EQ(parse("ring,size=128", &p), KVMSIM_EPARSE); /* does not fill a page */
	EQ(parse("ring,size=131072", &p), KVMSIM_EPARSE);
	EQ(parse("ring,size=1000", &p), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "a power of two"));
	EQ(parse("mas", &p), KVMSIM_ENOENT);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(message, "walk, rmap-slot, mask, hybrid, manual, pml, ring, lossy"));
	EQ(parse("", &p), KVMSIM_ENOENT);
	EQ(parse("none", &p), KVMSIM_ENOENT); /* of another family */
}

static void table(void)
{
	unsigned broken = 0, oracle = 0;

	for (size_t i = 0; i < policy_count(); i++) {
		const struct policy_desc *d = policy_at(i);

		CU_ASSERT_PTR_NOT_NULL_FATAL(d);
		CU_ASSERT_PTR_NOT_NULL(d->summary);
		broken += d->broken;
		oracle += policy_proof(d, "6.1-shadow", "tcg")->on[MMU_SHADOW_LONG64] ==
			  EVIDENCE_ORACLE;
		for (size_t j = 0; j < i; j++)
			CU_ASSERT(policy_at(j)->family != d->family ||
				  strcmp(policy_at(j)->name, d->name));
	}
	CU_ASSERT_PTR_NULL(policy_at(policy_count()));
	EQ(broken, 3); /* lossy, stale, busted */
	/* mask, rmap-slot, walk: modes 0, 1 and 2 of the patched kernel; manual; ring; with the
	 * module parameter mmio_caching, and without; the patched mmio_generation=0 and
	 * mmio_vcpu_cache=0 */
	EQ(oracle, 9);
	CU_ASSERT_STRING_EQUAL(mmu_kind_name(MMU_TDP_RMAP), "npt1-tdp0");
	CU_ASSERT_STRING_EQUAL(mmu_kind_name(MMU_TDP), "npt1-tdp1");
	CU_ASSERT_PTR_NOT_NULL(spte_policy_find("none", 4));
	CU_ASSERT_STRING_EQUAL(preset_find(NULL)->name, "6.1-shadow");
	CU_ASSERT_PTR_NULL(preset_find("2.6"));
}

static enum policy_evidence evidence(const char *dirty, const char *preset, const char *cpu,
				     enum mmu_kind mmu)
{
	return policy_proof(&dirty_policy_find(dirty, strlen(dirty))->desc, preset, cpu)->on[mmu];
}

/* What is known is of the kernel, the CPU and the MMU that it was seen on, and of no other. */
static void proofs(void)
{
	const struct policy_proof *walk;

	for (int k = 0; k < N_MMU_KINDS; k++) {
		EQ(evidence("mask", "6.1-shadow", "tcg", (enum mmu_kind)k),
		   k == MMU_TDP ? EVIDENCE_NONE : EVIDENCE_ORACLE);
		EQ(evidence("mask", "6.1-tdp", "tcg", (enum mmu_kind)k),
		   k == MMU_TDP ? EVIDENCE_ORACLE : EVIDENCE_NONE);
		EQ(evidence("manual", "6.1-shadow", "tcg", (enum mmu_kind)k),
		   k == MMU_TDP ? EVIDENCE_NONE : EVIDENCE_ORACLE);
		EQ(evidence("mask", "6.12-shadow", "tcg", (enum mmu_kind)k),
		   k == MMU_TDP ? EVIDENCE_NONE : EVIDENCE_ORACLE);
		/* case C_cap3, of which there are rows of npt1-tdp0 */
		EQ(evidence("manual", "6.12-shadow", "tcg", (enum mmu_kind)k),
		   k == MMU_TDP_RMAP ? EVIDENCE_ORACLE : EVIDENCE_NONE);
		EQ(evidence("ring", "6.12-tdp", "tcg", (enum mmu_kind)k), EVIDENCE_NONE);
		EQ(evidence("mask", "6.1-shadow", "amd", (enum mmu_kind)k), EVIDENCE_NONE);
		EQ(evidence("walk", "2.6.36", "tcg", (enum mmu_kind)k), EVIDENCE_NONE);
		EQ(evidence("hybrid", "6.1-shadow", "tcg", (enum mmu_kind)k), EVIDENCE_NONE);
		EQ(evidence("rmap-slot", "2.6.36", "tcg", (enum mmu_kind)k), EVIDENCE_NONE);
	}
	EQ(evidence("mask", "2.6.36", "tcg", MMU_SHADOW_LONG64), EVIDENCE_PUBLISHED);
	EQ(evidence("mask", "2.6.36", "tcg", MMU_SHADOW_FLAT32), EVIDENCE_NONE);
	EQ(evidence("mask", "2.6.36", "amd", MMU_SHADOW_LONG64), EVIDENCE_NONE);
	EQ(evidence("walk", "6.1-tdp", "tcg", MMU_TDP), EVIDENCE_REFUSED);
	CU_ASSERT_STRING_EQUAL(policy_evidence_name(EVIDENCE_REFUSED), "refused");
	walk = policy_proof(&dirty_policy_find("walk", 4)->desc, "2.6.36", "tcg");
	CU_ASSERT_STRING_EQUAL(walk->why, "its rows identify the number of shadow pages");
	CU_ASSERT_STRING_EQUAL(policy_evidence_name(EVIDENCE_PUBLISHED), "published");

	/* Of kernels and CPUs that there are, each once. */
	for (size_t i = 0; i < policy_count(); i++) {
		const struct policy_desc *d = policy_at(i);

		for (const struct policy_proof *p = d->proofs; p && p->preset; p++) {
			CU_ASSERT_PTR_NOT_NULL(preset_find(p->preset));
			CU_ASSERT_PTR_NOT_NULL(personality_find(p->cpu));
			CU_ASSERT_PTR_EQUAL(policy_proof(d, p->preset, p->cpu), p);
		}
	}
}

/* ---- what each does in a harvest ---- */

static uint64_t base[N_COUNTS];

static uint64_t total(const struct scene *s, uint16_t count)
{
	return ledger_sum_count(sim_ledger(s->sim), LEDGER_ALL_TASKS, ACT_get_dirty_log, count).n;
}

#define COUNT(s, n) (total(s, COUNT_##n) - base[COUNT_##n])

static void mark(const struct scene *s)
{
	for (uint16_t i = 0; i < N_COUNTS; i++)
		base[i] = total(s, i);
}

/* Ten pages of one word and one of another are dirty, in a slot of 1024 that is mapped. */
static int harvest(struct scene *s, struct task *t)
{
	uint64_t bitmap[16];

	EQ(scene_setup(s), 0);
	EQ(scene_loop(s, true, 0, 1024), 0);
	EQ(scene_log(s, t, true), 0);
	EQ(scene_loop(s, true, 64, 74), 0);
	EQ(scene_loop(s, true, 1000, 1001), 0);
	mark(s);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 11);
	EQ(bitmap[1], 0x3ff);
	EQ(bitmap[15], 1ull << 40);
	return 0;
}

static int mask_harvest(struct scene *s, struct task *t)
{
	EQ(harvest(s, t), 0);
	EQ(COUNT(s, bitmap_word), 16);
	EQ(COUNT(s, bitmap_copy), 16);
	EQ(COUNT(s, dirty_word), 2);
	EQ(COUNT(s, rearm_word), 2);
	EQ(COUNT(s, dirty_page), 11);
	EQ(COUNT(s, rmap_head), 11);
	EQ(COUNT(s, rmap_spte), 11);
	EQ(COUNT(s, write_protect), 11);
	EQ(COUNT(s, slot_rmap_head), 0);
	EQ(COUNT(s, walk_sp), 0);
	return kvm_check(s->kvm);
}

static int rmap_slot_harvest(struct scene *s, struct task *t)
{
	EQ(harvest(s, t), 0);
	EQ(COUNT(s, slot_rmap_head), 1024 + 2 + 1); /* 4K, 2M and 1G rmaps */
	EQ(COUNT(s, rmap_spte), 1024);
	EQ(COUNT(s, write_protect), 11);
	EQ(COUNT(s, dirty_page), 0);
	return kvm_check(s->kvm);
}

/* Shadow pages: root, level 3, level 2, one table for low memory, two for the slot; 5 more of the
 * background. Writable are 24 sptes of low memory and 11 of the slot. */
static int walk_harvest(struct scene *s, struct task *t)
{
	EQ(harvest(s, t), 0);
	EQ(kvm_active_shadow_pages(s->kvm), 6 + 5);
	EQ(COUNT(s, walk_sp), 6 + 5);
	EQ(COUNT(s, walk_spte), (3 + 5) * 512);
	EQ(COUNT(s, walk_gfn) + COUNT(s, walk_gfn_direct), 24 + 11);
	EQ(COUNT(s, walk_gfn_direct), s->o->pte == SCENE_2M ? 35 : 0);
	EQ(COUNT(s, write_protect), 11);
	EQ(COUNT(s, rmap_spte), 0);
	return kvm_check(s->kvm);
}

/* An old kernel tests only pages that map the slot, and asks no further. */
static int old_walk_harvest(struct scene *s, struct task *t)
{
	EQ(harvest(s, t), 0);
	EQ(COUNT(s, walk_sp), 6 + 5);
	EQ(COUNT(s, walk_spte), (2 + 5) * 512);
	EQ(COUNT(s, walk_gfn), 0);
	EQ(COUNT(s, write_protect), 11);
	EQ(COUNT(s, bitmap_word), 2); /* up to the first that is not zero */
	EQ(COUNT(s, memslot_update), 1);
	EQ(s->events[TRACE_fast_page_fault], 0);
	return kvm_check(s->kvm);
}

static int hybrid_by_rmap(struct scene *s, struct task *t)
{
	EQ(harvest(s, t), 0); /* 11 dirty, 12 shadow pages */
	EQ(kvm_active_shadow_pages(s->kvm), 12);
	EQ(COUNT(s, rmap_head), 11);
	EQ(COUNT(s, lock), 1 + 11); /* slots_lock, and mmu_lock page by page */
	EQ(COUNT(s, walk_sp), 0);
	return kvm_check(s->kvm);
}

static int hybrid_by_walk(struct scene *s, struct task *t)
{
	EQ(harvest(s, t), 0); /* 11 dirty, 11 shadow pages */
	EQ(COUNT(s, rmap_head), 0);
	EQ(COUNT(s, walk_sp), 11);
	return kvm_check(s->kvm);
}

static void harvests(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 1024, .dirty = "mask", .check = true};

	EQ(scene(&o, mask_harvest), 0);
	o.dirty = "rmap-slot";
	EQ(scene(&o, rmap_slot_harvest), 0);
	o.background_sps = 5;
	o.dirty = "walk";
	EQ(scene(&o, walk_harvest), 0);
	o.pte = SCENE_2M;
	EQ(scene(&o, walk_harvest), 0);
	o.preset = "2.6.36";
	o.dirty = NULL;
	EQ(scene(&o, old_walk_harvest), 0);
	o.preset = NULL;
	o.dirty = "hybrid";
	EQ(scene(&o, hybrid_by_walk), 0);
	o.background_sps = 6;
	EQ(scene(&o, hybrid_by_rmap), 0);
}

/* ---- two slots side by side, one of them logged ---- */

static int log_of(struct scene *s, struct task *t, uint32_t slot, bool on)
{
	const struct kvm_memory_region r = {.slot = slot,
					    .flags = on ? KVM_MEM_LOG_DIRTY_PAGES : 0,
					    .base_gfn = (SCENE_TEST >> 12) + (slot - 1) * 64,
					    .npages = 64,
					    .host_populated = true};

	return kvm_set_user_memory_region(t, s->kvm, &r);
}

/* Pages 60 to 67 are written, of which four are the logged slot's: those lose W, and the other
 * slot's pages right before and after its ends keep it. */
static int adjacent(struct scene *s, struct task *t)
{
	uint64_t bitmap[1], faults;

	EQ(log_of(s, t, 2, false), 0);
	EQ(scene_setup(s), 0);
	for (uint32_t logged = 1; logged <= 2; logged++) {
		EQ(log_of(s, t, logged, true), 0);
		EQ(scene_loop(s, true, 60, 68), 0);
		mark(s);
		EQ(kvm_get_dirty_log(t, s->kvm, logged, bitmap), 4);
		EQ(bitmap[0], logged == 1 ? 0xfull << 60 : 0xf);
		EQ(COUNT(s, write_protect), 4);
		faults = kvm_stat(s->kvm, STAT_pf_taken);
		EQ(scene_loop(s, true, logged == 1 ? 64 : 60, logged == 1 ? 68 : 64), 0);
		EQ(kvm_stat(s->kvm, STAT_pf_taken), faults);
		EQ(scene_loop(s, true, 60, 68), 0);
		EQ(kvm_stat(s->kvm, STAT_pf_taken), faults + 4);
		EQ(log_of(s, t, logged, false), 0);
	}
	return kvm_check(s->kvm);
}

static void a_neighbour_slot_is_left_alone(void)
{
	static const char *const policies[] = {"mask", "rmap-slot", "walk"};
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 64, .check = true};

	for (int i = 0; i < 3; i++) {
		o.dirty = policies[i];
		EQ(scene(&o, adjacent), 0);
	}
}

static CU_TestInfo tests[] = {
	{"parameters", parameters},
	{"table", table},
	{"proofs", proofs},
	{"harvests", harvests},
	{"a_neighbour_slot_is_left_alone", a_neighbour_slot_is_left_alone},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("policy", tests)
