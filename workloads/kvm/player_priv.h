/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_KVM_PLAYER_PRIV_H
#define KVMSIM_WORKLOADS_KVM_PLAYER_PRIV_H

#include <pthread.h>

#include "workloads/kvm/collect.h"
#include "workloads/kvm/machine.h"
#include "workloads/kvm/player.h"
#include "workloads/kvm/stream.h"
#include "workloads/kvm/tally.h"

/* What the player's two files share: player.c has the rounds, vcpu_run.c runs the vCPUs in them. */
struct player;

struct player_vcpu {
	struct player *p;
	uint32_t id;
	pthread_t thread;
	uint64_t go; /* rounds that it has been told to run, and has run */
	uint64_t ran;
	uint64_t cycles; /* of its last round */
};

struct player {
	const struct kvm_player_opts *opts;
	struct kvm_player_result *result;
	struct machine *m;
	struct stream streams[KVM_PLAYER_MAX_VCPUS];
	struct player_vcpu vcpus[KVM_PLAYER_MAX_VCPUS];
	uint32_t n_threads;
	bool collector_open;
	struct collector collector;
	struct vm_stats stats;
	struct trace_events events;
	uint64_t deadline_ns;
	/* Under `lock`, as go and ran of the vCPUs are. */
	pthread_mutex_t lock;
	pthread_cond_t told, came;
	bool stop; /* vCPUs leave as soon as they can */
	int err;   /* the first of a vCPU */
};

/* A round begins: its time runs from now on. */
void player_start_clock(struct player *p);

/* Goes through @n accesses on one vCPU, in this thread. Errors: KVMSIM_EIO (also: the round takes
 * too long), KVMSIM_EINTR, KVMSIM_ECANCELED (threads are being stopped). */
int player_run_accesses(struct player *p, uint32_t vcpu, const uint64_t *access, size_t n);
/* The same for all that a vCPU's stream has read. */
int player_run_vcpu(struct player_vcpu *v);

/* Whether to go on: 0, KVMSIM_EINTR, or KVMSIM_EIO when the round takes too long. */
int player_may_go_on(const struct player *p);

/* One thread per vCPU. */
int player_start_threads(struct player *p);
void player_stop_threads(struct player *p);
/* Each is to run its stream's accesses. */
void player_tell_threads(struct player *p);
/* Waits until all have run what they were told to, for @us microseconds at most (0: for good).
 * 1: they have; 0: the time is up; or an error. */
int player_wait_threads(struct player *p, uint64_t us);

#endif
