/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_KVM_OPS_PLAY_H
#define KVMSIM_WORKLOADS_KVM_OPS_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sim/error.h"

/*
 * Runs an op program (workloads/ops_program.h) on the running kernel's /dev/kvm and tells what its
 * statistics counted in each phase. The VM has the layout of the reference matrix
 * (matrix_layout.h); its guest is 64-bit code at CPL3, which every kind of KVM runs as it is. What
 * is the supervisor's (INVLPG, MOV to CR3, HLT) it asks the VMM for by an OUT, which has the vCPU
 * run that one instruction at CPL0.
 */
struct ops_program;

struct kvm_ops_phase {
	const char *name;
	int64_t nr_dirty, round; /* negative: not said */
	unsigned occurrence;	 /* 1, or more when the same key came before, in another VM */
	/* The statistics: how much each changed, and what gauges and peaks stand at. */
	size_t n;
	const char *const *stat;
	const bool *gauge;
	const int64_t *change;
	const uint64_t *after;
	const char *result; /* "ndirty", "user_mmio_exits"; NULL: none */
	uint64_t value;
	uint64_t cycles; /* of the time stamp counter, the guest's or the ioctl's */
};

struct kvm_ops_opts {
	const struct ops_program *program;
	uint64_t slot_pages;		 /* of slot 1, 1 to KVM_OPS_MAX_PAGES */
	bool guest_2m;			 /* how the guest maps its memory; else with 4 KiB */
	uint32_t timeout_s;		 /* of all; 0: 60 */
	const volatile int *interrupted; /* non-zero: stop, KVMSIM_EINTR; may be NULL */
	const struct kvmsim_errsink *errors;
	int (*phase)(void *ctx, const struct kvm_ops_phase *p); /* a negative error ends it */
	void *ctx;
};
#define KVM_OPS_MAX_PAGES 16384u /* what its 4K tables have room for */

/* Needs SIGALRM, as kvm_play() does. Errors, each with a message: KVMSIM_EUNSUPPORTED (no
 * /dev/kvm, no statistics), KVMSIM_EINVAL (the program and the options do not fit), KVMSIM_EIO,
 * KVMSIM_EINTR, KVMSIM_ENOMEM, and those of the callback. */
int kvm_ops_play(const struct kvm_ops_opts *opts);

#endif
