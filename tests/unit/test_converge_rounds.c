// SPDX-License-Identifier: GPL-3.0-or-later
/* Logs of migrations judged (analysis/converge_rounds): rounds are reckoned by hand, as geometric
 * series, and what would be needed from the closed form. */
#include <math.h>
#include <string.h>

#include "analysis/converge_rounds.h"
#include "tests/unit/harness.h"
#include "tests/unit/tables_util.h"

static struct tables t;
static struct rounds_result r;

static int judge(const char *text, double bandwidth, double downtime)
{
	const struct rounds_goal goal = {bandwidth, downtime, 100};
	struct tally n;

	CU_ASSERT_EQUAL_FATAL(tables_init(&t), 0);
	CU_ASSERT_EQUAL(tables_feed(&t, text, strlen(text), &n), 0);
	CU_ASSERT_EQUAL(n.unknown + n.damaged, 0);
	return rounds_judge(&t, &goal, &r);
}

static void done(void)
{
	rounds_result_free(&r);
	tables_free(&t);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fabs(b);
}

#define ROUND(iter, total, curr, bw, transfer)                                                     \
	"Precopy: iter=" #iter " total=" #total "MiB curr=" #curr "MiB bw=" #bw                    \
	"MiB/s transfer=" #transfer                                                                \
	"s overhead=0ms est_downtime=0ms elapsed=9.99s avg_bw=100.00MiB/s\n"

/* 1000 MiB at 100 MiB/s, of which the guest dirties 50 MiB/s: each round is half of the one before.
 */
static const char halves[] = ROUND(0, 1000, 1000, 100.00, 10.00) ROUND(1, 1500, 500, 100.00, 5.00)
	ROUND(2, 1750, 250, 100.00, 2.50) ROUND(3, 1875, 125, 100.00, 1.25);

static void test_halves(void)
{
	CU_ASSERT_EQUAL_FATAL(judge(halves, 0, 0.3), 0);
	CU_ASSERT(r.known && !r.fit.saturated && !r.migration);
	CU_ASSERT_EQUAL(r.n_errors, 0);
	CU_ASSERT(near(r.fit.rate, 50));
	CU_ASSERT(near(r.goal.bandwidth, 100));
	CU_ASSERT(r.way.converges);
	/* 1000, 500, 250, 125, 62.5 and 31.25 MiB are sent; 15.625 fit into 30 */
	CU_ASSERT_EQUAL(r.way.rounds, 6);
	CU_ASSERT(near(r.way.sent_s, 19.6875));
	CU_ASSERT(near(r.way.stop_s, 0.15625));
	done();
}

/* At 40 MiB/s a guest of 50 MiB/s dirties all of it again. */
static void test_halves_slow(void)
{
	double b;

	CU_ASSERT_EQUAL_FATAL(judge(halves, 40, 0.3), 0);
	CU_ASSERT(r.known && !r.way.converges);
	CU_ASSERT_EQUAL(r.way.rounds, 100);
	CU_ASSERT(near(r.way.left, 1000));
	CU_ASSERT(near(r.needs.downtime, 25));
	/* 1000 (limit / 40)^100 = 0.3 x 40 */
	CU_ASSERT(near(r.needs.limit, 40 * pow(12.0 / 1000, 0.01)));
	CU_ASSERT_EQUAL(r.needs.throttle, 24); /* 1 - 38.27 / 50 */
	/* 1000 (50 / b)^100 = 0.3 b */
	b = r.needs.bandwidth;
	CU_ASSERT(near(1000 * pow(50 / b, 100), 0.3 * b));
	CU_ASSERT(near(r.needs.least_bandwidth, b));
	done();
}

/* 5418 to 5428 MiB in rounds of 2.80 to 3.09 s: what a round dirties does not follow its length. */
static void test_working_set(void)
{
	static const char text[] =
		ROUND(0, 6144, 6144, 1988.35, 3.09) ROUND(1, 11562, 5418, 1868.28, 2.90)
			ROUND(2, 16990, 5428, 1938.57, 2.80) ROUND(3, 22408, 5418, 1836.61, 2.95);
	double b = 22408 / 11.74, limit;

	CU_ASSERT_EQUAL_FATAL(judge(text, 0, 0.3), 0);
	CU_ASSERT_EQUAL(r.n_errors, 0);
	CU_ASSERT(r.fit.saturated);
	CU_ASSERT(near(r.fit.most, 5428));
	CU_ASSERT(near(r.fit.rate, 5418 / 2.80));
	CU_ASSERT(near(r.goal.bandwidth, b));
	CU_ASSERT(r.known && !r.way.converges);
	CU_ASSERT(near(r.way.stop_s, 5428 / b));
	/* all of it within the downtime */
	CU_ASSERT(near(r.needs.bandwidth, 5428 / 0.3));
	CU_ASSERT(r.needs.least_bandwidth < 2100 && r.needs.least_bandwidth > 5418 / 2.80);
	/* the first round is followed by the working set, the other 99 make it fit */
	limit = b * pow(0.3 * b / 5428, 1.0 / 99);
	CU_ASSERT(near(r.needs.limit, limit));
	CU_ASSERT_EQUAL(r.needs.throttle, ceil(100 * (1 - limit / (5418 / 2.80))));
	done();
	CU_ASSERT_EQUAL_FATAL(judge(text, 20000, 0.3), 0);
	CU_ASSERT(r.way.converges);
	CU_ASSERT_EQUAL(r.way.rounds, 1);
	CU_ASSERT(near(r.way.stop_s, 5428.0 / 20000));
	done();
}

/* One round tells nothing about the guest, but fits. */
static void test_one_round(void)
{
	static const char text[] = ROUND(0, 1000, 1000, 100.00, 10.00);

	CU_ASSERT_EQUAL_FATAL(judge(text, 0, 0.3), 0);
	CU_ASSERT(!r.known && !r.fit.has_rate);
	done();
	CU_ASSERT_EQUAL_FATAL(judge(text, 0, 10), 0);
	CU_ASSERT(r.known && r.way.converges);
	CU_ASSERT_EQUAL(r.way.rounds, 0);
	done();
	/* the round between is missing: nothing is known of either */
	CU_ASSERT_EQUAL_FATAL(judge(ROUND(0, 1000, 1000, 100.00, 10.00)
					    ROUND(2, 1750, 250, 100.00, 2.50),
				    0, 0.3),
			      0);
	CU_ASSERT(!r.known);
	done();
}

static void test_impossible_rounds(void)
{
	CU_ASSERT_EQUAL_FATAL(
		judge(ROUND(0, 1000, 1000, 100.00, 10.00) ROUND(1, 2500, 1500, 100.00, 15.00)
			      ROUND(2, 2600, 500, 100.00, 5.00) ROUND(3, 3100, 500, 100.00, 7.00),
		      0, 0.3),
		0);
	CU_ASSERT_EQUAL_FATAL(r.n_errors, 3);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.errors[0], "round 1: curr 1500 MiB is more than the 1000"));
	CU_ASSERT_PTR_NOT_NULL(strstr(r.errors[1], "round 2: total 2600 MiB is less"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(r.errors[2], "round 3: curr 500 MiB is not bw by transfer, 700"));
	done();
}

static void test_migration(void)
{
	double b = 3911.07e6 / 8 / 1048576, q = 98204.0 / 256 / b, left = 1930412.0 / 1024;

	CU_ASSERT_EQUAL_FATAL(judge("Status: active\n"
				    "Time (ms): total=18233, setup=21, exp_down=410\n"
				    "RAM info:\n"
				    "  Throughput (mbps): 3911.07\n"
				    "  Sizes (KB): psize=4, total=8405256,\n"
				    "    transferred=7120884, remain=1930412,\n"
				    "    precopy=7120884, multifd=0, postcopy=0\n"
				    "  Pages: normal=1771032, zero=402118, rate_per_sec=119310\n"
				    "  Others: dirty_syncs=5, dirty_pages_rate=98204\n",
				    0, 0.3),
			      0);
	CU_ASSERT(r.migration && r.known && r.way.converges);
	CU_ASSERT_EQUAL(r.n_errors, 0);
	CU_ASSERT(near(r.goal.bandwidth, b));
	CU_ASSERT_EQUAL(r.way.rounds, ceil(log(0.3 * b / left) / log(q)));
	CU_ASSERT(near(r.way.left, left * pow(q, (double)r.way.rounds)));
	done();
}

/* 2^64 - 4 KiB remain: an error of accounts. Zero and normal pages are 4 KiB short of the total. */
static void test_underflow(void)
{
	CU_ASSERT_EQUAL_FATAL(judge("Migration status: active\n"
				    "throughput: 5.41 mbps\n"
				    "remaining ram: 18446744073709551612 kbytes\n"
				    "total ram: 10485760 kbytes\n"
				    "duplicate: 2621276 pages\n"
				    "normal: 163 pages\n"
				    "page size: 4 kbytes\n",
				    0, 0.3),
			      0);
	CU_ASSERT_EQUAL_FATAL(r.n_errors, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.errors[0], "remaining_kib: 18446744073709551612"));
	CU_ASSERT_PTR_NOT_NULL(strstr(r.errors[0], "is 4 KiB"));
	CU_ASSERT(near(r.fit.left, 4.0 / 1024));
	CU_ASSERT(r.known && r.way.converges); /* 0.004 MiB at 0.64 MiB/s */
	done();
	CU_ASSERT_EQUAL(judge("vcpu[0], Dirty rate: 1 (MB/s)\n", 0, 0.3), KVMSIM_ENOENT);
	done();
}

/* What is dirtied is at least a page, so no guest that dirties converges to nothing, whatever
 * limits its rate; the page takes 4 KiB / 100 MiB/s. */
static void test_last_page(void)
{
	CU_ASSERT_EQUAL_FATAL(judge(halves, 0, 0), 0);
	CU_ASSERT(r.known && !r.way.converges);
	CU_ASSERT(near(r.way.left, 4.0 / 1024));
	CU_ASSERT(near(r.needs.downtime, 4.0 / 1024 / 100));
	CU_ASSERT_EQUAL(r.needs.limit, 0);
	CU_ASSERT_EQUAL(r.needs.throttle, 0);
	done();
	/* at a byte per second a page takes longer than the downtime */
	CU_ASSERT_EQUAL_FATAL(judge(halves, 1. / (1 << 20), 300), 0);
	CU_ASSERT(r.known && !r.way.converges);
	CU_ASSERT_EQUAL(r.needs.limit, 0);
	done();
}

static CU_TestInfo tests[] = {{"each round is half of the one before", test_halves},
			      {"too slow a link", test_halves_slow},
			      {"the last page", test_last_page},
			      {"a working set", test_working_set},
			      {"too few rounds", test_one_round},
			      {"impossible rounds", test_impossible_rounds},
			      {"info migrate", test_migration},
			      {"below zero", test_underflow},
			      CU_TEST_INFO_NULL};
TEST_MAIN("test_converge_rounds", tests)
