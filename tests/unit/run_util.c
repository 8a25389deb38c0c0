// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/run_util.h"

#include <stdio.h>
#include <string.h>

#include "model/params.h"
#include "tests/unit/harness.h"

char run_message[1024];

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(run_message, sizeof(run_message), "%s", msg);
}

const struct kvmsim_errsink run_errors = {keep, NULL};
struct profile *run_profile;

bool run_make_profile(void)
{
	char text[4096] = "[machine]\nname=test\nunit=cycles\nsource=made up\n"
			  "[param]\nipi_latency=500\n[price]\n";

	for (int c = 0; c < N_COUNTS; c++) {
		strcat(text, model_vocabulary.counts[c]);
		strcat(text, " = 1\n");
	}
	return !profile_parse(text, strlen(text), "test", &model_vocabulary, model_params, NULL,
			      &run_profile);
}

void run_check_sums(const struct run_result *r)
{
	cycles_t counts = 0, waits = 0, activities = 0;

	for (int i = 0; i < N_COUNTS; i++)
		counts += r->count_cycles[i];
	for (int i = 0; i < N_ACTIVITIES; i++)
		activities += r->activity_cycles[i];
	for (int i = 0; i < N_WAITS; i++)
		waits += r->wait_cycles[i];
	CU_ASSERT_EQUAL(counts, activities);
	for (int a = 0; a < N_ACTIVITIES; a++) {
		cycles_t cycles = 0;

		for (int i = 0; i < N_COUNTS; i++)
			cycles += r->by_activity[a][i].cycles;
		CU_ASSERT_EQUAL(cycles, r->activity_cycles[a]);
	}
	/* What is done in one activity only, or two. */
	CU_ASSERT_EQUAL(r->by_activity[ACT_get_dirty_log][COUNT_bitmap_word].n +
				r->by_activity[ACT_clear_dirty_log][COUNT_bitmap_word].n,
			r->counts[COUNT_bitmap_word]);
	CU_ASSERT_EQUAL(r->by_activity[ACT_page_fault][COUNT_page_fault].n,
			r->counts[COUNT_page_fault]);
	CU_ASSERT_EQUAL(r->by_activity[ACT_guest][COUNT_insn].n, r->guest_insns);
	CU_ASSERT_EQUAL(counts + waits, r->ledger_cycles);
	for (size_t i = 0; i < r->n_tasks; i++)
		CU_ASSERT_EQUAL(r->tasks[i].elapsed, r->tasks[i].ledger);
}

bool run_same_results(const struct run_result *a, const struct run_result *b)
{
	if (a->n_collections != b->n_collections)
		return false;
	/* by member: what lies between them is nobody's */
	for (size_t i = 0; i < a->n_collections; i++) {
		const struct run_collection *x = &a->collections[i], *y = &b->collections[i];

		if (x->epoch != y->epoch || x->slot != y->slot || x->nr_dirty != y->nr_dirty ||
		    x->start != y->start || x->cycles != y->cycles)
			return false;
	}
	return a->elapsed == b->elapsed && !memcmp(a->counts, b->counts, sizeof(a->counts)) &&
	       !memcmp(a->count_cycles, b->count_cycles, sizeof(a->count_cycles)) &&
	       !memcmp(a->wait_cycles, b->wait_cycles, sizeof(a->wait_cycles)) &&
	       !memcmp(a->stats, b->stats, sizeof(a->stats));
}
