// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "model/sim/rng.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"
#include "tests/unit/smp_scene.h"

/*
 * Random programs of guest threads that work, take mutexes and semaphores, meet in pairs, call each
 * other's vCPUs, switch interrupts off, yield, sleep for a time. A wake-up or an interrupt that is
 * lost ends in a deadlock. What comes out is the same without run-ahead.
 */
#define THREADS 10
#define MUTEXES 3
#define SEMS	2

struct sem {
	struct guest_waitq *q;
	unsigned count;
};

struct program;

struct actor {
	struct program *p;
	struct rng rng;
	struct guest_thread *g;
	unsigned index;
	unsigned met; /* so often by the partner */
	cycles_t end;
	unsigned ops;
};

struct program {
	struct smp_scene s;
	unsigned ops;
	struct guest_mutex *mutex[MUTEXES];
	unsigned holders[MUTEXES];
	struct sem sem[SEMS];
	struct actor actor[THREADS];
	uint64_t errors;
};

static struct task *task_of(const struct guest_thread *g)
{
	return smp_task(guest_vcpu(g));
}

static int with_mutex(struct actor *a, unsigned i)
{
	struct program *p = a->p;
	int r = guest_mutex_lock(a->g, p->mutex[i]);

	if (r)
		return r;
	p->errors += p->holders[i]++ != 0;
	r = guest_work(a->g, 1 + rng_below(&a->rng, 900));
	/* Another one inside, in order of their numbers. */
	if (!r && i + 1 < MUTEXES && rng_below(&a->rng, 3) == 0)
		r = with_mutex(a, i + 1);
	if (!r)
		r = sync(task_of(a->g));
	p->holders[i]--;
	return r ? r : guest_mutex_unlock(a->g, p->mutex[i]);
}

static int with_sem(struct actor *a, struct sem *s)
{
	int r = sync(task_of(a->g));

	while (!r && !s->count)
		r = guest_wait(a->g, s->q);
	if (r)
		return r;
	s->count--;
	r = guest_work(a->g, 1 + rng_below(&a->rng, 2000));
	if (!r)
		r = sync(task_of(a->g));
	s->count++;
	return r ? r : guest_wake_up(a->g, s->q, 1);
}

static int meet(struct actor *a)
{
	struct actor *o = &a->p->actor[a->index ^ 1];
	int r = sync(task_of(a->g));

	if (r)
		return r;
	o->met++;
	r = guest_wake(guest_vcpu(a->g), o->g);
	while (!r) {
		r = sync(task_of(a->g));
		if (r || a->met)
			break;
		r = guest_sleep(a->g);
	}
	a->met--;
	return r;
}

static int call(struct actor *a, bool wait)
{
	struct smp_vcpu *targets[8], *v = guest_vcpu(a->g);
	uint32_t n = smp_vm_opts(a->p->s.vm)->vcpus;
	int r;

	for (uint32_t i = 0; i < n; i++)
		targets[i] = smp_vcpu(a->p->s.vm, i);
	guest_preempt_disable(v);
	r = smp_call_function_many(v, targets, n, 50, wait);
	return r ? r : guest_preempt_enable(v);
}

static int with_irqs_off(struct actor *a)
{
	struct smp_vcpu *v = guest_vcpu(a->g);
	bool was = smp_irq_save(v);
	int r = smp_work(v, rng_below(&a->rng, 500));

	if (!r)
		r = smp_irq_restore(v, was);
	return r;
}

static int act(struct actor *a)
{
	switch (rng_below(&a->rng, 16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		return with_mutex(a, (unsigned)rng_below(&a->rng, MUTEXES));
	case 4:
	case 5:
	case 6:
		return with_sem(a, &a->p->sem[rng_below(&a->rng, SEMS)]);
	case 7:
		return call(a, true);
	case 8:
		return call(a, false);
	case 9:
		return with_irqs_off(a);
	case 10:
		return guest_yield(a->g);
	case 11: {
		int r = guest_sleep_until(a->g, task_now(task_of(a->g)) + rng_below(&a->rng, 5000));

		return r < 0 ? r : 0;
	}
	default:
		return guest_work(a->g, rng_below(&a->rng, 3000));
	}
}

static int play(struct guest_thread *g, void *arg)
{
	struct actor *a = arg;
	int r = 0;

	for (a->ops = 0; !r && a->ops < a->p->ops; a->ops++)
		r = a->ops % 20 == 19 ? meet(a) : act(a);
	if (!r)
		a->end = task_now(task_of(g));
	return r;
}

static void run(struct program *p, unsigned seed, unsigned ops, bool reference)
{
	struct smp_opts o = {.vcpus = 2 + seed % 5,
			     .guest_hz = seed % 3 ? 1000 : 100,
			     .halt_poll_ns = seed % 4 ? 0 : 20000,
			     .apicv = seed % 7 == 3,
			     .pv_ipi = seed & 1,
			     .steal_time = seed & 2};
	char name[16];

	*p = (struct program){.ops = ops};
	smp_scene_open(&p->s, 1 + seed % 4, &o, reference);
	for (unsigned i = 0; i < MUTEXES; i++)
		CU_ASSERT_EQUAL_FATAL(guest_mutex_create(p->s.vm, "m", i != 1, &p->mutex[i]), 0);
	for (unsigned i = 0; i < SEMS; i++) {
		p->sem[i].count = 1 + i;
		CU_ASSERT_EQUAL_FATAL(guest_waitq_create(p->s.vm, "s", &p->sem[i].q), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		struct actor *a = &p->actor[i];

		a->p = p;
		a->index = i;
		snprintf(name, sizeof(name), "actor%u", i);
		rng_init(&a->rng, seed, 0, name);
		a->g = smp_scene_thread(&p->s, play, a, i == 5 ? seed % o.vcpus : UINT32_MAX);
	}
	CU_ASSERT_EQUAL(smp_scene_run(&p->s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(p->errors, 0);
	for (unsigned i = 0; i < THREADS; i++) {
		struct guest_thread_stats st = guest_thread_stats(p->actor[i].g);

		CU_ASSERT_EQUAL(p->actor[i].ops, ops);
		CU_ASSERT_EQUAL(st.run + st.runnable + st.asleep, p->actor[i].end + SWITCH);
	}
}

static void end(struct program *p)
{
	smp_scene_close(&p->s);
	for (unsigned i = 0; i < MUTEXES; i++)
		guest_mutex_destroy(p->mutex[i]);
	for (unsigned i = 0; i < SEMS; i++)
		guest_waitq_destroy(p->sem[i].q);
}

static struct program fast, slow;

static void test_long(void)
{
	run(&fast, 42, 10000, false);
	end(&fast);
}

static void test_reference(void)
{
	for (unsigned seed = 0; seed < 24; seed++) {
		run(&fast, seed, 200, false);
		run(&slow, seed, 200, true);
		for (unsigned i = 0; i < THREADS; i++) {
			struct guest_thread_stats a = guest_thread_stats(fast.actor[i].g);
			struct guest_thread_stats b = guest_thread_stats(slow.actor[i].g);

			CU_ASSERT_EQUAL(fast.actor[i].end, slow.actor[i].end);
			CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof(a)), 0);
		}
		end(&fast);
		end(&slow);
	}
}

CU_TestInfo tests[] = {
	{"100,000 operations", test_long},
	{"without run-ahead", test_reference},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("test_smp_random", tests)
