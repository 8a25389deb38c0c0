// SPDX-License-Identifier: GPL-3.0-or-later
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/sim/ledger.h"
#include "model/sim/sim.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

/* Many tasks, deep stacks. */

static int child(struct task *t, void *arg)
{
	charge(t, SIMPLE_ONE, 1);
	(*(unsigned *)arg)++;
	return sync(t);
}

static int parent(struct task *t, void *arg)
{
	for (int i = 0; i < 3000; i++) {
		struct task_opts o = {
			.name = "child", .fn = child, .arg = arg, .start = task_now(t)};
		struct task *c;

		if (task_create(task_sim(t), &o, &c) ||
		    task_block_until(t, SIMPLE_IDLE, task_now(t) + 1) < 0)
			return KVMSIM_ECANCELED;
		if (i == 1000) {
			o.start = task_now(t) - 1;
			CU_ASSERT_EQUAL(task_create(task_sim(t), &o, &c), KVMSIM_EINVAL);
		}
	}
	return 0;
}

static void tasks_make_tasks(void)
{
	struct sim *s = simple_sim(NULL);
	unsigned ran = 0;

	simple_task(s, "parent", parent, &ran, 0);
	for (int i = 0; i < 3000; i++)
		simple_task(s, "child", child, &ran, 5);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(ran, 6000);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	simple_end(s);
}

static int dig(volatile char *above, int depth)
{
	volatile char here[1024];

	here[0] = above ? above[0] : 1;
	here[1023] = here[0];
	return depth ? dig(here, depth - 1) + here[1023] : here[1023];
}

static int digs(struct task *t, void *arg)
{
	(void)t;
	return dig(NULL, *(int *)arg) > 0 ? 0 : KVMSIM_ECHECK;
}

static int run_digger(int depth, size_t stack_bytes)
{
	struct sim *s = simple_sim(NULL);
	struct task_opts o = {
		.name = "digs", .fn = digs, .arg = &depth, .stack_bytes = stack_bytes};
	struct task *t;
	int r = task_create(s, &o, &t);

	r = r ? r : sim_run(s, CYCLES_MAX);
	simple_end(s);
	return r;
}

static void a_stack_is_as_large_as_asked(void)
{
	CU_ASSERT_EQUAL(run_digger(40, 0), 0);
	CU_ASSERT_EQUAL(run_digger(900, 1 << 20), 0);
}

static void an_overflow_hits_the_guard_page(void)
{
#ifdef __SANITIZE_ADDRESS__
	test_skip("the address sanitizer takes the signal for itself");
#else
	int status = 0;
	pid_t pid = fork();

	CU_ASSERT_FATAL(pid >= 0);
	if (!pid) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		signal(SIGSEGV, SIG_DFL);
		run_digger(70, 0);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFSIGNALED(status));
	CU_ASSERT_EQUAL(WTERMSIG(status), SIGSEGV);
#endif
}

static CU_TestInfo tests[] = {{"tasks_make_tasks", tasks_make_tasks},
			      {"a_stack_is_as_large_as_asked", a_stack_is_as_large_as_asked},
			      {"an_overflow_hits_the_guard_page", an_overflow_hits_the_guard_page},
			      CU_TEST_INFO_NULL};
TEST_MAIN("coro", tests)
