// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "tests/unit/made_events.h"
#include "tests/unit/trace_util.h"
#include "traces/event_reader.h"

/* Events of hosts to native traces: what becomes an op. */

static void fault(int64_t tid, uint64_t time, uint64_t address, uint64_t code)
{
	struct host_event e = made_event(HOST_kvm_page_fault, tid, time);

	host_set(&e, HOST_F_address, address);
	host_set(&e, HOST_F_error_code, code);
	made_put(e);
}

static void mmio(int64_t tid, uint64_t time, uint64_t type, uint64_t gpa, uint64_t len)
{
	struct host_event e = made_event(HOST_kvm_mmio, tid, time);

	host_set(&e, HOST_F_type, type);
	host_set(&e, HOST_F_gpa, gpa);
	host_set(&e, HOST_F_len, len);
	made_put(e);
}

static void set_spte(int64_t tid, uint64_t time, uint64_t gfn, uint64_t level)
{
	struct host_event e = made_event(HOST_kvm_mmu_set_spte, tid, time);

	host_set(&e, HOST_F_gfn, gfn);
	host_set(&e, HOST_F_level, level);
	made_put(e);
}

static struct import_host_stats import(const char *from, const char *to,
				       const struct import_host_opts *opts)
{
	struct import_host_file f = {.path = from};
	struct import_host_stats st;

	CU_ASSERT_EQUAL_FATAL(import_host(&f, 1, opts, to, NULL, &st), 0);
	return st;
}

/* ---- what becomes an op ---- */

static void faults_under_nested_paging(void)
{
	static const struct guest_op vcpu0[] = {
		/* 1000 ns after the trace's first record */
		{.kind = OP_WRITE, .arg = 0x7000, .gap = 1000},
		{.kind = OP_FETCH, .arg = 0x9008, .gap = 500},
		{.kind = OP_READ, .arg = 0x8000, .gap = 0},
		{.kind = OP_HLT, .gap = 300},
	};
	static const struct guest_op vcpu2[] = {
		{.kind = OP_NONE, .gap = UINT32_MAX},
		{.kind = OP_FETCH, .arg = 0x10123, .gap = 5000000000 - UINT32_MAX},
		/* the clock went back: at the time of the one before */
		{.kind = OP_WRITE, .arg = 0x11000, .gap = 0},
	};
	const char *from = temp_path("from"), *to = temp_path("to");
	struct import_host_stats st;
	const struct trace_meta *m;
	struct trace_reader *r;

	made_begin(from);
	made_entry(10, 100000, 0);
	made_exit_for(10, 100900, "EPT_VIOLATION", 0x182, 0);
	fault(10, 101000, 0x7000, 0x182); /* bit 1: write */
	fault(10, 101500, 0x9008, 0x184); /* bit 2 of an EPT qualification: fetch */
	fault(10, 101500, 0x8000, 0x181); /* bit 0: read */
	made_exit_for(10, 101800, "HLT", 0, 0);
	fault(11, 102000, 0x1000, 2); /* no vCPU so far */
	made_entry(11, 103000, 2);
	/* SVM: the code's low half; bit 4 is a fetch, bit 2 the user's */
	made_exit_for(11, 5000099000, "npf", 0x100000014, 0x10123);
	fault(11, 5000100000, 0x10123, 0x14);
	made_exit_for(11, 5000099990, "EXIT_NPF", 0x100000006, 0x11000);
	fault(11, 5000099990, 0x11000, 0x6);
	made_finish();
	st = import(from, to, &made_plain);
	CU_ASSERT_EQUAL(st.ops.reads, 1);
	CU_ASSERT_EQUAL(st.ops.writes, 2);
	CU_ASSERT_EQUAL(st.ops.fetches, 2);
	CU_ASSERT_EQUAL(st.ops.ops, 6);
	CU_ASSERT_EQUAL(st.ops.no_vcpu, 1);
	CU_ASSERT_EQUAL(st.slot.base_gfn, 7);
	CU_ASSERT_EQUAL(st.slot.npages, 0x11 - 7 + 1);
	r = reopen(to, NULL);
	m = trace_meta(r);
	CU_ASSERT_EQUAL(m->version, 2);
	CU_ASSERT_EQUAL(m->n_vcpus, 3);
	CU_ASSERT_EQUAL(m->clock, TRACE_CLOCK_NS);
	CU_ASSERT_EQUAL(m->clock_hz, 1000000000);
	CU_ASSERT_EQUAL(m->unseen,
			TRACE_NO_GVA | TRACE_NO_DMA | TRACE_NO_WALKS | TRACE_ONLY_FAULTS);
	CU_ASSERT_EQUAL_FATAL(m->n_slots, 1);
	CU_ASSERT_EQUAL(m->slots[0].base_gfn, 7);
	CU_ASSERT_EQUAL(m->slots[0].npages, 11);
	CU_ASSERT_STRING_EQUAL(m->source, "tracepoints of a host");
	CU_ASSERT(stream_is(r, 0, vcpu0, 4));
	CU_ASSERT(stream_is(r, 1, NULL, 0));
	CU_ASSERT(stream_is(r, 2, vcpu2, 3));
	/* eleven events, one section, one result */
	CU_ASSERT_EQUAL(trace_event_rows(r), 14);
	trace_close(r);
}

static void accesses_of_devices(void)
{
	static const struct guest_op ops[] = {
		{.kind = OP_MMIO_READ, .arg = 0xfebc0008, .len = 4, .gap = 20},
		{.kind = OP_MMIO_READ, .arg = 0xfebc0008, .len = 4, .gap = 20},
		{.kind = OP_MMIO_WRITE, .arg = 0xfee00380, .len = 4, .gap = 10},
		{.kind = OP_WRITE, .arg = 0x5000, .gap = 10},
		{.kind = OP_PIO, .arg = 0x1f7, .len = 1, .gap = 5},
		{.kind = OP_MMIO_WRITE, .arg = 0xfe003000, .gap = 5},
	};
	const char *from = temp_path("from"), *to = temp_path("to");
	struct import_host_stats st;
	struct trace_reader *r;
	struct host_event e;

	made_begin(from);
	made_entry(10, 1000, 0);
	made_exit_for(10, 1005, "EPT_VIOLATION", 0x181, 0);
	fault(10, 1010, 0xfebc0000, 0x181); /* not RAM: what follows is its access */
	mmio(10, 1020, 0, 0xfebc0008, 4);   /* unsatisfied, */
	mmio(10, 1030, 1, 0xfebc0008, 4);   /* and the answer */
	mmio(10, 1040, 1, 0xfebc0008, 4);   /* answered within the kernel */
	made_exit_for(10, 1045, "EPT_VIOLATION", 0x182, 0);
	fault(10, 1046, 0xfee00380, 0x182);
	mmio(10, 1050, 2, 0xfee00380, 4);
	fault(10, 1060, 0x5000, 0x182);
	e = made_event(HOST_kvm_pio, 10, 1065);
	host_set(&e, HOST_F_port, 0x1f7);
	host_set(&e, HOST_F_len, 1);
	host_set(&e, HOST_F_write, 1);
	made_put(e);
	e = made_event(HOST_kvm_fast_mmio, 10, 1070);
	host_set(&e, HOST_F_gpa, 0xfe003000);
	made_put(e);
	made_exit_for(10, 1075, "EPT_VIOLATION", 0x182, 0);
	fault(10, 1080, 0xfee00300, 0x182); /* the local APIC's page, and nothing follows */
	mmio(12, 1090, 2, 0xfebc0000, 4);   /* of no known vCPU */
	made_finish();
	st = import(from, to, &made_plain);
	CU_ASSERT_EQUAL(st.ops.ops, 6);
	CU_ASSERT_EQUAL(st.ops.device, 3);
	CU_ASSERT_EQUAL(st.ops.others_no_vcpu, 1);
	CU_ASSERT_EQUAL(st.slot.base_gfn, 5);
	CU_ASSERT_EQUAL(st.slot.npages, 1);
	r = reopen(to, NULL);
	CU_ASSERT(stream_is(r, 0, ops, 6));
	trace_close(r);
}

static void faults_under_shadow_paging(void)
{
	static const struct guest_op ops[] = {
		{.kind = OP_WRITE, .arg = 0x1234567, .gap = 20},
		{.kind = OP_READ, .arg = 0x800000 | 0xabcde, .gap = 980},
		{.kind = OP_MMIO_WRITE, .arg = 0xfebc0010, .len = 4, .gap = 1005},
	};
	const char *from = temp_path("from"), *to = temp_path("to");
	struct import_host_stats st;
	struct trace_reader *r;

	made_begin(from);
	made_entry(10, 1000, 0);
	made_exit_for(10, 1010, "EXCEPTION_NMI", 0, 0x80000b0e);
	fault(10, 1020, 0xffff888001234567, 2);
	set_spte(10, 1025, 0x1234, 1); /* the fault's; */
	set_spte(10, 1026, 0x9999, 1); /* what is fetched ahead */
	made_entry(10, 1030, 0);
	made_exit_for(10, 1990, "EXCEPTION_NMI", 0, 0x80000b0e);
	fault(10, 2000, 0xffff8880008abcde, 0);
	set_spte(10, 2001, 0x800, 2); /* 2 MiB from gfn 0x800 */
	made_entry(10, 2010, 0);
	made_exit_for(10, 2990, "EXCEPTION_NMI", 0, 0x80000b0e);
	fault(10, 3000, 0xffffc90000000010, 2); /* a device's page */
	mmio(10, 3005, 2, 0xfebc0010, 4);
	made_entry(10, 3010, 0);
	made_exit_for(10, 3990, "EXCEPTION_NMI", 0, 0x80000b0e);
	fault(10, 4000, 0x401000, 3); /* emulated: its page is not told */
	made_entry(10, 4010, 0);
	made_finish();
	st = import(from, to, &made_plain);
	CU_ASSERT_EQUAL(st.ops.virtual, 1);
	CU_ASSERT_EQUAL(st.ops.device, 1);
	CU_ASSERT_EQUAL(st.ops.low_gfn, 0x8ab);
	CU_ASSERT_EQUAL(st.ops.high_gfn, 0x1234);
	r = reopen(to, NULL);
	CU_ASSERT(stream_is(r, 0, ops, 3));
	trace_close(r);
}

/* Without a tid only the record itself can say whose it is; without a time there are no gaps. */
static void columns_that_are_missing(void)
{
	static const struct guest_op ops[] = {{.kind = OP_READ, .arg = 0x3000}};
	const char *from = temp_path("from"), *to = temp_path("to");
	struct import_host_stats st;
	struct host_event e;
	struct trace_reader *r;

	made_begin(from);
	made_entry(-1, HOST_NO_TIME, 1);
	fault(-1, HOST_NO_TIME, 0x2000, 1);
	e = made_event(HOST_kvm_page_fault, -1, HOST_NO_TIME);
	host_set(&e, HOST_F_vcpu, 1);
	host_set(&e, HOST_F_address, 0x3000);
	host_set(&e, HOST_F_error_code, 1);
	made_put(e);
	host_set(&e, HOST_F_vcpu, 512);
	made_put(e);
	made_finish();
	st = import(from, to, &made_plain);
	CU_ASSERT_EQUAL(st.ops.no_vcpu, 2);
	CU_ASSERT_TRUE(st.ops.no_time);
	r = reopen(to, NULL);
	CU_ASSERT(trace_meta(r)->unseen & TRACE_ONE_CLOCK);
	CU_ASSERT(stream_is(r, 1, ops, 1));
	trace_close(r);
}

static void slots_that_are_given(void)
{
	static const struct trace_slot slots[] = {{0, 0x10, "low"}, {0x100, 0x10, "high"}};
	static const struct guest_op ops[] = {{.kind = OP_READ, .arg = 0xf000, .gap = 10},
					      {.kind = OP_READ, .arg = 0x10f000, .gap = 30}};
	struct import_host_opts opts = {
		.slots = slots, .n_slots = 2, .source = "a", .kernel = "b", .workload = "c"};
	const char *from = temp_path("from"), *to = temp_path("to");
	struct import_host_stats st;
	struct trace_reader *r;

	made_begin(from);
	made_entry(10, 1000, 0);
	fault(10, 1010, 0xf000, 1);
	fault(10, 1020, 0x10000, 1);
	fault(10, 1030, 0xff000, 1);
	fault(10, 1040, 0x10f000, 1);
	fault(10, 1050, 0x110000, 1);
	made_finish();
	st = import(from, to, &opts);
	CU_ASSERT_EQUAL(st.ops.outside, 3);
	CU_ASSERT_EQUAL(st.slot.npages, 0);
	r = reopen(to, NULL);
	CU_ASSERT(stream_is(r, 0, ops, 2));
	CU_ASSERT_EQUAL_FATAL(trace_meta(r)->n_slots, 2);
	CU_ASSERT_EQUAL(trace_meta(r)->slots[1].base_gfn, 0x100);
	CU_ASSERT_STRING_EQUAL(trace_meta(r)->source, "a");
	CU_ASSERT_STRING_EQUAL(trace_meta(r)->kernel, "b");
	CU_ASSERT_STRING_EQUAL(trace_meta(r)->workload, "c");
	trace_close(r);
}

static void nothing_usable(void)
{
	const char *from = temp_path("from"), *to = temp_path("never");
	struct import_host_file f = {.path = from};
	struct event_row row = {.kind = EVENT_ROW_ELISION};
	struct import_host_stats st;
	struct messages msg;
	struct kvmsim_errsink sink = keep_messages(&msg);
	volatile int stop = 1;
	struct import_host_opts interrupted = {.interrupted = &stop};

	made_begin(from);
	CU_ASSERT_EQUAL(trace_write_row(made_trace, &row), 0);
	made_finish();
	CU_ASSERT_EQUAL(import_host(&f, 1, &made_plain, to, &sink, &st), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(msg.last, "cannot tell: no event in it"));
	made_begin(from);
	made_entry(1, 1, 1);
	made_finish();
	CU_ASSERT_EQUAL(import_host(&f, 1, &interrupted, to, &sink, &st), KVMSIM_EINTR);
	CU_ASSERT_EQUAL(access(to, F_OK), -1);
	remove_temp();
}

static CU_TestInfo tests[] = {{"faults_under_nested_paging", faults_under_nested_paging},
			      {"accesses_of_devices", accesses_of_devices},
			      {"faults_under_shadow_paging", faults_under_shadow_paging},
			      {"columns_that_are_missing", columns_that_are_missing},
			      {"slots_that_are_given", slots_that_are_given},
			      {"nothing_usable", nothing_usable},
			      CU_TEST_INFO_NULL};
TEST_MAIN("import_host", tests)
