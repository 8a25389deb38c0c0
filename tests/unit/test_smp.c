// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"
#include "tests/unit/smp_scene.h"

/* Timelines of vCPUs, computed by hand from the scene's prices. */

static const uint32_t own_cpus[] = {0, 1, 2, 3}, one_cpu[] = {0, 0, 0, 0};

/* Each vCPU enters the guest, finds a thread and switches to it. */
#define START (ENTRY + SWITCH)

struct job {
	struct smp_vcpu *other;
	struct guest_thread *thread;
	cycles_t work, at, end;
	bool irqs_off, early;
};

static cycles_t now(const struct guest_thread *g)
{
	return task_now(smp_task(guest_vcpu(g)));
}

static int work(struct guest_thread *g, void *arg)
{
	struct job *j = arg;
	int r = guest_work(g, j->work);

	j->end = r ? 0 : now(g);
	return r;
}

static void test_work(void)
{
	struct job a = {.work = 1000}, b = {.work = 500};
	struct smp_scene s;

	smp_scene_open(&s, 2, &(struct smp_opts){.pin = own_cpus}, false);
	smp_scene_thread(&s, work, &a, 0);
	smp_scene_thread(&s, work, &b, 1);
	CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(a.end, START + 1000);
	CU_ASSERT_EQUAL(b.end, START + 500);
	CU_ASSERT_EQUAL(smp_vcpu_stats(smp_vcpu(s.vm, 0)).steal, 0);
	/* With nothing left to do it halts. */
	CU_ASSERT_EQUAL(smp_vcpu_stats(smp_vcpu(s.vm, 1)).exits, 1);
	CU_ASSERT_EQUAL(smp_vcpu_stats(smp_vcpu(s.vm, 1)).halt_exits, 1);
	smp_scene_close(&s);
}

static int kick(struct guest_thread *g, void *arg)
{
	struct job *j = arg;
	int r = guest_work(g, j->work);

	j->at = r ? 0 : now(g);
	if (!r)
		r = smp_kick_cpu(guest_vcpu(g), j->other);
	j->end = r ? 0 : now(g);
	return r;
}

static int halt(struct guest_thread *g, void *arg)
{
	struct job *j = arg;
	int r = guest_work(g, j->work);

	if (!r && j->irqs_off)
		smp_irq_save(guest_vcpu(g));
	if (!r)
		r = smp_halt(guest_vcpu(g));
	j->end = r ? 0 : now(g);
	if (!r && j->irqs_off)
		r = smp_irq_restore(guest_vcpu(g), true);
	return r;
}

/* A kick wakes who halts, irqs off or on; one that comes before is there when it halts. */
static void test_kick(void)
{
	for (unsigned i = 0; i < 4; i++) {
		bool before = i & 1;
		struct job k = {.work = before ? 100 : 1000};
		struct job h = {.work = before ? 1000 : 100, .irqs_off = i & 2};
		struct smp_vcpu_stats st;
		struct smp_scene s;
		cycles_t kicked;

		smp_scene_open(&s, 2, &(struct smp_opts){.pin = own_cpus}, false);
		k.other = smp_vcpu(s.vm, 1);
		smp_scene_thread(&s, kick, &k, 0);
		smp_scene_thread(&s, halt, &h, 1);
		CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
		kicked = START + k.work + EXIT + HYPERCALL;
		st = smp_vcpu_stats(smp_vcpu(s.vm, 1));
		if (before) { /* it runs: the host's IPI makes it exit, for nothing */
			CU_ASSERT_EQUAL(k.end, kicked + ENTRY);
			CU_ASSERT_EQUAL(h.end, START + h.work + EXIT + ENTRY + EXIT + ENTRY);
			CU_ASSERT_EQUAL(st.irq_exits, 1);
			CU_ASSERT_EQUAL(st.halt_wakeups, 0);
			CU_ASSERT_EQUAL(st.halted, 0);
		} else {
			CU_ASSERT_EQUAL(k.end, kicked + HOST_WAKE + ENTRY);
			/* An idle CPU of the host's gets an IPI to run it. */
			CU_ASSERT_EQUAL(h.end, kicked + HOST_WAKE + LATENCY + ENTRY);
			CU_ASSERT_EQUAL(st.halt_wakeups, 1);
		}
		CU_ASSERT_EQUAL(st.irqs, 0);
		smp_scene_close(&s);
	}
}

static int send(struct guest_thread *g, void *arg)
{
	struct job *j = arg;
	int r = guest_work(g, j->work);

	j->at = r ? 0 : now(g);
	if (!r)
		r = smp_send_reschedule(guest_vcpu(g), j->other);
	j->end = r ? 0 : now(g);
	return r;
}

/* A running vCPU is interrupted the IPI's latency after it was sent; with irqs off it has what it
 * finds pending when they go on again. */
static void test_ipi_running(void)
{
	struct job a = {.work = 1000}, b = {.work = 5000};
	struct smp_scene s;

	for (unsigned apicv = 0; apicv < 2; apicv++) {
		smp_scene_open(&s, 2, &(struct smp_opts){.pin = own_cpus, .apicv = apicv}, false);
		a.other = smp_vcpu(s.vm, 1);
		smp_scene_thread(&s, send, &a, 0);
		smp_scene_thread(&s, work, &b, 1);
		CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
		CU_ASSERT_EQUAL(a.end, a.at + IPI + (apicv ? 0 : EXIT + ENTRY));
		CU_ASSERT_EQUAL(b.end, START + 5000 + IRQ + (apicv ? 0 : EXIT + INJECT + ENTRY));
		CU_ASSERT_EQUAL(smp_vcpu_stats(a.other).irqs, 1);
		smp_scene_close(&s);
	}
}

struct off {
	cycles_t before, off, handled, end;
};

static int work_off(struct guest_thread *g, void *arg)
{
	struct off *o = arg;
	struct smp_vcpu *v = guest_vcpu(g);
	int r = smp_work(v, o->before);
	bool was = smp_irq_save(v);

	if (!r)
		r = smp_work(v, o->off);
	o->handled = smp_vcpu_stats(v).irqs;
	if (!r)
		r = smp_irq_restore(v, was);
	o->end = r ? 0 : now(g);
	return r;
}

static void test_ipi_irqs_off(void)
{
	struct job a = {.work = 1000};
	struct off o = {.before = 100, .off = 5000};
	struct smp_scene s;

	smp_scene_open(&s, 2, &(struct smp_opts){.pin = own_cpus}, false);
	a.other = smp_vcpu(s.vm, 1);
	smp_scene_thread(&s, send, &a, 0);
	smp_scene_thread(&s, work_off, &o, 1);
	CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(o.handled, 0);
	/* One exit by the host's IPI, one as soon as it can take the interrupt. */
	CU_ASSERT_EQUAL(o.end, START + 5100 + EXIT + ENTRY + EXIT + INJECT + ENTRY + IRQ);
	CU_ASSERT_EQUAL(smp_vcpu_stats(a.other).irqs, 1);
	smp_scene_close(&s);
}

/* An idle vCPU, asleep in the host: woken, injected at its entry. */
static void test_ipi_halted(void)
{
	struct job a = {.work = 1000}, b = {.work = 100000};
	struct smp_scene s;
	struct smp_vcpu_stats st;
	cycles_t woken;

	smp_scene_open(&s, 2, &(struct smp_opts){.pin = own_cpus}, false);
	a.other = smp_vcpu(s.vm, 1);
	smp_scene_thread(&s, send, &a, 0);
	smp_scene_thread(&s, work, &b, 0);
	CU_ASSERT_EQUAL(smp_scene_run(&s, 50000), 0);
	CU_ASSERT_EQUAL(a.end, a.at + EXIT + IPI + HOST_WAKE + ENTRY);
	st = smp_vcpu_stats(a.other);
	CU_ASSERT_EQUAL(st.irqs, 1);
	CU_ASSERT_EQUAL(st.halt_wakeups, 1);
	CU_ASSERT_EQUAL(st.halt_exits, 2);
	/* Asleep from its first exit until its CPU had the IPI. */
	woken = a.at + EXIT + IPI + HOST_WAKE + LATENCY;
	CU_ASSERT_EQUAL(st.halted, woken - (ENTRY + EXIT));
	smp_scene_close(&s);
}

/* With irqs off a halt goes on when an interrupt comes: only a kick ends it. */
static void test_halt_irqs_off(void)
{
	struct job a = {.work = 1000}, h = {.work = 100, .irqs_off = true}, k = {.work = 4000};
	struct smp_scene s;

	smp_scene_open(&s, 3, &(struct smp_opts){.vcpus = 3, .pin = own_cpus}, false);
	a.other = k.other = smp_vcpu(s.vm, 1);
	smp_scene_thread(&s, send, &a, 0);
	smp_scene_thread(&s, halt, &h, 1);
	smp_scene_thread(&s, kick, &k, 2);
	CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(h.end, k.at + EXIT + HYPERCALL + HOST_WAKE + LATENCY + ENTRY);
	CU_ASSERT_EQUAL(smp_vcpu_stats(a.other).irqs, 1);
	smp_scene_close(&s);
}

/* Sends to the one of vCPUs 0 and 1, which share a CPU, that has none. */
static int send_preempted(struct guest_thread *g, void *arg)
{
	struct job *j = arg;
	struct smp_vm *vm = guest_vm(g);
	int r = guest_work(g, j->work);

	if (!r)
		r = sync(smp_task(guest_vcpu(g)));
	if (r)
		return r;
	j->work = 0;
	j->other = smp_vcpu(vm, sched_on_cpu(smp_thread(smp_vcpu(vm, 0))));
	return send(g, arg);
}

/* A preempted vCPU has the interrupt at its next entry: no exit for it, nothing before. */
static void test_ipi_preempted(void)
{
	static const uint32_t pin[] = {0, 0, 1};
	struct job a = {.work = 20000000}, b = {.work = 20000000}, c = {.work = 500000};
	struct smp_scene s;
	struct smp_vcpu_stats st;

	smp_scene_open(&s, 2, &(struct smp_opts){.vcpus = 3, .pin = pin, .steal_time = true},
		       false);
	smp_scene_thread(&s, work, &a, 0);
	smp_scene_thread(&s, work, &b, 1);
	smp_scene_thread(&s, send_preempted, &c, 2);
	CU_ASSERT_EQUAL(smp_scene_run(&s, 502000), 0);
	st = smp_vcpu_stats(c.other);
	CU_ASSERT_EQUAL(st.irqs, 0);
	CU_ASSERT_EQUAL(c.end, c.at + EXIT + IPI + ENTRY);
	CU_ASSERT_EQUAL(smp_scene_run(&s, CYCLES_MAX), 0);
	st = smp_vcpu_stats(c.other);
	CU_ASSERT_EQUAL(st.irqs, 1);
	/* All its exits but halts were to give way to the other. */
	CU_ASSERT_EQUAL(st.exits, st.preemptions + st.halt_exits);
	smp_scene_close(&s);
}

/* Two that are always busy have half a CPU each; what the guest sees as stolen is what the host's
 * scheduler says that they waited. */
static void test_steal(void)
{
	struct job a = {.work = 2000000000}, b = {.work = 2000000000};
	const cycles_t until = 1000000000;
	struct smp_scene s;

	smp_scene_open(&s, 1, &(struct smp_opts){.pin = one_cpu, .steal_time = true}, false);
	smp_scene_thread(&s, work, &a, 0);
	smp_scene_thread(&s, work, &b, 1);
	CU_ASSERT_EQUAL(smp_scene_run(&s, until), 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct smp_vcpu *v = smp_vcpu(s.vm, i);
		cycles_t delay = sched_thread_stats(smp_thread(v)).run_delay;
		cycles_t steal = smp_vcpu_stats(v).steal;

		CU_ASSERT_TRUE(delay > until / 100 * 49 && delay < until / 100 * 51);
		CU_ASSERT_TRUE(steal <= delay && delay - steal < 20000000);
		CU_ASSERT_TRUE(smp_vcpu_stats(v).preemptions > 20);
	}
	CU_ASSERT_NOT_EQUAL(smp_vcpu_is_preempted(smp_vcpu(s.vm, 0)),
			    smp_vcpu_is_preempted(smp_vcpu(s.vm, 1)));
	smp_scene_close(&s);
}

CU_TestInfo tests[] = {
	{"work", test_work},
	{"kicks", test_kick},
	{"IPI to a running vCPU", test_ipi_running},
	{"IPI with irqs off", test_ipi_irqs_off},
	{"IPI to a halted vCPU", test_ipi_halted},
	{"halt with irqs off", test_halt_irqs_off},
	{"IPI to a preempted vCPU", test_ipi_preempted},
	{"steal time", test_steal},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("test_smp", tests)
