/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_MMIO_H
#define KVMSIM_MMU_MMIO_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mmu/spte.h"

/*
 * Accesses to devices: to frames that no slot has. What is remembered of them, so that the next one
 * needs no search, the spte policy says: each vCPU the page that it accessed last, and an spte for
 * each such page, an MMIO spte, that faults in a way of its own: by a bit that is reserved, or on a
 * CPU with EPT by permissions that make no sense. It holds the frame, the access that the guest's
 * tables allow, and bits of the memslots' generation, so that each change of the slots makes all of
 * them stale.
 */
struct kvm;
struct kvm_vcpu;
struct task;

#define NOSLOT_PFN (~0ull) /* of a fault on such a frame */

/* What a vCPU remembers. */
struct mmio_info {
	gva_t gva; /* of its page; 0: unknown, as under nested paging */
	gfn_t gfn;
	unsigned access;     /* ACC_WRITE, ACC_USER */
	uint64_t generation; /* of the memslots */
};

#define MMIO_GVA_ANY (~0ull)
void vcpu_cache_mmio_info(struct kvm_vcpu *v, gva_t gva, gfn_t gfn, unsigned access);
/* Of @gva's page, or of whatever. */
void vcpu_clear_mmio_info(struct kvm_vcpu *v, gva_t gva);
bool vcpu_match_mmio_gva(struct kvm_vcpu *v, gva_t gva);
bool vcpu_match_mmio_gpa(struct kvm_vcpu *v, gpa_t gpa);
/* Whether it is the page that a fault at @addr is about: gpa or gva, as the vCPU's faults are. */
bool mmio_info_in_cache(struct kvm_vcpu *v, uint64_t addr);

/* The bits by which MMIO sptes are told, where the policy has them: permissions of EPT, or a bit
 * beyond the CPU's physical addresses; where these have 52 bits no spte is one. */
void mmio_spte_init(struct kvm *kvm, bool ept, unsigned phys_bits);
uint64_t make_mmio_spte(struct kvm_vcpu *v, gfn_t gfn, unsigned access);
/* Puts one into @sptep, and tells. mmu_lock is held for write. */
void mark_mmio_spte(struct kvm_vcpu *v, uint64_t *sptep, gfn_t gfn, unsigned access);
/* The guest's entry that @sptep is to follow says @gfn: true where that was an MMIO spte. */
bool sync_mmio_spte(struct kvm_vcpu *v, uint64_t *sptep, gfn_t gfn, unsigned access);
void trace_mark_mmio_spte(struct kvm_vcpu *v, gfn_t gfn, uint64_t spte);
gfn_t mmio_spte_gfn(const struct kvm *kvm, uint64_t spte);

/* A fault that an MMIO spte may have caused: RET_PF_EMULATE, RET_PF_RETRY (it is gone), or
 * RET_PF_INVALID: it is stale, and the fault is one like others. KVMSIM_ECHECK, with a message:
 * reserved bits in an spte that maps memory. */
int handle_mmio_page_fault(struct kvm_vcpu *v, uint64_t addr);

/* What is wrong with an MMIO spte, or with what a vCPU remembers: some words, or NULL. Nobody runs.
 */
const char *mmio_spte_check(const struct kvm *kvm, uint64_t spte);
const char *mmio_info_check(const struct kvm_vcpu *v);

#endif
