// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/counts.h"
#include "model/guest/vcpu_tlb.h"
#include "model/sim/ledger.h"
#include "model/sim/rng.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

/*
 * Random programs of several vCPUs with harvests going on. Running ahead must give what the slow
 * reference mode gives, to the last count and cycle; no store may be lost; the structures must
 * agree with one another in the end.
 */
#define EQ CU_ASSERT_EQUAL

#define PROGRAM_OPS 120
#define HARVESTS    6
#define SLOT_PAGES  640

struct program {
	struct scene_opts o;
	uint64_t seed;
	struct task *vmm;
	unsigned running;
	uint64_t digest; /* of everything that was seen */
	int check;
	uint64_t lost;
};

static struct program *prog;

static void mix(struct program *p, uint64_t x)
{
	p->digest = (p->digest ^ x) * 0x100000001b3ull; /* FNV-1a by words */
}

static uint64_t random_address(struct rng *r)
{
	uint64_t page = rng_below(r, 8) ? rng_below(r, 48) : rng_below(r, SLOT_PAGES);

	return SCENE_TEST + (page << 12) + 8 * rng_below(r, 512);
}

/* One random instruction, restarted until it retires. */
static int random_insn(struct kvm_vcpu *v, struct rng *r)
{
	uint64_t kind = rng_below(r, 100), a = random_address(r), value;
	int err;

	do {
		err = vcpu_fetch(v, SCENE_CODE);
		if (err)
			continue;
		if (kind < 35)
			err = vcpu_read(v, a, 8, &value);
		else if (kind < 80)
			err = vcpu_write(v, a, 8, kind);
		else if (kind < 85)
			err = vcpu_rmw(v, a, 4, kind);
		else if (kind < 88) /* across a page's end */
			err = vcpu_write(v, (a | 0xfff) - 2, 8, kind);
		else if (kind < 90)
			err = vcpu_invlpg(v, a);
		else if (kind < 92)
			err = vcpu_mov_cr3(v, SCENE_PML4);
		else if (kind < 93)
			err = vcpu_out(v, 0x10);
		else
			err = vcpu_gap(v, 1 + kind * kind % 700);
	} while (err == VCPU_RESTART);
	return err == VCPU_USERSPACE ? 0 : err;
}

static int vcpu_thread(struct task *t, void *arg)
{
	struct kvm_vcpu *v = arg;
	struct program *p = prog;
	char name[32];
	struct rng r;
	int err = 0;

	snprintf(name, sizeof(name), "vcpu %u", vcpu_id(v));
	rng_init(&r, p->seed, 0, name);
	vcpu_bind(v, t);
	for (unsigned i = 0; i < PROGRAM_OPS && !err; i++) {
		err = vcpu_gap(v, rng_below(&r, 40));
		err = err ? err : random_insn(v, &r);
	}
	err = err ? err : vcpu_interrupt(v);
	if (!err && sync(t) == 0) {
		mix(p, task_now(t));
		if (!--p->running)
			task_wake(p->vmm, task_now(t));
	}
	return err;
}

static int migration(struct scene *s, struct task *t)
{
	struct program *p = prog;
	uint64_t bitmap[SLOT_PAGES / 64];
	struct task *other;
	struct rng r;
	int err = 0;

	rng_init(&r, p->seed, 0, "vmm");
	p->vmm = t;
	p->running = p->o.n_vcpus;
	for (unsigned i = 0; i < p->o.n_vcpus && !err; i++) {
		const struct task_opts to = {
			.name = "vcpu", .fn = vcpu_thread, .arg = s->vcpu[i], .start = task_now(t)};

		err = task_create(s->sim, &to, &other);
	}
	for (unsigned i = 0; i < HARVESTS && !err; i++) {
		long n;

		err = task_block_until(t, WAIT_idle, task_now(t) + 200 + rng_below(&r, 3000));
		if (err < 0)
			break;
		if (i == 2) { /* off and on again under way */
			err = scene_log(s, t, false);
			err = err ? err : scene_log(s, t, true);
			continue;
		}
		if (i < 2 && !p->o.slot_flags)
			continue; /* not logged yet */
		n = kvm_get_dirty_log(t, s->kvm, 1, bitmap);
		err = n < 0 ? (int)n : 0;
		mix(p, n);
		mix(p, task_now(t));
		for (unsigned j = 0; j < SLOT_PAGES / 64 && !err; j++)
			mix(p, bitmap[j]);
	}
	while (!err && p->running)
		err = task_block(t, WAIT_idle);
	return err;
}

static void add_ledger(void *ctx, uint32_t task, uint16_t activity, bool is_wait, uint16_t id,
		       struct ledger_entry e)
{
	mix(ctx, (uint64_t)task << 40 | (uint64_t)activity << 20 | (uint64_t)is_wait << 16 | id);
	mix(ctx, e.n);
	mix(ctx, e.cycles);
}

static int run_program(struct program *p)
{
	struct scene s;
	int r;

	prog = p;
	p->digest = 0xcbf29ce484222325ull;
	r = scene_open(&s, &p->o);
	r = r ? r : scene_run(&s, migration);
	ledger_for_each(sim_ledger(s.sim), add_ledger, p);
	for (int i = 0; i < N_KVM_STATS; i++)
		mix(p, kvm_stat(s.kvm, i));
	p->check = r ? r : kvm_check(s.kvm);
	p->lost = kvm_lost_stores(s.kvm);
	scene_close(&s);
	return r;
}

static void vary(struct program *p, uint64_t seed)
{
	static const char *const policies[] = {"mask", "walk", "rmap-slot", "hybrid"};
	static const char *const cpus[] = {"tcg", "amd", "intel", "intel-haswell", "intel-nehalem"};
	static const char *const params[] = {"ipi_latency = 0\n", "ipi_latency = 7\n",
					     "ipi_latency = 400\n",
					     "ipi_latency = 2000\nl2_bytes = 4096\nl2_ways = 4\n"};

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	p->o = (struct scene_opts){
		.paging = seed % 3 == 2 ? PAGING_TDP : PAGING_SHADOW,
		.pte = seed % 3 == 0 ? SCENE_4K
		       : seed % 5    ? SCENE_2M
				     : SCENE_FLAT,
		.slot_pages = SLOT_PAGES,
		.slot_flags = seed & 1 ? KVM_MEM_LOG_DIRTY_PAGES : 0,
		.n_vcpus = 1 + seed % SCENE_MAX_VCPUS,
		.dirty = seed / 2 % 5 == 2 && seed & 16 ? "pml" : policies[seed / 8 % 4],
		.preset = seed % 7 == 6 ? "2.6.36" : NULL,
		.personality = cpus[seed / 2 % 5],
		.params = params[seed / 2 % 4],
		.host_absent = seed % 11 == 10,
		.seed = seed,
	};
}

static void running_ahead_changes_nothing(void)
{
	for (uint64_t seed = 0; seed < 120; seed++) {
		struct program ahead, reference;

		vary(&ahead, seed);
		vary(&reference, seed);
		reference.o.reference = true;
		EQ(run_program(&ahead), 0);
		EQ(run_program(&reference), 0);
		EQ(ahead.check, 0);
		if (ahead.digest != reference.digest)
			printf("seed %lu\n", seed);
		EQ(ahead.digest, reference.digest);
	}
}

static void checkers_find_nothing(void)
{
	for (uint64_t seed = 0; seed < 120; seed++) {
		struct program p;

		vary(&p, seed);
		p.o.check = true;
		EQ(run_program(&p), 0);
		EQ(p.check, 0);
		EQ(p.lost, 0);
		if (p.check || p.lost)
			printf("seed %lu: %s\n", seed, scene_message);
	}
}

/* A policy that forgets to re-arm loses stores, and is caught. */
static void a_lossy_policy_is_caught(void)
{
	unsigned caught = 0;

	for (uint64_t seed = 0; seed < 16; seed++) {
		struct program p;

		vary(&p, seed);
		p.o.check = true;
		p.o.preset = NULL;
		p.o.slot_flags = KVM_MEM_LOG_DIRTY_PAGES;
		p.o.dirty = "lossy,every=2";
		EQ(run_program(&p), 0);
		caught += p.check == KVMSIM_ECHECK && p.lost;
	}
	CU_ASSERT(caught >= 12);
}

/* Wherever a run is broken off, every task ends and nothing is left behind. */
static void a_run_can_be_broken_off(void)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct program p;
		struct scene s;
		struct task *t;
		const struct task_opts to = {.name = "vmm", .fn = scene_task, .arg = &s};

		vary(&p, seed);
		prog = &p;
		EQ(scene_open(&s, &p.o), 0);
		s.body = migration;
		EQ(task_create(s.sim, &to, &t), 0);
		EQ(sim_run(s.sim, 500 + seed * 331), 0);
		scene_close(&s);
	}
}

/* ---- one vCPU ---- */

static int tcg_forgets(struct scene *s, struct task *t)
{
	uint64_t walks;

	EQ(scene_write(s, SCENE_TEST, 8, 1), 0);
	EQ(vcpu_hits_write(s->vcpu[0], SCENE_TEST), true);
	EQ(scene_out(s), 0);
	EQ(vcpu_hits_write(s->vcpu[0], SCENE_TEST), !strcmp(s->o->personality, "amd"));
	walks = ledger_sum_count(sim_ledger(s->sim), task_id(t), LEDGER_ALL_ACTIVITIES,
				 COUNT_tlb_walk)
			.n;
	EQ(scene_write(s, SCENE_TEST, 8, 1), 0);
	walks = ledger_sum_count(sim_ledger(s->sim), task_id(t), LEDGER_ALL_ACTIVITIES,
				 COUNT_tlb_walk)
			.n -
		walks;
	EQ(walks, strcmp(s->o->personality, "amd") ? 2 : 0); /* code and data */
	return 0;
}

static void translations_over_an_exit(void)
{
	struct scene_opts o = {.pte = SCENE_2M, .slot_pages = 64, .personality = "tcg"};

	EQ(scene(&o, tcg_forgets), 0);
	o.personality = "amd";
	EQ(scene(&o, tcg_forgets), 0);
}

static int rmw(struct scene *s, struct task *t)
{
	bool tcg = !strcmp(s->o->personality, "tcg");

	(void)t;
	EQ(scene_setup(s), 0);
	EQ(vcpu_rmw(s->vcpu[0], SCENE_TEST, 4, 1), VCPU_RESTART);
	EQ(s->last[TRACE_kvm_page_fault].code, tcg ? 0 : PFERR_WRITE);
	EQ(vcpu_rmw(s->vcpu[0], SCENE_TEST, 4, 1), 0);
	return 0;
}

static void read_modify_write(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 64, .personality = "tcg"};

	EQ(scene(&o, rmw), 0);
	o.personality = "amd";
	EQ(scene(&o, rmw), 0);
}

/* A page that starts to be of interest is no longer private: what is stored is seen. */
static int contents(struct scene *s, struct task *t)
{
	uint64_t value = 1;

	(void)t;
	EQ(scene_write(s, SCENE_TEST, 8, 7), 0);
	EQ(vcpu_read(s->vcpu[0], SCENE_TEST, 8, &value), 0);
	EQ(value, 0); /* nobody asked to keep that page */
	kvm_write_guest_u64(s->kvm, SCENE_TEST + 8, 0x1122334455667788);
	EQ(vcpu_read(s->vcpu[0], SCENE_TEST + 8, 4, &value), 0);
	EQ(value, 0x55667788);
	EQ(vcpu_write(s->vcpu[0], SCENE_TEST + 12, 2, 0xabcd), 0);
	EQ(kvm_read_guest_u64(s->kvm, SCENE_TEST + 8), 0x1122abcd55667788);
	kvm_write_guest_u64(s->kvm, SCENE_TEST + 0x1000, 0);
	EQ(scene_write(s, SCENE_TEST + 0xffc, 8, 0xaabbccdd11223344), 0);
	EQ(kvm_read_guest_u64(s->kvm, SCENE_TEST + 0xff8) >> 32, 0x11223344);
	EQ(kvm_read_guest_u64(s->kvm, SCENE_TEST + 0x1000), 0xaabbccdd);
	EQ(vcpu_read(s->vcpu[0], SCENE_TEST + 0xffe, 4, &value), 0);
	EQ(value, 0xccdd1122);
	EQ(vcpu_read(s->vcpu[0], SCENE_TEST, 9, &value), KVMSIM_EINVAL);
	return 0;
}

static void memory_that_is_kept(void)
{
	struct scene_opts o = {.pte = SCENE_4K, .slot_pages = 64, .personality = "amd"};

	EQ(scene(&o, contents), 0);
}

static void bad_options(void)
{
	struct scene_opts o = {.pte = SCENE_2M, .slot_pages = 64, .personality = "z80"};

	EQ(scene(&o, contents), KVMSIM_ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "tcg, amd, amd-zen4, intel, intel-haswell, "
						     "intel-nehalem"));
	o.personality = NULL;
	o.preset = "7.0";
	EQ(scene(&o, contents), KVMSIM_ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(scene_message, "6.1-shadow, 6.1-tdp, "));
	o.preset = NULL;
	o.dirty = "mask,chunk=4";
	EQ(scene(&o, contents), KVMSIM_EPARSE);
	o.dirty = "mosk";
	EQ(scene(&o, contents), KVMSIM_ENOENT);
}

static CU_TestInfo tests[] = {
	{"running_ahead_changes_nothing", running_ahead_changes_nothing},
	{"checkers_find_nothing", checkers_find_nothing},
	{"a_run_can_be_broken_off", a_run_can_be_broken_off},
	{"a_lossy_policy_is_caught", a_lossy_policy_is_caught},
	{"translations_over_an_exit", translations_over_an_exit},
	{"read_modify_write", read_modify_write},
	{"memory_that_is_kept", memory_that_is_kept},
	{"bad_options", bad_options},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("vcpu", tests)
