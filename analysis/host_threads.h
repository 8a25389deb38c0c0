/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_HOST_THREADS_H
#define KVMSIM_ANALYSIS_HOST_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "traces/host/host.h"

/*
 * The threads of a host's trace: which vCPU each is, what it is doing, what it stands still for and
 * who ends that. Fed event by event, in constant memory: at most HOST_MAX_THREADS are known at a
 * time; the one that was silent for longest makes room. One that ends (sched_switch from Z or X) is
 * forgotten: its number may become another's.
 *
 * A thread is a vCPU's when a record of its own printed the number: the last one counts, never the
 * CPU or the comm. What an interval tells that a loss lies in is that it cannot be told: a loss on
 * the CPU where it began or ended, one of no known CPU, or an elision of the text. Where it takes
 * the events of others to tell (who ended it), a loss on any CPU.
 */
#define HOST_MAX_THREADS 4096
#define HOST_COMM	 32
#define HOST_NOBODY	 INT64_MIN /* as a tid; -1 is a record without that column */

/* What a vCPU's thread is doing; from one record of its own to another. */
enum host_state {
	HOST_STATE_NONE, /* not known (yet, or since a loss) */
	HOST_GUEST,	 /* kvm_entry to kvm_exit */
	HOST_EXIT,	 /* kvm_exit to kvm_entry or kvm_userspace_exit, in the kernel */
	HOST_USERSPACE,	 /* kvm_userspace_exit to the thread's next record */
	HOST_HALTED,	 /* kvm_exit of HLT to kvm_vcpu_wakeup or kvm_entry */
	HOST_OFF,	 /* sched_switch away to sched_switch back; covers the others */
	HOST_N_STATES
};
/* "guest", "host", "userspace", "halted", "descheduled"; "unknown". */
const char *host_state_name(enum host_state s);

struct host_who {
	int64_t tid, vcpu; /* HOST_NOBODY; -1: not a vCPU's, as far as is known */
	char comm[HOST_COMM];
};

/* One stretch of a thread in one state. Those of a thread follow each other without overlap. */
struct host_segment {
	const struct host_who *who;
	enum host_state state;
	const char
		*detail; /* the exit's reason, userspace exit's number, by whom descheduled; "" */
	uint64_t begin, end;
	int64_t cpu;
	bool unsure; /* a loss lies in it, or its end was seen by other signs than it has */
	bool open;   /* the trace ends first */
};

enum host_stall_kind {
	HOST_STALL_RING, /* dirty ring full: from the kvm_userspace_exit to the thread's next */
	HOST_STALL_LOCK, /* contention_begin to contention_end; of any thread */
	HOST_STALL_HALT, /* halted, of a vCPU */
	HOST_STALL_PREEMPTED, /* descheduled while it could run, of a vCPU */
	HOST_STALL_SLEPT, /* descheduled since it waited, of a vCPU, neither halted nor for a lock,
			     nor with a full ring */
	HOST_N_STALLS
};
/* "dirty ring full", "lock", "halted", "preempted", "slept". */
const char *host_stall_name(enum host_stall_kind k);

enum host_blame {
	HOST_BLAME_UNSEEN, /* no event tells by whom */
	HOST_BLAME_LOST,   /* no event tells, and events were lost meanwhile: cannot tell */
	HOST_BLAME_KNOWN,
	/* No task: it came to whoever was running. Who is idle wakes nobody by itself. */
	HOST_BLAME_INTERRUPT, /* or an NMI */
	HOST_BLAME_SOFTIRQ,
	HOST_N_BLAMES
};

struct host_stall {
	enum host_stall_kind kind;
	struct host_who who;
	uint64_t begin, end; /* end: of the thread's next record; open: of the trace's last */
	bool open;	     /* the trace ends first */
	bool unsure;	     /* a loss lies in it: its length cannot be told */
	enum host_blame blame;
	/* reset the ring; got the lock before and let go; woke; ran there; was interrupted */
	struct host_who by;
	int64_t by_cpu;	      /* of who woke it; -1: not known */
	uint64_t until;	      /* when the ring was first reset, the wake-up; 0: not known */
	uint64_t resets;      /* of the ring, until it ended */
	uint64_t lock, flags; /* of lock contention */
	unsigned depth;	      /* of a lock: waited for while others were, too */
	enum host_state in;   /* descheduled: what it was doing */
};

/* The longest time between two records of one thread. */
struct host_gap {
	struct host_who who;
	uint64_t begin, end;
	uint64_t line; /* of the second record; 0: binary traces */
	bool unsure;
};

/* A thread as it is before an event that it is about to be told. */
struct host_thread {
	struct host_who who;
	int64_t tgid;
	uint64_t records, kvm_records;
	uint64_t last_time; /* of its last record; HOST_NO_TIME: none */
	int64_t last_cpu;
	/* of its last kvm_exit */
	bool exited, page_fault; /* page_fault: shadow paging, it was the guest's #PF */
	bool ept, npf;
	uint64_t exit_rip, exit_info1;
};

/* Who is told; NULL members are not called. What is handed over is valid during the call only. A
 * negative value ends the reading. */
struct host_threads_sink {
	void *ctx;
	int (*segment)(void *ctx, const struct host_segment *s);
	int (*stall)(void *ctx, const struct host_stall *s);
	int (*gap)(void *ctx, const struct host_gap *g); /* once per thread, when it is forgotten */
};

struct host_threads;

/* NULL: no memory. @sink must outlive it. */
struct host_threads *host_threads_create(const struct host_threads_sink *sink);
void host_threads_free(struct host_threads *t);

/* Feeds it. 0, KVMSIM_ENOMEM, or what the sink returned. */
int host_threads_event(struct host_threads *t, const struct host_event *e);
int host_threads_loss(struct host_threads *t, const struct host_loss *l);
int host_threads_elision(struct host_threads *t);
/* The trace's end: what is still going on is told, open. */
int host_threads_end(struct host_threads *t);

/* The thread of the event just fed; NULL: it has none that can be told. Valid until the next. */
const struct host_thread *host_threads_current(const struct host_threads *t);
/* A mark of now, and whether events that @cpu may have had (-1: any) are missing since one. */
uint64_t host_threads_mark(const struct host_threads *t);
bool host_threads_lost_since(const struct host_threads *t, uint64_t mark, int64_t cpu);

struct host_threads_totals {
	uint64_t forgotten;   /* threads that made room for others */
	uint64_t backwards;   /* records before the thread's last one: no interval is told */
	uint64_t first, last; /* time; HOST_NO_TIME: none */
};
struct host_threads_totals host_threads_totals(const struct host_threads *t);

/* The exit's reason in upper case, without EXIT_; "NPF" for 0x400, "REASON_0x1f" when only a number
 * is there that is not known. Returns @buf. */
#define HOST_REASON 40
const char *host_reason(const struct host_event *e, char buf[HOST_REASON]);
/* "DIRTY_RING_FULL" for 31 of kvm_userspace_exit, "signal" for -EINTR, "error 14". Returns @buf. */
const char *host_userspace_reason(int64_t n, char buf[HOST_REASON]);

#endif
