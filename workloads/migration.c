// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A guest that works while it is migrated: each round writes a few pages that are always hot and a
 * number of pages scattered over the whole of its memory. The number is drawn by octaves, so that
 * small and large rounds are as frequent: the table of November 2010 for a guest of 1 GiB that
 * runs `find /` climbs from 52 to 4,143 dirty pages by doubling (T. Yoshikawa, Re: [PATCH-v2 0/4]
 * KVM: dirty logging optimization, 25 Nov 2010).
 */
#include <inttypes.h>

#include "model/sim/rng.h"
#include "workloads/scenario.h"

enum { PAGES_MIN, PAGES_MAX, HOT, LOADS };

static const struct workload_param params[] = {
	[PAGES_MIN] = {"pages_min", 52, 1, 1 << 24, "fewest scattered pages written in a round"},
	[PAGES_MAX] = {"pages_max", 4143, 1, 1 << 24, "most scattered pages written in a round"},
	[HOT] = {"hot", 16, 0, 1 << 20, "pages written in every round"},
	[LOADS] = {"loads", 0, 0, 64, "other pages read for each page written"},
	{.name = NULL},
};

static int check(const struct scenario *s, const struct kvmsim_errsink *errors)
{
	const struct scenario_slot *slot = &s->slots[s->target];

	if (s->param[PAGES_MIN] > s->param[PAGES_MAX])
		return kvmsim_err(errors, KVMSIM_EPARSE, "%s: pages_min is above pages_max",
				  s->name);
	if (s->param[PAGES_MAX] + s->param[HOT] > slot->npages)
		return kvmsim_err(
			errors, KVMSIM_EPARSE,
			"%s: pages_max + hot is %" PRIu64 ", slot %s has %" PRIu64 " pages",
			s->name, s->param[PAGES_MAX] + s->param[HOT], slot->name, slot->npages);
	return scenario_check_round(s, s->param[HOT] + s->param[PAGES_MAX] * (1 + s->param[LOADS]),
				    errors);
}

/* How many scattered pages this round writes: an octave, then uniform within it. */
static uint64_t pages_of_round(const struct scenario *s, struct rng *rng)
{
	uint64_t min = s->param[PAGES_MIN], max = s->param[PAGES_MAX];
	uint64_t octaves = 1;

	while (min << octaves <= max)
		octaves++;
	uint64_t low = min << rng_below(rng, octaves);
	uint64_t high = 2 * low - 1 < max ? 2 * low - 1 : max;

	return low + rng_below(rng, high - low + 1);
}

static uint64_t word(struct rng *rng, uint64_t npages)
{
	return rng_below(rng, npages * 512) * 8;
}

static void scatter(const struct scenario *s, uint32_t vcpu, uint64_t round, struct rng *rng,
		    struct rng *common, struct round_ops *out)
{
	uint64_t npages = s->slots[s->target].npages;

	(void)round;
	for (uint64_t i = 0; i < s->param[HOT]; i++) {
		uint64_t at = word(common, npages);

		if (i % s->n_vcpus == vcpu)
			round_access(out, OP_WRITE, at, 8);
	}
	uint64_t n = pages_of_round(s, rng);

	n = n / s->n_vcpus + (vcpu < n % s->n_vcpus);
	for (uint64_t i = 0; i < n; i++) {
		for (uint64_t l = 0; l < s->param[LOADS]; l++)
			round_access(out, OP_READ, word(rng, npages), 8);
		round_access(out, OP_WRITE, word(rng, npages), 8);
	}
}

const struct workload workload_migration = {
	.name = "migration",
	.summary = "pages scattered over the guest's memory, and a few hot ones",
	.params = params,
	.check = check,
	.round = scatter,
};
