// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Runs of the model. What each collection reports is held against sets of pages computed from the
 * stream of ops alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/run.h"
#include "tests/unit/harness.h"
#include "tests/unit/run_util.h"
#include "tests/unit/trace_util.h"
#include "traces/trace.h"
#include "workloads/scenario.h"

#define X11PERF "traces/recorded/x11perf.kvt"
#define FIND	"traces/recorded/find.kvt"

/* ---- the independent computation ---- */

struct windows {
	uint64_t every, phase, ended; /* epochs */
	uint64_t base[2], npages[2];  /* of slots */
	unsigned char *dirty[2];
	uint64_t count[2];
	uint64_t reported[4096][2]; /* pages of each window and slot */
	size_t n;
};

static void window_ends(struct windows *w, uint64_t ended)
{
	w->ended = ended;
	if (ended < w->phase || (ended - w->phase) % w->every || !ended)
		return;
	if (ended != w->phase && w->n < 4096)
		memcpy(w->reported[w->n++], w->count, sizeof(w->count));
	for (int s = 0; s < 2; s++) {
		memset(w->dirty[s], 0, w->npages[s]);
		w->count[s] = 0;
	}
}

static void see(struct windows *w, const struct guest_op *op, bool *open)
{
	if (op->kind == OP_EPOCH) {
		if (*open)
			window_ends(w, op->arg);
		*open = true;
	} else if (op->kind == OP_MARK && op->arg == 0) {
		if (*open)
			window_ends(w, w->ended + 1);
		*open = false;
	} else if (op->kind == OP_WRITE || op->kind == OP_RMW) {
		for (int s = 0; s < 2; s++) {
			uint64_t page = (op->arg >> 12) - w->base[s];

			if (page < w->npages[s] && !w->dirty[s][page]) {
				w->dirty[s][page] = 1;
				w->count[s]++;
			}
		}
	}
}

static void count_windows(struct windows *w, struct op_source *src)
{
	const struct guest_op *ops;
	bool open = false;
	long n;

	for (int s = 0; s < 2; s++)
		w->dirty[s] = calloc(w->npages[s] + 1, 1);
	while ((n = src->next(src->ctx, &ops)) > 0) {
		for (long i = 0; i < n; i++)
			see(w, &ops[i], &open);
	}
	CU_ASSERT_EQUAL(n, 0);
	for (int s = 0; s < 2; s++)
		free(w->dirty[s]);
}

static void compare(const struct windows *w, const struct run_result *r)
{
	size_t logged = 0, at = 0, wrong = 0;

	for (uint32_t s = 0; s < r->n_slots; s++)
		logged += r->slots[s].logged;
	CU_ASSERT_EQUAL(r->n_collections, w->n * logged);
	for (size_t i = 0; i < w->n; i++) {
		for (uint32_t s = 0; s < r->n_slots; s++) {
			if (!r->slots[s].logged || at >= r->n_collections)
				continue;
			wrong += r->collections[at].nr_dirty != w->reported[i][s];
			wrong += r->collections[at].slot != s;
			at++;
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void trace_against_sets(const char *path, const char *dirty, uint64_t every, uint64_t phase,
			       const char *slot)
{
	struct run_opts o = {.trace = path,
			     .dirty = dirty,
			     .slot = slot,
			     .profile = run_profile,
			     .interval = every * 30000000,
			     .phase = phase,
			     .errors = &run_errors};
	struct windows *w = calloc(1, sizeof(*w));
	struct trace_reader *reader;
	struct run_result r;
	struct op_source src;

	run_message[0] = '\0';
	CU_ASSERT_EQUAL_FATAL(trace_open(path, &run_errors, &reader), 0);
	w->every = every;
	w->phase = phase;
	for (uint32_t s = 0; s < 2 && s < trace_meta(reader)->n_slots; s++) {
		w->base[s] = trace_meta(reader)->slots[s].base_gfn;
		w->npages[s] = trace_meta(reader)->slots[s].npages;
	}
	CU_ASSERT_EQUAL_FATAL(trace_source(reader, 0, &src), 0);
	count_windows(w, &src);
	CU_ASSERT_TRUE(w->n > 2);
	CU_ASSERT_EQUAL(run_model(&o, &r), 0);
	CU_ASSERT_STRING_EQUAL(run_message, "");
	compare(w, &r);
	run_check_sums(&r);
	run_result_free(&r);
	trace_close(reader);
	free(w);
}

static void x11perf_exact(void)
{
	trace_against_sets(X11PERF, "mask", 1, 0, NULL);
	trace_against_sets(X11PERF, "walk", 2, 1, "all");
	trace_against_sets(X11PERF, "hybrid", 4, 3, "vram");
}

static void find_exact(void)
{
	trace_against_sets(FIND, "mask", 1, 0, "ram");
	trace_against_sets(FIND, "rmap-slot", 2, 0, NULL);
}

/* ---- scenarios ---- */

static void run_scenario(const char *path, const char *dirty, bool check, bool reference,
			 struct run_result *r)
{
	struct run_opts o = {.scenario = path,
			     .dirty = dirty,
			     .profile = run_profile,
			     .seed = 1,
			     .check = check,
			     .reference = reference,
			     .errors = &run_errors};

	run_message[0] = '\0';
	CU_ASSERT_EQUAL(run_model(&o, r), 0);
	CU_ASSERT_STRING_EQUAL(run_message, "");
	run_check_sums(r);
}

/* The rounds of the example: 1 5 7-9, 0-63, seven pages, the last page. */
static void pagelist_counts(void)
{
	static const uint64_t expected[] = {5, 64, 7, 1};
	struct run_result r;

	run_scenario("workloads/pagelist-example.ini", "mask", true, false, &r);
	CU_ASSERT_EQUAL(r.n_collections, 4);
	for (size_t i = 0; i < r.n_collections && i < 4; i++) {
		CU_ASSERT_EQUAL(r.collections[i].nr_dirty, expected[i]);
		CU_ASSERT_EQUAL(r.collections[i].epoch, i + 1);
	}
	CU_ASSERT_EQUAL(r.guest_insns, 4 * 1000000);
	CU_ASSERT_EQUAL(r.counts[COUNT_insn], 4 * 1000000);
	CU_ASSERT_EQUAL(r.lost_stores, 0);
	CU_ASSERT_EQUAL(r.false_dirties, 0);
	run_result_free(&r);
}

/* ---- long mode ---- */

/* The same pages, whether the guest pages or not; what lies above 4 GiB needs that it does. */
static void long_mode_counts(void)
{
	char path[] = "/tmp/kvmsim-long-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	struct run_opts o = {.scenario = path,
			     .dirty = "mask",
			     .profile = run_profile,
			     .check = true,
			     .errors = &run_errors};
	static const char *const presets[] = {"6.1-shadow", "6.1-tdp"};
	struct run_result r;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("[scenario]\nworkload = pagelist\nslots = a:0:3000000\ninterval = 1000000\n[rounds]\n"
	      "round = 1 5 7-9\nround = 0-63 2999999\nround = 1048576-1048599\n",
	      f);
	fclose(f);
	CU_ASSERT_EQUAL(run_model(&o, &r), KVMSIM_EPARSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(run_message, "ends above 4 GiB"));
	o.long_mode = true;
	for (int i = 0; i < 2; i++) {
		o.preset = presets[i];
		run_message[0] = '\0';
		CU_ASSERT_EQUAL_FATAL(run_model(&o, &r), 0);
		CU_ASSERT_STRING_EQUAL(run_message, "");
		run_check_sums(&r);
		CU_ASSERT_EQUAL_FATAL(r.n_collections, 3);
		CU_ASSERT_EQUAL(r.collections[0].nr_dirty, 5);
		CU_ASSERT_EQUAL(r.collections[1].nr_dirty, 65);
		CU_ASSERT_EQUAL(r.collections[2].nr_dirty, 24);
		CU_ASSERT_EQUAL(r.false_dirties, 0);
		CU_ASSERT_EQUAL(r.lost_stores, 0);
		run_result_free(&r);
	}
	unlink(path);
	CU_ASSERT_EQUAL(run_mmu("6.1-shadow", true, false), MMU_SHADOW_LONG64);
	CU_ASSERT_EQUAL(run_mmu("6.1-tdp", true, false), MMU_TDP);
	CU_ASSERT_EQUAL(run_mmu("3.1", true, true), MMU_TDP_RMAP);
	CU_ASSERT_EQUAL(run_mmu("6.1-tdp", true, true), MMU_TDP);
}

/* ---- beside running vCPUs ---- */

/* Rounds of a page list, with pages of their own, on one vCPU: what is collected while it runs is,
 * all together, what was stored after logging had begun. A page may be reported twice when its
 * store was under way. */
static void running_collects_all(void)
{
	static const char *const policies[] = {"mask", "rmap-slot", "walk", "manual,chunk=64"};
	char path[] = "/tmp/kvmsim-running-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("[scenario]\nworkload = pagelist\nslots = a:0:4096\ninterval = 1000000\n"
	      "[rounds]\nround = 0-9\nround = 100-139\nround = 200-239\nround = 300-339\n"
	      "round = 400-439\nround = 500-999\n",
	      f);
	fclose(f);
	for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
		struct run_opts o = {.scenario = path,
				     .dirty = policies[p],
				     .profile = run_profile,
				     .running = true,
				     .check = true,
				     .errors = &run_errors};
		struct run_result r, slow;
		uint64_t pages = 0;

		run_message[0] = '\0';
		CU_ASSERT_EQUAL_FATAL(run_model(&o, &r), 0);
		CU_ASSERT_STRING_EQUAL(run_message, "");
		run_check_sums(&r);
		for (size_t i = 0; i < r.n_collections; i++)
			pages += r.collections[i].nr_dirty;
		CU_ASSERT_TRUE(pages >= 660 && pages <= 660 + r.n_collections);
		CU_ASSERT_EQUAL(r.lost_stores, 0);
		o.reference = true;
		CU_ASSERT_EQUAL_FATAL(run_model(&o, &slow), 0);
		CU_ASSERT_TRUE(run_same_results(&r, &slow));
		run_result_free(&r);
		run_result_free(&slow);
	}
	unlink(path);
}

/* Four vCPUs do not wait for the VMM, only for mmu_lock and flushes. */
static void running_does_not_stop(void)
{
	char path[] = "/tmp/kvmsim-running-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	struct run_opts o = {.scenario = path,
			     .dirty = "mask",
			     .profile = run_profile,
			     .check = true,
			     .errors = &run_errors};
	struct run_result stopped, running, off;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("[scenario]\nworkload = migration\nslots = a:0:8000\nvcpus = 4\nrounds = 8\n", f);
	fclose(f);
	CU_ASSERT_EQUAL_FATAL(run_model(&o, &stopped), 0);
	o.running = true;
	CU_ASSERT_EQUAL_FATAL(run_model(&o, &running), 0);
	o.disable_after = 2;
	CU_ASSERT_EQUAL_FATAL(run_model(&o, &off), 0);
	unlink(path);
	CU_ASSERT_EQUAL(stopped.n_collections, 8);
	CU_ASSERT_TRUE(running.n_collections > 2 && running.n_collections <= 7);
	CU_ASSERT_EQUAL(off.n_collections, 2);
	CU_ASSERT_EQUAL(running.guest_insns, stopped.guest_insns);
	CU_ASSERT_TRUE(running.elapsed < stopped.elapsed);
	/* without logging the last intervals have fewer faults */
	CU_ASSERT_TRUE(off.stats[STAT_pf_taken] < running.stats[STAT_pf_taken]);
	run_result_free(&stopped);
	run_result_free(&running);
	run_result_free(&off);
}

static void repeats_and_reference_agree(void)
{
	static const char *const paths[] = {"workloads/framebuffer.ini", "workloads/migration.ini"};

	for (size_t i = 0; i < 2; i++) {
		struct run_result a, b, c;

		run_scenario(paths[i], "mask", false, false, &a);
		run_scenario(paths[i], "mask", false, false, &b);
		run_scenario(paths[i], "mask", false, true, &c);
		CU_ASSERT_TRUE(a.n_collections > 0);
		CU_ASSERT_TRUE(run_same_results(&a, &b));
		CU_ASSERT_TRUE(run_same_results(&a, &c));
		run_result_free(&a);
		run_result_free(&b);
		run_result_free(&c);
	}
}

static CU_TestInfo tests[] = {{"x11perf_exact", x11perf_exact},
			      {"find_exact", find_exact},
			      {"pagelist_counts", pagelist_counts},
			      {"long_mode_counts", long_mode_counts},
			      {"running_collects_all", running_collects_all},
			      {"running_does_not_stop", running_does_not_stop},
			      {"repeats_and_reference_agree", repeats_and_reference_agree},
			      CU_TEST_INFO_NULL};

int main(void)
{
	if (!run_make_profile())
		return 1;
	int rc = test_main("run", tests);

	profile_free(run_profile);
	remove_temp();
	return rc;
}
