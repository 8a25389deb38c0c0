// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <string.h>

#include "model/sim/rng.h"
#include "tests/unit/harness.h"
#include "tests/unit/lock_scene.h"
#include "tests/unit/simple.h"

/*
 * Random programs: threads on more vCPUs than there are CPUs take locks in order, one inside the
 * other, some with interrupts off, call functions on each other's vCPUs whose handlers come in
 * between. A kick that is lost is a deadlock, which ends the run with KVMSIM_EDEADLOCK; mutual
 * exclusion and the order of fair locks are checked at each acquisition.
 */
static const char *const policies[] = {
	"tas",
	"ticket",
	"pvticket,threshold=200",
	"pvticket-yield,threshold=200",
	"qspin",
	"qspin,tas=1",
	"pvqspin,threshold=512",
	"pvqspin,threshold=512,stealing=0",
	"pvqspin,threshold=300,wait-early=0",
};
#define N_POLICIES (sizeof(policies) / sizeof(policies[0]))

struct program {
	struct lock_scene *s;
	struct rng draws;
	uint32_t ops, done;
};

static int section(struct guest_thread *g, struct program *p, uint32_t lock)
{
	struct smp_vcpu *v = guest_vcpu(g);
	struct smp_lock *l = &p->s->lock[lock];
	const bool irqs = lock >= LOCK_SCENE_LOCKS / 2; /* those that handlers take */
	bool flags = false;
	int r;

	guest_preempt_disable(v);
	r = irqs ? smp_spin_lock_irqsave(v, l, &flags) : smp_spin_lock(v, l);
	if (!r)
		r = smp_work(v, rng_below(&p->draws, 300));
	if (!r && lock + 1 < LOCK_SCENE_LOCKS && !rng_below(&p->draws, 4))
		r = section(g, p, lock + 1);
	if (r)
		return r;
	r = irqs ? smp_spin_unlock_irqrestore(v, l, flags) : smp_spin_unlock(v, l);
	return r ? r : guest_preempt_enable(v);
}

static int play(struct guest_thread *g, void *arg)
{
	struct program *p = arg;
	int r = 0;

	for (uint32_t i = 0; !r && i < p->ops; i++) {
		uint32_t lock = (uint32_t)rng_below(&p->draws, LOCK_SCENE_LOCKS);
		struct smp_vcpu *v;

		r = guest_work(g, rng_below(&p->draws, 400));
		if (r)
			break;
		if (rng_below(&p->draws, 16)) {
			r = section(g, p, lock);
			p->done += !r;
			continue;
		}
		v = guest_vcpu(g);
		guest_preempt_disable(v);
		v = guest_vcpu(g);
		struct smp_vcpu *target = smp_vcpu(
			p->s->vm, (uint32_t)rng_below(&p->draws, smp_vm_opts(p->s->vm)->vcpus));
		r = smp_call_function_many(v, &target, 1, 50, rng_below(&p->draws, 2));
		if (!r)
			r = guest_preempt_enable(v);
		p->done += !r;
	}
	return r;
}

#define MAX_THREADS 24

/* A digest of what came out. */
static uint64_t run(const char *lock, const char *ple, uint64_t seed, uint32_t ops, bool reference)
{
	struct program p[MAX_THREADS];
	uint32_t vcpus = 2 + (uint32_t)(seed % 7), threads = vcpus + (uint32_t)(seed % 3) * 4,
		 done = 0;
	uint64_t digest = 14695981039346656037ull;
	struct lock_scene s;

	lock_scene_open(&s, &(struct lock_scene_opts){.cpus = 1 + (uint32_t)(seed / 7 % 4),
						      .vcpus = vcpus,
						      .lock = lock,
						      .ple = ple,
						      .lock_price = 1,
						      .transfer = 10,
						      .exit = 20,
						      .entry = 20,
						      .hypercall = 5,
						      .wake = 10,
						      .host_hz = 10000,
						      .guest_hz = threads > vcpus ? 10000 : 0,
						      .reference = reference,
						      .kick_yields = seed & 1,
						      .steal_time = seed & 2,
						      .halt_poll_ns = seed & 4 ? 2000 : 0,
						      .seed = seed});
	for (uint32_t i = 0; i < threads; i++) {
		p[i] = (struct program){.s = &s, .ops = ops / threads};
		rng_init(&p[i].draws, seed, i, "program");
		lock_scene_thread(&s, play, &p[i], i < vcpus ? i : UINT32_MAX);
	}
	int r = lock_scene_run(&s);
	if (r)
		printf("%s, %s, seed %llu: %d\n", lock, ple ? ple : "", (unsigned long long)seed,
		       r);
	CU_ASSERT_EQUAL(r, 0);
	for (uint32_t i = 0; i < threads; i++)
		done += p[i].done;
	CU_ASSERT_EQUAL(done, threads * (ops / threads));
	for (int i = 0; i < LOCK_SCENE_LOCKS; i++) {
		const struct smp_lock_stats *st = &s.lock[i].stats;
		const uint64_t of[] = {st->acquired, st->contended, st->wait,
				       st->hold,     st->slowpath,  st->kicks};

		CU_ASSERT_PTR_NULL(s.lock[i].owner);
		for (size_t k = 0; k < 6; k++)
			digest = (digest ^ of[k]) * 1099511628211ull;
	}
	lock_scene_close(&s);
	return digest;
}

static void no_lost_kick(void)
{
	for (size_t i = 0; i < N_POLICIES; i++) {
		for (uint64_t seed = 1; seed <= 16; seed++)
			run(policies[i],
			    seed % 3 == 0   ? NULL
			    : seed % 3 == 1 ? "fixed,window=150,candidates=1"
					    : "window,window=100,candidates=3,ready=1",
			    seed, 3000, false);
	}
}

/* Without run-ahead everything comes out the same. */
static void reference(void)
{
	for (size_t i = 0; i < N_POLICIES; i++) {
		for (uint64_t seed = 1; seed <= 8; seed++) {
			const char *ple = seed % 2 ? "fixed,window=150,candidates=2" : NULL;

			CU_ASSERT_EQUAL(run(policies[i], ple, seed, 400, false),
					run(policies[i], ple, seed, 400, true));
		}
	}
}

/*
 * On a fair lock with n who want it, each gets it after at most n - 1 others: its wait is bounded
 * by their holds, what each may lose its CPU for, and what hand-overs cost, also where the vCPUs
 * are many more than the CPUs. On tas there is no such bound.
 */
struct greedy {
	struct lock_scene *s;
	uint64_t turns, least;
	bool stop;
};

static int want(struct guest_thread *g, void *arg)
{
	struct greedy *p = arg;
	int r = 0;

	for (uint64_t i = 0; !r && i < p->turns; i++) {
		struct smp_vcpu *v = guest_vcpu(g);

		r = smp_spin_lock(v, &p->s->lock[0]);
		if (!r)
			r = smp_work(v, 1000);
		if (!r)
			r = smp_spin_unlock(v, &p->s->lock[0]);
	}
	return r;
}

static void nobody_waits_for_ever(void)
{
	static const char *const fair[] = {"ticket", "pvticket,threshold=2000", "qspin",
					   "pvqspin,threshold=2000,stealing=0"};

	for (size_t i = 0; i < 4; i++) {
		struct lock_scene s;
		struct greedy p = {.s = &s, .turns = 200};

		lock_scene_open(&s, &(struct lock_scene_opts){.cpus = 2,
							      .vcpus = 8,
							      .lock = fair[i],
							      .ple = "fixed,window=500",
							      .host_hz = 1000,
							      .exit = 10,
							      .entry = 10});
		for (uint32_t k = 0; k < 8; k++)
			lock_scene_thread(&s, want, &p, k);
		CU_ASSERT_EQUAL(lock_scene_run(&s), 0);
		CU_ASSERT_EQUAL(s.lock[0].stats.acquired, 8 * 200);
		/* seven turns, of each 1000 and at most a period of the host's scheduler, 6 ms
		 * doubled for two CPUs, until it has its CPU again */
		CU_ASSERT(s.lock[0].stats.longest_wait <= 7 * (1000 + 12000000));
		lock_scene_close(&s);
	}
}

/* ---- reader-writer ---- */

struct rw {
	struct lock_scene *s;
	struct smp_rwlock *l;
	struct rng draws;
	uint32_t *readers, *writers, *together;
};

static int read_or_write(struct guest_thread *g, void *arg)
{
	struct rw *p = arg;
	int r = 0;

	for (int i = 0; !r && i < 300; i++) {
		struct smp_vcpu *v = guest_vcpu(g);
		const bool writes = !rng_below(&p->draws, 5);

		r = writes ? smp_write_lock(v, p->l) : smp_read_lock(v, p->l);
		if (r)
			break;
		(*(writes ? p->writers : p->readers))++;
		CU_ASSERT(*p->writers <= 1 && !(*p->writers && *p->readers));
		*p->together += *p->readers > 1;
		r = smp_work(v, rng_below(&p->draws, 500));
		if (!r)
			r = sync(smp_task(v));
		if (r)
			break;
		(*(writes ? p->writers : p->readers))--;
		r = writes ? smp_write_unlock(v, p->l) : smp_read_unlock(v, p->l);
		if (!r)
			r = guest_work(g, rng_below(&p->draws, 500));
	}
	return r;
}

static void rwlocks(void)
{
	static const struct smp_lock_class class = {"rwlock", "test"};

	for (size_t i = 0; i < N_POLICIES; i++) {
		uint32_t readers = 0, writers = 0, together = 0;
		struct smp_rwlock l;
		struct lock_scene s;
		struct rw p[8];

		lock_scene_open(&s, &(struct lock_scene_opts){.cpus = 3,
							      .vcpus = 8,
							      .lock = policies[i],
							      .ple = "fixed,window=500",
							      .transfer = 10,
							      .lock_price = 1,
							      .host_hz = 10000,
							      .exit = 10,
							      .entry = 10});
		CU_ASSERT_EQUAL(smp_rwlock_init(s.vm, &l, &class), 0);
		for (uint32_t k = 0; k < 8; k++) {
			p[k] = (struct rw){&s, &l, {{0}}, &readers, &writers, &together};
			rng_init(&p[k].draws, 3, k, "rw");
			lock_scene_thread(&s, read_or_write, &p[k], k);
		}
		CU_ASSERT_EQUAL(lock_scene_run(&s), 0);
		CU_ASSERT_EQUAL(l.stats[0].acquired + l.stats[1].acquired, 8 * 300);
		CU_ASSERT(together > 0);
		CU_ASSERT(l.stats[0].contended > 0 && l.stats[1].contended > 0);
		smp_rwlock_free(&l);
		lock_scene_close(&s);
	}
}

static CU_TestInfo tests[] = {
	{"random programs: no lost kick", no_lost_kick},
	{"random programs: reference mode", reference},
	{"nobody waits for ever", nobody_waits_for_ever},
	{"reader-writer locks", rwlocks},
	CU_TEST_INFO_NULL,
};

TEST_MAIN("lock_random", tests)
