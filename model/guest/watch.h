/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_GUEST_WATCH_H
#define KVMSIM_GUEST_WATCH_H

#include "model/host/watch.h"

struct lock_watch;

/*
 * Whoever wants to know what each ioctl held and whom it held up: a watch on a VM is called at the
 * end of each ioctl and of each stall of a vCPU.
 *
 * A stall is the time between a vCPU's exit and its next entry, both inside KVM_RUN: the guest
 * stands still and asked for nothing but an access. It takes in what a VMM's thread does about a
 * full dirty ring, but no other return to userspace.
 */
#define KVM_OPERATIONS(X)                                                                          \
	X(none, "none of these")                                                                   \
	X(memslot, "memslot created, deleted")                                                     \
	X(enable, "logging turned on")                                                             \
	X(disable, "logging turned off")                                                           \
	X(get, "GET_DIRTY_LOG")                                                                    \
	X(clear, "CLEAR_DIRTY_LOG")                                                                \
	X(reset, "RESET_DIRTY_RINGS")

enum kvm_operation {
#define X(name, help) KVM_OP_##name,
	KVM_OPERATIONS(X)
#undef X
		N_KVM_OPERATIONS
};

struct kvm_ioctl {
	enum kvm_operation operation;
	const struct task *task;
	cycles_t start, cycles;
	cycles_t hold, hold_shared; /* longest hold of mmu_lock, exclusive and shared */
};

struct kvm_stall {
	uint32_t vcpu;
	unsigned exit; /* its reason, EXIT_* of mmu/trace.h */
	cycles_t start, cycles;
	cycles_t waited;      /* of that, for locks and IPIs */
	struct host_wait why; /* the longest wait; without one, the IPI that made it exit; by: NULL
			       * when it was neither */
};

struct kvm_watch {
	void (*ioctl)(void *ctx, const struct kvm_ioctl *i);
	void (*stall)(void *ctx, const struct kvm_stall *s);
	void *ctx;
	const struct lock_watch *locks; /* of the VM's locks; may be NULL: host/lock.h */
};

#endif
