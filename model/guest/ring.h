/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_GUEST_RING_H
#define KVMSIM_GUEST_RING_H

#include "model/sim/sim.h"

/*
 * Dirty rings, seen from the VMM: for a VM whose dirty policy has one per vCPU. Functions that take
 * a task run in virtual time on it. kvm_collect_dirty_log() (vm.h) is for any dirty policy.
 */
struct kvm;
struct kvm_vcpu;

/* Userspace reads the dirty entries of the vCPU's ring, in order, notes their pages, and marks them
 * harvested. Returns their number, KVMSIM_EINVAL (no ring), KVMSIM_ENOMEM, KVMSIM_ECANCELED. */
long kvm_collect_dirty_ring(struct task *t, struct kvm_vcpu *v);
/* KVM_RESET_DIRTY_RINGS: the pages of harvested entries, of all vCPUs' rings, are write-protected
 * again and the entries are free. Returns their number, KVMSIM_EINVAL (no rings),
 * KVMSIM_ECANCELED. */
long kvm_reset_dirty_rings(struct task *t, struct kvm *kvm);
/* Both, for all vCPUs, one task at a time. Returns the number of entries collected; errors as
 * above. */
long kvm_reap_dirty_rings(struct task *t, struct kvm *kvm);
/* The same for one vCPU's ring, as a VMM does that limits each vCPU's dirty rate. */
long kvm_reap_dirty_ring(struct task *t, struct kvm_vcpu *v);

/* Entries of the vCPU's ring; 0 without one. */
uint32_t kvm_dirty_ring_size(const struct kvm_vcpu *v);
/* Entries that userspace has read from it so far, modulo 2^32; 0 without one. */
uint32_t kvm_dirty_ring_pages(const struct kvm_vcpu *v);

/* The VMM's part of a vCPU's thread when KVM_RUN has returned with KVM_EXIT_DIRTY_RING_FULL, on
 * that thread; KVM_RUN is called again when it returns 0. It exits at once while the ring is still
 * full. A negative error ends the access that the vCPU was about. */
typedef int (*kvm_ring_full_fn)(struct kvm_vcpu *v, void *ctx);
/* NULL, as at first: kvm_reap_dirty_rings(). */
void kvm_on_ring_full(struct kvm *kvm, kvm_ring_full_fn fn, void *ctx);

/* The VMM's thread that reaps at intervals, as the dirty policy says, from @start on until it finds
 * the threads of all vCPUs ended. Nothing happens where the policy has none. The sim must be
 * destroyed before the VM. Errors: KVMSIM_EINVAL (the profile states no clock rate),
 * KVMSIM_ENOMEM. */
int kvm_start_ring_reaper(struct kvm *kvm, cycles_t start);

#endif
