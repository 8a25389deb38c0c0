// SPDX-License-Identifier: GPL-3.0-or-later
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "tests/unit/made_events.h"
#include "tests/unit/trace_util.h"
#include "traces/event_reader.h"
#include "traces/tables/rows.h"

/* Events of hosts to native traces: several files, tables, and whole files. */

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

	made_begin(host);
	made_entry(10, 1000, 0);
	made_exit_for(10, 2000, "HLT", 0, 0);
	made_entry(10, 2400, 0);
	made_finish();
	made_begin(guest);
	made_entry(10, 2000, 5);
	made_exit_for(10, 2500, "HLT", 0, 0);
	made_entry(10, 2400, 5);
	made_finish();
	CU_ASSERT_EQUAL_FATAL(import_host(files, 2, &made_plain, to, NULL, &st), 0);
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
	CU_ASSERT_EQUAL(temp_files(), 3);

	files[1].offset_ns = -2001;
	unlink(to);
	CU_ASSERT_EQUAL(import_host(files, 2, &made_plain, to, &sink, &st), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(msg.last, "offset of -2001 ns its first time is negative"));
	made_begin(guest);
	e = made_event(HOST_kvm_entry, 10, HOST_NO_TIME);
	made_put(e);
	made_finish();
	CU_ASSERT_EQUAL(import_host(files, 2, &made_plain, to, &sink, &st), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(msg.last, "no times in it"));
	CU_ASSERT_EQUAL(temp_files(), 2);
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

	made_begin(path);
	CU_ASSERT_EQUAL(trace_write_tables(made_trace, &in), 0);
	made_finish();
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

		if (before && !import_host(&f, 1, &made_plain, to, NULL, &st)) {
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
	remove_temp();
}

static CU_TestInfo tests[] = {{"merges_by_time", merges_by_time},
			      {"keeps_tables", keeps_tables},
			      {"says_the_same_of_whole_files", says_the_same_of_whole_files},
			      CU_TEST_INFO_NULL};
TEST_MAIN("import_files", tests)
