/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_KVM_OPS_GUEST_H
#define KVMSIM_WORKLOADS_KVM_OPS_GUEST_H

#include "workloads/kvm/machine.h"
#include "workloads/matrix_layout.h"
#include "workloads/ops_program.h"

/* The guest of an op program on a real KVM: the reference matrix's, at CPL3. Of the machine's slots
 * 0 is its code, tables and lists, 1 the test pages, others what a program makes. */

#define OPS_MORE_PAGES 512u /* at most, of slots 2 and so on, each */

struct ops_guest {
	struct kvm_player_opts opts;
	struct machine *m;
	uint64_t npages[OPS_SLOTS]; /* as the slots are now */
	uint64_t mmio;		    /* accesses to devices, of the run */
	uint64_t at;		    /* where in the list the next op goes */
	/* Whether to enter again after a signal; may be NULL. */
	int (*may_go_on)(void *ctx);
	void *ctx;
};

/* Makes the VM: slots 0 and 1, the latter with @flags, then the vCPUs. Errors of machine_open(). */
int ops_guest_open(struct ops_guest *g, uint64_t slot_pages, bool guest_2m, uint32_t flags,
		   uint32_t vcpus, const struct kvmsim_errsink *errors);
void ops_guest_close(struct ops_guest *g);

/* The guest is to read its list pages. */
int ops_guest_load_setup(struct ops_guest *g);
/* The list of @vcpu begins anew; ops are appended; the last one ends it and sets the registers.
 * KVMSIM_EINVAL: it has no room. */
void ops_guest_list(struct ops_guest *g, uint32_t vcpu);
int ops_guest_append(struct ops_guest *g, enum mx_op what, uint64_t address, uint64_t value);
int ops_guest_load(struct ops_guest *g, uint32_t vcpu);
/* Until it says that it is through. */
int ops_guest_run(struct ops_guest *g, uint32_t vcpu);

int ops_guest_slot(struct ops_guest *g, uint32_t slot, uint64_t gpa, uint64_t pages,
		   uint32_t flags);
/* Host memory of slot 0, NULL when @bytes from @gpa on are not in it. */
uint8_t *ops_guest_low(struct ops_guest *g, uint64_t gpa, uint64_t bytes);

#endif
