// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>

#include "analysis/verdict.h"
#include "model/sim/error.h"
#include "tests/unit/harness.h"

#define NEAR(a, b, tol) CU_ASSERT_DOUBLE_EQUAL(a, b, tol)

/* A relative difference of -0.5 with this spread is one pooled standard deviation:
 * spread * sqrt((1 + 0.5^2) / 2) = 0.5. */
#define ONE_SD 0.6324555320336759

static void one_machine_is_a_power_calculation(void)
{
	/* R: power.t.test(n = 20, delta = 1) gives 0.8689528; (power = .90, delta = 1) 22.02110 */
	const double base[] = {100, 200}, policy[] = {50, 100};
	struct verdict_opts o = verdict_defaults;
	struct verdict_pair p;

	o.spread = ONE_SD;
	o.min_effect = 0;
	o.runs = 20;
	o.power = 0.9;
	CU_ASSERT_EQUAL(verdict_judge(base, policy, 2, &o, &p), 0);
	NEAR(p.assurance, 0.8689528, 5e-8);
	CU_ASSERT_EQUAL(p.real, VERDICT_INCONCLUSIVE);
	CU_ASSERT_EQUAL(p.tends, VERDICT_FASTER);
	CU_ASSERT_EQUAL(p.runs_needed, 23);
	CU_ASSERT_EQUAL(p.model, VERDICT_FASTER);
	NEAR(p.rel.value, -0.5, 1e-15);
	NEAR(p.diff.value, -75, 1e-12);
	NEAR(p.base_mean, 150, 0);
	NEAR(p.mean, 75, 0);

	o.runs = 23;
	CU_ASSERT_EQUAL(verdict_judge(base, policy, 2, &o, &p), 0);
	CU_ASSERT_EQUAL(p.real, VERDICT_FASTER);
	CU_ASSERT_EQUAL(verdict_judge(policy, base, 2, &o, &p), 0);
	CU_ASSERT_EQUAL(p.model, VERDICT_SLOWER);
	NEAR(p.rel.value, 1, 1e-15);
}

static void smallest_effect_moves_the_bar(void)
{
	/* -0.6 with a smallest effect of 0.1 leaves 0.5; pooled sd = spread * sqrt(1.16 / 2) */
	const double base[] = {10, 10}, policy[] = {4, 4};
	struct verdict_opts o = verdict_defaults;
	struct verdict_pair p;

	o.spread = 0.5 / sqrt(0.58);
	o.min_effect = 0.1;
	o.runs = 20;
	CU_ASSERT_EQUAL(verdict_judge(base, policy, 2, &o, &p), 0);
	NEAR(p.assurance, 0.8689528, 5e-8);
	CU_ASSERT_EQUAL(p.real, VERDICT_FASTER);
}

static void one_run_shows_nothing(void)
{
	const double base[] = {100, 100}, policy[] = {1, 1};
	struct verdict_opts o = verdict_defaults;
	struct verdict_pair p;

	o.runs = 1;
	CU_ASSERT_EQUAL(verdict_judge(base, policy, 2, &o, &p), 0);
	CU_ASSERT_EQUAL(p.real, VERDICT_INCONCLUSIVE);
	CU_ASSERT_EQUAL(p.runs_needed, 2);
}

static void no_difference_needs_many_runs(void)
{
	/* By hand with z = 1.959964, (z^3 + z) / (4 df) for t, and 1.281552 for an 80% chance on
	 * two sides: se = 0.01 / (t + 1.28155), n = 2 (0.05 / se)^2 = 526.1 */
	const double same[] = {10, 20, 30};
	struct verdict_opts o = verdict_defaults;
	struct verdict_pair p;

	CU_ASSERT_EQUAL(verdict_judge(same, same, 3, &o, &p), 0);
	CU_ASSERT_EQUAL(p.model, VERDICT_SAME);
	CU_ASSERT_EQUAL(p.real, VERDICT_INCONCLUSIVE);
	CU_ASSERT_EQUAL(p.tends, VERDICT_SAME);
	CU_ASSERT_EQUAL(p.runs_needed, 527);
	o.runs = 527;
	CU_ASSERT_EQUAL(verdict_judge(same, same, 3, &o, &p), 0);
	CU_ASSERT_EQUAL(p.real, VERDICT_SAME);
}

static void unknown_sign_is_never_settled(void)
{
	/* Half of the possible machines say -50%, half +50%: neither can reach 80%. */
	const double base[] = {100, 100, 100, 100}, policy[] = {50, 150, 50, 150};
	struct verdict_pair p;

	CU_ASSERT_EQUAL(verdict_judge(base, policy, 4, &verdict_defaults, &p), 0);
	CU_ASSERT_EQUAL(p.model, VERDICT_INCONCLUSIVE);
	CU_ASSERT_EQUAL(p.real, VERDICT_INCONCLUSIVE);
	CU_ASSERT_EQUAL(p.tends, VERDICT_INCONCLUSIVE);
	CU_ASSERT_EQUAL(p.runs_needed, 0);
	NEAR(p.assurance, 0.5, 1e-6);
	NEAR(p.rel_lo, -0.5, 1e-12);
	NEAR(p.rel_hi, 0.5, 1e-12);
}

static void model_is_certain_where_machines_are_not(void)
{
	/* 0.5% with next to no scatter in the model: certain there, under the smallest effect */
	const double base[] = {1000, 1001, 1002, 1003}, policy[] = {995, 996, 997, 998};
	struct verdict_pair p;

	CU_ASSERT_EQUAL(verdict_judge(base, policy, 4, &verdict_defaults, &p), 0);
	CU_ASSERT_EQUAL(p.model, VERDICT_FASTER);
	CU_ASSERT_EQUAL(p.real, VERDICT_INCONCLUSIVE);
	CU_ASSERT_EQUAL(p.tends, VERDICT_SAME);
	CU_ASSERT(p.runs_needed > 527);
}

/* A tenth of the smallest effect, 0.1%, is where a difference begins, however certain. */
static void next_to_nothing_is_same(void)
{
	const double base[] = {100000, 100100, 100200}, less[] = {99910, 100010, 100110},
		     more[] = {99890, 99990, 100090};
	struct verdict_opts o = verdict_defaults;
	struct verdict_pair p;

	CU_ASSERT_EQUAL(verdict_judge(base, less, 3, &o, &p), 0);
	CU_ASSERT(p.rel.p < 0.001);
	CU_ASSERT_EQUAL(p.model, VERDICT_SAME);
	CU_ASSERT_EQUAL(verdict_judge(base, more, 3, &o, &p), 0);
	CU_ASSERT_EQUAL(p.model, VERDICT_FASTER);
	o.min_effect = 0.008;
	CU_ASSERT_EQUAL(verdict_judge(base, less, 3, &o, &p), 0);
	CU_ASSERT_EQUAL(p.model, VERDICT_FASTER);
}

static void nothing_to_compare_with(void)
{
	const double zero[] = {0, 0}, some[] = {5, 5};
	struct verdict_pair p;

	CU_ASSERT_EQUAL(verdict_judge(zero, some, 2, &verdict_defaults, &p), 0);
	CU_ASSERT_EQUAL(p.model, VERDICT_CANNOT_TELL);
	CU_ASSERT_EQUAL(p.real, VERDICT_CANNOT_TELL);
	NEAR(p.diff.value, 5, 0);
	CU_ASSERT_EQUAL(verdict_judge(zero, zero, 2, &verdict_defaults, &p), 0);
	CU_ASSERT_EQUAL(p.real, VERDICT_CANNOT_TELL);
	CU_ASSERT_EQUAL(verdict_judge(some, some, 1, &verdict_defaults, &p), KVMSIM_EINVAL);
}

static void ratio_of_the_means(void)
{
	/* means 20 and 25: +25%; residuals 12 - 12.5, 25 - 25, 38 - 37.5 over 20: -0.025, 0, 0.025,
	 * whose deviation is 0.025; t table, 2 degrees of freedom: 4.303 */
	const double base[] = {10, 20, 30}, policy[] = {12, 25, 38};
	double half = 4.303 * 0.025 / sqrt(3);
	struct verdict_pair p;

	CU_ASSERT_EQUAL(verdict_judge(base, policy, 3, &verdict_defaults, &p), 0);
	NEAR(p.rel.value, 0.25, 1e-15);
	NEAR(p.rel.hi, 0.25 + half, 1e-5);
	NEAR(p.rel.lo, 0.25 - half, 1e-5);
	/* the replicates' own: 0.2, 0.25, 0.26667; type 7 at 1 + 2 * 0.025 and 1 + 2 * 0.975 */
	NEAR(p.rel_lo, 0.2 + 0.05 * 0.05, 1e-12);
	NEAR(p.rel_hi, 0.25 + 0.95 * (4.0 / 15 - 0.25), 1e-12);
}

static void holm_over_all_pairs(void)
{
	/* p of .02 alone would be significant; three times .02 is not */
	struct verdict_pair a = {.model = VERDICT_FASTER,
				 .rel = {.value = -1, .lo = -2, .hi = -0.1, .se = 1, .p = 0.02}};
	struct verdict_pair b = a, c = a, none = {.model = VERDICT_CANNOT_TELL};
	struct verdict_pair *all[] = {&a, &none, &b, &c};

	b.rel.p = 0.9;
	c.rel.p = 0.001;
	CU_ASSERT_EQUAL(verdict_correct(all, 4, &verdict_defaults), 0);
	NEAR(a.rel.p, 0.04, 1e-15);
	NEAR(b.rel.p, 0.9, 1e-15);
	NEAR(c.rel.p, 0.003, 1e-15);
	CU_ASSERT_EQUAL(a.model, VERDICT_FASTER);
	CU_ASSERT_EQUAL(b.model, VERDICT_INCONCLUSIVE);
	CU_ASSERT_EQUAL(none.model, VERDICT_CANNOT_TELL);
	a.rel.p = 0.02;
	b.rel.p = c.rel.p = 0.02;
	CU_ASSERT_EQUAL(verdict_correct(all, 4, &verdict_defaults), 0);
	CU_ASSERT_EQUAL(a.model, VERDICT_INCONCLUSIVE);
}

static void combining(void)
{
#define COMBINE(...)                                                                               \
	verdict_combine((const enum verdict[]){__VA_ARGS__},                                       \
			sizeof((const enum verdict[]){__VA_ARGS__}) / sizeof(enum verdict))
	CU_ASSERT_EQUAL(COMBINE(VERDICT_FASTER, VERDICT_SLOWER), VERDICT_MIXED);
	CU_ASSERT_EQUAL(COMBINE(VERDICT_FASTER, VERDICT_INCONCLUSIVE), VERDICT_FASTER);
	CU_ASSERT_EQUAL(COMBINE(VERDICT_SAME, VERDICT_SLOWER, VERDICT_CANNOT_TELL), VERDICT_SLOWER);
	CU_ASSERT_EQUAL(COMBINE(VERDICT_SAME, VERDICT_INCONCLUSIVE), VERDICT_INCONCLUSIVE);
	CU_ASSERT_EQUAL(COMBINE(VERDICT_SAME, VERDICT_CANNOT_TELL), VERDICT_SAME);
	CU_ASSERT_EQUAL(COMBINE(VERDICT_CANNOT_TELL, VERDICT_CANNOT_TELL), VERDICT_CANNOT_TELL);
	CU_ASSERT_EQUAL(COMBINE(VERDICT_FASTER, VERDICT_MIXED), VERDICT_MIXED);
	CU_ASSERT_STRING_EQUAL(verdict_name(VERDICT_CANNOT_TELL), "cannot tell");
}

static CU_TestInfo tests[] = {
	{"one_machine_is_a_power_calculation", one_machine_is_a_power_calculation},
	{"smallest_effect_moves_the_bar", smallest_effect_moves_the_bar},
	{"one_run_shows_nothing", one_run_shows_nothing},
	{"no_difference_needs_many_runs", no_difference_needs_many_runs},
	{"unknown_sign_is_never_settled", unknown_sign_is_never_settled},
	{"model_is_certain_where_machines_are_not", model_is_certain_where_machines_are_not},
	{"next_to_nothing_is_same", next_to_nothing_is_same},
	{"nothing_to_compare_with", nothing_to_compare_with},
	{"ratio_of_the_means", ratio_of_the_means},
	{"holm_over_all_pairs", holm_over_all_pairs},
	{"combining", combining},
	CU_TEST_INFO_NULL};
TEST_MAIN("verdict", tests)
