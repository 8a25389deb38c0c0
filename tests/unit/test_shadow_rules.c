// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Rules of shadow pages and roots that one has to look for: guests that never happen to tell a
 * kernel with the rule from one without. Each expected value follows from the source of Linux 6.1
 * (6.12 where a test says so), and would be another without the rule.
 */
#include "model/mmu/rmap/rmap.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define EQ CU_ASSERT_EQUAL

#define STAT(s, n)  scene_stat(s, STAT_##n)
#define EVENT(s, n) scene_event(s, TRACE_##n)

#define T(i)	(SCENE_TEST + (uint64_t)(i)*4096)
#define PTT	0x21000ull /* maps T(0) to T(511) */
#define LEAF	0x67ull
#define ROOT(k) (SCENE_PML4 + (k)*0x60000ull) /* copies of the first */

static const struct scene_opts long64_4k = {
	.pte = SCENE_4K, .slot_pages = 512, .n_vcpus = 2, .check = true};

static int warm(struct scene *s)
{
	int r = scene_setup(s);

	for (uint64_t k = 1; k < 6; k++)
		kvm_write_guest_u64(s->kvm, ROOT(k), kvm_read_guest_u64(s->kvm, SCENE_PML4));
	for (uint64_t i = 0; i < 8 && !r; i++)
		r = scene_read(s, T(i));
	return r ? r : scene_out(s);
}

static int mov_cr3(struct scene *s, unsigned v, uint64_t cr3)
{
	int r;

	do {
		r = vcpu_fetch(s->vcpu[v], SCENE_CODE);
		r = r ? r : vcpu_mov_cr3(s->vcpu[v], cr3);
	} while (r == VCPU_RESTART);
	return r;
}

static uint64_t value_at(struct kvm_vcpu *v, uint64_t gva)
{
	uint64_t value = UINT64_MAX;
	int r;

	do {
		r = vcpu_fetch(v, SCENE_CODE);
		r = r ? r : vcpu_read(v, gva, 4, &value);
	} while (r == VCPU_RESTART);
	return r ? UINT64_MAX : value;
}

/* ---- pages out of step ---- */

/* A root that is invalid, and that a vCPU still has, is nobody's table any more: what is stored
 * there takes no page out of step. */
static int root_that_is_gone(struct scene *s, struct task *t)
{
	const struct kvm_memory_region slot = {
		.slot = 2, .base_gfn = 0x40000, .npages = 16, .host_populated = true};
	const struct kvm_memory_region none = {.slot = 2, .base_gfn = 0x40000};
	struct kvm_mmu_page *sp;

	EQ(warm(s), 0);
	vcpu_bind(s->vcpu[1], t);
	EQ(value_at(s->vcpu[1], T(0)), 0);
	EQ(mov_cr3(s, 0, ROOT(1)), 0);
	EQ(scene_read(s, T(0)), 0);
	EQ(kvm_set_user_memory_region(t, s->kvm, &slot), 0);
	EQ(kvm_set_user_memory_region(t, s->kvm, &none), 0); /* zaps all */
	scene_mark(s);
	EQ(scene_write(s, SCENE_PML4 + 511 * 8, 8, 0), 0);
	sp = shadow_pages_of(s->kvm, SCENE_PML4 >> 12);
	while (sp && !(sp->gfn == SCENE_PML4 >> 12 && sp->role.invalid && sp->root_count))
		sp = sp->hash_next;
	CU_ASSERT_PTR_NOT_NULL(sp); /* the second vCPU's */
	EQ(EVENT(s, kvm_mmu_unsync_page), 0);
	EQ(kvm_stat(s->kvm, STAT_mmu_unsync), 0);
	EQ(STAT(s, mmu_pte_write), 0);
	return kvm_check(s->kvm);
}

/* A page is synced by who pages as its table does; else the kernel warns, and zaps it. */
static int synced_by_another(struct scene *s, struct task *t)
{
	struct paging_mode was = s->vcpu[0]->paging;
	struct kvm_mmu_page *sp;

	EQ(warm(s), 0);
	sp = first_indirect_sp(t, s->kvm, PTT >> 12);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sp);
	EQ(mmu_lock(t, s->kvm, "test"), 0);
	CU_ASSERT_TRUE(sync_page(s->vcpu[0], sp) >= 0);
	s->vcpu[0]->paging.root_role.smep_andnot_wp ^= 1;
	EQ(sync_page(s->vcpu[0], sp), KVMSIM_EINVAL);
	s->vcpu[0]->paging = was;
	mmu_unlock(t, s->kvm);
	return kvm_check(s->kvm);
}

/* Loads of CR3 sync: the first takes A from the sptes, which flushes; then only what leads
 * elsewhere does. Each protects the table first, with a flush of its own. */
static int zapped_by_a_sync(struct scene *s, struct task *t)
{
	static const struct {
		unsigned i;
		uint64_t entry, flushes;
	} step[] = {{2, T(20) | LEAF, 2}, {3, T(3) | LEAF, 1}, {3, T(21) | LEAF, 2},
		    {3, T(21) | LEAF, 1}, {4, 0, 2},	       {4, 0, 1}};

	(void)t;
	EQ(warm(s), 0);
	EQ(scene_write(s, PTT + 8, 8, T(1) | LEAF), 0);
	EQ(mov_cr3(s, 0, SCENE_PML4), 0);
	for (unsigned i = 0; i < sizeof(step) / sizeof(*step); i++) {
		EQ(scene_write(s, PTT + step[i].i * 8, 8, step[i].entry), 0);
		scene_mark(s);
		EQ(mov_cr3(s, 0, SCENE_PML4), 0);
		EQ(EVENT(s, kvm_mmu_sync_page), 1);
		EQ(STAT(s, remote_tlb_flush_requests), step[i].flushes);
	}
	return kvm_check(s->kvm);
}

/* 6.12: what an entry granted when it was synced last is what it is compared with. */
static int access_given_back(struct scene *s, struct task *t)
{
	(void)t;
	EQ(warm(s), 0);
	EQ(scene_write(s, PTT, 8, T(0) | (LEAF & ~2ull)), 0);
	EQ(mov_cr3(s, 0, SCENE_PML4), 0);
	EQ(scene_write(s, PTT, 8, T(0) | LEAF), 0);
	EQ(mov_cr3(s, 0, SCENE_PML4), 0);
	EQ(kvm_stat(s->kvm, STAT_mmu_unsync), 0);
	scene_mark(s);
	EQ(scene_write(s, T(0), 4, 7), 0);
	EQ(STAT(s, pf_taken), 0);
	return kvm_check(s->kvm);
}

static void pages_out_of_step(void)
{
	struct scene_opts o = long64_4k;

	EQ(scene(&o, root_that_is_gone), 0);
	EQ(scene(&o, synced_by_another), 0);
	EQ(scene(&o, zapped_by_a_sync), 0);
	o.preset = "6.13-shadow";
	EQ(scene(&o, access_given_back), 0);
}

/* ---- floods ---- */

static int store_twice(struct scene *s)
{
	int r = 0;

	for (uint64_t i = 1; i <= 2 && !r; i++)
		r = scene_write(s, SCENE_PML4 + (500 + i) * 8, 8, 0);
	return r;
}

/* Three writes to a table that nothing is looked up by make a flood, two and two with a use between
 * do not: a root that is loaded is used, whether it is among the previous ones or found by hash. */
static int used_between(struct scene *s, unsigned others)
{
	EQ(warm(s), 0);
	for (unsigned k = 1; k <= others; k++) {
		EQ(mov_cr3(s, 0, ROOT(k)), 0);
		EQ(scene_read(s, T(0)), 0);
	}
	EQ(store_twice(s), 0);
	scene_mark(s);
	EQ(mov_cr3(s, 0, SCENE_PML4), 0);
	EQ(mov_cr3(s, 0, ROOT(others)), 0);
	EQ(EVENT(s, kvm_mmu_get_page), others > MMU_NUM_PREV_ROOTS);
	EQ(store_twice(s), 0);
	EQ(STAT(s, mmu_pte_write), 2);
	EQ(STAT(s, mmu_flooded), 0);
	EQ(store_twice(s), 0);
	EQ(STAT(s, mmu_flooded), 1);
	return kvm_check(s->kvm);
}

static int previous_root_used(struct scene *s, struct task *t)
{
	(void)t;
	return used_between(s, 1);
}

static int found_root_used(struct scene *s, struct task *t)
{
	(void)t;
	return used_between(s, MMU_NUM_PREV_ROOTS + 1);
}

static void floods(void)
{
	EQ(scene(&long64_4k, previous_root_used), 0);
	EQ(scene(&long64_4k, found_root_used), 0);
}

/* ---- roots ---- */

/* Kept are the three that were left last, in that order. Letters are roots, the last one's is the
 * current; capital: it has to be looked up. */
static int which_roots_are_kept(struct scene *s, struct task *t)
{
	static const char loads[] = "BCDaEcdaBcdaE";

	(void)t;
	EQ(warm(s), 0);
	for (const char *l = loads; *l; l++) {
		bool looked_up = *l < 'a';

		scene_mark(s);
		EQ(mov_cr3(s, 0, ROOT(*l - (looked_up ? 'A' : 'a'))), 0);
		EQ(scene_read(s, T(0)), 0);
		EQ(EVENT(s, kvm_mmu_get_page) > 0, looked_up);
	}
	return kvm_check(s->kvm);
}

/* A previous root that is invalid by now is none. The request to let go of it is there, but a load
 * of CR3 may come first: its exit was under way. */
static int previous_root_is_invalid(struct scene *s, struct task *t)
{
	const struct kvm_memory_region slot = {
		.slot = 2, .base_gfn = 0x40000, .npages = 16, .host_populated = true};
	const struct kvm_memory_region none = {.slot = 2, .base_gfn = 0x40000};
	struct kvm_vcpu *v = s->vcpu[0];

	EQ(warm(s), 0);
	EQ(mov_cr3(s, 0, ROOT(1)), 0);
	EQ(scene_read(s, T(0)), 0);
	EQ(kvm_set_user_memory_region(t, s->kvm, &slot), 0);
	EQ(kvm_set_user_memory_region(t, s->kvm, &none), 0);
	CU_ASSERT_TRUE(v->prev_roots[0].sp && v->prev_roots[0].pgd == SCENE_PML4);
	v->cr3 = SCENE_PML4;
	kvm_mmu_new_pgd(v, SCENE_PML4);
	CU_ASSERT_FALSE(v->root_valid); /* it is loaded anew */
	EQ(scene_read(s, T(0)), 0);
	return kvm_check(s->kvm);
}

static void previous_roots(void)
{
	EQ(scene(&long64_4k, which_roots_are_kept), 0);
	EQ(scene(&long64_4k, previous_root_is_invalid), 0);
}

/* ---- PDPTEs ---- */

#define PDPT  0x40000ull
#define PD(k) (0x41000ull + (k)*0x1000)
#define LOW   0x44000ull
#define PT(k) (0x45000ull + (k)*0x1000)

/* A guest with PAE: its PDPTEs are loaded by MOV to CR3, and by one to CR4 that changes PGE (SDM
 * volume 3, 4.4.1), which is no part of a shadow page's role. */
static int pdptes_change(struct scene *s, struct task *t)
{
	struct kvm_vcpu *v = s->vcpu[0];
	const struct cpu_regs pae = {.cr0 = CR0_PE | CR0_PG | CR0_WP, .cr4 = CR4_PAE};

	(void)t;
	for (uint64_t k = 0; k < 2; k++) {
		kvm_write_guest_u64(s->kvm, PD(k), LOW | 0x27);
		kvm_write_guest_u64(s->kvm, PD(k) + (SCENE_TEST >> 21) * 8, PT(k) | 0x27);
		kvm_write_guest_u64(s->kvm, PT(k), T(k) | LEAF);
		kvm_write_guest_u64(s->kvm, T(k), 100 + k);
	}
	for (uint64_t i = 0; i < 512; i++)
		kvm_write_guest_u64(s->kvm, LOW + i * 8, i << 12 | LEAF);
	kvm_write_guest_u64(s->kvm, PDPT, PD(0) | 1);
	EQ(vcpu_change_sregs(v, &pae), 0);
	vcpu_set_cr3(v, PDPT);
	EQ(vcpu_change_sregs(v, &pae), 0);
	EQ(value_at(v, T(0)), 100);
	kvm_write_guest_u64(s->kvm, PDPT, PD(1) | 1);
	EQ(value_at(v, T(0)), 100); /* what the CPU has is what it loaded */
	EQ(vcpu_mov_cr4(v, CR4_PAE | CR4_PGE), 0);
	EQ(value_at(v, T(0)), 101);
	return kvm_check(s->kvm);
}

static void pdptes(void)
{
	EQ(scene(&long64_4k, pdptes_change), 0);
}

static CU_TestInfo tests[] = {{"pages_out_of_step", pages_out_of_step},
			      {"floods", floods},
			      {"previous_roots", previous_roots},
			      {"pdptes", pdptes},
			      CU_TEST_INFO_NULL};
TEST_MAIN("shadow_rules", tests)
