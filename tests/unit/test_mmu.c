// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

/*
 * Exact counts of Linux 6.1 (tracepoints and KVM_GET_STATS_FD, recorded under QEMU): the numbers in
 * the assertions are the kernel's, for a slot of 512 pages unless said.
 */
static const struct scene_opts long64_2m = {.pte = SCENE_2M, .slot_pages = 512, .check = true};
static const struct scene_opts long64_4k = {.pte = SCENE_4K, .slot_pages = 512, .check = true};
static const struct scene_opts flat32 = {.pte = SCENE_FLAT, .slot_pages = 512, .check = true};
static const struct scene_opts tdp = {
	.paging = PAGING_TDP, .pte = SCENE_2M, .slot_pages = 512, .check = true};

#define STAT(s, n)  scene_stat(s, STAT_##n)
#define EVENT(s, n) scene_event(s, TRACE_##n)
#define EQ	    CU_ASSERT_EQUAL

static int setup_long64(struct scene *s, struct task *t)
{
	(void)t;
	scene_mark(s);
	EQ(scene_setup(s), 0);
	EQ(STAT(s, mmu_cache_miss), 4);
	EQ(kvm_stat(s->kvm, STAT_pages_4k), 24);
	EQ(STAT(s, pf_taken), 3);
	EQ(STAT(s, pf_fixed), 3);
	EQ(STAT(s, exits), 4);
	EQ(STAT(s, io_exits), 1);
	EQ(STAT(s, req_event), 1);
	EQ(STAT(s, tlb_flush), 0);
	EQ(EVENT(s, kvm_mmu_get_page), 4);
	EQ(EVENT(s, kvm_mmu_pagetable_walk), 3);
	EQ(EVENT(s, kvm_mmu_paging_element), s->o->pte == SCENE_4K ? 12 : 9);
	EQ(EVENT(s, kvm_mmu_set_spte), 24);
	EQ(EVENT(s, kvm_entry), 4);
	EQ(EVENT(s, kvm_fpu), 2);
	EQ(EVENT(s, kvm_update_master_clock), 1);
	return kvm_check(s->kvm);
}

static void setup_of_a_paging_guest(void)
{
	EQ(scene(&long64_2m, setup_long64), 0);
	EQ(scene(&long64_4k, setup_long64), 0);
}

static int setup_flat(struct scene *s, struct task *t)
{
	(void)t;
	scene_mark(s);
	EQ(scene_setup(s), 0);
	EQ(STAT(s, mmu_cache_miss), 5); /* four roots of level 2, one table */
	EQ(STAT(s, pf_taken), 3);
	EQ(EVENT(s, kvm_mmu_get_page), 5);
	EQ(EVENT(s, kvm_mmu_pagetable_walk), 0);
	EQ(EVENT(s, kvm_mmu_set_spte), 24);
	EQ(EVENT(s, fast_page_fault), 0);
	return kvm_check(s->kvm);
}

static void setup_of_a_flat_guest(void)
{
	EQ(scene(&flat32, setup_flat), 0);
}

static int setup_tdp(struct scene *s, struct task *t)
{
	(void)t;
	scene_mark(s);
	EQ(scene_setup(s), 0);
	EQ(STAT(s, pf_taken), 4);
	EQ(STAT(s, mmu_cache_miss), 4);
	EQ(EVENT(s, kvm_mmu_set_spte), 32);
	EQ(s->last[TRACE_kvm_page_fault].code, PFERR_GUEST_FINAL | PFERR_USER);
	return kvm_check(s->kvm);
}

/* The first fault is the nested walk's, at the guest's own root table, as a write. */
static int first_fault_tdp(struct scene *s, struct task *t)
{
	uint64_t value;

	(void)t;
	EQ(vcpu_read(s->vcpu[0], SCENE_LIST, 4, &value), VCPU_RESTART);
	EQ(s->last[TRACE_kvm_page_fault].code, PFERR_GUEST_PAGE | PFERR_USER | PFERR_WRITE);
	EQ(s->last[TRACE_kvm_page_fault].gfn, SCENE_PML4 >> 12);
	EQ(s->last[TRACE_kvm_exit].code, EXIT_NPF);
	return 0;
}

static void setup_under_nested_paging(void)
{
	EQ(scene(&tdp, setup_tdp), 0);
	EQ(scene(&tdp, first_fault_tdp), 0);
}

static int populate(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 512), 0);
	EQ(STAT(s, pf_taken), 64); /* groups of 8 */
	EQ(STAT(s, pf_fixed), 64);
	EQ(STAT(s, pages_4k), 512);
	EQ(STAT(s, mmu_cache_miss), 1);
	EQ(EVENT(s, kvm_mmu_set_spte), 512);
	EQ(EVENT(s, kvm_mmu_spte_requested), 64);
	EQ(EVENT(s, kvm_entry), 65);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 512), 0);
	EQ(STAT(s, pf_taken), 0);
	EQ(STAT(s, exits), 1);
	return kvm_check(s->kvm);
}

static void populating_prefetches_groups_of_8(void)
{
	EQ(scene(&long64_2m, populate), 0);
	EQ(scene(&long64_4k, populate), 0);
	EQ(scene(&flat32, populate), 0);
	EQ(scene(&tdp, populate), 0);
}

/* A host page that is not there yet is not prefetched. */
static int populate_absent(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 512), 0);
	EQ(STAT(s, pf_taken), 512);
	EQ(EVENT(s, kvm_mmu_set_spte), 512);
	return kvm_check(s->kvm);
}

static void absent_host_pages_are_not_prefetched(void)
{
	struct scene_opts o = long64_4k;

	o.host_absent = true;
	EQ(scene(&o, populate_absent), 0);
	o = tdp;
	o.host_absent = true;
	EQ(scene(&o, populate_absent), 0);
}

static int logged(struct scene *s, struct task *t)
{
	bool direct = s->o->pte == SCENE_FLAT || s->o->paging == PAGING_TDP;
	uint64_t bitmap[8];

	EQ(scene_setup(s), 0);
	scene_mark(s);
	EQ(scene_loop(s, false, 0, 512), 0); /* reads: they make the pages dirty */
	EQ(STAT(s, pf_taken), 512);
	EQ(EVENT(s, kvm_mmu_set_spte), 512);
	EQ(STAT(s, pf_fast), 0);
	scene_mark(s);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 512);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	EQ(STAT(s, remote_tlb_flush), 0);
	for (int i = 0; i < 8; i++)
		EQ(bitmap[i], UINT64_MAX);
	scene_mark(s);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 0);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 512), 0);
	EQ(STAT(s, pf_taken), 512);
	EQ(STAT(s, tlb_flush), 1);
	EQ(STAT(s, pf_fast), direct ? 512 : 0);
	EQ(EVENT(s, fast_page_fault), direct ? 512 : 0);
	EQ(EVENT(s, kvm_mmu_set_spte), direct ? 0 : 512);
	EQ(EVENT(s, kvm_mmu_pagetable_walk), direct ? 0 : 512);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 512);
	/* Taking the flag away gives no page back; each faults once more. */
	EQ(scene_log(s, t, false), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), KVMSIM_ENOENT);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 512), 0);
	EQ(STAT(s, pf_taken), 512);
	scene_mark(s);
	EQ(scene_log(s, t, true), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 0);
	EQ(kvm_lost_stores(s->kvm), 0);
	EQ(kvm_false_dirties(s->kvm), 512); /* the reads */
	return kvm_check(s->kvm);
}

static void dirty_logging(void)
{
	static const char *const policies[] = {"mask", "rmap-slot", "walk", "hybrid"};

	for (int i = 0; i < 4; i++) {
		const struct scene_opts *all[] = {&long64_2m, &long64_4k, &flat32, &tdp};

		for (int j = 0; j < 4; j++) {
			struct scene_opts o = *all[j];

			o.slot_flags = KVM_MEM_LOG_DIRTY_PAGES;
			o.dirty = policies[i];
			EQ(scene(&o, logged), 0);
		}
	}
}

/* Writes of an unused entry of the root table: the first maps the group, its three tables
 * read-only; each is emulated; none floods, since the walk of the address resets the count. */
static int write_pml4(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	for (int k = 1; k <= 8; k++) {
		uint64_t ro = s->set_spte_ro;

		scene_mark(s);
		EQ(scene_write(s, SCENE_PML4 + 64, 8, 0), 0);
		EQ(scene_out(s), 0);
		EQ(STAT(s, mmu_pte_write), 1);
		EQ(STAT(s, pf_taken), 1);
		EQ(STAT(s, pf_emulate), 1);
		EQ(STAT(s, insn_emulation), 1);
		EQ(STAT(s, mmu_flooded), 0);
		EQ(STAT(s, exits), 2);
		EQ(EVENT(s, kvm_mmu_set_spte), k == 1 ? 8 : 0);
		EQ(s->set_spte_ro - ro, k == 1 ? 3 : 0);
		EQ(EVENT(s, kvm_mmu_pagetable_walk), 3);
	}
	return kvm_check(s->kvm);
}

static void writes_to_a_root_table_are_emulated(void)
{
	EQ(scene(&long64_4k, write_pml4), 0);
}

/* A leaf entry of the guest's is redirected: after INVLPG the new frame is what a store reaches,
 * and nothing is left of the old mapping. */
static int remap(struct scene *s, struct task *t)
{
	uint64_t bitmap[8];

	EQ(scene_setup(s), 0);
	EQ(scene_write(s, SCENE_TEST, 4, 1), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 1);
	EQ(bitmap[0], 1);
	EQ(scene_write(s, 0x21000, 8, (SCENE_TEST + (16 << 12)) | 0x67), 0);
	EQ(kvm_read_guest_u64(s->kvm, 0x21000), (SCENE_TEST + (16 << 12)) | 0x67);
	EQ(vcpu_invlpg(s->vcpu[0], SCENE_TEST), 0);
	EQ(scene_write(s, SCENE_TEST, 4, 1), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 1);
	EQ(bitmap[0], 1ull << 16);
	return kvm_check(s->kvm);
}

static void a_guest_entry_can_be_redirected(void)
{
	struct scene_opts o = long64_4k;

	o.slot_flags = KVM_MEM_LOG_DIRTY_PAGES;
	EQ(scene(&o, remap), 0);
	o.personality = "amd";
	EQ(scene(&o, remap), 0);
	o.paging = PAGING_TDP;
	EQ(scene(&o, remap), 0);
}

/* Three emulated writes to a table that no walk passes through make it an ordinary page. */
static int flood(struct scene *s, struct task *t)
{
	(void)t;
	EQ(scene_setup(s), 0);
	kvm_write_guest_u64(s->kvm, 0x13000, 0x21000 | 0x27); /* 1 GiB up: the test pages again */
	EQ(scene_read(s, 0x40000000), 0);
	for (int k = 1; k <= 4; k++) {
		scene_mark(s);
		EQ(scene_write(s, 0x13000 + (8 + k) * 8, 8, 0), 0);
		EQ(scene_out(s), 0);
		EQ(STAT(s, mmu_pte_write), k <= 3);
		EQ(STAT(s, mmu_flooded), k == 3);
		EQ(STAT(s, mmu_shadow_zapped), k == 3);
		EQ(STAT(s, pf_emulate), k <= 3);
		EQ(STAT(s, pf_fixed), k == 4);
	}
	return kvm_check(s->kvm);
}

static void write_flooding_zaps_a_table(void)
{
	EQ(scene(&long64_4k, flood), 0);
}

static int slots(struct scene *s, struct task *t)
{
	struct kvm_memory_region r = {.slot = 2, .base_gfn = 0x10100, .npages = 16};

	EQ(kvm_set_user_memory_region(t, s->kvm, &r), KVMSIM_EINVAL); /* overlaps slot 1 */
	r.base_gfn = 0x20000;
	r.slot = 64;
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), KVMSIM_EINVAL);
	r.slot = 2;
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	r.npages = 32;
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), KVMSIM_EINVAL);
	EQ(scene_loop(s, true, 0, 8), 0);
	EQ(kvm_stat(s->kvm, STAT_pages_4k) > 0, 1);
	r.npages = 0;
	scene_mark(s);
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	EQ(EVENT(s, kvm_mmu_zap_all_fast), 1);
	/* The current root stays until the vCPU lets go of it. */
	EQ(kvm_stat(s->kvm, STAT_pages_4k), 0);
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), KVMSIM_EINVAL);
	EQ(scene_loop(s, true, 0, 8), 0);
	return kvm_check(s->kvm);
}

static void memslots(void)
{
	EQ(scene(&long64_4k, slots), 0);
	EQ(scene(&flat32, slots), 0);
	EQ(scene(&tdp, slots), 0);
}

static int device(struct scene *s, struct task *t)
{
	uint64_t value;

	(void)t;
	EQ(scene_setup(s), 0);
	for (int k = 0; k < 2; k++) {
		scene_mark(s);
		EQ(vcpu_read(s->vcpu[0], 0xe0000000, 4, &value), VCPU_USERSPACE);
		EQ(vcpu_exit_reason(s->vcpu[0]), KVM_EXIT_MMIO);
		EQ(scene_out(s), 0);
		EQ(STAT(s, pf_taken), 1);
		EQ(STAT(s, pf_emulate), 1);
		EQ(STAT(s, mmio_exits), 1);
		EQ(STAT(s, mmu_cache_miss), 0);
		EQ(EVENT(s, kvm_mmio), 2);
	}
	return kvm_check(s->kvm);
}

static void a_device_leaves_nothing_behind(void)
{
	struct scene_opts o[] = {long64_2m, flat32, tdp};

	for (unsigned i = 0; i < 3; i++) {
		o[i].spte = "vcpu-cache";
		EQ(scene(&o[i], device), 0);
	}
}

static int no_handler(struct scene *s, struct task *t)
{
	(void)t;
	return scene_read(s, 0x40000000);
}

static void a_guests_own_fault_is_an_error(void)
{
	struct scene_opts o = long64_4k;

	EQ(scene(&o, no_handler), KVMSIM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "0x40000000"));
	o.paging = PAGING_TDP;
	EQ(scene(&o, no_handler), KVMSIM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "0x40000000"));
}

static CU_TestInfo tests[] = {
	{"setup_of_a_paging_guest", setup_of_a_paging_guest},
	{"setup_of_a_flat_guest", setup_of_a_flat_guest},
	{"setup_under_nested_paging", setup_under_nested_paging},
	{"populating_prefetches_groups_of_8", populating_prefetches_groups_of_8},
	{"absent_host_pages_are_not_prefetched", absent_host_pages_are_not_prefetched},
	{"dirty_logging", dirty_logging},
	{"writes_to_a_root_table_are_emulated", writes_to_a_root_table_are_emulated},
	{"a_guest_entry_can_be_redirected", a_guest_entry_can_be_redirected},
	{"write_flooding_zaps_a_table", write_flooding_zaps_a_table},
	{"memslots", memslots},
	{"a_device_leaves_nothing_behind", a_device_leaves_nothing_behind},
	{"a_guests_own_fault_is_an_error", a_guests_own_fault_is_an_error},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("mmu", tests)
