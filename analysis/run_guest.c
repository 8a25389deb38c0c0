// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/contention.h"
#include "analysis/run_guest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/guest/ring.h"

/* ---- vCPUs ---- */

static long interruptible(void *ctx, const struct guest_op **ops)
{
	struct run_vcpu *v = ctx;
	struct op_source *from = &v->run->in->sources[v->id];

	return run_interrupted ? KVMSIM_EINTR : from->next(from->ctx, ops);
}

/* Whether every vCPU has come to the next collection, or to its end. */
static bool all_there(const struct guest_run *run)
{
	for (uint32_t i = 0; i < run->in->n_vcpus; i++) {
		if (!run->vcpus[i].finished && run->vcpus[i].ended < run->target)
			return false;
	}
	return true;
}

static int arrive(struct run_vcpu *v)
{
	struct guest_run *run = v->run;
	int err = sync(v->task);

	if (!err && all_there(run))
		task_wake(run->vmm, task_now(v->task));
	return err;
}

/* More epochs of this vCPU have ended: it stops here if that makes a collection due, or says so and
 * goes on. A stream may skip epochs, so that several are. */
static int boundary_reached(struct run_vcpu *v)
{
	int err = 0;

	if (v->ended < v->run->target)
		return 0;
	if (v->run->opts->running)
		return arrive(v);
	err = vcpu_interrupt(v->vcpu);
	while (!err && v->ended >= v->run->target) {
		v->waiting = true;
		err = arrive(v);
		err = err ? err : task_block(v->task, WAIT_idle);
		v->waiting = false;
	}
	return err;
}

/* Epochs are numbered without a gap: a jump is damage, and would be a collection for each number
 * left out. Only a vCPU that was not seen in a phase goes on where the others are; they have an op
 * for each number before that. */
static int check_epoch(const struct run_vcpu *v, uint64_t number)
{
	const struct run_input *in = v->run->in;
	uint64_t expected = v->ended + v->open;

	if (number == expected ||
	    (in->n_vcpus > 1 && v->marked && number > expected && number < in->n_ops))
		return 0;
	if (!expected)
		return kvmsim_err(v->run->opts->errors, KVMSIM_EPARSE,
				  "%s: vCPU %u: epoch %" PRIu64 " is the first, expected 0",
				  in->name, v->id, number);
	return kvmsim_err(v->run->opts->errors, KVMSIM_EPARSE,
			  "%s: vCPU %u: epoch %" PRIu64 " follows epoch %" PRIu64
			  ", expected %" PRIu64,
			  in->name, v->id, number, expected - 1, expected);
}

static int boundary(void *ctx, struct kvm_vcpu *vcpu, const struct guest_op *op)
{
	struct run_vcpu *v = ctx;

	(void)vcpu;
	int err = sync(v->task); /* others look at how far it has come */

	if (!err && op->kind == OP_EPOCH)
		err = check_epoch(v, op->arg);
	if (err)
		return err;
	if (op->kind == OP_EPOCH) {
		v->marked = false;
		v->ended = op->arg;
		v->open = true;
	} else {
		v->marked = true;
		v->ended += op->arg == 0 && v->open;
		v->open &= op->arg != 0;
	}
	return boundary_reached(v);
}

static int run_vcpu(struct task *t, void *arg)
{
	struct run_vcpu *v = arg;
	const struct interp_opts opts = {.boundary = boundary, .ctx = v};

	vcpu_bind(v->vcpu, t);
	if (v->run->opts->long_mode)
		vcpu_set_cr3(v->vcpu, v->run->cr3);
	int err = interp_run(v->vcpu, &v->source, &opts, &v->stats);

	/* a thread that ends has left KVM_RUN */
	err = err ? err : vcpu_interrupt(v->vcpu);
	v->finished = true;
	v->end = task_now(t);
	if (!err)
		err = arrive(v);
	return err;
}

/* ---- the VMM ---- */

static int wait_for_all(struct guest_run *run, struct task *t)
{
	int err = sync(t);

	while (!err && !all_there(run))
		err = task_block(t, WAIT_idle);
	return err;
}

static int keep(struct guest_run *run, const struct run_collection *c)
{
	if (run->n_collections == run->room) {
		size_t room = run->room ? 2 * run->room : 64;
		struct run_collection *grown = realloc(run->collections, room * sizeof(*grown));

		if (!grown)
			return KVMSIM_ENOMEM;
		run->collections = grown;
		run->room = room;
	}
	run->collections[run->n_collections++] = *c;
	return 0;
}

/* Every logged slot, one after the other. */
static int collect(struct guest_run *run, struct task *t, bool recorded)
{
	for (uint32_t i = 0; i < run->in->n_slots; i++) {
		struct run_collection c = {.epoch = run->target, .slot = i};

		if (!run->in->slots[i].logged)
			continue;
		c.start = task_now(t) - run->start;
		long n = kvm_collect_dirty_log(t, run->kvm, i, run->bitmap);

		if (n < 0)
			return (int)n;
		c.nr_dirty = (uint64_t)n;
		c.cycles = task_now(t) - run->start - c.start;
		int err = recorded ? keep(run, &c) : 0;

		if (err)
			return err;
	}
	return 0;
}

static int set_slot(struct guest_run *run, struct task *t, uint32_t i, bool log)
{
	const struct run_slot *s = &run->in->slots[i];
	enum run_host_memory host = run->opts->host_memory;
	const struct kvm_memory_region r = {.slot = i,
					    .flags = log ? KVM_MEM_LOG_DIRTY_PAGES : 0,
					    .base_gfn = s->base_gfn,
					    .npages = s->npages,
					    .host_populated = host <= RUN_HOST_PRESENT,
					    .host_anonymous = host == RUN_HOST_ANONYMOUS,
					    .host_level = s->host_level};

	return kvm_set_user_memory_region(t, run->kvm, &r);
}

/* Dirty logging on or off, slot after slot. */
static int set_log(struct guest_run *run, struct task *t, bool on)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < run->in->n_slots; i++)
		if (run->in->slots[i].logged)
			err = set_slot(run, t, i, on);
	return err;
}

/* Where PCs have their devices' registers: the last 32 MiB below 4 GiB. */
#define DEVICES_GFN    0xfe000ull
#define DEVICES_END    0x100000ull
#define DEVICES_TABLES ((DEVICES_END - DEVICES_GFN) >> 9)

static bool has_devices(const struct guest_run *run)
{
	for (uint32_t i = 0; i < run->in->n_slots; i++) {
		const struct run_slot *s = &run->in->slots[i];

		if (s->base_gfn < DEVICES_END && s->base_gfn + s->npages > DEVICES_GFN)
			return false;
	}
	return true;
}

/* Registers are mapped by pages of 4 KiB, as an OS does: tables from gpa @pt on. */
static void make_device_tables(struct guest_run *run, uint64_t pd, uint64_t pt)
{
	for (uint64_t i = 0; i < DEVICES_TABLES; i++)
		kvm_write_guest_u64(run->kvm, pd + ((DEVICES_GFN >> 9) + i) * 8,
				    (pt + (i << 12)) | 0x27);
	for (uint64_t gfn = DEVICES_GFN; gfn < DEVICES_END; gfn++)
		kvm_write_guest_u64(run->kvm, pt + (gfn - DEVICES_GFN) * 8, gfn << 12 | 0x67);
}

/* Page tables that map all up to the last slot's end, and up to 4 GiB, one to one, with 2M PTEs
 * where there is memory, in a slot of their own behind the last. Entries are as an OS leaves them:
 * P, W, U, A; leaves D and PS, too. */
static int make_tables(struct guest_run *run, struct task *t)
{
	struct kvm_memory_region r = {.slot = run->in->n_slots, .host_populated = true};
	bool devices = has_devices(run);
	uint64_t end = 0, gibs, pd;

	for (uint32_t i = 0; i < run->in->n_slots; i++) {
		const struct run_slot *s = &run->in->slots[i];

		end = s->base_gfn + s->npages > end ? s->base_gfn + s->npages : end;
	}
	gibs = (end + (1 << 18) - 1) >> 18;
	gibs = devices && gibs < 4 ? 4 : gibs;
	r.base_gfn = (end + 511) / 512 * 512;
	r.npages = 2 + gibs + (devices ? DEVICES_TABLES : 0);
	run->cr3 = r.base_gfn << 12;
	pd = run->cr3 + 0x2000;
	kvm_write_guest_u64(run->kvm, run->cr3, (run->cr3 + 0x1000) | 0x27);
	for (uint64_t i = 0; i < gibs; i++)
		kvm_write_guest_u64(run->kvm, run->cr3 + 0x1000 + i * 8, (pd + (i << 12)) | 0x27);
	for (uint64_t i = 0; i < gibs * 512; i++)
		kvm_write_guest_u64(run->kvm, pd + i * 8, i << 21 | 0xe7);
	if (devices)
		make_device_tables(run, pd, pd + (gibs << 12));
	return kvm_set_user_memory_region(t, run->kvm, &r);
}

static int set_up(struct guest_run *run, struct task *t)
{
	int err = run->opts->long_mode ? make_tables(run, t) : 0;

	for (uint32_t i = 0; !err && i < run->in->n_slots; i++)
		err = set_slot(run, t, i, false);
	if (!err && !run->opts->running) {
		err = set_log(run, t, true);
		err = err ? err : collect(run, t, false);
	}
	for (uint32_t i = 0; !err && i < run->in->n_vcpus; i++) {
		struct run_vcpu *v = &run->vcpus[i];
		char name[16];

		snprintf(name, sizeof(name), "vcpu%u", i);
		v->run = run;
		v->id = i;
		v->source = (struct op_source){.next = interruptible, .ctx = v};
		err = kvm_create_vcpu(run->kvm, &v->vcpu);
		if (!err) {
			const struct task_opts o = {
				.name = name, .fn = run_vcpu, .arg = v, .start = task_now(t)};

			err = task_create(run->sim, &o, &v->task);
		}
	}
	err = err ? err : kvm_start_ring_reaper(run->kvm, task_now(t));
	run->start = task_now(t);
	kvm_mmu_lock_stats_reset(run->kvm);
	run_watch_start(&run->watch, run->start);
	if (run->opts->contention)
		contention_start(run->opts->contention);
	run_snapshot(run, run->before);
	return err ? err : run_export_start(run->export);
}

/* Epochs that all vCPUs have ended which still run; those of the last one when none does. */
static uint64_t reached(const struct guest_run *run)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = 0; i < run->in->n_vcpus; i++) {
		const struct run_vcpu *v = &run->vcpus[i];

		most = v->ended > most ? v->ended : most;
		if (!v->finished && v->ended < least)
			least = v->ended;
	}
	return least == UINT64_MAX ? most : least;
}

/* Waits for the end of the next interval: 1; at the ends of all vCPUs 0; or a negative error. */
static int next_interval(struct guest_run *run, struct task *t)
{
	int err = wait_for_all(run, t);
	uint64_t now = err ? 0 : reached(run);

	if (err || now < run->target)
		return err;
	if (run_interrupted)
		return KVMSIM_EINTR;
	/* Those that a collection beside running vCPUs took longer than are over, too. */
	while (run->opts->running && now - run->target >= run->every)
		run->target += run->every;
	return 1;
}

/* The vCPUs stop at each interval. */
static int collect_stopped(struct guest_run *run, struct task *t)
{
	uint64_t phase = run->opts->phase;
	int r;

	run->target = phase ? phase : run->every;
	while ((r = next_interval(run, t)) > 0) {
		r = collect(run, t, run->target != phase);
		if (r)
			return r;
		run->target += run->every;
		for (uint32_t i = 0; i < run->in->n_vcpus; i++) {
			if (run->vcpus[i].waiting)
				task_wake(run->vcpus[i].task, task_now(t));
		}
	}
	return r;
}

static int collect_running(struct guest_run *run, struct task *t)
{
	uint64_t done = 0;
	int r;

	run->target = run->opts->phase ? run->opts->phase : run->every;
	r = next_interval(run, t);
	r = r > 0 ? set_log(run, t, true) : r;
	run->target += run->every;
	while (!r && (r = next_interval(run, t)) > 0) {
		r = collect(run, t, true);
		run->target += run->every;
		if (!r && ++done == run->opts->disable_after)
			return set_log(run, t, false);
	}
	return r;
}

int run_vmm(struct task *t, void *arg)
{
	struct guest_run *run = arg;
	int err = set_up(run, t);

	if (err)
		return err;
	return run->opts->running ? collect_running(run, t) : collect_stopped(run, t);
}
