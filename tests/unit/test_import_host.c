// SPDX-License-Identifier: GPL-3.0-or-later
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "tests/unit/trace_util.h"
#include "traces/event_reader.h"
#include "traces/event_writer.h"
#include "traces/import_host.h"
#include "traces/tables/rows.h"

/* Events of hosts to native traces: what becomes an op, and several files. */

static struct host_text text(const char *s)
{
	return (struct host_text){s, strlen(s)};
}

/* Events made by hand, in a native trace: what host_read() gives of one. */
static struct trace_writer *out;

static void begin(const char *path)
{
	struct trace_meta meta = meta_of(1);

	meta.version = TRACE_VERSION;
	CU_ASSERT_EQUAL_FATAL(trace_create(path, &meta, NULL, &out), 0);
}

static struct host_event event(enum host_event_id id, int64_t tid, uint64_t time)
{
	return (struct host_event){.id = id,
				   .name = text(host_event_name(id)),
				   .tid = tid,
				   .tgid = -1,
				   .cpu = 3,
				   .comm = text("vmm"),
				   .time_ns = time,
				   .time_decimals = 6};
}

static void put(struct host_event e)
{
	CU_ASSERT_EQUAL_FATAL(trace_write_event(out, &e), 0);
}

static void entry(int64_t tid, uint64_t time, uint64_t vcpu)
{
	struct host_event e = event(HOST_kvm_entry, tid, time);

	host_set(&e, HOST_F_vcpu, vcpu);
	put(e);
}

/* No vCPU in it, as to 5.10. */
static void exit_for(int64_t tid, uint64_t time, const char *reason, uint64_t info1, uint64_t info2)
{
	struct host_event e = event(HOST_kvm_exit, tid, time);

	e.reason = text(reason);
	host_set(&e, HOST_F_info1, info1);
	host_set(&e, HOST_F_info2, info2);
	put(e);
}

static void fault(int64_t tid, uint64_t time, uint64_t address, uint64_t code)
{
	struct host_event e = event(HOST_kvm_page_fault, tid, time);

	host_set(&e, HOST_F_address, address);
	host_set(&e, HOST_F_error_code, code);
	put(e);
}

static void mmio(int64_t tid, uint64_t time, uint64_t type, uint64_t gpa, uint64_t len)
{
	struct host_event e = event(HOST_kvm_mmio, tid, time);

	host_set(&e, HOST_F_type, type);
	host_set(&e, HOST_F_gpa, gpa);
	host_set(&e, HOST_F_len, len);
	put(e);
}

static void set_spte(int64_t tid, uint64_t time, uint64_t gfn, uint64_t level)
{
	struct host_event e = event(HOST_kvm_mmu_set_spte, tid, time);

	host_set(&e, HOST_F_gfn, gfn);
	host_set(&e, HOST_F_level, level);
	put(e);
}

static void finish(void)
{
	CU_ASSERT_EQUAL_FATAL(trace_finish(out, NULL), 0);
}

static struct import_host_stats import(const char *from, const char *to,
				       const struct import_host_opts *opts)
{
	struct import_host_file f = {.path = from};
	struct import_host_stats st;

	CU_ASSERT_EQUAL_FATAL(import_host(&f, 1, opts, to, NULL, &st), 0);
	return st;
}

static const struct import_host_opts plain;

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

	begin(from);
	entry(10, 100000, 0);
	exit_for(10, 100900, "EPT_VIOLATION", 0x182, 0);
	fault(10, 101000, 0x7000, 0x182); /* bit 1: write */
	fault(10, 101500, 0x9008, 0x184); /* bit 2 of an EPT qualification: fetch */
	fault(10, 101500, 0x8000, 0x181); /* bit 0: read */
	exit_for(10, 101800, "HLT", 0, 0);
	fault(11, 102000, 0x1000, 2); /* no vCPU so far */
	entry(11, 103000, 2);
	/* SVM: the code's low half; bit 4 is a fetch, bit 2 the user's */
	exit_for(11, 5000099000, "npf", 0x100000014, 0x10123);
	fault(11, 5000100000, 0x10123, 0x14);
	exit_for(11, 5000099990, "EXIT_NPF", 0x100000006, 0x11000);
	fault(11, 5000099990, 0x11000, 0x6);
	finish();
	st = import(from, to, &plain);
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

	begin(from);
	entry(10, 1000, 0);
	exit_for(10, 1005, "EPT_VIOLATION", 0x181, 0);
	fault(10, 1010, 0xfebc0000, 0x181); /* not RAM: what follows is its access */
	mmio(10, 1020, 0, 0xfebc0008, 4);   /* unsatisfied, */
	mmio(10, 1030, 1, 0xfebc0008, 4);   /* and the answer */
	mmio(10, 1040, 1, 0xfebc0008, 4);   /* answered within the kernel */
	exit_for(10, 1045, "EPT_VIOLATION", 0x182, 0);
	fault(10, 1046, 0xfee00380, 0x182);
	mmio(10, 1050, 2, 0xfee00380, 4);
	fault(10, 1060, 0x5000, 0x182);
	e = event(HOST_kvm_pio, 10, 1065);
	host_set(&e, HOST_F_port, 0x1f7);
	host_set(&e, HOST_F_len, 1);
	host_set(&e, HOST_F_write, 1);
	put(e);
	e = event(HOST_kvm_fast_mmio, 10, 1070);
	host_set(&e, HOST_F_gpa, 0xfe003000);
	put(e);
	exit_for(10, 1075, "EPT_VIOLATION", 0x182, 0);
	fault(10, 1080, 0xfee00300, 0x182); /* the local APIC's page, and nothing follows */
	mmio(12, 1090, 2, 0xfebc0000, 4);   /* of no known vCPU */
	finish();
	st = import(from, to, &plain);
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

	begin(from);
	entry(10, 1000, 0);
	exit_for(10, 1010, "EXCEPTION_NMI", 0, 0x80000b0e);
	fault(10, 1020, 0xffff888001234567, 2);
	set_spte(10, 1025, 0x1234, 1); /* the fault's; */
	set_spte(10, 1026, 0x9999, 1); /* what is fetched ahead */
	entry(10, 1030, 0);
	exit_for(10, 1990, "EXCEPTION_NMI", 0, 0x80000b0e);
	fault(10, 2000, 0xffff8880008abcde, 0);
	set_spte(10, 2001, 0x800, 2); /* 2 MiB from gfn 0x800 */
	entry(10, 2010, 0);
	exit_for(10, 2990, "EXCEPTION_NMI", 0, 0x80000b0e);
	fault(10, 3000, 0xffffc90000000010, 2); /* a device's page */
	mmio(10, 3005, 2, 0xfebc0010, 4);
	entry(10, 3010, 0);
	exit_for(10, 3990, "EXCEPTION_NMI", 0, 0x80000b0e);
	fault(10, 4000, 0x401000, 3); /* emulated: its page is not told */
	entry(10, 4010, 0);
	finish();
	st = import(from, to, &plain);
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

	begin(from);
	entry(-1, HOST_NO_TIME, 1);
	fault(-1, HOST_NO_TIME, 0x2000, 1);
	e = event(HOST_kvm_page_fault, -1, HOST_NO_TIME);
	host_set(&e, HOST_F_vcpu, 1);
	host_set(&e, HOST_F_address, 0x3000);
	host_set(&e, HOST_F_error_code, 1);
	put(e);
	host_set(&e, HOST_F_vcpu, 512);
	put(e);
	finish();
	st = import(from, to, &plain);
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

	begin(from);
	entry(10, 1000, 0);
	fault(10, 1010, 0xf000, 1);
	fault(10, 1020, 0x10000, 1);
	fault(10, 1030, 0xff000, 1);
	fault(10, 1040, 0x10f000, 1);
	fault(10, 1050, 0x110000, 1);
	finish();
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

/* ---- several files ---- */

static void merges_by_time(void)
{
	static const struct {
		uint64_t time;
		int64_t tid, cpu;
	} expected[] = {
		{1000, 10, 3},
		{1500, 10 + (1ll << 32), 3 + (1 << 16)},
		{2000, 10, 3},
		{2000, 10 + (1ll << 32), 3 + (1 << 16)},
		/* within a file the order stays, also where time goes back */
		{1900, 10 + (1ll << 32), 3 + (1 << 16)},
		{2400, 10, 3},
	};
	static const struct guest_op ops[] = {{.kind = OP_HLT, .gap = 1000}};
	const char *host = temp_path("host"), *guest = temp_path("guest"), *to = temp_path("to");
	struct import_host_file files[] = {{.path = host}, {.path = guest, .offset_ns = -500}};
	struct import_host_stats st;
	struct event_reader *rows;
	struct event_row row;
	struct messages msg;
	struct kvmsim_errsink sink = keep_messages(&msg);
	struct trace_reader *r;
	struct host_event e;

	begin(host);
	entry(10, 1000, 0);
	exit_for(10, 2000, "HLT", 0, 0);
	entry(10, 2400, 0);
	finish();
	begin(guest);
	entry(10, 2000, 5);
	exit_for(10, 2500, "HLT", 0, 0);
	entry(10, 2400, 5);
	finish();
	CU_ASSERT_EQUAL_FATAL(import_host(files, 2, &plain, to, NULL, &st), 0);
	CU_ASSERT_EQUAL(files[0].first_time, 1000);
	CU_ASSERT_EQUAL(files[0].last_time, 2400);
	CU_ASSERT_EQUAL(files[1].first_time, 1500);
	CU_ASSERT_EQUAL(files[1].last_time, 2000);
	r = reopen(to, NULL);
	/* ops are the first file's */
	CU_ASSERT_EQUAL(trace_meta(r)->n_vcpus, 1);
	CU_ASSERT(stream_is(r, 0, ops, 1));
	CU_ASSERT_EQUAL_FATAL(event_reader_open(r, &rows), 0);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		CU_ASSERT_EQUAL_FATAL(event_reader_next(rows, &row), 1);
		CU_ASSERT_EQUAL(row.event.time_ns, expected[i].time);
		CU_ASSERT_EQUAL(row.event.tid, expected[i].tid);
		CU_ASSERT_EQUAL(row.event.cpu, expected[i].cpu);
	}
	while (event_reader_next(rows, &row) > 0)
		CU_ASSERT(row.kind >= EVENT_ROW_SECTION);
	CU_ASSERT_EQUAL(row.kind, EVENT_ROW_RESULT);
	CU_ASSERT_EQUAL(row.result.counts.records, 6);
	event_reader_close(rows);
	trace_close(r);
	CU_ASSERT_EQUAL(temp_files(), 4);

	files[1].offset_ns = -2001;
	unlink(to);
	CU_ASSERT_EQUAL(import_host(files, 2, &plain, to, &sink, &st), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(msg.last, "offset of -2001 ns its first time is negative"));
	begin(guest);
	e = event(HOST_kvm_entry, 10, HOST_NO_TIME);
	put(e);
	finish();
	CU_ASSERT_EQUAL(import_host(files, 2, &plain, to, &sink, &st), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(msg.last, "no times in it"));
	CU_ASSERT_EQUAL(temp_files(), 3);
}

/* Tables made by hand come back, field by field. */
static void keeps_tables(void)
{
	struct kvm_stat_row rows[] = {
		{.name = "kvm_exit", .total = 10, .percent = {1000, 1, true}, .rate = {3, true}},
		{.name = "HLT", .parent = "kvm_exit", .total = 4, .percent = {-5, 3, true}},
	};
	struct kvm_stat_table stat[] = {
		{.layout = KVM_STAT_TOTAL_CURRENT, .scope = "all"},
		{.scope = "pid 7 (a=b)", .row = rows, .n_rows = 2, .total = {10, true}},
	};
	uint64_t dirty[] = {5, UINT64_MAX, 0};
	struct dirty_log_run run = {
		.range = true, .populate_ns = {77, true}, .dirty_ns = dirty, .n_dirty = 3};
	struct migration_status migration = {.layout = MIGRATE_FOLDED_ALL,
					     .status = "active",
					     .throughput_mbps = {268435456, 2, true},
					     .remaining_kib = {UINT64_MAX - 4095, true},
					     .dirty_pages_rate = {0, true}};
	struct vcpu_rate rates[] = {{0, 3}, {1, 4}};
	struct dirty_rate rate = {.mode = "dirty-ring", .vcpu = rates, .n_vcpus = 2};
	struct contended_lock lock = {.contended = 2, .max_ns = UINT64_MAX, .address = "0xff11"};
	struct precopy_round round = {.iter = 3, .elapsed_s = {1234567890, 9, true}};
	struct perf_kvm_row perf_row = {.name = "EPT_VIOLATION", .code = {48, true}};
	struct perf_kvm_table perf = {
		.wall_clock = "0.5", .row = &perf_row, .n_rows = 1, .total_time_us = {12, 0, true}};
	const struct tables in = {.kvm_stat = stat,
				  .n_kvm_stat = 2,
				  .perf_kvm = &perf,
				  .n_perf_kvm = 1,
				  .run = &run,
				  .n_runs = 1,
				  .migration = &migration,
				  .n_migrations = 1,
				  .dirty_rate = &rate,
				  .n_dirty_rates = 1,
				  .round = &round,
				  .n_rounds = 1,
				  .lock = &lock,
				  .n_locks = 1};
	const char *path = temp_path("tables");
	const struct host_sink nobody = {.ctx = NULL};
	struct host_result res;
	struct tables t;
	struct host_opts opts = {.tables = &t};

	begin(path);
	CU_ASSERT_EQUAL(trace_write_tables(out, &in), 0);
	finish();
	CU_ASSERT_EQUAL_FATAL(tables_init(&t), 0);
	CU_ASSERT_EQUAL_FATAL(host_read(path, &opts, &nobody, NULL, &res), 0);
	CU_ASSERT_EQUAL(res.counts.rows, 13);
	CU_ASSERT_EQUAL_FATAL(t.n_kvm_stat, 2);
	CU_ASSERT_EQUAL(t.kvm_stat[0].layout, KVM_STAT_TOTAL_CURRENT);
	CU_ASSERT_STRING_EQUAL(t.kvm_stat[0].scope, "all");
	CU_ASSERT_EQUAL(t.kvm_stat[0].n_rows, 0);
	CU_ASSERT_FALSE(t.kvm_stat[0].total.there);
	CU_ASSERT_STRING_EQUAL(t.kvm_stat[1].scope, "pid 7 (a=b)");
	CU_ASSERT_TRUE(t.kvm_stat[1].total.there);
	CU_ASSERT_EQUAL(t.kvm_stat[1].total.value, 10);
	CU_ASSERT_EQUAL_FATAL(t.kvm_stat[1].n_rows, 2);
	CU_ASSERT_PTR_NULL(t.kvm_stat[1].row[0].parent);
	CU_ASSERT_EQUAL(t.kvm_stat[1].row[0].percent.value, 1000);
	CU_ASSERT_EQUAL(t.kvm_stat[1].row[0].percent.digits, 1);
	CU_ASSERT_EQUAL(t.kvm_stat[1].row[0].rate.value, 3);
	CU_ASSERT_STRING_EQUAL(t.kvm_stat[1].row[1].name, "HLT");
	CU_ASSERT_STRING_EQUAL(t.kvm_stat[1].row[1].parent, "kvm_exit");
	CU_ASSERT_EQUAL(t.kvm_stat[1].row[1].percent.value, -5);
	CU_ASSERT_EQUAL(t.kvm_stat[1].row[1].percent.digits, 3);
	CU_ASSERT_FALSE(t.kvm_stat[1].row[1].rate.there);
	CU_ASSERT_EQUAL_FATAL(t.n_runs, 1);
	CU_ASSERT_TRUE(t.run[0].range);
	CU_ASSERT_PTR_NULL(t.run[0].label);
	CU_ASSERT_EQUAL(t.run[0].populate_ns.value, 77);
	CU_ASSERT_FALSE(t.run[0].enable_ns.there);
	CU_ASSERT_EQUAL_FATAL(t.run[0].n_dirty, 3);
	CU_ASSERT(!memcmp(t.run[0].dirty_ns, dirty, sizeof(dirty)));
	CU_ASSERT_EQUAL(t.run[0].n_get, 0);
	CU_ASSERT_EQUAL_FATAL(t.n_migrations, 1);
	CU_ASSERT_EQUAL(t.migration[0].layout, MIGRATE_FOLDED_ALL);
	CU_ASSERT_EQUAL(t.migration[0].throughput_mbps.value, 268435456);
	CU_ASSERT_EQUAL(t.migration[0].remaining_kib.value, UINT64_MAX - 4095);
	CU_ASSERT_TRUE(t.migration[0].dirty_pages_rate.there);
	CU_ASSERT_FALSE(t.migration[0].total_kib.there);
	CU_ASSERT_EQUAL_FATAL(t.n_dirty_rates, 1);
	CU_ASSERT_EQUAL_FATAL(t.dirty_rate[0].n_vcpus, 2);
	CU_ASSERT_EQUAL(t.dirty_rate[0].vcpu[1].mb_s, 4);
	CU_ASSERT_EQUAL_FATAL(t.n_locks, 1);
	CU_ASSERT_EQUAL(t.lock[0].max_ns, UINT64_MAX);
	CU_ASSERT_STRING_EQUAL(t.lock[0].address, "0xff11");
	CU_ASSERT_EQUAL_FATAL(t.n_rounds, 1);
	CU_ASSERT_EQUAL(t.round[0].elapsed_s.value, 1234567890);
	CU_ASSERT_EQUAL(t.round[0].elapsed_s.digits, 9);
	CU_ASSERT_EQUAL_FATAL(t.n_perf_kvm, 1);
	CU_ASSERT_EQUAL(t.perf_kvm[0].row[0].code.value, 48);
	CU_ASSERT_EQUAL(t.perf_kvm[0].total_time_us.value, 12);
	CU_ASSERT_EQUAL(t.perf_kvm[0].total_time_us.digits, 0);
	tables_free(&t);
}

/* ---- whole files ---- */

static int dump_event(void *ctx, const struct host_event *e)
{
	FILE *f = ctx;

	fprintf(f, "%u %.*s %llu %lld %lld %lld '%.*s' '%.*s' %d %d %u %u %llu", e->id,
		(int)e->name.len, e->name.at, (unsigned long long)e->time_ns, (long long)e->tid,
		(long long)e->tgid, (long long)e->cpu, (int)e->comm.len, e->comm.at,
		(int)e->reason.len, e->reason.at, e->damaged, e->role_unreliable, e->time_decimals,
		e->flags_width, (unsigned long long)e->line);
	for (unsigned i = 0; i < HOST_N_FIELDS; i++)
		if (host_has(e, (enum host_field)i))
			fprintf(f, " %u=%llx", i, (unsigned long long)e->v[i]);
	fputc('\n', f);
	return 0;
}

static int dump_loss(void *ctx, const struct host_loss *l)
{
	fprintf(ctx, "loss %lld %llu %llu %d\n", (long long)l->cpu, (unsigned long long)l->count,
		(unsigned long long)l->chunks, l->header);
	return 0;
}

static int dump_elision(void *ctx)
{
	fputs("elision\n", ctx);
	return 0;
}

static int dump_cpus(void *ctx, uint64_t n, bool empty)
{
	fprintf(ctx, "cpus %llu %d\n", (unsigned long long)n, empty);
	return 0;
}

static int dump_row(void *ctx, const char *s, size_t len)
{
	fprintf(ctx, "%.*s\n", (int)len, s);
	return 0;
}

/* Everything that host_read() says of a file. Malloc'd; NULL: it is refused. */
static char *dump(const char *path)
{
	struct tables tables;
	struct host_opts opts = {.tables = &tables};
	struct host_result r;
	char *all = NULL;
	size_t len;
	FILE *f = open_memstream(&all, &len);
	struct host_sink sink = {f, dump_event, dump_loss, dump_elision, dump_cpus};
	int ret;

	CU_ASSERT_EQUAL_FATAL(tables_init(&tables), 0);
	ret = host_read(path, &opts, &sink, NULL, &r);
	tables_put_rows(&tables, dump_row, f);
	tables_free(&tables);
	for (unsigned i = 0; i < r.n_sections; i++)
		fprintf(f, "section %u\n", r.sections[i]);
	for (size_t i = 0; i < offsetof(struct host_counts, blank) / sizeof(uint64_t); i++)
		fprintf(f, "count %llu\n", (unsigned long long)((const uint64_t *)&r.counts)[i]);
	fprintf(f, "%d %d %d %d %d %u %u %u %d '%s'\n", r.counts.blank, r.has_cpu, r.has_tid,
		r.has_time, r.dat.is_dat, r.dat.version, r.dat.long_size, r.dat.page_size,
		r.dat.big_endian, r.dat.compression);
	fclose(f);
	if (!ret)
		return all;
	free(all);
	return NULL;
}

static unsigned compare_files(const char *pattern)
{
	const char *to = temp_path("whole");
	unsigned n = 0;
	glob_t g;

	if (glob(pattern, 0, NULL, &g))
		return 0;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct import_host_file f = {.path = g.gl_pathv[i]};
		char *before = dump(f.path), *after;
		struct import_host_stats st;

		if (before && !import_host(&f, 1, &plain, to, NULL, &st)) {
			after = dump(to);
			if (!after || strcmp(before, after) != 0)
				printf("%s: not the same\n", f.path);
			CU_ASSERT(after && !strcmp(before, after));
			free(after);
			n++;
		}
		free(before);
	}
	globfree(&g);
	return n;
}

/* Whatever is read of a trace, of any form, is read of what it was imported to. */
static void says_the_same_of_whole_files(void)
{
	compare_files("tests/golden/samples/*.txt");
	CU_ASSERT_EQUAL(compare_files("tests/golden/dat-*.dat"), 3);
	CU_ASSERT(compare_files("traces/recorded/dat-*.dat") >= 7);
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

	begin(from);
	CU_ASSERT_EQUAL(trace_write_row(out, &row), 0);
	finish();
	CU_ASSERT_EQUAL(import_host(&f, 1, &plain, to, &sink, &st), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(msg.last, "cannot tell: no event in it"));
	begin(from);
	entry(1, 1, 1);
	finish();
	CU_ASSERT_EQUAL(import_host(&f, 1, &interrupted, to, &sink, &st), KVMSIM_EINTR);
	CU_ASSERT_EQUAL(access(to, F_OK), -1);
	remove_temp();
}

static CU_TestInfo tests[] = {{"faults_under_nested_paging", faults_under_nested_paging},
			      {"accesses_of_devices", accesses_of_devices},
			      {"faults_under_shadow_paging", faults_under_shadow_paging},
			      {"columns_that_are_missing", columns_that_are_missing},
			      {"slots_that_are_given", slots_that_are_given},
			      {"merges_by_time", merges_by_time},
			      {"keeps_tables", keeps_tables},
			      {"says_the_same_of_whole_files", says_the_same_of_whole_files},
			      {"nothing_usable", nothing_usable},
			      CU_TEST_INFO_NULL};
TEST_MAIN("import_host", tests)
