// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "model/sim/rng.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"
#include "tests/unit/smp_scene.h"

/* A guest's scheduler, its sleeping locks and wait queues. */

static const uint32_t own_cpus[] = {0, 1, 2, 3};

#define ANY UINT32_MAX
#define MS  1000000ull

struct job {
	struct smp_scene *s;
	struct guest_thread *thread, *other;
	cycles_t work, at, end;
	uint32_t vcpu;
	int result;
};

static cycles_t now(const struct guest_thread *g)
{
	return task_now(smp_task(guest_vcpu(g)));
}

static int work(struct guest_thread *g, void *arg)
{
	struct job *j = arg;
	int r = guest_work(g, j->work);

	if (r)
		return r;
	j->end = now(g);
	j->vcpu = smp_vcpu_id(guest_vcpu(g));
	return 0;
}

static cycles_t sum(const struct guest_thread *g)
{
	struct guest_thread_stats s = guest_thread_stats(g);

	return s.run + s.runnable + s.asleep;
}

/* Two on one vCPU share it by the tick; without one the first runs to its end. */
static void test_tick(void)
{
	for (unsigned hz = 0; hz <= 1000; hz += 1000) {
		struct job a = {.work = 100 * MS}, b = {.work = 100 * MS};
		struct smp_scene s;
		uint64_t switches;

		smp_scene_open(&s, 1, &(struct smp_opts){.vcpus = 1, .guest_hz = hz}, false);
		a.thread = smp_scene_thread(&s, work, &a, ANY);
		b.thread = smp_scene_thread(&s, work, &b, ANY);
		CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
		switches = guest_thread_stats(a.thread).switches;
		if (hz) {
			/* Slices of 3 ms, from tick to tick: 4 ms, of 100. */
			CU_ASSERT_TRUE(switches >= 23 && switches <= 34);
			CU_ASSERT_TRUE(a.end > 190 * MS && b.end > 190 * MS);
			CU_ASSERT_TRUE(smp_vcpu_stats(smp_vcpu(s.vm, 0)).ticks >= 199);
		} else {
			CU_ASSERT_EQUAL(switches, 1);
			CU_ASSERT_EQUAL(a.end, ENTRY + SWITCH + 100 * MS);
			CU_ASSERT_EQUAL(b.end, a.end + SWITCH + 100 * MS);
		}
		CU_ASSERT_EQUAL(sum(a.thread), a.end + SWITCH);
		CU_ASSERT_EQUAL(sum(b.thread), b.end + SWITCH);
		smp_scene_close(&s);
	}
}

/* Each tick of a busy vCPU costs an exit, an injected interrupt and its handler. */
static void test_tick_cost(void)
{
	struct job a = {.work = 10 * MS};
	struct smp_scene s;
	const cycles_t tick = EXIT + INJECT + ENTRY + IRQ + TICK;

	smp_scene_open(&s, 2, &(struct smp_opts){.pin = own_cpus, .guest_hz = 1000}, false);
	smp_scene_thread(&s, work, &a, 0);
	CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(a.end, ENTRY + SWITCH + 10 * MS + 10 * tick);
	CU_ASSERT_EQUAL(smp_vcpu_stats(smp_vcpu(s.vm, 0)).ticks, 10);
	CU_ASSERT_EQUAL(smp_vcpu_stats(smp_vcpu(s.vm, 1)).ticks, 0);
	smp_scene_close(&s);
}

/* A vCPU that has nothing to do takes one that waits, unless that is to stay. */
static void test_pull(void)
{
	for (unsigned pinned = 0; pinned < 2; pinned++) {
		struct job a = {.work = 1000}, b[2] = {{.work = 50000}, {.work = 50000}};
		struct smp_scene s;

		smp_scene_open(&s, 2, &(struct smp_opts){.pin = own_cpus}, false);
		smp_scene_thread(&s, work, &a, 0);
		for (unsigned i = 0; i < 2; i++)
			smp_scene_thread(&s, work, &b[i], pinned ? 1 : ANY);
		CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
		if (pinned) {
			CU_ASSERT_TRUE(b[0].vcpu == 1 && b[1].vcpu == 1);
			CU_ASSERT_TRUE(b[1].end > 100000);
		} else {
			CU_ASSERT_NOT_EQUAL(b[0].vcpu, b[1].vcpu);
			CU_ASSERT_TRUE(b[0].end < 60000 && b[1].end < 60000);
		}
		smp_scene_close(&s);
	}
}

static int sleep_once(struct guest_thread *g, void *arg)
{
	struct job *j = arg;
	int r = guest_work(g, j->work);

	if (!r)
		r = guest_sleep(g);
	j->end = r ? 0 : now(g);
	return r;
}

static int wake_other(struct guest_thread *g, void *arg)
{
	struct job *j = arg;
	int r = guest_work(g, j->work);

	j->at = r ? 0 : now(g);
	if (!r)
		r = guest_wake(guest_vcpu(g), j->other);
	j->end = r ? 0 : now(g);
	return r;
}

/* From a wake-up by another vCPU to the sleeper's next instruction. */
static void test_wake(void)
{
	for (unsigned before = 0; before < 2; before++) {
		struct job a = {.work = before ? 10 : 10000}, b = {.work = before ? 10000 : 10};
		struct smp_scene s;
		struct guest_thread_stats st;

		smp_scene_open(&s, 2, &(struct smp_opts){.pin = own_cpus}, false);
		a.other = b.thread = smp_scene_thread(&s, sleep_once, &b, 1);
		smp_scene_thread(&s, wake_other, &a, 0);
		CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
		st = guest_thread_stats(b.thread);
		if (before) {
			CU_ASSERT_EQUAL(a.end, a.at + WAKE);
			CU_ASSERT_EQUAL(b.end, ENTRY + SWITCH + 10000 + SWITCH);
			CU_ASSERT_EQUAL(st.asleep, 0);
		} else {
			cycles_t sent = a.at + WAKE + EXIT + IPI;

			CU_ASSERT_EQUAL(a.end, sent + HOST_WAKE + ENTRY);
			CU_ASSERT_EQUAL(b.end,
					sent + HOST_WAKE + LATENCY + INJECT + ENTRY + IRQ + SWITCH);
			CU_ASSERT_EQUAL(st.asleep, a.at + WAKE - (ENTRY + SWITCH + 10 + SWITCH));
			CU_ASSERT_EQUAL(st.switches, 2);
		}
		CU_ASSERT_EQUAL(sum(b.thread), b.end + SWITCH);
		smp_scene_close(&s);
	}
}

static int sleep_until(struct guest_thread *g, void *arg)
{
	struct job *j = arg;

	j->result = guest_sleep_until(g, j->work);
	if (j->result < 0)
		return j->result;
	j->end = now(g);
	return 0;
}

static void test_sleep_until(void)
{
	struct job a = {.work = 5000}, b = {.work = 50000}, c = {.work = 20000};
	struct smp_scene s;

	smp_scene_open(&s, 2, &(struct smp_opts){.pin = own_cpus}, false);
	smp_scene_thread(&s, sleep_until, &a, 0);
	c.other = smp_scene_thread(&s, sleep_until, &b, 0);
	smp_scene_thread(&s, wake_other, &c, 1);
	CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(a.result, 0);
	/* The host's timer wakes the vCPU. */
	CU_ASSERT_TRUE(a.end >= 5000 && a.end < 5000 + 3 * LATENCY);
	CU_ASSERT_EQUAL(b.result, 1);
	CU_ASSERT_TRUE(b.end > c.at && b.end < c.at + 4 * LATENCY);
	smp_scene_close(&s);
}

/* ---- mutexes ---- */

struct shared {
	struct guest_mutex *m;
	struct guest_waitq *q;
	unsigned inside, most, done, rounds;
	unsigned *turns, *waiting_since, entries, longest; /* other entries while one waited */
};

struct user {
	struct shared *sh;
	struct rng rng;
	cycles_t gap, hold;
	unsigned entries;
};

static int use(struct guest_thread *g, void *arg)
{
	struct user *u = arg;
	struct shared *sh = u->sh;
	int r = 0;

	for (unsigned i = 0; !r && i < sh->rounds; i++) {
		unsigned from;

		r = guest_work(g, 1 + rng_below(&u->rng, 2 * u->gap));
		if (!r)
			r = sync(smp_task(guest_vcpu(g)));
		if (r)
			break;
		from = sh->entries;
		r = guest_mutex_lock(g, sh->m);
		if (r)
			break;
		if (sh->entries - from > sh->longest)
			sh->longest = sh->entries - from;
		sh->entries++;
		if (++sh->inside > sh->most)
			sh->most = sh->inside;
		r = guest_work(g, 1 + rng_below(&u->rng, 2 * u->hold));
		if (!r)
			r = sync(smp_task(guest_vcpu(g)));
		sh->inside--;
		if (!r)
			r = guest_mutex_unlock(g, sh->m);
		u->entries++;
	}
	return r;
}

struct mutex_run {
	uint32_t cpus, vcpus, threads;
	bool spin, steal_time, reference;
	unsigned rounds;
	cycles_t gap, hold;
	/* Results. */
	cycles_t end;
	struct smp_lock_stats stats;
	struct shared sh;
};

static void run_mutex(struct mutex_run *m)
{
	struct user *u = calloc(m->threads, sizeof(*u));
	struct guest_thread **g = calloc(m->threads, sizeof(struct guest_thread *));
	struct smp_scene s;

	smp_scene_open(&s, m->cpus,
		       &(struct smp_opts){
			       .vcpus = m->vcpus, .guest_hz = 1000, .steal_time = m->steal_time},
		       m->reference);
	m->sh = (struct shared){.rounds = m->rounds};
	CU_ASSERT_EQUAL_FATAL(guest_mutex_create(s.vm, "m", m->spin, &m->sh.m), 0);
	for (uint32_t i = 0; i < m->threads; i++) {
		char name[16];

		snprintf(name, sizeof(name), "u%u", i);
		u[i] = (struct user){.sh = &m->sh, .gap = m->gap, .hold = m->hold};
		rng_init(&u[i].rng, 1, 0, name);
		g[i] = smp_scene_thread(&s, use, &u[i], ANY);
	}
	CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
	m->end = 0;
	for (uint32_t i = 0; i < m->threads; i++) {
		CU_ASSERT_EQUAL(u[i].entries, m->rounds);
		if (sum(g[i]) > m->end)
			m->end = sum(g[i]);
	}
	CU_ASSERT_EQUAL(m->sh.most, 1);
	m->stats = guest_mutex_stats(m->sh.m);
	CU_ASSERT_EQUAL(m->stats.acquired, (uint64_t)m->threads * m->rounds);
	smp_scene_close(&s);
	guest_mutex_destroy(m->sh.m);
	free(u);
	free(g);
}

/* Threads, vCPUs and CPUs: as many of each; too few CPUs; too few vCPUs. */
static void test_mutex(void)
{
	static const uint32_t cpus[] = {4, 2, 4}, threads[] = {4, 4, 7};

	for (unsigned i = 0; i < 12; i++) {
		struct mutex_run m = {.cpus = cpus[i / 4],
				      .vcpus = 4,
				      .threads = threads[i / 4],
				      .spin = i & 1,
				      .steal_time = i & 2,
				      .rounds = 1500,
				      .gap = 2000,
				      .hold = 700};

		run_mutex(&m);
		CU_ASSERT_TRUE(m.stats.hold >= m.stats.longest_hold);
		if (i >= 4)
			continue;
		CU_ASSERT_TRUE(m.stats.contended > 1000);
		/* Who was woken in vain asks for the hand-off: until then the three others may have
		 * their turn once, while it wakes up twice, and those before it sleep as well. */
		CU_ASSERT_TRUE(m.sh.longest <= 12);
		if (!m.spin)
			CU_ASSERT_TRUE(m.stats.slowpath > 1000);
	}
}

/* While all fits on the CPUs and holds are short, spinning beats sleeping. */
static void test_mutex_spin(void)
{
	struct mutex_run spin = {.cpus = 4,
				 .vcpus = 4,
				 .threads = 4,
				 .spin = true,
				 .rounds = 2000,
				 .gap = 1000,
				 .hold = 300};
	struct mutex_run sleep = spin;

	sleep.spin = false;
	run_mutex(&spin);
	run_mutex(&sleep);
	CU_ASSERT_TRUE(spin.stats.slowpath < sleep.stats.slowpath / 10);
	CU_ASSERT_TRUE(spin.end < sleep.end);
}

/* ---- wait queues ---- */

struct ring {
	struct guest_waitq *filled, *emptied;
	unsigned n, room, produced, consumed, total;
};

static int produce(struct guest_thread *g, void *arg)
{
	struct ring *q = arg;
	int r = 0;

	while (!r && q->produced < q->total) {
		r = guest_work(g, 100);
		if (!r)
			r = sync(smp_task(guest_vcpu(g)));
		while (!r && q->n == q->room)
			r = guest_wait(g, q->emptied);
		if (r || q->produced == q->total)
			break;
		q->n++;
		q->produced++;
		r = guest_wake_up(g, q->filled, 1);
	}
	return r;
}

static int consume(struct guest_thread *g, void *arg)
{
	struct ring *q = arg;
	int r = 0;

	while (!r) {
		r = sync(smp_task(guest_vcpu(g)));
		while (!r && !q->n && q->consumed < q->total)
			r = guest_wait(g, q->filled);
		if (r || q->consumed == q->total)
			break;
		q->n--;
		if (++q->consumed == q->total)
			return guest_wake_up(g, q->filled, UINT32_MAX);
		r = guest_wake_up(g, q->emptied, 1);
		if (!r)
			r = guest_work(g, 130);
	}
	return r;
}

/* A bounded buffer between 5 and 6 threads on 4 vCPUs on 1 to 4 CPUs: a lost wake-up is a deadlock.
 */
static void test_waitq(void)
{
	for (uint32_t cpus = 1; cpus <= 4; cpus++) {
		struct ring q = {.room = 2, .total = 20000};
		struct smp_scene s;

		smp_scene_open(&s, cpus, &(struct smp_opts){.vcpus = 4, .guest_hz = 250}, false);
		CU_ASSERT_EQUAL_FATAL(guest_waitq_create(s.vm, "filled", &q.filled), 0);
		CU_ASSERT_EQUAL_FATAL(guest_waitq_create(s.vm, "emptied", &q.emptied), 0);
		smp_scene_thread(&s, produce, &q, ANY);
		for (unsigned i = 0; i < 6; i++)
			smp_scene_thread(&s, consume, &q, ANY);
		CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
		CU_ASSERT_EQUAL(q.consumed, q.total);
		smp_scene_close(&s);
		guest_waitq_destroy(q.filled);
		guest_waitq_destroy(q.emptied);
	}
}

CU_TestInfo tests[] = {
	{"ticks", test_tick},
	{"what a tick costs", test_tick_cost},
	{"pulling", test_pull},
	{"wake-ups", test_wake},
	{"sleep until", test_sleep_until},
	{"mutex", test_mutex},
	{"mutex: spinning", test_mutex_spin},
	{"wait queues", test_waitq},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("test_smp_threads", tests)
