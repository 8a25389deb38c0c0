// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Slots that move and slots that are read-only, as Linux 6.1 has them (virt/kvm/kvm_main.c): a move
 * is a deletion and a creation for whoever maps it, with two generations of slots; the memory and
 * its log go along. Of read-only memory nothing is mapped writable or prefetched, since the host's
 * pages are looked up for writing there, and a store exits as a device's does.
 */
#include <string.h>

#include "model/mmu/mmu.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define STAT(s, n)  scene_stat(s, STAT_##n)
#define EVENT(s, n) scene_event(s, TRACE_##n)
#define EQ	    CU_ASSERT_EQUAL

#define AWAY 0x20000000ull /* where slot 1 goes */
#define ROM  0x30000000ull

static const struct scene_opts scenes[] = {
	{.pte = SCENE_2M, .slot_pages = 512, .check = true},
	{.pte = SCENE_FLAT, .slot_pages = 512, .check = true},
	{.paging = PAGING_TDP, .pte = SCENE_2M, .slot_pages = 512, .check = true},
	{.paging = PAGING_TDP,
	 .preset = "6.1-tdp",
	 .pte = SCENE_2M,
	 .slot_pages = 512,
	 .check = true},
};

static void everywhere(int (*body)(struct scene *s, struct task *t))
{
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		EQ(scene(&scenes[i], body), 0);
}

static int place(struct scene *s, struct task *t, uint64_t gpa, uint32_t flags)
{
	const struct kvm_memory_region r = {
		.slot = 1, .flags = flags, .base_gfn = gpa >> 12, .npages = s->o->slot_pages};

	return kvm_set_user_memory_region(t, s->kvm, &r);
}

/* ---- moving ---- */

static int moved(struct scene *s, struct task *t)
{
	uint64_t value;

	EQ(scene_setup(s), 0);
	kvm_write_guest_u64(s->kvm, SCENE_TEST + 0x5008, 77);
	EQ(scene_loop(s, true, 0, 8), 0);
	EQ(kvm_stat(s->kvm, STAT_pages_4k) >= 8, 1);
	scene_mark(s);
	EQ(place(s, t, AWAY, 0), 0);
	EQ(EVENT(s, kvm_mmu_zap_all_fast), 1);
	EQ(kvm_stat(s->kvm, STAT_pages_4k), 0);
	EQ(s->kvm->memslots_generation, 8); /* two slots, and twice for the move */
	EQ(kvm_check(s->kvm), 0);
	EQ(scene_read(s, AWAY), 0);
	EQ(scene_read(s, AWAY + 0x5000), 0);
	EQ(vcpu_read(s->vcpu[0], AWAY + 0x5008, 8, &value), 0);
	EQ(value, 77);
	EQ(scene_read(s, SCENE_TEST), VCPU_USERSPACE); /* a device's now */
	EQ(vcpu_complete_mmio(s->vcpu[0]), 0);
	EQ(kvm_check(s->kvm), 0);
	EQ(place(s, t, SCENE_TEST, 0), 0);
	EQ(scene_read(s, SCENE_TEST + 0x5000), 0);
	EQ(vcpu_read(s->vcpu[0], SCENE_TEST + 0x5008, 8, &value), 0);
	EQ(value, 77);
	EQ(scene_read(s, AWAY), VCPU_USERSPACE);
	EQ(scene_out(s), 0);
	return kvm_check(s->kvm);
}

static void a_slot_takes_its_memory_along(void)
{
	everywhere(moved);
}

static int moved_over_itself(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	kvm_write_guest_u64(s->kvm, SCENE_TEST + 0x1000, 1);
	kvm_write_guest_u64(s->kvm, SCENE_TEST + 0x3000, 3);
	EQ(place(s, t, SCENE_TEST + 0x2000, 0), 0);
	EQ(kvm_read_guest_u64(s->kvm, SCENE_TEST + 0x1000), 0);
	EQ(kvm_read_guest_u64(s->kvm, SCENE_TEST + 0x3000), 1);
	EQ(kvm_read_guest_u64(s->kvm, SCENE_TEST + 0x5000), 3);
	EQ(place(s, t, 0x1ff000, 0), KVMSIM_EINVAL); /* slot 0 is there */
	EQ(place(s, t, SCENE_TEST, KVM_MEM_READONLY), KVMSIM_EINVAL);
	EQ(scene_read(s, SCENE_TEST + 0x2000), 0);
	return kvm_check(s->kvm);
}

static void a_slot_moves_by_a_part_of_itself(void)
{
	everywhere(moved_over_itself);
}

static int moved_logged(struct scene *s, struct task *t)
{
	uint64_t bitmap[8];

	EQ(scene_setup(s), 0);
	EQ(scene_log(s, t, true), 0);
	EQ(scene_loop(s, true, 3, 5), 0);
	EQ(place(s, t, AWAY, KVM_MEM_LOG_DIRTY_PAGES), 0);
	EQ(scene_write(s, AWAY + 0x9000, 4, 1), 0);
	EQ(scene_out(s), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 3);
	EQ(bitmap[0], 0x218); /* also what was stored to before */
	EQ(scene_write(s, AWAY + 0x9000, 4, 1), 0);
	EQ(scene_out(s), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 1);
	/* The flag goes with another move. */
	EQ(place(s, t, SCENE_TEST, 0), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), KVMSIM_ENOENT);
	EQ(place(s, t, AWAY, KVM_MEM_LOG_DIRTY_PAGES), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 0);
	EQ(scene_write(s, AWAY, 4, 1), 0);
	EQ(scene_out(s), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 1);
	return kvm_check(s->kvm);
}

static void its_dirty_log_goes_along(void)
{
	everywhere(moved_logged);
}

static int parts_of_large_pages(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	EQ(place(s, t, AWAY + 0x1000, 0), KVMSIM_EUNSUPPORTED);
	EQ(place(s, t, AWAY, 0), 0);
	EQ(scene_read(s, AWAY), 0);
	EQ(kvm_stat(s->kvm, STAT_pages_2m), 1);
	return kvm_check(s->kvm);
}

static void large_pages_move_whole(void)
{
	struct scene_opts o = scenes[3];

	o.host_level = 2;
	EQ(scene(&o, parts_of_large_pages), 0);
	o.host_absent = o.host_anonymous = true;
	EQ(scene(&o, parts_of_large_pages), 0);
}

/* ---- read-only ---- */

static int rom(struct scene *s, struct task *t)
{
	struct kvm_memory_region r = {.slot = 2,
				      .flags = KVM_MEM_READONLY,
				      .base_gfn = ROM >> 12,
				      .npages = 16,
				      .host_populated = true};

	EQ(scene_setup(s), 0);
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	kvm_write_guest_u64(s->kvm, ROM, 5);
	EQ(scene_read(s, ROM + 0xf000), 0); /* the tables on the way */
	scene_mark(s);
	EQ(scene_read(s, ROM), 0);
	EQ(STAT(s, pf_fixed), 1);
	EQ(STAT(s, pages_4k), 1);
	EQ(s->set_spte_ro - s->base_ro, 1);
	for (int i = 0; i < 2; i++) {
		scene_mark(s);
		EQ(scene_write(s, ROM, 4, 6), VCPU_USERSPACE);
		EQ(vcpu_exit_reason(s->vcpu[0]), KVM_EXIT_MMIO);
		EQ(vcpu_complete_mmio(s->vcpu[0]), 0);
		EQ(STAT(s, pf_emulate), 1);
		EQ(STAT(s, pf_mmio_spte_created), 0);
		EQ(STAT(s, mmio_exits), 1);
		EQ(EVENT(s, vcpu_match_mmio), 0);
	}
	EQ(scene_write(s, ROM + 0x1000, 4, 6), VCPU_USERSPACE); /* not mapped yet */
	EQ(vcpu_complete_mmio(s->vcpu[0]), 0);
	scene_mark(s);
	EQ(scene_read(s, ROM), 0); /* the store has changed nothing */
	EQ(STAT(s, mmio_exits), 0);
	EQ(scene_out(s), 0);
	EQ(kvm_read_guest_u64(s->kvm, ROM), 5);
	scene_mark(s);
	r.flags |= KVM_MEM_LOG_DIRTY_PAGES;
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 0); /* there is nothing to arm */
	r.flags = 0;
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), KVMSIM_EINVAL);
	return kvm_check(s->kvm);
}

static void stores_to_read_only_memory_exit(void)
{
	everywhere(rom);
}

/* An increment is run again once, since its page might have held a table; then its load is done
 * from memory, and its store exits. */
static int increment(struct scene *s, struct task *t)
{
	const struct kvm_memory_region r = {.slot = 2,
					    .flags = KVM_MEM_READONLY,
					    .base_gfn = ROM >> 12,
					    .npages = 16,
					    .host_populated = true};
	int result;

	EQ(scene_setup(s), 0);
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	EQ(scene_read(s, ROM), 0);
	scene_mark(s);
	do {
		result = vcpu_fetch(s->vcpu[0], SCENE_CODE);
		result = result ? result : vcpu_rmw(s->vcpu[0], ROM, 4, 1);
	} while (result == VCPU_RESTART);
	EQ(result, VCPU_USERSPACE);
	EQ(STAT(s, pf_emulate), 2);
	EQ(STAT(s, mmio_exits), 1);
	EQ(vcpu_complete_mmio(s->vcpu[0]), 0);
	return kvm_check(s->kvm);
}

static void an_increment_of_read_only_memory(void)
{
	everywhere(increment);
}

/* An increment by a guest's table that is in a read-only slot: a nested walk cannot set A there, so
 * the emulator does the load and the store, once, after the page was looked up for a table. The
 * numbers are Linux 6.1's, recorded under QEMU with tdp_mmu=1. */
static int increment_by_rom(struct scene *s, struct task *t)
{
	const struct kvm_memory_region r = {.slot = 2,
					    .flags = KVM_MEM_READONLY,
					    .base_gfn = ROM >> 12,
					    .npages = 16,
					    .host_populated = true};

	EQ(scene_setup(s), 0);
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	kvm_write_guest_u64(s->kvm, ROM, SCENE_TEST | 0x67);
	kvm_write_guest_u64(s->kvm, 0x12000 + 200 * 8, ROM | 0x27);
	kvm_write_guest_u64(s->kvm, SCENE_TEST + 0x100, 41);
	for (uint64_t k = 42; k < 44; k++) {
		int result;

		scene_mark(s);
		do {
			result = vcpu_fetch(s->vcpu[0], SCENE_CODE);
			result = result ? result
					: vcpu_rmw(s->vcpu[0], (200ull << 21) + 0x100, 4, 1);
		} while (result == VCPU_RESTART);
		EQ(result, 0);
		EQ(STAT(s, pf_taken), 2);
		EQ(STAT(s, pf_emulate), 2);
		EQ(STAT(s, insn_emulation), 2);
		EQ(kvm_read_guest_u64(s->kvm, SCENE_TEST + 0x100), k);
	}
	return kvm_check(s->kvm);
}

static void an_increment_by_a_read_only_table(void)
{
	static const char *const cpus[] = {"tcg", "amd", "intel"};

	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
		const struct scene_opts o = {.paging = PAGING_TDP,
					     .pte = SCENE_4K,
					     .slot_pages = 64,
					     .preset = "6.1-tdp",
					     .personality = cpus[i],
					     .check = true};

		EQ(scene(&o, increment_by_rom), 0);
	}
}

static CU_TestInfo tests[] = {
	{"an_increment_by_a_read_only_table", an_increment_by_a_read_only_table},
	{"a_slot_takes_its_memory_along", a_slot_takes_its_memory_along},
	{"a_slot_moves_by_a_part_of_itself", a_slot_moves_by_a_part_of_itself},
	{"its_dirty_log_goes_along", its_dirty_log_goes_along},
	{"large_pages_move_whole", large_pages_move_whole},
	{"stores_to_read_only_memory_exit", stores_to_read_only_memory_exit},
	{"an_increment_of_read_only_memory", an_increment_of_read_only_memory},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("memslot", tests)
