// SPDX-License-Identifier: GPL-3.0-or-later
/* Explicit pages: what each round writes is in the scenario, in the order given there. */
#include "model/sim/rng.h"
#include "workloads/scenario.h"

enum { STORES };

static const struct workload_param params[] = {
	[STORES] = {"stores", 1, 1, 4096, "stores to each page of a round, one after the other"},
	{.name = NULL},
};

static int check(const struct scenario *s, const struct kvmsim_errsink *errors)
{
	int err = 0;

	for (uint64_t round = 0, r = 0; !err && round < s->n_rounds; round++) {
		uint64_t pages = 0;

		for (; r < s->run_end[round]; r++)
			pages += s->runs[r].last - s->runs[r].first + 1;
		err = scenario_check_round(s, pages * s->param[STORES], errors);
	}
	return err;
}

static void write_pages(const struct scenario *s, uint32_t vcpu, uint64_t round, struct rng *rng,
			struct rng *common, struct round_ops *out)
{
	size_t first = round ? s->run_end[round - 1] : 0;
	uint64_t turn = 0; /* pages are dealt to the vCPUs in turn */

	(void)rng;
	(void)common;
	for (size_t r = first; r < s->run_end[round]; r++) {
		for (uint64_t page = s->runs[r].first; page <= s->runs[r].last; page++) {
			if (turn++ % s->n_vcpus != vcpu)
				continue;
			for (uint64_t i = 0; i < s->param[STORES]; i++)
				round_access(out, OP_WRITE, page << 12, 8);
		}
	}
}

const struct workload workload_pagelist = {
	.name = "pagelist",
	.summary = "the pages that the scenario lists for each round",
	.params = params,
	.explicit_rounds = true,
	.check = check,
	.round = write_pages,
};
