// SPDX-License-Identifier: GPL-3.0-or-later
/* Logs and answers (traces/tables): dirty_log_perf_test, QEMU's monitor, rounds of a pre-copy, CSV.
 * The texts follow the programs' own formats (those of QEMU 7.2 are its own output); what is
 * expected is read off them by hand. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/tables_util.h"

static struct tables t;
static struct tally n;

static void feed(const char *text)
{
	CU_ASSERT_EQUAL_FATAL(tables_init(&t), 0);
	CU_ASSERT_EQUAL(tables_feed(&t, text, strlen(text), &n), 0);
}

static bool is(struct decimal d, int64_t value, unsigned digits)
{
	return d.there && d.value == value && d.digits == digits;
}

static bool num(struct number a, uint64_t value)
{
	return a.there && a.value == value;
}

static bool same(const char *a, const char *b)
{
	return !a || !b ? a == b : !strcmp(a, b);
}

/* Without the manual mode, with -v's remarks; then a second guest mode of the same announcement. */
static void test_dirty_log(void)
{
	const struct dirty_log_run *r;

	feed("Stock kernel:\n"
	     "\n"
	     "Test iterations: 3\n"
	     "Testing guest mode: PA-bits:48,  VA-bits:48,  4K pages\n"
	     "guest physical test memory: [0xfbfffff000, 0xfffffff000)\n"
	     "Random seed: 1\n"
	     "Starting iteration 0 - Populating\n"
	     "vCPU 0 iteration 0 populate memory time: 0.500000001s\n"
	     "Populate memory time: 0.500000002s\n"
	     "Enabling dirty logging time: 0.000000300s\n"
	     "\n"
	     "Starting iteration 1\n"
	     "Iteration 1 dirty memory time: 1.000000001s\n"
	     "Iteration 1 get dirty log time: 0.000000011s\n"
	     "Iteration 2 dirty memory time: 1.000000002s\n"
	     "Iteration 2 get dirty log time: 0.000000012s\n"
	     "Disabling dirty logging time: 12.000000400s\n"
	     "Get dirty log over 3 iterations took 0.000000023s. (Avg 0.000000007s/iteration)\n"
	     "Testing guest mode: PA-bits:40,  VA-bits:48, 64K pages\n"
	     "guest physical test memory offset: 0x3fb680000000\n"
	     "Populate memory time: 7.000000000s\n");
	CU_ASSERT_EQUAL(n.damaged, 0);
	CU_ASSERT_EQUAL(n.unknown, 1); /* the label */
	CU_ASSERT_EQUAL_FATAL(t.n_runs, 2);
	r = &t.run[0];
	CU_ASSERT(same(r->label, "Stock kernel"));
	CU_ASSERT(r->range);
	CU_ASSERT(num(r->iterations, 3));
	CU_ASSERT(num(r->populate_ns, 500000002));
	CU_ASSERT(num(r->enable_ns, 300));
	CU_ASSERT(num(r->disable_ns, 12000000400));
	CU_ASSERT_EQUAL_FATAL(r->n_dirty, 2);
	CU_ASSERT_EQUAL(r->dirty_ns[1], 1000000002);
	CU_ASSERT_EQUAL_FATAL(r->n_get, 2);
	CU_ASSERT_EQUAL(r->get_ns[0], 11);
	CU_ASSERT_EQUAL(r->n_clear, 0);
	CU_ASSERT(num(r->get_total_ns, 23));
	CU_ASSERT(!r->clear_total_ns.there);
	r = &t.run[1];
	CU_ASSERT_PTR_NULL(r->label);
	CU_ASSERT(!r->range);
	CU_ASSERT(num(r->iterations, 3));
	CU_ASSERT(num(r->populate_ns, 7000000000));
	tables_free(&t);
}

/* Wrapped at any blank; a number that is cut has fewer than nine decimals. */
static void test_dirty_log_damage(void)
{
	const struct dirty_log_run *r;

	feed("Test iterations: 2\n"
	     "guest physical test memory: [0xfbfffff000, 0xfffffff000\n"
	     "Setting dirty log mode took : 0.000000047s\n"
	     "Iteration 1 dirty\n"
	     "memory time:\n"
	     "1.000000001s\n"
	     "Iteration 1 get dirty ? log time: 0.000000011s\n"
	     "Iteration 1 clear dirty log time: 0.000000111s\n"
	     "Iteration 2 dirty memory time: 1.0000\n"
	     "Iteration 2 get dirty log time: 0.000000012\n"
	     "Iteration 2 clear dirty log\n"
	     "\n"
	     "Get dirty log over 2 iterations took 0.000000023s.\n"
	     "(Avg 0.000000007s/iteration)\n"
	     "Clear dirty log over 2 iterations took 0.000000222s.\n");
	CU_ASSERT_EQUAL(n.unknown, 0);
	CU_ASSERT_EQUAL(n.rejoined, 2);
	CU_ASSERT_EQUAL(n.damaged, 6);
	CU_ASSERT_EQUAL(n.dropped, 3);
	CU_ASSERT_EQUAL_FATAL(t.n_runs, 1);
	r = &t.run[0];
	CU_ASSERT(r->range);
	CU_ASSERT_EQUAL_FATAL(r->n_dirty, 1);
	CU_ASSERT_EQUAL(r->dirty_ns[0], 1000000001);
	CU_ASSERT_EQUAL_FATAL(r->n_get, 2);
	CU_ASSERT_EQUAL(r->get_ns[1], 12);
	CU_ASSERT_EQUAL_FATAL(r->n_clear, 1);
	CU_ASSERT(num(r->get_total_ns, 23));
	CU_ASSERT(!r->clear_total_ns.there);
	tables_free(&t);
}

static void test_migrate_lines(void)
{
	const struct migration_status *m;

	feed("globals:\n"
	     "store-global-state: on\n"
	     "only-migratable: off\n"
	     "send-configuration: on\n"
	     "send-section-footer: on\n"
	     "decompress-error-check: on\n"
	     "clear-bitmap-shift: 18\n"
	     "Migration status: completed\n"
	     "total time: 10 ms\n"
	     "downtime: 2 ms\n"
	     "setup: 2 ms\n"
	     "transferred ram: 661 kbytes\n"
	     "throughput: 998.57 mbps\n"
	     "remaining ram: 0 kbytes\n"
	     "total ram: 82760 kbytes\n"
	     "duplicate: 20570 pages\n"
	     "skipped: 0 pages\n"
	     "normal: 120 pages\n"
	     "normal bytes: 480 kbytes\n"
	     "dirty sync count: 2\n"
	     "page size: 4 kbytes\n"
	     "multifd bytes: 0 kbytes\n"
	     "pages-per-second: 0\n"
	     "downtime ram: 661 kbytes\n"
	     "Migration status: active\n"
	     "total time: 99 milliseconds\n"
	     "expected downtime: 18446744073709551000 ms\n"
	     "transferred ram: 18014398509481983 kbytes\n"
	     "remaining ram: 5 kby\n"
	     "total ram: 82760 kbytes\n"
	     "setup: 2 k ms\n"
	     "pages-per-sec\n"
	     "expect\n"
	     "downtime: 7 ms\n");
	CU_ASSERT_EQUAL(n.unknown, 0);
	CU_ASSERT_EQUAL(n.damaged, 4);
	CU_ASSERT_EQUAL(n.dropped, 3);
	CU_ASSERT_EQUAL_FATAL(t.n_migrations, 2);
	m = &t.migration[0];
	CU_ASSERT_EQUAL(m->layout, MIGRATE_LINES);
	CU_ASSERT(same(m->status, "completed"));
	CU_ASSERT(is(m->throughput_mbps, 99857, 2));
	CU_ASSERT(num(m->total_ms, 10) && num(m->setup_ms, 2) && num(m->downtime_ms, 2));
	CU_ASSERT(!m->expected_downtime_ms.there && !m->dirty_pages_rate.there);
	CU_ASSERT(num(m->page_kib, 4) && num(m->total_kib, 82760) && num(m->transferred_kib, 661));
	CU_ASSERT(num(m->remaining_kib, 0));
	CU_ASSERT(num(m->normal_pages, 120) && num(m->zero_pages, 20570));
	CU_ASSERT(num(m->pages_per_second, 0) && num(m->dirty_syncs, 2));
	for (size_t i = 0; i < n_migrate_fields; i++)
		CU_ASSERT(!migration_impossible(
			m, (const struct number *)(const void *)((const char *)m +
								 migrate_fields[i].offset)));
	m = &t.migration[1];
	CU_ASSERT(num(m->total_ms, 99) && num(m->setup_ms, 2) && num(m->downtime_ms, 7));
	CU_ASSERT(!m->remaining_kib.there);
	CU_ASSERT(migration_impossible(m, &m->expected_downtime_ms));
	CU_ASSERT(migration_impossible(m, &m->transferred_kib)); /* 2^64 - 1 bytes */
	CU_ASSERT(!migration_impossible(m, &m->total_kib));
	tables_free(&t);
}

/* 10.1, with -a; 10.2, with units: 8.13 GiB are 8524922.88 KiB. */
static void test_migrate_folded(void)
{
	const struct migration_status *m;

	feed("Status: postcopy-paused (the network is gone)\n"
	     "Time (ms): total=18233, setup=21,\n"
	     "exp_down=410\n"
	     "RAM info:\n"
	     "  Bandwidth (mbps): 3911.07\n"
	     "  Sizes (KB): psize=4, total=8405256, \n"
	     "    transferred=7120884, remain=1930412, \n"
	     "    precopy=7120884, multifd=0, postcopy=0\n"
	     "  Pages: normal=1771032, zero=402118, rate_per_sec=119310\n"
	     "  Others: dirty_syncs=5, dirty_pages_rate=98204\n"
	     "Globals:\n"
	     "  store-global-state: on\n"
	     "  clear-bitmap-shift: 18\n"
	     "XBZRLE: size=33554432, transferred=5, pages=6, miss=7\n"
	     "  miss_rate=0.31, encode_rate=1.07, overflow=2\n"
	     "Status: \t\tcompleted\n"
	     "Time (ms): \t\ttotal=6728, setup=8, down=32\n"
	     "RAM info:\n"
	     "  Throughput (Mbps): \t649.36\n"
	     "  Sizes: \t\tpagesize=4 KiB, total=8.13 GiB\n"
	     "  Transfers: \t\ttransferred=520 MiB, remain=0 B\n"
	     "    Channels: \t\tprecopy=808 B, multifd=520 MiB, postcopy=0 B\n"
	     "    Page Types: \tnormal=127568, zero=2003477\n"
	     "  Page Rates (pps): \ttransfer=40960, dirty=4\n"
	     "  Others: \t\tdirty_syncs=3, downtime_by\n");
	CU_ASSERT_EQUAL(n.unknown, 0);
	CU_ASSERT_EQUAL(n.rejoined, 1);
	CU_ASSERT_EQUAL(n.damaged, 1);
	CU_ASSERT_EQUAL_FATAL(t.n_migrations, 2);
	m = &t.migration[0];
	CU_ASSERT_EQUAL(m->layout, MIGRATE_FOLDED_ALL);
	CU_ASSERT(same(m->status, "postcopy-paused"));
	CU_ASSERT(num(m->expected_downtime_ms, 410) && !m->downtime_ms.there);
	CU_ASSERT(is(m->throughput_mbps, 391107, 2));
	CU_ASSERT(num(m->transferred_kib, 7120884) && num(m->remaining_kib, 1930412));
	CU_ASSERT(num(m->pages_per_second, 119310) && num(m->dirty_pages_rate, 98204));
	m = &t.migration[1];
	CU_ASSERT_EQUAL(m->layout, MIGRATE_FOLDED);
	CU_ASSERT(num(m->downtime_ms, 32));
	CU_ASSERT(num(m->page_kib, 4) && num(m->total_kib, 8524923));
	CU_ASSERT(num(m->transferred_kib, 520 * 1024) && num(m->remaining_kib, 0));
	CU_ASSERT(num(m->normal_pages, 127568) && num(m->zero_pages, 2003477));
	CU_ASSERT(num(m->pages_per_second, 40960) && num(m->dirty_pages_rate, 4));
	CU_ASSERT(!m->dirty_syncs.there); /* that line is cut */
	tables_free(&t);
}

static void test_dirty_rate(void)
{
	feed("Status: measured\n"
	     "Start Time: 37959 (ms)\n"
	     "Sample Pages: 512 (per GB)\n"
	     "Period: 1 (sec)\n"
	     "Mode: page-sampling\n"
	     "Dirty rate: 0 (MB/s)\n"
	     "\n"
	     "Status: measured\n"
	     "Start Time: 40000 (ms)\n"
	     "Period: 3 (sec)\n"
	     "Mode: dirty-ring\n"
	     "Dirty rate: 61 (MB/s)\n"
	     "vcpu[0], Dirty rate: 60 (MB/s)\n"
	     "vcpu[1], Dirty rate: 1 (MB/s\n"
	     "vcpu[2], Dirty rate: 1\n"
	     "Status: unstarted\n"
	     "Sample Pages: 512 (per GB)\n"
	     "Dirty rate: (not ready\n"
	     "Mode: dirty-bi\n"
	     "Status: the same\n");
	CU_ASSERT_EQUAL(n.unknown, 1);
	CU_ASSERT_EQUAL(n.damaged, 4);
	CU_ASSERT_EQUAL(n.dropped, 2);
	CU_ASSERT_EQUAL_FATAL(t.n_dirty_rates, 3);
	CU_ASSERT(num(t.dirty_rate[0].sample_pages, 512) && num(t.dirty_rate[0].rate_mb_s, 0));
	CU_ASSERT(num(t.dirty_rate[0].start_ms, 37959) && num(t.dirty_rate[0].period_s, 1));
	CU_ASSERT(same(t.dirty_rate[0].mode, "page-sampling"));
	CU_ASSERT(!t.dirty_rate[1].sample_pages.there);
	CU_ASSERT_EQUAL_FATAL(t.dirty_rate[1].n_vcpus, 2);
	CU_ASSERT_EQUAL(t.dirty_rate[1].vcpu[0].mb_s, 60);
	CU_ASSERT_EQUAL(t.dirty_rate[1].vcpu[1].vcpu, 1);
	CU_ASSERT(same(t.dirty_rate[2].status, "unstarted"));
	CU_ASSERT(!t.dirty_rate[2].rate_mb_s.there);
	CU_ASSERT_PTR_NULL(t.dirty_rate[2].mode);
	tables_free(&t);
}

static struct text_look precopy_look(const char *line)
{
	for (size_t i = 0; i < n_table_formats; i++)
		if (table_formats[i]->kind == HOST_KIND_PRECOPY)
			return table_formats[i]->look(&t, line, strlen(line));
	return (struct text_look){.match = TEXT_WHOLE};
}

/* Both orders of the sizes; behind other loggers' prefixes; wrapped; cut in the last unit (kept),
 * in the last number, before it (dropped). */
static void test_precopy(void)
{
	struct text_look l;

	feed("cloud-hypervisor:  12.702682s: <vmm> DEBUG:vmm/src/lib.rs:1313 --\n"
	     "Precopy: iter=0 "
	     "total=6144MiB curr=6144MiB bw=1986.83MiB/s transfer=3.09s overhead=0ms "
	     "est_downtime=0ms elapsed=3.11s avg_bw=1975.41MiB/s\n"
	     "Mar 06 10:00:00 host ch[77]: Precopy: iter=1 curr=418MiB total=6562MiB "
	     "bw=1824.44MiB/s\n"
	     "transfer=0.23s overhead=56ms est_downtime=226ms elapsed=6.14s avg_bw=1884.21MiB/s\n"
	     "iter=2 curr=18MiB total=6580MiB bw=1800.00MiB/s transfer=0.01s overhead=5ms "
	     "est_downtime=10ms elapsed=6.20s avg_bw=1880.00Mi\n"
	     "iter=3 curr=18MiB total=6598MiB bw=1800.00MiB/s transfer=0.01s overhead=5ms "
	     "est_downtime=10ms elapsed=6.30s avg_bw=1880.0\n"
	     "iter=4 curr=18MiB total=6616MiB bw=1800.00MiB/s transfer=0.01s overhead=5ms "
	     "est_downtime=10ms elapsed=6.40s\n"
	     "the iter= counter is no round\n");
	CU_ASSERT_EQUAL(n.unknown, 1);
	CU_ASSERT_EQUAL(n.rejoined, 2);
	CU_ASSERT_EQUAL(n.damaged, 3);
	CU_ASSERT_EQUAL(n.dropped, 2);
	CU_ASSERT_EQUAL_FATAL(t.n_rounds, 3);
	CU_ASSERT_EQUAL(t.round[1].iter, 1);
	CU_ASSERT_EQUAL(t.round[1].curr_mib, 418);
	CU_ASSERT_EQUAL(t.round[1].total_mib, 6562);
	CU_ASSERT_EQUAL(t.round[1].overhead_ms, 56);
	CU_ASSERT_EQUAL(t.round[1].est_downtime_ms, 226);
	CU_ASSERT(is(t.round[1].bw_mib_s, 182444, 2));
	CU_ASSERT(is(t.round[1].transfer_s, 23, 2) && is(t.round[1].elapsed_s, 614, 2));
	CU_ASSERT_EQUAL(t.round[2].iter, 2);
	/* a round that is cut is not made whole by the next one */
	l = precopy_look("iter=3 curr=18MiB total=6598MiB bw=1800.00MiB/s "
			 "iter=4 curr=18MiB total=6616MiB bw=1800.00MiB/s "
			 "transfer=0.01s overhead=5ms est_downtime=10ms elapsed=6.40s "
			 "avg_bw=1880.00MiB/s");
	CU_ASSERT(l.match == TEXT_CUT && l.bad);
	tables_free(&t);
}

static char message[256];
static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	strncpy(message, msg, sizeof(message) - 1);
}

static void test_csv(void)
{
	static const char text[] = "when,\"page\",cost,note\n"
				   "1,0x10,500,\"a, b\"\n"
				   "2,0x11\n"
				   "3, 0x12 ,700,\n"
				   "no more\n"
				   "4,0x13,800,\n";
	static const char *const bad[] = {"", "a=", "=a", "a=b,a=c", "a=b,,c"};
	const struct kvmsim_errsink sink = {keep, NULL};
	struct csv_map *map;

	CU_ASSERT_EQUAL_FATAL(csv_map_parse("gfn=page,value=cost,note", &sink, &map), 0);
	CU_ASSERT_EQUAL_FATAL(tables_init(&t), 0);
	tables_use_csv(&t, map);
	CU_ASSERT_EQUAL(tables_feed(&t, text, strlen(text), &n), 0);
	CU_ASSERT_EQUAL(n.headings, 1);
	CU_ASSERT_EQUAL(n.rows, 2);
	CU_ASSERT_EQUAL(n.dropped, 1);
	CU_ASSERT_EQUAL(n.unknown, 2);
	CU_ASSERT_EQUAL_FATAL(t.csv.n_columns, 3);
	CU_ASSERT_EQUAL_FATAL(t.csv.n_rows, 2);
	CU_ASSERT_STRING_EQUAL(t.csv.name[0], "gfn");
	CU_ASSERT_STRING_EQUAL(t.csv.cell[0], "0x10");
	CU_ASSERT_STRING_EQUAL(t.csv.cell[1], "500");
	CU_ASSERT_STRING_EQUAL(t.csv.cell[2], "a, b");
	CU_ASSERT_STRING_EQUAL(t.csv.cell[3], "0x12");
	CU_ASSERT_STRING_EQUAL(t.csv.cell[5], "");
	tables_free(&t);
	csv_map_free(map);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		message[0] = '\0';
		CU_ASSERT_EQUAL(csv_map_parse(bad[i], &sink, &map), KVMSIM_EINVAL);
		CU_ASSERT_PTR_NULL(map);
		CU_ASSERT(message[0]);
	}
}

/* Every prefix, and every byte changed: nothing but counts may come of it. */
static void test_hostile(void)
{
	static const char text[] =
		" Event   Total %Total CurAvg/s\n kvm_exit(HLT)  1500   60.0  300\n Total 1 2\n"
		"unknown kvm exit code:196608 on SVM\n"
		"npf 100 25.00% 80.00% 2.00us 4.00us 3.00us ( +- 5.00% )\n"
		"Total Samples:4, Total events handled time:4.00us.\n"
		"contended   total wait     max wait     avg wait  type   caller\n"
		"3 1.50 m 60.00 s 30.00 s rwlock:W kvm_x+0x1af\n 0xffffffff8149a3c1  q+0x51\n"
		"Iteration 1 get dirty log time: 0.000000011s\n"
		"Get dirty log over 3 iterations took 0.000000023s. (Avg 0.000000007s/iteration)\n"
		"Status: active\n remaining ram: 18446744073709551612 kbytes\n"
		"Sizes: pagesize=4 KiB, total=8.13 GiB\nvcpu[0], Dirty rate: 60 (MB/s)\n"
		"iter=0 total=6144MiB curr=6144MiB bw=1986.83MiB/s transfer=3.09s overhead=0ms "
		"est_downtime=0ms elapsed=3.11s avg_bw=1975.41MiB/s\n";
	static const char bytes[] = {'\0', ' ', '\n', '9', '(', '%', '=', '.', '-', '\xff'};
	size_t len = sizeof(text) - 1;

	for (size_t i = 0; i <= len; i++) {
		char *copy = malloc(i ? i : 1); /* its end is watched */

		memcpy(copy, text, i);
		CU_ASSERT_EQUAL_FATAL(tables_init(&t), 0);
		CU_ASSERT_EQUAL(tables_feed(&t, copy, i, &n), 0);
		tables_free(&t);
		free(copy);
	}
	for (size_t i = 0; i < len; i++) {
		for (size_t j = 0; j < sizeof(bytes); j++) {
			char *copy = malloc(len);

			memcpy(copy, text, len);
			copy[i] = bytes[j];
			CU_ASSERT_EQUAL_FATAL(tables_init(&t), 0);
			CU_ASSERT_EQUAL(tables_feed(&t, copy, len, &n), 0);
			CU_ASSERT(n.dropped <= n.damaged);
			CU_ASSERT(n.rows + n.headings + n.dropped + n.unknown >= 5);
			tables_free(&t);
			free(copy);
		}
	}
}

static CU_TestInfo tests[] = {{"dirty_log_perf_test", test_dirty_log},
			      {"dirty_log_perf_test damaged", test_dirty_log_damage},
			      {"info migrate, a field per line", test_migrate_lines},
			      {"info migrate, folded", test_migrate_folded},
			      {"info dirty_rate", test_dirty_rate},
			      {"rounds of a pre-copy", test_precopy},
			      {"CSV", test_csv},
			      {"hostile bytes", test_hostile},
			      CU_TEST_INFO_NULL};
TEST_MAIN("test_tables_logs", tests)
