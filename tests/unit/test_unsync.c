// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/counts.h"
#include "model/mmu/memslot.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

/*
 * The guest writes to its own page tables: what exits, what goes out of step, and what brings it
 * back. Numbers are Linux 6.1's, recorded under QEMU, where a comment does not say that they follow
 * from its source.
 */
#define EQ CU_ASSERT_EQUAL

#define STAT(s, n)  scene_stat(s, STAT_##n)
#define EVENT(s, n) scene_event(s, TRACE_##n)

#define T(i)	(SCENE_TEST + (uint64_t)(i)*4096)
#define PTT	0x21000ull /* maps T(0) to T(511) */
#define LEAF	0x67ull
#define TABLE	0x27ull
#define PD1	0x13000ull /* maps the second GiB */
#define PT_HIGH 0x68000ull /* a table for it */
#define HIGH	0x40000000ull

static const struct scene_opts long64_4k = {.pte = SCENE_4K, .slot_pages = 512, .check = true};

/* Each of the first 96 test pages holds its number. */
static int warm(struct scene *s)
{
	int r = scene_setup(s);

	for (uint64_t i = 0; i < 96; i++)
		kvm_write_guest_u64(s->kvm, T(i), i);
	for (uint64_t i = 0; i < 8 && !r; i++)
		r = scene_read(s, T(i));
	return r ? r : scene_out(s);
}

static uint64_t read_on(struct scene *s, unsigned v, uint64_t gva)
{
	uint64_t value = UINT64_MAX;
	int r;

	do {
		r = vcpu_fetch(s->vcpu[v], SCENE_CODE);
		r = r ? r : vcpu_read(s->vcpu[v], gva, 4, &value);
	} while (r == VCPU_RESTART);
	return r ? UINT64_MAX : value;
}

static int out_on(struct scene *s, unsigned v)
{
	int r;

	do {
		r = vcpu_fetch(s->vcpu[v], SCENE_CODE);
		r = r ? r : vcpu_out(s->vcpu[v], 0x10);
	} while (r == VCPU_RESTART);
	return r == VCPU_USERSPACE ? 0 : r;
}

enum insn { INVLPG, MOV_CR3, INC, XCHG };

static int insn_on(struct scene *s, unsigned v, enum insn insn, uint64_t arg, uint64_t value)
{
	int r;

	do {
		r = vcpu_fetch(s->vcpu[v], SCENE_CODE);
		if (r)
			continue;
		if (insn == INVLPG)
			r = vcpu_invlpg(s->vcpu[v], arg);
		else if (insn == MOV_CR3)
			r = vcpu_mov_cr3(s->vcpu[v], arg);
		else if (insn == INC)
			r = vcpu_rmw(s->vcpu[v], arg, 4, value);
		else
			r = vcpu_xchg(s->vcpu[v], arg, 8, value);
	} while (r == VCPU_RESTART);
	return r;
}

/* ---- one entry, remapped ---- */

static int invalidated(struct scene *s, struct task *t)
{
	uint64_t ro;

	(void)t;
	EQ(warm(s), 0);
	for (uint64_t k = 1; k <= 8; k++) {
		ro = s->set_spte_ro;
		scene_mark(s);
		EQ(scene_write(s, PTT, 8, T(16 + k) | LEAF), 0);
		EQ(insn_on(s, 0, INVLPG, T(0), 0), 0);
		EQ(read_on(s, 0, T(0)), 16 + k);
		EQ(scene_out(s), 0);
		EQ(STAT(s, mmu_unsync), k == 1); /* from the first write on there is no exit */
		EQ(STAT(s, pf_taken), k == 1);
		EQ(STAT(s, exits), k == 1 ? 3 : 2);
		EQ(STAT(s, remote_tlb_flush_requests), 1);
		EQ(STAT(s, tlb_flush), 1);
		EQ(EVENT(s, kvm_mmu_unsync_page), k == 1);
		EQ(EVENT(s, kvm_mmu_set_spte), k == 1 ? 9 : 1); /* INVLPG sets the entry's */
		EQ(s->set_spte_ro - ro, k == 1);
	}
	EQ(kvm_check(s->kvm), 0);
	scene_mark(s);
	EQ(insn_on(s, 0, MOV_CR3, SCENE_PML4, 0), 0);
	EQ(read_on(s, 0, T(0)), 24);
	EQ(scene_out(s), 0);
	EQ(kvm_stat(s->kvm, STAT_mmu_unsync), 0);
	EQ(EVENT(s, kvm_mmu_sync_page), 1);
	EQ(STAT(s, remote_tlb_flush_requests), 2); /* its table protected, its sptes changed */
	EQ(STAT(s, tlb_flush), 1);
	EQ(STAT(s, pf_taken), 0);
	EQ(EVENT(s, kvm_mmu_set_spte), 0);
	scene_mark(s);
	EQ(scene_write(s, PTT, 8, T(30) | LEAF), 0);
	EQ(read_on(s, 0, T(0)), 24);
	EQ(scene_out(s), 0);
	EQ(s->last[TRACE_kvm_page_fault].code, 3);
	EQ(STAT(s, mmu_unsync), 1);
	EQ(EVENT(s, kvm_mmu_set_spte), 1);
	EQ(STAT(s, remote_tlb_flush_requests), 0);
	return kvm_check(s->kvm);
}

/* Without a flush the guest goes on with what it had. */
static int not_invalidated(struct scene *s, struct task *t)
{
	(void)t;
	EQ(warm(s), 0);
	for (uint64_t k = 1; k <= 8; k++) {
		scene_mark(s);
		EQ(scene_write(s, PTT, 8, T(16 + k) | LEAF), 0);
		EQ(read_on(s, 0, T(0)), 0);
		EQ(scene_out(s), 0);
		EQ(STAT(s, exits), k == 1 ? 2 : 1);
		EQ(STAT(s, remote_tlb_flush_requests), 0);
		EQ(kvm_check(s->kvm), 0);
	}
	/* INVLPG of an address that no CPU has does nothing (the source). */
	EQ(insn_on(s, 0, INVLPG, T(0) | 1ull << 60, 0), 0);
	EQ(read_on(s, 0, T(0)), 0);
	EQ(insn_on(s, 0, MOV_CR3, SCENE_PML4, 0), 0);
	EQ(read_on(s, 0, T(0)), 24);
	return kvm_check(s->kvm);
}

static void an_entry_is_remapped(void)
{
	EQ(scene(&long64_4k, invalidated), 0);
	EQ(scene(&long64_4k, not_invalidated), 0);
}

/* ---- two vCPUs ---- */

/* Both use the same shadow pages: what one brings up is there for the other, without its doing. */
static int shared(struct scene *s, struct task *t)
{
	EQ(warm(s), 0);
	vcpu_bind(s->vcpu[1], t);
	for (uint64_t i = 0; i < 64; i++) {
		EQ(scene_read(s, T(i)), 0);
		EQ(read_on(s, 1, T(i)), i);
	}
	EQ(out_on(s, 0), 0);
	EQ(out_on(s, 1), 0);
	EQ(scene_write(s, PTT, 8, T(65) | LEAF), 0);
	EQ(insn_on(s, 0, INVLPG, T(0), 0), 0);
	EQ(out_on(s, 0), 0);
	scene_mark(s);
	EQ(read_on(s, 1, T(0)), 65);
	EQ(out_on(s, 1), 0);
	EQ(STAT(s, exits), 1);
	EQ(STAT(s, tlb_flush), 1);
	scene_mark(s);
	EQ(insn_on(s, 1, INVLPG, T(0), 0), 0);
	EQ(read_on(s, 1, T(0)), 65);
	EQ(out_on(s, 1), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	EQ(EVENT(s, kvm_mmu_set_spte), 1);
	EQ(STAT(s, mmu_unsync), 0);
	scene_mark(s);
	EQ(insn_on(s, 1, MOV_CR3, SCENE_PML4, 0), 0);
	EQ(read_on(s, 1, T(0)), 65);
	EQ(out_on(s, 1), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 2);
	EQ(kvm_stat(s->kvm, STAT_mmu_unsync), 0);
	EQ(EVENT(s, kvm_mmu_sync_page), 1);
	return kvm_check(s->kvm);
}

static void two_vcpus_share_their_tables(void)
{
	struct scene_opts o = long64_4k;

	o.n_vcpus = 2;
	EQ(scene(&o, shared), 0);
}

/* ---- many at once ---- */

/* The source: 16 pages are found at a time, among them the root, the PDPT and the directory: 13
 * tables, then 7. Each time the tables are protected, which flushes; what the syncs ask for is
 * flushed at the end. */
static int many(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	for (uint64_t i = 0; i < 20; i++)
		EQ(scene_read(s, T(i * 512)), 0);
	for (uint64_t i = 0; i < 20; i++)
		EQ(scene_write(s, PTT + i * 4096, 8, T(i * 512 + 1) | LEAF), 0);
	EQ(kvm_stat(s->kvm, STAT_mmu_unsync), 20);
	EQ(kvm_check(s->kvm), 0);
	scene_mark(s);
	EQ(insn_on(s, 0, MOV_CR3, SCENE_PML4, 0), 0);
	EQ(kvm_stat(s->kvm, STAT_mmu_unsync), 0);
	EQ(EVENT(s, kvm_mmu_sync_page), 20);
	EQ(STAT(s, remote_tlb_flush_requests), 3);
	return kvm_check(s->kvm);
}

static void more_than_fit_into_a_batch(void)
{
	struct scene_opts o = long64_4k;

	o.slot_pages = 20 * 512;
	EQ(scene(&o, many), 0);
}

/* ---- pages that go ---- */

static int second_gib(struct scene *s)
{
	kvm_write_guest_u64(s->kvm, PD1, PT_HIGH | TABLE);
	for (uint64_t i = 0; i < 512; i++)
		kvm_write_guest_u64(s->kvm, PT_HIGH + i * 8, T(i) | LEAF);
	EQ(warm(s), 0);
	EQ(scene_read(s, HIGH), 0);
	return scene_out(s);
}

/* The source: with a table that is zapped go the pages below it that are out of step. */
static int zapped_from_above(struct scene *s, struct task *t)
{
	(void)t;
	EQ(second_gib(s), 0);
	EQ(scene_write(s, PT_HIGH, 8, T(9) | LEAF), 0);
	EQ(kvm_stat(s->kvm, STAT_mmu_unsync), 1);
	scene_mark(s);
	for (uint64_t k = 1; k <= 3; k++)
		EQ(scene_write(s, PD1 + k * 8, 8, 0), 0);
	EQ(STAT(s, mmu_flooded), 1);
	EQ(STAT(s, mmu_shadow_zapped), 2);
	EQ(kvm_stat(s->kvm, STAT_mmu_unsync), 0);
	EQ(read_on(s, 0, HIGH), 9); /* made anew from the guest's tables */
	return kvm_check(s->kvm);
}

/* The source: a table of 4K entries that now leads to tables must not be out of step. */
static int used_as_directory(struct scene *s, struct task *t)
{
	uint64_t pdpte5 = 0x11000 + 5 * 8;

	(void)t;
	EQ(warm(s), 0);
	EQ(scene_write(s, PTT, 8, T(20) | LEAF), 0);
	EQ(kvm_stat(s->kvm, STAT_mmu_unsync), 1);
	kvm_write_guest_u64(s->kvm, T(20), T(21) | LEAF); /* its entries are the lowest level's */
	EQ(scene_write(s, pdpte5, 8, PTT | TABLE), 0);
	scene_mark(s);
	EQ(read_on(s, 0, 5ull << 30), 21);
	EQ(kvm_stat(s->kvm, STAT_mmu_unsync), 0);
	EQ(STAT(s, mmu_shadow_zapped), 1);
	EQ(id_to_memslot(s->kvm, 0)->write_track[PTT >> 12], 1);
	return kvm_check(s->kvm);
}

static void pages_out_of_step_go_with_those_above(void)
{
	EQ(scene(&long64_4k, zapped_from_above), 0);
	EQ(scene(&long64_4k, used_as_directory), 0);
}

/* ---- instructions ---- */

/* INC is not how tables are written: its page is taken for none, and INC runs again. */
static int incremented(struct scene *s, struct task *t)
{
	(void)t;
	EQ(second_gib(s), 0);
	scene_mark(s);
	EQ(insn_on(s, 0, INC, PD1 + 72, 1), 0);
	EQ(scene_out(s), 0);
	EQ(STAT(s, pf_taken), 3);
	EQ(STAT(s, pf_fixed), 2);
	EQ(STAT(s, pf_emulate), 1);
	EQ(STAT(s, mmu_pte_write), 0);
	EQ(STAT(s, mmu_flooded), 0);
	EQ(STAT(s, mmu_shadow_zapped), 1);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	EQ(EVENT(s, kvm_mmu_pagetable_walk), 5);
	EQ(EVENT(s, kvm_mmu_set_spte), 9);
	scene_mark(s);
	EQ(insn_on(s, 0, INC, PD1 + 72, 1), 0);
	EQ(scene_out(s), 0);
	EQ(STAT(s, exits), 1);
	EQ(kvm_read_guest_u64(s->kvm, PD1 + 72), 2);
	return kvm_check(s->kvm);
}

static int exchanged(struct scene *s, struct task *t)
{
	(void)t;
	EQ(second_gib(s), 0);
	scene_mark(s);
	EQ(insn_on(s, 0, XCHG, PD1, PT_HIGH | TABLE), 0);
	EQ(scene_out(s), 0);
	EQ(STAT(s, pf_taken), 2);
	EQ(STAT(s, pf_emulate), 1);
	EQ(STAT(s, mmu_pte_write), 1);
	EQ(EVENT(s, kvm_mmu_pagetable_walk), 5);
	EQ(EVENT(s, kvm_mmu_set_spte), 8);
	return kvm_check(s->kvm);
}

/* A byte inside an entry: no table is written so. */
static int misaligned(struct scene *s, struct task *t)
{
	(void)t;
	EQ(second_gib(s), 0);
	scene_mark(s);
	EQ(scene_write(s, PD1 + 1, 1, 0), 0);
	EQ(scene_out(s), 0);
	EQ(STAT(s, mmu_pte_write), 1);
	EQ(STAT(s, mmu_flooded), 1);
	EQ(STAT(s, mmu_shadow_zapped), 1);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	return kvm_check(s->kvm);
}

static void how_a_table_is_written(void)
{
	EQ(scene(&long64_4k, incremented), 0);
	EQ(scene(&long64_4k, exchanged), 0);
	EQ(scene(&long64_4k, misaligned), 0);
}

/* ---- parameters ---- */

/* Each write exits and is emulated, its spte dropped; nothing is ever stale (the source; a page of
 * 4K entries does not flood: recorded). */
static int always_in_step(struct scene *s, struct task *t)
{
	(void)t;
	EQ(warm(s), 0);
	for (uint64_t k = 1; k <= 8; k++) {
		scene_mark(s);
		EQ(scene_write(s, PTT, 8, T(16 + k) | LEAF), 0);
		EQ(STAT(s, mmu_pte_write), 1);
		EQ(STAT(s, pf_emulate), 1);
		EQ(STAT(s, mmu_flooded), 0);
		EQ(read_on(s, 0, T(0)), 16 + k);
		EQ(kvm_stat(s->kvm, STAT_mmu_unsync), 0);
	}
	return kvm_check(s->kvm);
}

static uint64_t flood_at;

static int flooded(struct scene *s, struct task *t)
{
	(void)t;
	EQ(second_gib(s), 0);
	scene_mark(s);
	for (uint64_t k = 1; k <= 8; k++) {
		EQ(scene_write(s, PD1 + k * 8, 8, 0), 0);
		EQ(STAT(s, mmu_flooded), flood_at && k >= flood_at);
	}
	return kvm_check(s->kvm);
}

static int faults_of_16(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	scene_mark(s);
	for (uint64_t i = 0; i < 16; i++)
		EQ(scene_read(s, T(i)), 0);
	EQ(STAT(s, pf_taken), 4);
	return kvm_check(s->kvm);
}

static void parameters_of_spte_policies(void)
{
	struct scene_opts o = long64_4k;

	o.spte = "none,unsync=0";
	EQ(scene(&o, always_in_step), 0);
	o.spte = "none,flood=5";
	flood_at = 5;
	EQ(scene(&o, flooded), 0);
	o.spte = "none,flood=0";
	flood_at = 0;
	EQ(scene(&o, flooded), 0);
	o.spte = "none,prefetch=4";
	EQ(scene(&o, faults_of_16), 0);
}

/* ---- eras ---- */

/* Recorded from Linux 6.12: INVLPG drops what leads elsewhere, and leaves what grants as much. */
static int synced_by_invlpg(struct scene *s, struct task *t)
{
	(void)t;
	EQ(warm(s), 0);
	for (uint64_t k = 1; k <= 4; k++) {
		scene_mark(s);
		EQ(scene_write(s, PTT, 8, T(16 + k) | LEAF), 0);
		EQ(insn_on(s, 0, INVLPG, T(0), 0), 0);
		EQ(read_on(s, 0, T(0)), 16 + k);
		EQ(scene_out(s), 0);
		EQ(STAT(s, pf_taken), k == 1 ? 2 : 1);
		EQ(STAT(s, exits), k == 1 ? 4 : 3);
		EQ(STAT(s, remote_tlb_flush_requests), 1);
		EQ(EVENT(s, kvm_mmu_set_spte), k == 1 ? 9 : 1);
	}
	scene_mark(s);
	EQ(scene_write(s, PTT + 8, 8, T(1) | 0x25), 0);
	EQ(insn_on(s, 0, INVLPG, T(1), 0), 0);
	EQ(read_on(s, 0, T(1)), 1);
	EQ(scene_out(s), 0);
	EQ(STAT(s, pf_taken), 0);
	EQ(EVENT(s, kvm_mmu_set_spte), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	EQ(kvm_check(s->kvm), 0);
	scene_mark(s);
	EQ(insn_on(s, 0, MOV_CR3, SCENE_PML4, 0), 0);
	EQ(read_on(s, 0, T(0)), 20);
	EQ(scene_out(s), 0);
	EQ(EVENT(s, kvm_mmu_sync_page), 1);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	return kvm_check(s->kvm);
}

/* The source of kernels before 4.19: no root is kept, each load of CR3 looks its own up. */
static int without_previous_roots(struct scene *s, struct task *t)
{
	uint64_t other = 0x70000;

	(void)t;
	for (uint64_t i = 0; i < 4096; i += 8)
		kvm_write_guest_u64(s->kvm, other + i, kvm_read_guest_u64(s->kvm, SCENE_PML4 + i));
	EQ(warm(s), 0);
	EQ(insn_on(s, 0, MOV_CR3, other, 0), 0);
	EQ(read_on(s, 0, T(0)), 0);
	scene_mark(s);
	for (int i = 0; i < 10; i++) {
		EQ(insn_on(s, 0, MOV_CR3, i & 1 ? other : SCENE_PML4, 0), 0);
		EQ(read_on(s, 0, T(0)), 0);
	}
	EQ(EVENT(s, kvm_mmu_get_page), 10);
	EQ(STAT(s, mmu_cache_miss), 0);
	return kvm_check(s->kvm);
}

static void other_kernels(void)
{
	struct scene_opts o = long64_4k;

	o.preset = "6.13-shadow";
	EQ(scene(&o, synced_by_invlpg), 0);
	o.preset = "3.6";
	EQ(scene(&o, without_previous_roots), 0);
}

static CU_TestInfo tests[] = {
	{"an_entry_is_remapped", an_entry_is_remapped},
	{"two_vcpus_share_their_tables", two_vcpus_share_their_tables},
	{"more_than_fit_into_a_batch", more_than_fit_into_a_batch},
	{"pages_out_of_step_go_with_those_above", pages_out_of_step_go_with_those_above},
	{"how_a_table_is_written", how_a_table_is_written},
	{"parameters_of_spte_policies", parameters_of_spte_policies},
	{"other_kernels", other_kernels},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("unsync", tests)
