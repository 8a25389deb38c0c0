// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/host/pcpu.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

static int idle(struct task *t, void *arg)
{
	(void)arg;
	return task_block_until(t, SIMPLE_IDLE, 1) < 0 ? KVMSIM_ECANCELED : 0;
}

static void a_cpu_runs_one_task(void)
{
	struct sim *s = simple_sim(NULL);
	struct task *a = simple_task(s, "a", idle, NULL, 0),
		    *b = simple_task(s, "b", idle, NULL, 0),
		    *c = simple_task(s, "c", idle, NULL, 0);
	struct pcpus *cpus;

	CU_ASSERT_EQUAL(pcpus_create(0, &cpus), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL_FATAL(pcpus_create(2, &cpus), 0);
	CU_ASSERT_EQUAL(pcpus_count(cpus), 2);
	CU_ASSERT_EQUAL(pcpu_attach(cpus, a), 0);
	CU_ASSERT_EQUAL(pcpu_attach(cpus, b), 1);
	CU_ASSERT_EQUAL(pcpu_attach(cpus, b), KVMSIM_EINVAL);
	CU_ASSERT_EQUAL(pcpu_attach(cpus, c), KVMSIM_EINVAL);
	CU_ASSERT_STRING_EQUAL(simple_message, "no CPU of 2 is free for task c");
	pcpu_detach(cpus, a);
	CU_ASSERT_EQUAL(pcpu_of(cpus, a), PCPU_NONE);
	CU_ASSERT_EQUAL(pcpu_attach(cpus, c), 0);
	CU_ASSERT_PTR_EQUAL(pcpu_task(cpus, 0), c);
	CU_ASSERT_PTR_NULL(pcpu_task(cpus, 2));
	pcpus_destroy(cpus);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	simple_end(s);
}

static CU_TestInfo tests[] = {{"a_cpu_runs_one_task", a_cpu_runs_one_task}, CU_TEST_INFO_NULL};
TEST_MAIN("pcpu", tests)
