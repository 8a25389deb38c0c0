// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/facts_scene.h"

/* The rules behind `kvmsim info` of a host's trace: verdicts. Expected
 * values follow from the rules' words (docs/host-facts.md), worked out on paper. */

/* ---- verdicts ---- */

#define S 1000000ull /* in us */

static void test_progress_stall(void)
{
	static const struct {
		uint64_t first, second, apart;
		const char *exit, *verdict;
	} cases[] = {
		{0x5000, 0x6000, S + 1, "EPT_VIOLATION", "\"progress stall\""},
		{0x5000, 0x6000, S, "EPT_VIOLATION", "null"},		/* not more than a second */
		{0x5000, 0x7000000000, 5 * S, "EPT_VIOLATION", "null"}, /* another range */
		{0x5000, 0x6000, 5 * S, "HLT", "null"}, /* the guest had nothing to do */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *j;

		begin();
		fault(1, 10, cases[i].first, 6);
		leave(2, 10, 0, cases[i].exit, 0, 0);
		fault(2 + cases[i].apart, 10, cases[i].second, 6);
		j = done();
		says(j, "verdict", cases[i].verdict);
		json_decref(j);
	}
	/* no hole: other records of the thread come between */
	begin();
	fault(1, 10, 0x5000, 6);
	plain(S, 10, 0, HOST_kvm_msr);
	fault(2 * S, 10, 0x6000, 6);
	json_t *j = done();

	says(j, "verdict", "null");
	json_decref(j);
}

static void test_storm(void)
{
	static const struct {
		uint64_t apart;
		int n;
		const char *verdict;
	} cases[] = {
		{9, 10, "\"exit storm\""}, /* 10 in 81 us */
		{11, 12, "null"},	   /* 12 in 121 us: 99,174 a second */
		{1, 2, "null"},		   /* two are no rate */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *j;

		begin();
		for (int k = 0; k < cases[i].n; k++)
			userspace(5 + k * cases[i].apart, 10, 2, "KVM_EXIT_IO");
		j = done();
		says(j, "verdict", cases[i].verdict);
		json_decref(j);
	}
}

/* All that holds at once, then without the weightiest. */
static void test_order(void)
{
	static const char *const verdicts[] = {"\"dirty-ring stall\"", "\"no-progress loop\"",
					       "\"progress stall\"",   "\"too lossy\"",
					       "\"exit storm\"",       "\"no usable events\""};

	for (int from = 0; from < 6; from++) {
		json_t *j;

		begin();
		if (from <= 0)
			plain(1, 10, 0, HOST_kvm_dirty_ring_exit);
		for (int k = 0; from <= 1 && k < 3; k++)
			fault(2 + k, 10, 0x5000, 6);
		if (from <= 2) {
			fault(10, 10, 0x5000, 6);
			fault(2 * S, 10, 0x6000, 6);
		}
		if (from <= 3)
			loss(0, 1000, false);
		for (int k = 0; from <= 4 && k < 4; k++)
			userspace((from <= 2 ? 2 * S : 20) + (unsigned)k, 10, 2, "KVM_EXIT_IO");
		if (from == 5)
			plain(1, 10, 0, HOST_kvm_msr);
		j = done();
		says(j, "verdict", verdicts[from]);
		json_decref(j);
	}
}

static json_t *verdict_of_tables(enum host_kind kind)
{
	result.sections[0] = kind;
	return done();
}

static void test_converges(void)
{
	struct precopy_round rounds[] = {{.est_downtime_ms = 100}, {.est_downtime_ms = 300}};
	static const char *const verdicts[] = {"null", "\"converges\"", "\"does not converge\""};

	for (int i = 0; i < 3; i++) {
		json_t *j;

		begin();
		tables.round = rounds;
		tables.n_rounds = 2;
		given = (struct facts_given){i > 0, i == 1 ? 300 : 299};
		j = verdict_of_tables(HOST_KIND_PRECOPY);
		says(j, "verdict", verdicts[i]);
		says(j, "given",
		     i == 0   ? "{}"
		     : i == 1 ? "{\"downtime_goal_ms\":300}"
			      : "{\"downtime_goal_ms\":299}");
		says(j, "events", "null");
		given.has_downtime = false;
		json_decref(j);
	}
}

/* A log may end inside of a round; what is lost otherwise may not have been within the goal. */
static void test_rounds_lost(void)
{
	for (int i = 0; i < 4; i++) {
		struct precopy_round round = {.est_downtime_ms = i == 3 ? 301 : 100,
					      .cut = i == 0 ? 1 : 2 * (i == 1),
					      .unread = i >= 2};
		json_t *j;

		begin();
		tables.round = &round;
		tables.n_rounds = 1;
		given = (struct facts_given){true, 300};
		j = verdict_of_tables(HOST_KIND_PRECOPY);
		says(j, "verdict",
		     i == 0   ? "\"converges\""
		     : i == 3 ? "\"does not converge\""
			      : "null");
		given.has_downtime = false;
		json_decref(j);
	}
}

static void test_runs(void)
{
	uint64_t long_list[] = {10, 20, 900}, short_list[] = {11, 18}, slow_list[] = {50, 50};
	static const char *const verdicts[] = {"\"faster\"", "\"slower\"", "\"mixed result\"",
					       "null"};

	for (int i = 0; i < 4; i++) {
		/* the third iteration is not in both */
		struct dirty_log_run runs[2] = {
			{.dirty_ns = long_list, .n_dirty = 3, .disable_ns = {100, true}},
			{.dirty_ns = short_list, .n_dirty = 2, .disable_ns = {100, true}},
		};
		json_t *j;

		if (i == 1 || i == 2)
			runs[1].dirty_ns = slow_list;
		if (i == 2)
			runs[1].disable_ns.value = 99;
		if (i == 3)
			runs[1].n_dirty = 0; /* nothing is in both but what is equal */
		begin();
		tables.run = runs;
		tables.n_runs = 2;
		j = verdict_of_tables(HOST_KIND_DIRTY_LOG_PERF);
		says(j, "verdict", verdicts[i]);
		json_decref(j);
	}
}

static void test_table_storm(void)
{
	struct kvm_stat_row row = {.name = "kvm_userspace_exit", .rate = {100001, true}};
	struct kvm_stat_table table = {.row = &row, .n_rows = 1};
	json_t *j;

	begin();
	tables.kvm_stat = &table;
	tables.n_kvm_stat = 1;
	j = verdict_of_tables(HOST_KIND_KVM_STAT);
	says(j, "verdict", "\"exit storm\"");
	json_decref(j);
	row.rate.value = 100000;
	begin();
	tables.kvm_stat = &table;
	tables.n_kvm_stat = 1;
	j = verdict_of_tables(HOST_KIND_KVM_STAT);
	says(j, "verdict", "null");
	json_decref(j);
}

static void test_decimals(void)
{
	struct precopy_round round = {.iter = 1,
				      .bw_mib_s = {221055, 2, true},
				      .transfer_s = {371, 2, true},
				      .elapsed_s = {-5, 3, true}};
	json_t *j, *r;

	begin();
	tables.round = &round;
	tables.n_rounds = 1;
	j = verdict_of_tables(HOST_KIND_PRECOPY);
	r = json_array_get(json_object_get(j, "rounds"), 0);
	CU_ASSERT_EQUAL(json_real_value(json_object_get(r, "bw_mib_s")), 2210.55);
	CU_ASSERT_EQUAL(json_real_value(json_object_get(r, "transfer_s")), 3.71);
	CU_ASSERT_EQUAL(json_real_value(json_object_get(r, "elapsed_s")), -0.005);
	json_decref(j);
}

int main(void)
{
	CU_TestInfo tests[] = {
		{"progress stall", test_progress_stall},
		{"exit storm", test_storm},
		{"the order of verdicts", test_order},
		{"converges", test_converges},
		{"lost rounds", test_rounds_lost},
		{"two runs", test_runs},
		{"exit storm in a table", test_table_storm},
		{"decimals", test_decimals},
		CU_TEST_INFO_NULL,
	};

	return test_main("facts_verdict", tests);
}
