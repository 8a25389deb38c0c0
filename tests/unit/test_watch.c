// SPDX-License-Identifier: GPL-3.0-or-later
/* Who made whom wait, by hand on locks and IPIs; ioctls and stalls of a VM against the ledger. */
#include <string.h>

#include "model/counts.h"
#include "model/guest/watch.h"
#include "model/host/ipi.h"
#include "model/host/lock.h"
#include "model/params.h"
#include "model/sim/ledger.h"
#include "model/sim/profile.h"
#include "tests/unit/harness.h"
#include "tests/unit/simple.h"
#include "tests/unit/vm_scene.h"

static struct profile *prices(void)
{
	static const char text[] = "[machine]\nunit = cycles\n[param]\nipi_latency = 7\n"
				   "[price]\ninsn = 1\n";
	struct profile *p = NULL;

	CU_ASSERT_EQUAL_FATAL(profile_parse(text, strlen(text), "watch", &model_vocabulary,
					    model_params, &simple_errors, &p),
			      0);
	return p;
}

/* ---- locks ---- */

static struct rwlock rw;
static const struct lock_class rw_class = {"rw", 2, LOCK_RWLOCK};

struct job {
	bool shared;
	uint16_t operation;
	cycles_t start, hold;
	struct task *task;
	struct host_watch seen; /* at its end */
};

static int work(struct task *t, void *arg)
{
	struct job *j = arg;
	int r;

	j->task = t;
	host_watch(t)->operation = j->operation;
	host_watch_waits(t);
	host_watch_holds(t, &rw.q);
	activity_enter(t, j->shared ? ACT_page_fault : ACT_get_dirty_log);
	r = j->shared ? read_lock(t, &rw) : write_lock(t, &rw);
	if (r)
		return r;
	charge(t, COUNT_insn, j->hold);
	if (j->shared)
		read_unlock(t, &rw);
	else
		write_unlock(t, &rw);
	j->seen = *host_watch(t);
	return 0;
}

/*
 * By hand: a holds 0..10; b, who came at 3, 10..30; c and d, who came at 5 and 6, read 30..31 and
 * 30..36; e, who came at 7, 36..38.
 */
static void locks_by_hand(void)
{
	struct job jobs[] = {{false, 1, 0, 10, NULL, {0}},
			     {false, 2, 3, 20, NULL, {0}},
			     {true, 3, 5, 1, NULL, {0}},
			     {true, 4, 6, 6, NULL, {0}},
			     {false, 5, 7, 2, NULL, {0}}};
	const struct {
		cycles_t waited;
		int by; /* the holder for longest of that */
	} expected[] = {{0, -1}, {7, 0}, {25, 1}, {24, 1}, {29, 1}};
	struct profile *p = prices();
	struct sim *s =
		simple_sim(&(struct sim_opts){.vocabulary = &model_vocabulary, .profile = p});

	rwlock_init(&rw, &rw_class);
	for (size_t i = 0; i < 5; i++)
		simple_task(s, (const char[2]){(char)('a' + i)}, work, &jobs[i], jobs[i].start);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	for (size_t i = 0; i < 5; i++) {
		const struct host_watch *w = &jobs[i].seen;

		CU_ASSERT_EQUAL(w->waited, expected[i].waited);
		CU_ASSERT_EQUAL(w->longest.cycles, expected[i].waited);
		CU_ASSERT_EQUAL(w->hold[jobs[i].shared], jobs[i].hold);
		CU_ASSERT_EQUAL(w->hold[!jobs[i].shared], 0);
		if (expected[i].by < 0) {
			CU_ASSERT_PTR_NULL(w->longest.by);
			continue;
		}
		CU_ASSERT_PTR_EQUAL(w->longest.by, jobs[expected[i].by].task);
		CU_ASSERT_EQUAL(w->longest.operation, jobs[expected[i].by].operation);
		CU_ASSERT_EQUAL(w->longest.activity, ACT_get_dirty_log);
		CU_ASSERT_EQUAL(w->longest.wait, WAIT_lock);
	}
	sim_destroy(s);
	profile_free(p);
}

static int waits_by_hand(struct task *t, void *arg)
{
	struct task **by = arg;

	host_watch_waits(t);
	host_waited(t, &(struct host_wait){.cycles = 5, .wait = 1, .by = by[1]});
	host_waited(t, &(struct host_wait){.cycles = 20, .wait = 2, .by = by[0]});
	host_waited(t, &(struct host_wait){.cycles = 20, .wait = 1, .by = by[1]});
	host_waited(t, &(struct host_wait){.cycles = 6, .wait = 1, .by = by[1]});
	CU_ASSERT_EQUAL(host_watch(t)->waited, 51);
	CU_ASSERT_EQUAL(host_watch(t)->longest.cycles, 20);
	CU_ASSERT_EQUAL(host_watch(t)->longest.wait, 2);
	CU_ASSERT_PTR_EQUAL(host_watch(t)->longest.by, by[0]);
	host_watch_waits(t);
	CU_ASSERT_EQUAL(host_watch(t)->waited, 0);
	CU_ASSERT_PTR_NULL(host_watch(t)->longest.by);
	return 0;
}

static int bystander(struct task *t, void *arg)
{
	(void)t;
	(void)arg;
	return 0;
}

/* Of several waits the longest has the blame, not the last; of two as long the first. */
static void longest_wait(void)
{
	struct profile *p = prices();
	struct sim *s =
		simple_sim(&(struct sim_opts){.vocabulary = &model_vocabulary, .profile = p});
	struct task *by[2];

	by[0] = simple_task(s, "a", bystander, NULL, 0);
	by[1] = simple_task(s, "b", bystander, NULL, 0);
	simple_task(s, "c", waits_by_hand, by, 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	sim_destroy(s);
	profile_free(p);
}

/* ---- IPIs ---- */

static struct task *targets[2];
static struct host_watch told[3];

static bool request(void *ctx, size_t i, struct task **task)
{
	(void)ctx;
	*task = targets[i];
	return true;
}

/* Looks for messages every 10 (target 0) or 25 cycles (target 1). */
static int target(struct task *t, void *arg)
{
	size_t i = *(const size_t *)arg;

	for (int k = 0; k < 4; k++) {
		charge(t, COUNT_insn, i ? 25 : 10);
		if (sync(t))
			return KVMSIM_ECANCELED;
		if (task_message_due(t)) {
			ipi_receive(t);
			told[i] = *host_watch(t);
			return 0;
		}
	}
	return 0;
}

static int sender(struct task *t, void *arg)
{
	(void)arg;
	host_watch(t)->operation = 6;
	activity_enter(t, ACT_tlb_flush);
	charge(t, COUNT_insn, 2);
	CU_ASSERT_EQUAL(ipi_call_many(t, request, NULL, 2, true), 2);
	told[2] = *host_watch(t);
	return 0;
}

/* Sent at 2, arrives at 9: target 0 sees it at 10, target 1 at 25, whom the sender has waited for.
 */
static void ipis_by_hand(void)
{
	static size_t ids[] = {0, 1};
	struct profile *p = prices();
	struct sim *s =
		simple_sim(&(struct sim_opts){.vocabulary = &model_vocabulary, .profile = p});
	struct task *from;

	memset(told, 0, sizeof(told));
	ipi_init(s);
	targets[0] = simple_task(s, "zero", target, &ids[0], 0);
	targets[1] = simple_task(s, "one", target, &ids[1], 0);
	from = simple_task(s, "from", sender, NULL, 0);
	CU_ASSERT_EQUAL(sim_run(s, CYCLES_MAX), 0);
	CU_ASSERT_EQUAL(told[0].interrupt.cycles, 1);
	CU_ASSERT_EQUAL(told[1].interrupt.cycles, 16);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_PTR_EQUAL(told[i].interrupt.by, from);
		CU_ASSERT_EQUAL(told[i].interrupt.operation, 6);
		CU_ASSERT_EQUAL(told[i].interrupt.activity, ACT_tlb_flush);
		CU_ASSERT_EQUAL(told[i].waited, 0);
	}
	CU_ASSERT_EQUAL(told[2].waited, 23);
	CU_ASSERT_EQUAL(told[2].longest.wait, WAIT_ipi);
	CU_ASSERT_PTR_EQUAL(told[2].longest.by, targets[1]);
	sim_destroy(s);
	profile_free(p);
}

/* ---- a VM ---- */

#define PAGES 600

static struct seen {
	struct task *vmm, *vcpu1;
	unsigned ioctls[N_KVM_OPERATIONS];
	cycles_t in_ioctls, longest_hold, waited, stalled, flushed;
	unsigned stalls, by_get, by_flush;
	bool ended;
} seen;

static void on_ioctl(void *ctx, const struct kvm_ioctl *i)
{
	(void)ctx;
	seen.ioctls[i->operation]++;
	seen.in_ioctls += i->cycles;
	if (i->hold > seen.longest_hold)
		seen.longest_hold = i->hold;
	CU_ASSERT_TRUE(!seen.vmm || i->task == seen.vmm);
	CU_ASSERT_EQUAL(i->hold_shared, 0);
	CU_ASSERT_TRUE(i->hold <= i->cycles);
}

static void on_stall(void *ctx, const struct kvm_stall *s)
{
	(void)ctx;
	if (s->vcpu != 1)
		return;
	seen.stalls++;
	seen.waited += s->waited;
	seen.stalled += s->cycles;
	CU_ASSERT_TRUE(s->waited <= s->cycles);
	CU_ASSERT_TRUE(s->why.cycles <= s->waited || !s->waited);
	if (s->why.by == seen.vmm && s->why.operation == KVM_OP_get) {
		seen.by_get++;
		seen.by_flush += !s->waited;
	}
}

static int second_vcpu(struct task *t, void *arg)
{
	struct scene *s = arg;
	int r = 0;

	seen.vcpu1 = t;
	vcpu_bind(s->vcpu[1], t);
	for (uint64_t i = 0; i < 8 * PAGES && !r; i++) {
		do
			r = vcpu_write(s->vcpu[1], SCENE_TEST + i % PAGES * 4096, 8, i);
		while (r == VCPU_RESTART);
		r = r ? r : vcpu_gap(s->vcpu[1], 20);
	}
	r = r ? r : vcpu_interrupt(s->vcpu[1]);
	seen.ended = true;
	return r;
}

static int collect(struct scene *s, struct task *t)
{
	struct task_opts o = {.name = "vcpu1", .fn = second_vcpu, .arg = s};
	uint64_t bitmap[(PAGES + 63) / 64];
	struct task *other;
	int r;

	seen.vmm = t;
	r = scene_log(s, t, true);
	o.start = task_now(t);
	r = r ? r : task_create(s->sim, &o, &other);
	while (!r && !seen.ended) {
		r = kvm_get_dirty_log(t, s->kvm, 1, bitmap) < 0;
		r = r ? r : task_block_until(t, WAIT_idle, task_now(t) + 3000);
		r = r < 0 ? r : sync(t);
	}
	return r ? r : scene_log(s, t, false);
}

/* What a vCPU waited for is in its stalls, to the cycle; what is there of ioctls, the VMM's. */
static void stalls_are_the_ledgers(void)
{
	static const struct kvm_watch watch = {.ioctl = on_ioctl, .stall = on_stall};
	static const struct {
		const char *preset;
		enum scene_pte pte;
		bool locks, flushes; /* it is held up by */
	} how[] = {{"6.1-shadow", SCENE_4K, true, false},
		   {"6.1-shadow", SCENE_FLAT, false, true}, /* faults without mmu_lock */
		   {"2.6.36", SCENE_4K, true, false}};

	for (int i = 0; i < 3; i++) {
		const struct scene_opts o = {.paging = PAGING_SHADOW,
					     .pte = how[i].pte,
					     .slot_pages = PAGES,
					     .n_vcpus = 2,
					     .preset = how[i].preset,
					     .watch = &watch,
					     .params = "ipi_latency = 100\n",
					     .check = true};
		const struct ledger *l;
		struct scene s;
		cycles_t waits;

		memset(&seen, 0, sizeof(seen));
		CU_ASSERT_EQUAL_FATAL(scene_open(&s, &o), 0);
		CU_ASSERT_EQUAL_FATAL(scene_run(&s, collect), 0);
		l = sim_ledger(s.sim);
		waits = ledger_sum_wait(l, task_id(seen.vcpu1), LEDGER_ALL_ACTIVITIES, WAIT_lock)
				.cycles +
			ledger_sum_wait(l, task_id(seen.vcpu1), LEDGER_ALL_ACTIVITIES, WAIT_ipi)
				.cycles;
		CU_ASSERT_EQUAL(seen.waited, waits);
		CU_ASSERT_EQUAL(seen.ioctls[KVM_OP_enable], 1);
		CU_ASSERT_EQUAL(seen.ioctls[KVM_OP_disable], 1);
		CU_ASSERT_EQUAL(seen.ioctls[KVM_OP_memslot], 2);
		CU_ASSERT_EQUAL(seen.ioctls[KVM_OP_get],
				ledger_sum_count(l, LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES,
						 COUNT_get_dirty_log)
					.n);
		CU_ASSERT_TRUE(seen.by_get > 0);
		CU_ASSERT_TRUE(!how[i].locks || seen.by_get > seen.by_flush);
		CU_ASSERT_TRUE(!how[i].flushes || seen.by_flush > 0);
		CU_ASSERT_TRUE(seen.longest_hold > 0);
		CU_ASSERT_TRUE(seen.longest_hold <= kvm_mmu_lock_stats(s.kvm).longest_hold);
		scene_close(&s);
	}
}

static CU_TestInfo tests[] = {{"locks_by_hand", locks_by_hand},
			      {"longest_wait", longest_wait},
			      {"ipis_by_hand", ipis_by_hand},
			      {"stalls_are_the_ledgers", stalls_are_the_ledgers},
			      CU_TEST_INFO_NULL};
TEST_MAIN("watch", tests)
