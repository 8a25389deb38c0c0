// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A guest that stores at a constant rate, spread evenly over its working set, some of it over a hot
 * set at the working set's start: the guest of textbooks on pre-copy. A round's stores are drawn
 * with replacement, so that n of them reach W * (1 - (1 - 1/W)^n) of W pages.
 */
#include <inttypes.h>

#include "model/sim/rng.h"
#include "workloads/scenario.h"

enum { STORES, WORKING_SET, HOT_SET, HOT_PERCENT, SEQUENTIAL };

static const struct workload_param params[] = {
	[STORES] = {"stores", 1000, 0, 1 << 24, "stores in a round, of all vCPUs"},
	[WORKING_SET] = {"working_set", 0, 0, (1ull << 31) - 1,
			 "pages of the slot that are stored to; 0: all"},
	[HOT_SET] = {"hot_set", 0, 0, (1ull << 31) - 1, "of those, pages at the start"},
	[HOT_PERCENT] = {"hot_percent", 0, 0, 100, "of the stores that go to the hot set"},
	[SEQUENTIAL] = {"sequential", 0, 0, 1,
			"1: page after page, each vCPU over its part of the working set"},
	{.name = NULL},
};

static uint64_t working_set(const struct scenario *s)
{
	return s->param[WORKING_SET] ? s->param[WORKING_SET] : s->slots[s->target].npages;
}

static int check(const struct scenario *s, const struct kvmsim_errsink *errors)
{
	const struct scenario_slot *slot = &s->slots[s->target];

	if (working_set(s) > slot->npages || s->param[HOT_SET] > working_set(s))
		return kvmsim_err(errors, KVMSIM_EPARSE,
				  "%s: working_set is up to the %" PRIu64
				  " pages of slot %s, hot_set up to the working set",
				  s->name, slot->npages, slot->name);
	if (s->param[HOT_PERCENT] && !s->param[HOT_SET])
		return kvmsim_err(errors, KVMSIM_EPARSE, "%s: hot_percent needs a hot_set",
				  s->name);
	if (s->param[SEQUENTIAL] && (s->param[HOT_PERCENT] || working_set(s) < s->n_vcpus))
		return kvmsim_err(errors, KVMSIM_EPARSE,
				  "%s: sequential has no hot set, and a page for each vCPU",
				  s->name);
	return scenario_check_round(s, s->param[STORES], errors);
}

static uint64_t page(const struct scenario *s, struct rng *rng)
{
	bool hot = s->param[HOT_PERCENT] && rng_below(rng, 100) < s->param[HOT_PERCENT];

	return rng_below(rng, hot ? s->param[HOT_SET] : working_set(s));
}

static void store(const struct scenario *s, uint32_t vcpu, uint64_t round, struct rng *rng,
		  struct rng *common, struct round_ops *out)
{
	uint64_t n = s->param[STORES] / s->n_vcpus + (vcpu < s->param[STORES] % s->n_vcpus);
	uint64_t part = working_set(s) / s->n_vcpus, at = round * n;

	(void)common;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t p = s->param[SEQUENTIAL] ? vcpu * part + (at + i) % part : page(s, rng);

		round_access(out, OP_WRITE, p << 12, 8);
	}
}

const struct workload workload_writer = {
	.name = "writer",
	.summary = "stores at a constant rate over a working set with a hot set",
	.params = params,
	.check = check,
	.round = store,
};
