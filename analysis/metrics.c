// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"

const struct metric_desc metric_desc[N_METRICS] = {
#define X(name, kind, title, help) [METRIC_##name] = {#name, title, help, METRIC_##kind},
	RUN_METRICS(X)
#undef X
};

int metric_find(const char *name, size_t len)
{
	for (int m = 0; m < N_METRICS; m++)
		if (strlen(metric_desc[m].name) == len && !memcmp(metric_desc[m].name, name, len))
			return m;
	return -1;
}

const char *metric_unit(enum run_metric m, const char *time_unit)
{
	return metric_desc[m].kind == METRIC_TIME ? time_unit : "pages";
}

bool metric_is_cost(enum run_metric m)
{
	return metric_desc[m].kind == METRIC_TIME;
}

int metrics_of(const struct run_result *r, double out[N_METRICS])
{
	static const double p[] = {0.99, 1};
	size_t n = r->n_collections;
	double q[2] = {0, 0}, total = 0, pages = 0;
	int err = 0;

	if (n) {
		double *x = malloc(n * sizeof(*x));

		if (!x)
			return KVMSIM_ENOMEM;
		for (size_t i = 0; i < n; i++) {
			x[i] = (double)r->collections[i].cycles;
			total += x[i];
			pages += (double)r->collections[i].nr_dirty;
		}
		err = stats_quantiles(x, n, p, 2, q);
		free(x);
	}
	out[METRIC_get_dirty_log_mean] = n ? total / (double)n : 0;
	out[METRIC_get_dirty_log_p99] = q[0];
	out[METRIC_get_dirty_log_max] = q[1];
	out[METRIC_get_dirty_log_total] = total;
	out[METRIC_page_fault] = (double)r->activity_cycles[ACT_page_fault];
	out[METRIC_lock_wait] = (double)(r->mmu_lock.wait + r->mmu_lock_read.wait);
	out[METRIC_lock_hold_max] = (double)r->mmu_lock.longest_hold;
	out[METRIC_stall_max] = (double)r->longest_stall.cycles;
	out[METRIC_elapsed] = (double)r->elapsed;
	out[METRIC_dirty_pages] = pages;
	return err;
}
