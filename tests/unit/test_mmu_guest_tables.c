// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/counts.h"
#include "model/mmu/memslot.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

/*
 * What the guest's own tables make of a shadow MMU: switches of the root, accessed and dirty bits.
 * The numbers are Linux 6.1's (tracepoints and KVM_GET_STATS_FD, recorded under QEMU).
 */
#define EQ CU_ASSERT_EQUAL

#define STAT(s, n)  scene_stat(s, STAT_##n)
#define EVENT(s, n) scene_event(s, TRACE_##n)

static void copy_page(struct scene *s, uint64_t to, uint64_t from)
{
	for (uint64_t i = 0; i < 4096; i += 8)
		kvm_write_guest_u64(s->kvm, to + i, kvm_read_guest_u64(s->kvm, from + i));
}

static int mov_cr3(struct scene *s, uint64_t cr3)
{
	int r;

	do {
		r = vcpu_fetch(s->vcpu[0], SCENE_CODE);
		r = r ? r : vcpu_mov_cr3(s->vcpu[0], cr3);
	} while (r == VCPU_RESTART);
	return r;
}

/* ---- roots ---- */

static uint64_t root[6];
static unsigned n_roots;

/* Every other root is a page of its own with the first one's entries. */
static void share_tables(struct scene *s)
{
	root[0] = SCENE_PML4;
	for (unsigned k = 1; k < n_roots; k++) {
		root[k] = 0x70000 + k * 0x5000;
		copy_page(s, root[k], SCENE_PML4);
	}
}

/* Or has a whole set of tables of its own. */
static void separate_tables(struct scene *s)
{
	share_tables(s);
	for (unsigned k = 1; k < n_roots; k++) {
		uint64_t b = root[k];

		kvm_write_guest_u64(s->kvm, b, (b + 0x1000) | 0x27);
		copy_page(s, b + 0x1000, 0x11000);
		kvm_write_guest_u64(s->kvm, b + 0x1000, (b + 0x2000) | 0x27);
		copy_page(s, b + 0x2000, 0x12000);
		kvm_write_guest_u64(s->kvm, b + 0x2000, (b + 0x3000) | 0x27);
		copy_page(s, b + 0x3000, 0x20000);
		kvm_write_guest_u64(s->kvm, b + 0x2000 + 128 * 8, (b + 0x4000) | 0x27);
		copy_page(s, b + 0x4000, 0x21000);
	}
}

static int warm(struct scene *s)
{
	int r = scene_setup(s);

	for (uint64_t i = 0; i < 8 && !r; i++)
		r = scene_read(s, SCENE_TEST + (i << 12));
	return r ? r : scene_out(s);
}

/* @n times: mov cr3, a read through the list and of the first test page; then OUT. */
static int cycle(struct scene *s, unsigned n)
{
	int r = 0;

	scene_mark(s);
	for (unsigned i = 1; i <= n && !r; i++) {
		r = mov_cr3(s, root[i % n_roots]);
		r = r ? r : scene_read(s, SCENE_LIST);
		r = r ? r : scene_read(s, SCENE_TEST);
	}
	return r ? r : scene_out(s);
}

static int switch_2_shared(struct scene *s, struct task *t)
{
	(void)t;
	n_roots = 2;
	share_tables(s);
	EQ(warm(s), 0);
	EQ(cycle(s, 2), 0);
	EQ(STAT(s, mmu_cache_miss), 1);
	EQ(STAT(s, pf_taken), 1);
	EQ(STAT(s, pf_fixed), 1);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	EQ(STAT(s, tlb_flush), 3);
	EQ(STAT(s, insn_emulation), 2);
	EQ(EVENT(s, kvm_mmu_get_page), 2);
	EQ(EVENT(s, kvm_mmu_pagetable_walk), 3);
	EQ(EVENT(s, kvm_mmu_set_spte), 1);
	EQ(cycle(s, 50), 0);
	EQ(STAT(s, tlb_flush), 50);
	EQ(STAT(s, insn_emulation), 50);
	EQ(STAT(s, pf_taken), 0);
	EQ(EVENT(s, kvm_mmu_get_page), 0);
	EQ(EVENT(s, kvm_mmu_pagetable_walk), 50);
	return kvm_check(s->kvm);
}

/* The first refault of the code page drops the spte's D bit and is fixed; after that nothing is
 * left to change, and two are spurious. */
static int switch_4_shared(struct scene *s, struct task *t)
{
	(void)t;
	n_roots = 4;
	share_tables(s);
	EQ(warm(s), 0);
	EQ(cycle(s, 4), 0);
	EQ(STAT(s, mmu_cache_miss), 3);
	EQ(STAT(s, pf_taken), 3);
	EQ(STAT(s, pf_fixed), 1);
	EQ(STAT(s, pf_spurious), 2);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	EQ(STAT(s, tlb_flush), 5);
	EQ(EVENT(s, kvm_mmu_get_page), 6);
	EQ(EVENT(s, kvm_mmu_set_spte), 1);
	EQ(cycle(s, 50), 0); /* the current root and three before it are kept */
	EQ(STAT(s, tlb_flush), 50);
	EQ(STAT(s, pf_taken), 0);
	EQ(EVENT(s, kvm_mmu_get_page), 0);
	return kvm_check(s->kvm);
}

static int switch_4_separate(struct scene *s, struct task *t)
{
	(void)t;
	n_roots = 4;
	separate_tables(s);
	EQ(warm(s), 0);
	EQ(cycle(s, 4), 0);
	EQ(STAT(s, mmu_cache_miss), 15);
	EQ(kvm_stat(s->kvm, STAT_pages_4k), 32 + 72);
	EQ(kvm_stat(s->kvm, STAT_max_mmu_rmap_size), 3);
	EQ(STAT(s, pf_taken), 9);
	EQ(STAT(s, pf_fixed), 9);
	EQ(STAT(s, tlb_flush), 4);
	EQ(EVENT(s, kvm_mmu_get_page), 15);
	EQ(EVENT(s, kvm_mmu_set_spte), 72);
	EQ(EVENT(s, kvm_mmu_pagetable_walk), 13);
	return kvm_check(s->kvm);
}

/* From the fifth root on each switch looks its root up again. */
static int switch_5_shared(struct scene *s, struct task *t)
{
	(void)t;
	n_roots = 5;
	share_tables(s);
	EQ(warm(s), 0);
	EQ(cycle(s, 5), 0);
	EQ(cycle(s, 50), 0);
	EQ(STAT(s, pf_taken), 0);
	EQ(EVENT(s, kvm_mmu_get_page), 50);
	EQ(STAT(s, mmu_cache_miss), 0);
	return kvm_check(s->kvm);
}

static void switching_roots(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 512, .check = true};

	EQ(scene(&o, switch_2_shared), 0);
	EQ(scene(&o, switch_4_shared), 0);
	EQ(scene(&o, switch_4_separate), 0);
	EQ(scene(&o, switch_5_shared), 0);
}

/* ---- accessed and dirty bits ---- */

/* Clears A and D in every table. */
static void clear_ad(struct scene *s)
{
	for (uint64_t gpa = SCENE_PML4; gpa < 0x22000; gpa += 8) {
		uint64_t pte = kvm_read_guest_u64(s->kvm, gpa);

		if (pte & 1)
			kvm_write_guest_u64(s->kvm, gpa, pte & ~0x60ull);
	}
}

static int accessed_dirty_4k(struct scene *s, struct task *t)
{
	(void)t;
	clear_ad(s);
	scene_mark(s);
	EQ(scene_setup(s), 0);
	EQ(STAT(s, pf_taken), 17); /* an entry without A is not prefetched */
	EQ(EVENT(s, kvm_mmu_set_spte), 17);
	EQ(s->set_spte_ro - s->base_ro, 17);
	EQ(EVENT(s, kvm_mmu_set_accessed_bit), 20);
	EQ(EVENT(s, kvm_mmu_set_dirty_bit), 0);
	scene_mark(s);
	EQ(scene_loop(s, false, 0, 64), 0);
	EQ(STAT(s, pf_taken), 64);
	EQ(s->set_spte_ro - s->base_ro, 64);
	EQ(EVENT(s, kvm_mmu_set_accessed_bit), 65);
	EQ(kvm_read_guest_u64(s->kvm, 0x21000) & 0x60, 0x20);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 64), 0);
	EQ(STAT(s, pf_taken), 64);
	EQ(STAT(s, pf_fixed), 64);
	EQ(EVENT(s, kvm_mmu_set_dirty_bit), 64);
	EQ(EVENT(s, kvm_mmu_set_accessed_bit), 0);
	EQ(EVENT(s, kvm_mmu_set_spte), 64);
	EQ(s->set_spte_ro - s->base_ro, 0);
	EQ(kvm_read_guest_u64(s->kvm, 0x21000) & 0x60, 0x60);
	scene_mark(s);
	EQ(scene_loop(s, true, 0, 64), 0);
	EQ(STAT(s, pf_taken), 0);
	scene_mark(s);
	EQ(scene_loop(s, true, 64, 128), 0);
	EQ(STAT(s, pf_taken), 64);
	EQ(EVENT(s, kvm_mmu_set_accessed_bit), 64);
	EQ(EVENT(s, kvm_mmu_set_dirty_bit), 64);
	return kvm_check(s->kvm);
}

/* Below a large entry the neighbours come along, whatever its bits were. */
static int accessed_dirty_2m(struct scene *s, struct task *t)
{
	(void)t;
	clear_ad(s);
	EQ(scene_setup(s), 0);
	scene_mark(s);
	EQ(scene_loop(s, true, 64, 128), 0);
	EQ(STAT(s, pf_taken), 8);
	EQ(EVENT(s, kvm_mmu_set_dirty_bit), 1);
	return kvm_check(s->kvm);
}

/* Under nested paging the CPU sets the bits, KVM sees nothing of it. */
static int accessed_dirty_nested(struct scene *s, struct task *t)
{
	(void)t;
	clear_ad(s);
	EQ(scene_setup(s), 0);
	EQ(scene_loop(s, false, 0, 1), 0);
	EQ(kvm_read_guest_u64(s->kvm, 0x21000) & 0x60, 0x20);
	EQ(scene_loop(s, true, 0, 1), 0);
	EQ(kvm_read_guest_u64(s->kvm, 0x21000) & 0x60, 0x60);
	EQ(kvm_read_guest_u64(s->kvm, 0x11000) & 0x60, 0x20);
	EQ(s->events[TRACE_kvm_mmu_set_accessed_bit], 0);
	return kvm_check(s->kvm);
}

static void accessed_and_dirty_bits(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 512, .check = true};

	EQ(scene(&o, accessed_dirty_4k), 0);
	o.paging = PAGING_TDP;
	EQ(scene(&o, accessed_dirty_nested), 0);
	o.paging = PAGING_SHADOW;
	o.pte = SCENE_2M;
	EQ(scene(&o, accessed_dirty_2m), 0);
}

/* The walks' own stores are logged, where the tables' slot is. */
static int logged_tables(struct scene *s, struct task *t)
{
	struct kvm_memory_region low = {
		.npages = 512, .flags = KVM_MEM_LOG_DIRTY_PAGES, .host_populated = true};
	uint64_t bitmap[8];

	EQ(scene_setup(s), 0);
	EQ(scene_read(s, SCENE_TEST), 0);
	for (uint64_t i = 0; i < 8; i++)
		kvm_write_guest_u64(s->kvm, 0x21000 + (8 + i) * 8,
				    (SCENE_TEST + ((8 + i) << 12)) | 7);
	EQ(kvm_set_user_memory_region(t, s->kvm, &low), 0);
	EQ(scene_read(s, SCENE_TEST + 0x8000), 0); /* sets A in the table at 0x21000 */
	EQ(kvm_get_dirty_log(t, s->kvm, 0, bitmap) >= 1, 1);
	EQ(bitmap[0] >> 0x21 & 1, 1);
	EQ(scene_write(s, SCENE_TEST + 0x9000, 4, 0), 0); /* A and D */
	EQ(kvm_get_dirty_log(t, s->kvm, 0, bitmap) >= 1, 1);
	EQ(bitmap[0] >> 0x21 & 1, 1);
	EQ(kvm_lost_stores(s->kvm), 0);
	return kvm_check(s->kvm);
}

static void tables_in_a_logged_slot(void)
{
	static const char *const cpus[] = {"tcg", "amd", "intel", "intel-haswell", "intel-nehalem"};
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 512, .check = true};

	for (int i = 0; i < 5; i++) {
		o.personality = cpus[i];
		o.paging = PAGING_SHADOW;
		EQ(scene(&o, logged_tables), 0);
		o.paging = PAGING_TDP;
		EQ(scene(&o, logged_tables), 0);
		o.preset = "6.1-tdp";
		EQ(scene(&o, logged_tables), 0);
		o.preset = NULL;
	}
}

/* ---- read-only entries ---- */

/* A store through a read-only entry is the guest's own fault, also when its page is mapped. */
static int read_only(struct scene *s, struct task *t)
{
	(void)t;
	kvm_write_guest_u64(s->kvm, 0x21000, SCENE_TEST | 0x65);
	EQ(scene_setup(s), 0);
	EQ(scene_read(s, SCENE_TEST), 0);
	EQ(s->last[TRACE_kvm_mmu_set_spte].writable, true); /* its neighbour, prefetched */
	EQ(kvm_check(s->kvm), 0);
	EQ(scene_write(s, SCENE_TEST + 0x1000, 4, 0), 0);
	EQ(scene_write(s, SCENE_TEST, 4, 0), KVMSIM_EINVAL);
	return 0;
}

static void read_only_entries(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 512, .check = true};

	EQ(scene(&o, read_only), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "0x10000000"));
}

/* The slot of the tables goes and comes back: what was shadowed is accounted for once. */
static int tables_go(struct scene *s, struct task *t)
{
	struct kvm_memory_region low = {.base_gfn = 0, .npages = 512, .host_populated = true};
	struct kvm_memory_region gone = {0};

	EQ(scene_setup(s), 0);
	EQ(id_to_memslot(s->kvm, 0)->write_track[SCENE_PML4 >> 12], 1);
	EQ(kvm_set_user_memory_region(t, s->kvm, &gone), 0);
	EQ(scene_read(s, SCENE_TEST), KVMSIM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "CR3"));
	EQ(kvm_set_user_memory_region(t, s->kvm, &low), 0);
	EQ(scene_read(s, SCENE_TEST), 0);
	EQ(id_to_memslot(s->kvm, 0)->write_track[SCENE_PML4 >> 12], 1);
	gone.slot = 1; /* another slot's end takes all shadow pages with it */
	gone.base_gfn = SCENE_TEST >> 12;
	EQ(kvm_set_user_memory_region(t, s->kvm, &gone), 0);
	EQ(id_to_memslot(s->kvm, 0)->write_track[SCENE_PML4 >> 12], 0);
	EQ(scene_read(s, SCENE_LIST), 0);
	EQ(id_to_memslot(s->kvm, 0)->write_track[SCENE_PML4 >> 12], 1);
	return kvm_check(s->kvm);
}

static void tables_slot_is_deleted_and_made_again(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 64, .check = true};

	EQ(scene(&o, tables_go), 0);
}

/* NX is reserved while EFER.NXE is 0: the kernel's prefetch stops at such an entry. */
static int nx_neighbour(struct scene *s, struct task *t)
{
	uint64_t before;

	(void)t;
	EQ(scene_setup(s), 0);
	kvm_write_guest_u64(s->kvm, 0x21000 + 3 * 8, (SCENE_TEST + 0x3000) | 0x67 | 1ull << 63);
	before = kvm_stat(s->kvm, STAT_pages_4k);
	EQ(scene_read(s, SCENE_TEST), 0);
	EQ(kvm_stat(s->kvm, STAT_pages_4k) - before, 3);
	return kvm_check(s->kvm);
}

static void prefetch_stops_at_reserved_bits(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 64, .check = true};

	EQ(scene(&o, nx_neighbour), 0);
}

/*
 * A page that the log made read-only may get W back by a fast page fault, without mmu_lock: when it
 * becomes a table that is shadowed, W and that right go, and the kernel flushes. A page that
 * nothing maps needs no flush.
 */
static int logged_page_becomes_a_table(struct scene *s, struct task *t)
{
	uint64_t bitmap[1];

	EQ(scene_setup(s), 0);
	EQ(scene_write(s, SCENE_TEST + (5 << 12), 4, 1), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 1);
	for (uint64_t i = 5; i < 7; i++) {
		kvm_write_guest_u64(s->kvm, SCENE_TEST + (i << 12), (SCENE_TEST + 0x9000) | 0x67);
		kvm_write_guest_u64(s->kvm, 0x12000 + (300 + i) * 8, SCENE_TEST | i << 12 | 0x27);
		scene_mark(s);
		EQ(scene_read(s, (300 + i) << 21), 0);
		EQ(STAT(s, pf_taken), 1);
		EQ(STAT(s, mmu_cache_miss), 1);
		EQ(STAT(s, remote_tlb_flush_requests), i == 5);
	}
	return kvm_check(s->kvm);
}

static void a_logged_page_becomes_a_table(void)
{
	struct scene_opts o = {.pte = SCENE_4K,
			       .slot_pages = 64,
			       .slot_flags = KVM_MEM_LOG_DIRTY_PAGES,
			       .check = true};

	EQ(scene(&o, logged_page_becomes_a_table), 0);
}

/*
 * A table leads to test pages at two addresses. The guest gives an entry that was not dirty another
 * frame, and stores by it without a flush: the fault puts the new frame in the old one's place. Its
 * flush is for the other address, which the CPU may have cached.
 */
static int replaced(struct scene *s, struct task *t)
{
	const uint64_t other = 200ull << 21, undirty = 0x27;
	uint64_t pte = 0x21000, value = 0;

	(void)t;
	kvm_write_guest_u64(s->kvm, 0x12000 + 200 * 8, pte | 0x27);
	for (uint64_t k = 0; k < 3; k++)
		kvm_write_guest_u64(s->kvm, pte + k * 8, (SCENE_TEST + (k << 12)) | undirty);
	EQ(scene_setup(s), 0);
	for (uint64_t k = 0; k < 3; k++) {
		uint64_t page = SCENE_TEST + ((20 + k) << 12), at = k << 12;

		EQ(scene_read(s, SCENE_TEST + at), 0);
		EQ(scene_read(s, other + at), 0);
		kvm_write_guest_u64(s->kvm, page + 8, 1 + k);
		EQ(scene_write(s, pte + k * 8, 8, page | undirty), 0);
		EQ(scene_read(s, other + at), 0);
		scene_mark(s);
		EQ(scene_write(s, SCENE_TEST + at, 4, k), 0);
		EQ(STAT(s, pf_taken), 1);
		EQ(STAT(s, remote_tlb_flush_requests), 1);
		EQ(STAT(s, tlb_flush), 1);
		EQ(vcpu_read(s->vcpu[0], other + at + 8, 4, &value), 0);
		EQ(value, 1 + k);
		EQ(kvm_check(s->kvm), 0);
	}
	return 0;
}

static void a_frame_is_replaced(void)
{
	static const char *const cpus[] = {"tcg", "amd", "intel"};

	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
		const struct scene_opts o = {
			.pte = SCENE_4K, .slot_pages = 64, .personality = cpus[i], .check = true};

		EQ(scene(&o, replaced), 0);
	}
}

static CU_TestInfo tests[] = {
	{"a_frame_is_replaced", a_frame_is_replaced},
	{"prefetch_stops_at_reserved_bits", prefetch_stops_at_reserved_bits},
	{"tables_slot_is_deleted_and_made_again", tables_slot_is_deleted_and_made_again},
	{"switching_roots", switching_roots},
	{"accessed_and_dirty_bits", accessed_and_dirty_bits},
	{"tables_in_a_logged_slot", tables_in_a_logged_slot},
	{"a_logged_page_becomes_a_table", a_logged_page_becomes_a_table},
	{"read_only_entries", read_only_entries},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("mmu_guest_tables", tests)
