/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_HOST_THREADS_PRIV_H
#define KVMSIM_ANALYSIS_HOST_THREADS_PRIV_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "analysis/host_threads.h"

/* Between host_threads.c, which knows what the threads do, and host_stalls.c, which knows what they
 * stand still for. */
#define HOST_MAX_CPUS	 4096
#define HOST_LOCKS	 4096 /* slots */
#define HOST_LOCK_NESTED 4

struct pending {
	bool on;
	uint64_t mark;
	int64_t cpu;
	struct host_stall stall;
};

struct thread {
	struct host_thread pub;
	/* the segment that has begun */
	enum host_state state, under; /* under: what HOST_OFF covers */
	char detail[HOST_REASON], under_detail[HOST_REASON];
	uint64_t since, mark;
	int64_t cpu;
	struct host_gap gap;
	uint64_t last_mark;
	bool ring_exit; /* kvm_dirty_ring_exit was its last word before userspace */
	struct pending ring, halt, off, lock[HOST_LOCK_NESTED];
	struct thread *prev, *next; /* silent for longest first */
	UT_hash_handle hh;
};

/* Who got a lock last of those who had to wait. Writers (or plain owners) and all. */
struct lock_slot {
	uint64_t addr;
	struct lock_owner {
		bool there;
		uint64_t time;
		struct host_who who;
	} writer, any;
};

struct host_threads {
	const struct host_threads_sink *sink;
	struct thread *by_tid, *oldest;
	struct thread *current;
	unsigned rings; /* stalls for full rings that go on */
	uint64_t losses, lost_anywhere,
		lost_somewhere; /* marks of the last of no known CPU, of any */
	uint64_t lost_on[HOST_MAX_CPUS];
	struct lock_slot lock[HOST_LOCKS];
	struct host_threads_totals totals;
};

/* host_exits.c */
void host_note_exit(struct host_thread *th, const struct host_event *e);
bool host_exit_halts(const struct host_event *e);

struct host_who host_who_of(struct host_threads *t, const struct host_event *e);
struct thread *host_thread_find(struct host_threads *t, int64_t tid);

/* Before the state changes that follow from the event; each 0 or what the sink returned. */
int host_stalls_reset(struct host_threads *t, const struct host_event *e);
void host_stalls_wake(struct host_threads *t, const struct host_event *e);
int host_stalls_contention(struct host_threads *t, struct thread *th, const struct host_event *e);
/* It is switched away from, or back to. */
void host_stalls_off(struct host_threads *t, struct thread *th, const struct host_event *e);
int host_stalls_on(struct host_threads *t, struct thread *th, const struct host_event *e,
		   bool seen);
void host_stalls_begin(struct host_threads *t, struct thread *th, struct pending *p,
		       enum host_stall_kind kind, const struct host_event *e);
int host_stalls_finish(struct host_threads *t, struct pending *p, uint64_t end, int64_t cpu);
/* All that go on, at @end; @open: as open ones. */
int host_stalls_close(struct host_threads *t, struct thread *th, uint64_t end, int64_t cpu,
		      bool open);

#endif
