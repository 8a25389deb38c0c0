// SPDX-License-Identifier: GPL-3.0-or-later
/* Scaling laws of what protects the MMU. Only what is done under mmu_lock, or also the exit before
 * it, has a price, so that the times are known exactly. */
#include <inttypes.h>
#include <string.h>

#include "analysis/contention.h"
#include "analysis/memstress_args.h"
#include "analysis/memstress_report.h"
#include "model/params.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"

#define PAGES 1024ull /* of each vCPU: 4 MiB */
#define HOLD  100ull  /* one fault's, by the only price under the lock */

static struct memstress_result result;
static struct contention *contention; /* NULL: nobody asks */

/* Runs with the options of the command on a machine where nothing costs time but what @prices
 * says. What memstress_collect() says. */
static int run_priced(const char *prices, const char *options)
{
	char text[256], profile[384], *argv[40] = {"memstress"}, *save;
	struct memstress_args a;
	struct profile *p;
	int argc = 1, r;

	snprintf(text, sizeof(text), "%s", options);
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	memstress_result_free(&result);
	CU_ASSERT_EQUAL_FATAL(memstress_args_parse(&a, &verb_memstress, argc, argv), EXIT_DONE);
	snprintf(profile, sizeof(profile),
		 "[machine]\nname=m\nunit=cycles\nhz=1000000000\nsource=none\n[price]\n%s", prices);
	CU_ASSERT_EQUAL_FATAL(profile_parse(profile, strlen(profile), "p", &model_vocabulary,
					    model_params, &cli_errors, &p),
			      0);
	a.o.profile = p;
	a.o.locks = contention ? &contention->watch : NULL;
	r = memstress_collect(&a.o, &result);
	profile_free(p);
	return r;
}

static const struct memstress_row *row(const char *name)
{
	const struct memstress_row *r = memstress_find(&result, name);

	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	return r;
}

#define DIRTY1 "Iteration 1 dirty memory time"

/* Every page of 2 MiB that is written takes a fault of its own once logging is on. */
static const struct memstress_row *dirty(const char *prices, unsigned vcpus, const char *lock,
					 const char *more)
{
	char options[192];

	snprintf(
		options, sizeof(options),
		"-v %u -b 4M -i 1 -g -s anonymous_hugetlb_2mb --eager-page-split N --mmulock %s %s",
		vcpus, lock, more);
	CU_ASSERT_EQUAL_FATAL(run_priced(prices, options), 0);
	CU_ASSERT_EQUAL(row(DIRTY1)->sums.counts[COUNT_set_spte], vcpus * PAGES);
	return row(DIRTY1);
}

#define ONLY_HOLD "set_spte=100\n"

/* n vCPUs that do nothing but fault take n times as long as one: somebody always holds the lock,
 * and the others, n - 1 of them from the first to the last turn, wait. */
static void exclusive_faults_serialise(void)
{
	static const struct {
		const char *lock, *more;
	} cases[] = {
		{"spin", ""},
		{"rwlock", ""},
		{"spin", "--mmu npt1-tdp0"},
		{"rwlock", "--mmu npt1-tdp0"},
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		for (uint64_t n = 1; n <= 8; n *= 2) {
			const struct memstress_row *r =
				dirty(ONLY_HOLD, (unsigned)n, cases[c].lock, cases[c].more);

			CU_ASSERT_EQUAL(r->cycles, n * PAGES * HOLD);
			/* each is served once in n turns: all wait n - 1 but at the beginning,
			 * where the i'th waits i, and at the end, where nobody comes again */
			CU_ASSERT_EQUAL(r->sums.waits[WAIT_lock],
					n * PAGES * (n - 1) * HOLD - n * (n - 1) / 2 * HOLD);
		}
	}
}

/* Faults that share the lock don't wait: as long as one. */
static void shared_faults_do_not(void)
{
	for (unsigned n = 1; n <= 8; n *= 2) {
		const struct memstress_row *r = dirty(ONLY_HOLD, n, "rwlock-tdp", "");

		CU_ASSERT_EQUAL(r->cycles, PAGES * HOLD);
		CU_ASSERT_EQUAL(r->sums.waits[WAIT_lock], 0);
	}
}

/* With work outside of the lock the bottleneck's law holds: n vCPUs take as long as one until the
 * lock is always held, at n = 1 + outside/hold, and from there on n holds per page. Beside it stand
 * the first round, in which they queue up, and the flush of each 2 MiB that is split, two per vCPU,
 * which waits with the lock held for who is in the middle of an exit. */
static void work_outside_overlaps(void)
{
	const uint64_t outside = 300;

	for (uint64_t n = 1; n <= 16; n *= 2) {
		const uint64_t alone = PAGES * (HOLD + outside), held = n * PAGES * HOLD;
		const uint64_t least = alone > held ? alone : held;
		const struct memstress_row *r =
			dirty("vm_exit=300\n" ONLY_HOLD, (unsigned)n, "spin", "");

		CU_ASSERT(r->cycles >= least);
		CU_ASSERT(r->cycles <= least + n * HOLD + 2 * (n + 1) * outside);
	}
}

/* The default is what the preset's kernel has. */
static void presets_have_theirs(void)
{
	static const struct {
		const char *kernel, *lock;
	} cases[] = {
		{"6.1-tdp", "rwlock-tdp"}, {"6.1-shadow", "rwlock"}, {"6.12-tdp", "rwlock-tdp"}};

	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		const char *format = "-v 4 -b 4M -i 1 -g -s anonymous_hugetlb_2mb "
				     "--eager-page-split N --kernel %s %s%s";
		char options[192];
		uint64_t waited;

		snprintf(options, sizeof(options), format, cases[c].kernel, "", "");
		CU_ASSERT_EQUAL_FATAL(run_priced(ONLY_HOLD, options), 0);
		waited = row(DIRTY1)->sums.waits[WAIT_lock];
		snprintf(options, sizeof(options), format, cases[c].kernel, "--mmulock ",
			 cases[c].lock);
		CU_ASSERT_EQUAL_FATAL(run_priced(ONLY_HOLD, options), 0);
		CU_ASSERT_EQUAL(row(DIRTY1)->sums.waits[WAIT_lock], waited);
		CU_ASSERT_EQUAL(waited == 0, !strcmp(cases[c].lock, "rwlock-tdp"));
	}
}

/* Under any of them nothing is lost while logging goes on and off beside the vCPUs. */
static void checkers_are_content(void)
{
	static const char *const locks[] = {"spin", "rwlock", "rwlock-tdp"};

	for (size_t i = 0; i < 3; i++) {
		char options[192];

		snprintf(options, sizeof(options),
			 "-v 4 -b 2M -e -s anonymous_hugetlb_2mb --check --mmulock %s", locks[i]);
		CU_ASSERT_EQUAL(
			run_priced("set_spte=100\ntdp_change=30\nvm_exit=70\ninsn=1\n", options),
			0);
	}
}

#define DIRTY2 "Iteration 2 dirty memory time"

/* Arm's faults: the first store to a page of a block that is logged maps the page, one to a page
 * that was cleared gives W back. */
static void arm64(const char *prices, unsigned vcpus, const char *kernel, const char *more)
{
	char options[192];

	snprintf(options, sizeof(options),
		 "-v %u -b 4M -i 2 -s anonymous_hugetlb_2mb --dirty manual --kernel %s %s", vcpus,
		 kernel, more);
	CU_ASSERT_EQUAL_FATAL(run_priced(prices, options), 0);
	CU_ASSERT_EQUAL(row(DIRTY1)->sums.counts[COUNT_set_spte], vcpus * PAGES);
	CU_ASSERT_EQUAL(row(DIRTY2)->sums.counts[COUNT_set_spte], vcpus * PAGES);
	CU_ASSERT_EQUAL(row(DIRTY1)->sums.counts[COUNT_tlbi], vcpus * PAGES / 512);
	CU_ASSERT_EQUAL(row(DIRTY2)->sums.counts[COUNT_tlbi], vcpus * PAGES);
	CU_ASSERT_EQUAL(row(DIRTY2)->sums.counts[COUNT_ipi], 0);
}

/* What each kernel's faults wait for: each other; each other but where they give W back; nobody. */
static void arm64_faults(void)
{
	static const struct {
		const char *kernel;
		bool serial[2]; /* mapping, giving back */
	} cases[] = {{"5.16-arm64", {true, true}},
		     {"5.18-arm64", {true, false}},
		     {"6.2-arm64", {false, false}}};

	for (size_t c = 0; c < 3; c++) {
		for (unsigned n = 1; n <= 8; n *= 2) {
			arm64(ONLY_HOLD, n, cases[c].kernel, "");
			CU_ASSERT_EQUAL(row(DIRTY1)->cycles,
					(cases[c].serial[0] ? n : 1) * PAGES * HOLD);
			CU_ASSERT_EQUAL(row(DIRTY2)->cycles,
					(cases[c].serial[1] ? n : 1) * PAGES * HOLD);
		}
	}
}

/* Broadcast invalidations are served one after the other, whoever shares mmu_lock; so is the lock
 * that each exit takes without an interrupt controller of KVM's: one per page, for the last access
 * of a pass one, and one for the code. */
static void arm64_shares_more_than_mmu_lock(void)
{
	for (unsigned n = 1; n <= 8; n *= 2) {
		arm64("lock=0\n[param]\ntlbi_broadcast=70\n", n, "6.2-arm64", "");
		CU_ASSERT_EQUAL(row(DIRTY2)->cycles, n * PAGES * 70);
		arm64("timer_state=50\n", n, "6.2-arm64", "--no-irqchip");
		CU_ASSERT_EQUAL(row(DIRTY2)->sums.counts[COUNT_timer_state],
				row(DIRTY2)->sums.counts[COUNT_vm_exit]);
		CU_ASSERT_EQUAL(row(DIRTY2)->cycles, row(DIRTY2)->sums.counts[COUNT_vm_exit] * 50);
	}
	CU_ASSERT_EQUAL(run_priced(ONLY_HOLD, "-b 4M --no-irqchip"), KVMSIM_EUNSUPPORTED);
}

/* A run with a quarter of the memory takes a quarter of the time: that of evidence has less than
 * what was measured. */
static void arm64_times_grow_with_the_memory(void)
{
	static const char *const prices = "vm_exit=1160\nset_spte=1179\nremote_tlb_flush=945\n"
					  "[param]\nline_transfer=178\nqueue_transfers=3\n"
					  "tlbi_broadcast=1020\n";
	static const char *const kernels[] = {"5.16-arm64", "5.18-arm64", "6.2-arm64"};
	const char *format = "-v 8 -b %s -i 2 -s anonymous_hugetlb_2mb --dirty manual --kernel %s";

	for (size_t k = 0; k < 3; k++) {
		cycles_t little[2];
		char options[192];

		snprintf(options, sizeof(options), format, "4M", kernels[k]);
		CU_ASSERT_EQUAL_FATAL(run_priced(prices, options), 0);
		little[0] = row(DIRTY1)->cycles;
		little[1] = row(DIRTY2)->cycles;
		snprintf(options, sizeof(options), format, "16M", kernels[k]);
		CU_ASSERT_EQUAL_FATAL(run_priced(prices, options), 0);
		CU_ASSERT_DOUBLE_EQUAL((double)row(DIRTY1)->cycles / (double)little[0], 4, 0.02);
		CU_ASSERT_DOUBLE_EQUAL((double)row(DIRTY2)->cycles / (double)little[1], 4, 0.02);
	}
}

/* Who waits is told as the ledger has it, summed over all phases; of the faults the numbers are
 * known: all but the first wait, for the n - 1 others at most. */
static void contention_is_told_by_caller(void)
{
	static const struct {
		const char *lock, *type;
	} cases[] = {{"spin", "spinlock"}, {"rwlock", "rwlock:W"}};
	const uint64_t n = 4;

	for (size_t k = 0; k < 2; k++) {
		cycles_t all = 0, told = 0;
		const struct contention_row *fault = NULL;
		struct contention c;

		contention_init(&c);
		contention = &c;
		(void)dirty(ONLY_HOLD, (unsigned)n, cases[k].lock, "--populated");
		contention = NULL;
		contention_sort(&c);
		for (size_t i = 0; i < result.n_rows; i++)
			all += result.rows[i].sums.waits[WAIT_lock];
		for (size_t i = 0; i < c.n; i++) {
			told += c.rows[i].wait;
			CU_ASSERT(!i || c.rows[i].wait <= c.rows[i - 1].wait);
			if (!strcmp(c.rows[i].caller, "direct_page_fault"))
				fault = &c.rows[i];
		}
		CU_ASSERT(all > 0);
		CU_ASSERT_EQUAL(told, all);
		CU_ASSERT_PTR_NOT_NULL_FATAL(fault);
		CU_ASSERT_STRING_EQUAL(contention_type(fault), cases[k].type);
		CU_ASSERT_STRING_EQUAL(fault->lock, "mmu_lock");
		CU_ASSERT_EQUAL(fault->longest, (n - 1) * HOLD);
		CU_ASSERT(fault->contended >= n * PAGES - 1);
		contention_free(&c);
	}
}

/* Shadow pages are made by one at a time. */
static void sharing_is_refused_with_shadow_pages(void)
{
	CU_ASSERT_EQUAL(run_priced(ONLY_HOLD, "-b 4M --mmu npt1-tdp0 --mmulock rwlock-tdp"),
			KVMSIM_EUNSUPPORTED);
	CU_ASSERT_EQUAL(run_priced(ONLY_HOLD, "-b 4M --mmu npt0-long64 --mmulock rwlock-tdp"),
			KVMSIM_EUNSUPPORTED);
}

static CU_TestInfo tests[] = {
	{"exclusive_faults_serialise", exclusive_faults_serialise},
	{"shared_faults_do_not", shared_faults_do_not},
	{"work_outside_overlaps", work_outside_overlaps},
	{"presets_have_theirs", presets_have_theirs},
	{"checkers_are_content", checkers_are_content},
	{"arm64_faults", arm64_faults},
	{"arm64_shares_more_than_mmu_lock", arm64_shares_more_than_mmu_lock},
	{"arm64_times_grow_with_the_memory", arm64_times_grow_with_the_memory},
	{"contention_is_told_by_caller", contention_is_told_by_caller},
	{"sharing_is_refused_with_shadow_pages", sharing_is_refused_with_shadow_pages},
	CU_TEST_INFO_NULL};
TEST_MAIN("mmulock", tests)
