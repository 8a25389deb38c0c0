// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Every dirty policy with every preset, back end, kind of guest, size of host pages, eager and lazy
 * split: random programs whose log is collected while they run. What cannot work is refused, what
 * is not refused loses no store, by the model's checker and by the program's own list of stores,
 * and reports no page that nobody touched. `test_cross FIRST COUNT` gives each pair COUNT programs
 * from number FIRST on; without arguments one, as part of the default run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/policy/policy.h"
#include "model/policy/preset.h"
#include "tests/property/program.h"
#include "tests/unit/harness.h"

#ifdef KVMSIM_DEBUG
#define STRIDE 5 /* sanitizers are slow: one pair in so many */
#else
#define STRIDE 1
#endif

static uint64_t first = 1, count = 1;

/* What a policy is run with beside its defaults. Others in the table have these alone. */
static const struct {
	const char *name, *params;
} variants[] = {
	{"manual", ",chunk=64"},
	{"manual", ",chunk=192,initially-all-set=1"},
	{"manual", ",chunk=64,pml=1"},
	{"manual", ",initially-all-set=1,pml=1"},
	{"ring", ",size=256,reaper=0"},
	{"ring", ",size=256,reaper=20"},
	{"ring", ",size=1024,reaper=3,pml=1"},
};

static const struct {
	enum kvm_paging paging;
	enum guest_paging_mode mode;
	bool guest_large;
} guests[] = {
	/* who pages does so in long mode, with PAE and with 4-byte entries in turn */
	{PAGING_SHADOW, GUEST_FLAT32, false}, {PAGING_SHADOW, GUEST_LONG64, false},
	{PAGING_SHADOW, GUEST_LONG64, true},  {PAGING_TDP, GUEST_FLAT32, false},
	{PAGING_TDP, GUEST_LONG64, false},    {PAGING_TDP, GUEST_LONG64, true},
};
static const enum guest_paging_mode paging_modes[] = {GUEST_LONG64, GUEST_PAE, GUEST_32BIT};
static const char *const mode_names[] = {[GUEST_FLAT32] = "flat32",
					 [GUEST_LONG64] = "long64",
					 [GUEST_PAE] = "pae",
					 [GUEST_32BIT] = "32bit"};
#define N_GUESTS (sizeof(guests) / sizeof(guests[0]))

/* The CPU changes from pair to pair; a log of its own it has where the policy needs one. */
static const char *const cpus[] = {"tcg", "amd", "intel", "intel-haswell", "intel-nehalem"};
#define N_CPUS (sizeof(cpus) / sizeof(cpus[0]))

struct totals {
	uint64_t pairs, refused, programs, ops, dirty, false_dirties, full;
	uint64_t wrong;
	uint64_t of_policy_false; /* of the policy that is being run */
};

static const char *describe(const struct program_machine *m, const char *dirty)
{
	static char text[160];

	snprintf(text, sizeof(text), "%s on %s, %s, %s%s, CPU %s, host pages %u, %s split", dirty,
		 m->preset, m->paging == PAGING_TDP ? "npt1" : "npt0", mode_names[m->mode],
		 m->guest_large ? " large" : "", m->cpu, m->host_level,
		 m->eager_page_split == EAGER_PAGE_SPLIT_ON ? "eager" : "lazy");
	return text;
}

/* The pairs that cannot work. */
static bool must_be_refused(const struct program_machine *m, const struct dirty_policy *d,
			    const char *dirty)
{
	const struct kvm_preset *p = preset_find(m->preset);
	bool tdp = p->tdp_mmu && m->paging == PAGING_TDP;
	bool pml = !strcmp(d->desc.name, "pml") || strstr(dirty, "pml=1");

	if (d->walks && tdp) /* no list of shadow pages */
		return true;
	if (pml && strcmp(m->cpu, "intel") != 0) /* the only one with a log */
		return true;
	return m->host_level > 1 && !p->huge_pages;
}

static uint64_t ops_of(const struct program *p)
{
	uint64_t n = 0;

	for (uint32_t v = 0; v < p->n_vcpus; v++)
		n += p->n_ops[v];
	return n;
}

static void one(uint64_t number, const struct program_machine *m, const struct dirty_policy *d,
		const char *dirty, struct totals *t)
{
	bool refuse = must_be_refused(m, d, dirty), all_set = strstr(dirty, "all-set=1");
	struct outcome out = {0};
	struct program p;
	int err;

	if (!program_make_on(number, m, dirty, &p)) {
		t->wrong++;
		return;
	}
	p.quiet = refuse;
	err = program_run(&p, false, &out);
	if (err != (refuse ? KVMSIM_EUNSUPPORTED : 0) || out.missed || (out.stray && !all_set)) {
		t->wrong++;
		printf("program %" PRIu64 ": %s: error %d, %" PRIu64 " pages missed, %" PRIu64
		       " without an access\n",
		       number, describe(m, dirty), err, out.missed, out.stray);
	}
	t->refused += refuse;
	t->programs += !refuse;
	t->ops += refuse ? 0 : ops_of(&p);
	t->dirty += out.dirty;
	t->full += out.full;
	t->false_dirties += out.false_dirties;
	t->of_policy_false += out.false_dirties;
	outcome_free(&out);
	program_free(&p);
}

static enum guest_paging_mode mode_of_turn(size_t guest, uint64_t turn)
{
	return guests[guest].mode == GUEST_FLAT32 ? GUEST_FLAT32 : paging_modes[turn % 3];
}

/* The policy with every machine. */
static void everywhere(const struct dirty_policy *d, const char *dirty, struct totals *t)
{
	const struct kvm_preset *preset;

	t->of_policy_false = 0;
	for (size_t i = 0; (preset = preset_at(i)); i++)
		for (size_t g = 0; g < N_GUESTS; g++)
			for (unsigned how = 0; how < 4; how++) {
				struct program_machine m = {.paging = guests[g].paging,
							    .guest_large = guests[g].guest_large,
							    .preset = preset->name,
							    .cpu = cpus[t->pairs % N_CPUS],
							    .host_level = 1 + how / 2,
							    .eager_page_split =
								    how % 2 ? EAGER_PAGE_SPLIT_ON
									    : EAGER_PAGE_SPLIT_OFF};

				m.mode = mode_of_turn(g, t->pairs / N_CPUS);
				if (strstr(dirty, "pml") && t->pairs % 7)
					m.cpu = "intel";
				if (t->pairs++ % STRIDE)
					continue;
				for (uint64_t n = 0; n < count; n++)
					one(first + n + t->pairs, &m, d, dirty, t);
			}
	printf("  %-40s %8" PRIu64 " false dirties\n", dirty, t->of_policy_false);
}

static void every_pair(void)
{
	struct totals t = {0};
	char dirty[80];

	for (size_t i = 0; i < policy_count(); i++) {
		const struct policy_desc *desc = policy_at(i);
		const struct dirty_policy *d;

		if (desc->family != FAMILY_DIRTY || desc->broken)
			continue;
		d = dirty_policy_find(desc->name, strlen(desc->name));
		everywhere(d, desc->name, &t);
		for (size_t v = 0; v < sizeof(variants) / sizeof(variants[0]); v++) {
			if (strcmp(variants[v].name, desc->name) != 0)
				continue;
			snprintf(dirty, sizeof(dirty), "%s%s", desc->name, variants[v].params);
			everywhere(d, dirty, &t);
		}
	}
	CU_ASSERT_EQUAL(t.wrong, 0);
	/* there are pairs of both kinds, and the programs do something */
	CU_ASSERT_TRUE(t.refused > 0 && t.programs > 0);
	CU_ASSERT_TRUE(t.dirty > 0 && t.full > 0 && t.false_dirties > 0);
	printf("%" PRIu64 " pairs: %" PRIu64 " programs, %" PRIu64 " refused; %" PRIu64
	       " ops, %" PRIu64 " pages reported, %" PRIu64 " false dirties, %" PRIu64
	       " full rings\n",
	       t.pairs, t.programs, t.refused, t.ops, t.dirty, t.false_dirties, t.full);
}

/* The policy that is broken on purpose is caught by the checker within 10,000 ops, wherever. */
static void lossy_is_caught(void)
{
	const struct kvm_preset *preset;
	uint64_t most = 0, machines = 0;

	for (size_t i = 0; (preset = preset_at(i)); i++)
		for (size_t g = 0; g < N_GUESTS; g++) {
			const struct program_machine m = {.paging = guests[g].paging,
							  .mode = mode_of_turn(g, i),
							  .guest_large = guests[g].guest_large,
							  .preset = preset->name,
							  .cpu = cpus[machines++ % N_CPUS],
							  .host_level = 1};
			uint64_t ops = 0;
			int err = 0;

			for (uint64_t n = first; !err && ops <= 10000; n++) {
				struct outcome out = {0};
				struct program p;

				CU_ASSERT_TRUE_FATAL(program_make_on(n, &m, "lossy", &p));
				p.quiet = true;
				err = program_run(&p, false, &out);
				ops += ops_of(&p);
				outcome_free(&out);
				program_free(&p);
			}
			CU_ASSERT_EQUAL(err, KVMSIM_ECHECK);
			CU_ASSERT_TRUE(ops <= 10000);
			if (err != KVMSIM_ECHECK || ops > 10000)
				printf("lossy: %s: error %d after %" PRIu64 " ops\n",
				       describe(&m, "lossy"), err, ops);
			most = ops > most ? ops : most;
		}
	printf("lossy: caught on %" PRIu64 " machines, after %" PRIu64 " ops at most\n", machines,
	       most);
}

static CU_TestInfo tests[] = {
	{"every_pair", every_pair}, {"lossy_is_caught", lossy_is_caught}, CU_TEST_INFO_NULL};

int main(int argc, char **argv)
{
	if (argc == 3) {
		first = strtoull(argv[1], NULL, 10);
		count = strtoull(argv[2], NULL, 10);
	}
	return test_main("cross", tests);
}
