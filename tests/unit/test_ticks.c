// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Tasks that tick beside tasks that are blocked, and the one there is: the reaper of dirty rings.
 * When its turns are is by hand: every price is 1 ns.
 */
#include <string.h>

#include "analysis/cli.h"
#include "model/counts.h"
#include "model/guest/ring.h"
#include "model/guest/vcpu.h"
#include "model/guest/watch.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"

#define EQ CU_ASSERT_EQUAL

/* ---- deadlocks ---- */

struct ticker {
	cycles_t interval;
	unsigned turns;	   /* so far */
	unsigned wakes_at; /* turn in which it wakes @other; 0: never */
	unsigned ends_at;  /* 0: never */
	struct task *other;
};

static int tick(struct task *t, void *arg)
{
	struct ticker *k = arg;
	int r = 0;

	while (r >= 0 && (!k->ends_at || k->turns < k->ends_at)) {
		r = task_block_until(t, SIMPLE_IDLE, task_now(t) + k->interval);
		r = r < 0 ? r : task_sync(t);
		if (r >= 0 && ++k->turns == k->wakes_at)
			task_wake(k->other, task_now(t));
	}
	return r;
}

static struct task *ticker(struct sim *s, struct ticker *k)
{
	const struct task_opts o = {.name = "ticker", .fn = tick, .arg = k, .ticks = true};
	struct task *t;

	EQ(task_create(s, &o, &t), 0);
	return t;
}

static int blocks(struct task *t, void *arg)
{
	(void)arg;
	return task_block(t, SIMPLE_IDLE);
}

static int sleeps(struct task *t, void *arg)
{
	int r = task_block_until(t, SIMPLE_IDLE, *(cycles_t *)arg);

	return r < 0 ? r : 0;
}

static void a_tick_is_no_hope(void)
{
	struct ticker k = {.interval = 10}, slow = {.interval = 35};
	struct sim *s = simple_sim(NULL);

	simple_task(s, "vcpu0", blocks, NULL, 0);
	ticker(s, &k);
	EQ(sim_run(s, CYCLES_MAX), KVMSIM_EDEADLOCK);
	CU_ASSERT_STRING_EQUAL(simple_message, "deadlock: nothing is pending and these tasks are "
					       "blocked: vcpu0 (idle since 0)");
	EQ(k.turns <= 2, 1);
	simple_end(s);

	/* Each of two has its turn. */
	k = (struct ticker){.interval = 10};
	s = simple_sim(NULL);
	simple_task(s, "vcpu0", blocks, NULL, 0);
	ticker(s, &k);
	ticker(s, &slow);
	EQ(sim_run(s, CYCLES_MAX), KVMSIM_EDEADLOCK);
	EQ(slow.turns >= 1 && slow.turns <= 2, 1);
	simple_end(s);
}

static void while_others_go_on(void)
{
	struct ticker k = {.interval = 10, .ends_at = 50}, slow = {.interval = 95, .wakes_at = 1};
	cycles_t late = 1000;
	struct sim *s = simple_sim(NULL);

	/* Whoever has a time comes back. */
	simple_task(s, "sleeper", sleeps, &late, 0);
	ticker(s, &k);
	EQ(sim_run(s, CYCLES_MAX), 0);
	EQ(k.turns, 50);
	simple_end(s);

	/* One that ticks slowly wakes it, while another one ticks in vain. */
	k = (struct ticker){.interval = 10, .ends_at = 50};
	slow.ends_at = 1;
	s = simple_sim(NULL);
	slow.other = simple_task(s, "vcpu0", blocks, NULL, 0);
	ticker(s, &k);
	ticker(s, &slow);
	EQ(sim_run(s, CYCLES_MAX), 0);
	EQ(slow.turns, 1);
	simple_end(s);

	/* The last ones need nobody. */
	k = (struct ticker){.interval = 10, .ends_at = 50};
	s = simple_sim(NULL);
	ticker(s, &k);
	EQ(sim_run(s, CYCLES_MAX), 0);
	EQ(k.turns, 50);
	simple_end(s);
}

/* ---- the reaper ---- */

#define PAGES	 100
#define GAP	 50000	 /* instructions between two stores, of 1 ns */
#define INTERVAL 1000000 /* ns */

static struct profile *unit;

struct reaped {
	struct kvm *kvm;
	struct kvm_vcpu *vcpu;
	bool stores, never_ends;
	cycles_t begun, ended, store[PAGES]; /* of the reaper, the vCPU; when each store was done */
	struct {
		cycles_t start, end;
		uint32_t pages; /* read from the ring so far */
	} reset[PAGES];
	unsigned n;
};

static int guest(struct task *t, void *arg)
{
	struct reaped *g = arg;
	int r = 0;

	vcpu_bind(g->vcpu, t);
	for (unsigned i = 0; i < PAGES && r >= 0; i++) {
		r = vcpu_gap(g->vcpu, GAP);
		while (r >= 0 && g->stores && (r = vcpu_write(g->vcpu, i << 12, 8, 1)) > 0)
			;
		g->store[i] = task_now(t);
	}
	r = r < 0 ? r : vcpu_interrupt(g->vcpu);
	g->ended = task_now(t);
	return r < 0 || !g->never_ends ? r : task_block(t, WAIT_idle);
}

static int vmm(struct task *t, void *arg)
{
	struct reaped *g = arg;
	const struct kvm_memory_region slot = {
		.npages = PAGES, .flags = KVM_MEM_LOG_DIRTY_PAGES, .host_populated = true};
	struct task_opts o = {.name = "vcpu0", .fn = guest, .arg = g};
	struct task *vcpu;
	int r = kvm_set_user_memory_region(t, g->kvm, &slot);

	r = r ? r : kvm_create_vcpu(g->kvm, &g->vcpu);
	o.start = g->begun = task_now(t);
	r = r ? r : task_create(task_sim(t), &o, &vcpu);
	return r ? r : kvm_start_ring_reaper(g->kvm, g->begun);
}

static void keep_reset(void *ctx, const struct kvm_ioctl *i)
{
	struct reaped *g = ctx;

	if (i->operation != KVM_OP_reset)
		return;
	CU_ASSERT_STRING_EQUAL(task_name(i->task), "reaper");
	CU_ASSERT_FATAL(g->n < PAGES);
	g->reset[g->n].start = i->start;
	g->reset[g->n].end = i->start + i->cycles;
	g->reset[g->n++].pages = kvm_dirty_ring_pages(g->vcpu);
}

static void no_stall(void *ctx, const struct kvm_stall *s)
{
	(void)ctx;
	(void)s;
}

static int reap(struct reaped *g)
{
	const struct sim_opts so = {
		.vocabulary = &model_vocabulary, .profile = unit, .errors = &simple_errors};
	const struct kvm_watch watch = {.ioctl = keep_reset, .stall = no_stall, .ctx = g};
	const struct task_opts to = {.name = "vmm", .fn = vmm, .arg = g};
	struct kvm_vm_opts vo = {.mode = GUEST_FLAT32,
				 .dirty = "ring,size=1024,reaper=1000",
				 .watch = &watch,
				 .check = true};
	struct sim *s;
	struct task *t;
	int r;

	EQ(sim_create(&so, &s), 0);
	vo.sim = s;
	EQ(kvm_create_vm(&vo, &g->kvm), 0);
	EQ(task_create(s, &to, &t), 0);
	r = sim_run(s, CYCLES_MAX);
	r = r ? r : kvm_check(g->kvm);
	sim_destroy(s);
	kvm_destroy_vm(g->kvm);
	return r;
}

/* The stores that were done before @when. */
static uint32_t stored(const struct reaped *g, cycles_t when)
{
	uint32_t n = 0;

	while (n < PAGES && g->store[n] < when)
		n++;
	return n;
}

/* Each turn begins an interval after the end of the one before, and reads all that was stored until
 * then; the last one comes when the vCPU has ended. */
static void turns_of_the_reaper(void)
{
	struct reaped g = {.stores = true};
	cycles_t slept;

	EQ(reap(&g), 0);
	/* 100 stores 50 us apart, and what their faults take */
	EQ((g.ended - g.begun) / INTERVAL, PAGES * GAP / INTERVAL);
	EQ(g.n, PAGES * GAP / INTERVAL + 1);
	slept = g.begun;
	for (unsigned i = 0; i < g.n; i++) {
		/* the ring's entries and the lock lie between the turn's start and the ioctl's */
		cycles_t late = g.reset[i].start - slept - INTERVAL;
		uint32_t there = stored(&g, slept + INTERVAL);

		CU_ASSERT_TRUE(late < 200);
		CU_ASSERT_TRUE(g.reset[i].pages >= there && g.reset[i].pages <= there + 1);
		slept = g.reset[i].end;
	}
	EQ(g.reset[g.n - 1].pages, PAGES);
	CU_ASSERT_TRUE(g.reset[g.n - 1].start >= g.ended);
}

static void nothing_to_reap(void)
{
	struct reaped g = {0};

	EQ(reap(&g), 0);
	EQ(g.n, 0);
}

static void a_vcpu_that_never_ends(void)
{
	struct reaped g = {.stores = true, .never_ends = true};

	EQ(reap(&g), KVMSIM_EDEADLOCK);
	CU_ASSERT_PTR_NOT_NULL(strstr(simple_message, "blocked: vcpu0 (idle since "));
	CU_ASSERT_PTR_NULL(strstr(simple_message, "reaper"));
	EQ(g.reset[g.n - 1].pages, PAGES);
}

int main(void)
{
	static CU_TestInfo tests[] = {{"a tick is no hope", a_tick_is_no_hope},
				      {"while others go on", while_others_go_on},
				      {"turns of the reaper", turns_of_the_reaper},
				      {"nothing to reap", nothing_to_reap},
				      {"a vCPU that never ends", a_vcpu_that_never_ends},
				      CU_TEST_INFO_NULL};
	int code;

	if (cli_profile("unit", &unit))
		return 1;
	code = test_main("ticks", tests);
	profile_free(unit);
	return code;
}
