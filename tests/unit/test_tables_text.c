// SPDX-License-Identifier: GPL-3.0-or-later
/* Tables through host_read: quoted, and wrapped at every width, they are the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "traces/host/host.h"
#include "traces/tables/tables.h"

static const char *const lines[] = {
	"here is what I see, in one go",
	"kvm statistics - pid 4117 (web-3)",
	"",
	" Event                                         Total %Total CurAvg/s",
	" kvm_exit                                       1500   60.0      300",
	"   kvm_exit(EXTERNAL_INTERRUPT)                  500   33.3      100",
	" kvm_entry                                      1000   40.0        0",
	" Total                                          2500             300",
	"",
	"Analyze events for pid(s) 4117, all VCPUs:",
	"",
	"VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         Avg time ",
	"",
	"unknown kvm exit code:196608 on SVM",
	("UNKNOWN        300    75.00%    20.00%      0.50us     12.25us      3.00us ( +-   1.50% "
	 ")"),
	"",
	"Total Samples:300, Total events handled time:4500.00us.",
	"",
	"   contended   total wait     max wait     avg wait         type   caller",
	"",
	("          12      1.50 ms    812.00 us     83.10 us     rwlock:W   "
	 "kvm_zap_gfn_range+0x1af"),
	"",
	"Test iterations: 2",
	"guest physical test memory: [0xfbfffff000, 0xfffffff000)",
	"Iteration 1 clear dirty log time: 0.000000111s",
	"Clear dirty log over 2 iterations took 0.000000111s. (Avg 0.000000055s/iteration)",
	"",
	"Status: active",
	"Time (ms): total=18233, setup=21, exp_down=410",
	"  Pages: normal=1771032, zero=402118, rate_per_sec=119310",
	"",
	("cloud-hypervisor:   9.118204s: <vmm> DEBUG:vmm/src/lib.rs:1288 -- Precopy: iter=0 "
	 "total=64MiB curr=64MiB bw=32.00MiB/s transfer=2.00s overhead=0ms est_downtime=0ms "
	 "elapsed=2.01s avg_bw=31.84MiB/s"),
};

/* Breaks @line at blanks where it is wider than @width, or at the first blank behind it. */
static void put_wrapped(FILE *f, const char *quote, const char *line, size_t width)
{
	while (strlen(line) > width) {
		const char *from = line + strspn(line, " "), *cut = NULL;

		for (const char *p = from; *p && (!cut || p <= line + width); p++)
			if (*p == ' ' && p[strspn(p, " ")])
				cut = p;
		if (!cut)
			break;
		fprintf(f, "%s%.*s\n", quote, (int)(cut - line), line);
		line = cut + strspn(cut, " ");
	}
	fprintf(f, "%s%s\n", quote, line);
}

static void check(const struct tables *t, const struct host_counts *c)
{
	CU_ASSERT_EQUAL(c->unknown_lines, 1);
	CU_ASSERT_EQUAL(c->damaged_lines, 0);
	CU_ASSERT_EQUAL(c->rows, 15);
	CU_ASSERT_EQUAL_FATAL(t->n_kvm_stat, 1);
	CU_ASSERT_STRING_EQUAL(t->kvm_stat[0].scope, "pid 4117 (web-3)");
	CU_ASSERT_EQUAL_FATAL(t->kvm_stat[0].n_rows, 3);
	CU_ASSERT_STRING_EQUAL(t->kvm_stat[0].row[1].parent, "kvm_exit");
	CU_ASSERT_EQUAL(t->kvm_stat[0].row[1].rate.value, 100);
	CU_ASSERT_EQUAL(t->kvm_stat[0].total_rate.value, 300);
	CU_ASSERT_EQUAL_FATAL(t->n_perf_kvm, 1);
	CU_ASSERT_STRING_EQUAL(t->perf_kvm[0].scope, "pid 4117");
	CU_ASSERT_EQUAL_FATAL(t->perf_kvm[0].n_rows, 1);
	CU_ASSERT_EQUAL(t->perf_kvm[0].row[0].code.value, 196608);
	CU_ASSERT_EQUAL(t->perf_kvm[0].row[0].dev_pct.value, 150);
	CU_ASSERT_EQUAL(t->perf_kvm[0].total_time_us.value, 450000);
	CU_ASSERT_EQUAL_FATAL(t->n_locks, 1);
	CU_ASSERT_EQUAL(t->lock[0].avg_ns, 83100);
	CU_ASSERT_STRING_EQUAL(t->lock[0].offset, "0x1af");
	CU_ASSERT_EQUAL_FATAL(t->n_runs, 1);
	CU_ASSERT(t->run[0].range && t->run[0].n_clear == 1);
	CU_ASSERT_EQUAL(t->run[0].clear_total_ns.value, 111);
	CU_ASSERT_EQUAL_FATAL(t->n_migrations, 1);
	CU_ASSERT_EQUAL(t->migration[0].expected_downtime_ms.value, 410);
	CU_ASSERT_EQUAL(t->migration[0].pages_per_second.value, 119310);
	CU_ASSERT_EQUAL_FATAL(t->n_rounds, 1);
	CU_ASSERT_EQUAL(t->round[0].elapsed_s.value, 201);
}

/* Breaks @line behind @width bytes, as terminals do. */
static void put_broken(FILE *f, const char *line, size_t width)
{
	for (; strlen(line) > width; line += width)
		fprintf(f, "%.*s\n", (int)width, line);
	fprintf(f, "%s\n", line);
}

/* No number is wrong; returns the rows that are there. */
static unsigned check_broken(const struct tables *t)
{
	unsigned rows = 0;

	for (size_t i = 0; i < t->n_kvm_stat; i++)
		for (size_t j = 0; j < t->kvm_stat[i].n_rows; j++) {
			const struct kvm_stat_row *r = &t->kvm_stat[i].row[j];
			bool exit = !strcmp(r->name, "kvm_exit"),
			     entry = !strcmp(r->name, "kvm_entry");

			CU_ASSERT_EQUAL(r->total, exit ? 1500 : entry ? 1000 : 500);
			CU_ASSERT_EQUAL(r->percent.value, exit ? 600 : entry ? 400 : 333);
			CU_ASSERT(!r->rate.there || r->rate.value == (exit    ? 300
								      : entry ? 0
									      : 100));
			rows++;
		}
	for (size_t i = 0; i < t->n_perf_kvm; i++)
		for (size_t j = 0; j < t->perf_kvm[i].n_rows; j++, rows++) {
			CU_ASSERT_EQUAL(t->perf_kvm[i].row[j].samples.value, 300);
			CU_ASSERT_EQUAL(t->perf_kvm[i].row[j].max_us.value, 1225);
			CU_ASSERT_EQUAL(t->perf_kvm[i].row[j].avg_us.value, 300);
			CU_ASSERT_EQUAL(t->perf_kvm[i].row[j].dev_pct.value, 150);
		}
	for (size_t i = 0; i < t->n_locks; i++, rows++) {
		CU_ASSERT_EQUAL(t->lock[i].total_ns, 1500000);
		CU_ASSERT_EQUAL(t->lock[i].avg_ns, 83100);
		CU_ASSERT_STRING_EQUAL(t->lock[i].type, "rwlock:W");
		CU_ASSERT_STRING_EQUAL(t->lock[i].offset, "0x1af");
	}
	for (size_t i = 0; i < t->n_runs; i++) {
		CU_ASSERT(!t->run[i].n_clear || t->run[i].clear_ns[0] == 111);
		CU_ASSERT(!t->run[i].clear_total_ns.there || t->run[i].clear_total_ns.value == 111);
		rows += t->run[i].n_clear + t->run[i].clear_total_ns.there;
	}
	for (size_t i = 0; i < t->n_migrations; i++) {
		const struct number *n = &t->migration[i].pages_per_second;

		CU_ASSERT(!n->there || n->value == 119310);
		rows += n->there;
	}
	for (size_t i = 0; i < t->n_rounds; i++, rows++) {
		CU_ASSERT_EQUAL(t->round[i].bw_mib_s.value, 3200);
		CU_ASSERT_EQUAL(t->round[i].elapsed_s.value, 201);
	}
	return rows;
}

static unsigned read_back(const char *quote, size_t width, bool broken)
{
	char path[] = "/tmp/kvmsim-test-tables-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	const struct host_sink nothing = {0};
	struct host_result r = {0};
	struct host_opts opts = {0};
	unsigned rows = 0;
	struct tables t;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (broken)
			put_broken(f, lines[i], width);
		else
			put_wrapped(f, quote, lines[i], width);
	CU_ASSERT_EQUAL_FATAL(fclose(f), 0);
	CU_ASSERT_EQUAL_FATAL(tables_init(&t), 0);
	opts.tables = &t;
	CU_ASSERT_EQUAL(host_read(path, &opts, &nothing, NULL, &r), 0);
	if (broken)
		rows = check_broken(&t);
	else
		check(&t, &r.counts);
	if (width < 60)
		CU_ASSERT(r.counts.rejoined_records > 5);
	tables_free(&t);
	unlink(path);
	return rows;
}

static void test_wrapped(void)
{
	for (size_t width = 44; width < 200; width += width < 100 ? 1 : 50)
		read_back("", width, false);
}

static void test_quoted(void)
{
	for (size_t width = 44; width < 200; width += width < 100 ? 7 : 50) {
		read_back("> ", width, false);
		read_back(">> > ", width, false);
	}
}

/* 9 rows have a number that is looked at; a few are broken where nothing tells what belongs
 * together. */
static void test_broken(void)
{
	unsigned rows = 0, widths = 0;

	for (size_t width = 44; width < 180; width++, widths++)
		rows += read_back("", width, true);
	CU_ASSERT(rows * 100 > widths * 9 * 97);
	CU_ASSERT(rows <= widths * 9);
}

/* A terminal's last column was behind a "=", or in front of one. */
static void test_broken_at_equals(void)
{
	static const char text[] =
		"cloud-hypervisor:   9.118204s: <vmm> DEBUG:vmm/src/lib.rs:1288 -- Precopy: iter=\n"
		"0 total=64MiB curr=64MiB bw=32.00MiB/s transfer=2.00s overhead=0ms elapsed=2.01s\n"
		" est_downtime=0ms avg_bw=31.84MiB/s\n"
		"cloud-hypervisor:  12.330917s: <vmm> DEBUG:vmm/src/lib.rs:1288 -- Precopy: ite\n"
		"r=1 total=96MiB curr=32MiB bw=32.00MiB/s transfer=1.00s overhead=7ms est_downt\n"
		"ime=8ms elapsed=3.13s avg_bw=31.84MiB/s\n";
	char path[] = "/tmp/kvmsim-test-tables-XXXXXX";
	int fd = mkstemp(path);
	const struct host_sink nothing = {0};
	struct host_opts opts = {0};
	struct host_result r = {0};
	struct tables t;

	CU_ASSERT_FATAL(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
	CU_ASSERT_EQUAL_FATAL(tables_init(&t), 0);
	opts.tables = &t;
	CU_ASSERT_EQUAL(host_read(path, &opts, &nothing, NULL, &r), 0);
	CU_ASSERT_EQUAL(r.counts.unknown_lines, 0);
	CU_ASSERT_EQUAL(r.counts.damaged_lines, 0);
	CU_ASSERT_EQUAL_FATAL(t.n_rounds, 2);
	CU_ASSERT_EQUAL(t.round[0].iter, 0);
	CU_ASSERT_EQUAL(t.round[0].elapsed_s.value, 201);
	CU_ASSERT_EQUAL(t.round[1].iter, 1);
	CU_ASSERT_EQUAL(t.round[1].est_downtime_ms, 8);
	tables_free(&t);
	unlink(path);
	close(fd);
}

/* Reads @text, all of it, as a file. */
static void read_text(const char *text, size_t len, struct tables *t, struct host_result *r)
{
	char path[] = "/tmp/kvmsim-test-tables-XXXXXX";
	int fd = mkstemp(path);
	const struct host_sink nothing = {0};
	struct host_opts opts = {.tables = t};

	*r = (struct host_result){0};
	CU_ASSERT_FATAL(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	CU_ASSERT_EQUAL_FATAL(tables_init(t), 0);
	CU_ASSERT_EQUAL(host_read(path, &opts, &nothing, NULL, r), 0);
	unlink(path);
	close(fd);
}

#define LOGGED(time) "cloud-hypervisor:  " time "s: <vmm> DEBUG:vmm/src/lib.rs:1288 -- Precopy: "
static const char *const log_lines[] = {
	(LOGGED("9.118204") "iter=0 total=8192MiB curr=8192MiB bw=2210.55MiB/s transfer=3.71s "
			    "overhead=0ms est_downtime=0ms elapsed=3.73s avg_bw=2196.25MiB/s"),
	(LOGGED("12.330917") "iter=1 curr=6198MiB total=14390MiB bw=1988.20MiB/s transfer=3.12s "
			     "overhead=71ms est_downtime=2804ms elapsed=6.95s "
			     "avg_bw=2070.50MiB/s"),
	(LOGGED("115.544120") "iter=12 total=20611MiB curr=6221MiB bw=2001.73MiB/s transfer=3.11s "
			      "overhead=69ms est_downtime=3129ms elapsed=10.16s "
			      "avg_bw=2028.64MiB/s"),
	LOGGED("121.911046") "iter=13 total=33027MiB curr=6205MiB bw=2019.88MiB/s transfer=",
};

/* Whatever column a terminal broke them at, the rounds are those that were logged, and only the
 * one that the log ends inside of is damaged. */
static void test_broken_rounds(void)
{
	static const struct precopy_round want[] = {
		{.iter = 0, .total_mib = 8192, .curr_mib = 8192, .elapsed_s = {373, 2, true}},
		{1, 14390, 6198, 71, 2804, .elapsed_s = {695, 2, true}},
		{12, 20611, 6221, 69, 3129, .elapsed_s = {1016, 2, true}},
	};
	static const int64_t bw[] = {221055, 198820, 200173};

	for (size_t width = 40; width <= 120; width++) {
		struct host_result r;
		struct tables t;
		size_t len;
		char *text;
		FILE *f = open_memstream(&text, &len);

		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		for (size_t i = 0; i < sizeof(log_lines) / sizeof(*log_lines); i++)
			put_broken(f, log_lines[i], width);
		CU_ASSERT_EQUAL_FATAL(fclose(f), 0);
		read_text(text, len - 1, &t, &r);
		CU_ASSERT_EQUAL(r.counts.unknown_lines, 0);
		CU_ASSERT_EQUAL(r.counts.damaged_lines, 1);
		CU_ASSERT_EQUAL(r.counts.rejoined_records, 3);
		CU_ASSERT_EQUAL_FATAL(t.n_rounds, 3);
		for (size_t i = 0; i < 3; i++) {
			const struct precopy_round *x = &t.round[i], *y = &want[i];

			CU_ASSERT(x->iter == y->iter && x->total_mib == y->total_mib &&
				  x->curr_mib == y->curr_mib && x->overhead_ms == y->overhead_ms &&
				  x->est_downtime_ms == y->est_downtime_ms);
			CU_ASSERT_EQUAL(x->elapsed_s.value, y->elapsed_s.value);
			CU_ASSERT_EQUAL(x->bw_mib_s.value, bw[i]);
		}
		CU_ASSERT_EQUAL(t.round[2].cut, 1);
		CU_ASSERT_FALSE(precopy_unread(&t.round[2]));
		tables_free(&t);
		free(text);
	}
}

/* Rounds of which a line is missing, or with a blank inside of a number, are damaged, and said to
 * be behind the last one that is whole. */
static void test_rounds_unread(void)
{
	static const char no_middle[] =
		"Precopy: iter=0 total=64MiB curr=64MiB bw=32.00MiB/s transfer=2.00s overhead=0ms "
		"est_downtime=0ms elapsed=2.01s avg_bw=31.84MiB/s\n"
		"Precopy: iter=1 total=96MiB cu\n"
		"\n"
		"transfer=1.00s overhead=7ms est_downtime=812ms elapsed=3.13s avg_bw=31.84MiB/s\n";
	static const char blank[] =
		"Precopy: iter=0 total=64MiB curr=64MiB bw=32.00MiB/s transfer=2.00s overhead=0ms "
		"est_downtime=0ms elapsed=2.01s avg_bw=31.84MiB/s\n"
		"Precopy: iter=1 total=9 6MiB curr=32MiB bw=32.00MiB/s transfer=1.00s overhead=7ms "
		"est_downtime=812ms elapsed=3.13s avg_bw=31.84MiB/s\n";
	struct host_result r;
	struct tables t;

	read_text(no_middle, sizeof(no_middle) - 1, &t, &r);
	CU_ASSERT_EQUAL(r.counts.damaged_lines, 2);
	CU_ASSERT_EQUAL_FATAL(t.n_rounds, 1);
	CU_ASSERT_EQUAL(t.round[0].cut, 1);
	CU_ASSERT_EQUAL(t.round[0].unread, 1);
	CU_ASSERT(precopy_unread(&t.round[0]));
	tables_free(&t);
	read_text(blank, sizeof(blank) - 1, &t, &r);
	CU_ASSERT_EQUAL(r.counts.damaged_lines, 1);
	CU_ASSERT_EQUAL_FATAL(t.n_rounds, 1);
	CU_ASSERT(precopy_unread(&t.round[0]));
	tables_free(&t);
}

/* perf's table: a terminal's last column was in front of the % of a heading, behind the point of a
 * deviation. */
static void test_broken_perf(void)
{
	static const char text[] =
		"Analyze events for all VMs, all VCPUs:\n\n"
		"             VM-EXIT    Samples  Samples\n"
		"%     Time%    Min Time    Max Time     \n"
		"    Avg time \n\n"
		"HLT 41 48.05% 93.11% 1.03us 40418.77us 918.24us ( +-   4.\n"
		"12% )\n"
		"IO_INSTRUCTION 22 25.71% 5.03% 0.61us 88120.13us 92.70us ( +-  31.\n"
		"06% )\n\n"
		"Total Samples:63, Total events handled time:4070101.29us.\n";
	struct host_result r;
	struct tables t;

	read_text(text, sizeof(text) - 1, &t, &r);
	CU_ASSERT_EQUAL(r.counts.unknown_lines, 0);
	CU_ASSERT_EQUAL(r.counts.damaged_lines, 0);
	CU_ASSERT_EQUAL_FATAL(t.n_perf_kvm, 1);
	CU_ASSERT_EQUAL_FATAL(t.perf_kvm[0].n_rows, 2);
	CU_ASSERT_EQUAL(t.perf_kvm[0].row[0].dev_pct.value, 412);
	CU_ASSERT_EQUAL(t.perf_kvm[0].row[1].dev_pct.value, 3106);
	tables_free(&t);
}

static CU_TestInfo tests[] = {{"wrapped at every width", test_wrapped},
			      {"quoted, too", test_quoted},
			      {"broken by a terminal at every width", test_broken},
			      {"broken behind an equals sign", test_broken_at_equals},
			      {"rounds broken by a terminal at every width", test_broken_rounds},
			      {"perf's table broken in front of a %", test_broken_perf},
			      {"rounds that cannot be read are told", test_rounds_unread},
			      CU_TEST_INFO_NULL};
TEST_MAIN("test_tables_text", tests)
