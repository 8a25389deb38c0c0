// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>

#include "tests/unit/harness.h"
#include "tests/unit/lock_scene.h"
#include "tests/unit/simple.h"

/*
 * When who has a lock, held against what is counted by hand: COUNT_lock costs 1, a line 10. Each
 * vCPU has a CPU.
 */
#define EQ(a, b) CU_ASSERT_EQUAL((unsigned long long)(a), (unsigned long long)(b))

struct part {
	struct lock_scene *s;
	cycles_t at, hold, until; /* asks at, holds it for, or until */
	cycles_t got, released;
};

static int take(struct guest_thread *g, void *arg)
{
	struct part *p = arg;
	int r = lock_scene_at(g, p->at);

	if (!r)
		r = smp_spin_lock(guest_vcpu(g), &p->s->lock[0]);
	p->got = lock_scene_now(g);
	if (!r)
		r = p->until ? lock_scene_at(g, p->until) : smp_work(guest_vcpu(g), p->hold);
	if (!r)
		r = smp_spin_unlock(guest_vcpu(g), &p->s->lock[0]);
	p->released = lock_scene_now(g);
	return r;
}

static void play(const char *lock, const char *ple, struct part *p, uint32_t n,
		 struct lock_scene *s)
{
	lock_scene_open(s, &(struct lock_scene_opts){.vcpus = n,
						     .lock = lock,
						     .ple = ple,
						     .pinned = true,
						     .lock_price = 1,
						     .transfer = 10,
						     .exit = 10,
						     .entry = 20,
						     .hypercall = 19,
						     .wake = 23});
	for (uint32_t i = 0; i < n; i++) {
		p[i].s = s;
		lock_scene_thread(s, take, &p[i], i);
	}
	CU_ASSERT_EQUAL(lock_scene_run(s), 0);
}

/* At hand; fetched from the one before; a waiter sees the store one transfer after it. */
static void ticket_two(void)
{
	struct part p[] = {{.at = 100, .until = 300}, {.at = 200, .until = 400}};
	struct lock_scene s;

	play("ticket", NULL, p, 2, &s);
	EQ(p[0].got, 101);
	EQ(p[0].released, 310); /* the line is the waiter's */
	EQ(p[1].got, 320);
	EQ(p[1].released, 410); /* both have read it */
	EQ(s.lock[0].stats.acquired, 2);
	EQ(s.lock[0].stats.contended, 1);
	EQ(s.lock[0].stats.wait, 120);
	EQ(s.lock[0].stats.longest_hold, 199);
	lock_scene_close(&s);
}

/* Of two who spin the next one sees it first or second; then it waits for the other's read. */
static void ticket_three(void)
{
	struct part p[] = {
		{.at = 100, .until = 300}, {.at = 200, .hold = 5}, {.at = 220, .hold = 5}};
	struct lock_scene s;

	play("ticket", NULL, p, 3, &s);
	EQ(p[0].released, 310);
	CU_ASSERT(p[1].got == 320 || p[1].got == 330);
	EQ(p[1].released, p[1].got == 320 ? 340 : 345); /* free at 330 */
	EQ(p[2].got, p[1].released + 10);
	lock_scene_close(&s);
}

/* The pending bit, then a queue of one. */
static void qspin_three(void)
{
	struct part p[] = {
		{.at = 100, .until = 300}, {.at = 200, .hold = 5}, {.at = 220, .hold = 5}};
	struct lock_scene s;

	play("qspin", NULL, p, 2, &s);
	EQ(p[0].released, 310);
	EQ(p[1].got, 330); /* seen at 320, then the store that takes it */
	lock_scene_close(&s);
	play("qspin", NULL, p, 3, &s);
	EQ(p[0].released, 310);
	EQ(p[1].got, 340);	/* both read it up to 330 */
	EQ(p[1].released, 360); /* the other has it up to 350 */
	EQ(p[2].got, 381);	/* seen at 370, and an atomic operation */
	lock_scene_close(&s);
}

/* Four in the queue of an MCS lock: each hand-over within it is as long as the one before. */
static void qspin_queue(void)
{
	struct part p[8] = {{.at = 100, .until = 1000}};
	cycles_t period;
	struct lock_scene s;

	for (uint32_t i = 1; i < 8; i++)
		p[i] = (struct part){.at = 100 + 50 * i, .hold = 100};
	play("qspin", NULL, p, 8, &s);
	period = p[4].got - p[3].got;
	EQ(p[5].got - p[4].got, period);
	EQ(p[6].got - p[5].got, period);
	CU_ASSERT(period < 100 + 50);
	lock_scene_close(&s);
	/* where n tickets are looked at, each takes up to n transfers longer */
	play("ticket", NULL, p, 8, &s);
	CU_ASSERT(p[1].released - p[1].got >= 100 + 10);
	for (uint32_t i = 1; i < 8; i++)
		CU_ASSERT(p[i].got > p[i - 1].got);
	lock_scene_close(&s);
}

/* Ten iterations, then it halts: asleep at 232; the unlocker's exit and hypercall, its wake-up,
 * and the entries. */
static void pvticket_halts(void)
{
	struct part p[] = {{.at = 100, .until = 300}, {.at = 200, .hold = 5}};
	struct smp_vcpu_stats v;
	struct lock_scene s;

	play("pvticket,threshold=10", NULL, p, 2, &s);
	EQ(s.lock[0].stats.slowpath, 1);
	EQ(s.lock[0].stats.kicks, 1);
	v = smp_vcpu_stats(smp_vcpu(s.vm, 1));
	EQ(v.halt_wakeups, 1);
	EQ(v.spun, 10);
	EQ(smp_vcpu_stats(smp_vcpu(s.vm, 0)).hypercalls, 1);
	/* 310 the store, 320 exit, 339 hypercall, 362 woken, 20 its entry; the other's CPU is idle
	 * and needs an IPI */
	EQ(p[0].released, 362 + 20);
	EQ(p[1].got, 362 + 100 + 20);
	lock_scene_close(&s);
	/* one iteration less than it has to wait: nobody halts */
	play("pvticket,threshold=110", NULL, p, 2, &s);
	EQ(s.lock[0].stats.slowpath, 0);
	EQ(s.lock[0].stats.kicks, 0);
	EQ(p[1].got, 320);
	lock_scene_close(&s);
}

/* Two who halt are kicked one after the other, each by the one before. */
static void pvticket_chain(void)
{
	struct part p[] = {
		{.at = 100, .until = 2000}, {.at = 200, .hold = 500}, {.at = 300, .hold = 5}};
	struct lock_scene s;

	play("pvticket,threshold=10", NULL, p, 3, &s);
	EQ(s.lock[0].stats.slowpath, 2);
	EQ(s.lock[0].stats.kicks, 2);
	EQ(smp_vcpu_stats(smp_vcpu(s.vm, 0)).kicks, 1);
	EQ(smp_vcpu_stats(smp_vcpu(s.vm, 1)).kicks, 1);
	EQ(smp_vcpu_stats(smp_vcpu(s.vm, 2)).kicks, 0);
	lock_scene_close(&s);
}

/*
 * The head of the queue halts after its time, the one behind it as soon as it looks: after 256
 * iterations. Who unlocks kicks the head; the head, which has it then, kicks the one behind when it
 * unlocks, because it marked the lock when it took it.
 */
static void pvqspin_halts(void)
{
	struct part p[] = {
		{.at = 100, .until = 9000}, {.at = 200, .hold = 500}, {.at = 300, .hold = 5}};
	struct lock_scene s;

	play("pvqspin,threshold=1024", NULL, p, 3, &s);
	EQ(s.lock[0].stats.slowpath, 2);
	EQ(s.lock[0].stats.kicks, 2);
	EQ(smp_vcpu_stats(smp_vcpu(s.vm, 1)).spun, 1024);
	/* it queues 90 to 110 later, and stops at a multiple of 256 after the head has */
	CU_ASSERT(smp_vcpu_stats(smp_vcpu(s.vm, 2)).spun <= 1024);
	EQ(smp_vcpu_stats(smp_vcpu(s.vm, 2)).spun % 256, 0);
	EQ(smp_vcpu_stats(smp_vcpu(s.vm, 0)).kicks, 1);
	EQ(smp_vcpu_stats(smp_vcpu(s.vm, 1)).kicks, 1);
	lock_scene_close(&s);
	/* who comes when the one before has halted does not spin at all; where it may take the lock
	 * past the queue it spins for that */
	p[2].at = 5000;
	play("pvqspin,threshold=1024", NULL, p, 3, &s);
	CU_ASSERT(smp_vcpu_stats(smp_vcpu(s.vm, 2)).spun > 3900);
	EQ(s.lock[0].stats.slowpath, 1);
	lock_scene_close(&s);
	play("pvqspin,threshold=1024,stealing=0", NULL, p, 3, &s);
	EQ(smp_vcpu_stats(smp_vcpu(s.vm, 2)).spun, 0);
	EQ(s.lock[0].stats.slowpath, 2);
	lock_scene_close(&s);
}

/* While the head halts the lock is anybody's; while it spins nobody's but its. */
static void pvqspin_steals(void)
{
	struct part p[] = {
		{.at = 100, .until = 9000}, {.at = 200, .hold = 500}, {.at = 8990, .hold = 5}};
	struct lock_scene s;

	play("pvqspin,threshold=1024", NULL, p, 3, &s);
	CU_ASSERT(p[2].got < p[1].got);
	lock_scene_close(&s);
	play("pvqspin,threshold=32768", NULL, p, 3, &s);
	CU_ASSERT(p[2].got > p[1].got);
	lock_scene_close(&s);
	play("pvqspin,threshold=1024,stealing=0", NULL, p, 3, &s);
	CU_ASSERT(p[2].got > p[1].got);
	lock_scene_close(&s);
}

static void busted(void)
{
	struct part p[] = {{.at = 100, .until = 300}, {.at = 100, .until = 300}};
	struct lock_scene s;

	lock_scene_open(
		&s, &(struct lock_scene_opts){.lock = "busted", .pinned = true, .lock_price = 5});
	for (uint32_t i = 0; i < 2; i++) {
		p[i].s = &s;
		lock_scene_thread(&s, take, &p[i], i);
	}
	EQ(lock_scene_run(&s), KVMSIM_ECHECK);
	CU_ASSERT_PTR_NOT_NULL(strstr(simple_message, "takes what is held by"));
	lock_scene_close(&s);
}

static CU_TestInfo tests[] = {
	{"ticket: two", ticket_two},
	{"ticket: three", ticket_three},
	{"qspin: pending and queued", qspin_three},
	{"qspin: a queue", qspin_queue},
	{"pvticket: halt and kick", pvticket_halts},
	{"pvticket: one after the other", pvticket_chain},
	{"pvqspin: halts and kicks", pvqspin_halts},
	{"pvqspin: stealing", pvqspin_steals},
	{"busted is caught", busted},
	CU_TEST_INFO_NULL,
};

TEST_MAIN("lock_times", tests)
