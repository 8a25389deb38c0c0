// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/counts.h"
#include "model/guest/interp.h"
#include "model/guest/ring.h"
#include "model/host/cache.h"
#include "model/params.h"
#include "model/sim/ledger.h"
#include "model/sim/profile.h"
#include "tests/property/program.h"

/* Prices with remainders, and a latency that lets vCPUs run ahead. */
static const char profile_head[] =
	"[machine]\nname = property\nunit = cycles\nhz = 1000000000\n"
	"source = made up\n[param]\nipi_latency = 700\n"
	"l2_bytes = 8192\nllc_bytes = 65536\ndtlb_entries = 64\n[price]\n"
	"insn = 0.37\n";

#define TABLES_PAGES 16
#define PTE_FLAGS    0x67ull /* P, W, U, A, D */
#define PTE_LARGE    0x80ull

struct running {
	const struct program *p;
	struct sim *sim;
	struct kvm *kvm;
	struct cache *cache;
	struct task *vmm;
	struct outcome *out;
	bool logged[PROGRAM_SLOTS];
	bool interrupted[PROGRAM_SLOTS]; /* not logged all the time */
	uint64_t reported[PROGRAM_SLOTS][PROGRAM_PAGES / 64];
	uint32_t ended; /* vCPUs */
	struct running_vcpu {
		struct running *run;
		uint32_t id;
		bool given;
		struct kvm_vcpu *vcpu;
		struct interp_stats stats;
		struct task *task;
	} vcpus[PROGRAM_MAX_VCPUS];
};

static void note(struct outcome *o, uint64_t word)
{
	if (o->n == o->room) {
		size_t room = o->room ? 2 * o->room : 4096;
		uint64_t *grown = realloc(o->word, room * sizeof(*grown));

		if (!grown)
			abort();
		o->word = grown;
		o->room = room;
	}
	o->word[o->n++] = word;
}

static void complain(void *ctx, enum kvmsim_error err, const char *msg)
{
	const struct program *p = ctx;

	if (p->quiet)
		return;
	fprintf(stderr, "program %llu: %s (%s)\n", (unsigned long long)p->number, msg,
		kvmsim_strerror(err));
}

static long give(void *ctx, const struct guest_op **ops)
{
	struct running_vcpu *v = ctx;

	if (v->given)
		return 0;
	v->given = true;
	*ops = v->run->p->ops[v->id];
	return (long)v->run->p->n_ops[v->id];
}

static int vcpu_thread(struct task *t, void *arg)
{
	struct running_vcpu *v = arg;
	struct op_source src = {.next = give, .ctx = v};
	static const struct interp_opts opts;

	vcpu_bind(v->vcpu, t);
	if (v->run->p->on.mode != GUEST_FLAT32)
		vcpu_set_cr3(v->vcpu, program_root(v->run->p->on.mode));
	int err = interp_run(v->vcpu, &src, &opts, &v->stats);

	err = err ? err : vcpu_interrupt(v->vcpu);
	err = err ? err : sync(t);
	v->run->ended++;
	if (!err)
		task_wake(v->run->vmm, task_now(t));
	return err;
}

static void put_entry(struct kvm *kvm, uint64_t gpa, unsigned bytes, uint64_t value)
{
	uint64_t word = gpa & ~7ull, other = kvm_read_guest_u64(kvm, word);

	if (bytes == 4)
		value = gpa & 4 ? (other & UINT32_MAX) | value << 32
				: (other & ~(uint64_t)UINT32_MAX) | value;
	kvm_write_guest_u64(kvm, word, value);
}

/* Identity. Of 32-bit guests PAE's highest table is the second page, whose entries have P alone;
 * with 4-byte entries there is a directory only. */
static void make_tables(struct kvm *kvm, enum guest_paging_mode mode, bool large)
{
	uint64_t table = PROGRAM_TABLES_GFN << 12, directory = table + (2ull << 12);
	uint64_t pages = PROGRAM_SLOTS * PROGRAM_PAGES;
	unsigned bytes = mode == GUEST_32BIT ? 4 : 8, entries = 4096 / bytes;

	kvm_write_guest_u64(kvm, table, (table + (1ull << 12)) | PTE_FLAGS);
	kvm_write_guest_u64(kvm, table + (1ull << 12),
			    directory | (mode == GUEST_PAE ? 1 : PTE_FLAGS));
	/* one entry for each page table behind it */
	for (uint64_t i = 0; i * entries < pages; i++)
		put_entry(kvm, directory + i * bytes, bytes,
			  large ? (i * entries) << 12 | PTE_FLAGS | PTE_LARGE
				: (directory + ((1 + i) << 12)) | PTE_FLAGS);
	for (uint64_t page = 0; !large && page < pages; page++)
		put_entry(kvm, directory + 4096 + page * bytes, bytes, page << 12 | PTE_FLAGS);
}

static int set_slot(struct running *run, struct task *t, uint32_t slot, bool log)
{
	const struct kvm_memory_region r = {.slot = slot,
					    .flags = log ? KVM_MEM_LOG_DIRTY_PAGES : 0,
					    .base_gfn = (uint64_t)slot * PROGRAM_PAGES,
					    .npages = PROGRAM_PAGES,
					    .host_level = run->p->on.host_level,
					    .host_populated = !run->p->host_absent,
					    .host_anonymous = run->p->host_anonymous};

	run->logged[slot] = log;
	run->interrupted[slot] |= !log;
	return kvm_set_user_memory_region(t, run->kvm, &r);
}

static int get(struct running *run, struct task *t, uint32_t slot)
{
	uint64_t bitmap[PROGRAM_PAGES / 64];
	long n = kvm_collect_dirty_log(t, run->kvm, slot, bitmap);

	if (n < 0)
		return (int)n;
	note(run->out, (uint64_t)n);
	run->out->dirty += (uint64_t)n;
	for (size_t i = 0; i < PROGRAM_PAGES / 64; i++) {
		note(run->out, bitmap[i]);
		run->reported[slot][i] |= bitmap[i];
	}
	return 0;
}

static int start(struct running *run, struct task *t)
{
	const struct kvm_memory_region tables = {.slot = PROGRAM_SLOTS,
						 .base_gfn = PROGRAM_TABLES_GFN,
						 .npages = TABLES_PAGES,
						 .host_populated = true};
	int err = kvm_set_user_memory_region(t, run->kvm, &tables);

	for (uint32_t s = 0; !err && s < PROGRAM_SLOTS; s++) {
		err = set_slot(run, t, s, false);
		err = err ? err : set_slot(run, t, s, true);
		run->interrupted[s] = false;
	}
	if (!err && run->p->on.mode != GUEST_FLAT32)
		make_tables(run->kvm, run->p->on.mode, run->p->on.guest_large);
	for (uint32_t i = 0; !err && i < run->p->n_vcpus; i++) {
		struct running_vcpu *v = &run->vcpus[i];
		const struct task_opts o = {.name = "vcpu",
					    .fn = vcpu_thread,
					    .arg = v,
					    .start = task_now(t) + run->p->start[i]};

		v->run = run;
		v->id = i;
		err = kvm_create_vcpu(run->kvm, &v->vcpu);
		err = err ? err : task_create(run->sim, &o, &v->task);
	}
	return err ? err : kvm_start_ring_reaper(run->kvm, task_now(t));
}

/* Entries that the vCPUs' own threads or the reaper have collected. */
static int reset(struct running *run, struct task *t)
{
	long n = kvm_reset_dirty_rings(t, run->kvm);

	if (n < 0)
		return (int)n;
	note(run->out, (uint64_t)n);
	return 0;
}

static int vmm_thread(struct task *t, void *arg)
{
	struct running *run = arg;
	int err = start(run, t);

	for (size_t i = 0; !err && i < run->p->n_steps; i++) {
		const struct program_step *s = &run->p->steps[i];

		cycles_t until = task_now(t) + s->delay;

		do /* a vCPU that ends wakes it, too */
			err = task_block_until(t, WAIT_idle, until);
		while (err > 0);
		if (err)
			break;
		note(run->out, task_now(t));
		if (s->what == STEP_GET)
			err = run->logged[s->slot] ? get(run, t, s->slot) : 0;
		else if (s->what == STEP_RESET)
			err = reset(run, t);
		else if (s->what == STEP_DONTNEED)
			err = host_madvise_dontneed(t, run->kvm, s->slot, s->first, s->npages);
		else
			err = set_slot(run, t, s->slot, s->what == STEP_LOG_ON);
	}
	err = err ? err : sync(t);
	while (!err && run->ended < run->p->n_vcpus) {
		err = task_block(t, WAIT_idle);
		err = err ? err : sync(t);
	}
	for (uint32_t s = 0; s < PROGRAM_SLOTS && !err; s++)
		err = run->logged[s] ? get(run, t, s) : 0;
	return err;
}

/* The pages of the slot that the program's ops touch, by how; the first touches of all are after
 * logging was turned on. */
static void judge(struct running *run, uint32_t slot)
{
	const struct program *p = run->p;
	uint8_t touched[PROGRAM_PAGES] = {0};

	for (uint32_t v = 0; v < p->n_vcpus; v++)
		for (size_t i = 0; i < p->n_ops[v]; i++) {
			const struct guest_op *op = &p->ops[v][i];
			uint64_t first = op->arg >> 12, last = (op->arg + op->len - 1) >> 12;
			bool store = op->kind == OP_WRITE || op->kind == OP_RMW;

			if (!store && op->kind != OP_READ && op->kind != OP_FETCH)
				continue;
			for (uint64_t gfn = first; gfn <= last; gfn++)
				if (gfn / PROGRAM_PAGES == slot)
					touched[gfn % PROGRAM_PAGES] |= store ? 2 : 1;
		}
	for (uint64_t i = 0; i < PROGRAM_PAGES; i++) {
		bool reported = run->reported[slot][i / 64] >> (i % 64) & 1;

		run->out->missed += touched[i] & 2 && !reported;
		run->out->stray += reported && !touched[i];
	}
}

static void note_entry(void *ctx, uint32_t task, uint16_t activity, bool is_wait, uint16_t id,
		       struct ledger_entry e)
{
	struct outcome *o = ctx;

	note(o, (uint64_t)task << 40 | (uint64_t)activity << 24 | (uint64_t)is_wait << 20 | id);
	note(o, e.n);
	note(o, e.cycles);
}

static int make_profile(const struct kvmsim_errsink *errors, struct profile **out)
{
	char text[4096];
	size_t used = (size_t)snprintf(text, sizeof(text), "%s", profile_head);

	for (int c = 0; c < N_COUNTS; c++) {
		if (c != COUNT_insn)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s = %d.%02d\n",
						 model_vocabulary.counts[c], 3 + 7 * c % 50,
						 13 * c % 100);
	}
	return profile_parse(text, used, "property", &model_vocabulary, model_params, errors, out);
}

static int simulate(struct running *run, bool reference, const struct profile *profile,
		    const struct kvmsim_errsink *errors)
{
	const struct program *p = run->p;
	const struct sim_opts so = {.vocabulary = &model_vocabulary,
				    .profile = profile,
				    .seed = p->number,
				    .reference = reference,
				    .errors = errors};
	const struct task_opts to = {.name = "vmm", .fn = vmm_thread, .arg = run};
	int err = sim_create(&so, &run->sim);

	if (!err && p->number % 3 == 0) /* misses depend on who comes first */
		err = cache_create(profile, errors, &run->cache);
	if (err)
		return err;
	const struct kvm_vm_opts vo = {.sim = run->sim,
				       .paging = p->on.paging,
				       .mode = p->on.mode,
				       .preset = p->on.preset,
				       .dirty = p->dirty,
				       .personality = p->on.cpu,
				       .cache = run->cache,
				       .eager_page_split = p->on.eager_page_split,
				       .check = p->check};

	err = kvm_create_vm(&vo, &run->kvm);
	err = err ? err : task_create(run->sim, &to, &run->vmm);
	err = err ? err : sim_run(run->sim, CYCLES_MAX);
	err = err ? err : sim_check_ledger(run->sim);
	err = err ? err : kvm_check(run->kvm);
	if (err)
		return err;
	note(run->out, task_now(run->vmm));
	for (uint32_t i = 0; i < p->n_vcpus; i++) {
		note(run->out, task_now(run->vcpus[i].task));
		note(run->out, run->vcpus[i].stats.insns);
		run->out->hits += run->vcpus[i].stats.hits;
	}
	run->out->full = ledger_sum_count(sim_ledger(run->sim), LEDGER_ALL_TASKS,
					  LEDGER_ALL_ACTIVITIES, COUNT_ring_full)
				 .n;
	ledger_for_each(sim_ledger(run->sim), note_entry, run->out);
	for (int s = 0; s < N_KVM_STATS; s++)
		note(run->out, kvm_stat(run->kvm, (enum kvm_stat_id)s));
	note(run->out, kvm_active_shadow_pages(run->kvm));
	run->out->false_dirties = kvm_false_dirties(run->kvm);
	note(run->out, run->out->false_dirties);
	for (uint32_t i = 0; i < PROGRAM_SLOTS; i++)
		if (!run->interrupted[i])
			judge(run, i);
	note(run->out, kvm_lost_stores(run->kvm));
	run->out->switches = sim_switches(run->sim);
	return 0;
}

int program_run(const struct program *p, bool reference, struct outcome *out)
{
	const struct kvmsim_errsink errors = {complain, (void *)(uintptr_t)p};
	struct running run = {.p = p, .out = out};
	struct profile *profile = NULL;
	int err = make_profile(&errors, &profile);

	memset(out, 0, sizeof(*out));
	err = err ? err : simulate(&run, reference, profile, &errors);
	sim_destroy(run.sim);
	kvm_destroy_vm(run.kvm);
	cache_destroy(run.cache);
	profile_free(profile);
	return err;
}

void outcome_free(struct outcome *o)
{
	free(o->word);
	memset(o, 0, sizeof(*o));
}
