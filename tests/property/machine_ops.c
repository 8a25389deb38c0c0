// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Random machines (mops.h), until so many ops are done:
 *
 *	test_machine_ops			as part of the default run
 *	test_machine_ops ops N [FIRST]		N ops, from the machine with seed FIRST on
 *	test_machine_ops list N [FIRST]		the same; failures are only named
 *	test_machine_ops seed SEED		one machine; a failure is shrunk
 *	test_machine_ops text FILE		one that was printed
 *
 * What fails is shrunk and printed as a text that can be played again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/property/mops.h"
#include "tests/unit/harness.h"

#ifdef KVMSIM_DEBUG
#define DEFAULT_OPS 60000 /* sanitizers are slow */
#else
#define DEFAULT_OPS 1000000
#endif

static bool only_list;
static uint64_t most_ops = DEFAULT_OPS, first = 1;

static void add(struct mops_result *sum, const struct mops_result *r)
{
	sum->ops += r->ops;
	sum->reads += r->reads;
	sum->guest_faults += r->guest_faults;
	sum->mmio += r->mmio;
	sum->ambiguous += r->ambiguous;
	sum->reported += r->reported;
	sum->checks += r->checks;
	for (int s = 0; s < N_KVM_STATS; s++)
		sum->stat[s] += r->stat[s];
}

static void print_failure(struct mops *m, struct mops_result *r)
{
	size_t n = m->n;
	unsigned runs;

	printf("seed %" PRIu64 ": %s\n", m->seed, r->why);
	if (only_list)
		return;
	runs = mops_shrink(m, r);
	printf("# %zu of %zu ops, after %u runs: %s\n", m->n, n, runs, r->why);
	mops_print(m, stdout);
}

static void random_machines(void)
{
	struct mops_result sum = {0};
	uint64_t seed, failed = 0;

	for (seed = first; sum.ops < most_ops && (only_list || failed < 3); seed++) {
		struct mops_result r;
		struct mops m;

		CU_ASSERT_TRUE_FATAL(mops_make(seed, &m));
		mops_run(&m, &r);
		if (r.err) {
			failed++;
			print_failure(&m, &r);
		}
		add(&sum, &r);
		mops_free(&m);
	}
	CU_ASSERT_EQUAL(failed, 0);
	printf("machines %" PRIu64 " to %" PRIu64 ": %" PRIu64 " ops, %" PRIu64
	       " loads looked at, %" PRIu64 " faults of the guest's, %" PRIu64
	       " MMIO exits, %" PRIu64 " accesses with several outcomes, %" PRIu64
	       " pages reported, %" PRIu64 " checks\n",
	       first, seed - 1, sum.ops, sum.reads, sum.guest_faults, sum.mmio, sum.ambiguous,
	       sum.reported, sum.checks);
	for (int s = 0; s < N_KVM_STATS; s++)
		printf("%s%s %" PRIu64, s ? ", " : "", kvm_stat_name((enum kvm_stat_id)s),
		       sum.stat[s]);
	printf("\n");
}

static CU_TestInfo tests[] = {{"random_machines", random_machines}, CU_TEST_INFO_NULL};

static int one(struct mops *m)
{
	struct mops_result r;

	mops_run_apart(m, &r);
	if (r.err)
		print_failure(m, &r);
	else
		printf("seed %" PRIu64 ": %" PRIu64 " ops, nothing wrong\n", m->seed, r.ops);
	mops_free(m);
	return r.err != 0;
}

int main(int argc, char **argv)
{
	struct mops m;
	FILE *f;

	if (argc == 3 && !strcmp(argv[1], "seed"))
		return mops_make(strtoull(argv[2], NULL, 10), &m) ? one(&m) : 1;
	if (argc == 3 && !strcmp(argv[1], "text")) {
		f = fopen(argv[2], "r");
		if (!f || !mops_parse(f, &m)) {
			fprintf(stderr, "%s: cannot be read\n", argv[2]);
			return 1;
		}
		fclose(f);
		return one(&m);
	}
	only_list = argc > 2 && !strcmp(argv[1], "list");
	if (only_list || (argc > 2 && !strcmp(argv[1], "ops"))) {
		most_ops = strtoull(argv[2], NULL, 10);
		first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	}
	return test_main("machine_ops", tests);
}
