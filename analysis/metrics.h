/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_METRICS_H
#define KVMSIM_ANALYSIS_METRICS_H

#include <stdbool.h>

#include "analysis/run.h"

/*
 * The figures that one run boils down to, as compare judges them and the store keeps them. Less is
 * better in every one that is a cost.
 *
 *	X(name, kind, "title", "what it is")	kind: TIME in the profile's unit, PAGES
 */
#define RUN_METRICS(X)                                                                             \
	X(get_dirty_log_mean, TIME, "GET_DIRTY_LOG mean",                                          \
	  "time of one call, its CLEARs too, mean over the calls")                                 \
	X(get_dirty_log_p99, TIME, "GET_DIRTY_LOG p99", "its 99% quantile (type 7)")               \
	X(get_dirty_log_max, TIME, "GET_DIRTY_LOG max", "the longest call")                        \
	X(get_dirty_log_total, TIME, "GET_DIRTY_LOG total", "time of all calls")                   \
	X(page_fault, TIME, "page faults", "time in page fault handling, all vCPUs")               \
	X(lock_wait, TIME, "mmu_lock wait", "time blocked on mmu_lock, all tasks")                 \
	X(lock_hold_max, TIME, "mmu_lock longest hold",                                            \
	  "the longest time mmu_lock was held for write")                                          \
	X(stall_max, TIME, "guest longest stall",                                                  \
	  "the longest time from an exit to the next entry, page faults too")                      \
	X(elapsed, TIME, "guest elapsed", "virtual time until the last vCPU's end")                \
	X(dirty_pages, PAGES, "dirty pages", "pages reported dirty by all calls")

enum metric_kind { METRIC_TIME, METRIC_PAGES };
enum run_metric {
#define X(name, kind, title, help) METRIC_##name,
	RUN_METRICS(X)
#undef X
		N_METRICS
};

struct metric_desc {
	const char *name, *title, *help;
	enum metric_kind kind;
};
extern const struct metric_desc metric_desc[N_METRICS];

/* The metric of that name (@len bytes), or -1. */
int metric_find(const char *name, size_t len);
/* "cycles", "instructions" or "pages". @time_unit: the profile's unit. */
const char *metric_unit(enum run_metric m, const char *time_unit);
/* A cost is judged; dirty pages are the guest's, and only shown. */
bool metric_is_cost(enum run_metric m);
/* All metrics of a run; those of the calls are 0 when there was none. KVMSIM_ENOMEM. */
int metrics_of(const struct run_result *r, double out[N_METRICS]);

#endif
