/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_STATS_H
#define KVMSIM_MMU_STATS_H

#include <stdbool.h>

/*
 * The statistics that KVM_GET_STATS_FD gives, by the kernel's names. VM-wide ones first, then those
 * that each vCPU keeps (kvm_stat() sums them over the vCPUs).
 */
#define KVM_VM_STATS(X)                                                                            \
	X(remote_tlb_flush)                                                                        \
	X(remote_tlb_flush_requests)                                                               \
	X(mmu_shadow_zapped)                                                                       \
	X(mmu_pte_write)                                                                           \
	X(mmu_pde_zapped)                                                                          \
	X(mmu_flooded)                                                                             \
	X(mmu_recycled)                                                                            \
	X(mmu_cache_miss)                                                                          \
	X(mmu_unsync)                                                                              \
	X(pages_4k)                                                                                \
	X(pages_2m)                                                                                \
	X(pages_1g)                                                                                \
	X(nx_lpage_splits)                                                                         \
	X(max_mmu_rmap_size)                                                                       \
	X(max_mmu_page_hash_collisions)
#define KVM_VCPU_STATS(X)                                                                          \
	X(pf_taken)                                                                                \
	X(pf_fixed)                                                                                \
	X(pf_emulate)                                                                              \
	X(pf_spurious)                                                                             \
	X(pf_fast)                                                                                 \
	X(pf_mmio_spte_created)                                                                    \
	X(pf_guest)                                                                                \
	X(tlb_flush)                                                                               \
	X(invlpg)                                                                                  \
	X(exits)                                                                                   \
	X(io_exits)                                                                                \
	X(mmio_exits)                                                                              \
	X(irq_exits)                                                                               \
	X(halt_exits)                                                                              \
	X(host_state_reload)                                                                       \
	X(fpu_reload)                                                                              \
	X(insn_emulation)                                                                          \
	X(req_event)                                                                               \
	X(hypercalls)

enum kvm_stat_id {
#define X(n) STAT_##n,
	KVM_VM_STATS(X) KVM_VCPU_STATS(X)
#undef X
		N_KVM_STATS
};

const char *kvm_stat_name(enum kvm_stat_id id);
/* A gauge or a peak: its value matters, not its growth. */
bool kvm_stat_is_gauge(enum kvm_stat_id id);

#endif
