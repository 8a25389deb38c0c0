// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <string.h>

#include "model/policy/ple.h"
#include "model/policy/preset.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/lock_scene.h"
#include "tests/unit/simple.h"

#define EQ(a, b) CU_ASSERT_EQUAL((unsigned long long)(a), (unsigned long long)(b))

struct part {
	struct lock_scene *s;
	cycles_t at, until;
	bool irqs_off;
};

static int take(struct guest_thread *g, void *arg)
{
	struct part *p = arg;
	bool flags;
	int r = lock_scene_at(g, p->at);

	if (!r)
		r = smp_spin_lock_irqsave(guest_vcpu(g), &p->s->lock[0], &flags);
	if (!r)
		r = lock_scene_at(g, p->until);
	if (!r)
		r = smp_spin_unlock_irqrestore(guest_vcpu(g), &p->s->lock[0], flags);
	return r;
}

/* The second spins for @spins, each with a CPU. Its statistics. */
static struct smp_vcpu_stats spin_for(const char *ple, cycles_t spins)
{
	struct part p[] = {{.at = 10, .until = 1000 + spins}, {.at = 1000, .until = 0}};
	struct smp_vcpu_stats st;
	struct lock_scene s;

	lock_scene_open(&s,
			&(struct lock_scene_opts){.lock = "ticket", .ple = ple, .pinned = true});
	for (uint32_t i = 0; i < 2; i++) {
		p[i].s = &s;
		lock_scene_thread(&s, take, &p[i], i);
	}
	EQ(lock_scene_run(&s), 0);
	st = smp_vcpu_stats(smp_vcpu(s.vm, 1));
	EQ(st.spun, spins);
	lock_scene_close(&s);
	return st;
}

static void counts(void)
{
	EQ(spin_for(NULL, 10000).pause_exits, 0);
	EQ(spin_for("off", 10000).pause_exits, 0);
	EQ(spin_for("fixed,window=0", 10000).pause_exits, 0);
	/* a loop that ends with the window does not outlast it */
	EQ(spin_for("fixed,window=100", 200).pause_exits, 1);
	for (cycles_t spins = 1; spins < 100000; spins = spins * 3 + 7)
		EQ(spin_for("fixed,window=100", spins).pause_exits, (spins - 1) / 100);
	EQ(spin_for("fixed", 4096 * 3 + 5).pause_exits, 3);
}

/* Windows of 100, 200, 400, 800, 1600: 3100 in all. */
static void grows(void)
{
	EQ(spin_for("window,window=100", 99).pause_exits, 0);
	EQ(spin_for("window,window=100", 101).pause_exits, 1);
	EQ(spin_for("window,window=100", 299).pause_exits, 1);
	EQ(spin_for("window,window=100", 3099).pause_exits, 4);
	EQ(spin_for("window,window=100", 3101).pause_exits, 5);
	/* 100, 200, 300, 300, 300 */
	EQ(spin_for("window,window=100,max=300", 1201).pause_exits, 5);
	/* a modifier that is not below the window is added: 100, 300, 500, 700 */
	EQ(spin_for("window,window=100,grow=200", 1601).pause_exits, 4);
	EQ(spin_for("window,window=100,grow=0", 1001).pause_exits, 10);
}

/* The sequence itself, and what a CPU regained does to it. */
static void sequence(void)
{
	struct lock_scene s;
	struct smp_vcpu *v;

	lock_scene_open(&s, &(struct lock_scene_opts){.lock = "ticket",
						      .ple = "window,window=4096,max=40000"});
	v = smp_vcpu(s.vm, 0);
	for (uint64_t want = 4096; want < 40000; want *= 2) {
		EQ(ple_window.window(v), want);
		ple_window.exited(v);
	}
	EQ(ple_window.window(v), 40000);
	ple_window.sched_in(v);
	EQ(ple_window.window(v), 4096);
	EQ(ple_window.window(smp_vcpu(s.vm, 1)), 4096);
	lock_scene_close(&s);
	lock_scene_open(&s, &(struct lock_scene_opts){.lock = "ticket",
						      .ple = "window,window=4096,shrink=2"});
	v = smp_vcpu(s.vm, 0);
	for (int i = 0; i < 3; i++)
		ple_window.exited(v);
	for (uint64_t want = 32768; want > 4096; want /= 2) {
		EQ(ple_window.window(v), want);
		ple_window.sched_in(v);
	}
	ple_window.sched_in(v);
	EQ(ple_window.window(v), 4096);
	lock_scene_close(&s);
}

/* Who is in a handler itself is eligible every second time that it is looked at. */
static void filter(void)
{
	struct smp_vcpu *me, *other;
	struct lock_scene s;

	lock_scene_open(&s,
			&(struct lock_scene_opts){.lock = "ticket", .ple = "fixed,candidates=1"});
	me = smp_vcpu(s.vm, 0);
	other = smp_vcpu(s.vm, 1);
	CU_ASSERT(ple_eligible(me, other, 0));
	CU_ASSERT(ple_eligible(me, other, 0));
	smp_spin_loop(other)->in_spin_loop = true;
	CU_ASSERT(!ple_eligible(me, other, 0));
	CU_ASSERT(ple_eligible(me, other, 0));
	CU_ASSERT(!ple_eligible(me, other, 0));
	lock_scene_close(&s);
	/* never preempted */
	lock_scene_open(&s,
			&(struct lock_scene_opts){.lock = "ticket", .ple = "fixed,candidates=2"});
	CU_ASSERT(!ple_eligible(smp_vcpu(s.vm, 0), smp_vcpu(s.vm, 1), 0));
	lock_scene_close(&s);
	/* sleeps */
	lock_scene_open(&s,
			&(struct lock_scene_opts){.lock = "ticket", .ple = "fixed,candidates=0"});
	CU_ASSERT(!ple_eligible(smp_vcpu(s.vm, 0), smp_vcpu(s.vm, 1), 0));
	lock_scene_close(&s);
}

/*
 * vCPU 0 has the lock and shares its CPU with vCPU 1, which waits for it. Without pause-loop exits
 * that one spins for its slice. With them it yields, but the scheduler prefers the other only if
 * that has run no more than the granularity of wake-ups (1 ms, by two for two CPUs) longer than its
 * share: it began half a latency (6 ms, by two) ahead, so it is 4 ms.
 */
static cycles_t holder_preempted(const char *ple, struct smp_vcpu_stats *st)
{
	struct part p[] = {{.at = 10, .until = 400000}, {.at = 20, .until = 0}};
	const uint32_t pin[] = {0, 0};
	struct lock_scene s;
	cycles_t spun;

	lock_scene_open(
		&s, &(struct lock_scene_opts){.cpus = 2, .lock = "ticket", .ple = ple, .pin = pin});
	for (uint32_t i = 0; i < 2; i++) {
		p[i].s = &s;
		lock_scene_thread(&s, take, &p[i], i);
	}
	EQ(lock_scene_run(&s), 0);
	*st = smp_vcpu_stats(smp_vcpu(s.vm, 1));
	spun = st->spun;
	lock_scene_close(&s);
	return spun;
}

static void yields(void)
{
	struct smp_vcpu_stats off, on;
	cycles_t without = holder_preempted("off", &off), with;

	EQ(off.yield_attempted, 0);
	CU_ASSERT(without > 6000000 && without <= 7000000); /* up to the tick after it */
	for (int candidates = 0; candidates < 3; candidates++) {
		char ple[64];

		snprintf(ple, sizeof(ple), "fixed,candidates=%d", candidates);
		with = holder_preempted(ple, &on);
		CU_ASSERT(with >= 4000000 && with < 4000000 + 2 * 4096);
		CU_ASSERT(on.yield_successful > 0);
		EQ(on.yield_successful, on.yield_attempted);
		EQ(on.pause_exits, on.yield_successful);
		EQ(with / 4096, on.pause_exits);
	}
}

/* With a CPU each there is nobody to yield to: it gives up after three, of seven. */
static void undercommit(void)
{
	struct part p[8];
	struct lock_scene s;
	struct smp_vcpu_stats st;

	lock_scene_open(&s, &(struct lock_scene_opts){.vcpus = 8,
						      .lock = "ticket",
						      .ple = "fixed,window=1000,candidates=0",
						      .pinned = true});
	for (uint32_t i = 0; i < 8; i++) {
		p[i] = (struct part){&s, i ? 100 : 10, 1600, false};
		lock_scene_thread(&s, take, &p[i], i);
	}
	EQ(lock_scene_run(&s), 0);
	for (uint32_t i = 1; i < 8; i++) {
		st = smp_vcpu_stats(smp_vcpu(s.vm, i));
		EQ(st.pause_exits, 1);
		EQ(st.yield_attempted, 3);
		EQ(st.yield_successful, 0);
	}
	lock_scene_close(&s);
}

/*
 * vCPU 0 waits for answers of vCPU 1, which shares a CPU with vCPU 3; vCPU 2 looks on. In the first
 * round vCPU 1 is the one to yield to while it has no CPU, in the second either is.
 */
struct calls {
	struct lock_scene *s;
	bool done;
	unsigned owing, others;
};

static int busy(struct guest_thread *g, void *arg)
{
	(void)arg;
	return guest_work(g, 30000000);
}

static int call(struct guest_thread *g, void *arg)
{
	struct calls *c = arg;
	struct smp_vcpu *target = smp_vcpu(c->s->vm, 1);
	int r = 0;

	for (int i = 0; !r && i < 20; i++) {
		r = lock_scene_at(g, (cycles_t)i * 2000000);
		if (!r)
			r = smp_call_function_many(guest_vcpu(g), &target, 1, 10, true);
	}
	c->done = true;
	return r;
}

static int look_on(struct guest_thread *g, void *arg)
{
	struct calls *c = arg;
	struct smp_vcpu *me = smp_vcpu(c->s->vm, 0), *asked = smp_vcpu(c->s->vm, 1),
			*other = smp_vcpu(c->s->vm, 3);
	int r = 0;

	while (!r && !c->done) {
		const bool owes = smp_owes_answer(me, asked) && smp_vcpu_was_preempted(asked);
		const bool waits = smp_vcpu_was_preempted(other);

		EQ(ple_eligible(me, asked, 0), owes);
		EQ(ple_eligible(me, other, 0), false);
		EQ(ple_eligible(me, other, 1), false);
		EQ(ple_eligible(me, other, 2), waits);
		EQ(ple_eligible(me, asked, 2), smp_vcpu_was_preempted(asked));
		c->owing += owes;
		c->others += waits;
		r = guest_work(g, 50000);
		if (!r)
			r = sync(smp_task(guest_vcpu(g)));
	}
	return r;
}

static void answers(void)
{
	static const uint32_t pin[] = {0, 1, 2, 1};
	struct lock_scene s;
	struct calls c = {.s = &s};

	lock_scene_open(&s, &(struct lock_scene_opts){.cpus = 3,
						      .vcpus = 4,
						      .lock = "ticket",
						      .ple = "fixed,candidates=3",
						      .pin = pin});
	lock_scene_thread(&s, call, &c, 0);
	lock_scene_thread(&s, busy, &c, 1);
	lock_scene_thread(&s, look_on, &c, 2);
	lock_scene_thread(&s, busy, &c, 3);
	EQ(lock_scene_run(&s), 0);
	CU_ASSERT(c.owing > 10 && c.others > 10);
	lock_scene_close(&s);
}

/* What a preset names there is, with the parameters that it gives. */
static void presets(void)
{
	const struct policy_desc *d;
	const struct kvm_preset *k;
	struct policy_params params;

	for (size_t i = 0; (k = preset_at(i)); i++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(k->lock);
		CU_ASSERT_PTR_NOT_NULL_FATAL(k->ple);
		EQ(policy_parse(FAMILY_LOCK, k->lock, &simple_errors, &d, &params), 0);
		EQ(policy_parse(FAMILY_PLE, k->ple, &simple_errors, &d, &params), 0);
	}
	k = preset_find("3.12");
	CU_ASSERT_PTR_NOT_NULL_FATAL(k);
	CU_ASSERT_STRING_EQUAL(k->lock, "pvticket");
	EQ(k->halt_poll_ns, 0);
	EQ(policy_parse(FAMILY_PLE, k->ple, &simple_errors, &d, &params), 0);
	EQ(params.value[PLE_WINDOW], 4096);
	EQ(params.value[PLE_GAP], 41);
}

static CU_TestInfo tests[] = {
	{"exits of a loop of known length", counts},
	{"windows that grow", grows},
	{"windows in sequence", sequence},
	{"candidates", filter},
	{"a holder without a CPU", yields},
	{"as many CPUs as vCPUs", undercommit},
	{"who owes an answer", answers},
	{"presets", presets},
	CU_TEST_INFO_NULL,
};

TEST_MAIN("ple", tests)
