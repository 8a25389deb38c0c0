// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Runs of the model that are refused, or end without a result: what is said, word by word.
 */
#include <stdio.h>
#include <string.h>

#include "analysis/run.h"
#include "tests/unit/harness.h"
#include "tests/unit/run_util.h"
#include "tests/unit/trace_util.h"
#include "traces/trace.h"

#define X11PERF "traces/recorded/x11perf.kvt"

/* ---- refusals ---- */

static void refuse(struct run_opts o, int err, const char *expected)
{
	struct run_result r;

	o.profile = run_profile;
	o.errors = &run_errors;
	run_message[0] = '\0';
	CU_ASSERT_EQUAL(run_model(&o, &r), err);
	CU_ASSERT_STRING_EQUAL(run_message, expected);
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
	CU_ASSERT_EQUAL_FATAL(trace_create(path, &meta, &run_errors, &w), 0);
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
	struct run_opts o = {.dirty = "mask", .profile = run_profile, .errors = &run_errors};
	struct run_result r;

	refuse_trace(trace_of(1, far, 3, 0), 0,
		     "vCPU 0: epoch 1099511627776 follows epoch 1, expected 2");
	refuse_trace(trace_of(1, back, 3, 0), 0, "vCPU 0: epoch 1 follows epoch 1, expected 2");
	refuse_trace(trace_of(1, late, 3, 0), 0, "vCPU 0: epoch 5 is the first, expected 0");
	refuse_trace(trace_of(2, two_far, 3, 0), 0,
		     "vCPU 1: epoch 1099511627776 follows epoch 1, expected 2");
	/* a vCPU that the recorder did not see in two phases */
	run_message[0] = '\0';
	o.trace = trace_of(2, two, 4, 0);
	CU_ASSERT_EQUAL(run_model(&o, &r), 0);
	CU_ASSERT_STRING_EQUAL(run_message, "");
	CU_ASSERT_EQUAL(r.n_collections, 6);
	run_result_free(&r);
}

static void cannot_tell(void)
{
	static const uint64_t three[][4] = {{0, 1, 2}};

	refuse_trace(trace_of(1, three, 3, TRACE_NO_STORES), 0,
		     "cannot tell: stores to memory were not recorded, and the dirty log reports "
		     "nothing else");
	refuse_trace(
		trace_of(1, three, 3, TRACE_ONLY_FAULTS), 0,
		"cannot tell: of the guest's accesses only those were seen that left the guest; "
		"a page that is writable is stored to unseen, so what is dirty at a collection, "
		"and what a collection costs, is not in it (kvmsim info says what is)");
	refuse_trace(trace_of(1, three, 0, 0), 0, "cannot tell: no op was recorded");
	refuse_trace(
		trace_of(1, three, 3, 0), 4000,
		"cannot tell: 3 epochs of 1000 instructions ended; the first collection is due "
		"after 4 epochs (interval 4, phase 0)");
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

static CU_TestInfo tests[] = {
	{"refuses", refuses},	      {"epochs_jump", epochs_jump},
	{"cannot_tell", cannot_tell}, {"broken_is_checked", broken_is_checked},
	{"interrupts", interrupts},   CU_TEST_INFO_NULL,
};

int main(void)
{
	if (!run_make_profile())
		return 1;
	int rc = test_main("run_refused", tests);

	profile_free(run_profile);
	remove_temp();
	return rc;
}
