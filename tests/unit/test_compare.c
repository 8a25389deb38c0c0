// SPDX-License-Identifier: GPL-3.0-or-later
/* Comparisons over a stand-in for run_model() whose costs are formulas. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/compare.h"
#include "analysis/draw.h"
#include "model/params.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"

static char said[512];
static int n_said, n_warned;

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(said, sizeof(said), "%s", msg);
	n_said++;
}
static const struct kvmsim_errsink sink = {keep, NULL};

static struct profile *profile(const char *prices)
{
	char text[512];
	struct profile *p = NULL;

	snprintf(text, sizeof(text), "[machine]\nname = m\nunit = cycles\n%s", prices);
	CU_ASSERT_EQUAL_FATAL(profile_parse(text, strlen(text), "test.ini", &model_vocabulary,
					    model_params, &sink, &p),
			      0);
	return p;
}

static uint64_t price(const struct run_opts *o, uint16_t count)
{
	return profile_price(o->profile, count) >> PRICE_SHIFT;
}

/* What the stand-in does out of the ordinary. */
static struct {
	uint32_t fail_at; /* replicate that fails, 0: none */
	uint32_t kill_at; /* replicate whose process is killed, when it is a worker */
	uint32_t interrupt_at;
	bool warn;
} trouble;
static pid_t parent;

/* Two collections. walk: walk_sp per shadow page. mask: dirty_page per dirty page, 1,000 of them
 * and 100 more in each later phase. uneven: as mask, but a tenth of it and then half as much again.
 * rmap-slot: as mask, and one rmap_head each, counted only. All:
 * insn per guest instruction, 10,000. */
static int formulas(const struct run_opts *o, struct run_result *r)
{
	bool walk = !strcmp(o->dirty, "walk"), slot = !strcmp(o->dirty, "rmap-slot");
	uint64_t pages = 1000 + 100 * o->phase, n = walk ? o->shadow_pages : pages;
	uint16_t count = walk ? COUNT_walk_sp : COUNT_dirty_page;

	*r = (struct run_result){0};
	if (trouble.fail_at && o->replicate == trouble.fail_at)
		return kvmsim_err(o->errors, KVMSIM_EPARSE, "bad at %u", o->replicate);
	if (trouble.kill_at && o->replicate == trouble.kill_at && getpid() != parent)
		raise(SIGKILL);
	if (trouble.interrupt_at && o->replicate == trouble.interrupt_at)
		return KVMSIM_EINTR;
	if (trouble.warn)
		kvmsim_err(o->errors, KVMSIM_ETORN, "torn");
	r->collections = calloc(2, sizeof(*r->collections));
	if (!r->collections)
		return KVMSIM_ENOMEM;
	r->n_collections = 2;
	for (int i = 0; i < 2; i++)
		r->collections[i] =
			(struct run_collection){.nr_dirty = pages, .cycles = n * price(o, count)};
	if (!strcmp(o->dirty, "uneven")) {
		r->collections[0].cycles = r->collections[0].cycles / 10;
		r->collections[1].cycles = r->collections[1].cycles * 3 / 2;
	}
	r->by_activity[ACT_get_dirty_log][count].n = 2 * n;
	r->count_cycles[count] = 2 * n * price(o, count);
	r->by_activity[ACT_get_dirty_log][COUNT_rmap_head].n = slot ? 2 * n : 0;
	r->by_activity[ACT_guest][COUNT_insn].n = 10000;
	r->by_activity[ACT_page_fault][COUNT_page_fault].n = 50;
	r->activity_cycles[ACT_page_fault] = 50 * price(o, COUNT_page_fault);
	r->count_cycles[COUNT_insn] = 10000 * price(o, COUNT_insn);
	r->elapsed = r->count_cycles[count] + r->count_cycles[COUNT_insn];
	return 0;
}

static char order[4096];

static int note(void *ctx, const struct run_opts *o, const struct run_result *r,
		const double m[N_METRICS])
{
	size_t at = strlen(order);

	(void)ctx;
	(void)r;
	snprintf(order + at, sizeof(order) - at, "%s %u %.0f\n", o->dirty, o->replicate,
		 m[METRIC_get_dirty_log_mean]);
	return 0;
}

static void warned(void *ctx, const char *msg)
{
	(void)ctx;
	n_warned += !strcmp(msg, "torn");
}

static const char *const walk_mask[] = {"walk", "mask"};

static struct compare_opts base_opts(const struct profile *p)
{
	parent = getpid();
	memset(&trouble, 0, sizeof(trouble));
	order[0] = '\0';
	n_said = n_warned = 0;
	return (struct compare_opts){.run = {.profile = p, .seed = 1, .errors = &sink},
				     .policies = walk_mask,
				     .n_policies = 2,
				     .replicates = 8,
				     .n_phases = 4,
				     .verdict = verdict_defaults,
				     .run_fn = formulas,
				     .done = note,
				     .warn = warned};
}

static const char two_prices[] = "[price]\ninsn = 1\nwalk_sp = 300\ndirty_page = 60\n"
				 "[sigma]\nwalk_sp = 20\ndirty_page = 5\n";

static void replicates_share_their_draws(void)
{
	struct profile *p = profile(two_prices);
	struct compare_opts o = base_opts(p);
	struct draw_opts d = {
		.profile = p, .seed = 1, .n_phases = 4, .shadow_lo = 500, .shadow_hi = 500};
	struct draw_plan *plan = NULL;
	struct compare c;

	o.shadow_lo = o.shadow_hi = 500;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_EQUAL_FATAL(draw_plan_create(&d, &sink, &plan), 0);
	CU_ASSERT_EQUAL(c.n_prices, 2);
	CU_ASSERT_EQUAL(c.runs, 16);
	CU_ASSERT_FALSE(c.range);
	for (uint32_t i = 0; i < 8; i++) {
		struct draw w;

		CU_ASSERT_EQUAL_FATAL(draw_replicate(plan, i, &w), 0);
		uint64_t sp = profile_price(w.profile, COUNT_walk_sp) >> PRICE_SHIFT;
		uint64_t page = profile_price(w.profile, COUNT_dirty_page) >> PRICE_SHIFT;
		uint64_t pages = 1000 + 100 * w.phase;

		CU_ASSERT_EQUAL(c.policy[0].value[METRIC_get_dirty_log_mean][i], 500 * sp);
		CU_ASSERT_EQUAL(c.policy[1].value[METRIC_get_dirty_log_mean][i], pages * page);
		CU_ASSERT_EQUAL(c.policy[1].value[METRIC_elapsed][i], 10000 + 2 * pages * page);
		CU_ASSERT_EQUAL(c.policy[1].value[METRIC_dirty_pages][i], 2 * pages);
		draw_release(&w);
	}
	/* 500 * 300 = 150,000 against about 69,000: less in every cost that there is */
	CU_ASSERT_EQUAL(c.policy[1].real, VERDICT_FASTER);
	CU_ASSERT_EQUAL(c.policy[1].model, VERDICT_FASTER);
	CU_ASSERT(c.policy[1].runs_needed >= 2 && c.policy[1].runs_needed <= 10);
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_lock_wait], GAP_ZERO);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_dirty_pages].rel.value, 0);
	CU_ASSERT_FALSE(c.policy[1].any_unpriced);
	draw_plan_free(plan);
	compare_free(&c);
	profile_free(p);
}

static void the_same_with_any_j(void)
{
	struct profile *p = profile(two_prices);
	struct compare_opts o = base_opts(p);
	struct compare one, many;
	char first[sizeof(order)];

	trouble.warn = true;
	o.shadow_lo = 100;
	o.shadow_hi = 900;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &one), 0);
	memcpy(first, order, sizeof(order));
	CU_ASSERT_EQUAL(n_warned, 48);
	for (unsigned j = 2; j <= 64; j *= 4) {
		order[0] = '\0';
		o.workers = j;
		CU_ASSERT_EQUAL_FATAL(compare_run(&o, &many), 0);
		CU_ASSERT_STRING_EQUAL(order, first);
		CU_ASSERT_EQUAL(
			memcmp(many.policy[1].pair, one.policy[1].pair, sizeof(one.policy[1].pair)),
			0);
		CU_ASSERT_EQUAL(many.policy[1].crossover, one.policy[1].crossover);
		compare_free(&many);
	}
	CU_ASSERT_EQUAL(waitpid(-1, NULL, WNOHANG), -1);
	CU_ASSERT_EQUAL(errno, ECHILD);
	compare_free(&one);
	profile_free(p);
}

static void the_number_of_shadow_pages_decides(void)
{
	/* walk 100 per shadow page, mask 100 per dirty page: equal at 1,000 in the first phase */
	struct profile *p = profile("[price]\ninsn = 1\nwalk_sp = 100\ndirty_page = 100\n");
	struct compare_opts o = base_opts(p);
	struct compare c;

	o.n_phases = 1;
	o.shadow_lo = 100;
	o.shadow_hi = 20000;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_TRUE(c.range);
	CU_ASSERT_EQUAL(c.policy[1].lo.real, VERDICT_SLOWER);
	CU_ASSERT_EQUAL(c.policy[1].hi.real, VERDICT_FASTER);
	CU_ASSERT_DOUBLE_EQUAL(c.policy[1].lo.rel, 9, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(c.policy[1].hi.rel, -0.95, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL((double)c.policy[1].crossover, 1000, 10);
	CU_ASSERT_FALSE(c.policy[1].crossover_unpriced);
	compare_free(&c);

	/* where one side always wins there is none */
	o.shadow_lo = 2000;
	o.replicates = 12;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_EQUAL(c.policy[1].crossover, 0);
	CU_ASSERT_EQUAL(c.runs, 2 * (12 + 8 + 8));
	for (int i = 0; i < 12; i++)
		CU_ASSERT_EQUAL(c.policy[1].value[METRIC_get_dirty_log_mean][i], 100000);
	CU_ASSERT_EQUAL(c.policy[1].lo.real, VERDICT_FASTER);
	compare_free(&c);
	profile_free(p);
}

/* What is not priced leaves the crossover where it would be if that cost nothing, and says so. */
static void a_crossover_may_lack_a_price(void)
{
	struct profile *p = profile("[price]\ninsn = 1\nwalk_sp = 100\ndirty_page = 100\n");
	const char *const policies[] = {"walk", "rmap-slot"};
	struct compare_opts o = base_opts(p);
	struct compare c;

	o.policies = policies;
	o.shadow_lo = 100;
	o.shadow_hi = 20000;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_TRUE(compare_depends(&c, &c.policy[1]));
	CU_ASSERT_TRUE(c.policy[1].crossover_unpriced);
	/* in phases 0 to 9 as many pages: the mean of those that were drawn */
	CU_ASSERT(c.policy[1].crossover > 990 && c.policy[1].crossover < 1920);
	compare_free(&c);
	profile_free(p);
}

static void what_has_no_price_is_not_told(void)
{
	struct profile *p = profile("[price]\ninsn = 1\n");
	struct compare_opts o = base_opts(p);
	struct compare c;

	/* no count that tells them apart has a price */
	o.shadow_lo = o.shadow_hi = 500;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_EQUAL(c.policy[1].real, VERDICT_CANNOT_TELL);
	CU_ASSERT_EQUAL(c.policy[1].model, VERDICT_CANNOT_TELL);
	CU_ASSERT_EQUAL(c.policy[1].unpriced[COUNT_dirty_page], 1);
	CU_ASSERT_EQUAL(c.policy[1].unpriced[COUNT_walk_sp], -1);
	CU_ASSERT_EQUAL(c.policy[1].unpriced[COUNT_insn], 0);
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_elapsed], GAP_UNPRICED);
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_get_dirty_log_mean], GAP_UNPRICED);
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_dirty_pages], GAP_NONE);
	/* a harvest's counts are none of a page fault's */
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_page_fault], GAP_ZERO);
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_lock_wait], GAP_ZERO);
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_lock_hold_max], GAP_UNPRICED);
	compare_free(&c);
	profile_free(p);

	/* mask's own count lacks its price: it only looks faster */
	p = profile("[price]\ninsn = 1\nwalk_sp = 100\n");
	o.run.profile = p;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_EQUAL(c.policy[1].real, VERDICT_CANNOT_TELL);
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_elapsed], GAP_UNPRICED);
	compare_free(&c);
	profile_free(p);

	/* a price of 0 that has a source is a price */
	p = profile("[price]\ninsn = 1\ndirty_page = 1\n[source]\nwalk_sp = none: a test\n");
	o.run.profile = p;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_FALSE(c.policy[1].any_unpriced);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_elapsed].real, VERDICT_SLOWER);
	compare_free(&c);
	profile_free(p);
}

static void a_missing_price_does_not_hide_a_loss(void)
{
	struct profile *p = profile("[price]\ninsn = 1\nwalk_sp = 1\ndirty_page = 100\n");
	struct compare_opts o = base_opts(p);
	const char *const slot_last[] = {"walk", "rmap-slot"}, *const slot_first[] = {"rmap-slot",
										      "walk"};
	struct compare c;

	/* 500 against 100,000 and something unknown more: slower, whatever that costs */
	o.shadow_lo = o.shadow_hi = 500;
	o.policies = slot_last;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_EQUAL(c.policy[1].unpriced[COUNT_rmap_head], 1);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_elapsed].real, VERDICT_SLOWER);
	compare_free(&c);
	o.policies = slot_first;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_EQUAL(c.policy[1].unpriced[COUNT_rmap_head], -1);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_elapsed].real, VERDICT_FASTER);
	compare_free(&c);

	/* 500,000 against 100,000 and something more: faster, with its break-even price */
	o.shadow_lo = o.shadow_hi = 500000;
	o.n_phases = 1;
	o.policies = slot_last;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_elapsed].real, VERDICT_FASTER);
	/* 1,000 pages in the first phase: (500,000 - 100,000) / 1,000, twice over in both calls */
	CU_ASSERT_DOUBLE_EQUAL(c.policy[1].break_even[METRIC_get_dirty_log_mean], 400, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(c.policy[1].break_even[METRIC_elapsed], 400, 1e-9);
	compare_free(&c);

	/* with 150,000 it is up to 50: not told */
	o.shadow_lo = o.shadow_hi = 150000;
	o.policies = slot_last;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_elapsed].real, VERDICT_CANNOT_TELL);
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_elapsed], GAP_UNPRICED);
	CU_ASSERT_DOUBLE_EQUAL(c.policy[1].break_even[METRIC_elapsed], 50, 1e-9);
	compare_free(&c);
	profile_free(p);
}

/* Beside the formulas, mask has faults whose rmap_heads have no price: of its faults and of the
 * whole run nothing is told, of GET_DIRTY_LOG all is. */
static int formulas_and_faults(const struct run_opts *o, struct run_result *r)
{
	int err = formulas(o, r);

	if (!err && !strcmp(o->dirty, "mask"))
		r->by_activity[ACT_page_fault][COUNT_rmap_head].n = 1000000;
	return err;
}

static void more_runs_may_show_what_has_a_price(void)
{
	struct profile *p = profile("[price]\ninsn = 1\nwalk_sp = 100\ndirty_page = 98\n");
	struct compare_opts o = base_opts(p);
	struct compare c;

	/* 98,000 against 100,000 where runs differ by 5%: two pooled standard deviations of the
	 * mean are 2% at some 100 runs, so that 10 show nothing yet */
	o.run_fn = formulas_and_faults;
	o.shadow_lo = o.shadow_hi = 1000;
	o.n_phases = 1;
	o.verdict.spread = 0.05;
	o.verdict.min_effect = 0;
	o.verdict.runs = 10;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_elapsed], GAP_UNPRICED);
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_page_fault], GAP_UNPRICED);
	CU_ASSERT_EQUAL(c.policy[1].gap[METRIC_get_dirty_log_mean], GAP_NONE);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_get_dirty_log_mean].real, VERDICT_INCONCLUSIVE);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_get_dirty_log_mean].tends, VERDICT_FASTER);
	CU_ASSERT_EQUAL(c.policy[1].real, VERDICT_INCONCLUSIVE);
	CU_ASSERT_EQUAL(c.policy[1].tends, VERDICT_FASTER);
	CU_ASSERT_EQUAL(c.policy[1].model, VERDICT_FASTER);
	compare_free(&c);

	/* no difference worth having in GET_DIRTY_LOG: that is not said of the policy */
	o.verdict.min_effect = 0.5;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_get_dirty_log_mean].real, VERDICT_SAME);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_get_dirty_log_mean].tends, VERDICT_SAME);
	CU_ASSERT_EQUAL(c.policy[1].real, VERDICT_CANNOT_TELL);
	CU_ASSERT_EQUAL(c.policy[1].tends, VERDICT_CANNOT_TELL);
	CU_ASSERT_EQUAL(c.policy[1].model, VERDICT_CANNOT_TELL);
	compare_free(&c);
	profile_free(p);
}

static void wins_and_losses_are_mixed(void)
{
	/* mean 0.8, longest 1.5 of mask's */
	struct profile *p = profile("[price]\ninsn = 1\ndirty_page = 100\n");
	struct compare_opts o = base_opts(p);
	const char *const policies[] = {"mask", "uneven"};
	struct compare c;

	o.policies = policies;
	CU_ASSERT_EQUAL_FATAL(compare_run(&o, &c), 0);
	CU_ASSERT_DOUBLE_EQUAL(c.policy[1].pair[METRIC_get_dirty_log_mean].rel.value, -0.2, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(c.policy[1].pair[METRIC_get_dirty_log_max].rel.value, 0.5, 1e-9);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_get_dirty_log_mean].real, VERDICT_FASTER);
	CU_ASSERT_EQUAL(c.policy[1].pair[METRIC_get_dirty_log_max].real, VERDICT_SLOWER);
	CU_ASSERT_EQUAL(c.policy[1].real, VERDICT_MIXED);
	CU_ASSERT_EQUAL(c.policy[1].model, VERDICT_MIXED);
	compare_free(&c);
	profile_free(p);
}

static void errors_come_once(void)
{
	struct profile *p = profile(two_prices);
	struct compare_opts o = base_opts(p);
	struct compare c;
	char first[sizeof(order)];

	trouble.fail_at = 3;
	CU_ASSERT_EQUAL(compare_run(&o, &c), KVMSIM_EPARSE);
	CU_ASSERT_EQUAL(n_said, 1);
	CU_ASSERT_STRING_EQUAL(said, "bad at 3");
	memcpy(first, order, sizeof(order));
	o.workers = 3;
	n_said = 0;
	order[0] = '\0';
	CU_ASSERT_EQUAL(compare_run(&o, &c), KVMSIM_EPARSE);
	CU_ASSERT_EQUAL(n_said, 1);
	CU_ASSERT_STRING_EQUAL(said, "bad at 3");
	/* the runs before it were handed on, in order, and none after */
	CU_ASSERT_STRING_EQUAL(order, first);

	trouble.fail_at = 0;
	trouble.kill_at = 5;
	n_said = 0;
	CU_ASSERT_EQUAL(compare_run(&o, &c), KVMSIM_ECHILD);
	CU_ASSERT_EQUAL(n_said, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "ended early"));

	trouble.kill_at = 0;
	trouble.interrupt_at = 2;
	n_said = 0;
	CU_ASSERT_EQUAL(compare_run(&o, &c), KVMSIM_EINTR);
	CU_ASSERT_EQUAL(n_said, 0);
	CU_ASSERT_EQUAL(waitpid(-1, NULL, WNOHANG), -1);

	trouble.interrupt_at = 0;
	o.replicates = 1;
	CU_ASSERT_EQUAL(compare_run(&o, &c), KVMSIM_EINVAL);
	CU_ASSERT_PTR_NULL(c.policy);
	profile_free(p);
}

static void splitting_policies(void)
{
	char **list = NULL;
	size_t n = 0;

	CU_ASSERT_EQUAL_FATAL(compare_split_policies("walk,mask,hybrid,a=3,b=4,walk", &list, &n),
			      0);
	CU_ASSERT_EQUAL_FATAL(n, 4);
	CU_ASSERT_STRING_EQUAL(list[0], "walk");
	CU_ASSERT_STRING_EQUAL(list[1], "mask");
	CU_ASSERT_STRING_EQUAL(list[2], "hybrid,a=3,b=4");
	CU_ASSERT_STRING_EQUAL(list[3], "walk");
	compare_free_policies(list, n);
	CU_ASSERT_EQUAL(compare_split_policies("a=1,walk", &list, &n), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(compare_split_policies("walk,,mask", &list, &n), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(compare_split_policies("walk,", &list, &n), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(compare_split_policies("", &list, &n), KVMSIM_EINVAL);
}

static CU_TestInfo tests[] = {
	{"replicates_share_their_draws", replicates_share_their_draws},
	{"the_same_with_any_j", the_same_with_any_j},
	{"the_number_of_shadow_pages_decides", the_number_of_shadow_pages_decides},
	{"a_crossover_may_lack_a_price", a_crossover_may_lack_a_price},
	{"what_has_no_price_is_not_told", what_has_no_price_is_not_told},
	{"a_missing_price_does_not_hide_a_loss", a_missing_price_does_not_hide_a_loss},
	{"wins_and_losses_are_mixed", wins_and_losses_are_mixed},
	{"more_runs_may_show_what_has_a_price", more_runs_may_show_what_has_a_price},
	{"errors_come_once", errors_come_once},
	{"splitting_policies", splitting_policies},
	CU_TEST_INFO_NULL};
TEST_MAIN("compare", tests)
