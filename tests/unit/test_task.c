// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/sim/ledger.h"
#include "model/sim/profile.h"
#include "model/sim/sim.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

/* Two tasks hand a token to and fro: exact times. */
static struct task *pair[2];
static cycles_t seen[8];
static int n_seen;

static int ping(struct task *t, void *arg)
{
	int other = *(int *)arg;

	for (int i = 0; i < 2; i++) {
		if (other == 1) {
			charge(t, SIMPLE_ONE, 10);
			if (sync(t))
				return KVMSIM_ECANCELED;
			task_wake(pair[1], task_now(t));
		}
		if (task_block(t, SIMPLE_IDLE))
			return KVMSIM_ECANCELED;
		seen[n_seen++] = task_now(t);
		if (other == 0) {
			charge(t, SIMPLE_ONE, 3);
			if (sync(t))
				return KVMSIM_ECANCELED;
			task_wake(pair[0], task_now(t));
		}
	}
	return 0;
}

static void two_tasks_take_turns(void)
{
	struct sim *s = simple_sim(NULL);
	int one = 1, zero = 0;

	n_seen = 0;
	pair[0] = simple_task(s, "a", ping, &one, 0);
	pair[1] = simple_task(s, "b", ping, &zero, 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(n_seen, 4);
	CU_ASSERT_EQUAL(seen[0], 10); /* b */
	CU_ASSERT_EQUAL(seen[1], 13); /* a */
	CU_ASSERT_EQUAL(seen[2], 23);
	CU_ASSERT_EQUAL(seen[3], 26);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	CU_ASSERT_EQUAL(ledger_wait(sim_ledger(s), 1, 0, SIMPLE_IDLE).cycles, 20);
	simple_end(s);
}

static CU_TestInfo tests[] = {{"two_tasks_take_turns", two_tasks_take_turns}, CU_TEST_INFO_NULL};
TEST_MAIN("task", tests)
