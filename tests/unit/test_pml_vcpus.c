// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The CPU's dirty log and the VMM's task side by side: what a vCPU has logged when the log is read,
 * switched off or on is reported by a later call or was not to be, and nothing is lost.
 */
#include <string.h>

#include "model/counts.h"
#include "model/mmu/mmu.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define EQ	 CU_ASSERT_EQUAL
#define PAGES	 2048
#define WORDS	 (PAGES / 64)
#define WRITERS	 2
#define PER_VCPU (PAGES / WRITERS)

static uint64_t bitmap[WORDS];

/* Every page mapped and its store known, then logging from a clean start. */
static int begin(struct scene *s, struct task *t)
{
	int err = scene_setup(s);

	err = err ? err : scene_loop(s, true, 0, s->o->slot_pages);
	err = err ? err : scene_log(s, t, true);
	return err ? err : vcpu_interrupt(s->vcpu[0]);
}

/* ---- logs that get full while the VMM collects ---- */

static struct writer {
	struct scene *s;
	unsigned id;
	struct task *task;
} writers[WRITERS];
static uint64_t seen[WORDS];
static bool start_again;

static int write_own(struct task *t, void *arg)
{
	const struct writer *w = arg;
	struct kvm_vcpu *v = w->s->vcpu[1 + w->id];
	int r = 0;

	vcpu_bind(v, t);
	for (uint64_t i = 0; i < 8ull * PER_VCPU && r >= 0; i++) {
		uint64_t page = (w->id * PER_VCPU + i * 37 % PER_VCPU);

		do
			r = vcpu_write(v, SCENE_TEST + (page << 12), 8, i);
		while (r == VCPU_RESTART);
		r = r ? r : vcpu_gap(v, 1 + (i + w->id) % 7 * 3);
	}
	return r ? r : vcpu_interrupt(v);
}

static int collect(struct scene *s, struct task *t)
{
	long n = kvm_collect_dirty_log(t, s->kvm, 1, bitmap);

	for (int i = 0; i < WORDS && n >= 0; i++)
		seen[i] |= bitmap[i];
	return n < 0 ? (int)n : 0;
}

static int fill(struct scene *s, struct task *t)
{
	static const uint64_t pauses[] = {100, 9000, 1, 30000, 400, 2500, 1, 1, 60000, 7000};
	uint64_t full;
	int r = begin(s, t);

	memset(seen, 0, sizeof(seen));
	for (unsigned i = 0; i < WRITERS && !r; i++) {
		struct task_opts o = {.name = "writer",
				      .fn = write_own,
				      .arg = &writers[i],
				      .start = task_now(t) + i * 300};

		writers[i] = (struct writer){.s = s, .id = i};
		r = task_create(s->sim, &o, &writers[i].task);
	}
	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]) && !r; i++) {
		r = task_block_until(t, WAIT_idle, task_now(t) + pauses[i]);
		if (start_again && !r && i % 3 == 2) {
			r = scene_log(s, t, false);
			r = r ? r : task_block_until(t, WAIT_idle, task_now(t) + (i % 2) * 9000);
			r = r ? r : scene_log(s, t, true);
		}
		r = r ? r : collect(s, t);
	}
	full = ledger_sum_count(sim_ledger(s->sim), LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES,
				COUNT_pml_full_exit)
		       .n;
	r = r ? r : task_block_until(t, WAIT_idle, task_now(t) + 1000000);
	r = r ? r : collect(s, t);
	EQ(r, 0);
	CU_ASSERT(full > 0);
	for (uint64_t i = 0; i < PAGES && !start_again; i++)
		CU_ASSERT(seen[i / 64] >> (i % 64) & 1);
	return r ? r : kvm_check(s->kvm);
}

static void logs_fill_while_the_vmm_collects(void)
{
	static const char *const dirty[] = {"pml", "manual,pml=1,chunk=128"};
	static const char *const params[] = {NULL, "ipi_latency = 40\n", "ipi_latency = 3000\n"};

	for (int i = 0; i < 2 * 2 * 2 * 3; i++) {
		struct scene_opts o = {.paging = PAGING_TDP,
				       .pte = SCENE_FLAT,
				       .slot_pages = PAGES,
				       .dirty = dirty[i & 1],
				       .preset = i & 2 ? "6.1-tdp" : NULL,
				       .params = params[i / 8],
				       .personality = "intel",
				       .n_vcpus = 1 + WRITERS,
				       .check = true};

		start_again = i & 4;
		EQ(scene(&o, fill), 0);
	}
}

/* ---- GET makes vCPUs exit, log of the CPU's or not, as every kernel since 5.12 does ---- */

static int write_ten(struct task *t, void *arg)
{
	struct scene *s = arg;
	int r = 0;

	vcpu_bind(s->vcpu[1], t);
	for (uint64_t i = 0; i < 10 && r >= 0; i++)
		do
			r = vcpu_write(s->vcpu[1], SCENE_TEST + (i << 12), 8, i);
		while (r == VCPU_RESTART);
	r = r ? r : vcpu_gap(s->vcpu[1], 100000);
	return r ? r : vcpu_interrupt(s->vcpu[1]);
}

static int kick(struct scene *s, struct task *t)
{
	bool log = s->kvm->cpu_dirty_log_size, kicks = !s->o->preset || log;
	struct task_opts o = {.name = "writer", .fn = write_ten, .arg = s};
	struct task *writer;
	uint64_t exits;

	EQ(begin(s, t), 0);
	o.start = task_now(t);
	EQ(task_create(s->sim, &o, &writer), 0);
	EQ(task_block_until(t, WAIT_idle, task_now(t) + 8000), 0);
	/* it is not waited for: what is logged comes too late for this call, what faults does not
	 */
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), log ? 0 : 10);
	EQ(task_block_until(t, WAIT_idle, task_now(t) + 8000), 0);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), log ? 10 : 0);
	EQ(task_block_until(t, WAIT_idle, task_now(t) + 8000), 0);
	exits = kvm_stat(s->kvm, STAT_irq_exits);
	EQ(kvm_get_dirty_log(t, s->kvm, 1, bitmap), 0);
	EQ(task_block_until(t, WAIT_idle, task_now(t) + 8000), 0);
	EQ(kvm_stat(s->kvm, STAT_irq_exits) - exits, kicks);
	EQ(task_block_until(t, WAIT_idle, task_now(t) + 200000), 0);
	EQ(kvm_lost_stores(s->kvm), 0);
	return kvm_check(s->kvm);
}

static void get_kicks(void)
{
	struct scene_opts o = {.paging = PAGING_TDP,
			       .pte = SCENE_FLAT,
			       .slot_pages = 64,
			       .params = "ipi_latency = 3000\n",
			       .personality = "intel",
			       .n_vcpus = 2,
			       .check = true};

	for (int i = 0; i < 4; i++) {
		o.dirty = i & 1 ? "pml" : "mask";
		o.preset = i & 2 ? "2.6.36" : NULL;
		EQ(scene(&o, kick), 0);
	}
}

/* ---- a slot moves away while a vCPU has logged stores to it ---- */

static int move(struct scene *s, struct task *t)
{
	struct task_opts o = {.name = "writer", .fn = write_ten, .arg = s};
	const struct kvm_memory_region elsewhere = {.slot = 1,
						    .flags = KVM_MEM_LOG_DIRTY_PAGES,
						    .base_gfn = (SCENE_TEST >> 12) + 0x10000,
						    .npages = s->o->slot_pages,
						    .host_populated = true};
	struct task *writer;

	EQ(begin(s, t), 0);
	o.start = task_now(t);
	EQ(task_create(s->sim, &o, &writer), 0);
	EQ(task_block_until(t, WAIT_idle, task_now(t) + 8000), 0);
	EQ(cpu_log_entries(s->vcpu[1]), 10);
	/* the flush that takes its sptes away makes the vCPU exit, and does not wait for its log */
	EQ(kvm_set_user_memory_region(t, s->kvm, &elsewhere), 0);
	EQ(cpu_log_entries(s->vcpu[1]), 0);
	EQ(kvm_collect_dirty_log(t, s->kvm, 1, bitmap), 10);
	EQ(bitmap[0], 0x3ff);
	EQ(kvm_lost_stores(s->kvm), 0);
	return 0;
}

static void logged_slot_moves(void)
{
	static const char *const dirty[] = {"pml", "manual,pml=1,chunk=64", "ring,pml=1,reaper=0"};
	static const char *const presets[] = {"2.6.36", "6.1-shadow", "6.1-tdp", "6.13-tdp"};

	for (int i = 0; i < 3 * 4; i++) {
		struct scene_opts o = {.paging = PAGING_TDP,
				       .pte = SCENE_FLAT,
				       .slot_pages = 64,
				       .dirty = dirty[i % 3],
				       .preset = presets[i / 3],
				       .personality = "intel",
				       .n_vcpus = 2,
				       .check = true};

		EQ(scene(&o, move), 0);
	}
}

static CU_TestInfo tests[] = {
	{"logged_slot_moves", logged_slot_moves},
	{"logs_fill_while_the_vmm_collects", logs_fill_while_the_vmm_collects},
	{"get_kicks", get_kicks},
	CU_TEST_INFO_NULL,
};
TEST_MAIN("pml_vcpus", tests)
