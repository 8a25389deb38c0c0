/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_PRECOPY_SCENE_H
#define KVMSIM_WORKLOADS_PRECOPY_SCENE_H

#include "model/guest/interp.h"
#include "workloads/precopy.h"

/* What the files of a migration share: precopy.c (the migration thread), precopy_send.c (its
 * bitmaps and the link), precopy_guest.c (vCPU threads), precopy_limit.c (the dirty limit). */
#define PRECOPY_OPS 1024

struct precopy_vcpu {
	struct precopy *m;
	struct kvm_vcpu *vcpu;
	struct task *task;
	uint32_t id;
	/* The stream, cut into slices. */
	const struct guest_op *in;
	long n_in, at;
	uint64_t gap_done; /* instructions of in[at]'s gap that were given out */
	uint64_t insns;	   /* given out since the stream's start */
	bool computing;	   /* the stream has nothing */
	struct guest_op ops[PRECOPY_OPS];
	struct interp_stats stats;
	/* The VMM's orders. */
	bool stopped;
	cycles_t ran_since; /* end of its last sleep */
	cycles_t throttled, stopped_for;
	struct precopy_guest first, before; /* at the migration's, the round's start */
	/* Dirty limit. */
	cycles_t sleep;	       /* per full ring */
	cycles_t slept_in_run; /* of the stall that has not ended */
	uint32_t ring_pages;
};

/* A slot's pages, in words of 64. */
struct precopy_memory {
	uint64_t *pending; /* to be sent */
	uint64_t *unclear; /* got, and not cleared yet */
	uint64_t *fresh;   /* neither sent nor found dirty yet */
};

struct precopy {
	const struct precopy_opts *o;
	struct sim *sim;
	struct kvm *kvm;
	struct task *thread, *limiter;
	struct precopy_vcpu *vcpus;
	struct precopy_memory *memory; /* per slot */
	uint64_t *bitmap;	       /* of the largest slot */
	uint64_t hz, slice;	       /* instructions between two looks at orders */
	cycles_t start;		       /* the migration's */
	bool started, stop, quit;
	unsigned throttle; /* percent */
	/* Sending. */
	uint64_t pending; /* pages */
	uint32_t at_slot;
	uint64_t at_page;
	cycles_t link_free; /* when the link has sent what it was given */
	uint64_t link_rest; /* of the last division by the bandwidth */
	uint64_t bytes;
	cycles_t sending;
	/* Since the last look at the rates. */
	uint64_t found, looked_bytes;
	cycles_t looked;
	unsigned high;
	/* Dirty limit. */
	uint64_t highest_rate; /* that was seen, bytes per second */
	struct precopy_round round;
	struct precopy_result *result;
	cycles_t round_start;
	uint64_t collections;
};

uint64_t precopy_words(const struct precopy_slot *s);
/* @us microseconds in the profile's unit. */
cycles_t precopy_time(const struct precopy *m, uint64_t us);
int precopy_interrupted(const struct precopy *m);

/* precopy_send.c: what the thread does with pages. Collects every slot's log: its new pages are
 * returned, or a negative error. */
long precopy_collect(struct precopy *m);
/* Sends up to 64 pages. 0 or a negative error. */
int precopy_send(struct precopy *m);

/* precopy_guest.c */
int precopy_vcpu_thread(struct task *t, void *arg);
/* The vCPUs look for orders at once, wherever they sleep. */
void precopy_wake_vcpus(struct precopy *m);
/* Waits until every vCPU is stopped. */
int precopy_wait_stopped(struct precopy *m);
/* A sleep by the VMM's order, on the vCPU's thread; ends early when the VM is to stop. */
int precopy_sleep(struct precopy_vcpu *v, cycles_t cycles);
/* What the vCPU's time has been so far. */
struct precopy_guest precopy_guest_time(const struct precopy_vcpu *v);

/* precopy_limit.c: begins to hold each vCPU to the limit; nothing when it has begun. */
int precopy_limit_start(struct precopy *m);

#endif
