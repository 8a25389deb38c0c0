// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calibrate.h"
#include "model/params.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"

static char last[512];

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	strncpy(last, msg, sizeof(last) - 1);
}
static const struct kvmsim_errsink sink = {keep, NULL};

#define HEAD                                                                                       \
	"[evidence]\nfile = f.csv\nmetric = m\nunit = u\nprofile = p\npreset = 6.1-shadow\n"       \
	"harvests = 3\n[policy]\nmask = mask\norig = walk identify\n[series s]\nfit = 1 2\n"       \
	"[series t]\nrun = 8\npages = 2m\nmetric = n\njudged = no\n"                               \
	"[machine]\nname = box\nunit = cycles\nhz = 1000\nsource = a sheet\n"                      \
	"[param]\nllc_bytes = 4096\n[fixed]\nipi = 7\n[source]\nipi = data sheet\n"
#define GROUPS "[group]\ncall = get_dirty_log\nwork = dirty_page*3 dirty_word\n"
#define BOUNDS "[bounds]\nfitted = 5\nmedian = 10\nworst = 25\nwithin15 = 80\n"

static struct recipe *recipe(const char *text)
{
	struct recipe *r;

	CU_ASSERT_EQUAL_FATAL(recipe_parse(text, "r.ini", &sink, &r), 0);
	return r;
}

static void complains(const char *text, const char *words)
{
	struct recipe *r;

	last[0] = '\0';
	CU_ASSERT_EQUAL(recipe_parse(text, "r.ini", &sink, &r), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NULL(r);
	if (!strstr(last, words))
		CU_FAIL_FATAL("the message lacks the words");
	CU_ASSERT_PTR_NOT_NULL(strstr(last, "r.ini:"));
}

static void recipes_are_read(void)
{
	struct recipe *r = recipe(HEAD GROUPS "[latent]\nguest_pollution = 1 2 4\n" BOUNDS);

	CU_ASSERT_STRING_EQUAL(r->file, "f.csv");
	CU_ASSERT_EQUAL(r->harvests, 3);
	CU_ASSERT_PTR_NOT_NULL_FATAL(recipe_policy(r, "orig"));
	CU_ASSERT(recipe_policy(r, "orig")->identify);
	CU_ASSERT_STRING_EQUAL(recipe_policy(r, "orig")->dirty, "walk");
	CU_ASSERT_FALSE(recipe_policy(r, "mask")->identify);
	CU_ASSERT_PTR_NULL(recipe_policy(r, "none"));
	CU_ASSERT_PTR_NOT_NULL_FATAL(recipe_series(r, "s"));
	CU_ASSERT(recipe_list_has(&recipe_series(r, "s")->fit, 2));
	CU_ASSERT_FALSE(recipe_list_has(&recipe_series(r, "s")->fit, 3));
	CU_ASSERT_EQUAL(recipe_series(r, "s")->run, 1);
	CU_ASSERT_FALSE(recipe_series(r, "s")->huge);
	CU_ASSERT_STRING_EQUAL(recipe_series(r, "s")->metric, "");
	CU_ASSERT_PTR_NOT_NULL_FATAL(recipe_series(r, "t"));
	CU_ASSERT_EQUAL(recipe_series(r, "t")->run, 8);
	CU_ASSERT_TRUE(recipe_series(r, "t")->huge);
	CU_ASSERT_TRUE(recipe_series(r, "t")->unjudged);
	CU_ASSERT_STRING_EQUAL(recipe_series(r, "t")->metric, "n");
	CU_ASSERT_EQUAL(recipe_fitted(r), 3); /* two groups and the latent */
	CU_ASSERT_EQUAL(r->group[1].n, 2);
	CU_ASSERT_EQUAL(r->group[1].count[0], COUNT_dirty_page);
	CU_ASSERT_EQUAL(r->group[1].weight[0], 3);
	CU_ASSERT_EQUAL(r->group[1].weight[1], 1);
	recipe_free(r);
}

#define MATRIX                                                                                     \
	"[evidence]\nfile = f.csv\nprofile = p\n[cases]\nB = fitted\nF_pde = fitted\n"             \
	"[phases]\ntwo_threads = not modelled\n"                                                   \
	"[machine]\nname = box\nunit = instructions\nhz = 1000\nsource = counted\n"
#define MATRIX_BOUNDS "[bounds]\nfitted = 2\nmedian = 3\nwithin10 = 95\n"

static void recipes_of_a_matrix(void)
{
	struct recipe *r = recipe(MATRIX GROUPS MATRIX_BOUNDS);

	CU_ASSERT_EQUAL(r->n_cases, 2);
	CU_ASSERT_TRUE(recipe_fits_case(r, "B"));
	CU_ASSERT_TRUE(recipe_fits_case(r, "F_pde"));
	CU_ASSERT_FALSE(recipe_fits_case(r, "F"));
	CU_ASSERT_FALSE(recipe_fits_case(r, "F_pde_read"));
	CU_ASSERT_TRUE(recipe_passes_over(r, "two_threads"));
	CU_ASSERT_FALSE(recipe_passes_over(r, "B"));
	CU_ASSERT_DOUBLE_EQUAL(r->within10, 95, 0);
	recipe_free(r);
	complains(MATRIX GROUPS "[bounds]\nfitted = 1\nmedian = 3\nwithin10 = 95\n",
		  "2 numbers are fitted");
	complains(MATRIX GROUPS "[bounds]\nfitted = 2\nmedian = 3\n", "within10");
	complains(MATRIX MATRIX_BOUNDS, "[group]");
	complains(MATRIX GROUPS "[series s]\nrun = 1\n" MATRIX_BOUNDS, "do not go with [cases]");
	complains(MATRIX GROUPS "[cases]\nC = judged\n" MATRIX_BOUNDS, "fitted or not named");
}

static void bad_recipes_are_refused(void)
{
	complains(HEAD GROUPS "[derived]\nplay = walk_sp\n" BOUNDS, "no [group] play above");
	complains(HEAD GROUPS "[derived]\nwork = ipi\n" BOUNDS, "given already");
	complains(HEAD BOUNDS, "[group]");
	complains(HEAD GROUPS "[bounds]\nfitted = 1\n", "2 numbers are fitted");
	complains(HEAD GROUPS BOUNDS "median = 3\n", "given already");
	complains(HEAD GROUPS "more = dirty_page\n" BOUNDS, "given already");
	complains(HEAD GROUPS "more = ipi\n" BOUNDS, "given already");
	complains(HEAD "[group]\na = no_such_count\n" BOUNDS, "no count no_such_count");
	complains(HEAD "[group]\na = dirty_page*0\n" BOUNDS, "more than 0");
	complains(HEAD GROUPS "[latent]\nspin = 1\n" BOUNDS, "no param spin");
	complains(HEAD GROUPS BOUNDS "[nonsense]\na = 1\n", "unknown section");
	complains(HEAD GROUPS BOUNDS "\nwords\n", "neither");
	complains(HEAD GROUPS BOUNDS "[series u]\npages = 1g\n", "pages is 4k or 2m");
	complains("[evidence]\nfile = x\n", "[evidence] gives");
}

/* Prices 1000 and 5 per unit of work (so 15 a page, 5 a word), 7 per IPI, and 40 of waiting. */
static const double pages[] = {0, 2, 10, 50, 200}, words[] = {0, 1, 4, 30, 60};
#define ROWS 5

static void counts_of(double *counts, double *measured, double *waited, double noise)
{
	memset(counts, 0, ROWS * N_COUNTS * sizeof(*counts));
	for (int i = 0; i < ROWS; i++) {
		double *c = counts + i * N_COUNTS;

		c[COUNT_get_dirty_log] = 1;
		c[COUNT_dirty_page] = pages[i];
		c[COUNT_dirty_word] = words[i];
		c[COUNT_ipi] = i;
		waited[i] = 40;
		measured[i] = 1000 + 15 * pages[i] + 5 * words[i] + 7 * i + 40;
		measured[i] *= 1 + (i % 2 ? noise : -noise);
	}
}

/* More counts at a group's price: not in the fit, whatever the rows have of them. */
static void derived_counts_are_priced_with_their_group(void)
{
	struct recipe *r = recipe(HEAD GROUPS "[derived]\nwork = walk_sp*2\n" BOUNDS);
	double counts[ROWS * N_COUNTS], measured[ROWS], waited[ROWS];
	struct calibration c;
	char *text;

	CU_ASSERT_EQUAL(recipe_fitted(r), 2);
	CU_ASSERT_EQUAL(r->group[1].n_fit, 2);
	counts_of(counts, measured, waited, 0);
	for (int i = 0; i < ROWS; i++)
		counts[i * N_COUNTS + COUNT_walk_sp] = 100 + i;
	CU_ASSERT_EQUAL_FATAL(calibrate_counts(r, counts, measured, waited, ROWS, &sink, &c), 0);
	CU_ASSERT_DOUBLE_EQUAL(c.price[COUNT_dirty_page], 15, 1e-8);
	CU_ASSERT_DOUBLE_EQUAL(c.price[COUNT_walk_sp], 10, 1e-8);
	text = recipe_profile_text(r, c.price, c.cov, 0, "fitted");
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nwalk_sp = 10.000000\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nwalk_sp = derived: 2/3 of dirty_page\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nwork = dirty_page dirty_word walk_sp\n"));
	free(text);
	calibration_free(&c);
	recipe_free(r);
}

static void prices_are_recovered(void)
{
	struct recipe *r = recipe(HEAD GROUPS BOUNDS);
	double counts[ROWS * N_COUNTS], measured[ROWS], waited[ROWS];
	struct calibration c;

	counts_of(counts, measured, waited, 0);
	CU_ASSERT_EQUAL_FATAL(calibrate_counts(r, counts, measured, waited, ROWS, &sink, &c), 0);
	CU_ASSERT_DOUBLE_EQUAL(c.group[0], 1000, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(c.group[1], 5, 1e-8);
	CU_ASSERT_DOUBLE_EQUAL(c.price[COUNT_dirty_page], 15, 1e-8);
	CU_ASSERT_DOUBLE_EQUAL(c.price[COUNT_dirty_word], 5, 1e-8);
	CU_ASSERT_DOUBLE_EQUAL(c.price[COUNT_ipi], 7, 0);
	CU_ASSERT_EQUAL(c.n_fitted, 2);
	calibration_free(&c);
	recipe_free(r);
}

/* Two counts of a group move together: their covariance is that of one number. */
static void covariance_of_a_group(void)
{
	struct recipe *r = recipe(HEAD GROUPS BOUNDS);
	double counts[ROWS * N_COUNTS], measured[ROWS], waited[ROWS];
	struct calibration c;

	counts_of(counts, measured, waited, 0.05);
	CU_ASSERT_EQUAL_FATAL(calibrate_counts(r, counts, measured, waited, ROWS, &sink, &c), 0);
	double page = c.cov[COUNT_dirty_page * N_COUNTS + COUNT_dirty_page];
	double word = c.cov[COUNT_dirty_word * N_COUNTS + COUNT_dirty_word];
	double both = c.cov[COUNT_dirty_page * N_COUNTS + COUNT_dirty_word];

	CU_ASSERT(word > 0);
	CU_ASSERT_DOUBLE_EQUAL(page / word, 9, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(both * both / (page * word), 1, 1e-9);
	CU_ASSERT_EQUAL(c.cov[COUNT_ipi * N_COUNTS + COUNT_ipi], 0);
	calibration_free(&c);
	recipe_free(r);
}

/* A mean of 9, 11 and 13, each relative to itself: by hand. With w = 1 / y the price is
 * sum(w) / sum(w^2), s^2 = sum((1 - w price)^2) / 2, its variance s^2 / sum(w^2), and Student's
 * 97.5% point for 2 degrees of freedom is 4.302653 against the normal's 1.959964. */
static void few_rows_widen_the_covariance(void)
{
	struct recipe *r = recipe(HEAD "[group]\ncall = get_dirty_log\n" BOUNDS);
	const double y[] = {9, 11, 13}, waited[3] = {0};
	double counts[3 * N_COUNTS] = {0}, sw = 0, sww = 0, s2 = 0;
	struct calibration c;

	for (int i = 0; i < 3; i++) {
		counts[i * N_COUNTS + COUNT_get_dirty_log] = 1;
		sw += 1 / y[i];
		sww += 1 / (y[i] * y[i]);
	}
	for (int i = 0; i < 3; i++)
		s2 += pow(1 - sw / sww / y[i], 2) / 2;
	CU_ASSERT_EQUAL_FATAL(calibrate_counts(r, counts, y, waited, 3, &sink, &c), 0);
	CU_ASSERT_DOUBLE_EQUAL(c.group[0], sw / sww, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(sqrt(c.group_cov[0]), sqrt(s2 / sww) * 4.302653 / 1.959964, 1e-5);
	calibration_free(&c);
	recipe_free(r);
}

static void too_little_data_is_refused(void)
{
	struct recipe *r = recipe(HEAD GROUPS BOUNDS);
	double counts[ROWS * N_COUNTS], measured[ROWS], waited[ROWS];
	struct calibration c;

	counts_of(counts, measured, waited, 0);
	CU_ASSERT_EQUAL(calibrate_counts(r, counts, measured, waited, 2, &sink, &c),
			KVMSIM_EUNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(last, "2 rows do not carry 2 fitted numbers"));
	recipe_free(r);
}

static void inseparable_groups_are_named(void)
{
	struct recipe *r = recipe(HEAD GROUPS "lockcost = lock\n" BOUNDS);
	double counts[ROWS * N_COUNTS], measured[ROWS], waited[ROWS];
	struct calibration c;

	counts_of(counts, measured, waited, 0);
	for (int i = 0; i < ROWS; i++) /* each call takes two locks */
		counts[i * N_COUNTS + COUNT_lock] = 2;
	CU_ASSERT_EQUAL(calibrate_counts(r, counts, measured, waited, ROWS, &sink, &c),
			KVMSIM_EUNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(last, ": call, lockcost"));
	CU_ASSERT_PTR_NULL(strstr(last, "work"));
	recipe_free(r);
}

/* What is written can be read again as a profile, with prices, covariance and sources. */
static void profile_text_is_a_profile(void)
{
	struct recipe *r = recipe(HEAD GROUPS "[latent]\nguest_pollution = 1 2 4\n" BOUNDS);
	double counts[ROWS * N_COUNTS], measured[ROWS], waited[ROWS];
	struct calibration c;
	struct profile *p;
	char *text;

	counts_of(counts, measured, waited, 0.05);
	CU_ASSERT_EQUAL_FATAL(calibrate_counts(r, counts, measured, waited, ROWS, &sink, &c), 0);
	text = recipe_profile_text(r, c.price, c.cov, 4, "fitted");
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_EQUAL_FATAL(
		profile_parse(text, strlen(text), "p", &model_vocabulary, model_params, &sink, &p),
		0);
	CU_ASSERT_STRING_EQUAL(profile_machine(p), "box");
	CU_ASSERT_EQUAL(profile_hz(p), 1000);
	CU_ASSERT_EQUAL(profile_param(p, "llc_bytes"), 4096);
	CU_ASSERT_EQUAL(profile_param(p, "guest_pollution"), 4);
	CU_ASSERT_EQUAL(profile_price(p, COUNT_ipi), 7 << PRICE_SHIFT);
	CU_ASSERT_STRING_EQUAL(profile_source(p, COUNT_ipi), "data sheet");
	CU_ASSERT_STRING_EQUAL(profile_source(p, COUNT_dirty_page), "fitted");
	CU_ASSERT_DOUBLE_EQUAL(profile_price(p, COUNT_dirty_page) / 65536.0,
			       c.price[COUNT_dirty_page], 2e-5);
	CU_ASSERT_DOUBLE_EQUAL(profile_covariance(p, COUNT_dirty_word, COUNT_dirty_page) / 65536.0,
			       c.cov[COUNT_dirty_page * N_COUNTS + COUNT_dirty_word], 2e-5);
	CU_ASSERT_DOUBLE_EQUAL(profile_sigma(p, COUNT_dirty_word) / 65536.0,
			       sqrt(c.cov[COUNT_dirty_word * N_COUNTS + COUNT_dirty_word]), 2e-5);
	profile_free(p);
	free(text);
	calibration_free(&c);
	recipe_free(r);
}

static CU_TestInfo tests[] = {
	{"recipes_are_read", recipes_are_read},
	{"recipes_of_a_matrix", recipes_of_a_matrix},
	{"bad_recipes_are_refused", bad_recipes_are_refused},
	{"prices_are_recovered", prices_are_recovered},
	{"derived_counts_are_priced_with_their_group", derived_counts_are_priced_with_their_group},
	{"covariance_of_a_group", covariance_of_a_group},
	{"few_rows_widen_the_covariance", few_rows_widen_the_covariance},
	{"too_little_data_is_refused", too_little_data_is_refused},
	{"inseparable_groups_are_named", inseparable_groups_are_named},
	{"profile_text_is_a_profile", profile_text_is_a_profile},
	CU_TEST_INFO_NULL};
TEST_MAIN("test_calibrate", tests)
