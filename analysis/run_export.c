// SPDX-License-Identifier: GPL-3.0-or-later
/* A run as a time line and as folded stacks. */
#include "analysis/run_export.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analysis/chrome.h"
#include "analysis/run_folded.h"
#include "analysis/run_guest.h"
#include "model/sim/profile.h"

/* The time line's processes. Tracks: the vCPU; the task; the task and the lock; the slot. */
enum { PID_VCPUS = 1, PID_IOCTLS, PID_LOCKS, PID_STALLS, PID_ROUNDS };
static const char *const process_names[] = {"",
					    "vCPUs: what they do",
					    "the VMM's ioctls",
					    "locks: waits and holds",
					    "stalls, and whom they were for",
					    "collections of the dirty log"};

#define MAX_LOCKS 8 /* classes of a VM's */

/* What a vCPU is doing. */
struct vcpu_state {
	char name[32]; /* "": not known yet */
	cycles_t since;
};

struct run_export {
	struct run_export_opts opts;
	struct guest_run *run;
	struct chrome chrome;
	uint64_t hz;
	struct vcpu_state *vcpu; /* the input's */
	const struct lock_class *lock[MAX_LOCKS];
	struct kvm_observer observer;
	struct kvm_watch watch;
	struct lock_watch locks;
	const struct kvm_watch *next;
	struct folded_ledger folded;
};

/* Where the profile says no frequency a unit is taken for 1 ns. */
static uint64_t ns(const struct run_export *x, cycles_t c)
{
	return x->hz ? (uint64_t)((unsigned __int128)c * 1000000000u / x->hz) : c;
}

/* Both ends are rounded down, so that neighbours meet. */
static void span(struct run_export *x, int64_t pid, int64_t tid, const char *name, cycles_t start,
		 cycles_t cycles)
{
	uint64_t begin = ns(x, start);

	chrome_span(&x->chrome, pid, tid, name, begin, ns(x, start + cycles) - begin);
}

/* ---- vCPUs ---- */

static const char *exit_name(uint64_t code, char buf[32])
{
	static const struct {
		uint64_t code;
		const char *name;
	} names[] = {
		{EXIT_CR0_WRITE, "write_cr0"},
		{EXIT_CR3_WRITE, "write_cr3"},
		{EXIT_CR4_WRITE, "write_cr4"},
		{EXIT_PF, "#PF"},
		{EXIT_INTR, "interrupt"},
		{EXIT_CR0_SEL_WRITE, "cr0_sel_write"},
		{EXIT_HLT, "hlt"},
		{EXIT_INVLPG, "invlpg"},
		{EXIT_IOIO, "io"},
		{EXIT_MSR, "msr"},
		{EXIT_NPF, "npf"},
		{EXIT_PML_FULL, "pml_full"},
		{EXIT_EPT_MISCONFIG, "ept_misconfig"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == code) {
			snprintf(buf, 32, "exit %s", names[i].name);
			return buf;
		}
	snprintf(buf, 32, "exit 0x%" PRIx64, code);
	return buf;
}

static void enter(struct run_export *x, uint32_t vcpu, const char *state, cycles_t now)
{
	struct vcpu_state *v = &x->vcpu[vcpu];

	if (v->name[0]) {
		span(x, PID_VCPUS, vcpu, v->name, v->since, now - v->since);
		chrome_end(&x->chrome);
	}
	snprintf(v->name, sizeof(v->name), "%s", state);
	v->since = now;
}

static void instant(struct run_export *x, const struct kvm_trace_event *e)
{
	struct chrome *c = &x->chrome;

	chrome_instant(c, PID_VCPUS, e->vcpu, kvm_trace_name(e->id), ns(x, e->time));
	chrome_hex(c, "rip", e->rip);
	switch (e->id) {
	case TRACE_kvm_page_fault:
		chrome_hex(c, "address", e->addr);
		chrome_hex(c, "error_code", e->code);
		break;
	case TRACE_fast_page_fault:
		chrome_hex(c, "address", e->addr);
		chrome_u64(c, "ret", e->code);
		break;
	case TRACE_kvm_mmio:
	case TRACE_kvm_pio:
		chrome_hex(c, "address", e->addr);
		break;
	case TRACE_kvm_dirty_ring_reset:
	case TRACE_kvm_dirty_ring_exit:
		chrome_u64(c, "dirty", e->ring_dirty);
		chrome_u64(c, "reset", e->ring_reset);
		break;
	case TRACE_kvm_mmu_split_huge_page:
		chrome_hex(c, "gfn", e->gfn);
		break;
	default:
		break;
	}
	chrome_end(c);
}

static void on_event(void *ctx, const struct kvm_trace_event *e)
{
	struct run_export *x = ctx;
	char name[32];

	if (e->vcpu >= x->run->in->n_vcpus)
		return;
	switch (e->id) {
	case TRACE_kvm_entry:
		enter(x, e->vcpu, "guest", e->time);
		break;
	case TRACE_kvm_exit:
		enter(x, e->vcpu, exit_name(e->code, name), e->time);
		break;
	case TRACE_kvm_userspace_exit:
		enter(x, e->vcpu, "user space", e->time);
		break;
	case TRACE_kvm_page_fault:
	case TRACE_fast_page_fault:
	case TRACE_kvm_mmio:
	case TRACE_kvm_pio:
	case TRACE_kvm_dirty_ring_reset:
	case TRACE_kvm_dirty_ring_exit:
	case TRACE_kvm_pml_full:
	case TRACE_kvm_mmu_split_huge_page:
	case TRACE_kvm_mmu_zap_all_fast:
		instant(x, e);
		break;
	default:
		break;
	}
}

/* ---- ioctls, stalls, locks ---- */

static const char *operation_name(unsigned op)
{
	static const char *const names[] = {
#define X(name, help) help,
		KVM_OPERATIONS(X)
#undef X
	};

	return names[op];
}

static void on_ioctl(void *ctx, const struct kvm_ioctl *i)
{
	struct run_export *x = ctx;

	span(x, PID_IOCTLS, task_id(i->task), operation_name(i->operation), i->start, i->cycles);
	chrome_u64(&x->chrome, "longest_hold_ns", ns(x, i->hold));
	chrome_u64(&x->chrome, "longest_shared_hold_ns", ns(x, i->hold_shared));
	chrome_end(&x->chrome);
	if (x->next)
		x->next->ioctl(x->next->ctx, i);
}

static void on_stall(void *ctx, const struct kvm_stall *s)
{
	struct run_export *x = ctx;
	char name[32];

	if (s->waited || s->why.by) {
		span(x, PID_STALLS, s->vcpu, exit_name(s->exit, name), s->start, s->cycles);
		chrome_u64(&x->chrome, "waited_ns", ns(x, s->waited));
		if (s->waited)
			chrome_text(&x->chrome, "for", model_vocabulary.waits[s->why.wait]);
		if (s->why.by) {
			chrome_text(&x->chrome, "by", task_name(s->why.by));
			chrome_text(&x->chrome, "which_was_in",
				    s->why.operation
					    ? operation_name(s->why.operation)
					    : model_vocabulary.activities[s->why.activity]);
		}
		chrome_end(&x->chrome);
	}
	if (x->next)
		x->next->stall(x->next->ctx, s);
}

/* A track for each task and lock, where it is waited for, then held. */
static int64_t lock_track(struct run_export *x, const struct lock_spell *s)
{
	unsigned k = 0;

	while (k < MAX_LOCKS - 1 && x->lock[k] && x->lock[k] != s->class)
		k++;
	if (!x->lock[k])
		x->lock[k] = s->class;
	return (int64_t)task_id(s->task) * MAX_LOCKS + k;
}

static void on_lock(void *ctx, const struct lock_spell *s)
{
	struct run_export *x = ctx;
	char name[64];

	snprintf(name, sizeof(name), "%s %s%s", s->held ? "holds" : "waits for", s->class->name,
		 s->shared ? " for reading" : "");
	span(x, PID_LOCKS, lock_track(x, s), name, s->start, s->cycles);
	if (s->by)
		chrome_text(&x->chrome, "held_by", task_name(s->by));
	chrome_end(&x->chrome);
	if (x->next->locks)
		x->next->locks->spell(x->next->locks->ctx, s);
}

/* ---- the whole ---- */

struct run_export *run_export_create(const struct run_export_opts *opts, struct guest_run *run)
{
	struct run_export *x;

	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->opts = *opts;
	x->run = run;
	x->hz = profile_hz(run->opts->profile);
	x->vcpu = calloc(run->in->n_vcpus, sizeof(*x->vcpu));
	if (!x->vcpu) {
		free(x);
		return NULL;
	}
	x->observer = (struct kvm_observer){.event = on_event, .ctx = x};
	x->locks = (struct lock_watch){.spell = on_lock, .ctx = x};
	x->watch = (struct kvm_watch){
		.ioctl = on_ioctl, .stall = on_stall, .ctx = x, .locks = &x->locks};
	if (opts->perfetto) {
		chrome_open(&x->chrome, opts->perfetto);
		for (int64_t pid = PID_VCPUS; pid <= PID_ROUNDS; pid++)
			chrome_process(&x->chrome, pid, process_names[pid]);
	}
	return x;
}

void run_export_free(struct run_export *x)
{
	if (!x)
		return;
	folded_ledger_free(&x->folded);
	free(x->vcpu);
	free(x);
}

const struct kvm_observer *run_export_observer(const struct run_export *x)
{
	return x && x->opts.perfetto ? &x->observer : NULL;
}

const struct kvm_watch *run_export_watch(struct run_export *x, const struct kvm_watch *watch)
{
	if (!x || !x->opts.perfetto)
		return watch;
	x->next = watch;
	return &x->watch;
}

int run_export_start(struct run_export *x)
{
	return x && x->opts.folded ? folded_ledger_start(&x->folded, x->run->sim) : 0;
}

static void name_tracks(struct run_export *x)
{
	struct chrome *c = &x->chrome;
	char name[96];

	for (uint32_t v = 0; v < x->run->in->n_vcpus; v++) {
		snprintf(name, sizeof(name), "vCPU %u", v);
		chrome_track(c, PID_VCPUS, v, name);
		chrome_track(c, PID_STALLS, v, name);
	}
	for (uint32_t t = 0; sim_task_name(x->run->sim, t); t++) {
		chrome_track(c, PID_IOCTLS, t, sim_task_name(x->run->sim, t));
		for (uint32_t k = 0; k < MAX_LOCKS && x->lock[k]; k++) {
			snprintf(name, sizeof(name), "%s: %s", sim_task_name(x->run->sim, t),
				 x->lock[k]->name);
			chrome_track(c, PID_LOCKS, (int64_t)t * MAX_LOCKS + k, name);
		}
	}
	for (uint32_t s = 0; s < x->run->in->n_slots; s++)
		chrome_track(c, PID_ROUNDS, s, x->run->in->slots[s].name);
}

static void finish_perfetto(struct run_export *x)
{
	const struct guest_run *run = x->run;
	const char *about[] = {"profile", profile_name(run->opts->profile), "times",
			       x->hz ? "simulated, in microseconds"
				     : "simulated, in thousands of the profile's unit",
			       NULL};

	for (uint32_t v = 0; v < run->in->n_vcpus; v++)
		enter(x, v, "",
		      run->vcpus[v].end > x->vcpu[v].since ? run->vcpus[v].end : x->vcpu[v].since);
	for (size_t i = 0; i < run->n_collections; i++) {
		const struct run_collection *r = &run->collections[i];
		char name[40];

		snprintf(name, sizeof(name), "round at epoch %" PRIu64, r->epoch);
		span(x, PID_ROUNDS, r->slot, name, run->start + r->start, r->cycles);
		chrome_u64(&x->chrome, "dirty_pages", r->nr_dirty);
		chrome_end(&x->chrome);
	}
	name_tracks(x);
	chrome_close(&x->chrome, about);
}

void run_export_finish(struct run_export *x)
{
	if (x && x->opts.perfetto)
		finish_perfetto(x);
	if (x && x->opts.folded)
		folded_ledger_write(&x->folded, x->run->sim, x->opts.folded);
}
