// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <string.h>

#include "analysis/memstress_args.h"
#include "analysis/memstress_report.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"

#define PAGES 2048 /* of each vCPU: 8 MiB */

static struct memstress_result result;

/* Runs with the options of the command. */
static void run(const char *options)
{
	char text[256], *argv[40] = {"memstress"}, *save;
	struct memstress_args a;
	struct profile *p;
	int argc = 1;

	snprintf(text, sizeof(text), "%s", options);
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	memstress_result_free(&result);
	CU_ASSERT_EQUAL_FATAL(memstress_args_parse(&a, &verb_memstress, argc, argv), EXIT_DONE);
	CU_ASSERT_EQUAL_FATAL(cli_profile("cascadelake-2022", &p), 0);
	a.o.profile = p;
	CU_ASSERT_EQUAL(memstress_collect(&a.o, &result), 0);
	profile_free(p);
}

static uint64_t count(const char *row, uint16_t c)
{
	const struct memstress_row *r = memstress_find(&result, row);

	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	return r->sums.counts[c];
}

static double cycles(const char *row)
{
	const struct memstress_row *r = memstress_find(&result, row);

	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	return (double)r->cycles;
}

#define DIRTY1 "Iteration 1 dirty memory time"
#define ENABLE "Enabling dirty logging time"

/* The rows in the selftest's order: two iterations with CLEAR, without it under -g. */
static void prints_the_selftests_rows(void)
{
	static const char *const names[] = {
		"Populate memory time",
		ENABLE,
		DIRTY1,
		"Iteration 1 get dirty log time",
		"Iteration 1 clear dirty log time",
		"Iteration 2 dirty memory time",
		"Iteration 2 get dirty log time",
		"Iteration 2 clear dirty log time",
		"Disabling dirty logging time",
	};
	char name[MEMSTRESS_NAME];

	run("-b 1M");
	CU_ASSERT_EQUAL_FATAL(result.n_rows, 9);
	for (size_t i = 0; i < 9; i++)
		CU_ASSERT_STRING_EQUAL(memstress_row_name(&result.rows[i], name), names[i]);
	run("-b 1M -g");
	CU_ASSERT_EQUAL(result.n_rows, 7);
	CU_ASSERT_PTR_NULL(memstress_find(&result, "Iteration 1 clear dirty log time"));
}

/* Without eager splitting each page takes a fault, read or written; with it only stores do, and
 * with the CPU's log none. */
static void faults_are_one_per_page_or_none(void)
{
	run("-v 2 -b 8M -g -i 1 --kernel 5.18-tdp -s anonymous_hugetlb_2mb --eager-page-split N "
	    "-f 20");
	/* but for those that are read while their 2 MiB are whole: 8, 16 and 4, since the first
	 * multiples of 20 from 512, 1,024 and 1,536 on are 520, 1,040 and 1,540 */
	CU_ASSERT_EQUAL(count(DIRTY1, COUNT_set_spte), 2 * (PAGES - 8 - 16 - 4));
	run("-v 2 -b 8M -g -i 1 --kernel 5.18-tdp -s anonymous_hugetlb_2mb --eager-page-split Y "
	    "-f 20");
	CU_ASSERT_EQUAL(count(ENABLE, COUNT_split_spte), 2 * PAGES);
	/* the 20th page of each vCPU, from its first */
	CU_ASSERT_EQUAL(count(DIRTY1, COUNT_fast_page_fault), 2 * ((PAGES + 19) / 20));
	CU_ASSERT_EQUAL(count(DIRTY1, COUNT_set_spte), 0);
	run("-v 2 -b 8M -i 1 --kernel 5.18-tdp -s anonymous_hugetlb_2mb --cpu intel --dirty pml");
	CU_ASSERT_EQUAL(count(DIRTY1, COUNT_pml_log), 2 * PAGES);
	CU_ASSERT_EQUAL(count(DIRTY1, COUNT_page_fault), 0);
}

/* A share of the pages is written: binomial, here with a standard deviation of 0.5 %. */
static void writes_the_percentage(void)
{
	double share;

	run("-v 4 -b 8M -i 1 -w 30 --cpu intel --dirty pml");
	share = (double)count(DIRTY1, COUNT_pml_log) / (4 * PAGES);
	CU_ASSERT_DOUBLE_EQUAL(share, 0.3, 4 * 0.0051);
	run("-v 1 -b 8M -i 1 -w 0 --cpu intel --dirty pml");
	CU_ASSERT_EQUAL(count(DIRTY1, COUNT_pml_log), 0);
	/* with replacement: 1 - 1/e of the pages are met */
	run("-v 4 -b 8M -i 1 -a --cpu intel --dirty pml");
	share = (double)count(DIRTY1, COUNT_pml_log) / (4 * PAGES);
	CU_ASSERT_DOUBLE_EQUAL(share, 1 - exp(-1), 0.02);
}

/* -o: all vCPUs write the same pages. -x: slots. -e: vCPUs run on as logging ends. */
static void overlap_slots_and_evil(void)
{
	run("-v 2 -b 8M -i 1 -o --cpu intel --dirty pml");
	CU_ASSERT_EQUAL(count(DIRTY1, COUNT_insn), 2 * 2 * PAGES * 12);
	run("-v 2 -b 8M -i 1 --cpu intel --dirty pml -x 4");
	CU_ASSERT_EQUAL(count("Iteration 1 get dirty log time", COUNT_get_dirty_log), 4);
	CU_ASSERT_EQUAL(count("Disabling dirty logging time", COUNT_insn), 0);
	run("-v 2 -b 8M -i 1 --cpu intel --dirty pml -e");
	CU_ASSERT(count("Disabling dirty logging time", COUNT_tlb_walk) > 0);
}

/* CLEAR takes every page that GET reported, of every slot: a second store to each is logged again.
 */
static void clear_is_of_the_whole_slot(void)
{
	for (int slots = 1; slots <= 4; slots += 3) {
		char options[128];

		snprintf(options, sizeof(options), "-v 2 -b 8M -i 2 --cpu intel -x %d", slots);
		run(options);
		CU_ASSERT_EQUAL(count("Iteration 1 clear dirty log time", COUNT_clear_dirty_log),
				(uint64_t)slots);
		CU_ASSERT_EQUAL(count("Iteration 1 clear dirty log time", COUNT_clear_word),
				2 * PAGES / 64);
		CU_ASSERT_EQUAL(count("Iteration 2 dirty memory time", COUNT_pml_log), 2 * PAGES);
		CU_ASSERT_EQUAL(count("Iteration 2 clear dirty log time", COUNT_clear_dirty),
				2 * PAGES);
	}
}

/* Each vCPU draws for itself: of n pages that two go over n times at random, 1 - exp(-2) are met,
 * not the 1 - exp(-1) of one (or of two that draw the same), and half of the writes are not of the
 * same pages. */
static void each_vcpu_draws_for_itself(void)
{
	double share;

	run("-v 2 -b 8M -i 1 -a -o --cpu intel --dirty pml");
	share = (double)count(DIRTY1, COUNT_pml_log) / (2 * PAGES);
	CU_ASSERT_DOUBLE_EQUAL(share, 1 - exp(-4 * PAGES / (2.0 * PAGES)), 0.02);
	run("-v 2 -b 8M -i 1 -o -w 50 --cpu intel --dirty pml");
	share = (double)count(DIRTY1, COUNT_pml_log) / (2 * PAGES);
	CU_ASSERT_DOUBLE_EQUAL(share, 0.75, 0.04);
}

/* A row has its own phase's work and time: switching off takes one change of the slot, and nothing
 * of what came before it. */
static void a_row_has_its_phase(void)
{
	cycles_t sum = 0;

	run("-v 2 -b 8M -i 2 --cpu intel --kernel 6.1-tdp -s anonymous_hugetlb_2mb");
	CU_ASSERT_EQUAL(count(DIRTY1, COUNT_insn), 2 * PAGES * 12);
	CU_ASSERT_EQUAL(count("Iteration 2 dirty memory time", COUNT_insn), 2 * PAGES * 12);
	CU_ASSERT_EQUAL(count(ENABLE, COUNT_memslot_update), 1);
	CU_ASSERT_EQUAL(count("Disabling dirty logging time", COUNT_memslot_update), 1);
	CU_ASSERT_EQUAL(count("Disabling dirty logging time", COUNT_clear_dirty_log), 0);
	CU_ASSERT_EQUAL(count("Disabling dirty logging time", COUNT_insn), 0);
	/* the main thread spends all of its own row, and hardly anyone else anything */
	for (uint16_t c = 0; c < N_COUNTS; c++)
		sum += memstress_find(&result, "Disabling dirty logging time")->sums.cycles[c];
	CU_ASSERT_DOUBLE_EQUAL(cycles("Disabling dirty logging time") / (double)sum, 1, 0.05);
}

/* Pages of 1 GiB are cleared at 10 GB/s by each vCPU, 107 ms: beside each other, or, where making a
 * thread waits for those that populate already, one after the other. */
static void threads_made_while_pages_are_cleared(void)
{
	const double gib = 1024.0 * 1024 * 1024 / 10e9;

	run("-v 3 -b 1G -i 1 -w 0 -g --cpu intel -s anonymous_hugetlb_1gb --guest-pages 2M");
	CU_ASSERT_DOUBLE_EQUAL(cycles("Populate memory time") / 2.8e9, gib, 0.1 * gib);
	run("-v 3 -b 1G -i 1 -w 0 -g --cpu intel -s anonymous_hugetlb_1gb --guest-pages 2M "
	    "--early-start");
	CU_ASSERT_DOUBLE_EQUAL(cycles("Populate memory time") / 2.8e9, 3 * gib, 0.1 * gib);
}

/* What the evidence's runs rest on: a part of the memory, in pages of 2 MiB, takes its part of the
 * time, with contention and without. */
static void times_grow_with_the_memory(void)
{
	static const char *const small =
		"-v 4 -b 32M -i 1 --kernel 5.18-eager --mmu npt1-tdp0 --cpu intel --dirty pml "
		"-s anonymous_hugetlb_2mb --eager-page-split ";
	static const char *const large =
		"-v 4 -b 256M -i 1 --kernel 5.18-eager --mmu npt1-tdp0 --cpu intel --dirty pml "
		"-s anonymous_hugetlb_1gb --eager-page-split ";
	char options[256];

	for (const char *split = "NY"; *split; split++) {
		double dirty, enable;

		snprintf(options, sizeof(options), "%s%c", small, *split);
		run(options);
		dirty = cycles(DIRTY1);
		enable = cycles(ENABLE);
		snprintf(options, sizeof(options), "%s%c", large, *split);
		run(options);
		CU_ASSERT_DOUBLE_EQUAL(cycles(DIRTY1) / dirty / 8, 1, 0.02);
		CU_ASSERT_DOUBLE_EQUAL(cycles(ENABLE) / enable / 8, 1, 0.05);
	}
}

static void options_that_cannot_be(void)
{
	static const char *const bad[] = {"--dirty ring",
					  "--cpu none",
					  "-v 0",
					  "-b 1X",
					  "-w 101",
					  "-s nonsense",
					  "--mmu npt0",
					  "-g --dirty mask",
					  "--kernel 9.9",
					  "-x 31",
					  "--kernel 6.1-tdp --mmu npt1-tdp0"};
	struct memstress_args a;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char text[64], *argv[8] = {"memstress"}, *save;
		int argc = 1;

		snprintf(text, sizeof(text), "%s", bad[i]);
		for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
			argv[argc++] = w;
		CU_ASSERT_EQUAL(memstress_args_parse(&a, &verb_memstress, argc, argv), EXIT_USAGE);
	}
}

/* Memory that the model would not hold, and what does not divide. */
static void memory_that_cannot_be(void)
{
	static const struct memstress_opts good = {.vcpus = 1,
						   .bytes = 1 << 20,
						   .slots = 1,
						   .iterations = 1,
						   .mmu = MMU_TDP,
						   .errors = &cli_errors};
	struct memstress_opts o = good;
	struct memstress_result r;

	o.bytes = 1ull << 41;
	CU_ASSERT_EQUAL(memstress_collect(&o, &r), KVMSIM_EINVAL);
	o = good;
	o.bytes = 4097;
	CU_ASSERT_EQUAL(memstress_collect(&o, &r), KVMSIM_EINVAL);
	o = good;
	o.slots = 3;
	CU_ASSERT_EQUAL(memstress_collect(&o, &r), KVMSIM_EINVAL);
	o = good;
	o.gpa = 4096;
	CU_ASSERT_EQUAL(memstress_collect(&o, &r), KVMSIM_EINVAL);
}

struct interruption {
	volatile int now;
	enum memstress_phase at;
};

static int interrupt_at(void *ctx, const struct memstress_row *row)
{
	struct interruption *i = ctx;

	i->now |= row->phase == i->at;
	return 0;
}

/* Interrupted with all vCPUs in the middle of something: those that did not notice unwind too. */
static void ends_when_interrupted(void)
{
	static const enum memstress_phase phases[] = {MEMSTRESS_POPULATE, MEMSTRESS_ENABLE,
						      MEMSTRESS_DIRTY, MEMSTRESS_CLEAR};
	struct memstress_opts o = {.vcpus = 4,
				   .bytes = 1 << 20,
				   .write_percent = 100,
				   .slots = 1,
				   .iterations = 2,
				   .mmu = MMU_TDP,
				   .preset = "6.1-tdp",
				   .dirty = "manual,initially-all-set=1",
				   .clears = true,
				   .errors = &cli_errors};
	struct profile *p;

	CU_ASSERT_EQUAL_FATAL(cli_profile("kvm-pvm", &p), 0);
	o.profile = p;
	for (size_t k = 0; k < sizeof(phases) / sizeof(*phases); k++) {
		struct interruption i = {.at = phases[k]};

		o.interrupted = &i.now;
		CU_ASSERT_EQUAL(memstress_run(&o, interrupt_at, &i), KVMSIM_EINTR);
	}
	profile_free(p);
}

static CU_TestInfo tests[] = {
	{"prints_the_selftests_rows", prints_the_selftests_rows},
	{"faults_are_one_per_page_or_none", faults_are_one_per_page_or_none},
	{"writes_the_percentage", writes_the_percentage},
	{"overlap_slots_and_evil", overlap_slots_and_evil},
	{"clear_is_of_the_whole_slot", clear_is_of_the_whole_slot},
	{"each_vcpu_draws_for_itself", each_vcpu_draws_for_itself},
	{"a_row_has_its_phase", a_row_has_its_phase},
	{"threads_made_while_pages_are_cleared", threads_made_while_pages_are_cleared},
	{"times_grow_with_the_memory", times_grow_with_the_memory},
	{"options_that_cannot_be", options_that_cannot_be},
	{"memory_that_cannot_be", memory_that_cannot_be},
	{"ends_when_interrupted", ends_when_interrupted},
	CU_TEST_INFO_NULL};
TEST_MAIN("memstress", tests)
