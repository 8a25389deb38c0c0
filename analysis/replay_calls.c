// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/replay_report.h"

#include <stdlib.h>

#include "analysis/stats.h"

int summarize_calls(const struct run_result *r, uint32_t slot, struct call_summary *out)
{
	static const double ps[] = {0, 0.5, 0.99, 1};
	double *dirty = calloc(r->n_collections + 1, sizeof(*dirty));
	double *cycles = calloc(r->n_collections + 1, sizeof(*cycles));
	double q[4] = {0};
	size_t n = 0;
	int err = dirty && cycles ? 0 : KVMSIM_ENOMEM;

	*out = (struct call_summary){0};
	for (size_t i = 0; !err && i < r->n_collections; i++) {
		const struct run_collection *c = &r->collections[i];

		if (slot != UINT32_MAX && c->slot != slot)
			continue;
		dirty[n] = (double)c->nr_dirty;
		cycles[n++] = (double)c->cycles;
		out->dirty_total += (double)c->nr_dirty;
		out->total += (double)c->cycles;
	}
	out->calls = n;
	if (!err && n) {
		err = stats_quantiles(dirty, n, ps, 4, q);
		out->dirty_min = q[0];
		out->dirty_median = q[1];
		out->dirty_max = q[3];
		err = err ? err : stats_quantiles(cycles, n, ps, 4, q);
		out->p50 = q[1];
		out->p99 = q[2];
		out->max = q[3];
		out->mean = out->total / (double)n;
	}
	free(dirty);
	free(cycles);
	return err;
}
