// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/draw.h"
#include "analysis/metrics.h"
#include "analysis/stats.h"
#include "model/params.h"
#include "tests/unit/harness.h"

#define ONE ((double)(1u << PRICE_SHIFT))

static char said[256];

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(said, sizeof(said), "%s", msg);
}
static const struct kvmsim_errsink sink = {keep, NULL};

static struct profile *profile(const char *text)
{
	struct profile *p = NULL;

	CU_ASSERT_EQUAL_FATAL(profile_parse(text, strlen(text), "test.ini", &model_vocabulary,
					    model_params, &sink, &p),
			      0);
	return p;
}

static const char plain[] = "[machine]\nname = m\nunit = cycles\n[price]\ninsn = 2\nipi = 100\n";

static void phase_and_pages(void)
{
	struct profile *p = profile(plain);
	struct draw_opts o = {
		.profile = p, .seed = 1, .n_phases = 4, .shadow_lo = 10, .shadow_hi = 12};
	unsigned phases[4] = {0}, pages[3] = {0};
	struct draw_plan *plan = NULL;

	CU_ASSERT_EQUAL_FATAL(draw_plan_create(&o, &sink, &plan), 0);
	CU_ASSERT_EQUAL(draw_prices(plan), 0);
	for (uint32_t i = 0; i < 1200; i++) {
		struct draw d;

		CU_ASSERT_EQUAL_FATAL(draw_replicate(plan, i, &d), 0);
		CU_ASSERT_FATAL(d.phase < 4 && d.shadow_pages >= 10 && d.shadow_pages <= 12);
		phases[d.phase]++;
		pages[d.shadow_pages - 10]++;
		CU_ASSERT_EQUAL(profile_price(d.profile, COUNT_ipi), 100 << PRICE_SHIFT);
		draw_release(&d);
	}
	/* uniform: within five binomial standard deviations of 300 (15) and 400 (16.3) */
	for (int i = 0; i < 4; i++)
		CU_ASSERT(abs((int)phases[i] - 300) < 75);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(abs((int)pages[i] - 400) < 82);
	draw_plan_free(plan);

	o.n_phases = 0;
	CU_ASSERT_EQUAL(draw_plan_create(&o, &sink, &plan), KVMSIM_EINVAL);
	profile_free(p);
}

/* Prices of two counts over many replicates. */
static void sample(const struct draw_plan *plan, uint16_t a, uint16_t b, double *x, double *y,
		   uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct draw d;

		CU_ASSERT_EQUAL_FATAL(draw_replicate(plan, i, &d), 0);
		x[i] = (double)profile_price(d.profile, a) / ONE;
		y[i] = (double)profile_price(d.profile, b) / ONE;
		draw_release(&d);
	}
}

enum { N = 4000 };
static double x[N], y[N];

static double correlation(void)
{
	double mx = stats_mean(x, N), my = stats_mean(y, N), s = 0;

	for (int i = 0; i < N; i++)
		s += (x[i] - mx) * (y[i] - my);
	return s / (N - 1) / stats_sd(x, N) / stats_sd(y, N);
}

static void prices_follow_their_covariance(void)
{
	struct profile *p = profile("[machine]\nname = m\nunit = cycles\n"
				    "[price]\ninsn = 100\nipi = 50\nlock = 7\n"
				    "[sigma]\ninsn = 4\nipi = 2\n"
				    "[covariance]\ninsn,ipi = -6\n");
	struct draw_opts o = {.profile = p, .seed = 3, .n_phases = 1};
	struct draw_plan *plan = NULL;

	CU_ASSERT_EQUAL_FATAL(draw_plan_create(&o, &sink, &plan), 0);
	CU_ASSERT_EQUAL(draw_prices(plan), 2);
	sample(plan, COUNT_insn, COUNT_ipi, x, y, N);
	/* five standard errors: sd / sqrt(n), sd / sqrt(2 n); correlation -6 / (4 * 2) = -0.75
	 * with error (1 - r^2) / sqrt(n) */
	CU_ASSERT_DOUBLE_EQUAL(stats_mean(x, N), 100, 5 * 4 / 63.2);
	CU_ASSERT_DOUBLE_EQUAL(stats_mean(y, N), 50, 5 * 2 / 63.2);
	CU_ASSERT_DOUBLE_EQUAL(stats_sd(x, N), 4, 5 * 4 / 89.4);
	CU_ASSERT_DOUBLE_EQUAL(stats_sd(y, N), 2, 5 * 2 / 89.4);
	CU_ASSERT_DOUBLE_EQUAL(correlation(), -0.75, 5 * 0.4375 / 63.2);
	/* what has no standard error stays */
	sample(plan, COUNT_lock, COUNT_insn, x, y, 50);
	for (int i = 0; i < 50; i++)
		CU_ASSERT_EQUAL(x[i], 7);
	/* and nothing depends on what was drawn before */
	double first = y[17];

	sample(plan, COUNT_insn, COUNT_lock, x, y, 18);
	CU_ASSERT_EQUAL(x[17], first);
	draw_plan_free(plan);
	profile_free(p);
}

static void a_group_is_one_price(void)
{
	struct profile *p = profile("[machine]\nname = m\nunit = cycles\n"
				    "[price]\ninsn = 100\nipi = 100\n"
				    "[sigma]\ninsn = 5\nipi = 5\n"
				    "[group]\nboth = insn ipi\n");
	struct draw_opts o = {.profile = p, .seed = 3, .n_phases = 1};
	struct draw_plan *plan = NULL;

	CU_ASSERT_EQUAL_FATAL(draw_plan_create(&o, &sink, &plan), 0);
	sample(plan, COUNT_insn, COUNT_ipi, x, y, 200);
	for (int i = 0; i < 200; i++)
		CU_ASSERT_DOUBLE_EQUAL(x[i], y[i], 0.01);
	CU_ASSERT(stats_sd(x, 200) > 4);
	draw_plan_free(plan);
	profile_free(p);
}

/* Weights of one number, with the digits of a profile: 7 and 0.02 move as one, though what the
 * rounded covariances say is no matrix of one. What the file says of two that don't stays. */
static void a_group_has_weights(void)
{
	struct profile *p = profile("[machine]\nname = m\nunit = cycles\n"
				    "[price]\ninsn = 100\nipi = 0.3\nlock = 50\nioctl = 9\n"
				    "[sigma]\ninsn = 7.000004\nipi = 0.021\nlock = 2\nioctl = 1\n"
				    "[covariance]\ninsn,ipi = 0.146993\ninsn,lock = 7\n"
				    "ipi,lock = 0.021021\ninsn,ioctl = 3.5\n"
				    "[group]\nwork = insn ipi ioctl\n");
	struct draw_opts o = {.profile = p, .seed = 3, .n_phases = 1};
	struct draw_plan *plan = NULL;

	CU_ASSERT_EQUAL_FATAL(draw_plan_create(&o, &sink, &plan), 0);
	CU_ASSERT_EQUAL(draw_prices(plan), 4);
	sample(plan, COUNT_insn, COUNT_ipi, x, y, N);
	for (int i = 0; i < N; i++)
		CU_ASSERT_DOUBLE_EQUAL((x[i] - 100) * 0.003, y[i] - 0.3, 2 / ONE);
	sample(plan, COUNT_ipi, COUNT_lock, x, y, N);
	CU_ASSERT_DOUBLE_EQUAL(correlation(), 0.5, 5 * 0.75 / 63.2);
	sample(plan, COUNT_insn, COUNT_ioctl, x, y, N);
	CU_ASSERT_DOUBLE_EQUAL(correlation(), 0.5, 5 * 0.75 / 63.2);
	draw_plan_free(plan);
	profile_free(p);
}

static void prices_are_never_negative(void)
{
	struct profile *p = profile("[machine]\nname = m\nunit = cycles\n"
				    "[price]\ninsn = 1\n[sigma]\ninsn = 10\n");
	struct draw_opts o = {.profile = p, .seed = 1, .n_phases = 1};
	struct draw_plan *plan = NULL;
	int zero = 0;

	CU_ASSERT_EQUAL_FATAL(draw_plan_create(&o, &sink, &plan), 0);
	sample(plan, COUNT_insn, COUNT_ipi, x, y, 1000);
	for (int i = 0; i < 1000; i++) {
		CU_ASSERT(x[i] >= 0 && x[i] < 100);
		zero += x[i] == 0;
	}
	/* P(N(1, 10) < 0) = 0.4602 (table of the normal distribution), error 0.0158 */
	CU_ASSERT_DOUBLE_EQUAL(zero / 1000.0, 0.4602, 5 * 0.0158);
	draw_plan_free(plan);
	profile_free(p);
}

static void refuses_what_is_no_covariance(void)
{
	struct profile *p = profile("[machine]\nname = m\nunit = cycles\n"
				    "[price]\ninsn = 100\nipi = 50\n[sigma]\ninsn = 1\nipi = 1\n"
				    "[covariance]\ninsn,ipi = 2\n");
	struct draw_opts o = {.profile = p, .seed = 1, .n_phases = 1};
	struct draw_plan *plan = NULL;

	CU_ASSERT_EQUAL(draw_plan_create(&o, &sink, &plan), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "not a covariance matrix"));
	profile_free(p);
}

static void metrics_by_hand(void)
{
	struct run_collection c[100];
	struct run_result r = {.elapsed = 77, .collections = c, .n_collections = 100};
	double m[N_METRICS];

	/* 1 to 100: mean 50.5, quantile of type 7 at 1 + 99 * 0.99 = 99.01 */
	for (int i = 0; i < 100; i++)
		c[i] = (struct run_collection){.nr_dirty = 2,
					       .cycles = (cycles_t)(i * 37 % 100 + 1)};
	r.activity_cycles[ACT_page_fault] = 5;
	r.mmu_lock.wait = 6;
	r.mmu_lock.longest_hold = 8;
	CU_ASSERT_EQUAL(metrics_of(&r, m), 0);
	CU_ASSERT_DOUBLE_EQUAL(m[METRIC_get_dirty_log_mean], 50.5, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(m[METRIC_get_dirty_log_p99], 99.01, 1e-12);
	CU_ASSERT_EQUAL(m[METRIC_get_dirty_log_max], 100);
	CU_ASSERT_EQUAL(m[METRIC_get_dirty_log_total], 5050);
	CU_ASSERT_EQUAL(m[METRIC_page_fault], 5);
	CU_ASSERT_EQUAL(m[METRIC_lock_wait], 6);
	CU_ASSERT_EQUAL(m[METRIC_lock_hold_max], 8);
	CU_ASSERT_EQUAL(m[METRIC_elapsed], 77);
	CU_ASSERT_EQUAL(m[METRIC_dirty_pages], 200);
	r.n_collections = 0;
	CU_ASSERT_EQUAL(metrics_of(&r, m), 0);
	CU_ASSERT_EQUAL(m[METRIC_get_dirty_log_max], 0);
	CU_ASSERT_EQUAL(metric_find("elapsed", 7), METRIC_elapsed);
	CU_ASSERT_EQUAL(metric_find("elapse", 6), -1);
	CU_ASSERT_STRING_EQUAL(metric_unit(METRIC_elapsed, "cycles"), "cycles");
	CU_ASSERT_STRING_EQUAL(metric_unit(METRIC_dirty_pages, "cycles"), "pages");
}

static CU_TestInfo tests[] = {{"phase_and_pages", phase_and_pages},
			      {"prices_follow_their_covariance", prices_follow_their_covariance},
			      {"a_group_is_one_price", a_group_is_one_price},
			      {"a group has weights", a_group_has_weights},
			      {"prices_are_never_negative", prices_are_never_negative},
			      {"refuses_what_is_no_covariance", refuses_what_is_no_covariance},
			      {"metrics_by_hand", metrics_by_hand},
			      CU_TEST_INFO_NULL};
TEST_MAIN("draw", tests)
