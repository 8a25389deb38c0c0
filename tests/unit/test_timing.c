// SPDX-License-Identifier: GPL-3.0-or-later
/* Of rows whose predictions are made up: what the judge of times says. */
#include <stdlib.h>
#include <string.h>

#include "analysis/timing.h"
#include "tests/unit/harness.h"

#define MAX_ROWS 24

static const char recipe_text[] =
	"[evidence]\nfile = f.csv\nruns = r.csv\nprofile = unit\npublished_bytes = 1\nbytes = 1\n"
	"[miss known]\nseries = known\nmedian = 60\nwhy = because\n"
	"[miss sign]\nseries = sign\nmedian = 20\nwrong = 1\nwhy = because\n"
	"[miss metric]\nseries = parts\nmetric = bad\nmedian = 60\nwhy = because\n"
	"[bounds]\nmedian = 20\nnoise = 10\n";

static struct recipe *recipe;
static struct timing_run runs[MAX_ROWS];
static struct timing_row rows[MAX_ROWS];
static struct timing t;
static struct timing_judgement *judged;
static size_t n_judged;

static void begin(void)
{
	if (!recipe)
		CU_ASSERT_EQUAL_FATAL(recipe_parse(recipe_text, "recipe", NULL, &recipe), 0);
	memset(runs, 0, sizeof(runs));
	memset(rows, 0, sizeof(rows));
	t = (struct timing){.recipe = recipe, .runs = runs, .rows = rows};
}

/* A run of its own unless @options are an earlier one's. */
static struct timing_row *row(char *series, char *metric, char *policy, uint64_t x, double measured,
			      double predicted)
{
	struct timing_row *r = &rows[t.n_rows++];
	struct timing_run *run = NULL;

	for (size_t i = 0; i < t.n_runs; i++)
		if (!strcmp(runs[i].series, series) && !strcmp(runs[i].metric, metric) &&
		    !strcmp(runs[i].policy, policy))
			run = &runs[i];
	if (!run) {
		run = &runs[t.n_runs++];
		*run = (struct timing_run){.series = series,
					   .metric = metric,
					   .policy = policy,
					   .row = metric,
					   .options = policy,
					   .judge = JUDGE_TIME};
	}
	*r = (struct timing_row){.run = run, .x = x, .measured = measured, .predicted = predicted};
	return r;
}

static const struct timing_judgement *judge(void)
{
	free(judged);
	CU_ASSERT_EQUAL_FATAL(timing_judge(&t, &judged, &n_judged), 0);
	CU_ASSERT_FATAL(n_judged > 0);
	return judged;
}

/* 4 seconds against 2, as 3 against 2: 25 % off; and 1 against 1 of the next x, exact. The median
 * of an even number of errors lies between the two in the middle. */
static void medians_of_ratios(void)
{
	const struct timing_judgement *j;

	begin();
	row("s", "m", "a", 2, 4, 3);
	row("s", "m", "b", 2, 2, 2);
	j = judge();
	CU_ASSERT_EQUAL(j->n_ratios, 1);
	CU_ASSERT_DOUBLE_EQUAL(j->ratios, 0.25, 1e-12);
	CU_ASSERT_EQUAL(j->verdict, TIMING_FAIL);
	row("s", "m", "a", 4, 1, 1)->run = &runs[0];
	row("s", "m", "b", 4, 1, 1)->run = &runs[1];
	j = judge();
	CU_ASSERT_EQUAL(j->n_ratios, 2);
	CU_ASSERT_DOUBLE_EQUAL(j->ratios, 0.125, 1e-12);
	/* times themselves: 25 %, 0, 0, 0 */
	CU_ASSERT_EQUAL(j->n_times, 4);
	CU_ASSERT_DOUBLE_EQUAL(j->times, 0, 1e-12);
	/* 4 -> 1 as 3 -> 1: a third off; 2 -> 1 exact */
	CU_ASSERT_EQUAL(j->n_growths, 2);
	CU_ASSERT_DOUBLE_EQUAL(j->growths, (4.0 / 3 - 1) / 2, 1e-12);
	CU_ASSERT_EQUAL(j->verdict, TIMING_PASS);
}

/* Growth alone can fail: of one policy, from the least x wherever it stands. */
static void growth(void)
{
	const struct timing_judgement *j;

	begin();
	row("s", "m", "a", 8, 8, 4);
	row("s", "m", "a", 2, 2, 2);
	j = judge();
	CU_ASSERT_EQUAL(j->n_ratios, 0);
	CU_ASSERT_EQUAL(j->n_growths, 1);
	CU_ASSERT_DOUBLE_EQUAL(j->growths, 0.5, 1e-12);
	CU_ASSERT_EQUAL(j->verdict, TIMING_FAIL);
}

/* 12 % of a difference and the wrong way round, though the ratio is only 18 % off; within the noise
 * no sign is asked; a prediction of no difference is wrong, either way. */
static void wrong_signs(void)
{
	const struct timing_judgement *j;

	begin();
	row("s", "m", "a", 2, 1.12, 0.92);
	row("s", "m", "b", 2, 1, 1);
	j = judge();
	CU_ASSERT(j->ratios < 0.2);
	CU_ASSERT_EQUAL(j->n_signs, 1);
	CU_ASSERT_EQUAL(j->n_wrong, 1);
	CU_ASSERT_EQUAL(j->verdict, TIMING_FAIL);
	rows[0].measured = 1.09;
	j = judge();
	CU_ASSERT_EQUAL(j->n_signs, 0);
	CU_ASSERT_EQUAL(j->verdict, TIMING_PASS);
	rows[0].measured = 1.15;
	rows[0].predicted = 1;
	CU_ASSERT_EQUAL(judge()->n_wrong, 1);
	rows[0].measured = 1 / 1.15;
	CU_ASSERT_EQUAL(judge()->n_wrong, 1);
	rows[0].predicted = 0.9;
	CU_ASSERT_EQUAL(judge()->n_wrong, 0);
}

/* What was all fitted says nothing, and nothing is no pass; with one row of the two it does. */
static void fitted_pairs_are_left_out(void)
{
	const struct timing_judgement *j;

	begin();
	row("s", "m", "a", 2, 4, 1)->fitted = true;
	row("s", "m", "b", 2, 2, 2)->fitted = true;
	j = judge();
	CU_ASSERT_EQUAL(j->n_fitted, 2);
	CU_ASSERT_EQUAL(j->n_ratios + j->n_times + j->n_signs, 0);
	CU_ASSERT_EQUAL(j->verdict, TIMING_NOTHING);
	CU_ASSERT_EQUAL(timing_verdict(judged, n_judged), TIMING_NOTHING);
	rows[1].fitted = false;
	CU_ASSERT_EQUAL(judge()->verdict, TIMING_FAIL);
	/* nor does a row that was not run, or is not to be judged */
	rows[1].predicted = 0;
	CU_ASSERT_EQUAL(judge()->verdict, TIMING_NOTHING);
	CU_ASSERT_EQUAL(judge()->n_told, 1);
	rows[1].predicted = 2;
	runs[1].judge = JUDGE_NO;
	CU_ASSERT_EQUAL(judge()->verdict, TIMING_NOTHING);
}

/* A metric with three ratios is judged beside its series, whose median hides it. */
static void a_metric_is_not_hidden(void)
{
	begin();
	for (uint64_t x = 2; x <= 8; x += 2) {
		row("hides", "good", "a", x, 2, 2);
		row("hides", "good", "b", x, 1, 1);
	}
	for (uint64_t x = 2; x <= 6; x += 2) {
		row("hides", "bad", "a", x, 2, 3);
		row("hides", "bad", "b", x, 1, 1);
	}
	judge();
	CU_ASSERT_EQUAL_FATAL(n_judged, 3);
	CU_ASSERT_PTR_NULL(judged[0].metric);
	CU_ASSERT_EQUAL(judged[0].verdict, TIMING_PASS);
	CU_ASSERT_STRING_EQUAL(judged[1].metric, "good");
	CU_ASSERT_EQUAL(judged[1].verdict, TIMING_PASS);
	CU_ASSERT_STRING_EQUAL(judged[2].metric, "bad");
	CU_ASSERT_DOUBLE_EQUAL(judged[2].ratios, 0.5, 1e-12);
	CU_ASSERT_EQUAL(judged[2].verdict, TIMING_FAIL);
	CU_ASSERT_EQUAL(timing_verdict(judged, n_judged), TIMING_FAIL);
	/* the same, known beforehand: missed, not passed */
	for (size_t i = 0; i < t.n_runs; i++)
		runs[i].series = "parts";
	judge();
	CU_ASSERT_EQUAL(judged[2].verdict, TIMING_MISSED);
	CU_ASSERT_EQUAL(timing_verdict(judged, n_judged), TIMING_MISSED);
}

/* A miss that is known has a bound of its own, and only so many signs are forgiven as it says. */
static void known_misses(void)
{
	begin();
	row("known", "m", "a", 2, 2, 3);
	row("known", "m", "b", 2, 1, 1);
	CU_ASSERT_EQUAL(judge()->verdict, TIMING_MISSED);
	rows[0].predicted = 3.3;
	CU_ASSERT_EQUAL(judge()->verdict, TIMING_FAIL);
	rows[0].predicted = 2.1;
	CU_ASSERT_EQUAL(judge()->verdict, TIMING_PASS);
	rows[0].predicted = 0.95;
	CU_ASSERT_EQUAL(judge()->verdict, TIMING_FAIL);
	begin();
	row("sign", "m", "a", 2, 1.12, 0.99);
	row("sign", "m", "b", 2, 1, 1);
	CU_ASSERT_EQUAL(judge()->verdict, TIMING_MISSED);
	row("sign", "m", "a", 4, 1.12, 0.99);
	row("sign", "m", "b", 4, 1, 1);
	CU_ASSERT_EQUAL(judge()->verdict, TIMING_FAIL);
}

/* A number is judged by its value. */
static void numbers(void)
{
	begin();
	row("s", "a/b", "p", 0, 512, 512);
	CU_ASSERT_EQUAL(judge()->verdict, TIMING_PASS);
	CU_ASSERT_EQUAL(judge()->n_numbers, 1);
	rows[0].predicted = 256;
	CU_ASSERT_EQUAL(judge()->verdict, TIMING_FAIL);
}

/* Rows of one run count once; a run with a fitted row, or one that another series had, is none of
 * its own. */
static void fresh_runs(void)
{
	begin();
	row("one", "m", "a", 2, 1, 1);
	row("one", "n", "a", 2, 1, 1);
	row("one", "m", "b", 2, 1, 1)->fitted = true;
	row("one", "n", "b", 2, 1, 1);
	row("two", "m", "a", 2, 1, 1);
	row("two", "m", "a", 4, 1, 1);
	row("two", "m", "b", 4, 1, 0);
	judge();
	CU_ASSERT_EQUAL_FATAL(n_judged, 2);
	CU_ASSERT_EQUAL(judged[0].n_runs, 2);
	CU_ASSERT_EQUAL(judged[0].n_fresh, 1);
	CU_ASSERT_EQUAL(judged[1].n_runs, 2);
	CU_ASSERT_EQUAL(judged[1].n_fresh, 1);
	free(judged);
	judged = NULL;
	recipe_free(recipe);
	recipe = NULL;
}

static CU_TestInfo tests[] = {{"medians_of_ratios", medians_of_ratios},
			      {"growth", growth},
			      {"wrong_signs", wrong_signs},
			      {"fitted_pairs_are_left_out", fitted_pairs_are_left_out},
			      {"a_metric_is_not_hidden", a_metric_is_not_hidden},
			      {"known_misses", known_misses},
			      {"numbers", numbers},
			      {"fresh_runs", fresh_runs},
			      CU_TEST_INFO_NULL};
TEST_MAIN("timing", tests)
