// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Pre-copy against what is known of it without running it. A guest that stores r times a second to
 * any of W pages reaches W * (1 - exp(-r * t / W)) of them in a time t; a link that needs c per
 * page sends n pages in n * c. So the rounds follow a recurrence, which is a geometric series of
 * ratio r * c while a round's pages are few among W, and ends only if r * c < 1. Expected values
 * are computed here in floating point. The profile's every count costs 1 ns, so that faults and
 * collections are lost beside a link that needs microseconds per page.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/precopy_util.h"

#define EQ   CU_ASSERT_EQUAL
#define HZ   1e9
#define VCPU PRECOPY_VCPUS

/* Whether @got is @want, but for @sigmas of a Poisson count and @more. */
static bool near(double got, double want, double sigmas, double more)
{
	bool ok = fabs(got - want) <= sigmas * sqrt(want) + more;

	if (!ok)
		printf("precopy: %g, %g expected\n", got, want);
	return ok;
}

static double seconds(cycles_t c)
{
	return (double)c / HZ;
}

/* What every result obeys: times and guests' times add up, what was sent is what there was. */
static void consistent(const struct precopy_result *r, uint64_t memory)
{
	cycles_t sum = r->setup;
	uint64_t sent = 0, due = memory;

	for (size_t i = 0; i < r->n_rounds; i++) {
		const struct precopy_round *x = &r->rounds[i];
		const struct precopy_guest *g = &x->guest;

		EQ(x->start, sum);
		EQ(x->bytes, (x->pages - x->zero_pages) * 4104 + x->zero_pages * 9);
		CU_ASSERT_TRUE(g->insns + g->throttled + g->stopped + g->waited <= g->elapsed);
		EQ(x->stopped, r->converged && i + 1 == r->n_rounds);
		EQ(x->collections, i + 1);
		sum += x->cycles;
		sent += x->pages;
		if (!x->stopped)
			due += x->dirtied;
	}
	EQ(sum, r->total);
	EQ(r->left == 0, r->converged);
	/* found while the VM stops */
	CU_ASSERT_TRUE(sent + r->left >= due && sent + r->left - due <= memory);
}

/* ---- known answers ---- */

/* Pages that a collection adds which clears all that it reports: all but those that still wait. */
static double expected(const struct precopy_round *x, double w, double rate)
{
	double rest = (double)(x->pending - x->pages);

	return (w - rest) * (1 - exp(-rate * seconds(x->cycles) / w));
}

static void test_no_stores(void)
{
	const struct precopy_writer g = {.pages = 20000};
	struct precopy_opts o = precopy_defaults();
	struct precopy_result r;

	o.zero_percent = 25;
	EQ(precopy_migrate(&g, o, &r), 0);
	consistent(&r, 20000);
	CU_ASSERT_TRUE(r.converged);
	EQ(r.n_rounds, 2); /* and the one in which the VM is stopped */
	EQ(r.rounds[0].pages + r.rounds[1].pages, 20000);
	EQ(r.rounds[0].zero_pages + r.rounds[1].zero_pages, 5000);
	EQ(r.rounds[0].dirtied, 0);
	/* bytes at the link's rate; words of pages are sent whole */
	CU_ASSERT_DOUBLE_EQUAL(seconds(r.total), (15000 * 4104 + 5000 * 9) / 4e8, 1e-3);
	CU_ASSERT_TRUE(seconds(r.downtime) <= 20e-3 * 4104 / 4096 + 1e-4);
	/* what decided, by QEMU's rule, is within the goal */
	CU_ASSERT_TRUE(r.expected > 0 && seconds(r.expected) < 20e-3);
	CU_ASSERT_DOUBLE_EQUAL((double)r.bandwidth, 4e8, 1e6);
	precopy_result_free(&r);
}

/* The link is faster than the thread. */
static void test_page_cost(void)
{
	const struct precopy_writer g = {.pages = 20000};
	struct precopy_opts o = precopy_defaults();
	struct precopy_result r;

	o.page_ns = 50000;
	EQ(precopy_migrate(&g, o, &r), 0);
	CU_ASSERT_DOUBLE_EQUAL(seconds(r.total), 20000 * 50e-6, 1e-3);
	CU_ASSERT_DOUBLE_EQUAL((double)r.bandwidth, 4104 / 50e-6, 1e6);
	precopy_result_free(&r);
}

/* Each round's new pages from its length; and the whole from nothing but the parameters. */
static void test_rounds(void)
{
	const struct precopy_writer g = {.pages = 60000, .stores = 40};
	const double w = 60000, rate = 40000, c = 4104 / 4e8;
	struct precopy_opts o = precopy_defaults();
	struct precopy_result r;
	const double fit = 4e8 * 20e-3 / 4096; /* pages */
	double pending = w;

	EQ(precopy_migrate(&g, o, &r), 0);
	consistent(&r, 60000);
	CU_ASSERT_TRUE(r.converged);
	for (size_t i = 0; i + 1 < r.n_rounds; i++) {
		const struct precopy_round *x = &r.rounds[i];
		double rest = (double)(x->pending - x->pages);

		CU_ASSERT_TRUE(near((double)x->dirtied, expected(x, w, rate), 5, 2));
		CU_ASSERT_TRUE(rest < fit && rest >= fit - 65);
		/* from the parameters alone: errors of a round are carried on, but shrink */
		CU_ASSERT_TRUE(near((double)x->pending, pending, 8, 64));
		pending = fit + (w - fit) * (1 - exp(-rate * (pending - fit) * c / w));
		/* few pages among many: the next round's are r * c of this one's */
		if (x->pages > 1000 && (double)x->pages < w / 20)
			CU_ASSERT_DOUBLE_EQUAL((double)x->dirtied / (double)x->pages, rate * c,
					       0.08);
	}
	CU_ASSERT_TRUE(seconds(r.downtime) <= 20e-3 * 4104 / 4096 + 1e-4);
	/* what decided, by QEMU's rule, is within the goal */
	CU_ASSERT_TRUE(r.expected > 0 && seconds(r.expected) < 20e-3);
	precopy_result_free(&r);
}

/* All of the working set is stored to in each round, however long: its pages are sent again and
 * again, and never more. */
static void test_saturation(void)
{
	const struct precopy_writer g = {
		.pages = 40000, .working_set = 6000, .stores = 2000, .sequential = true};
	struct precopy_opts o = precopy_defaults();
	struct precopy_result r;

	o.max_collections = 12;
	EQ(precopy_migrate(&g, o, &r), 0);
	consistent(&r, 40000);
	CU_ASSERT_FALSE(r.converged);
	EQ(r.n_rounds, 11);
	/* what the first round left is elsewhere */
	EQ(r.rounds[1].pending, 6000 + 40000 - r.rounds[0].pages);
	for (size_t i = 2; i < r.n_rounds; i++)
		EQ(r.rounds[i].pending, 6000);
	EQ(r.left, 6000);
	precopy_result_free(&r);
}

/* QEMU's rule on the recurrence: percent in the end, -1 when it does not converge. */
static int predicted_throttle(double w, double rate, double c, double fit, bool throttles)
{
	double pending = w, period = 0, sent = 0, found = 0;
	int high = 0, percent = 0;

	for (int i = 0; i < 98; i++) {
		double t = (pending - fit) * c;
		double new = (w - fit) * (1 - exp(-rate * (1 - percent / 100.0) * t / w));

		period += t;
		sent += (pending - fit) * 4104;
		found += new * 4096;
		if (period > 1) {
			if (throttles && found > sent / 2 && ++high >= 2) {
				high = 0;
				percent = percent ? percent + 10 : 20;
			}
			period = sent = found = 0;
		}
		pending = fit + new;
		if (new < 1)
			return percent;
	}
	return -1;
}

static void test_auto_converge(void)
{
	const double w = 60000, c = 4104 / 1e8, fit = 1e8 * 20e-3 / 4096;
	/* stores per ms: the link takes 24.4 */
	static const uint64_t rates[] = {30, 90};
	struct precopy_opts o = precopy_defaults();
	struct precopy_result r;

	o.bandwidth = 100000000;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		const struct precopy_writer g = {.pages = 60000, .stores = rates[i]};
		double rate = 1e3 * (double)rates[i];
		int percent;

		o.throttle = PRECOPY_NO_THROTTLE;
		o.max_collections = 12;
		EQ(predicted_throttle(w, rate, c, fit, false), -1);
		EQ(precopy_migrate(&g, o, &r), 0);
		CU_ASSERT_FALSE(r.converged);
		EQ(r.guest.throttled, 0);
		precopy_result_free(&r);

		o.throttle = PRECOPY_AUTO_CONVERGE;
		o.max_collections = 100;
		EQ(precopy_migrate(&g, o, &r), 0);
		consistent(&r, 60000);
		CU_ASSERT_TRUE(r.converged);
		percent = (int)r.rounds[r.n_rounds - 1].throttle;
		EQ(percent, predicted_throttle(w, rate, c, fit, true));
		CU_ASSERT_TRUE(percent > 100 * (1 - 1 / (rate * c)));
		for (size_t k = 0; k < r.n_rounds; k++) {
			const struct precopy_round *x = &r.rounds[k];
			const struct precopy_guest *t = &x->guest;
			double share = (double)t->insns / (double)t->elapsed;

			/* whole sleeps, at most one more or less */
			if (x->cycles > 1e9)
				CU_ASSERT_DOUBLE_EQUAL(share, 1 - x->throttle / 100.0, 0.02);
		}
		precopy_result_free(&r);
	}
}

/* The log is collected while the first round is on its way. */
static void test_interval(void)
{
	const struct precopy_writer g = {.pages = 60000, .stores = 10};
	struct precopy_opts o = precopy_defaults();
	struct precopy_result r;

	o.interval_us = 50000;
	EQ(precopy_migrate(&g, o, &r), 0);
	consistent(&r, 60000);
	CU_ASSERT_TRUE(r.converged);
	for (size_t i = 0; i < 5; i++)
		CU_ASSERT_DOUBLE_EQUAL(seconds(r.rounds[i].cycles), 50e-3, 1e-3);
	precopy_result_free(&r);
}

/* A vCPU settles within QEMU's tolerance of its limit, 25 MiB a second. */
static void test_dirty_limit(void)
{
	const struct precopy_writer g = {.pages = 100000, .stores = 60};
	struct precopy_opts o = precopy_defaults();
	struct precopy_result r;
	double worst = 0;

	o.bandwidth = 100000000;
	o.dirty = "ring,size=1024";
	o.max_collections = 12;
	EQ(precopy_migrate(&g, o, &r), 0);
	CU_ASSERT_FALSE(r.converged);
	precopy_result_free(&r);

	o.max_collections = 100;
	o.throttle = PRECOPY_DIRTY_LIMIT;
	o.dirty_limit = 10 << 20;
	EQ(precopy_migrate(&g, o, &r), 0);
	consistent(&r, 100000);
	CU_ASSERT_TRUE(r.converged);
	CU_ASSERT_TRUE(r.guest.throttled > 0);
	/* two looks after the first sleep the rate is held */
	for (size_t i = 1, held = 0; i < r.n_rounds; i++) {
		const struct precopy_round *x = &r.rounds[i];
		double per_vcpu = (double)x->dirtied * 4096 / seconds(x->cycles) / VCPU;

		held += x->sleep > 0;
		if (held > 1 && x->cycles > 2e9 && per_vcpu > worst)
			worst = per_vcpu;
	}
	CU_ASSERT_TRUE(worst > 0 && worst <= 35 * 1048576.0);
	/* sleeps are no stalls */
	CU_ASSERT_TRUE(seconds(r.longest_stall.cycles) < 5e-3);
	precopy_result_free(&r);
}

/* ---- every policy ---- */

/* In the first round, when all is dirty and a chunk is cleared when its turn comes: stores before
 * that are sent with their pages. */
static double expected_of_chunks(const struct precopy_round *x, double w, double rate,
				 uint64_t chunk)
{
	double sum = 0, t = seconds(x->cycles);

	for (uint64_t first = 0; first < x->pages; first += chunk) {
		uint64_t n = x->pages - first < chunk ? x->pages - first : chunk;
		double cleared = t * (double)first / (double)x->pages;

		sum += (double)n * (1 - exp(-rate * (t - cleared) / w));
	}
	return sum;
}

static void test_policies(void)
{
	static const struct {
		const char *dirty, *preset, *cpu;
		enum kvm_paging paging;
		unsigned host_level;
	} all[] = {
		{"walk", NULL, NULL, PAGING_SHADOW, 1},
		{"rmap-slot", NULL, NULL, PAGING_SHADOW, 1},
		{"mask", "2.6.36", NULL, PAGING_SHADOW, 1},
		{"hybrid", NULL, NULL, PAGING_TDP, 1},
		{"mask", NULL, NULL, PAGING_TDP, 2},
		{"manual,chunk=4096", NULL, NULL, PAGING_SHADOW, 1},
		{"manual,initially-all-set=1,chunk=4096", NULL, NULL, PAGING_TDP, 2},
		{"ring,size=1024", NULL, NULL, PAGING_SHADOW, 2},
		{"mask", "6.1-tdp", NULL, PAGING_TDP, 2},
		{"manual,initially-all-set=1", "6.1-tdp", NULL, PAGING_TDP, 2},
		{"ring,size=1024", "6.1-tdp", NULL, PAGING_TDP, 1},
		{"pml", "6.1-tdp", "intel", PAGING_TDP, 2},
		{"manual,pml=1", NULL, "intel", PAGING_TDP, 1},
		{"ring,size=4096,pml=1", "6.1-tdp", "intel", PAGING_TDP, 1},
	};
	const struct precopy_writer g = {.pages = 20480, .stores = 30};
	const double w = 20480, rate = 30000;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const struct precopy_slot like = {.host_level = all[i].host_level};
		struct precopy_opts o = precopy_defaults();
		struct precopy_result r;

		o.check = true;
		o.slots = &like;
		o.dirty = all[i].dirty;
		o.preset = all[i].preset;
		o.personality = all[i].cpu;
		o.paging = all[i].paging;
		if (strstr(o.dirty, "manual"))
			o.clear_chunk = strstr(o.dirty, "4096") ? 4096 : 1 << 18;
		EQ(precopy_migrate(&g, o, &r), 0);
		if (precopy_message[0])
			printf("precopy: %s: %s\n", o.dirty, precopy_message);
		if (!r.n_rounds)
			continue;
		consistent(&r, 20480);
		CU_ASSERT_TRUE(r.converged);
		/* whoever tracks them, the guest's stores are the same */
		for (size_t k = 0; k + 1 < r.n_rounds; k++) {
			const struct precopy_round *x = &r.rounds[k];
			double found = expected(x, w, rate);

			if (o.clear_chunk == 4096 && !k && strstr(o.dirty, "all-set"))
				found = expected_of_chunks(x, w, rate, 4096);
			if (o.clear_chunk == 4096 && k) {
				CU_ASSERT_TRUE((double)x->dirtied < found + 5 * sqrt(found));
			} else {
				CU_ASSERT_TRUE(near((double)x->dirtied, found, 5, 70));
			}
		}
		precopy_result_free(&r);
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {{"a guest that stores nothing", test_no_stores},
				      {"the thread's own work", test_page_cost},
				      {"rounds of random stores", test_rounds},
				      {"a working set that is all dirty", test_saturation},
				      {"auto-converge", test_auto_converge},
				      {"interval", test_interval},
				      {"dirty limit", test_dirty_limit},
				      {"every dirty policy", test_policies},
				      CU_TEST_INFO_NULL};
	int code;

	if (!precopy_open())
		return 1;
	code = test_main("precopy", tests);
	precopy_close();
	return code;
}
