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
#include "tests/unit/harness.h"
#include "tests/unit/pml_util.h"

#define EQ    CU_ASSERT_EQUAL
#define PAGES 2048
#define WORDS (PAGES / 64)
#define LOG   512

static uint64_t bitmap[WORDS];

static bool tdp_mmu(const struct scene *s)
{
	return s->o->preset;
}

static bool bit(uint64_t i)
{
	return bitmap[i / 64] >> (i % 64) & 1;
}

/* ---- the log itself ---- */

static int full_exits(struct scene *s, struct task *t)
{
	static const uint64_t n[] = {1, 511, 512, 513, 1024, 1025, 2048};

	EQ(pml_begin(s, t), 0);
	for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), i ? (long)n[i - 1] : 0);
		EQ(scene_read(s, SCENE_LIST), 0); /* in guest mode again */
		pml_mark(s);
		EQ(pml_stores(s, 0, n[i]), 0);
		EQ(COUNT(s, pml_full_exit), (n[i] - 1) / LOG);
		EQ(COUNT(s, pml_full_entry), (n[i] - 1) / LOG * LOG);
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
	pml_on_both("pml", PAGES, full_exits);
}

/* A D that is set is not set again: not by the page's next store, not by another vCPU's. */
static int once_per_page(struct scene *s, struct task *t)
{
	EQ(pml_begin(s, t), 0);
	for (int round = 0; round < 3; round++) {
		pml_mark(s);
		for (int again = 0; again < 3; again++)
			EQ(pml_stores(s, 10, 14), 0);
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
	pml_on_both("pml", 64, map_root);
}

/* ---- enable, disable, and what is logged for whom ---- */

static int arming(struct scene *s, struct task *t)
{
	struct kvm_memory_region low = {
		.npages = 512, .flags = KVM_MEM_LOG_DIRTY_PAGES, .host_populated = true};

	EQ(pml_begin(s, t), 0);
	EQ(COUNT(s, clear_dirty), 64);
	EQ(COUNT(s, write_protect), 0);
	EQ(STAT(s, remote_tlb_flush_requests), 1);
	EQ(s->kvm->cpu_dirty_logging_count, 1);

	/* The CPU does not know slots: an entry of one that is not logged comes to nothing. */
	EQ(kvm_set_user_memory_region(t, s->kvm, &low), 0);
	low.flags = 0;
	EQ(kvm_set_user_memory_region(t, s->kvm, &low), 0);
	EQ(s->kvm->cpu_dirty_logging_count, 1);
	pml_mark(s);
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
	pml_mark(s);
	EQ(pml_stores(s, 0, 64), 0);
	EQ(scene_out(s), 0);
	EQ(STAT(s, pf_taken), 0);
	EQ(COUNT(s, pml_log), 0);

	/* D is set now: taken again when logging begins again. */
	pml_mark(s);
	EQ(scene_log(s, t, true), 0);
	EQ(COUNT(s, clear_dirty), 64);
	EQ(pml_stores(s, 3, 5), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 2);
	EQ(bitmap[0], 0x18);
	EQ(kvm_lost_stores(s->kvm), 0);
	return kvm_check(s->kvm);
}

static void what_is_armed(void)
{
	pml_on_both("pml", 64, arming);
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
	pml_on_both("pml", 64, slots);
}

/* A page that has no mapping yet is reported by the fault that makes one, with D set; its next
 * stores are not logged until the harvest. */
static int unmapped(struct scene *s, struct task *t)
{
	EQ(scene_setup(s), 0);
	EQ(scene_log(s, t, true), 0);
	pml_mark(s);
	EQ(pml_stores(s, 0, 8), 0);
	EQ(STAT(s, pf_taken), 8);
	EQ(COUNT(s, mark_dirty), 8);
	EQ(COUNT(s, pml_log), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 8);
	pml_mark(s);
	EQ(pml_stores(s, 0, 8), 0);
	EQ(STAT(s, pf_taken), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 8);
	EQ(COUNT(s, pml_log), 8);
	return kvm_check(s->kvm);
}

static void faults_report_too(void)
{
	pml_on_both("pml", 64, unmapped);
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
	pml_mark(s);
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

/* ---- the checker ---- */

/* D is taken and the CPU not told: it has D cached, and its store leaves no trace. */
static int no_flush(struct scene *s, struct task *t)
{
	uint64_t spte, *sptep;

	EQ(pml_begin(s, t), 0);
	EQ(pml_stores(s, 5, 6), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 1);
	EQ(pml_stores(s, 5, 6), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 1);
	EQ(pml_stores(s, 6, 7), 0);
	EQ(kvm_check(s->kvm), 0); /* what is in the log is not lost */
	EQ(pml_stores(s, 5, 6), 0);
	sptep = s->kvm->backend->walk_lockless(s->vcpu[0], SCENE_TEST + 0x5000, &spte);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sptep);
	EQ(spte & PT_DIRTY, PT_DIRTY);
	EQ(vcpu_interrupt(s->vcpu[0]), 0);
	id_to_memslot(s->kvm, 1)->dirty_bitmap[0] = 0;
	*sptep &= ~PT_DIRTY;
	EQ(pml_stores(s, 5, 6), 0);
	EQ(vcpu_interrupt(s->vcpu[0]), 0);
	EQ(kvm_lost_stores(s->kvm), 2); /* page 6's was thrown away with the bitmap */
	EQ(kvm_check(s->kvm), KVMSIM_ECHECK);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "never reported"));
	return 0;
}

static void a_missing_flush_is_caught(void)
{
	pml_on_both("pml", 64, no_flush);
}

static CU_TestInfo tests[] = {
	{"a_full_log_exits", a_full_log_exits},
	{"one_entry_per_page", one_entry_per_page},
	{"what_is_armed", what_is_armed},
	{"slots_come_and_go", slots_come_and_go},
	{"faults_report_too", faults_report_too},
	{"guest_tables_are_logged", guest_tables_are_logged},
	{"a_missing_flush_is_caught", a_missing_flush_is_caught},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("pml", tests)
