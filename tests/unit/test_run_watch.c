// SPDX-License-Identifier: GPL-3.0-or-later
/* What a run keeps of ioctls and stalls: told by hand. */
#include "analysis/run_watch.h"
#include "model/mmu/trace.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

#define EQ CU_ASSERT_EQUAL

static int nothing(struct task *t, void *arg)
{
	(void)t;
	(void)arg;
	return 0;
}

static void tell_ioctl(struct run_watch *w, enum kvm_operation op, cycles_t cycles, cycles_t hold,
		       cycles_t hold_shared)
{
	w->watch.ioctl(w->watch.ctx, &(struct kvm_ioctl){.operation = op,
							 .cycles = cycles,
							 .hold = hold,
							 .hold_shared = hold_shared});
}

static void ioctls(void)
{
	struct run_watch w;

	run_watch_init(&w);
	run_watch_start(&w, 1000);
	tell_ioctl(&w, KVM_OP_get, 30, 20, 1);
	tell_ioctl(&w, KVM_OP_get, 50, 7, 3);
	tell_ioctl(&w, KVM_OP_get, 40, 10, 2);
	tell_ioctl(&w, KVM_OP_clear, 5, 0, 0);
	EQ(w.operations[KVM_OP_get].calls, 3);
	EQ(w.operations[KVM_OP_get].total, 120);
	EQ(w.operations[KVM_OP_get].longest, 50);
	EQ(w.operations[KVM_OP_get].hold, 20);
	EQ(w.operations[KVM_OP_get].hold_shared, 3);
	EQ(w.operations[KVM_OP_clear].calls, 1);
	EQ(w.operations[KVM_OP_enable].calls, 0);
	run_watch_start(&w, 2000);
	EQ(w.operations[KVM_OP_get].calls, 0);
	EQ(w.operations[KVM_OP_get].longest, 0);
}

static void tell_stall(struct run_watch *w, cycles_t start, cycles_t cycles, cycles_t waited,
		       const struct task *by, enum kvm_operation op)
{
	w->watch.stall(w->watch.ctx,
		       &(struct kvm_stall){.vcpu = 3,
					   .exit = 7,
					   .start = start,
					   .cycles = cycles,
					   .waited = waited,
					   .why = {.wait = 2, .operation = op, .by = by}});
}

/* The longest is the one in which the guest stood still for longest, however little of it was a
 * wait; of two it is the first. */
static void stalls(void)
{
	struct sim *s = simple_sim(NULL);
	const struct task *vmm = simple_task(s, "vmm", nothing, NULL, 0);
	struct run_watch w;

	run_watch_init(&w);
	run_watch_start(&w, 1000);
	tell_stall(&w, 1100, 60, 60, vmm, KVM_OP_get);
	tell_stall(&w, 1200, 90, 10, vmm, KVM_OP_get);
	tell_stall(&w, 1300, 90, 80, vmm, KVM_OP_get);
	tell_stall(&w, 1400, 20, 0, vmm, KVM_OP_get); /* interrupted by it */
	tell_stall(&w, 1500, 70, 5, vmm, KVM_OP_none);
	tell_stall(&w, 1600, 80, 0, NULL, KVM_OP_none);
	EQ(w.operations[KVM_OP_get].stalls, 4);
	EQ(w.operations[KVM_OP_get].stalled, 60 + 10 + 80 + 20);
	EQ(w.operations[KVM_OP_get].longest_stall.start, 200);
	EQ(w.operations[KVM_OP_get].longest_stall.cycles, 90);
	EQ(w.operations[KVM_OP_get].longest_stall.waited, 10);
	EQ(w.operations[KVM_OP_get].longest_stall.wait, 2);
	CU_ASSERT_STRING_EQUAL(w.operations[KVM_OP_get].longest_stall.by, "vmm");
	EQ(w.operations[RUN_OP_vcpus].stalls, 1);
	EQ(w.operations[RUN_OP_vcpus].stalled, 5);
	EQ(w.operations[RUN_OP_own].stalls, 1);
	EQ(w.operations[RUN_OP_own].stalled, 80);
	EQ(w.operations[RUN_OP_own].longest_stall.wait, RUN_NO_WAIT);
	CU_ASSERT_STRING_EQUAL(w.operations[RUN_OP_own].longest_stall.by, "");
	EQ(w.longest.start, 200);
	EQ(w.longest.cycles, 90);
	EQ(w.longest.vcpu, 3);
	EQ(w.longest.exit, 7);
	EQ(w.longest.cause, KVM_OP_get);
	run_watch_start(&w, 2000);
	EQ(w.longest.cycles, 0);
	EQ(w.operations[KVM_OP_get].stalls, 0);
	tell_stall(&w, 2010, 4, 4, vmm, KVM_OP_clear);
	EQ(w.longest.start, 10);
	EQ(sim_run(s, CYCLES_MAX), 0);
	simple_end(s);
}

static CU_TestInfo tests[] = {{"ioctls", ioctls}, {"stalls", stalls}, CU_TEST_INFO_NULL};
TEST_MAIN("run_watch", tests)
