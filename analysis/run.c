// SPDX-License-Identifier: GPL-3.0-or-later
/* One run of the model: its objects, its life, its result. */
#include "analysis/contention.h"
#include "analysis/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/run_guest.h"
#include "model/host/cache.h"
#include "model/policy/preset.h"
#include "model/sim/profile.h"

enum mmu_kind run_mmu(const char *preset, bool long_mode, bool nested)
{
	const struct kvm_preset *p = preset_find(preset);

	if (p && p->tdp_mmu)
		return MMU_TDP;
	return nested ? MMU_TDP_RMAP : long_mode ? MMU_SHADOW_LONG64 : MMU_SHADOW_FLAT32;
}

void run_snapshot(const struct guest_run *run, struct run_result *r)
{
	const struct ledger *l = sim_ledger(run->sim);

	memset(r->activity_cycles, 0, sizeof(r->activity_cycles));
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		struct ledger_entry sum = {0};

		for (uint16_t a = 0; a < N_ACTIVITIES; a++) {
			struct ledger_entry e = ledger_sum_count(l, LEDGER_ALL_TASKS, a, c);

			r->by_activity[a][c] = (struct run_count){e.n, e.cycles};
			sum.n += e.n;
			sum.cycles += e.cycles;
			r->activity_cycles[a] += e.cycles;
		}
		r->counts[c] = sum.n;
		r->count_cycles[c] = sum.cycles;
	}
	for (uint16_t w = 0; w < N_WAITS; w++)
		r->wait_cycles[w] =
			ledger_sum_wait(l, LEDGER_ALL_TASKS, LEDGER_ALL_ACTIVITIES, w).cycles;
	for (int s = 0; s < N_KVM_STATS; s++)
		r->stats[s] = kvm_stat(run->kvm, (enum kvm_stat_id)s);
	r->false_dirties = kvm_false_dirties(run->kvm);
}

/* What happened since @before. */
static void subtract(struct run_result *r, const struct run_result *before)
{
	for (int i = 0; i < N_COUNTS; i++) {
		r->counts[i] -= before->counts[i];
		r->count_cycles[i] -= before->count_cycles[i];
		r->ledger_cycles += r->count_cycles[i];
	}
	for (int a = 0; a < N_ACTIVITIES; a++) {
		r->activity_cycles[a] -= before->activity_cycles[a];
		for (int c = 0; c < N_COUNTS; c++) {
			r->by_activity[a][c].n -= before->by_activity[a][c].n;
			r->by_activity[a][c].cycles -= before->by_activity[a][c].cycles;
		}
	}
	for (int i = 0; i < N_WAITS; i++) {
		r->wait_cycles[i] -= before->wait_cycles[i];
		r->ledger_cycles += r->wait_cycles[i];
	}
	for (int i = 0; i < N_KVM_STATS; i++) {
		if (!kvm_stat_is_gauge((enum kvm_stat_id)i))
			r->stats[i] -= before->stats[i];
	}
	r->false_dirties -= before->false_dirties;
}

static void keep_task(struct run_result *r, const struct ledger *l, const struct task *t)
{
	struct run_task *out = &r->tasks[r->n_tasks++];

	snprintf(out->name, sizeof(out->name), "%s", task_name(t));
	out->elapsed = task_now(t) - task_start(t);
	out->ledger = ledger_task_total(l, task_id(t));
}

static struct run_lock run_lock(struct lock_stats s)
{
	return (struct run_lock){s.acquired, s.contended, s.wait, s.longest_wait, s.longest_hold};
}

/* After the end of all tasks. */
static int fill_result(struct guest_run *run, struct run_result *r)
{
	const struct run_input *in = run->in;

	r->tasks = calloc(in->n_vcpus + 1, sizeof(*r->tasks));
	if (!r->tasks)
		return KVMSIM_ENOMEM;
	run_snapshot(run, r);
	subtract(r, run->before);
	keep_task(r, sim_ledger(run->sim), run->vmm);
	for (uint32_t i = 0; i < in->n_vcpus; i++) {
		const struct run_vcpu *v = &run->vcpus[i];

		keep_task(r, sim_ledger(run->sim), v->task);
		r->guest_insns += v->stats.insns;
		r->epochs = v->ended > r->epochs ? v->ended : r->epochs;
		if (v->end - run->start > r->elapsed)
			r->elapsed = v->end - run->start;
	}
	r->setup = run->start;
	r->epoch_len = in->epoch_len;
	r->interval = run->every * in->epoch_len;
	snprintf(r->preset, sizeof(r->preset), "%s", in->preset ? in->preset : "6.1-shadow");
	r->n_vcpus = in->n_vcpus;
	r->n_slots = in->n_slots;
	memcpy(r->slots, in->slots, sizeof(r->slots));
	r->input_checksum = in->checksum;
	r->active_shadow_pages = kvm_active_shadow_pages(run->kvm);
	r->lost_stores = kvm_lost_stores(run->kvm);
	r->mmu_lock = run_lock(kvm_mmu_lock_stats(run->kvm));
	r->mmu_lock_read = run_lock(kvm_mmu_lock_read_stats(run->kvm));
	memcpy(r->operations, run->watch.operations, sizeof(r->operations));
	r->longest_stall = run->watch.longest;
	r->collections = run->collections;
	r->n_collections = run->n_collections;
	run->collections = NULL;
	r->checked = run->check;
	r->torn = run_input_torn(in);
	return 0;
}

/* The collection interval in epochs. */
static int check_interval(const struct run_opts *o, const struct run_input *in, uint64_t *every)
{
	uint64_t epoch = in->epoch_len;

	if (!epoch)
		return kvmsim_err(o->errors, KVMSIM_EPARSE,
				  "%s: the trace has no epochs: there is no interval to collect at",
				  in->name);
	if (o->interval % epoch)
		return kvmsim_err(o->errors, KVMSIM_EINVAL,
				  "interval %" PRIu64
				  " is not a multiple of the trace's epoch %" PRIu64,
				  o->interval, epoch);
	*every = o->interval ? o->interval / epoch : 1;
	if (o->phase >= *every)
		return kvmsim_err(o->errors, KVMSIM_EINVAL,
				  "phase %" PRIu64 " is not below the interval of %" PRIu64
				  " epochs",
				  o->phase, *every);
	return 0;
}

/* A run that ends before its first collection has no figure of one. */
static int check_collected(const struct guest_run *run)
{
	uint64_t epochs = 0;

	for (uint32_t i = 0; i < run->in->n_vcpus; i++)
		epochs = run->vcpus[i].ended > epochs ? run->vcpus[i].ended : epochs;
	uint64_t first = run->opts->phase + run->every;

	if (run->n_collections)
		return 0;
	if (run->opts->running && !run->opts->phase)
		first += run->every;
	return kvmsim_err(run->opts->errors, KVMSIM_EPARSE,
			  "%s: cannot tell: %" PRIu64 " epoch%s of %" PRIu64
			  " instructions ended; the first collection is due after %" PRIu64
			  " epochs (interval %" PRIu64 ", phase %" PRIu64 ")",
			  run->in->name, epochs, epochs == 1 ? "" : "s", run->in->epoch_len, first,
			  run->every, run->opts->phase);
}

/* What is broken on purpose is never believed. */
static bool must_check(const struct run_opts *o)
{
	const struct policy_desc *d;
	struct policy_params params;

	return o->check || (!policy_parse(FAMILY_DIRTY, o->dirty, NULL, &d, &params) && d->broken);
}

static int create(struct guest_run *run, struct cache **cache)
{
	const struct run_opts *o = run->opts;
	const struct sim_opts so = {.vocabulary = &model_vocabulary,
				    .profile = o->profile,
				    .seed = o->seed,
				    .replicate = o->replicate,
				    .reference = o->reference,
				    .errors = o->errors};
	const struct task_opts vmm = {.name = "vmm", .fn = run_vmm, .arg = run};
	uint64_t words = 0;
	int err = sim_create(&so, &run->sim);

	err = err ? err : cache_create(o->profile, o->errors, cache);
	if (!err && o->export) {
		run->export = run_export_create(o->export, run);
		err = run->export ? 0 : KVMSIM_ENOMEM;
	}
	if (err)
		return err;
	const struct kvm_vm_opts vo = {
		.sim = run->sim,
		.paging = run_mmu(run->in->preset, o->long_mode, o->nested) >= MMU_TDP_RMAP
				  ? PAGING_TDP
				  : PAGING_SHADOW,
		.mode = o->long_mode ? GUEST_LONG64 : GUEST_FLAT32,
		.preset = run->in->preset,
		.dirty = o->dirty,
		.spte = o->spte,
		.mmulock = o->mmulock,
		.invalidations = o->invalidations,
		.personality = o->personality,
		.eager_page_split = o->eager_page_split,
		.cache = *cache,
		.observer = run_export_observer(run->export),
		.watch = run_export_watch(run->export, &run->watch.watch),
		.background_sps = o->shadow_pages,
		.check = run->check};

	run_watch_init(&run->watch);
	run->watch.watch.locks = o->contention ? &o->contention->watch : NULL;
	err = kvm_create_vm(&vo, &run->kvm);
	if (err)
		return err;
	for (uint32_t i = 0; i < run->in->n_slots; i++) {
		uint64_t n = (run->in->slots[i].npages + 63) / 64;

		words = n > words ? n : words;
	}
	run->bitmap = calloc(words, sizeof(*run->bitmap));
	run->vcpus = calloc(run->in->n_vcpus, sizeof(*run->vcpus));
	run->before = calloc(1, sizeof(*run->before));
	if (!run->bitmap || !run->vcpus || !run->before)
		return KVMSIM_ENOMEM;
	return task_create(run->sim, &vmm, &run->vmm);
}

int run_model(const struct run_opts *opts, struct run_result *out)
{
	struct run_input in;
	struct guest_run run = {.opts = opts, .in = &in, .check = must_check(opts)};
	struct cache *cache = NULL;
	int err;

	memset(out, 0, sizeof(*out));
	err = run_input_open(opts, &in);
	if (err)
		return err;
	err = check_interval(opts, &in, &run.every);
	err = err ? err : create(&run, &cache);
	err = err ? err : sim_run(run.sim, CYCLES_MAX);
	err = err ? err : sim_check_ledger(run.sim);
	if (!err && run.check)
		err = kvm_check(run.kvm);
	err = err ? err : check_collected(&run);
	if (!err)
		run_export_finish(run.export);
	err = err ? err : fill_result(&run, out);
	if (err) {
		run_result_free(out);
		if (err == KVMSIM_ENOMEM)
			kvmsim_err(opts->errors, err, "out of memory");
	}
	sim_destroy(run.sim);
	kvm_destroy_vm(run.kvm);
	cache_destroy(cache);
	run_export_free(run.export);
	free(run.collections);
	free(run.bitmap);
	free(run.vcpus);
	free(run.before);
	run_input_close(&in);
	return err;
}

void run_result_free(struct run_result *r)
{
	free(r->collections);
	free(r->tasks);
	memset(r, 0, sizeof(*r));
}
