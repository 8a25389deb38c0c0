// SPDX-License-Identifier: GPL-3.0-or-later
/* What the threads of a host's trace are, and what they do. */
#include "analysis/host_threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/host_threads_priv.h"

const char *host_state_name(enum host_state s)
{
	static const char *const names[HOST_N_STATES] = {"unknown",   "guest",	"host",
							 "userspace", "halted", "descheduled"};

	return names[s];
}

static bool is_kvm(const struct host_event *e)
{
	switch (e->id) {
	case HOST_OTHER:
	case HOST_contention_begin:
	case HOST_contention_end:
	case HOST_sched_switch:
	case HOST_sched_wakeup:
	case HOST_sched_waking:
	case HOST_sched_wakeup_new:
		return false;
	default:
		return true;
	}
}

/* ---- losses ---- */

uint64_t host_threads_mark(const struct host_threads *t)
{
	return t->losses;
}

bool host_threads_lost_since(const struct host_threads *t, uint64_t mark, int64_t cpu)
{
	if (cpu < 0 || cpu >= HOST_MAX_CPUS)
		return t->lost_somewhere > mark;
	return t->lost_on[cpu] > mark || t->lost_anywhere > mark;
}

int host_threads_loss(struct host_threads *t, const struct host_loss *l)
{
	if (l->header) /* before the first record */
		return 0;
	t->lost_somewhere = ++t->losses;
	if (l->cpu < 0 || l->cpu >= HOST_MAX_CPUS)
		t->lost_anywhere = t->losses;
	else
		t->lost_on[l->cpu] = t->losses;
	return 0;
}

int host_threads_elision(struct host_threads *t)
{
	t->lost_anywhere = t->lost_somewhere = ++t->losses;
	return 0;
}

/* ---- the table ---- */

static void keep_comm(struct host_who *w, struct host_text comm)
{
	size_t n = comm.len < HOST_COMM - 1 ? comm.len : HOST_COMM - 1;

	if (!comm.len || (comm.len == 5 && !memcmp(comm.at, "<...>", 5)))
		return;
	memcpy(w->comm, comm.at, n);
	w->comm[n] = '\0';
}

struct thread *host_thread_find(struct host_threads *t, int64_t tid)
{
	struct thread *th;

	HASH_FIND(hh, t->by_tid, &tid, sizeof(tid), th);
	return th;
}

struct host_who host_who_of(struct host_threads *t, const struct host_event *e)
{
	const struct thread *th = host_thread_find(t, e->tid);
	struct host_who w = {.tid = e->tid, .vcpu = -1};

	if (th)
		w = th->pub.who;
	keep_comm(&w, e->comm);
	return w;
}

static int end_segment(struct host_threads *t, struct thread *th, uint64_t time, int64_t cpu,
		       bool unsure, bool open)
{
	struct host_segment s = {.who = &th->pub.who,
				 .state = th->state,
				 .detail = th->detail,
				 .begin = th->since,
				 .end = time,
				 .cpu = th->cpu,
				 .unsure = unsure,
				 .open = open};

	if (th->state == HOST_STATE_NONE || time < th->since || !t->sink->segment)
		return 0;
	s.unsure |= host_threads_lost_since(t, th->mark, th->cpu) ||
		    host_threads_lost_since(t, th->mark, cpu);
	return t->sink->segment(t->sink->ctx, &s);
}

/* At @end, on @cpu; @open: it goes on, but that is all that is known. */
static int forget(struct host_threads *t, struct thread *th, uint64_t end, int64_t cpu, bool open)
{
	int err = end_segment(t, th, end, cpu, false, open);

	err = err ? err : host_stalls_close(t, th, end, cpu, open);
	if (!err && t->sink->gap && th->pub.kvm_records && th->gap.end > th->gap.begin) {
		th->gap.who = th->pub.who;
		err = t->sink->gap(t->sink->ctx, &th->gap);
	}
	/* The analyser knows neither that it is in the table nor that it is in the list. */
	HASH_DEL(t->by_tid, th); // NOLINT(clang-analyzer-core.NullDereference)
	DL_DELETE(t->oldest, th);
	if (t->current == th)
		t->current = NULL;
	free(th);
	return err;
}

/* The thread of that number, the youngest now; made when it is not there and @make. */
static int get_thread(struct host_threads *t, const struct host_event *e, bool make)
{
	struct thread *th = host_thread_find(t, e->tid);
	int err = 0;

	if (!th && make) {
		if (HASH_COUNT(t->by_tid) >= HOST_MAX_THREADS) {
			t->totals.forgotten++;
			err = forget(t, t->oldest, t->totals.last, -1, true);
			if (err)
				return err;
		}
		th = calloc(1, sizeof(*th));
		if (!th)
			return KVMSIM_ENOMEM;
		th->pub.who = (struct host_who){.tid = e->tid, .vcpu = -1};
		th->pub.tgid = -1;
		th->pub.last_time = HOST_NO_TIME;
		HASH_ADD(hh, t->by_tid, pub.who.tid, sizeof(th->pub.who.tid), th);
		if (!th->hh.tbl) {
			free(th);
			return KVMSIM_ENOMEM;
		}
		DL_APPEND(t->oldest, th);
	} else if (th && th->next) {
		DL_DELETE(t->oldest, th);
		DL_APPEND(t->oldest, th);
	}
	t->current = th;
	return 0;
}

/* ---- states ---- */

/* The thread, running, changes what it does. @seen: by the event that ends such a state. A time
 * before the state's beginning is taken for that. */
static int enter(struct host_threads *t, struct thread *th, const struct host_event *e,
		 enum host_state state, const char *detail, bool seen)
{
	bool backwards = th->state != HOST_STATE_NONE && e->time_ns < th->since;
	uint64_t now = backwards ? th->since : e->time_ns;
	int err = end_segment(t, th, now, e->cpu, !seen || backwards, false);

	th->state = state;
	snprintf(th->detail, sizeof(th->detail), "%s", detail);
	th->since = now;
	th->mark = t->losses;
	th->cpu = e->cpu;
	return err;
}

static int came_back(struct host_threads *t, struct thread *th, const struct host_event *e,
		     bool seen)
{
	int err = host_stalls_on(t, th, e, seen);

	if (th->state != HOST_OFF)
		return err;
	return err ? err : enter(t, th, e, th->under, th->under_detail, seen);
}

static int goes_away(struct host_threads *t, struct thread *th, const struct host_event *e)
{
	char detail[HOST_REASON] = "";
	bool sleeps = !host_has(e, HOST_F_prev_state) || e->v[HOST_F_prev_state] != 'R';

	host_stalls_off(t, th, e);
	/* a halted vCPU sleeps as a matter of course; what has never been a vCPU has no states */
	if (th->state == HOST_STATE_NONE || (th->state == HOST_HALTED && sleeps))
		return 0;
	th->under = th->state;
	memcpy(th->under_detail, th->detail, sizeof(detail));
	if (!sleeps && host_has(e, HOST_F_next_pid))
		snprintf(detail, sizeof(detail), "for %" PRId64, (int64_t)e->v[HOST_F_next_pid]);
	return enter(t, th, e, HOST_OFF, detail, true);
}

/* The thread that has ended, and is switched away from for good; its number is free for another. */
static struct thread *ended(struct host_threads *t, const struct host_event *e)
{
	uint64_t state = host_has(e, HOST_F_prev_state) ? e->v[HOST_F_prev_state] : 0;

	if (e->id != HOST_sched_switch || (state != 'Z' && state != 'X' && state != 'x') ||
	    !host_has(e, HOST_F_prev_pid))
		return NULL;
	return host_thread_find(t, (int64_t)e->v[HOST_F_prev_pid]);
}

static int on_switch(struct host_threads *t, const struct host_event *e)
{
	struct thread *prev = NULL, *next = NULL;
	int err = 0;

	if (host_has(e, HOST_F_prev_pid))
		prev = host_thread_find(t, (int64_t)e->v[HOST_F_prev_pid]);
	if (host_has(e, HOST_F_next_pid))
		next = host_thread_find(t, (int64_t)e->v[HOST_F_next_pid]);
	if (prev == next)
		return 0;
	if (prev) {
		err = came_back(t, prev, e, false);
		if (!err && prev != ended(t, e))
			err = goes_away(t, prev, e);
	}
	if (!err && next)
		err = came_back(t, next, e, true);
	return err;
}

static int on_exit_event(struct host_threads *t, struct thread *th, const struct host_event *e)
{
	bool halts = host_exit_halts(e);
	char reason[HOST_REASON];
	int err = enter(t, th, e, halts ? HOST_HALTED : HOST_EXIT, host_reason(e, reason),
			th->state == HOST_GUEST);

	err = err ? err : host_stalls_finish(t, &th->halt, e->time_ns, e->cpu);
	if (halts && th->pub.who.vcpu >= 0)
		host_stalls_begin(t, th, &th->halt, HOST_STALL_HALT, e);
	return err;
}

static int on_userspace(struct host_threads *t, struct thread *th, const struct host_event *e)
{
	char detail[HOST_REASON] = "";
	int err;

	if (host_has(e, HOST_F_reason))
		host_userspace_reason((int64_t)e->v[HOST_F_reason], detail);
	err = enter(t, th, e, HOST_USERSPACE, detail,
		    th->state == HOST_EXIT || th->state == HOST_HALTED);
	if (th->ring_exit && !th->ring.on)
		host_stalls_begin(t, th, &th->ring, HOST_STALL_RING, e);
	th->ring_exit = false;
	return err;
}

/* A record of KVM by the thread itself. */
static int on_kvm(struct host_threads *t, struct thread *th, const struct host_event *e)
{
	enum host_state was = th->state;
	int err = host_stalls_finish(t, &th->ring, e->time_ns, e->cpu);

	if (err)
		return err;
	switch (e->id) {
	case HOST_kvm_entry:
		err = host_stalls_finish(t, &th->halt, e->time_ns, e->cpu);
		th->ring_exit = false;
		return err ? err : enter(t, th, e, HOST_GUEST, "", was != HOST_GUEST);
	case HOST_kvm_exit:
		return on_exit_event(t, th, e);
	case HOST_kvm_userspace_exit:
		err = host_stalls_finish(t, &th->halt, e->time_ns, e->cpu);
		return err ? err : on_userspace(t, th, e);
	case HOST_kvm_vcpu_wakeup:
		err = host_stalls_finish(t, &th->halt, e->time_ns, e->cpu);
		if (err || was != HOST_HALTED)
			return err;
		return enter(t, th, e, HOST_EXIT, "HLT", true);
	case HOST_kvm_dirty_ring_exit:
		th->ring_exit = true;
		break;
	default:
		break;
	}
	return was == HOST_USERSPACE ? enter(t, th, e, HOST_EXIT, "KVM_RUN", true) : 0;
}

/* ---- one event ---- */

static void keep_gap(struct host_threads *t, struct thread *th, const struct host_event *e)
{
	struct host_gap *g = &th->gap;
	uint64_t last = th->pub.last_time;

	if (last != HOST_NO_TIME && e->time_ns - last > g->end - g->begin) {
		g->begin = last;
		g->end = e->time_ns;
		g->line = e->line;
		g->unsure = host_threads_lost_since(t, th->last_mark, th->pub.last_cpu) ||
			    host_threads_lost_since(t, th->last_mark, e->cpu);
	}
}

static int own_record(struct host_threads *t, struct thread *th, const struct host_event *e)
{
	bool kvm = is_kvm(e), backwards;
	int err = 0;

	keep_comm(&th->pub.who, e->comm);
	if (e->tgid >= 0)
		th->pub.tgid = e->tgid;
	if (kvm && host_has(e, HOST_F_vcpu))
		th->pub.who.vcpu = (int64_t)e->v[HOST_F_vcpu];
	th->pub.records++;
	th->pub.kvm_records += kvm;
	if (e->id == HOST_kvm_exit)
		host_note_exit(&th->pub, e);
	if (e->time_ns == HOST_NO_TIME)
		return 0;
	backwards = th->pub.last_time != HOST_NO_TIME && e->time_ns < th->pub.last_time;
	t->totals.backwards += backwards;
	if (!backwards)
		keep_gap(t, th, e);
	if (e->id == HOST_contention_begin || e->id == HOST_contention_end)
		err = host_stalls_contention(t, th, e);
	else if (kvm && (th->off.on || th->state == HOST_OFF))
		err = came_back(t, th, e, false);
	if (!err && kvm)
		err = on_kvm(t, th, e);
	th->pub.last_time = e->time_ns;
	th->pub.last_cpu = e->cpu;
	th->last_mark = t->losses;
	return err;
}

int host_threads_event(struct host_threads *t, const struct host_event *e)
{
	bool contention = e->id == HOST_contention_begin || e->id == HOST_contention_end;
	struct host_threads_totals *all = &t->totals;
	struct thread *dead;
	int err = 0;

	t->current = NULL;
	if (e->time_ns != HOST_NO_TIME) {
		if (all->first == HOST_NO_TIME || e->time_ns < all->first)
			all->first = e->time_ns;
		if (all->last == HOST_NO_TIME || e->time_ns > all->last)
			all->last = e->time_ns;
		if (e->id == HOST_sched_wakeup || e->id == HOST_sched_waking)
			host_stalls_wake(t, e);
		else if (e->id == HOST_sched_switch)
			err = on_switch(t, e);
		else if (e->id == HOST_kvm_dirty_ring_reset)
			err = host_stalls_reset(t, e);
	}
	/* 0 is the idle task of every CPU; -1: there is no column */
	if (!err && e->tid > 0)
		err = get_thread(t, e, is_kvm(e) || contention);
	if (!err && t->current)
		err = own_record(t, t->current, e);
	dead = err || e->time_ns == HOST_NO_TIME ? NULL : ended(t, e);
	return dead ? forget(t, dead, e->time_ns, e->cpu, false) : err;
}

/* ---- life ---- */

struct host_threads *host_threads_create(const struct host_threads_sink *sink)
{
	struct host_threads *t = calloc(1, sizeof(*t));

	if (t) {
		t->sink = sink;
		t->totals.first = t->totals.last = HOST_NO_TIME;
	}
	return t;
}

int host_threads_end(struct host_threads *t)
{
	int err = 0;

	while (!err && t->oldest)
		err = forget(t, t->oldest, t->totals.last, -1, true);
	return err;
}

void host_threads_free(struct host_threads *t)
{
	struct thread *th, *next;

	if (!t)
		return;
	HASH_CLEAR(hh, t->by_tid);
	DL_FOREACH_SAFE(t->oldest, th, next)
	free(th);
	free(t);
}

const struct host_thread *host_threads_current(const struct host_threads *t)
{
	return t->current ? &t->current->pub : NULL;
}

struct host_threads_totals host_threads_totals(const struct host_threads *t)
{
	return t->totals;
}
