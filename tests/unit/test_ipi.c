// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/counts.h"
#include "model/host/ipi.h"
#include "model/host/lock.h"
#include "model/params.h"
#include "model/sim/ledger.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

#define MAX_VCPUS 4

/* A toy vCPU: guest mode is a flag, a guest op is `op` instructions, an exit costs nothing. */
struct vcpu {
	struct task *task;
	cycles_t op;
	uint64_t ops;
	bool guest_mode, lock_on_exit, ends_in_guest_mode;
	unsigned requests, interrupts;
	cycles_t handled; /* when the last interrupt was */
	uint64_t at_exit; /* ops retired before it */
};

static struct vcpu vcpu[MAX_VCPUS];
static struct rwlock lock;
static const struct lock_class lock_class = {"mmu_lock", 1, LOCK_SPINLOCK};

static bool request(void *ctx, size_t i, struct task **task)
{
	struct vcpu *v = (struct vcpu *)ctx + i;

	v->requests++;
	*task = v->task;
	return v->guest_mode;
}

static int vcpu_run(struct task *t, void *arg)
{
	struct vcpu *v = arg;
	uint64_t done;
	int r = sync(t);

	v->guest_mode = true;
	while (!r && v->ops) {
		uint64_t before = v->ops * v->op, left;

		r = charge_interruptible(t, COUNT_insn, before, &done);
		left = before - done;
		/* Boundaries are between ops, not between instructions. */
		if (!r && left % v->op) {
			charge(t, COUNT_insn, left % v->op);
			left -= left % v->op;
		}
		v->ops = left / v->op;
		r = r ? r : sync(t);
		if (r || !task_message_due(t))
			continue;
		v->guest_mode = false;
		v->interrupts += ipi_receive(t);
		v->handled = task_now(t);
		v->at_exit = v->ops;
		r = sync(t);
		v->guest_mode = true;
	}
	if (v->ends_in_guest_mode)
		return r;
	v->guest_mode = false;
	ipi_receive(t);
	if (!r && v->lock_on_exit) {
		r = read_lock(t, &lock);
		if (!r)
			read_unlock(t, &lock);
	}
	return r;
}

struct flush {
	cycles_t start;
	bool wait;
	int n, r;
	cycles_t done;
};

static int flusher(struct task *t, void *arg)
{
	struct flush *f = arg;

	f->r = write_lock(t, &lock);
	if (f->r)
		return f->r;
	f->r = ipi_call_many(t, request, vcpu, (size_t)f->n, f->wait);
	f->done = task_now(t);
	write_unlock(t, &lock);
	return f->r < 0 ? f->r : 0;
}

static void run(const char *latency, struct flush *f, int n, bool reference)
{
	char text[256] =
		"[machine]\nunit = cycles\n[price]\ninsn = 1\nipi = 3\n[param]\nipi_latency = ";
	struct profile *p = NULL;
	struct sim *s;

	strcat(text, latency);
	CU_ASSERT_EQUAL_FATAL(profile_parse(text, strlen(text), "ipi", &model_vocabulary,
					    model_params, &simple_errors, &p),
			      0);
	s = simple_sim(&(struct sim_opts){
		.vocabulary = &model_vocabulary, .profile = p, .reference = reference});
	ipi_init(s);
	rwlock_init(&lock, &lock_class);
	for (int i = 0; i < n; i++)
		vcpu[i].task = simple_task(s, "vcpu", vcpu_run, &vcpu[i], 0);
	f->n = n;
	simple_task(s, "flusher", flusher, f, f->start);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(sim_check_ledger(s), 0);
	CU_ASSERT_EQUAL(ledger_sum_count(sim_ledger(s), LEDGER_ALL_TASKS, ACT_guest, COUNT_ipi).n,
			(uint64_t)f->r);
	sim_destroy(s);
	profile_free(p);
}

/*
 * By hand. The flush is sent at 100 and arrives at 150. vCPU 0 (ops of 7) takes it at 154, vCPU 1
 * (ops of 40) at 160, vCPU 2 (not in guest mode any more) gets only the request. The sender pays 2
 * times 3, then waits until 160.
 */
static void flush_waits_for_the_slowest(void)
{
	for (int reference = 0; reference < 2; reference++) {
		struct flush f = {.start = 100, .wait = true};

		memset(vcpu, 0, sizeof(vcpu));
		vcpu[0] = (struct vcpu){.op = 7, .ops = 1000};
		vcpu[1] = (struct vcpu){.op = 40, .ops = 1000};
		vcpu[2] = (struct vcpu){.op = 1, .ops = 50};
		run("50", &f, 3, reference);
		CU_ASSERT_EQUAL(f.r, 2);
		CU_ASSERT_EQUAL(f.done, 160);
		CU_ASSERT_EQUAL(vcpu[0].handled, 154);
		CU_ASSERT_EQUAL(vcpu[0].at_exit, 1000 - 22);
		CU_ASSERT_EQUAL(vcpu[1].handled, 160);
		CU_ASSERT_EQUAL(vcpu[0].interrupts, 1);
		CU_ASSERT_EQUAL(vcpu[1].interrupts, 1);
		CU_ASSERT_EQUAL(vcpu[2].requests, 1);
		CU_ASSERT_EQUAL(vcpu[2].interrupts, 0);
	}
}

/* Without latency, as under an emulator: it takes effect at the boundary at or after 100. */
static void without_latency(void)
{
	for (int reference = 0; reference < 2; reference++) {
		struct flush f = {.start = 100, .wait = true};

		memset(vcpu, 0, sizeof(vcpu));
		vcpu[0] = (struct vcpu){.op = 7, .ops = 1000};
		vcpu[1] = (struct vcpu){.op = 10, .ops = 1000};
		run("0", &f, 2, reference);
		CU_ASSERT_EQUAL(vcpu[0].handled, 105);
		CU_ASSERT_EQUAL(vcpu[1].handled, 100);
		CU_ASSERT_EQUAL(f.done, 106); /* 2 * 3 for sending outlasts the answers */
	}
}

/* kvm_vcpu_kick() does not wait. */
static void a_kick_does_not_wait(void)
{
	struct flush f = {.start = 10, .wait = false};

	memset(vcpu, 0, sizeof(vcpu));
	vcpu[0] = (struct vcpu){.op = 1, .ops = 1000};
	run("500", &f, 1, false);
	CU_ASSERT_EQUAL(f.done, 13);
	CU_ASSERT_EQUAL(vcpu[0].handled, 510);
}

/* A vCPU that leaves guest mode while the IPI is under way, and then waits for the lock that the
 * sender holds: the host's code takes the interrupt at 150, so they do not wait for each other. */
static void leaving_guest_mode_acknowledges(void)
{
	struct flush f = {.start = 100, .wait = true};

	memset(vcpu, 0, sizeof(vcpu));
	vcpu[0] = (struct vcpu){.op = 120, .ops = 1, .lock_on_exit = true};
	run("50", &f, 1, false);
	CU_ASSERT_EQUAL(f.r, 1);
	CU_ASSERT_EQUAL(f.done, 150);
	CU_ASSERT_EQUAL(vcpu[0].interrupts, 0);
}

/* Threads that end in guest mode: one at 120, with the IPI under way, one at 90, before it. */
static void an_ended_task_owes_no_answer(void)
{
	for (int reference = 0; reference < 2; reference++) {
		struct flush f = {.start = 100, .wait = true};

		memset(vcpu, 0, sizeof(vcpu));
		vcpu[0] = (struct vcpu){.op = 120, .ops = 1, .ends_in_guest_mode = true};
		vcpu[1] = (struct vcpu){.op = 90, .ops = 1, .ends_in_guest_mode = true};
		run("50", &f, 2, reference);
		CU_ASSERT_EQUAL(f.r, 1);
		CU_ASSERT_EQUAL(f.done, 150);
		CU_ASSERT_EQUAL(vcpu[1].requests, 1);
	}
}

static CU_TestInfo tests[] = {{"flush_waits_for_the_slowest", flush_waits_for_the_slowest},
			      {"without_latency", without_latency},
			      {"a_kick_does_not_wait", a_kick_does_not_wait},
			      {"leaving_guest_mode_acknowledges", leaving_guest_mode_acknowledges},
			      {"an_ended_task_owes_no_answer", an_ended_task_owes_no_answer},
			      CU_TEST_INFO_NULL};
TEST_MAIN("ipi", tests)
