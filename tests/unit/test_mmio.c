// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Accesses to devices under each spte policy. Counts of mmio-gen and vcpu-cache are those of Linux
 * 6.1 with mmio_caching on and off (cases E of the reference matrix: one page of a device, read
 * first, again, after a slot was made). The others follow from what their kernels do: none searches
 * the slots twice and walks a paging guest's tables twice; without generations a new slot zaps.
 */
#include <string.h>

#include "model/mmu/mmu.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define STAT(s, n)  scene_stat(s, STAT_##n)
#define EVENT(s, n) scene_event(s, TRACE_##n)
#define COUNT(s, n) scene_count(s, COUNT_##n)
#define EQ	    CU_ASSERT_EQUAL

#define DEVICE 0xe0000000ull

static const struct scene_opts long64 = {.pte = SCENE_2M, .slot_pages = 64, .check = true};
static const struct scene_opts flat32 = {.pte = SCENE_FLAT, .slot_pages = 64, .check = true};
static const struct scene_opts tdp_rmap = {
	.paging = PAGING_TDP, .pte = SCENE_2M, .slot_pages = 64, .check = true};
static const struct scene_opts tdp = {.paging = PAGING_TDP,
				      .preset = "6.1-tdp",
				      .pte = SCENE_2M,
				      .slot_pages = 64,
				      .check = true};

/* A slot of 16 pages, or none, at @gpa. */
static int set_slot(struct scene *s, struct task *t, uint32_t id, uint64_t gpa, uint64_t npages)
{
	const struct kvm_memory_region r = {
		.slot = id, .base_gfn = gpa >> 12, .npages = npages, .host_populated = true};

	return kvm_set_user_memory_region(t, s->kvm, &r);
}

/* One access of a page of the device, from the mark on, and back in the guest. */
static void load(struct scene *s, uint64_t offset)
{
	scene_mark(s);
	EQ(scene_read(s, DEVICE + offset), VCPU_USERSPACE);
	EQ(vcpu_exit_reason(s->vcpu[0]), KVM_EXIT_MMIO);
	EQ(vcpu_complete_mmio(s->vcpu[0]), 0);
}

static void store(struct scene *s, uint64_t offset)
{
	scene_mark(s);
	EQ(scene_write(s, DEVICE + offset, 4, 1), VCPU_USERSPACE);
	EQ(vcpu_complete_mmio(s->vcpu[0]), 0);
}

/* ---- generations ---- */

static void full_fault(struct scene *s, bool stale)
{
	EQ(STAT(s, pf_taken), 1);
	EQ(STAT(s, pf_emulate), 1);
	EQ(STAT(s, pf_mmio_spte_created), 1);
	EQ(EVENT(s, mark_mmio_spte), 1);
	EQ(EVENT(s, check_mmio_spte), stale);
	EQ(EVENT(s, handle_mmio_page_fault), 0);
}

/* @remembered: by the vCPU, so that the spte is not looked at. */
static void no_fault(struct scene *s, bool remembered)
{
	EQ(STAT(s, pf_taken), 0);
	EQ(STAT(s, mmio_exits), 1);
	EQ(EVENT(s, check_mmio_spte), !remembered);
	EQ(EVENT(s, handle_mmio_page_fault), !remembered);
	EQ(COUNT(s, emulator_slot), 0);
}

static int generations(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	load(s, 0x1000);
	load(s, 0);
	full_fault(s, false);
	EQ(s->last[TRACE_mark_mmio_spte].gen, 4); /* two slots were made */
	load(s, 4);
	no_fault(s, true);
	store(s, 0);
	no_fault(s, true);
	load(s, 0x1000);
	no_fault(s, false);
	EQ(set_slot(s, t, 2, 0x20000000, 16), 0);
	load(s, 0x1000);
	full_fault(s, true);
	EQ(s->last[TRACE_mark_mmio_spte].gen, 6);
	load(s, 0);
	full_fault(s, true);
	EQ(scene_log(s, t, true), 0);
	load(s, 0);
	full_fault(s, true);
	EQ(s->last[TRACE_mark_mmio_spte].gen, 8);
	EQ(set_slot(s, t, 2, 0x20000000, 0), 0); /* two changes, and everything is zapped */
	load(s, 0);
	EQ(STAT(s, pf_mmio_spte_created), 1);
	EQ(EVENT(s, check_mmio_spte), 0);
	EQ(s->last[TRACE_mark_mmio_spte].gen, 0xc);
	/* In the device's place: memory. */
	EQ(set_slot(s, t, 2, DEVICE, 16), 0);
	scene_mark(s);
	EQ(scene_read(s, DEVICE), 0);
	EQ(EVENT(s, check_mmio_spte), 1);
	EQ(STAT(s, pf_fixed) > 0, 1);
	EQ(STAT(s, mmio_exits), 0);
	EQ(scene_out(s), 0);
	return kvm_check(s->kvm);
}

/* Of 19 bits the upper 11 lie apart from the others. */
static int high_bits(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	for (unsigned i = 0; i < 128; i++)
		EQ(scene_log(s, t, !(i & 1)), 0);
	load(s, 0);
	EQ(s->last[TRACE_mark_mmio_spte].gen, 4 + 2 * 128);
	load(s, 0x1000);
	load(s, 0);
	no_fault(s, false);
	for (unsigned i = 0; i < 128; i++) /* the low bits are the same again */
		EQ(scene_log(s, t, !(i & 1)), 0);
	load(s, 0);
	full_fault(s, true);
	EQ(s->last[TRACE_mark_mmio_spte].gen, 4 + 2 * 256);
	return kvm_check(s->kvm);
}

static void sptes_hold_the_slots_generation(void)
{
	EQ(scene(&long64, high_bits), 0);
	EQ(scene(&tdp, high_bits), 0);
	EQ(scene(&long64, generations), 0);
	EQ(scene(&flat32, generations), 0);
	EQ(scene(&tdp_rmap, generations), 0);
	EQ(scene(&tdp, generations), 0);
}

static int wrap(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	load(s, 0);
	EQ(s->last[TRACE_mark_mmio_spte].gen, 4);
	EQ(set_slot(s, t, 2, 0x20000000, 16), 0);
	EQ(EVENT(s, kvm_mmu_zap_all_fast), 0);
	load(s, 0);
	EQ(s->last[TRACE_mark_mmio_spte].gen, 6);
	scene_mark(s);
	EQ(set_slot(s, t, 3, 0x30000000, 16), 0); /* 8, of which three bits are 0 */
	EQ(EVENT(s, kvm_mmu_zap_all_fast), 1);
	load(s, 0);
	EQ(EVENT(s, check_mmio_spte), 0); /* it is gone */
	EQ(s->last[TRACE_mark_mmio_spte].gen, 0);
	return kvm_check(s->kvm);
}

static void a_generation_that_wraps_zaps_all(void)
{
	struct scene_opts o[] = {long64, tdp};

	for (int i = 0; i < 2; i++) {
		o[i].spte = "mmio-gen,gen-bits=3";
		EQ(scene(&o[i], wrap), 0);
	}
}

/* ---- without generations ---- */

static int new_slots_zap(struct scene *s, struct task *t)
{
	bool only_mmio = strstr(s->o->spte, "mmio-cached=1");

	EQ(scene_setup(s), 0);
	EQ(scene_loop(s, true, 0, 8), 0);
	load(s, 0);
	full_fault(s, false);
	load(s, 0x1000);
	full_fault(s, false);
	load(s, 0);
	EQ(STAT(s, pf_taken), 0);
	EQ(EVENT(s, handle_mmio_page_fault), 1);
	EQ(EVENT(s, check_mmio_spte), 0); /* nothing to compare */
	EQ(scene_log(s, t, true), 0);
	load(s, 0x1000);
	EQ(STAT(s, pf_taken), 0); /* flags change nothing */
	scene_mark(s);
	EQ(set_slot(s, t, 2, 0x20000000, 16), 0);
	EQ(STAT(s, mmu_shadow_zapped) > 0, 1);
	EQ(EVENT(s, kvm_mmu_zap_all_fast), !strcmp(s->o->preset, "6.1-shadow") && !only_mmio);
	EQ(kvm_stat(s->kvm, STAT_pages_4k) > 0, only_mmio);
	load(s, 0x1000);
	EQ(STAT(s, pf_mmio_spte_created), 1);
	return kvm_check(s->kvm);
}

static void without_generations_new_slots_zap(void)
{
	static const char *const presets[] = {"3.5", "6.1-shadow"};
	struct scene_opts o[] = {long64, flat32, tdp_rmap};

	for (int p = 0; p < 2; p++)
		for (int i = 0; i < 3; i++) {
			o[i].preset = presets[p];
			o[i].spte = "mmio-spte";
			EQ(scene(&o[i], new_slots_zap), 0);
			o[i].spte = "mmio-spte,mmio-cached=1";
			EQ(scene(&o[i], new_slots_zap), 0);
		}
}

/* The checkers say it, and so does the guest's memory. */
static int stale(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	load(s, 0x1000);
	load(s, 0);
	EQ(kvm_check(s->kvm), 0);
	EQ(set_slot(s, t, 2, DEVICE, 16), 0);
	EQ(scene_read(s, DEVICE + 0x1000), VCPU_USERSPACE);
	return kvm_check(s->kvm);
}

static void a_stale_spte_is_caught(void)
{
	struct scene_opts o[] = {long64, flat32, tdp_rmap, tdp};

	for (int i = 0; i < 4; i++) {
		o[i].spte = "stale";
		EQ(scene(&o[i], stale), KVMSIM_ECHECK);
		CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "MMIO spte for a frame that a slot "
							     "has"));
	}
}

/* ---- no sptes ---- */

/* Guest tables' levels that one access walks: by the fault, the emulator's fetch, and its access.
 */
static int vcpu_cache(struct scene *s, struct task *t)
{
	bool shadow = s->o->paging == PAGING_SHADOW, paging = s->o->pte != SCENE_FLAT;
	bool fetches = !s->o->personality; /* AMD's CPUs hand the instruction over */

	(void)t;
	EQ(scene_setup(s), 0);
	for (int i = 0; i < 3; i++) {
		load(s, 0);
		if (!i)
			continue; /* nested tables for the guest's, the first time */
		EQ(STAT(s, pf_taken), 1);
		EQ(STAT(s, pf_emulate), 1);
		EQ(STAT(s, mmu_cache_miss), 0);
		EQ(EVENT(s, vcpu_match_mmio), 1);
		EQ(COUNT(s, memslot_lookup), 1);
		EQ(COUNT(s, emulator_slot), 0);
		EQ(COUNT(s, guest_walk_level), paging ? 3 * fetches + 3 * shadow : 0);
	}
	return kvm_check(s->kvm);
}

static int none(struct scene *s, struct task *t)
{
	bool shadow = s->o->paging == PAGING_SHADOW, paging = s->o->pte != SCENE_FLAT;

	(void)t;
	EQ(scene_setup(s), 0);
	for (int i = 0; i < 3; i++) {
		load(s, 0);
		if (!i)
			continue;
		EQ(STAT(s, pf_taken), 1);
		EQ(EVENT(s, vcpu_match_mmio), 0);
		EQ(COUNT(s, memslot_lookup), 1);
		EQ(COUNT(s, emulator_slot), 1);
		/* The emulator is not told the address of a nested fault. */
		EQ(COUNT(s, guest_walk_level), paging ? 6 + 3 * shadow : 0);
	}
	return kvm_check(s->kvm);
}

/* 6.1 takes what it does not know to be a device for a page table first, unless page tables are
 * written with such instructions. */
static int none_retried(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	load(s, 0);
	load(s, 0);
	EQ(STAT(s, pf_taken), 2);
	EQ(STAT(s, mmio_exits), 1);
	store(s, 0);
	EQ(STAT(s, pf_taken), 1);
	EQ(STAT(s, mmio_exits), 1);
	return kvm_check(s->kvm);
}

static void without_sptes_each_access_is_a_full_fault(void)
{
	struct scene_opts o[] = {long64, flat32, tdp_rmap, tdp};

	for (int i = 0; i < 4; i++) {
		o[i].spte = "vcpu-cache";
		EQ(scene(&o[i], vcpu_cache), 0);
		o[i].spte = "none";
		EQ(scene(&o[i], none_retried), 0);
		o[i].preset = "2.6.36";
		o[i].spte = NULL;
		if (i < 3)
			EQ(scene(&o[i], none), 0);
	}
}

/* The APIC's page needs no search in any era; in shadow paging the vCPU's memory is asked first. */
static int apic(struct scene *s, struct task *t)
{
	bool by_gva = s->o->paging == PAGING_SHADOW && s->o->pte != SCENE_FLAT && !s->o->preset;

	(void)t;
	EQ(scene_setup(s), 0);
	for (int i = 0; i < 3; i++) {
		scene_mark(s);
		EQ(scene_write(s, 0xfee00300, 4, 1), VCPU_USERSPACE);
		EQ(vcpu_complete_mmio(s->vcpu[0]), 0);
		EQ(COUNT(s, emulator_slot), 0);
		EQ(EVENT(s, vcpu_match_mmio), by_gva);
	}
	return kvm_check(s->kvm);
}

static void the_apics_page_is_known(void)
{
	struct scene_opts o[] = {long64, flat32, tdp_rmap};

	for (int i = 0; i < 3; i++) {
		EQ(scene(&o[i], apic), 0);
		o[i].preset = "2.6.36";
		EQ(scene(&o[i], apic), 0);
	}
}

/* ---- CPUs ---- */

static int misconfigured(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	load(s, 0x1000);
	EQ(s->last[TRACE_kvm_exit].code, 48);
	load(s, 0);
	scene_mark(s);
	EQ(scene_read(s, DEVICE + 0x1000), VCPU_USERSPACE);
	EQ(s->last[TRACE_kvm_exit].code, 49);
	EQ(EVENT(s, kvm_page_fault), 0);
	EQ(EVENT(s, handle_mmio_page_fault), 1);
	EQ(STAT(s, pf_taken), 0);
	EQ(s->last[TRACE_check_mmio_spte].spte & 7, 6);
	EQ(mmio_spte_gfn(s->kvm, s->last[TRACE_check_mmio_spte].spte), (DEVICE + 0x1000) >> 12);
	EQ(vcpu_complete_mmio(s->vcpu[0]), 0);
	return kvm_check(s->kvm);
}

static void ept_entries_make_no_sense(void)
{
	static const char *const cpus[] = {"intel", "intel-nehalem"};
	struct scene_opts o[] = {tdp_rmap, tdp};

	for (int i = 0; i < 4; i++) {
		o[i / 2].personality = cpus[i % 2];
		EQ(scene(&o[i / 2], misconfigured), 0);
	}
}

/* Hardware says that an entry with reserved bits is present; QEMU does not. */
static int reserved(struct scene *s, struct task *t)
{
	uint64_t present = strcmp(s->o->personality, "tcg") ? PFERR_PRESENT : 0;
	uint64_t nested = s->o->paging == PAGING_TDP ? PFERR_GUEST_FINAL | PFERR_USER : 0;

	(void)t;
	EQ(scene_setup(s), 0);
	load(s, 0);
	store(s, 0);
	EQ(s->last[TRACE_kvm_page_fault].code, PFERR_RSVD | PFERR_WRITE | present | nested);
	EQ(STAT(s, pf_taken), 0);
	return kvm_check(s->kvm);
}

static void reserved_bits_are_in_the_error_code(void)
{
	static const char *const cpus[] = {"tcg", "amd"};
	struct scene_opts o[] = {long64, flat32, tdp_rmap, tdp};

	for (int i = 0; i < 8; i++) {
		o[i / 2].personality = cpus[i % 2];
		EQ(scene(&o[i / 2], reserved), 0);
	}
}

/* With 52 bits of physical addresses none is reserved. */
static void no_reserved_bit_no_spte(void)
{
	struct scene_opts o[] = {long64, tdp};

	for (int i = 0; i < 2; i++) {
		o[i].personality = "amd-zen4";
		o[i].spte = "mmio-gen";
		EQ(scene(&o[i], vcpu_cache), 0);
	}
}

/* ---- read-modify-write ---- */

/* One fault, two exits: the load, and the store without an entry between them. */
static int increment(struct scene *s, struct task *t)
{
	int r;

	(void)t;
	EQ(scene_setup(s), 0);
	load(s, 0);
	scene_mark(s);
	do {
		r = vcpu_fetch(s->vcpu[0], SCENE_CODE);
		r = r ? r : vcpu_rmw(s->vcpu[0], DEVICE, 4, 1);
	} while (r == VCPU_RESTART);
	EQ(r, VCPU_USERSPACE);
	EQ(EVENT(s, kvm_entry), 0);
	EQ(vcpu_complete_mmio(s->vcpu[0]), VCPU_USERSPACE);
	EQ(vcpu_exit_reason(s->vcpu[0]), KVM_EXIT_MMIO);
	EQ(EVENT(s, kvm_entry), 0);
	EQ(vcpu_complete_mmio(s->vcpu[0]), 0);
	EQ(EVENT(s, kvm_entry), 1);
	EQ(EVENT(s, kvm_exit), 1);
	EQ(EVENT(s, kvm_mmio), 3);
	EQ(STAT(s, mmio_exits), 2);
	EQ(STAT(s, insn_emulation), 1);
	return kvm_check(s->kvm);
}

static void an_increment_exits_twice(void)
{
	static const char *const cpus[] = {"tcg", "intel"};
	struct scene_opts o[] = {long64, flat32, tdp_rmap, tdp};

	for (int i = 0; i < 8; i++) {
		o[i / 2].personality = cpus[i % 2];
		EQ(scene(&o[i / 2], increment), 0);
	}
}

/* ---- what a vCPU remembers ---- */

static int forgets(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	load(s, 0);
	load(s, 0);
	no_fault(s, true);
	EQ(vcpu_invlpg(s->vcpu[0], DEVICE + 0x1000), 0);
	load(s, 0);
	no_fault(s, true);
	EQ(vcpu_invlpg(s->vcpu[0], DEVICE), 0);
	load(s, 0);
	no_fault(s, false);
	EQ(vcpu_mov_cr3(s->vcpu[0], SCENE_PML4), 0);
	load(s, 0);
	no_fault(s, false);
	return kvm_check(s->kvm);
}

static void what_the_guest_flushes_is_forgotten(void)
{
	EQ(scene(&long64, forgets), 0);
}

static CU_TestInfo tests[] = {
	{"sptes_hold_the_slots_generation", sptes_hold_the_slots_generation},
	{"a_generation_that_wraps_zaps_all", a_generation_that_wraps_zaps_all},
	{"without_generations_new_slots_zap", without_generations_new_slots_zap},
	{"a_stale_spte_is_caught", a_stale_spte_is_caught},
	{"without_sptes_each_access_is_a_full_fault", without_sptes_each_access_is_a_full_fault},
	{"the_apics_page_is_known", the_apics_page_is_known},
	{"ept_entries_make_no_sense", ept_entries_make_no_sense},
	{"reserved_bits_are_in_the_error_code", reserved_bits_are_in_the_error_code},
	{"no_reserved_bit_no_spte", no_reserved_bit_no_spte},
	{"an_increment_exits_twice", an_increment_exits_twice},
	{"what_the_guest_flushes_is_forgotten", what_the_guest_flushes_is_forgotten},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("mmio", tests)
