// SPDX-License-Identifier: GPL-3.0-or-later
/* Pages, loops, storms, gaps: of events written by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/hotspots.h"
#include "analysis/median.h"
#include "tests/unit/harness.h"
#include "tests/unit/host_feed.h"

#define EQ CU_ASSERT_EQUAL

static struct hotspots h;

static void find_with(const struct hot_opts *opts, const char *text)
{
	struct host_sink sink;
	struct hot_reading *r = hotspots_begin(opts, &h, &sink);

	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	EQ(host_feed(&sink, text), 0);
	EQ(hotspots_end(r), 0);
	hotspots_abort(r);
}

static void find(const char *text)
{
	static const struct hot_opts opts = {.top = 10, .keys = 1000};

	find_with(&opts, text);
}

static const struct hot_spot *spot(size_t i)
{
	CU_ASSERT_TRUE_FATAL(i < h.spots.n);
	return top_item(&h.spots, i);
}

static const struct hot_loop *loop(size_t i)
{
	CU_ASSERT_TRUE_FATAL(i < h.loops.n);
	return top_item(&h.loops, i);
}

/* EPT: bit 0 read, 1 write, 2 fetch. NPF and #PF: bit 1 write, 4 fetch, else a read. */
static void faults_by_kind(void)
{
	const struct hot_spot *s;

	find("q 7 0 10 kvm_exit vcpu=1 r=EPT_VIOLATION info1=0x181\n"
	     "q 7 0 11 kvm_page_fault address=0x5123 error_code=0x181\n"
	     "q 7 0 20 kvm_exit vcpu=1 r=EPT_VIOLATION info1=0x18a\n"
	     "q 7 0 21 kvm_page_fault address=0x5456 error_code=0x18a\n"
	     "q 7 0 30 kvm_exit vcpu=1 r=EPT_VIOLATION info1=0x184\n"
	     "q 7 0 31 kvm_page_fault address=0x5000 error_code=0x184\n"
	     "q 8 0 40 kvm_exit vcpu=2 r=npf info1=0x100000014\n"
	     "q 8 0 41 kvm_page_fault address=0x9000 error_code=0x14\n"
	     "q 8 0 42 kvm_exit vcpu=2 r=npf info1=0x100000004\n"
	     "q 8 0 43 kvm_page_fault address=0x9000 error_code=0x4\n"
	     /* nothing tells which MMU it is */
	     "q 9 0 50 kvm_page_fault vcpu=3 address=0xa000 error_code=0x4\n");
	EQ(h.faults, 6);
	EQ(h.spots.n, 3);
	s = spot(0);
	EQ(s->key.vcpu, 1);
	EQ(s->key.gfn, 5);
	EQ(s->key.gva, 0);
	EQ(s->faults, 3);
	EQ(s->reads, 1);
	EQ(s->writes, 1);
	EQ(s->fetches, 1);
	EQ(s->first, 11);
	EQ(s->last, 31);
	s = spot(1);
	EQ(s->key.gfn, 9);
	EQ(s->reads, 1);
	EQ(s->fetches, 1);
	s = spot(2);
	EQ(s->key.vcpu, 3);
	EQ(s->faults, 1);
	EQ(s->reads + s->writes + s->fetches, 0);
	hotspots_free(&h);
}

/* Under shadow paging what is printed is virtual; what follows is put down to it. */
static void shadow_paging_faults_for_virtual_pages(void)
{
	const struct hot_spot *s;

	find("q 7 0 10 kvm_exit vcpu=0 r=EXCEPTION_NMI info1=0xffff8000 info2=0x80000b0e\n"
	     "q 7 0 11 kvm_page_fault address=0xffff888000001abc error_code=0x3\n"
	     "q 7 0 12 kvm_mmu_set_spte gfn=0x77 level=1 spte=0x1\n"
	     "q 7 0 13 kvm_mmio gpa=0xfee00300 type=2 len=4\n");
	EQ(h.spots.n, 1);
	s = spot(0);
	EQ(s->key.gva, 1);
	EQ(s->key.gfn << 12, 0xffff888000001000);
	EQ(s->writes, 1);
	EQ(s->spte_changes, 1);
	EQ(s->mmio, 1);
	hotspots_free(&h);
}

static void what_follows_a_fault_is_its(void)
{
	find("q 7 0 10 kvm_page_fault vcpu=0 address=0x201000 error_code=0x182\n"
	     /* of the 2M page that has it, of another one, of the VMM's thread */
	     "q 7 0 11 kvm_tdp_mmu_spte_changed gfn=0x200 level=2 old=0 new=7\n"
	     "q 7 0 12 kvm_tdp_mmu_spte_changed gfn=0x400 level=2 old=0 new=7\n"
	     "m 5 1 13 kvm_tdp_mmu_spte_changed gfn=0x201 level=1 old=7 new=5\n"
	     "q 7 0 14 fast_page_fault vcpu=0 gva=0x201000 spurious=1 fixed=0\n"
	     "q 7 0 15 fast_page_fault vcpu=0 gva=0x201000 spurious=0 fixed=1\n");
	EQ(h.spots.n, 3);
	EQ(h.spte_events, 4);
	EQ(spot(0)->key.gfn, 0x201);
	EQ(spot(0)->key.vcpu, 0);
	EQ(spot(0)->spte_changes, 2);
	EQ(spot(0)->spurious, 1);
	EQ(spot(1)->key.gfn, 0x201);
	EQ(spot(1)->key.vcpu, -1);
	EQ(spot(1)->spte_changes, 1);
	EQ(spot(2)->key.gfn, 0x400);
	EQ(spot(2)->spte_changes, 1);
	hotspots_free(&h);
}

#define FAULT(ns, code)                                                                            \
	"q 7 0 " #ns " kvm_page_fault vcpu=0 rip=0x400 address=0x5000 error_code=" #code "\n"

/* 10, 30 and 20; one that a loss lies in does not count. */
static void periods(void)
{
	find(FAULT(100, 1) FAULT(110, 2) FAULT(140, 4) FAULT(160, 8));
	EQ(spot(0)->periods, 3);
	EQ(spot(0)->period_ns, 20);
	CU_ASSERT_TRUE(spot(0)->exact);
	hotspots_free(&h);
	find(FAULT(100, 1) FAULT(110, 2) "LOST 0 3\n" FAULT(140, 4) FAULT(160, 8));
	EQ(spot(0)->periods, 2);
	EQ(spot(0)->period_ns, 15);
	hotspots_free(&h);
	/* of another CPU */
	find(FAULT(100, 1) "LOST 1 3\n" FAULT(110, 2));
	EQ(spot(0)->periods, 1);
	EQ(h.losses, 1);
	EQ(h.lost, 3);
	CU_ASSERT_FALSE(h.lost_unknown);
	hotspots_free(&h);
}

static void medians(void)
{
	struct median m = {0};

	EQ(median_get(&m), 0);
	for (uint64_t i = 1; i <= MEDIAN_EXACT; i++)
		EQ(median_add(&m, i * 1000), 0);
	CU_ASSERT_TRUE(median_is_exact(&m));
	EQ(median_get(&m), 32500);
	/* 1000 to 1001000 in steps: the middle one is 501000 */
	for (uint64_t i = MEDIAN_EXACT + 1; i <= 1001; i++)
		EQ(median_add(&m, i * 1000), 0);
	CU_ASSERT_FALSE(median_is_exact(&m));
	EQ(m.n, 1001);
	CU_ASSERT_TRUE(median_get(&m) > 501000 - 501000 / 16);
	CU_ASSERT_TRUE(median_get(&m) < 501000 + 501000 / 16);
	median_free(&m);
	for (int i = 0; i < 100; i++)
		EQ(median_add(&m, i < 51 ? 7 : UINT64_MAX), 0);
	EQ(median_get(&m), 7);
	median_free(&m);
}

/* ---- loops ---- */

static void three_times_the_same_is_a_loop(void)
{
	find(FAULT(100, 0x181) FAULT(110, 0x181) FAULT(125, 0x181));
	EQ(h.n_loops, 1);
	EQ(loop(0)->gfn, 5);
	EQ(loop(0)->rip, 0x400);
	EQ(loop(0)->code, 0x181);
	EQ(loop(0)->faults, 3);
	EQ(loop(0)->n_vcpus, 1);
	EQ(loop(0)->vcpu[0], 0);
	EQ(loop(0)->begin, 100);
	EQ(loop(0)->end, 125);
	EQ(loop(0)->line, 1);
	CU_ASSERT_FALSE(loop(0)->unsure);
	hotspots_free(&h);
	find(FAULT(100, 0x181) FAULT(110, 0x181));
	EQ(h.n_loops, 0);
	hotspots_free(&h);
	/* other codes; the rip from the exit before */
	find(FAULT(100, 0x181) FAULT(110, 0x182) FAULT(125, 0x181));
	EQ(h.n_loops, 0);
	hotspots_free(&h);
	find("q 7 0 1 kvm_exit vcpu=0 r=npf rip=0x1\nq 7 0 2 kvm_page_fault address=0x5000 "
	     "error_code=2\n"
	     "q 7 0 3 kvm_exit vcpu=0 r=npf rip=0x2\nq 7 0 4 kvm_page_fault address=0x5000 "
	     "error_code=2\n"
	     "q 7 0 5 kvm_exit vcpu=0 r=npf rip=0x1\nq 7 0 6 kvm_page_fault address=0x5000 "
	     "error_code=2\n");
	EQ(h.n_loops, 0);
	hotspots_free(&h);
}

static void several_vcpus_once_each_are_none(void)
{
#define BY(tid, vcpu, ns)                                                                          \
	"q " #tid " 0 " #ns " kvm_page_fault vcpu=" #vcpu " rip=0x400 address=0x5000 "             \
	"error_code=2\n"
	find(BY(7, 0, 1) BY(8, 1, 2) BY(9, 2, 3));
	EQ(h.n_loops, 0);
	hotspots_free(&h);
	find(BY(7, 0, 1) BY(8, 1, 2) BY(9, 2, 3) BY(8, 1, 4));
	EQ(h.n_loops, 1);
	EQ(loop(0)->faults, 4);
	EQ(loop(0)->n_vcpus, 3);
	EQ(loop(0)->times[1], 2);
	hotspots_free(&h);
}

static void a_change_in_between_is_progress(void)
{
	find(FAULT(100, 2) FAULT(110, 2) "m 5 1 115 kvm_tdp_mmu_spte_changed gfn=5 level=1\n" FAULT(
		120, 2) FAULT(130, 2));
	EQ(h.n_loops, 0);
	hotspots_free(&h);
	/* of the 2M page */
	find(FAULT(100, 2) FAULT(110, 2) "q 7 0 115 kvm_mmu_set_spte gfn=0 level=2\n" FAULT(120, 2)
		     FAULT(130, 2));
	EQ(h.n_loops, 0);
	hotspots_free(&h);
	find(FAULT(100, 2) FAULT(
		110, 2) "q 7 0 115 fast_page_fault vcpu=0 gva=0x5000 fixed=1\n" FAULT(120, 2)
		     FAULT(130, 2));
	EQ(h.n_loops, 0);
	hotspots_free(&h);
	/* of another page; a spurious one */
	find(FAULT(100, 2)
		     FAULT(110, 2) "q 7 0 115 kvm_mmu_set_spte gfn=6 level=1\n" FAULT(120, 2));
	EQ(h.n_loops, 1);
	hotspots_free(&h);
	find(FAULT(100, 2) FAULT(
		110,
		2) "q 7 0 115 fast_page_fault vcpu=0 gva=0x5000 spurious=1 fixed=0\n" FAULT(120,
											    2));
	EQ(h.n_loops, 1);
	hotspots_free(&h);
	/* a loop before it and one after */
	find(FAULT(100, 2) FAULT(110, 2) FAULT(
		111, 2) "m 5 1 115 kvm_tdp_mmu_spte_changed gfn=5 level=1\n" FAULT(120, 2)
		     FAULT(130, 2) FAULT(140, 2) FAULT(150, 2));
	EQ(h.n_loops, 2);
	EQ(loop(0)->faults, 4);
	EQ(loop(0)->begin, 120);
	EQ(loop(1)->faults, 3);
	hotspots_free(&h);
}

static void a_loop_over_a_loss_cannot_be_told(void)
{
	find(FAULT(100, 2) FAULT(110, 2) "LOST 3 1\n" FAULT(120, 2));
	EQ(h.n_loops, 1);
	CU_ASSERT_TRUE(loop(0)->unsure);
	hotspots_free(&h);
	/* what was one before, was one */
	find(FAULT(100, 2) FAULT(110, 2) FAULT(115, 2) "LOST 3 1\n" FAULT(120, 2));
	EQ(h.n_loops, 1);
	EQ(loop(0)->faults, 3);
	CU_ASSERT_FALSE(loop(0)->unsure);
	hotspots_free(&h);
}

/* A store loop under dirty logging, whose sptes nobody recorded, looks the same from afar. */
static void faults_elsewhere_in_between(void)
{
#define PAGE(ns, page)                                                                             \
	"q 7 0 " #ns " kvm_page_fault vcpu=0 rip=4 address=" #page "000 error_code=2\n"
#define ROUNDS                                                                                     \
	PAGE(1, 0x5)                                                                               \
	PAGE(2, 0x6) PAGE(3, 0x5) PAGE(4, 0x6) PAGE(5, 0x5) PAGE(6, 0x7) PAGE(7, 0x7) PAGE(8, 0x7)
	find(ROUNDS);
	EQ(h.n_loops, 2);
	EQ(h.n_elsewhere, 1);
	EQ(loop(0)->gfn, 7);
	EQ(loop(0)->elsewhere, 0);
	CU_ASSERT_TRUE(hotspots_loop_is_sure(&h, loop(0)));
	EQ(loop(1)->gfn, 5);
	EQ(loop(1)->elsewhere, 2);
	CU_ASSERT_FALSE(hotspots_loop_is_sure(&h, loop(1)));
	hotspots_free(&h);
	/* sptes are recorded, and none of these pages' changed */
	find(ROUNDS "m 5 1 9 kvm_tdp_mmu_spte_changed gfn=0x99 level=1\n");
	EQ(loop(1)->gfn, 5);
	CU_ASSERT_TRUE(hotspots_loop_is_sure(&h, loop(1)));
	hotspots_free(&h);
}

/* ---- storms, gaps, culprits ---- */

/* 1001 exits in a window of 10 ms are more than 100,000 a second; 1000 are not. */
static void storms(void)
{
	for (int n = 1000; n <= 1001; n++) {
		char *text = malloc(100000), *to = text;

		CU_ASSERT_PTR_NOT_NULL_FATAL(text);
		for (int i = 0; i < n; i++)
			to += sprintf(to, "q 7 0 %d kvm_userspace_exit reason=%d\n",
				      50000000 + i * 5000, i % 10 ? 6 : -4);
		sprintf(to, "q 7 0 2000000000 kvm_userspace_exit reason=2\n");
		find(text);
		EQ(h.userspace.exits, (uint64_t)n + 1);
		EQ(h.userspace.by_reason[2], 1);
		EQ(h.userspace.by_reason[40], (uint64_t)(n + 9) / 10);
		EQ(h.worst.exits, (uint64_t)n);
		EQ(h.worst.begin, 50000000);
		EQ(h.worst.per_second, (uint64_t)n * 100);
		CU_ASSERT_FALSE(h.storm);
		EQ(h.storm_window, n == 1001);
		hotspots_free(&h);
		free(text);
	}
}

/* A thread on several CPUs: 23.4 s without a fault in one range. */
static void the_longest_gap_of_a_range(void)
{
	static const struct hot_range ranges[] = {{"low", 0x200a00, 0x200bff},
						  {"high", 0x200c00, 0x200fff}};
	static const struct hot_opts two = {
		.top = 10, .keys = 100, .ranges = ranges, .n_ranges = 2};
	static const char text[] =
		"q 7 3 440230000 kvm_page_fault vcpu=14 address=0x200a00000 error_code=6\n"
		"q 7 1 702114000 kvm_page_fault vcpu=14 address=0x200bff000 error_code=6\n"
		"q 7 6 24118090000 kvm_page_fault vcpu=14 address=0x200c00000 error_code=6\n"
		"q 7 7 24131772000 kvm_page_fault vcpu=14 address=0x200dff000 error_code=6\n"
		"q 7 7 24131773000 kvm_page_fault vcpu=14 address=0x900000000 error_code=6\n";
	const struct hot_gap *g;

	find(text);
	EQ(h.range_gaps.n, 1);
	g = top_item(&h.range_gaps, 0);
	EQ(g->first, 0x200a00);
	EQ(g->last, 0x200dff);
	EQ(g->faults, 4);
	EQ(g->gap.begin, 702114000);
	EQ(g->gap.end, 24118090000);
	EQ(g->gap.line, 3);
	EQ(g->gap.who.vcpu, 14);
	CU_ASSERT_FALSE(g->gap.unsure);
	CU_ASSERT_TRUE(g->gap.end - g->gap.begin > HOT_PROGRESS_STALL);
	hotspots_free(&h);
	find_with(&two, text);
	EQ(h.outside, 1);
	EQ(h.spots.n, 4);
	EQ(h.range_gaps.n, 2);
	g = top_item(&h.range_gaps, 0);
	CU_ASSERT_STRING_EQUAL(g->name, "low");
	EQ(g->gap.end - g->gap.begin, 261884000);
	g = top_item(&h.range_gaps, 1);
	CU_ASSERT_STRING_EQUAL(g->name, "high");
	EQ(g->gap.end - g->gap.begin, 13682000);
	hotspots_free(&h);
}

/* Runs of pages grow together: 0x1000.. and 0x1400.. are one when 0x1200 comes. */
static void runs_that_meet_are_one(void)
{
#define AT(gfn, ns) "q 7 0 " #ns " kvm_page_fault vcpu=0 address=" #gfn "000 error_code=2\n"
	const struct hot_gap *g;

	find(AT(0x1000, 100) AT(0x1401, 200) AT(0x1001, 250) AT(0x1201, 500) AT(0x1402, 510));
	EQ(h.range_gaps.n, 1);
	g = top_item(&h.range_gaps, 0);
	EQ(g->first, 0x1000);
	EQ(g->last, 0x1402);
	EQ(g->faults, 5);
	EQ(g->gap.begin, 250);
	EQ(g->gap.end, 500);
	hotspots_free(&h);
}

static void who_held_whom_up(void)
{
	const struct hot_culprit *c;

	find("q 7 0 100 kvm_exit vcpu=0 r=HLT\n"
	     "w 9 2 150 sched_waking pid=7\n"
	     "q 7 0 170 kvm_entry vcpu=0\n"
	     "q 7 0 200 kvm_exit vcpu=0 r=HLT\n"
	     "w 9 2 250 sched_waking pid=7\n"
	     "q 7 0 290 kvm_entry vcpu=0\n"
	     "q 7 0 300 kvm_exit vcpu=0 r=HLT\n"
	     "q 7 0 305 kvm_entry vcpu=0\n"
	     "q 7 0 400 kvm_exit vcpu=0 r=HLT\n"
	     "LOST 0 1\n"
	     "q 7 0 900 kvm_entry vcpu=0\n");
	EQ(h.by_kind[HOST_STALL_HALT].n, 3);
	EQ(h.by_kind[HOST_STALL_HALT].ns, 70 + 90 + 5);
	EQ(h.by_kind[HOST_STALL_HALT].longest, 90);
	EQ(h.by_kind[HOST_STALL_HALT].unsure, 1);
	EQ(h.culprits.n, 2);
	c = top_item(&h.culprits, 0);
	EQ(c->by.tid, 9);
	CU_ASSERT_STRING_EQUAL(c->by.comm, "w");
	EQ(c->n, 2);
	EQ(c->ns, 160);
	c = top_item(&h.culprits, 1);
	EQ(c->blame, HOST_BLAME_UNSEEN);
	EQ(c->ns, 5);
	EQ(h.stalls.n, 4);
	hotspots_free(&h);
}

/* Room for 4 pages: one that is met again and again stays, and all that is missing is said. */
static void more_pages_than_are_kept(void)
{
	static const struct hot_opts four = {.top = 10, .keys = 4};
	char *text = malloc(100000), *to = text;
	uint64_t counted = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	for (int i = 1; i <= 100; i++)
		to += sprintf(to,
			      "q 7 0 %d kvm_page_fault vcpu=0 address=0x5000 error_code=%d\n"
			      "q 7 0 %d kvm_page_fault vcpu=0 address=0x%x000 error_code=2\n",
			      10 * i, i, 10 * i + 1, 0x100 + i);
	find_with(&four, text);
	free(text);
	EQ(h.faults, 200);
	CU_ASSERT_TRUE(h.spots.n <= 4);
	EQ(h.keys, h.spots.n);
	EQ(h.dropped_keys, 101 - h.keys);
	EQ(spot(0)->key.gfn, 5);
	EQ(spot(0)->faults, 100);
	EQ(spot(0)->missed, 0);
	for (size_t i = 0; i < h.spots.n; i++)
		counted += spot(i)->faults;
	/* those that were met once: each may have been let go of before, as far as is known */
	CU_ASSERT_TRUE(spot(1)->missed >= 1 && spot(1)->missed <= h.dropped_at_most);
	CU_ASSERT_TRUE(h.dropped_at_most < 100);
	EQ(counted, 100 + h.keys - 1);
	hotspots_free(&h);
}

static void times_are_not_needed(void)
{
	find("q 7 0 - kvm_exit vcpu=1 r=npf info1=0x2\n"
	     "q 7 0 - kvm_page_fault address=0x5000 error_code=2\n");
	EQ(h.faults, 1);
	EQ(spot(0)->key.vcpu, 1);
	EQ(spot(0)->writes, 1);
	EQ(spot(0)->periods, 0);
	EQ(spot(0)->first, HOST_NO_TIME);
	EQ(h.stalls.n + h.range_gaps.n + h.thread_gaps.n, 0);
	hotspots_free(&h);
}

static CU_TestInfo tests[] = {
	{"faults_by_kind", faults_by_kind},
	{"shadow_paging_faults_for_virtual_pages", shadow_paging_faults_for_virtual_pages},
	{"what_follows_a_fault_is_its", what_follows_a_fault_is_its},
	{"periods", periods},
	{"medians", medians},
	{"three_times_the_same_is_a_loop", three_times_the_same_is_a_loop},
	{"several_vcpus_once_each_are_none", several_vcpus_once_each_are_none},
	{"a_change_in_between_is_progress", a_change_in_between_is_progress},
	{"faults_elsewhere_in_between", faults_elsewhere_in_between},
	{"a_loop_over_a_loss_cannot_be_told", a_loop_over_a_loss_cannot_be_told},
	{"storms", storms},
	{"the_longest_gap_of_a_range", the_longest_gap_of_a_range},
	{"runs_that_meet_are_one", runs_that_meet_are_one},
	{"who_held_whom_up", who_held_whom_up},
	{"more_pages_than_are_kept", more_pages_than_are_kept},
	{"times_are_not_needed", times_are_not_needed},
	CU_TEST_INFO_NULL};
TEST_MAIN("hotspots", tests)
