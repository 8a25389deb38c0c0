/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_KVM_STREAM_H
#define KVMSIM_WORKLOADS_KVM_STREAM_H

#include "workloads/kvm/player.h"

/* A vCPU's ops, as the accesses that its guest does. */
struct stream {
	const struct kvm_player_opts *opts;
	uint32_t vcpu;
	const struct guest_op *ops; /* a block of the source */
	size_t n_ops, at;
	uint64_t ended; /* epochs */
	bool open, finished;
	/* Those read and not dropped: each an address with ACCESS_READ or ACCESS_RMW, machine.h.
	 * access[0] is number `first` of the vCPU. */
	uint64_t *access;
	size_t n, room;
	uint64_t first, skipped;
};

void stream_open(struct stream *s, const struct kvm_player_opts *opts, uint32_t vcpu);
void stream_close(struct stream *s);
/* Reads on until @epochs have ended, or the end. Errors: the source's, `played`'s, KVMSIM_ENOMEM.
 */
int stream_read(struct stream *s, uint64_t epochs);
/* Forgets the accesses read so far. */
void stream_drop(struct stream *s);

#endif
