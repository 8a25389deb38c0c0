// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/counts.h"
#include "model/mmu/check.h"
#include "model/mmu/gmem.h"
#include "model/mmu/kaddr.h"
#include "model/mmu/memslot.h"
#include "model/mmu/rmap/rmap.h"
#include "model/mmu/tlb.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

/* Limits, chains and the small parts that the MMU is made of. */
#define EQ CU_ASSERT_EQUAL

/* ---- many sptes on one frame ---- */

#define ALIASES 40

/* 40 guest entries map one page: to protect it, 40 sptes in three descriptors of 14 are visited. */
static int aliases(struct scene *s, struct task *t)
{
	const struct ledger *l = sim_ledger(s->sim);
	uint64_t bitmap[16], before[2];

	EQ(scene_setup(s), 0);
	for (uint64_t i = 0; i < 64; i++)
		kvm_write_guest_u64(s->kvm, 0x21000 + i * 8, i < ALIASES ? SCENE_TEST | 0x67 : 0);
	for (uint64_t i = 0; i < ALIASES; i++)
		EQ(scene_write(s, SCENE_TEST + (i << 12), 4, i), 0);
	EQ(kvm_stat(s->kvm, STAT_pages_4k), 24 + ALIASES);
	EQ(kvm_stat(s->kvm, STAT_max_mmu_rmap_size), ALIASES - 1);
	before[0] = ledger_sum_count(l, 0, ACT_get_dirty_log, COUNT_rmap_spte).n;
	before[1] = ledger_sum_count(l, 0, ACT_get_dirty_log, COUNT_rmap_desc).n;
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 1);
	EQ(ledger_sum_count(l, 0, ACT_get_dirty_log, COUNT_rmap_spte).n - before[0], ALIASES);
	EQ(ledger_sum_count(l, 0, ACT_get_dirty_log, COUNT_rmap_desc).n - before[1], 3);
	EQ(kvm_check(s->kvm), 0);
	/* A store through any of them is reported under the one frame. */
	EQ(scene_write(s, SCENE_TEST + (17 << 12), 4, 1), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 1);
	EQ(bitmap[0], 1);
	return kvm_check(s->kvm);
}

static void many_entries_map_one_page(void)
{
	struct scene_opts o = {.pte = SCENE_4K,
			       .slot_pages = 1024,
			       .slot_flags = KVM_MEM_LOG_DIRTY_PAGES,
			       .check = true};

	EQ(scene(&o, aliases), 0);
}

#define CHAIN (3 * PTE_LIST_EXT)

/* What is left of @chain: numbers @first to @last - 1, from *@it on. Returns what comes next. */
static uint64_t *expect_sptes(struct task *t, struct kvm *kvm, struct rmap_iter *it,
			      uint64_t *sptep, uint64_t *chain, unsigned first, unsigned last)
{
	for (; first < last; first++, sptep = sptep ? rmap_next(t, kvm, it) : NULL)
		CU_ASSERT_PTR_EQUAL(sptep, &chain[first]);
	return sptep;
}

/* Three full descriptors: the one in the middle goes when it is empty, then the last, then the
 * first; the sptes of the others stay. */
static int three_descriptors(struct scene *s, struct task *t)
{
	struct kvm_rmap_head head = {0};
	struct rmap_iter it;
	uint64_t chain[CHAIN], *sptep;

	EQ(mmu_lock(t, s->kvm, "test"), 0);
	for (long i = 0; i < CHAIN; i++)
		EQ(pte_list_add(t, s->kvm, &head, 0, &chain[i]), i);
	for (unsigned i = PTE_LIST_EXT; i < 2 * PTE_LIST_EXT; i++)
		pte_list_remove(t, s->kvm, &head, 0, &chain[i]);
	sptep = rmap_first(t, s->kvm, &head, &it);
	sptep = expect_sptes(t, s->kvm, &it, sptep, chain, 0, PTE_LIST_EXT);
	sptep = expect_sptes(t, s->kvm, &it, sptep, chain, 2 * PTE_LIST_EXT, CHAIN);
	CU_ASSERT_PTR_NULL(sptep);
	for (unsigned i = 2 * PTE_LIST_EXT; i < CHAIN; i++)
		pte_list_remove(t, s->kvm, &head, 0, &chain[i]);
	sptep = rmap_first(t, s->kvm, &head, &it);
	CU_ASSERT_PTR_NULL(expect_sptes(t, s->kvm, &it, sptep, chain, 0, PTE_LIST_EXT));
	for (unsigned i = 0; i < PTE_LIST_EXT; i++)
		pte_list_remove(t, s->kvm, &head, 0, &chain[i]);
	EQ(head.val, 0);
	mmu_unlock(t, s->kvm);
	return 0;
}

static void a_descriptor_leaves_the_middle_of_a_chain(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 64};

	EQ(scene(&o, three_descriptors), 0);
}

/* The kernel drops a chain when a spte is added to more than 1000: here to 1001 of 1024. */
static int too_many(struct scene *s, struct task *t)
{
	uint64_t flushes;

	(void)t;
	EQ(scene_setup(s), 0);
	for (uint64_t i = 0; i < 1024; i++)
		kvm_write_guest_u64(s->kvm, 0x21000 + i * 8, SCENE_TEST | 0x67);
	for (uint64_t i = 0; i < 1001; i++) {
		flushes = kvm_stat(s->kvm, STAT_remote_tlb_flush_requests);
		EQ(scene_read(s, SCENE_TEST + (i << 12)), 0);
		EQ(kvm_stat(s->kvm, STAT_remote_tlb_flush_requests), flushes);
	}
	EQ(kvm_stat(s->kvm, STAT_pages_4k), 24 + 1001);
	EQ(kvm_check(s->kvm), 0);
	flushes = kvm_stat(s->kvm, STAT_remote_tlb_flush_requests);
	/* The faulting spte goes with the others; the instruction faults once more. */
	EQ(scene_read(s, SCENE_TEST + (1001 << 12)), 0);
	EQ(kvm_stat(s->kvm, STAT_remote_tlb_flush_requests), flushes + 1);
	EQ(kvm_stat(s->kvm, STAT_pages_4k), 24 + 1);
	return kvm_check(s->kvm);
}

static void a_chain_that_grows_too_long_is_dropped(void)
{
	struct scene_opts o = {.pte = SCENE_4K,
			       .slot_pages = 1024,
			       .slot_flags = KVM_MEM_LOG_DIRTY_PAGES, /* no prefetch: one by one */
			       .check = true};

	EQ(scene(&o, too_many), 0);
}

/* ---- few shadow pages ---- */

/* One page in each of @n large ones is read, as the reference's recycle case does. */
static int read_sparse(struct scene *s, uint64_t n)
{
	int r = 0;

	vcpu_set_regs(s->vcpu[0]);
	for (uint64_t i = 0; i < n && !r; i++) {
		r = scene_read(s, SCENE_LIST + i * 4);
		r = r ? r : scene_read(s, SCENE_TEST + (i << 21));
	}
	return r ? r : scene_out(s);
}

static int recycle(struct scene *s, struct task *t)
{
	static const uint64_t rounds[][4] = {
		{32, 0, 0, 0}, {48, 0, 0, 0}, {56, 0, 0, 0}, {64, 21, 63, 84}};

	EQ(kvm_set_nr_mmu_pages(t, s->kvm, 63), KVMSIM_EINVAL);
	EQ(kvm_set_nr_mmu_pages(t, s->kvm, 64), 0);
	EQ(scene_setup(s), 0);
	for (int i = 0; i < 4; i++)
		for (int k = 1; k <= 3; k++) {
			uint64_t before = kvm_stat(s->kvm, STAT_mmu_recycled);

			EQ(read_sparse(s, rounds[i][0]), 0);
			EQ(kvm_stat(s->kvm, STAT_mmu_recycled) - before, rounds[i][k]);
			EQ(kvm_check(s->kvm), 0);
		}
	return 0;
}

/* Batches of 21, oldest first: 64 pages and 4 tables need more than 64 (the kernel's figures). */
static void recycling(void)
{
	struct scene_opts o = {.pte = SCENE_2M, .slot_pages = 65536, .check = true};

	EQ(scene(&o, recycle), 0);
}

/* ---- sizes that nobody has ---- */

static int absurd(struct scene *s, struct task *t)
{
	const uint64_t end = 1ull << ((s->o->paging == PAGING_TDP ? 48 : 52) - 12);
	const struct {
		uint64_t base, npages;
	} refused[] = {
		{1ull << 20, 1ull << 31}, /* KVM takes fewer than 2^31 pages */
		{1ull << 20, 1ull << 40},
		{1ull << 20, UINT64_MAX},
		{UINT64_MAX, 1},
		{UINT64_MAX - 7, 8},
		{end, 1},
		{end - 1, 2},
	};
	struct kvm_memory_region r = {.slot = 2, .host_populated = true};
	struct kvm_vcpu *v;
	uint64_t value;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		r.base_gfn = refused[i].base;
		r.npages = refused[i].npages;
		EQ(kvm_set_user_memory_region(t, s->kvm, &r), KVMSIM_EINVAL);
	}
	r.base_gfn = end - 1;
	r.npages = 1;
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	for (unsigned i = 1; i < KVM_MAX_VCPUS; i++)
		EQ(kvm_create_vcpu(s->kvm, &v), 0);
	for (unsigned i = KVM_MAX_VCPUS; i < 4096; i++)
		EQ(kvm_create_vcpu(s->kvm, &v), KVMSIM_EINVAL);
	EQ(scene_setup(s), 0);
	EQ(vcpu_gap(s->vcpu[0], UINT32_MAX), 0);
	/* Not canonical; past 4 GiB without paging. */
	EQ(vcpu_read(s->vcpu[0], s->o->pte == SCENE_FLAT ? 1ull << 32 : 1ull << 47, 4, &value),
	   KVMSIM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "no address that its guest can have"));
	return kvm_check(s->kvm);
}

static void absurd_sizes_are_refused(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 64, .check = true};

	EQ(scene(&o, absurd), 0);
	o.pte = SCENE_FLAT;
	EQ(scene(&o, absurd), 0);
	o.pte = SCENE_4K;
	o.paging = PAGING_TDP;
	EQ(scene(&o, absurd), 0);
}

/* ---- locks ---- */

static int zap_without_lock(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	EQ(scene_loop(s, true, 0, 8), 0);
	s->kvm->backend->zap_gfn(t, s->kvm, id_to_memslot(s->kvm, 1), SCENE_TEST >> 12);
	return 0;
}

static void rmaps_need_mmu_lock(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 64, .check = true};

	EQ(scene(&o, zap_without_lock), KVMSIM_ECHECK);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "without mmu_lock"));
	o.preset = "2.6.36";
	EQ(scene(&o, zap_without_lock), KVMSIM_ECHECK);
	o.preset = "6.1-tdp";
	o.paging = PAGING_TDP;
	EQ(scene(&o, zap_without_lock), KVMSIM_ECHECK);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "without mmu_lock"));
	o.check = false;
	EQ(scene(&o, zap_without_lock), 0);
}

/* ---- what the back end offers to policies ---- */

static int backend_ops(struct scene *s, struct task *t)
{
	struct kvm_memory_slot *slot;
	const struct mmu_backend *b = s->kvm->backend;
	uint64_t spte = 0, *sptep;
	gfn_t gfn = SCENE_TEST >> 12;

	EQ(scene_setup(s), 0);
	EQ(scene_loop(s, true, 0, 16), 0);
	slot = id_to_memslot(s->kvm, 1);
	EQ(mmu_lock(t, s->kvm, "test"), 0);
	sptep = b->walk_lockless(s->vcpu[0], SCENE_TEST + 0x3000, &spte);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sptep);
	EQ(b->spte_gfn(t, s->kvm, sptep), gfn + 3);
	EQ(spte & (PT_WRITABLE | PT_DIRTY), PT_WRITABLE | PT_DIRTY);
	b->clear_dirty_masked(t, s->kvm, slot, gfn, 1u << 3);
	EQ(*sptep & (PT_WRITABLE | PT_DIRTY), PT_WRITABLE);
	EQ(b->write_protect_gfn(t, s->kvm, slot, gfn + 3), true);
	EQ(*sptep & (PT_WRITABLE | SPTE_MMU_WRITABLE), SPTE_MMU_WRITABLE);
	EQ(b->write_protect_gfn(t, s->kvm, slot, gfn + 3), false);
	b->write_protect_masked(t, s->kvm, slot, gfn, 0x8021); /* pages 0, 5 and 15 */
	CU_ASSERT_PTR_NOT_NULL(b->walk_lockless(s->vcpu[0], SCENE_TEST + 0x5000, &spte));
	EQ(spte & PT_WRITABLE, 0);
	CU_ASSERT_PTR_NOT_NULL(b->walk_lockless(s->vcpu[0], SCENE_TEST + 0x4000, &spte));
	EQ(spte & PT_WRITABLE, PT_WRITABLE);
	mmu_unlock(t, s->kvm);
	EQ(b->clear_dirty_slot(t, s->kvm, slot), 1);
	CU_ASSERT_PTR_NOT_NULL(b->walk_lockless(s->vcpu[0], SCENE_TEST + 0x4000, &spte));
	EQ(spte & PT_DIRTY, 0);
	EQ(b->protect_slot(t, s->kvm, slot, PG_LEVEL_2M), 0);
	EQ(b->protect_slot(t, s->kvm, slot, PG_LEVEL_4K), 1);
	EQ(b->protect_slot(t, s->kvm, slot, PG_LEVEL_4K), 0);
	EQ(b->zap_collapsible(t, s->kvm, slot), 0);
	EQ(mmu_lock(t, s->kvm, "test"), 0);
	sptep = b->walk_lockless(s->vcpu[0], SCENE_TEST + 0x3000, &spte);
	EQ(b->zap_gfn(t, s->kvm, slot, gfn + 3), true);
	EQ(*sptep, 0);
	EQ(b->zap_gfn(t, s->kvm, slot, gfn + 3), false);
	mmu_unlock(t, s->kvm);
	kvm_flush_remote_tlbs(t, s->kvm);
	EQ(kvm_check(s->kvm), 0);
	EQ(scene_loop(s, true, 0, 16), 0);
	return kvm_check(s->kvm);
}

static void backend_operations(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 64, .personality = "amd"};

	EQ(scene(&o, backend_ops), 0);
	o.paging = PAGING_TDP;
	EQ(scene(&o, backend_ops), 0);
	o.preset = "6.1-tdp";
	EQ(scene(&o, backend_ops), 0);
	o.preset = NULL;
	o.paging = PAGING_SHADOW;
	o.pte = SCENE_FLAT;
	EQ(scene(&o, backend_ops), 0);
}

/* The checkers find what is wrong: one spte is tampered with at a time. */
static int tampered(struct scene *s, struct task *t)
{
	uint64_t spte = 0, *sptep;

	(void)t;
	EQ(scene_setup(s), 0);
	EQ(scene_loop(s, true, 0, 16), 0);
	EQ(kvm_check(s->kvm), 0);
	sptep = s->kvm->backend->walk_lockless(s->vcpu[0], SCENE_TEST, &spte);
	*sptep = spte + PAGE_SIZE; /* another frame */
	EQ(kvm_check(s->kvm), KVMSIM_ECHECK);
	*sptep = 0; /* gone, but still in its rmap */
	EQ(kvm_check(s->kvm), KVMSIM_ECHECK);
	*sptep = spte;
	EQ(kvm_check(s->kvm), 0);
	EQ(scene_write(s, SCENE_TEST, 4, 0), 0);
	EQ(kvm_check(s->kvm), 0);
	*sptep = spte & ~PT_WRITABLE; /* the TLB still grants it */
	EQ(kvm_check(s->kvm), KVMSIM_ECHECK);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "cached writable"));
	*sptep = spte;
	kvm_write_guest_u64(s->kvm, 0x21000, 0); /* behind KVM's back */
	EQ(kvm_check(s->kvm), KVMSIM_ECHECK);
	return 0;
}

static void checkers_can_fail(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 64, .check = true};

	EQ(scene(&o, tampered), 0);
}

/* ---- parts ---- */

static void guest_memory(void)
{
	struct gmem g = {0};

	EQ(gmem_read(&g, 0x1000, 8), 0);
	CU_ASSERT_TRUE(gmem_write(&g, 0x1008, 8, 7, false)); /* there is no page: dropped */
	EQ(gmem_read(&g, 0x1008, 8), 0);
	for (uint64_t i = 0; i < 5000; i++)
		CU_ASSERT_TRUE(gmem_write(&g, i * i << 12, 8, i + 1, true));
	for (uint64_t i = 0; i < 5000; i++)
		EQ(gmem_read(&g, i * i << 12, 8), i + 1);
	EQ(g.used, 5000);
	CU_ASSERT_TRUE(gmem_write(&g, 3, 2, 0xbeef, false));
	EQ(gmem_read(&g, 0, 8), 0xbeef000001);
	gmem_free(&g);
	EQ(g.capacity, 0);
}

static void translations(void)
{
	static struct vcpu_tlb tlb;

	tlb_init(&tlb, 16);
	CU_ASSERT_PTR_NULL(tlb_lookup(&tlb, 0, 0));
	tlb_fill(&tlb, 0x5123, 0x77, TLB_READ | TLB_WPERM);
	EQ(tlb_gfn(tlb_lookup(&tlb, 0x5fff, TLB_READ)), 0x77);
	CU_ASSERT_PTR_NULL(tlb_lookup(&tlb, 0x5000, TLB_READ | TLB_WRITE));
	CU_ASSERT_PTR_NULL(tlb_lookup(&tlb, 0x15000, TLB_READ)); /* same set */
	tlb_flush_gva(&tlb, 0x15000);
	CU_ASSERT_PTR_NOT_NULL(tlb_lookup(&tlb, 0x5000, TLB_READ));
	tlb_flush_gva(&tlb, 0x5abc);
	CU_ASSERT_PTR_NULL(tlb_lookup(&tlb, 0x5000, TLB_READ));
	/* When the generations are used up, no old entry comes back to life. */
	tlb_fill(&tlb, 0x5000, 1, TLB_READ);
	tlb.generation = (1ull << TLB_GEN_BITS) - 1;
	tlb_fill(&tlb, 0x6000, 2, TLB_READ);
	tlb_flush(&tlb);
	EQ(tlb.generation, 1);
	CU_ASSERT_PTR_NULL(tlb_lookup(&tlb, 0x5000, TLB_READ));
	CU_ASSERT_PTR_NULL(tlb_lookup(&tlb, 0x6000, TLB_READ));
}

/* A slot that begins and ends inside large pages has a large page entry for each it touches. */
static void slot_geometry(void)
{
	const struct kvm_memory_slot s = {.base_gfn = 0x1ff, .npages = 0x202};

	EQ(memslot_lpages(&s, PG_LEVEL_4K), 0x202);
	EQ(memslot_lpages(&s, PG_LEVEL_2M), 3);
	EQ(memslot_lpages(&s, PG_LEVEL_1G), 1);
	EQ(memslot_index(&s, 0x1ff, PG_LEVEL_2M), 0);
	EQ(memslot_index(&s, 0x200, PG_LEVEL_2M), 1);
	EQ(memslot_index(&s, 0x400, PG_LEVEL_2M), 2);
	EQ(memslot_bitmap_words(&s), 9);
}

static void addresses(void)
{
	struct kaddr k;
	uint64_t a, b;

	kaddr_init(&k);
	a = kaddr_pages(&k, 1);
	b = kaddr_pages(&k, 4097);
	EQ(b - a, 4096);
	EQ(kaddr_pages(&k, 1) - b, 8192);
	a = kaddr_object(&k, 1000); /* four in a page, none across two */
	EQ(a % 4096, 0);
	EQ(kaddr_object(&k, 1000) - a, 1000);
	EQ(kaddr_object(&k, 128) % 4096, 0);
	EQ(kaddr_object(&k, 1000) - a, 2000);
	EQ(kaddr_object(&k, 1000) - a, 3000);
	EQ(kaddr_object(&k, 1000) % 4096, 0);
}

static CU_TestInfo tests[] = {
	{"many_entries_map_one_page", many_entries_map_one_page},
	{"a_descriptor_leaves_the_middle_of_a_chain", a_descriptor_leaves_the_middle_of_a_chain},
	{"a_chain_that_grows_too_long_is_dropped", a_chain_that_grows_too_long_is_dropped},
	{"recycling", recycling},
	{"absurd_sizes_are_refused", absurd_sizes_are_refused},
	{"rmaps_need_mmu_lock", rmaps_need_mmu_lock},
	{"backend_operations", backend_operations},
	{"checkers_can_fail", checkers_can_fail},
	{"guest_memory", guest_memory},
	{"translations", translations},
	{"slot_geometry", slot_geometry},
	{"addresses", addresses},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("mmu_limits", tests)
