/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_GUEST_INTERP_H
#define KVMSIM_GUEST_INTERP_H

#include "model/guest/op.h"
#include "model/guest/vcpu.h"

/*
 * The op interpreter: retires a recorded stream on a vCPU, as the task that the vCPU is bound to.
 *
 * An op's gap is every instruction since the op before, its own included, so that the instructions
 * of a stream are the sum of its gaps. The access follows; when it exits and was handled, it is
 * done again. Exits to userspace (port I/O, MMIO, HLT) are answered at once, as by a VMM whose
 * devices take no time.
 *
 * A run of TLB hits costs no event and no charge of its own: as long as the vCPU may run ahead
 * (task_horizon()), hits are counted and their instructions charged together. The result is the
 * same as one by one, as charge() carries its remainder.
 */
struct interp_opts {
	/* Called at OP_EPOCH and OP_MARK, after their gap: 0 goes on, else interp_run() returns
	 * that. NULL: these ops are only gaps. */
	int (*boundary)(void *ctx, struct kvm_vcpu *v, const struct guest_op *op);
	void *ctx;
};

struct interp_stats {
	uint64_t ops, insns;
	uint64_t hits; /* accesses that were retired without a call */
};

/* Until the end of the stream. @stats is added to, also on an error. Errors: those of the source,
 * of the vCPU and of the callback; KVMSIM_EPARSE for a kind of op that does not exist. */
int interp_run(struct kvm_vcpu *v, struct op_source *src, const struct interp_opts *opts,
	       struct interp_stats *stats);

#endif
