// SPDX-License-Identifier: GPL-3.0-or-later
/* A host's trace as a time line. */
#define HASH_NONFATAL_OOM 1
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "analysis/chrome.h"
#include "analysis/export.h"
#include "analysis/host_progress.h"
#include "analysis/host_threads.h"
#include "analysis/run.h"

/* The time line's processes; their tracks are the threads' ids, of the last the CPUs'. */
enum { PID_STATES = 1, PID_LOCKS, PID_STALLS, PID_LOST };
static const char *const process_names[] = {"", "vCPUs: what they do", "waits for locks",
					    "stalls, and who ended them",
					    "events that are missing, by CPU"};

#define MAX_TRACKS    65536
#define MAX_CPUS      4096
#define PID_MAX_LIMIT (1 << 22) /* the kernel's, of tids */
#define ANY_CPU	      MAX_CPUS	/* place of what has no CPU */

struct track_key {
	int64_t pid, tid;
};
struct track {
	struct track_key key;
	int64_t vcpu;
	UT_hash_handle hh;
};

/* From the last event before to the first after. */
struct hole {
	bool there, counted;
	uint64_t from, count, markers, elisions;
};

struct writing {
	struct chrome chrome;
	struct host_threads *threads;
	struct track *tracks;
	FILE *to; /* nothing is written before the first event */
	uint64_t events;
	uint64_t last[MAX_CPUS + 1]; /* time of the CPU's last event, + 1; 0: none */
	struct hole hole[MAX_CPUS + 1];
};

static int name_track(struct writing *w, int64_t pid, const struct host_who *who)
{
	const struct track_key key = {pid, who->tid};
	struct track *t;
	char name[HOST_COMM + 80];

	/* The analyser loses sight of the bytes that are hashed. */
	// NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
	HASH_FIND(hh, w->tracks, &key, sizeof(key), t);
	if (t && t->vcpu == who->vcpu)
		return 0;
	if (!t && HASH_COUNT(w->tracks) >= MAX_TRACKS)
		return 0;
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return KVMSIM_ENOMEM;
		t->key = key;
		HASH_ADD(hh, w->tracks, key, sizeof(t->key), t);
		if (!t->hh.tbl) {
			free(t);
			return KVMSIM_ENOMEM;
		}
	}
	t->vcpu = who->vcpu;
	if (who->vcpu >= 0)
		snprintf(name, sizeof(name), "vCPU %" PRId64 " %s", who->vcpu, who->comm);
	else
		snprintf(name, sizeof(name), "%s", who->comm[0] ? who->comm : "thread");
	chrome_track(&w->chrome, pid, who->tid, name);
	return 0;
}

static void put_who(struct chrome *c, const struct host_who *by)
{
	chrome_text(c, "by", by->comm[0] ? by->comm : by->tid ? "?" : "the idle task");
	if (by->tid >= 0)
		chrome_u64(c, "by_tid", (uint64_t)by->tid);
	if (by->vcpu >= 0)
		chrome_u64(c, "by_vcpu", (uint64_t)by->vcpu);
}

/* ---- spans ---- */

static int on_segment(void *ctx, const struct host_segment *s)
{
	struct writing *w = ctx;
	const char *state = host_state_name(s->state);
	char name[HOST_REASON + 32];
	int err = name_track(w, PID_STATES, s->who);

	snprintf(name, sizeof(name), "%s%s%s", state, s->detail[0] ? " " : "", s->detail);
	chrome_span(&w->chrome, PID_STATES, s->who->tid, s->unsure ? "cannot tell" : name, s->begin,
		    s->end - s->begin);
	if (s->unsure)
		chrome_text(&w->chrome, "began_as", name);
	if (s->open)
		chrome_true(&w->chrome, "open");
	if (s->cpu >= 0)
		chrome_u64(&w->chrome, "cpu", (uint64_t)s->cpu);
	chrome_end(&w->chrome);
	return err;
}

static int on_stall(void *ctx, const struct host_stall *s)
{
	struct writing *w = ctx;
	struct chrome *c = &w->chrome;
	bool lock = s->kind == HOST_STALL_LOCK;
	static const char *const nobody[HOST_N_BLAMES] = {
		[HOST_BLAME_UNSEEN] = "not seen",
		[HOST_BLAME_LOST] = "cannot tell",
		[HOST_BLAME_INTERRUPT] = "interrupt",
		[HOST_BLAME_SOFTIRQ] = "softirq",
	};
	int64_t pid = lock ? PID_LOCKS : PID_STALLS;
	struct host_who who = s->who;
	int err;

	/* those would lie across the others; the states show them */
	if (s->kind == HOST_STALL_PREEMPTED || s->kind == HOST_STALL_SLEPT)
		return 0;
	/* one within another need not end before it: they have tracks of their own */
	who.tid += (int64_t)s->depth * PID_MAX_LIMIT;
	err = name_track(w, pid, &who);
	chrome_span(c, pid, who.tid, s->unsure ? "cannot tell" : host_stall_name(s->kind), s->begin,
		    s->end - s->begin);
	if (s->unsure)
		chrome_text(c, "began_as", host_stall_name(s->kind));
	if (s->open)
		chrome_true(c, "open");
	if (lock) {
		chrome_hex(c, "lock", s->lock);
		chrome_hex(c, "flags", s->flags);
	}
	if (s->blame == HOST_BLAME_KNOWN)
		put_who(c, &s->by);
	else
		chrome_text(c, "by", nobody[s->blame]);
	if (s->until && s->until >= s->begin)
		chrome_u64(c, "until_after_ns", s->until - s->begin);
	if (s->resets)
		chrome_u64(c, "resets", s->resets);
	chrome_end(c);
	return err;
}

/* ---- what is missing ---- */

static size_t place(int64_t cpu)
{
	return cpu < 0 || cpu >= MAX_CPUS ? ANY_CPU : (size_t)cpu;
}

static struct hole *missing(struct writing *w, int64_t cpu)
{
	struct hole *h = &w->hole[place(cpu)];
	uint64_t last = w->last[place(cpu)];

	last = last ? last : w->last[ANY_CPU];
	if (!h->there)
		*h = (struct hole){.there = true, .counted = true, .from = last};
	return h;
}

static void end_hole(struct writing *w, size_t at, uint64_t now)
{
	struct hole *h = &w->hole[at];
	uint64_t from = h->from ? h->from - 1 : now;
	char name[64], cpu[32];

	if (!h->there)
		return;
	h->there = false;
	if (h->markers && h->counted)
		snprintf(name, sizeof(name), "lost %" PRIu64 " events", h->count);
	else
		snprintf(name, sizeof(name), h->markers ? "lost events" : "left out of the text");
	snprintf(cpu, sizeof(cpu), at == ANY_CPU ? "no known CPU" : "CPU %zu", at);
	chrome_track(&w->chrome, PID_LOST, (int64_t)at, cpu);
	chrome_span(&w->chrome, PID_LOST, (int64_t)at, name, from < now ? from : now,
		    from < now ? now - from : 0);
	chrome_u64(&w->chrome, "markers", h->markers + h->elisions);
	chrome_end(&w->chrome);
}

static int on_loss(void *ctx, const struct host_loss *l)
{
	struct writing *w = ctx;
	struct hole *h;

	if (l->header && !l->count) /* which says that nothing was lost */
		return 0;
	h = missing(w, l->cpu);
	h->markers++;
	h->counted &= l->count != UINT64_MAX;
	h->count += l->count != UINT64_MAX ? l->count : 0;
	return host_threads_loss(w->threads, l);
}

static int on_elision(void *ctx)
{
	struct writing *w = ctx;

	missing(w, -1)->elisions++;
	return host_threads_elision(w->threads);
}

/* ---- instants ---- */

static void put_fields(struct chrome *c, const struct host_event *e)
{
	for (unsigned f = 0; f < HOST_N_FIELDS; f++)
		if (host_has(e, f))
			chrome_hex(c, host_field_name(f), e->v[f]);
}

static bool is_instant(const struct host_event *e)
{
	switch (e->id) {
	case HOST_kvm_page_fault:
	case HOST_fast_page_fault:
	case HOST_kvm_mmio:
	case HOST_kvm_pio:
	case HOST_kvm_dirty_ring_exit:
	case HOST_kvm_dirty_ring_reset:
	case HOST_kvm_pml_full:
	case HOST_kvm_mmu_zap_all_fast:
	case HOST_kvm_unmap_hva_range:
		return true;
	default:
		return false;
	}
}

static void begin(struct writing *w)
{
	chrome_open(&w->chrome, w->to);
	for (int64_t pid = PID_STATES; pid <= PID_LOST; pid++)
		chrome_process(&w->chrome, pid, process_names[pid]);
}

static int on_event(void *ctx, const struct host_event *e)
{
	struct writing *w = ctx;
	const struct host_thread *th;
	struct host_who nobody = {.tid = 0, .vcpu = -1};
	int err;

	if (e->time_ns == HOST_NO_TIME)
		return 0;
	if (!w->events++)
		begin(w);
	if (w->hole[place(e->cpu)].there)
		end_hole(w, place(e->cpu), e->time_ns);
	if (w->hole[ANY_CPU].there)
		end_hole(w, ANY_CPU, e->time_ns);
	w->last[place(e->cpu)] = w->last[ANY_CPU] = e->time_ns + 1;
	err = host_threads_event(w->threads, e);
	if (err || !is_instant(e))
		return err;
	th = host_threads_current(w->threads);
	err = name_track(w, PID_STATES, th ? &th->who : &nobody);
	chrome_instant(&w->chrome, PID_STATES, th ? th->who.tid : 0, host_event_name(e->id),
		       e->time_ns);
	put_fields(&w->chrome, e);
	chrome_end(&w->chrome);
	return err;
}

/* ---- the whole ---- */

/* Also after an error: what is there, is whole. */
static void finish(struct writing *w, const char *path)
{
	const char *about[] = {"source", path, "times", "the trace's, in microseconds", NULL};
	uint64_t end = host_threads_totals(w->threads).last;

	for (size_t i = 0; i <= ANY_CPU; i++)
		end_hole(w, i, end);
	chrome_close(&w->chrome, about);
}

int export_perfetto(const char *path, const struct kvmsim_errsink *errors, FILE *to,
		    struct host_result *result, uint64_t *n_events)
{
	struct writing *w = calloc(1, sizeof(*w));
	const struct host_threads_sink threads = {
		.ctx = w, .segment = on_segment, .stall = on_stall};
	const struct host_sink sink = {
		.ctx = w, .event = on_event, .loss = on_loss, .elision = on_elision};
	struct host_progress progress;
	const struct host_opts opts = {.interrupted = &run_interrupted,
				       .progress = host_progress_begin(&progress),
				       .progress_ctx = &progress};
	struct track *t, *next;
	int err = KVMSIM_ENOMEM;

	memset(result, 0, sizeof(*result));
	if (w)
		w->threads = host_threads_create(&threads);
	if (w && w->threads) {
		w->to = to;
		err = host_read(path, &opts, &sink, errors, result);
		host_progress_end(&progress);
		err = err ? err : host_threads_end(w->threads);
		*n_events = w->events;
		if (!err && !w->events && result->counts.records)
			err = kvmsim_err(errors, KVMSIM_EPARSE,
					 "%s: its records have no times: there is no time line",
					 path);
		if (w->events)
			finish(w, path);
		HASH_ITER(hh, w->tracks, t, next)
		{
			/* The analyser takes the table to be freed with an element that is not the
			 * last. */
			HASH_DEL(w->tracks, t); // NOLINT(clang-analyzer-unix.Malloc)
			free(t);
		}
		host_threads_free(w->threads);
	}
	free(w);
	return err;
}
