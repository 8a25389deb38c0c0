// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Random machines (mops.h), until so many ops are done:
 *
 *	test_machine_ops			as part of the default run
 *	test_machine_ops ops N [FIRST]		N ops, from the machine with seed FIRST on
 *	test_machine_ops list N [FIRST]		the same; failures are only named
 *	test_machine_ops seed SEED		one machine; a failure is shrunk
 *	test_machine_ops text FILE		one that was printed
 *
 * What fails is shrunk and printed as a text that can be played again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/property/mops.h"
#include "tests/unit/harness.h"

#ifdef KVMSIM_DEBUG
#define DEFAULT_OPS 60000 /* sanitizers are slow */
#else
#define DEFAULT_OPS 1000000
#endif

static bool only_list;
static uint64_t most_ops = DEFAULT_OPS, first = 1;

static void add(struct mops_result *sum, const struct mops_result *r)
{
	sum->ops += r->ops;
	sum->reads += r->reads;
	sum->guest_faults += r->guest_faults;
	sum->mmio += r->mmio;
	sum->ambiguous += r->ambiguous;
	sum->reported += r->reported;
	sum->checks += r->checks;
	sum->interrupts += r->interrupts;
	if (r->restarts > sum->restarts)
		sum->restarts = r->restarts;
	for (int s = 0; s < N_KVM_STATS; s++)
		sum->stat[s] += r->stat[s];
}

static void print_failure(struct mops *m, struct mops_result *r)
{
	size_t n = m->n;
	unsigned runs;

	printf("seed %" PRIu64 ": %s\n", m->seed, r->why);
	if (only_list)
		return;
	runs = mops_shrink(m, r);
	printf("# %zu of %zu ops, after %u runs: %s\n", m->n, n, runs, r->why);
	mops_print(m, stdout);
}

/* Of most machines at least one in so many ops. */
static const enum kvm_stat_id rare[] = {
	STAT_mmu_shadow_zapped, STAT_mmu_pte_write, STAT_mmu_pde_zapped, STAT_mmu_flooded,
	STAT_mmu_recycled,	STAT_mmu_unsync,    STAT_pf_fast,	 STAT_pf_spurious,
	STAT_remote_tlb_flush,	STAT_invlpg,	    STAT_pf_emulate,	 STAT_pages_2m};

static void random_machines(void)
{
	struct mops_result sum = {0};
	uint64_t seed, failed = 0;

	for (seed = first; sum.ops < most_ops && (only_list || failed < 3); seed++) {
		struct mops_result r;
		struct mops m;

		CU_ASSERT_TRUE_FATAL(mops_make(seed, &m));
		mops_run(&m, &r);
		if (r.err) {
			failed++;
			print_failure(&m, &r);
		}
		add(&sum, &r);
		mops_free(&m);
	}
	CU_ASSERT_EQUAL(failed, 0);
	printf("machines %" PRIu64 " to %" PRIu64 ": %" PRIu64 " ops, %" PRIu64
	       " loads looked at, %" PRIu64 " faults of the guest's, %" PRIu64
	       " MMIO exits, %" PRIu64 " accesses with several outcomes, %" PRIu64
	       " pages reported, %" PRIu64 " checks, %" PRIu64
	       " interrupts of the host's, at most %" PRIu64 " restarts of one instruction\n",
	       first, seed - 1, sum.ops, sum.reads, sum.guest_faults, sum.mmio, sum.ambiguous,
	       sum.reported, sum.checks, sum.interrupts, sum.restarts);
	/* what is rare happens, too, in the long run */
	if (most_ops >= DEFAULT_OPS)
		CU_ASSERT_TRUE(sum.reads && sum.guest_faults && sum.mmio && sum.ambiguous &&
			       sum.reported);
	for (size_t i = 0; i < sizeof(rare) / sizeof(rare[0]); i++) {
		if (most_ops >= DEFAULT_OPS)
			CU_ASSERT_TRUE(sum.stat[rare[i]] > 0);
		printf("%s%s %" PRIu64, i ? ", " : "", kvm_stat_name(rare[i]), sum.stat[rare[i]]);
	}
	printf("\n");
}

/* A policy that is broken on purpose is caught before so many ops. */
static void caught(const char *preset, const char *dirty, const char *spte, uint64_t within)
{
	uint64_t ops = 0;
	struct mops_result r = {0};
	struct mops m;

	for (uint64_t seed = first; !r.err && ops < within; seed++) {
		CU_ASSERT_TRUE_FATAL(mops_make_with(seed, preset, dirty, spte, &m));
		mops_run(&m, &r);
		ops += r.ops;
		mops_free(&m);
	}
	CU_ASSERT_EQUAL(r.err, KVMSIM_ECHECK);
	printf("%s: caught after %" PRIu64 " ops: %s\n", dirty ? dirty : spte, ops, r.why);
}

static void lossy_is_caught(void)
{
	caught(NULL, "lossy", NULL, 20000);
}

static void stale_is_caught(void)
{
	caught("6.1-shadow", NULL, "stale", 20000);
	caught("6.13-tdp", NULL, "stale", 20000);
}

/* What Linux had from 3.11 to 3.16: MMIO sptes with a generation, and what a vCPU remembers of a
 * device without one. Its exits for what is memory by now are seen for what they are: one in some
 * 80,000 ops, so that the bound holds whatever machine comes first. */
static void stale_cache_is_caught(void)
{
	caught("3.6", "mask", "mmio-gen", 1000000);
}

/* What is printed is read back as the same machine. */
static void texts(void)
{
	struct mops m, back = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	CU_ASSERT_TRUE_FATAL(mops_make(first, &m));
	f = open_memstream(&text, &size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	mops_print(&m, f);
	fclose(f);
	f = fmemopen(text, size, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(mops_parse(f, "text", &back));
	fclose(f);
	CU_ASSERT_EQUAL(back.n, m.n);
	CU_ASSERT_TRUE(back.n == m.n && !memcmp(back.op, m.op, m.n * sizeof(*m.op)));
	CU_ASSERT_TRUE(back.seed == m.seed && !strcmp(back.dirty, m.dirty) &&
		       back.n_pts == m.n_pts && back.paging == m.paging && back.mode == m.mode);
	free(text);
	mops_free(&m);
	mops_free(&back);
}

/* A failure becomes a short program that fails in the same way. */
static void shrinks(void)
{
	struct mops_result r;
	struct mops m;
	uint64_t seed = first;
	size_t n;

	do {
		CU_ASSERT_TRUE_FATAL(mops_make_with(seed++, NULL, "lossy", NULL, &m));
		mops_run_apart(&m, &r);
		if (!r.err)
			mops_free(&m);
	} while (!r.err);
	n = m.n;
	mops_shrink(&m, &r);
	CU_ASSERT_EQUAL(r.err, KVMSIM_ECHECK);
	CU_ASSERT_TRUE(m.n < n / 8);
	printf("lossy: %zu of %zu ops are left\n", m.n, n);
	mops_run_apart(&m, &r);
	CU_ASSERT_EQUAL(r.err, KVMSIM_ECHECK);
	mops_free(&m);
}

static CU_TestInfo tests[] = {{"random_machines", random_machines},
			      {"lossy_is_caught", lossy_is_caught},
			      {"stale_is_caught", stale_is_caught},
			      {"stale_cache_is_caught", stale_cache_is_caught},
			      {"texts", texts},
			      {"shrinks", shrinks},
			      CU_TEST_INFO_NULL};

static int one(struct mops *m)
{
	struct mops_result r;

	mops_run_apart(m, &r);
	if (r.err)
		print_failure(m, &r);
	else
		printf("seed %" PRIu64 ": %" PRIu64 " ops, nothing wrong\n", m->seed, r.ops);
	mops_free(m);
	return r.err != 0;
}

/* A whole number, all of it. */
static bool number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

static int text(const char *path)
{
	FILE *f = fopen(path, "r");
	struct mops m;
	bool ok;

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	ok = mops_parse(f, path, &m);
	fclose(f);
	if (ok)
		return one(&m);
	mops_free(&m);
	return 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct mops m;
	uint64_t seed;

	if (argc == 3 && !strcmp(what, "seed") && number(argv[2], &seed))
		return mops_make(seed, &m) ? one(&m) : 1;
	if (argc == 3 && !strcmp(what, "text"))
		return text(argv[2]);
	only_list = !strcmp(what, "list");
	if (argc > 1 && ((!only_list && strcmp(what, "ops")) || argc < 3 || argc > 4 ||
			 !number(argv[2], &most_ops) || (argc > 3 && !number(argv[3], &first)))) {
		fprintf(stderr,
			"usage: %s [ops N [FIRST] | list N [FIRST] | seed SEED | text FILE]\n",
			argv[0]);
		return 2;
	}
	return test_main("machine_ops", tests);
}
