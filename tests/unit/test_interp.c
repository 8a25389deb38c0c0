// SPDX-License-Identifier: GPL-3.0-or-later
/* The op interpreter. Expected counts follow from the ops by hand: one fault per page first written
 * in a logged slot (logging turns prefetching off), gaps as given. */
#include <string.h>

#include "model/counts.h"
#include "model/guest/interp.h"
#include "model/sim/ledger.h"
#include "tests/unit/harness.h"
#include "tests/unit/vm_scene.h"

#define PAGE(n) (SCENE_TEST + (uint64_t)(n)*4096)

static struct given {
	const struct guest_op *ops;
	size_t n, block;
	long end; /* what the source returns after them */
	size_t at;
} given;
static struct interp_stats stats;
static int result;
static uint64_t boundaries[16];
static size_t n_boundaries;
static int boundary_result;
static long nr_dirty;
static uint64_t bitmap[8];

static long give(void *ctx, const struct guest_op **ops)
{
	size_t n = given.n - given.at;

	(void)ctx;
	if (!n)
		return given.end;
	n = given.block && given.block < n ? given.block : n;
	*ops = given.ops + given.at;
	given.at += n;
	return (long)n;
}

static int boundary(void *ctx, struct kvm_vcpu *v, const struct guest_op *op)
{
	(void)ctx;
	CU_ASSERT_PTR_NOT_NULL(vcpu_task(v));
	if (n_boundaries < 16)
		boundaries[n_boundaries++] = (uint64_t)op->kind << 32 | op->arg;
	return boundary_result;
}

static int body(struct scene *s, struct task *t)
{
	struct op_source src = {.next = give};
	const struct interp_opts opts = {.boundary = boundary};

	result = interp_run(s->vcpu[0], &src, &opts, &stats);
	nr_dirty = kvm_get_dirty_log(t, s->kvm, 1, bitmap);
	return nr_dirty < 0 ? (int)nr_dirty : 0;
}

static uint64_t counted(const struct scene *s, enum model_count count)
{
	return ledger_sum_count(sim_ledger(s->sim), LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES,
				(uint16_t)count)
		.n;
}

/* Runs the ops on a direct guest whose 512 test pages are logged. The scene is left open. */
static void run(struct scene *s, const char *personality, bool reference,
		const struct guest_op *ops, size_t n)
{
	static struct scene_opts o;

	o = (struct scene_opts){.slot_pages = 512,
				.slot_flags = KVM_MEM_LOG_DIRTY_PAGES,
				.personality = personality,
				.params = "ipi_latency = 1000\n",
				.reference = reference,
				.check = true};
	given = (struct given){.ops = ops, .n = n, .end = given.end, .block = given.block};
	stats = (struct interp_stats){0};
	n_boundaries = 0;
	memset(bitmap, 0, sizeof(bitmap));
	CU_ASSERT_EQUAL_FATAL(scene_open(s, &o), 0);
	CU_ASSERT_EQUAL(scene_run(s, body), 0);
}

#define RUN(s, personality, reference, ops)                                                        \
	run(s, personality, reference, ops, sizeof(ops) / sizeof((ops)[0]))

static void gaps_are_the_instructions(void)
{
	static const struct guest_op ops[] = {
		{PAGE(0), 10, 8, OP_WRITE, 0}, {PAGE(1), 0, 0, OP_READ, 0},
		{0, 1000, 0, OP_NONE, 0},      {PAGE(0), 7, 4, OP_RMW, 0},
		{PAGE(2), 3, 1, OP_WRITE, 0},  {PAGE(2), 5, 1, OP_READ, 0},
	};
	struct scene s;

	for (int reference = 0; reference < 2; reference++) {
		RUN(&s, "amd", reference, ops);
		CU_ASSERT_EQUAL(result, 0);
		CU_ASSERT_EQUAL(stats.ops, 6);
		CU_ASSERT_EQUAL(stats.insns, 1025);
		CU_ASSERT_EQUAL(counted(&s, COUNT_insn), 1025);
		/* page 1, too: a read fault maps a writable page writable, and reports it */
		CU_ASSERT_EQUAL(nr_dirty, 3);
		CU_ASSERT_EQUAL(bitmap[0], 0x7);
		scene_close(&s);
	}
}

static void hits_need_no_call(void)
{
	static struct guest_op ops[100];
	struct scene s;

	for (int i = 0; i < 100; i++)
		ops[i] = (struct guest_op){PAGE(3) + (uint64_t)i * 8, 2, 8, OP_WRITE, 0};
	given.block = 16;
	RUN(&s, "amd", false, ops);
	given.block = 0;
	CU_ASSERT_EQUAL(stats.ops, 100);
	CU_ASSERT_EQUAL(stats.insns, 200);
	CU_ASSERT_EQUAL(kvm_stat(s.kvm, STAT_pf_taken), 1);
	CU_ASSERT_EQUAL(nr_dirty, 1);
	scene_close(&s);
	RUN(&s, "amd", true, ops);
	CU_ASSERT_EQUAL(stats.hits, 0); /* there is no running ahead in the reference mode */
	CU_ASSERT_EQUAL(stats.insns, 200);
	CU_ASSERT_EQUAL(kvm_stat(s.kvm, STAT_pf_taken), 1);
	scene_close(&s);
}

static int body_unchecked(struct scene *s, struct task *t)
{
	struct op_source src = {.next = give};
	static const struct interp_opts opts;

	(void)t;
	return interp_run(s->vcpu[0], &src, &opts, &stats);
}

/* Without the checkers every access after the first is a hit; a read after a write, too. */
static void all_but_the_first_hit(void)
{
	static struct guest_op ops[100];
	static const struct scene_opts o = {
		.slot_pages = 512, .slot_flags = KVM_MEM_LOG_DIRTY_PAGES, .personality = "amd"};
	struct scene s;

	for (int i = 0; i < 100; i++)
		ops[i] = (struct guest_op){PAGE(3), 1, 8, i % 3 ? OP_READ : OP_WRITE, 0};
	given = (struct given){.ops = ops, .n = 100};
	stats = (struct interp_stats){0};
	CU_ASSERT_EQUAL_FATAL(scene_open(&s, &o), 0);
	CU_ASSERT_EQUAL(scene_run(&s, body_unchecked), 0);
	CU_ASSERT_EQUAL(stats.hits, 99);
	scene_close(&s);
}

static unsigned late; /* cycles after the last at which the store may retire without a call */

static int body_at_horizon(struct scene *s, struct task *t)
{
	struct op_source src = {.next = give};
	static const struct interp_opts opts;
	static struct guest_op op;
	int r;

	op = (struct guest_op){PAGE(3), 1, 8, OP_WRITE, 0};
	given = (struct given){.ops = &op, .n = 1};
	r = interp_run(s->vcpu[0], &src, &opts, &stats);
	CU_ASSERT_EQUAL(task_horizon(t), 1000000 + 1000);
	op.gap = (uint32_t)(task_horizon(t) - task_now(t) - 1 + late);
	given.at = 0;
	stats = (struct interp_stats){0};
	r = r ? r : interp_run(s->vcpu[0], &src, &opts, &stats);
	CU_ASSERT_EQUAL(task_now(t), 1000000 + 1000 - 1 + late);
	return r;
}

static int nothing(struct task *t, void *arg)
{
	(void)t;
	(void)arg;
	return 0;
}

/* Another task runs at 1,000,000 and can send what arrives 1,000 later: strictly before that a
 * vCPU runs ahead, an instruction costs a cycle. */
static void hits_end_at_the_horizon(void)
{
	static const struct scene_opts o = {
		.slot_pages = 512, .personality = "amd", .params = "ipi_latency = 1000\n"};
	const struct task_opts other = {
		.name = "other", .fn = nothing, .start = 1000000, .stack_bytes = 64 << 10};

	for (late = 0; late < 2; late++) {
		struct scene s;
		struct task *t;

		stats = (struct interp_stats){0};
		CU_ASSERT_EQUAL_FATAL(scene_open(&s, &o), 0);
		CU_ASSERT_EQUAL(task_create(s.sim, &other, &t), 0);
		CU_ASSERT_EQUAL(scene_run(&s, body_at_horizon), 0);
		CU_ASSERT_EQUAL(stats.hits, 1 - late);
		scene_close(&s);
	}
}

/* An exit empties tcg's TLB and leaves amd's: one walk more. */
static void an_exit_costs_tcg_its_tlb(void)
{
	static const struct guest_op ops[] = {
		{PAGE(0), 1, 8, OP_WRITE, 0}, {PAGE(0), 1, 8, OP_WRITE, 0}, {0x10, 1, 0, OP_PIO, 0},
		{PAGE(0), 1, 8, OP_WRITE, 0}, {PAGE(0), 1, 8, OP_WRITE, 0},
	};
	uint64_t walks[2];

	for (int i = 0; i < 2; i++) {
		struct scene s;

		RUN(&s, i ? "amd" : "tcg", false, ops);
		CU_ASSERT_EQUAL(result, 0);
		CU_ASSERT_EQUAL(kvm_stat(s.kvm, STAT_io_exits), 1);
		walks[i] = counted(&s, COUNT_tlb_walk);
		scene_close(&s);
	}
	CU_ASSERT_EQUAL(walks[0], walks[1] + 1);
}

static void long_accesses_touch_every_page(void)
{
	static const struct guest_op ops[] = {
		{PAGE(4) + 4095, 1, 8193, OP_WRITE, 0}, /* pages 4, 5, 6 */
		{PAGE(10) + 4090, 1, 8, OP_WRITE, 0},	/* 10, 11 */
		{PAGE(20), 1, 4096, OP_WRITE, 0},	/* 20 */
	};
	struct scene s;

	for (int reference = 0; reference < 2; reference++) {
		RUN(&s, "amd", reference, ops);
		CU_ASSERT_EQUAL(result, 0);
		CU_ASSERT_EQUAL(bitmap[0], 7ull << 4 | 3ull << 10 | 1ull << 20);
		scene_close(&s);
	}
}

static void devices_and_halts_go_on(void)
{
	static const struct guest_op ops[] = {
		{0xf0000000, 1, 4, OP_MMIO_READ, 0},
		{0xf0000000, 1, 4, OP_MMIO_WRITE, 0},
		{0, 1, 0, OP_HLT, 0},
		{0x3f8, 1, 0, OP_PIO, 0},
		{PAGE(1), 1, 8, OP_WRITE, 0},
	};
	struct scene s;

	RUN(&s, "tcg", false, ops);
	CU_ASSERT_EQUAL(result, 0);
	CU_ASSERT_EQUAL(stats.insns, 5);
	CU_ASSERT_EQUAL(kvm_stat(s.kvm, STAT_mmio_exits), 2);
	CU_ASSERT_EQUAL(kvm_stat(s.kvm, STAT_halt_exits), 1);
	CU_ASSERT_EQUAL(kvm_stat(s.kvm, STAT_io_exits), 1);
	CU_ASSERT_EQUAL(bitmap[0], 2);
	scene_close(&s);
}

static void boundaries_in_order(void)
{
	static const struct guest_op ops[] = {
		{1, 0, 0, OP_MARK, 0},	      {0, 5, 0, OP_EPOCH, 0},
		{PAGE(0), 1, 8, OP_WRITE, 0}, {1, 100, 0, OP_EPOCH, OPF_PARTIAL},
		{PAGE(1), 1, 8, OP_WRITE, 0}, {0, 3, 0, OP_MARK, 0},
	};
	static const uint64_t expected[] = {(uint64_t)OP_MARK << 32 | 1, (uint64_t)OP_EPOCH << 32,
					    (uint64_t)OP_EPOCH << 32 | 1, (uint64_t)OP_MARK << 32};
	struct scene s;

	RUN(&s, "amd", false, ops);
	CU_ASSERT_EQUAL(result, 0);
	CU_ASSERT_EQUAL(n_boundaries, 4);
	CU_ASSERT_EQUAL(memcmp(boundaries, expected, sizeof(expected)), 0);
	CU_ASSERT_EQUAL(stats.insns, 110);
	scene_close(&s);

	/* what the callback returns ends the run there */
	boundary_result = 77;
	RUN(&s, "amd", false, ops);
	boundary_result = 0;
	CU_ASSERT_EQUAL(result, 77);
	CU_ASSERT_EQUAL(n_boundaries, 1);
	CU_ASSERT_EQUAL(nr_dirty, 0);
	scene_close(&s);
}

static void errors_pass(void)
{
	static const struct guest_op good[] = {{PAGE(0), 1, 8, OP_WRITE, 0}};
	static const struct guest_op bad[] = {{PAGE(0), 1, 8, OP_WRITE, 0},
					      {PAGE(1), 1, 8, OP_LAST, 0},
					      {PAGE(2), 1, 8, OP_WRITE, 0}};
	struct scene s;

	given.end = KVMSIM_EPARSE;
	RUN(&s, "amd", false, good);
	given.end = 0;
	CU_ASSERT_EQUAL(result, KVMSIM_EPARSE);
	CU_ASSERT_EQUAL(nr_dirty, 1);
	scene_close(&s);
	RUN(&s, "amd", false, bad);
	CU_ASSERT_EQUAL(result, KVMSIM_EPARSE);
	CU_ASSERT_EQUAL(bitmap[0], 1);
	scene_close(&s);
}

static CU_TestInfo tests[] = {{"gaps_are_the_instructions", gaps_are_the_instructions},
			      {"hits_need_no_call", hits_need_no_call},
			      {"all_but_the_first_hit", all_but_the_first_hit},
			      {"hits_end_at_the_horizon", hits_end_at_the_horizon},
			      {"an_exit_costs_tcg_its_tlb", an_exit_costs_tcg_its_tlb},
			      {"long_accesses_touch_every_page", long_accesses_touch_every_page},
			      {"devices_and_halts_go_on", devices_and_halts_go_on},
			      {"boundaries_in_order", boundaries_in_order},
			      {"errors_pass", errors_pass},
			      CU_TEST_INFO_NULL};
TEST_MAIN("interp", tests)
