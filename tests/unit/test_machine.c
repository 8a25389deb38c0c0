// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/counts.h"
#include "model/host/lock.h"
#include "model/host/machine.h"
#include "model/params.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

/* A contended lock's line takes 10 cycles from core to core; a second thread makes work half as
 * long again; each further busy CPU adds a tenth to a TLB walk. */
static struct profile *prices(const char *cores)
{
	char text[512];
	struct profile *p = NULL;

	snprintf(text, sizeof(text),
		 "[machine]\nunit = cycles\n[price]\ninsn = 1\ntlb_walk = 10\n[param]\n"
		 "line_transfer = 10\nsmt_permille = 1500\nmemory_load_permille = 100\n"
		 "cores = %s\n",
		 cores);
	CU_ASSERT_EQUAL_FATAL(profile_parse(text, strlen(text), "machine", &model_vocabulary,
					    model_params, &simple_errors, &p),
			      0);
	return p;
}

static struct rwlock rw;
static const struct lock_class rw_class = {"rw", 1, LOCK_RWLOCK};

struct job {
	bool read;
	cycles_t hold, got, end;
};

static int work(struct task *t, void *arg)
{
	struct job *j = arg;
	int r = j->read ? read_lock(t, &rw) : write_lock(t, &rw);

	if (r)
		return r;
	j->got = task_now(t);
	charge(t, COUNT_insn, j->hold);
	if (j->read)
		read_unlock(t, &rw);
	else
		write_unlock(t, &rw);
	j->end = task_now(t);
	return 0;
}

static void run(struct job *jobs, unsigned n, const char *cores)
{
	struct profile *p = prices(cores);
	struct sim *s =
		simple_sim(&(struct sim_opts){.vocabulary = &model_vocabulary, .profile = p});
	struct machine *m;

	rwlock_init(&rw, &rw_class);
	CU_ASSERT_EQUAL_FATAL(machine_create(p, 0, n, &m), 0);
	for (unsigned i = 0; i < n; i++) {
		const struct task_opts o = {.name = "job",
					    .fn = work,
					    .arg = &jobs[i],
					    .start = i,
					    .prices = machine_prices(m, i)};
		struct task *t;

		CU_ASSERT_EQUAL_FATAL(task_create(s, &o, &t), 0);
		CU_ASSERT_EQUAL(machine_place(m, t, i), 0);
	}
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	simple_end(s);
	machine_destroy(m);
	profile_free(p);
}

/* Four changes of the word by two cores in turn: four transfers, one after the other. */
static void readers_wait_for_the_line(void)
{
	struct job jobs[] = {{.read = true}, {.read = true}};

	run(jobs, 2, "2");
	CU_ASSERT_EQUAL(jobs[0].got, 10);
	CU_ASSERT_EQUAL(jobs[1].got, 20);
	CU_ASSERT_EQUAL(jobs[0].end, 30);
	CU_ASSERT_EQUAL(jobs[1].end, 40);
}

static void threads_of_a_core_share_the_line(void)
{
	struct job jobs[] = {{.read = true}, {.read = true}};

	run(jobs, 2, "1");
	CU_ASSERT_EQUAL(jobs[0].got, 10);
	CU_ASSERT_EQUAL(jobs[1].got, 10);
	CU_ASSERT_EQUAL(jobs[0].end, 10);
	CU_ASSERT_EQUAL(jobs[1].end, 10);
}

/* log2 of 4, 3 and 2 CPUs, the one of 3 taken as 1.5. */
static void writers_hand_over_in_log_time(void)
{
	struct job jobs[] = {{.hold = 100}, {.hold = 5}, {.hold = 5}, {.hold = 5}};

	run(jobs, 4, "0");
	CU_ASSERT_EQUAL(jobs[0].got, 10);
	CU_ASSERT_EQUAL(jobs[0].end, 110);
	CU_ASSERT_EQUAL(jobs[1].got, 130);
	CU_ASSERT_EQUAL(jobs[2].got, 150);
	CU_ASSERT_EQUAL(jobs[3].got, 165);
	CU_ASSERT_EQUAL(jobs[3].end, 170);
}

/* In a queue of more than one three transfers, the last waits at the word: one. */
static void waiters_that_sleep_leave_the_line_alone(void)
{
	struct job jobs[] = {{.hold = 100}, {.hold = 5}, {.hold = 5}, {.hold = 5}};

	run(jobs, 4, "0\nqueue_transfers = 3");
	CU_ASSERT_EQUAL(jobs[0].end, 110);
	CU_ASSERT_EQUAL(jobs[1].got, 140);
	CU_ASSERT_EQUAL(jobs[2].got, 175);
	CU_ASSERT_EQUAL(jobs[3].got, 190);
}

static double price(const struct machine *m, uint32_t i, uint16_t count)
{
	return (double)machine_prices(m, i)[count] / (1 << PRICE_SHIFT);
}

static void second_threads_and_load_have_their_price(void)
{
	struct profile *p = prices("2");
	struct machine *m;

	CU_ASSERT_EQUAL_FATAL(machine_create(p, 0, 1, &m), 0);
	CU_ASSERT_EQUAL(price(m, 0, COUNT_insn), 1);
	CU_ASSERT_EQUAL(price(m, 0, COUNT_tlb_walk), 10);
	machine_destroy(m);
	CU_ASSERT_EQUAL_FATAL(machine_create(p, 0, 3, &m), 0);
	CU_ASSERT_EQUAL(price(m, 0, COUNT_insn), 1.5);
	CU_ASSERT_EQUAL(price(m, 1, COUNT_insn), 1);
	CU_ASSERT_EQUAL(price(m, 2, COUNT_insn), 1.5);
	CU_ASSERT_EQUAL(price(m, 0, COUNT_tlb_walk), 12);
	CU_ASSERT_EQUAL(price(m, 1, COUNT_tlb_walk), 12);
	machine_destroy(m);
	/* five tasks on four threads have 4/5 of one each */
	CU_ASSERT_EQUAL_FATAL(machine_create(p, 0, 5, &m), 0);
	CU_ASSERT_EQUAL(price(m, 4, COUNT_insn), 1.5 * 5 / 4);
	machine_destroy(m);
	profile_free(p);
}

static CU_TestInfo tests[] = {
	{"readers_wait_for_the_line", readers_wait_for_the_line},
	{"threads_of_a_core_share_the_line", threads_of_a_core_share_the_line},
	{"writers_hand_over_in_log_time", writers_hand_over_in_log_time},
	{"waiters_that_sleep_leave_the_line_alone", waiters_that_sleep_leave_the_line_alone},
	{"second_threads_and_load_have_their_price", second_threads_and_load_have_their_price},
	CU_TEST_INFO_NULL};
TEST_MAIN("machine", tests)
