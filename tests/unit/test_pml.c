// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The dirty policy `pml`. No machine here has a page-modification log: what is expected follows
 * from its description in Intel's SDM (volume 3, "Page-Modification Logging": 512 entries, one for
 * each D that a walk sets, an exit in place of the 513th) and from what KVM does at each exit; 512
 * pages per full exit are also what its authors give (Kai Huang, "KVM: VMX: Page Modification
 * Logging (PML) support", January 2015).
 */
#include <string.h>

#include "model/counts.h"
#include "model/mmu/mmu.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define EQ    CU_ASSERT_EQUAL
#define PAGES 2048
#define WORDS (PAGES / 64)
#define LOG   512

static uint64_t stat_base[N_KVM_STATS], count_base[N_COUNTS], bitmap[WORDS];

static uint64_t total(const struct scene *s, uint16_t count)
{
	return ledger_sum_count(sim_ledger(s->sim), LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, count)
		.n;
}

static void mark(const struct scene *s)
{
	for (int i = 0; i < N_KVM_STATS; i++)
		stat_base[i] = kvm_stat(s->kvm, (enum kvm_stat_id)i);
	for (uint16_t i = 0; i < N_COUNTS; i++)
		count_base[i] = total(s, i);
}
#define STAT(s, n)  (kvm_stat((s)->kvm, STAT_##n) - stat_base[STAT_##n])
#define COUNT(s, n) (total(s, COUNT_##n) - count_base[COUNT_##n])

/* On both back ends, of a guest without page tables, which has nothing else to log. */
static void on_both(const char *dirty, uint64_t pages, int (*body)(struct scene *s, struct task *t))
{
	struct scene_opts o = {.paging = PAGING_TDP,
			       .pte = SCENE_FLAT,
			       .slot_pages = pages,
			       .dirty = dirty,
			       .personality = "intel",
			       .n_vcpus = 2,
			       .check = true};

	EQ(scene(&o, body), 0);
	o.preset = "6.1-tdp";
	EQ(scene(&o, body), 0);
}

static bool tdp_mmu(const struct scene *s)
{
	return s->o->preset;
}

/* Stores to pages @first to @last - 1, with no exit of the guest's own between or after. */
static int stores(struct scene *s, uint64_t first, uint64_t last)
{
	int err = 0;

	for (uint64_t i = first; i < last && !err; i++)
		err = scene_write(s, SCENE_TEST + (i << 12), 4, i);
	return err;
}

/* Every page mapped and its store known, then logging from a clean start. */
static int begin(struct scene *s, struct task *t)
{
	int err = scene_setup(s);

	err = err ? err : scene_loop(s, true, 0, s->o->slot_pages);
	mark(s);
	err = err ? err : scene_log(s, t, true);
	return err;
}

static bool bit(uint64_t i)
{
	return bitmap[i / 64] >> (i % 64) & 1;
}

/* ---- the log itself ---- */

static int full_exits(struct scene *s, struct task *t)
{
	static const uint64_t n[] = {1, 511, 512, 513, 1024, 1025, 2048};

	EQ(begin(s, t), 0);
	for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), i ? (long)n[i - 1] : 0);
		EQ(scene_read(s, SCENE_LIST), 0); /* in guest mode again */
		mark(s);
		EQ(stores(s, 0, n[i]), 0);
		EQ(COUNT(s, pml_full_exit), (n[i] - 1) / LOG);
		EQ(STAT(s, exits), (n[i] - 1) / LOG);
		EQ(STAT(s, pf_taken), 0);
		/* those that an exit has moved */
		EQ(COUNT(s, mark_dirty), (n[i] - 1) / LOG * LOG);
		EQ(COUNT(s, pml_flush_entry), COUNT(s, mark_dirty));
		if (COUNT(s, pml_full_exit))
			EQ(s->last[TRACE_kvm_exit].code, 62);
	}
	EQ(s->events[TRACE_kvm_pml_full], 1 + 1 + 2 + 3);
	/* Before the last call, as before each, the log was emptied by the exit into it. */
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), PAGES);
	EQ(COUNT(s, pml_log), PAGES);
	EQ(kvm_false_dirties(s->kvm), 0);
	return kvm_check(s->kvm);
}

static void a_full_log_exits(void)
{
	on_both("pml", PAGES, full_exits);
}

/* A D that is set is not set again: not by the page's next store, not by another vCPU's. */
static int once_per_page(struct scene *s, struct task *t)
{
	EQ(begin(s, t), 0);
	for (int round = 0; round < 3; round++) {
		mark(s);
		for (int again = 0; again < 3; again++)
			EQ(stores(s, 10, 14), 0);
		EQ(scene_write(s, SCENE_TEST + (13 << 12) + 0xffe, 4, 0), 0); /* 13 and 14 */
		EQ(scene_out(s), 0);
		vcpu_bind(s->vcpu[0], NULL);
		vcpu_bind(s->vcpu[1], t);
		EQ(vcpu_write(s->vcpu[1], SCENE_TEST + (12 << 12), 4, 1), 0);
		EQ(vcpu_write(s->vcpu[1], SCENE_TEST + (15 << 12), 4, 1), 0);
		EQ(vcpu_interrupt(s->vcpu[1]), 0);
		vcpu_bind(s->vcpu[1], NULL);
		vcpu_bind(s->vcpu[0], t);
		EQ(COUNT(s, pml_log), 6);
		EQ(COUNT(s, mark_dirty), 6);
		EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 6);
		EQ(bitmap[0], 0x3full << 10);
		EQ(COUNT(s, clear_dirty), 6);
		EQ(COUNT(s, write_protect), 0);
		EQ(STAT(s, remote_tlb_flush_requests), 1);
	}
	EQ(kvm_false_dirties(s->kvm), 0);
	return kvm_check(s->kvm);
}

static int map_root(struct scene *s, struct task *t)
{
	uint64_t value;
	int r;

	vcpu_bind(s->vcpu[0], NULL);
	vcpu_bind(s->vcpu[1], t);
	do
		r = vcpu_read(s->vcpu[1], SCENE_TEST, 4, &value);
	while (r == VCPU_RESTART);
	EQ(r, 0);
	EQ(vcpu_interrupt(s->vcpu[1]), 0);
	vcpu_bind(s->vcpu[1], NULL);
	vcpu_bind(s->vcpu[0], t);
	return once_per_page(s, t);
}

static void one_entry_per_page(void)
{
	on_both("pml", 64, map_root);
}

/* ---- enable, disable, and what is logged for whom ---- */

static int arming(struct scene *s, struct task *t)
{
	struct kvm_memory_region low = {
		.npages = 512, .flags = KVM_MEM_LOG_DIRTY_PAGES, .host_populated = true};

	EQ(begin(s, t), 0);
	EQ(COUNT(s, clear_dirty), 64);
	EQ(COUNT(s, write_protect), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	EQ(s->kvm->cpu_dirty_logging_count, 1);

	/* The CPU does not know slots: an entry of one that is not logged comes to nothing. */
	EQ(kvm_set_user_memory_region(t, s->kvm, &low), 0);
	low.flags = 0;
	EQ(kvm_set_user_memory_region(t, s->kvm, &low), 0);
	EQ(s->kvm->cpu_dirty_logging_count, 1);
	mark(s);
	for (uint64_t i = 0; i < 7; i++)
		EQ(scene_write(s, SCENE_LIST + (i << 12), 4, 1), 0);
	EQ(scene_out(s), 0);
	EQ(STAT(s, pf_taken), 0);
	EQ(COUNT(s, pml_log), 7);
	EQ(COUNT(s, pml_flush_entry), 7);
	EQ(COUNT(s, mark_dirty), 0);

	/* Without a slot that is logged nothing is. */
	EQ(scene_log(s, t, false), 0);
	EQ(s->kvm->cpu_dirty_logging_count, 0);
	EQ(scene_read(s, SCENE_LIST), 0);
	mark(s);
	EQ(stores(s, 0, 64), 0);
	EQ(scene_out(s), 0);
	EQ(STAT(s, pf_taken), 0);
	EQ(COUNT(s, pml_log), 0);

	/* D is set now: taken again when logging begins again. */
	mark(s);
	EQ(scene_log(s, t, true), 0);
	EQ(COUNT(s, clear_dirty), 64);
	EQ(stores(s, 3, 5), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 2);
	EQ(bitmap[0], 0x18);
	EQ(kvm_lost_stores(s->kvm), 0);
	return kvm_check(s->kvm);
}

static void what_is_armed(void)
{
	on_both("pml", 64, arming);
}

/* Slots that come and go logged count, too; vCPUs made meanwhile log from the start. */
static int slots(struct scene *s, struct task *t)
{
	struct kvm_memory_region r = {.slot = 2,
				      .flags = KVM_MEM_LOG_DIRTY_PAGES,
				      .base_gfn = 0x20000,
				      .npages = 64,
				      .host_populated = true};
	struct kvm_vcpu *late;

	EQ(scene_setup(s), 0);
	EQ(s->vcpu[0]->log.enabled, false);
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	EQ(scene_read(s, SCENE_LIST), 0);
	EQ(s->vcpu[0]->log.enabled, true);
	EQ(scene_log(s, t, true), 0);
	EQ(s->kvm->cpu_dirty_logging_count, 2);
	EQ(kvm_create_vcpu(s->kvm, &late), 0);
	EQ(late->log.enabled, true);
	r.npages = 0;
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	EQ(s->kvm->cpu_dirty_logging_count, 1);
	EQ(scene_log(s, t, false), 0);
	EQ(s->kvm->cpu_dirty_logging_count, 0);
	EQ(scene_read(s, SCENE_LIST), 0);
	EQ(s->vcpu[0]->log.enabled, false);
	return kvm_check(s->kvm);
}

static void slots_come_and_go(void)
{
	on_both("pml", 64, slots);
}

/* A page that has no mapping yet is reported by the fault that makes one, with D set; its next
 * stores are not logged until the harvest. */
static int unmapped(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	EQ(scene_log(s, t, true), 0);
	mark(s);
	EQ(stores(s, 0, 8), 0);
	EQ(STAT(s, pf_taken), 8);
	EQ(COUNT(s, mark_dirty), 8);
	EQ(COUNT(s, pml_log), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 8);
	mark(s);
	EQ(stores(s, 0, 8), 0);
	EQ(STAT(s, pf_taken), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 8);
	EQ(COUNT(s, pml_log), 8);
	return kvm_check(s->kvm);
}

static void faults_report_too(void)
{
	on_both("pml", 64, unmapped);
}

/* The walk of the guest's tables counts as a store to them (SDM, "Accessed and Dirty Flags for
 * EPT"), also where the guest only reads: their slot reports them. */
static int tables(struct scene *s, struct task *t)
{
	struct kvm_memory_region low = {
		.npages = 512, .flags = KVM_MEM_LOG_DIRTY_PAGES, .host_populated = true};

	EQ(scene_setup(s), 0);
	EQ(scene_read(s, SCENE_TEST), 0);
	EQ(kvm_set_user_memory_region(t, s->kvm, &low), 0);
	mark(s);
	EQ(scene_read(s, SCENE_TEST + 0x1000), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 0, bitmap), 5);
	/* root, its two children on the way, the tables of the code and of the test pages */
	EQ(bit(0x10) && bit(0x11) && bit(0x12) && bit(0x20) && bit(0x21), true);
	EQ(COUNT(s, pml_log), 5);
	EQ(STAT(s, pf_taken), tdp_mmu(s) ? 1 : 0);
	EQ(kvm_false_dirties(s->kvm), 5);
	return kvm_check(s->kvm);
}

static void guest_tables_are_logged(void)
{
	struct scene_opts o = {.paging = PAGING_TDP,
			       .pte = SCENE_4K,
			       .slot_pages = 64,
			       .dirty = "pml",
			       .personality = "intel",
			       .check = true};

	EQ(scene(&o, tables), 0);
	o.preset = "6.1-tdp";
	EQ(scene(&o, tables), 0);
}

/* ---- with the other protocol, other pages, other tables ---- */

static int clear_all(struct scene *s, struct task *t, uint64_t n)
{
	return kvm_clear_dirty_log(t, s->kvm, 1, 0, n, bitmap);
}

static int manual(struct scene *s, struct task *t)
{
	bool all_set = strstr(s->o->dirty, "all-set=1");

	EQ(begin(s, t), 0);
	EQ(COUNT(s, clear_dirty), all_set ? 0 : 64);
	EQ(COUNT(s, write_protect), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), all_set ? 64 : 0);
	mark(s);
	EQ(clear_all(s, t, 64), 0);
	EQ(COUNT(s, clear_dirty), all_set ? 64 : 0);
	for (int round = 0; round < 2; round++) {
		mark(s);
		EQ(stores(s, 20, 30), 0);
		EQ(STAT(s, pf_taken), 0);
		EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 10);
		EQ(COUNT(s, pml_log), 10);
		EQ(stores(s, 20, 30), 0); /* D is still set */
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
	on_both("manual,pml=1", 64, manual);
	on_both("manual,pml=1,initially-all-set=1", 64, manual);
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
	mark(s);
	EQ(kvm_set_user_memory_region(t, s->kvm, &r), 0);
	EQ(COUNT(s, write_protect), eager ? 0 : n_large);
	/* the TDP MMU takes D from large mappings, too */
	EQ(COUNT(s, clear_dirty), eager ? PAGES : s->kvm->backend->rcu ? n_large : 0);
	for (int round = 0; round < 3; round++) {
		mark(s);
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
	EQ(begin(s, t), 0);
	for (int round = 0; round < 3; round++) {
		EQ(stores(s, 0, 40), 0);
		EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 40);
	}
	for (uint16_t i = 0; i < N_COUNTS; i++)
		counts[strcmp(s->o->dirty, "mask") != 0][i] = total(s, i);
	EQ(total(s, COUNT_write_protect), 64 + 3 * 40);
	EQ(total(s, COUNT_pml_log), 0);
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

/* ---- the checker ---- */

/* D is taken and the CPU not told: it has D cached, and its store leaves no trace. */
static int no_flush(struct scene *s, struct task *t)
{
	uint64_t spte, *sptep;

	EQ(begin(s, t), 0);
	EQ(stores(s, 5, 6), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 1);
	EQ(stores(s, 5, 6), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 1);
	EQ(stores(s, 6, 7), 0);
	EQ(kvm_check(s->kvm), 0); /* what is in the log is not lost */
	EQ(stores(s, 5, 6), 0);
	sptep = s->kvm->backend->walk_lockless(s->vcpu[0], SCENE_TEST + 0x5000, &spte);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sptep);
	EQ(spte & PT_DIRTY, PT_DIRTY);
	EQ(vcpu_interrupt(s->vcpu[0]), 0);
	id_to_memslot(s->kvm, 1)->dirty_bitmap[0] = 0;
	*sptep &= ~PT_DIRTY;
	EQ(stores(s, 5, 6), 0);
	EQ(vcpu_interrupt(s->vcpu[0]), 0);
	EQ(kvm_lost_stores(s->kvm), 2); /* page 6's was thrown away with the bitmap */
	EQ(kvm_check(s->kvm), KVMSIM_ECHECK);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "never reported"));
	return 0;
}

static void a_missing_flush_is_caught(void)
{
	on_both("pml", 64, no_flush);
}

static CU_TestInfo tests[] = {
	{"a_full_log_exits", a_full_log_exits},
	{"one_entry_per_page", one_entry_per_page},
	{"what_is_armed", what_is_armed},
	{"slots_come_and_go", slots_come_and_go},
	{"faults_report_too", faults_report_too},
	{"guest_tables_are_logged", guest_tables_are_logged},
	{"get_and_clear", get_and_clear},
	{"large_mappings", large_mappings},
	{"shadow_paging_write_protects", shadow_paging_write_protects},
	{"refused", refused},
	{"a_missing_flush_is_caught", a_missing_flush_is_caught},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("pml", tests)
