/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_LIVELOCK_H
#define KVMSIM_MMU_LIVELOCK_H

#include <stdint.h>

#include "model/mmu/spte.h"

/*
 * An instruction that is restarted again and again, and never gets done. A fault may rightly be
 * taken again as long as others are busy, for as long as the host takes to unmap what it is about.
 * So there are two bounds: a few restarts for the same pages while no other task has anything to do
 * at any time, so that nothing can come in between, and many in any case: of one instruction, at
 * well over a thousand cycles each, that is longer than any invalidation takes (struct kvm_vm_opts
 * has another number for tests).
 */
#define LIVELOCK_ALONE	  1000u
#define LIVELOCK_RESTARTS (1u << 20)
#define LIVELOCK_PAGES	  4 /* an instruction's, which may take each other's place */

struct kvm_vcpu;

struct vcpu_restarts {
	uint64_t page[LIVELOCK_PAGES]; /* that faulted since the last progress, and how */
	unsigned n_pages;
	uint32_t n, alone;
	gfn_t gfn;	 /* of the last fault, */
	const char *why; /* and why it has to be taken again; NULL: it has not, or for others */
};

/* The vCPU's instruction is about to be restarted, since its access to @gva, which needs PFERR_*,
 * has faulted; @why: in words what keeps it. 0, or KVMSIM_ELIVELOCK with a message. */
int vcpu_restarted(struct kvm_vcpu *v, gva_t gva, uint64_t need, const char *why);
/* The guest has done an instruction, or the VMM has acted. */
void vcpu_progressed(struct kvm_vcpu *v);

#endif
