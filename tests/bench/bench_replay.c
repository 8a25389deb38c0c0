// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/counts.h"
#include "model/guest/interp.h"
#include "model/host/ipi.h"
#include "model/params.h"
#include "model/sim/ledger.h"
#include "model/sim/profile.h"
#include "tests/bench/bench.h"
#include "traces/format.h"
#include "traces/trace.h"

/* How fast the model replays: accesses that hit and miss the guest's TLB, faults, dirty logs. All
 * guests are direct (no paging), of one vCPU, without a cache model. */

#define LOOP	 5000u
#define OPS	 (1u << 22)
#define BLOCK	 4096u
#define RESIDENT 2048u	  /* pages that fit the TLB */
#define MANY	 1000000u /* pages of the Zipf guest */
#define LOGGED	 261888u  /* pages of the slot whose log is taken: 1 GiB less 1 MiB */

struct machine {
	struct profile *profile;
	struct sim *sim;
	struct kvm *kvm;
	struct kvm_vcpu *vcpu;
	struct task *task;
	uint64_t npages;
	const char *what;
	void (*bench)(struct machine *m);
	uint64_t *bitmap;
};

static uint64_t state = 88172645463325252u;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "bench_replay: %s failed\n", what);
	exit(1);
}

static void set_slot(struct machine *m, uint32_t flags, uint64_t npages)
{
	const struct kvm_memory_region r = {
		.flags = flags, .npages = npages, .host_populated = true};

	check(!kvm_set_user_memory_region(m->task, m->kvm, &r), "a slot");
}

static int run_machine(struct task *t, void *arg)
{
	struct machine *m = arg;

	m->task = t;
	set_slot(m, 0, m->npages);
	check(!kvm_create_vcpu(m->kvm, &m->vcpu), "a vCPU");
	vcpu_bind(m->vcpu, t);
	m->bench(m);
	return 0;
}

/* The bench runs inside the vCPU's task, which is the VMM's too. */
static void machine(const char *what, enum kvm_paging paging, const char *dirty, uint64_t npages,
		    void (*bench)(struct machine *m))
{
	static const char text[] =
		"[machine]\nunit = cycles\n[price]\ninsn = 1\npage_fault = 1000\n";
	struct machine m = {.npages = npages, .what = what, .bench = bench};
	struct sim_opts so = {.vocabulary = &model_vocabulary};
	struct kvm_vm_opts vo = {.paging = paging, .mode = GUEST_FLAT32, .dirty = dirty};
	const struct task_opts to = {
		.name = "guest", .fn = run_machine, .arg = &m, .stack_bytes = 256 << 10};
	struct task *t;

	m.bitmap = calloc((npages + 63) / 64, sizeof(*m.bitmap));
	check(m.bitmap && !profile_parse(text, sizeof(text) - 1, "bench", &model_vocabulary,
					 model_params, NULL, &m.profile),
	      "a profile");
	so.profile = m.profile;
	check(!sim_create(&so, &m.sim), "a simulator");
	ipi_init(m.sim);
	vo.sim = m.sim;
	check(!kvm_create_vm(&vo, &m.kvm) && !task_create(m.sim, &to, &t) &&
		      !sim_run(m.sim, CYCLES_MAX),
	      "a run");
	sim_destroy(m.sim);
	kvm_destroy_vm(m.kvm);
	profile_free(m.profile);
	free(m.bitmap);
}

/* ---- the interpreter ---- */

struct memory {
	const struct guest_op *ops;
	size_t n, pos;
};

static long memory_next(void *ctx, const struct guest_op **ops)
{
	struct memory *m = ctx;
	size_t n = m->n - m->pos < BLOCK ? m->n - m->pos : BLOCK;

	*ops = m->ops + m->pos;
	m->pos += n;
	return (long)n;
}

static int memory_rewind(void *ctx)
{
	((struct memory *)ctx)->pos = 0;
	return 0;
}

struct replay {
	struct machine *m;
	struct op_source source;
	struct interp_stats stats; /* of the last round */
};

static uint64_t replay(void *arg)
{
	const struct interp_opts opts = {0};
	struct replay *r = arg;

	r->stats = (struct interp_stats){0};
	check(!r->source.rewind(r->source.ctx) &&
		      !interp_run(r->m->vcpu, &r->source, &opts, &r->stats),
	      "a replay");
	return r->stats.ops;
}

static void replay_line(struct replay *r, const char *from, const char *bound)
{
	char name[64];

	snprintf(name, sizeof(name), "%s, ops from %s", r->m->what, from);
	bench_run(name, "accesses", replay, r, bound);
	printf("%-36s %.2f%% miss the TLB\n", "", 100.0 * (r->stats.ops - r->stats.hits) / OPS);
}

/* Of the blocks in a file of one vCPU. */
static double zstd_share(const char *path, const struct trace_stats *st)
{
	uint8_t *file = malloc(st->bytes);
	FILE *f = fopen(path, "rb");
	uint64_t packed = 0;

	check(file && f && fread(file, 1, st->bytes, f) == st->bytes, "reading");
	fclose(f);
	for (size_t at = HEADER_BYTES + get32(file + 12), i = 0; i < st->blocks; i++) {
		packed += file[at + 6] == CODEC_ZSTD;
		at += BLOCK_HEADER_BYTES + get32(file + at + 16);
	}
	free(file);
	return (double)packed / (double)st->blocks;
}

static void replay_both(struct machine *m, const struct guest_op *ops, const char *bound_memory,
			const char *bound_file)
{
	struct memory memory = {.ops = ops, .n = OPS};
	struct replay r = {.m = m, .source = {memory_next, memory_rewind, &memory}};
	const struct trace_meta meta = {.n_vcpus = 1};
	char path[] = "/tmp/kvmsim-bench-XXXXXX", from[48];
	struct trace_writer *w;
	struct trace_reader *reader = NULL;
	struct trace_stats st;
	int fd = mkstemp(path);

	check(fd >= 0, "a temporary file");
	close(fd);
	replay_line(&r, "memory", bound_memory);
	check(!trace_create(path, &meta, NULL, &w) && !trace_write(w, 0, ops, OPS) &&
		      !trace_finish(w, &st) && !trace_open(path, NULL, &reader) &&
		      !trace_source(reader, 0, &r.source),
	      "a trace");
	snprintf(from, sizeof(from), ".kvt (%.0f%% zstd)", 100 * zstd_share(path, &st));
	replay_line(&r, from, bound_file);
	trace_close(reader);
	unlink(path);
}

static struct guest_op *new_ops(void)
{
	struct guest_op *ops = malloc(OPS * sizeof(*ops));

	check(ops, "memory for ops");
	return ops;
}

/* A loop over pages that fit, so that zstd finds repeats as in recorded guests. */
static void hits(struct machine *m)
{
	struct guest_op *ops = new_ops();

	for (uint32_t i = 0; i < OPS; i++)
		ops[i] = i < LOOP ? (struct guest_op){.kind = OP_READ,
						      .gap = 1 + rnd() % 20,
						      .arg = (rnd() % RESIDENT) << 12}
				  : ops[i - LOOP];
	replay_both(m, ops, "16 bytes per op from memory, the entry from L1 or L2",
		    "unpacking: see bench_trace, hits");
	free(ops);
}

/* Page of rank r with probability 1 / r, ranks scattered over the pages. */
static void zipf(struct machine *m)
{
	double *sum = malloc(MANY * sizeof(*sum)), total = 0;
	struct guest_op *ops = new_ops();

	check(sum, "memory");
	for (uint32_t i = 0; i < MANY; i++)
		sum[i] = total += 1.0 / (i + 1);
	for (uint32_t i = 0; i < OPS; i++) {
		double u = (double)(rnd() >> 11) * 0x1p-53 * total;
		uint32_t lo = 0, hi = MANY - 1;

		while (lo < hi) {
			uint32_t mid = (lo + hi) / 2;

			if (sum[mid] > u)
				hi = mid;
			else
				lo = mid + 1;
		}
		ops[i] = (struct guest_op){
			.kind = OP_READ, .gap = 1, .arg = (lo * 611953ull % MANY) << 12};
	}
	replay_both(m, ops, "a walk per miss: two sptes out of cache, a call, mispredictions",
		    "the walks, then unpacking");
	free(ops);
	free(sum);
}

/* ---- faults ---- */

static uint64_t store_all(void *arg)
{
	struct machine *m = arg;
	int r = 0;

	for (uint64_t page = 0; page < m->npages && !r; page++)
		do
			r = vcpu_write(m->vcpu, page << 12, 8, 0);
		while (r == VCPU_RESTART);
	check(!r, "a store");
	return m->npages;
}

static uint64_t take_log(void *arg)
{
	struct machine *m = arg;

	check(kvm_get_dirty_log(m->task, m->kvm, 0, m->bitmap) >= 0, "GET_DIRTY_LOG");
	return m->npages;
}

/* As a new slot: nothing is mapped, and what is mapped is logged, page by page. */
static uint64_t empty_slot(void *arg)
{
	struct machine *m = arg;

	set_slot(m, 0, 0);
	set_slot(m, KVM_MEM_LOG_DIRTY_PAGES, m->npages);
	return 0;
}

static uint64_t populate(void *arg)
{
	bench_aside(empty_slot, arg);
	return store_all(arg);
}

static uint64_t write_again(void *arg)
{
	bench_aside(take_log, arg);
	return store_all(arg);
}

static void faults(struct machine *m)
{
	char name[64];

	snprintf(name, sizeof(name), "%s, page not mapped", m->what);
	bench_run(name, "faults", populate, m,
		  "the fault path's calls and charges, new sptes out of cache");
	snprintf(name, sizeof(name), "%s, write-protected", m->what);
	bench_run(name, "faults", write_again, m, "the fault path's calls and charges");
}

/* ---- dirty logs ---- */

static uint64_t counted(const struct machine *m, uint16_t count)
{
	return ledger_sum_count(sim_ledger(m->sim), LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, count)
		.n;
}

static uint64_t log_of_all(void *arg)
{
	bench_aside(store_all, arg);
	return take_log(arg);
}

static uint64_t store_one(void *arg)
{
	struct machine *m = arg;
	int r;

	do
		r = vcpu_write(m->vcpu, 0, 8, 0);
	while (r == VCPU_RESTART);
	check(!r, "a store");
	return 1;
}

static uint64_t log_of_one(void *arg)
{
	uint64_t before = counted(arg, COUNT_walk_spte);

	bench_aside(store_one, arg);
	take_log(arg);
	return counted(arg, COUNT_walk_spte) - before;
}

static void dirty_log(struct machine *m)
{
	char name[64];

	empty_slot(m);
	snprintf(name, sizeof(name), "GET_DIRTY_LOG by %s, all dirty", m->what);
	bench_run(name, "pages", log_of_all, m,
		  "charges and looks for others per spte; sptes out of cache");
	if (strcmp(m->what, "walk"))
		return;
	snprintf(name, sizeof(name), "GET_DIRTY_LOG by %s, 1 dirty", m->what);
	bench_run(name, "sptes", log_of_one, m, "charges and looks for others per spte");
}

int main(void)
{
	machine("TLB hits", PAGING_SHADOW, NULL, RESIDENT, hits);
	machine("Zipf(1.0)", PAGING_SHADOW, NULL, MANY, zipf);
	machine("npt0-flat32", PAGING_SHADOW, NULL, 1 << 16, faults);
	machine("npt1-tdp0", PAGING_TDP, NULL, 1 << 16, faults);
	machine("mask", PAGING_SHADOW, "mask", LOGGED, dirty_log);
	machine("walk", PAGING_SHADOW, "walk", LOGGED, dirty_log);
	return 0;
}
