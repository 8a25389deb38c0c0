// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Run-ahead is exact: random programs give the same bitmaps, times, ledger and statistics with it
 * and in the reference mode, which has none. `test_runahead FIRST COUNT` runs that many; without
 * arguments a few, as part of the default run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/property/program.h"
#include "tests/unit/harness.h"

#define DEFAULT_PROGRAMS 60

static uint64_t first = 1, count = DEFAULT_PROGRAMS;

struct totals {
	uint64_t dirty, hits, full, fast_switches, reference_switches;
};

/* 1 when both modes agree. */
static int agrees(uint64_t number, struct totals *totals)
{
	struct program p;
	struct outcome fast = {0}, reference = {0};
	int ok = 0;

	if (!program_make(number, &p))
		return 0;
	if (program_run(&p, false, &fast) || program_run(&p, true, &reference)) {
		printf("program %" PRIu64 ": the run failed\n", number);
	} else {
		size_t n = fast.n < reference.n ? fast.n : reference.n, at = 0;

		while (at < n && fast.word[at] == reference.word[at])
			at++;
		ok = at == n && fast.n == reference.n && !fast.missed;
		if (!ok)
			printf("program %" PRIu64
			       " (%u vCPUs, %s): word %zu of %zu and %zu differs: "
			       "%" PRIu64 ", reference %" PRIu64 "\n",
			       number, p.n_vcpus, p.dirty, at, fast.n, reference.n,
			       at < n ? fast.word[at] : 0, at < n ? reference.word[at] : 0);
		totals->dirty += fast.dirty;
		totals->hits += fast.hits;
		totals->full += fast.full;
		totals->fast_switches += fast.switches;
		totals->reference_switches += reference.switches;
	}
	outcome_free(&fast);
	outcome_free(&reference);
	program_free(&p);
	return ok;
}

static void same_results(void)
{
	struct totals totals = {0};
	uint64_t agreed = 0;

	for (uint64_t i = 0; i < count; i++)
		agreed += (uint64_t)agrees(first + i, &totals);
	CU_ASSERT_EQUAL(agreed, count);
	/* the programs dirty pages, run ahead, and save switches by it */
	CU_ASSERT_TRUE(totals.dirty > 0);
	CU_ASSERT_TRUE(totals.hits > 0);
	CU_ASSERT_TRUE(totals.full > 0);
	CU_ASSERT_TRUE(totals.fast_switches < totals.reference_switches);
	printf("%" PRIu64 " of %" PRIu64 " programs agree; %" PRIu64 " pages reported, %" PRIu64
	       " hits ahead, %" PRIu64 " full rings, %" PRIu64 " switches against %" PRIu64 "\n",
	       agreed, count, totals.dirty, totals.hits, totals.full, totals.fast_switches,
	       totals.reference_switches);
}

static CU_TestInfo tests[] = {{"same_results", same_results}, CU_TEST_INFO_NULL};

int main(int argc, char **argv)
{
	if (argc == 3) {
		first = strtoull(argv[1], NULL, 10);
		count = strtoull(argv[2], NULL, 10);
	}
	return test_main("runahead", tests);
}
