/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_KVM_COLLECT_H
#define KVMSIM_WORKLOADS_KVM_COLLECT_H

#include <pthread.h>

#include "workloads/kvm/machine.h"
#include "workloads/kvm/stream.h"

/*
 * Collects the dirty log of a machine by its protocol, and holds what it reports against what the
 * guest did.
 */
struct collector {
	struct machine *m;
	const struct kvm_player_opts *opts;
	const struct stream *streams; /* one per vCPU */
	pthread_mutex_t rings;	      /* of the rings and of what was taken from them */
	uint64_t *reported[KVM_PLAYER_MAX_SLOTS], *must[KVM_PLAYER_MAX_SLOTS],
		*may[KVM_PLAYER_MAX_SLOTS];
	/* By vCPU: accesses done before the last collection began, begun before it had ended. */
	uint64_t done[KVM_PLAYER_MAX_VCPUS], begun[KVM_PLAYER_MAX_VCPUS];
	struct kvm_slot_report report[KVM_PLAYER_MAX_SLOTS];
	struct kvm_round ring; /* its ring_* are of the round so far */
};

/* Errors: KVMSIM_ENOMEM. In each case collector_close() is due. */
int collector_open(struct collector *c, struct machine *m, const struct stream *streams);
void collector_close(struct collector *c);

/* Collects every logged slot into @r: slots and ring_*. KVMSIM_EIO. In each case collect_end() is
 * due when @r has been read: until then a vCPU with a full ring waits. */
int collect(struct collector *c, struct kvm_round *r);
void collect_end(struct collector *c);
/* A vCPU's ring is full: collects all rings and resets them. Any thread. KVMSIM_EIO. */
int collect_full_ring(struct collector *c);

#endif
