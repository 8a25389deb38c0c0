/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_GUEST_OPS_H
#define KVMSIM_KERNEL_GUEST_OPS_H

#include "tests/kernel/guest.h"
#include "workloads/matrix_layout.h"

/* What a guest needs for op programs: an interpreter, and further slots. */

/* Puts the interpreter where the model's guest has it. */
void guest_ops_init(struct guest *g);

/* The list of @vcpu, from its beginning: append ops, then load it, which ends it. */
struct guest_ops {
	struct guest *guest;
	unsigned vcpu;
	uint64_t n;
};
void guest_ops_append(struct guest_ops *o, enum mx_op what, uint64_t address, uint64_t value);
void guest_ops_load(struct guest_ops *o);

/* The host memory of any slot, mapped when it is asked for first. */
uint8_t *guest_slot_memory(struct guest *g, uint32_t slot, uint64_t pages);
void guest_limit_mmu_pages(struct guest *g, uint64_t n);
/* KVM_GET_DIRTY_LOG of @slot. */
void guest_get_slot_log(struct guest *g, uint32_t slot, uint64_t *bitmap);
/* The host stores to the guest's memory, in slot 0. */
void guest_host_store(struct guest *g, uint64_t gpa, uint64_t value);
void guest_host_copy_page(struct guest *g, uint64_t to, uint64_t from);

#endif
