// SPDX-License-Identifier: GPL-3.0-or-later
/* The judge of collections beside running guests, on runs made by hand; and that it tells when the
 * model loses a store. */
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"
#include "workloads/matrix.h"
#include "workloads/parallel.h"

#define PAGES 100

/* vCPU 0 stores to pages 1, 2, 3, 70 in turn, vCPU 1 loads 5, 5, 5, 5. */
static const uint32_t stores[] = {PARALLEL_TURN(1, 1), PARALLEL_TURN(2, 1), PARALLEL_TURN(3, 1),
				  PARALLEL_TURN(70, 1)};
static const uint32_t loads[] = {PARALLEL_TURN(5, 0), PARALLEL_TURN(5, 0), PARALLEL_TURN(5, 0),
				 PARALLEL_TURN(5, 0)};

static struct parallel_verdict judge(const struct parallel_collection *c, uint64_t n)
{
	const struct parallel_run r = {
		.slot_pages = PAGES, .n = 4, .turns = {stores, loads}, .c = c, .n_collections = n};
	uint8_t marks[PAGES];

	return parallel_judge(&r, marks);
}

#define BIT(page) (1ull << ((page) % 64))

static void within_bounds(void)
{
	/* The first begins with page 1 stored to and returns in the middle of the store to page 3:
	 * it may report 3 or not. Page 5's load may have made it dirty. */
	const uint64_t early[] = {BIT(1) | BIT(2) | BIT(3) | BIT(5), 0}, late[] = {BIT(1), 0},
		       rest[] = {BIT(2) | BIT(3), BIT(70)}, all_rest[] = {BIT(3), BIT(70)};
	const struct parallel_collection a[] = {{{1, 0}, {3, 1}, early},
						{{4, 4}, {4, 4}, all_rest}},
					 b[] = {{{1, 0}, {3, 1}, late}, {{4, 4}, {4, 4}, rest}};
	struct parallel_verdict v = judge(a, 2);

	CU_ASSERT_EQUAL(v.missed, 0);
	CU_ASSERT_EQUAL(v.early, 0);
	CU_ASSERT_EQUAL(v.during, 4);
	v = judge(b, 2);
	CU_ASSERT_EQUAL(v.missed, 0);
	CU_ASSERT_EQUAL(v.early, 0);
	CU_ASSERT_EQUAL(v.during, 1);
}

static void missed(void)
{
	/* page 1 was completed before the first began; the second is too late for it */
	const uint64_t none[] = {0, 0}, all[] = {BIT(1) | BIT(2) | BIT(3), BIT(70)},
		       without_70[] = {BIT(1) | BIT(2) | BIT(3), 0};
	const struct parallel_collection late[] = {{{1, 0}, {3, 1}, none}, {{4, 4}, {4, 4}, all}},
					 lost[] = {{{0, 0}, {1, 1}, none},
						   {{4, 4}, {4, 4}, without_70}},
					 /* reported before it had begun: not this store */
		before[] = {{{0, 0}, {2, 1}, all}, {{4, 4}, {4, 4}, without_70}};

	CU_ASSERT_EQUAL(judge(late, 2).missed, 1);
	CU_ASSERT_EQUAL(judge(lost, 2).missed, 1);
	CU_ASSERT_EQUAL(judge(before, 2).missed, 1);
}

static void early(void)
{
	/* page 3 before its store has begun; page 9 that nobody touches; page 1 again, which was
	 * completed before the first began */
	const uint64_t first[] = {BIT(1) | BIT(3) | BIT(9), 0},
		       second[] = {BIT(1) | BIT(2) | BIT(3), BIT(70)};
	const struct parallel_collection c[] = {{{1, 0}, {2, 1}, first}, {{4, 4}, {4, 4}, second}};

	CU_ASSERT_EQUAL(judge(c, 2).early, 3);
}

static void lists(void)
{
	uint32_t turns[4];
	uint64_t x = 12345 + 4 + 2 * PARALLEL_VCPUS + 1;

	parallel_list(1, 2, PAGES, 4, turns);
	for (int i = 0; i < 4; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		CU_ASSERT_EQUAL(PARALLEL_PAGE(turns[i]), (x >> 33) % PAGES);
		CU_ASSERT_EQUAL(PARALLEL_WRITE(turns[i]), x >> 32 & 1);
	}
}

/* ---- the model ---- */

struct sums {
	int64_t missed, early, concurrent, phases;
};

static int add_up(void *ctx, const struct matrix_phase *p)
{
	struct sums *s = ctx;

	if (strcmp(p->name, "collect"))
		return 0;
	s->phases++;
	for (size_t i = 0; i < p->n_quantities; i++) {
		const struct matrix_quantity *q = &p->quantities[i];

		s->missed += strcmp(q->name, "res:missed") ? 0 : q->value;
		s->early += strcmp(q->name, "res:early") ? 0 : q->value;
		s->concurrent += strcmp(q->name, "res:concurrent") ? 0 : q->value;
	}
	return 0;
}

static struct sums run(enum mmu_kind mmu, const char *dirty)
{
	struct sums s = {0};
	struct profile *profile;
	struct matrix_opts o = {.test_case = "P_get",
				.mmu = mmu,
				.dirty = dirty,
				.slot_pages = 400,
				.pte = mmu == MMU_SHADOW_FLAT32 ? MATRIX_PTE_NONE : MATRIX_PTE_4K,
				.phase = add_up,
				.ctx = &s};

	CU_ASSERT_EQUAL_FATAL(cli_profile("tcg-icount", &profile), 0);
	o.profile = profile;
	CU_ASSERT_EQUAL(matrix_run(&o), 0);
	profile_free(profile);
	return s;
}

static void model_within_bounds(void)
{
	for (int mmu = 0; mmu < N_MMU_KINDS; mmu++) {
		struct sums s = run((enum mmu_kind)mmu, "mask");

		CU_ASSERT_EQUAL(s.phases, 3);
		CU_ASSERT_EQUAL(s.concurrent, 3);
		CU_ASSERT_EQUAL(s.missed, 0);
		CU_ASSERT_EQUAL(s.early, 0);
	}
}

static void lossy_is_told(void)
{
	struct sums s = run(MMU_SHADOW_FLAT32, "lossy");

	CU_ASSERT_EQUAL(s.concurrent, 3);
	CU_ASSERT_TRUE(s.missed > 0);
}

static CU_TestInfo tests[] = {{"within_bounds", within_bounds},
			      {"missed", missed},
			      {"early", early},
			      {"lists", lists},
			      {"model_within_bounds", model_within_bounds},
			      {"lossy_is_told", lossy_is_told},
			      CU_TEST_INFO_NULL};
TEST_MAIN("parallel", tests)
