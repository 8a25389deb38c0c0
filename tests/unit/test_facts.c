// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/facts_scene.h"

/* The rules behind `kvmsim info` of a host's trace: pairs, columns, faults, bounds. Expected
 * values follow from the rules' words (docs/host-facts.md), worked out on paper. */

/* ---- pairs ---- */

static void test_pairs(void)
{
	json_t *j;

	begin();
	enter(1, 10, 0, 0);
	leave(2, 10, 0, "HLT", 0, 0);
	leave(3, 11, 1, "npf", 0, 0);
	enter(5, 11, 1, 1); /* 2 us, the second exit */
	enter(9, 10, 0, 0); /* 7 us, the first */
	leave(10, 10, 0, "EXIT_NPF", 0, 0);
	leave(11, 10, 0, "0x400", 0, 0); /* the one before stays alone */
	enter(12, 11, 1, 1);		 /* so does this */
	enter(13, 10, 0, 0);
	j = done();
	says(j, "pairs", "3");
	says(j, "pair_ns", "[7000,2000,2000]");
	says(j, "unpaired_exits", "1");
	says(j, "unpaired_entries", "2");
	says(j, "exit_reasons", "{\"HLT\":1,\"NPF\":3}");
	says(j, "vcpus", "[0,1]");
	says(j, "vcpu_of_tid", "{\"10\":0,\"11\":1}");
	says(j, "largest_gap_ns", "7000");
	json_decref(j);
}

static void test_pairs_over_losses(void)
{
	json_t *j;

	begin();
	leave(1, 10, 0, "HLT", 0, 0);
	loss(1, 5, false); /* another CPU's */
	enter(2, 10, 0, 0);
	leave(3, 10, 0, "HLT", 0, 0);
	loss(0, 7, false);
	enter(4, 10, 2, 0); /* it is the exit's CPU that counts */
	leave(5, 10, 2, "HLT", 0, 0);
	loss(0, UINT64_MAX, false);
	enter(6, 10, 0, 0);
	leave(7, 10, 0, "HLT", 0, 0);
	loss(-1, 1, false); /* whose it was is not told: anybody's */
	enter(8, 10, 0, 0);
	j = done();
	says(j, "pairs", "2");
	says(j, "pairs_spanning_loss", "2");
	says(j, "pair_ns", "[1000,1000]");
	says(j, "unpaired_exits", "0");
	says(j, "unpaired_entries", "0");
	says(j, "lost_events", "null");
	says(j, "lost_events_min", "13");
	says(j, "lost_by_cpu", "{\"0\":null,\"1\":5}");
	says(j, "verdict", "\"too lossy\""); /* 13 of 8 */
	json_decref(j);
}

static void test_header_loss(void)
{
	json_t *j;

	begin();
	loss(-1, 3, true);
	leave(1, 10, 0, "HLT", 0, 0);
	loss(0, UINT64_MAX, false);
	loss(0, 100, false); /* adds nothing to the header's */
	enter(2, 10, 0, 0);
	j = done();
	says(j, "lost_events", "3");
	says(j, "lost_events_min", "3");
	says(j, "pairs_spanning_loss", "1");
	says(j, "verdict", "\"too lossy\""); /* 3 lost, 2 here */
	json_decref(j);
}

static void test_chunks(void)
{
	struct host_loss l = {.cpu = -1, .count = UINT64_MAX, .chunks = 4};
	json_t *j;

	begin();
	leave(1, 10, 0, "HLT", 0, 0);
	/* a tool's closing words: no place in the trace */
	facts_sink(f)->loss(facts_sink(f)->ctx, &l);
	enter(2, 10, 0, 0);
	j = done();
	says(j, "lost_events", "null");
	says(j, "lost_events_min", "0");
	says(j, "lost_chunks", "4");
	says(j, "pairs", "1");
	says(j, "verdict", "null");
	json_decref(j);
}

/* ---- columns that are not there ---- */

static void test_no_columns(void)
{
	struct host_event e = at(0, -1, -1, HOST_kvm_exit);
	json_t *j;

	begin();
	e.time_ns = HOST_NO_TIME;
	host_set(&e, HOST_F_reason, 0x12);
	feed(&e);
	e = at(0, -1, -1, HOST_kvm_entry);
	e.time_ns = HOST_NO_TIME;
	feed(&e);
	j = done();
	says(j, "timed", "false");
	says(j, "exit_reasons", "{\"0x12\":1}");
	for (const char *const *k =
		     (const char *const[]){"cpus", "tids", "comms", "vcpus", "vcpu_of_tid",
					   "cpus_of_tid", "tgid_of_tid", "first_time_ns",
					   "last_time_ns", "out_of_order", "pairs", "pair_ns",
					   "unpaired_exits", "largest_gap_ns", NULL};
	     *k; k++)
		says(j, *k, "null");
	says(j, "records", "2");
	json_decref(j);
}

static void test_heads(void)
{
	struct host_event e;
	json_t *j;

	begin();
	e = at(5, 7, 3, HOST_kvm_msr);
	e.comm = (struct host_text){"<...>", 5};
	e.flags_width = 5;
	e.time_decimals = 9;
	feed(&e);
	e = at(4, 9, 1, HOST_OTHER); /* another CPU: in order */
	e.name = (struct host_text){"irq_entry", 9};
	e.comm = (struct host_text){"a\xff", 2}; /* no UTF-8 */
	e.tgid = 8;
	feed(&e);
	plain(3, 7, 1, HOST_sched_switch);
	plain(3, 7, 1, HOST_kvm_msr); /* the same time: in order */
	plain(4, 7, 3, HOST_kvm_msr);
	e = at(9, 9, 3, HOST_UNKNOWN_KVM);
	e.name = (struct host_text){"kvm_x", 5};
	feed(&e);
	e = at(9, 12, 3, HOST_KVM_REST);
	e.name = (struct host_text){"kvm_cpuid", 9};
	feed(&e);
	j = done();
	says(j, "out_of_order", "2");
	says(j, "first_time_ns", "3000");
	says(j, "last_time_ns", "9000");
	says(j, "flags_width", "5");
	says(j, "time_decimals", "9");
	says(j, "cpus", "[1,3]");
	says(j, "tids", "[7,9,12]");
	says(j, "cpus_of_tid", "{\"12\":[3],\"7\":[3,1],\"9\":[1,3]}");
	says(j, "tgid_of_tid", "{\"12\":null,\"7\":null,\"9\":8}");
	says(j, "comms", "[null,\"a\xef\xbf\xbd\"]");
	says(j, "events", "{\"kvm_cpuid\":1,\"kvm_msr\":3}");
	says(j, "unknown_events", "{\"kvm_x\":1}");
	says(j, "other_events", "{\"irq_entry\":1,\"sched_switch\":1}");
	says(j, "vcpu_of_tid", "{\"12\":null,\"7\":null,\"9\":null}");
	says(j, "verdict", "\"no usable events\"");
	json_decref(j);
}

/* ---- faults ---- */

static void test_faults(void)
{
	struct host_event e;
	json_t *j;

	begin();
	fault(1, 10, 0xfee00300, 0x2); /* no record of the thread told a vCPU yet */
	enter(2, 10, 0, 4);
	leave(3, 10, 0, "npf", 0x100000006, 0x5000);
	fault(4, 10, 0x5000, 0x6); /* 32 bits of the longer one */
	fault(5, 10, 0x5000, 0x7); /* is not */
	leave(6, 10, 0, "EXCEPTION_NMI", 0x7ff8, 0x80000b0e);
	fault(7, 10, 0x7ff8, 0xb);
	leave(8, 10, 0, "EXCEPTION_NMI", 0, 0x80000b0d); /* #GP */
	fault(9, 10, 0x7ff8, 0x0);
	leave(10, 11, 0, "EPT_VIOLATION", 0x700000181, 0);
	fault(11, 11, 0x6000, 0x181); /* no NPF: as printed */
	e = at(12, 11, 0, HOST_kvm_exit);
	e.reason = (struct host_text){"EXCEPTION_NMI", 13};
	host_set(&e, HOST_F_intr_info, 0x80000b0e); /* kernels from 5.10 on */
	host_set(&e, HOST_F_info2, 0);
	feed(&e);
	e = at(13, 11, 0, HOST_kvm_page_fault);
	host_set(&e, HOST_F_vcpu, 2);
	host_set(&e, HOST_F_address, 0xfee00000);
	host_set(&e, HOST_F_error_code, 2);
	feed(&e);
	leave(14, 11, 0, "EXIT_EXCP_PF", 2, 0x7000); /* SVM's by libtraceevent */
	fault(15, 11, 0x7000, 2);
	j = done();
	says(j, "page_faults",
	     "[{\"apic\":true,\"error_code\":\"0x2\",\"gpa\":\"0xfee00300\",\"gva\":null,\"vcpu\":"
	     "null,"
	     "\"write\":true},"
	     "{\"error_code\":\"0x100000006\",\"gpa\":\"0x5000\",\"gva\":null,\"vcpu\":4,\"write\":"
	     "true},"
	     "{\"error_code\":\"0x7\",\"gpa\":\"0x5000\",\"gva\":null,\"vcpu\":4,\"write\":true},"
	     "{\"error_code\":\"0xb\",\"gpa\":null,\"gva\":\"0x7ff8\",\"vcpu\":4,\"write\":true},"
	     "{\"error_code\":\"0x0\",\"gpa\":\"0x7ff8\",\"gva\":null,\"vcpu\":4,\"write\":false},"
	     "{\"error_code\":\"0x181\",\"gpa\":\"0x6000\",\"gva\":null,\"vcpu\":null,\"write\":"
	     "false},"
	     "{\"error_code\":\"0x2\",\"gpa\":null,\"gva\":\"0xfee00000\",\"vcpu\":2,\"write\":"
	     "true},"
	     "{\"error_code\":\"0x2\",\"gpa\":null,\"gva\":\"0x7000\",\"vcpu\":2,\"write\":true}]");
	says(j, "truncated_error_codes", "1");
	json_decref(j);
}

static void test_loops(void)
{
	json_t *j;

	begin();
	enter(1, 10, 0, 0);
	enter(1, 11, 1, 1);
	enter(1, 12, 2, 2);
	fault(2, 10, 0x5008, 0x6);
	fault(3, 11, 0x5010, 0x6);
	fault(4, 12, 0x5ff8, 0x6); /* three vCPUs, once each: no loop yet */
	fault(5, 10, 0x8000, 0x6);
	fault(6, 10, 0x8000, 0x6); /* twice */
	fault(7, 10, 0x8000, 0x7); /* another code */
	j = done();
	says(j, "loops", "[]");
	says(j, "verdict", "null");
	json_decref(j);

	begin();
	enter(1, 10, 0, 0);
	enter(1, 11, 1, 1);
	fault(2, 10, 0x5008, 0x6);
	fault(3, 11, 0x5010, 0x6);
	fault(4, 10, 0x5ff8, 0x6);
	j = done();
	says(j, "loops", "[{\"faults\":3,\"gfn\":\"0x5\",\"rip\":\"0x0\",\"vcpus\":[0,1]}]");
	says(j, "verdict", "\"no-progress loop\"");
	json_decref(j);
}

static void test_no_loop_with_change(void)
{
	static const struct {
		enum host_event_id id;
		enum host_field field;
		uint64_t value;
		const char *verdict;
	} cases[] = {
		{HOST_kvm_mmu_set_spte, HOST_F_gfn, 9, "null"},
		{HOST_kvm_tdp_mmu_spte_changed, HOST_F_gfn, 9, "null"},
		{HOST_fast_page_fault, HOST_F_fixed, 1, "null"},
		{HOST_fast_page_fault, HOST_F_fixed, 0, "\"no-progress loop\""},
		{HOST_fast_page_fault, HOST_F_spurious, 1, "\"no-progress loop\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int late = 0; late < 2; late++) {
			struct host_event e = at(3, 10, 0, cases[i].id);
			json_t *j;

			host_set(&e, cases[i].field, cases[i].value);
			begin();
			if (!late)
				feed(&e);
			for (int k = 0; k < 3; k++)
				fault(4 + k, 10, 0x5000, 0x6);
			if (late)
				feed(&e);
			j = done();
			says(j, "verdict", cases[i].verdict);
			json_decref(j);
		}
	}
}

/* ---- bounds ---- */

static void test_bounded(void)
{
	json_t *j, *list;

	begin();
	for (int i = 0; i < FACTS_MAX_LIST + 10; i++) {
		leave(10 * i, 10, 0, "EPT_VIOLATION", 0, 0);
		fault(10 * i, 10, (uint64_t)i << 12, 6);
		enter(10 * i + 3, 10, 0, 0);
	}
	j = done();
	list = json_object_get(j, "page_faults");
	CU_ASSERT_EQUAL(json_array_size(list), FACTS_MAX_LIST);
	says(j, "page_faults_truncated", "true");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "pair_ns")), FACTS_MAX_LIST);
	says(j, "pair_ns_truncated", "true");
	says(j, "pairs", "10010");
	says(j, "events", "{\"kvm_entry\":10010,\"kvm_exit\":10010,\"kvm_page_fault\":10010}");
	json_decref(j);
}

static void test_percentiles(void)
{
	json_t *j, *p;

	begin();
	for (int i = 1; i <= 1000; i++) {
		leave(10000 * i, 10, 0, "HLT", 0, 0);
		enter(10000 * i + i, 10, 0, 0); /* 1 to 1000 us */
	}
	j = done();
	p = json_object_get(j, "pair_latency");
	/* within 1.6 % */
	CU_ASSERT_DOUBLE_EQUAL(json_integer_value(json_object_get(p, "p50_ns")), 501000., 8016.);
	CU_ASSERT_DOUBLE_EQUAL(json_integer_value(json_object_get(p, "p90_ns")), 901000., 14416.);
	CU_ASSERT_DOUBLE_EQUAL(json_integer_value(json_object_get(p, "p99_ns")), 991000., 15856.);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(p, "max_ns")), 1000000);
	p = json_object_get(json_object_get(j, "exit_times"), "HLT");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(p, "total_ns")), 500500000);
	json_decref(j);
}

int main(void)
{
	CU_TestInfo tests[] = {
		{"pairs", test_pairs},
		{"pairs over losses", test_pairs_over_losses},
		{"the header's loss", test_header_loss},
		{"lost chunks", test_chunks},
		{"columns that are not there", test_no_columns},
		{"heads", test_heads},
		{"faults", test_faults},
		{"loops", test_loops},
		{"no loop where an spte changed", test_no_loop_with_change},
		{"bounded lists", test_bounded},
		{"percentiles", test_percentiles},
		CU_TEST_INFO_NULL,
	};

	return test_main("facts", tests);
}
