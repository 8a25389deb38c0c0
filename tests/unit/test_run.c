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
#include "model/params.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"
#include "tests/unit/trace_util.h"
#include "traces/trace.h"
#include "workloads/scenario.h"

#define X11PERF "traces/recorded/x11perf.kvt"
#define FIND	"traces/recorded/find.kvt"

static char message[1024];

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(message, sizeof(message), "%s", msg);
}

static const struct kvmsim_errsink sink = {keep, NULL};
static struct profile *profile;

/* Every count costs 1, insn too. */
static bool make_profile(void)
{
	char text[4096] = "[machine]\nname=test\nunit=cycles\nsource=made up\n"
			  "[param]\nipi_latency=500\n[price]\n";

	for (int c = 0; c < N_COUNTS; c++) {
		strcat(text, model_vocabulary.counts[c]);
		strcat(text, " = 1\n");
	}
	return !profile_parse(text, strlen(text), "test", &model_vocabulary, model_params, NULL,
			      &profile);
}

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

static void check_sums(const struct run_result *r)
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

static void trace_against_sets(const char *path, const char *dirty, uint64_t every, uint64_t phase,
			       const char *slot)
{
	struct run_opts o = {.trace = path,
			     .dirty = dirty,
			     .slot = slot,
			     .profile = profile,
			     .interval = every * 30000000,
			     .phase = phase,
			     .errors = &sink};
	struct windows *w = calloc(1, sizeof(*w));
	struct trace_reader *reader;
	struct run_result r;
	struct op_source src;

	message[0] = '\0';
	CU_ASSERT_EQUAL_FATAL(trace_open(path, &sink, &reader), 0);
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
	CU_ASSERT_STRING_EQUAL(message, "");
	compare(w, &r);
	check_sums(&r);
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
			     .profile = profile,
			     .seed = 1,
			     .check = check,
			     .reference = reference,
			     .errors = &sink};

	message[0] = '\0';
	CU_ASSERT_EQUAL(run_model(&o, r), 0);
	CU_ASSERT_STRING_EQUAL(message, "");
	check_sums(r);
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

static bool same_results(const struct run_result *a, const struct run_result *b)
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

/* ---- long mode ---- */

/* The same pages, whether the guest pages or not; what lies above 4 GiB needs that it does. */
static void long_mode_counts(void)
{
	char path[] = "/tmp/kvmsim-long-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	struct run_opts o = {.scenario = path,
			     .dirty = "mask",
			     .profile = profile,
			     .check = true,
			     .errors = &sink};
	static const char *const presets[] = {"6.1-shadow", "6.1-tdp"};
	struct run_result r;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("[scenario]\nworkload = pagelist\nslots = a:0:3000000\ninterval = 1000000\n[rounds]\n"
	      "round = 1 5 7-9\nround = 0-63 2999999\nround = 1048576-1048599\n",
	      f);
	fclose(f);
	CU_ASSERT_EQUAL(run_model(&o, &r), KVMSIM_EUNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "ends above 4 GiB"));
	o.long_mode = true;
	for (int i = 0; i < 2; i++) {
		o.preset = presets[i];
		message[0] = '\0';
		CU_ASSERT_EQUAL_FATAL(run_model(&o, &r), 0);
		CU_ASSERT_STRING_EQUAL(message, "");
		check_sums(&r);
		CU_ASSERT_EQUAL_FATAL(r.n_collections, 3);
		CU_ASSERT_EQUAL(r.collections[0].nr_dirty, 5);
		CU_ASSERT_EQUAL(r.collections[1].nr_dirty, 65);
		CU_ASSERT_EQUAL(r.collections[2].nr_dirty, 24);
		CU_ASSERT_EQUAL(r.false_dirties, 0);
		CU_ASSERT_EQUAL(r.lost_stores, 0);
		run_result_free(&r);
	}
	unlink(path);
	CU_ASSERT_EQUAL(run_mmu("6.1-shadow", true), MMU_SHADOW_LONG64);
	CU_ASSERT_EQUAL(run_mmu("6.1-tdp", true), MMU_TDP);
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
				     .profile = profile,
				     .running = true,
				     .check = true,
				     .errors = &sink};
		struct run_result r, slow;
		uint64_t pages = 0;

		message[0] = '\0';
		CU_ASSERT_EQUAL_FATAL(run_model(&o, &r), 0);
		CU_ASSERT_STRING_EQUAL(message, "");
		check_sums(&r);
		for (size_t i = 0; i < r.n_collections; i++)
			pages += r.collections[i].nr_dirty;
		CU_ASSERT_TRUE(pages >= 660 && pages <= 660 + r.n_collections);
		CU_ASSERT_EQUAL(r.lost_stores, 0);
		o.reference = true;
		CU_ASSERT_EQUAL_FATAL(run_model(&o, &slow), 0);
		CU_ASSERT_TRUE(same_results(&r, &slow));
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
			     .profile = profile,
			     .check = true,
			     .errors = &sink};
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
		CU_ASSERT_TRUE(same_results(&a, &b));
		CU_ASSERT_TRUE(same_results(&a, &c));
		run_result_free(&a);
		run_result_free(&b);
		run_result_free(&c);
	}
}

/* ---- refusals ---- */

static void refuse(struct run_opts o, int err, const char *expected)
{
	struct run_result r;

	o.profile = profile;
	o.errors = &sink;
	message[0] = '\0';
	CU_ASSERT_EQUAL(run_model(&o, &r), err);
	CU_ASSERT_STRING_EQUAL(message, expected);
	CU_ASSERT_PTR_NULL(r.collections);
}

static void refuses(void)
{
	refuse((struct run_opts){.dirty = "mask"}, KVMSIM_EINVAL,
	       "a run needs either a trace or a scenario");
	refuse((struct run_opts){.trace = X11PERF, .dirty = "mask", .interval = 40000000},
	       KVMSIM_EINVAL, "interval 40000000 is not a multiple of the trace's epoch 30000000");
	refuse(
		(struct run_opts){
			.trace = X11PERF, .dirty = "mask", .interval = 60000000, .phase = 2},
		KVMSIM_EINVAL, "phase 2 is not below the interval of 2 epochs");
	refuse((struct run_opts){.trace = X11PERF, .dirty = "mask", .slot = "rom"}, KVMSIM_ENOENT,
	       X11PERF ": no slot 'rom'; there are ram, vram");
}

/* ---- what a trace cannot answer ---- */

/* A trace of epochs with these numbers on each vCPU, each after a mark, and a store in each. */
static const char *trace_of(uint32_t n_vcpus, const uint64_t epochs[][4], size_t n, uint32_t unseen)
{
	const char *path = temp_path("epochs.kvt");
	struct trace_meta meta = meta_of(n_vcpus);
	struct trace_writer *w;

	meta.epoch_len = 1000;
	meta.unseen = TRACE_NO_GVA | unseen;
	CU_ASSERT_EQUAL_FATAL(trace_create(path, &meta, &sink, &w), 0);
	for (uint32_t v = 0; v < n_vcpus; v++) {
		for (size_t i = 0; i < n; i++) {
			const struct guest_op ops[] = {
				{.kind = OP_MARK, .arg = 1},
				{.kind = OP_EPOCH, .arg = epochs[v][i]},
				{.kind = OP_WRITE, .arg = epochs[v][i] % 100 << 12, .len = 8},
				{.kind = OP_MARK, .gap = 1000},
			};

			CU_ASSERT_EQUAL(trace_write(w, v, ops, 4), 0);
		}
	}
	CU_ASSERT_EQUAL(trace_finish(w, NULL), 0);
	return path;
}

static void refuse_trace(const char *path, uint64_t interval, const char *expected)
{
	char whole[4096 + 256];

	snprintf(whole, sizeof(whole), "%s: %s", path, expected);
	refuse((struct run_opts){.trace = path, .dirty = "mask", .interval = interval},
	       KVMSIM_EPARSE, whole);
}

static void epochs_jump(void)
{
	static const uint64_t far[][4] = {{0, 1, 1ull << 40}}, back[][4] = {{0, 1, 1}};
	static const uint64_t late[][4] = {{5, 6, 7}};
	static const uint64_t two[][4] = {{0, 1, 2, 3}, {0, 3, 4, 5}};
	static const uint64_t two_far[][4] = {{0, 1, 2}, {0, 1, 1ull << 40}};
	struct run_opts o = {.dirty = "mask", .profile = profile, .errors = &sink};
	struct run_result r;

	refuse_trace(trace_of(1, far, 3, 0), 0,
		     "vCPU 0: epoch 1099511627776 follows epoch 1, expected 2");
	refuse_trace(trace_of(1, back, 3, 0), 0, "vCPU 0: epoch 1 follows epoch 1, expected 2");
	refuse_trace(trace_of(1, late, 3, 0), 0, "vCPU 0: epoch 5 is the first, expected 0");
	refuse_trace(trace_of(2, two_far, 3, 0), 0,
		     "vCPU 1: epoch 1099511627776 follows epoch 1, expected 2");
	/* a vCPU that the recorder did not see in two phases */
	message[0] = '\0';
	o.trace = trace_of(2, two, 4, 0);
	CU_ASSERT_EQUAL(run_model(&o, &r), 0);
	CU_ASSERT_STRING_EQUAL(message, "");
	CU_ASSERT_EQUAL(r.n_collections, 6);
	run_result_free(&r);
}

static void cannot_tell(void)
{
	static const uint64_t three[][4] = {{0, 1, 2}};

	refuse_trace(trace_of(1, three, 3, TRACE_NO_STORES), 0,
		     "cannot tell: stores to memory were not recorded, and the dirty log reports "
		     "nothing else");
	refuse_trace(trace_of(1, three, 0, 0), 0, "cannot tell: no op was recorded");
	refuse_trace(
		trace_of(1, three, 3, 0), 4000,
		"cannot tell: 3 epochs of 1000 instructions ended; the first collection is due "
		"after 4 (interval 4, phase 0)");
}

/* The checkers are on without being asked for. */
static void broken_is_checked(void)
{
	refuse((struct run_opts){.scenario = "docs/tutorial.ini", .dirty = "lossy"}, KVMSIM_ECHECK,
	       "policy lossy (broken on purpose): 8 stores were never reported by the dirty log");
}

static void interrupts(void)
{
	run_interrupted = 1;
	refuse((struct run_opts){.trace = X11PERF, .dirty = "mask"}, KVMSIM_EINTR, "");
	run_interrupted = 0;
}

static CU_TestInfo tests[] = {{"x11perf_exact", x11perf_exact},
			      {"find_exact", find_exact},
			      {"pagelist_counts", pagelist_counts},
			      {"long_mode_counts", long_mode_counts},
			      {"running_collects_all", running_collects_all},
			      {"running_does_not_stop", running_does_not_stop},
			      {"repeats_and_reference_agree", repeats_and_reference_agree},
			      {"refuses", refuses},
			      {"epochs_jump", epochs_jump},
			      {"cannot_tell", cannot_tell},
			      {"broken_is_checked", broken_is_checked},
			      {"interrupts", interrupts},
			      CU_TEST_INFO_NULL};

int main(void)
{
	if (!make_profile())
		return 1;
	int rc = test_main("run", tests);

	profile_free(profile);
	remove_temp();
	return rc;
}
