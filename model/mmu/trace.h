/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_TRACE_H
#define KVMSIM_MMU_TRACE_H

#include <stdint.h>

#include "model/sim/sim.h"

/*
 * The model's tracepoints: the kernel's kvm:* and kvmmmu:* events, with the fields that tell one
 * from another. An observer is called at the place and time where the kernel would trace.
 */
#define KVM_TRACE_EVENTS(X)                                                                        \
	X(kvm_entry)                                                                               \
	X(kvm_exit)                                                                                \
	X(kvm_page_fault)                                                                          \
	X(kvm_pml_full)                                                                            \
	X(kvm_pio)                                                                                 \
	X(kvm_userspace_exit)                                                                      \
	X(kvm_fpu)                                                                                 \
	X(kvm_update_master_clock)                                                                 \
	X(kvm_hypercall)                                                                           \
	X(kvm_emulate_insn)                                                                        \
	X(kvm_mmio)                                                                                \
	X(vcpu_match_mmio)                                                                         \
	X(kvm_cr)                                                                                  \
	X(kvm_mmu_pagetable_walk)                                                                  \
	X(kvm_mmu_paging_element)                                                                  \
	X(kvm_mmu_set_accessed_bit)                                                                \
	X(kvm_mmu_set_dirty_bit)                                                                   \
	X(kvm_mmu_walker_error)                                                                    \
	X(kvm_mmu_get_page)                                                                        \
	X(kvm_mmu_sync_page)                                                                       \
	X(kvm_mmu_unsync_page)                                                                     \
	X(kvm_mmu_prepare_zap_page)                                                                \
	X(kvm_mmu_spte_requested)                                                                  \
	X(kvm_mmu_set_spte)                                                                        \
	X(fast_page_fault)                                                                         \
	X(kvm_mmu_zap_all_fast)                                                                    \
	X(mark_mmio_spte)                                                                          \
	X(handle_mmio_page_fault)                                                                  \
	X(check_mmio_spte)                                                                         \
	X(kvm_mmu_split_huge_page)                                                                 \
	X(kvm_unmap_hva_range)                                                                     \
	X(kvm_set_spte_hva)                                                                        \
	X(kvm_tdp_mmu_spte_changed)                                                                \
	X(kvm_dirty_ring_push)                                                                     \
	X(kvm_dirty_ring_exit)                                                                     \
	X(kvm_dirty_ring_reset)                                                                    \
	X(kvm_msr)

enum kvm_trace_id {
#define X(n) TRACE_##n,
	KVM_TRACE_EVENTS(X)
#undef X
		N_KVM_TRACE
};
const char *kvm_trace_name(enum kvm_trace_id id);

/* Exit reasons, SVM's. On a CPU with VMX kvm_exit prints VMX's: kvm_exit_code(). */
enum {
	EXIT_CR0_WRITE = 0x10,
	EXIT_CR3_WRITE = 0x13,
	EXIT_CR4_WRITE = 0x14,
	EXIT_PF = 0x4e,
	EXIT_INTR = 0x60,
	EXIT_CR0_SEL_WRITE = 0x65,
	EXIT_HLT = 0x78,
	EXIT_INVLPG = 0x79,
	EXIT_IOIO = 0x7b,
	EXIT_MSR = 0x7c,
	EXIT_NPF = 0x400,
	EXIT_PML_FULL = 0x10000, /* SVM has no such exits */
	EXIT_EPT_MISCONFIG
};
/* VMX's basic exit reasons (SDM volume 3, appendix C). */
enum {
	VMX_EXIT_EXCEPTION_NMI = 0,
	VMX_EXIT_EXTERNAL_INTERRUPT = 1,
	VMX_EXIT_HLT = 12,
	VMX_EXIT_INVLPG = 14,
	VMX_EXIT_CR_ACCESS = 28,
	VMX_EXIT_IO_INSTRUCTION = 30,
	VMX_EXIT_MSR_WRITE = 32,
	VMX_EXIT_EPT_VIOLATION = 48,
	VMX_EXIT_EPT_MISCONFIG = 49,
	VMX_EXIT_PML_FULL = 62
};

/* The exit qualification of an EPT violation, which kvm_page_fault prints there. */
#define EPT_VIOLATION_ACC_READ	     (1ull << 0)
#define EPT_VIOLATION_ACC_WRITE	     (1ull << 1)
#define EPT_VIOLATION_ACC_INSTR	     (1ull << 2)
#define EPT_VIOLATION_READABLE	     (1ull << 3)
#define EPT_VIOLATION_WRITABLE	     (1ull << 4)
#define EPT_VIOLATION_EXECUTABLE     (1ull << 5)
#define EPT_VIOLATION_GVA_IS_VALID   (1ull << 7)
#define EPT_VIOLATION_GVA_TRANSLATED (1ull << 8)

#define PFERR_PRESENT	  (1ull << 0)
#define PFERR_WRITE	  (1ull << 1)
#define PFERR_USER	  (1ull << 2)
#define PFERR_RSVD	  (1ull << 3)
#define PFERR_FETCH	  (1ull << 4)
#define PFERR_GUEST_FINAL (1ull << 32)
#define PFERR_GUEST_PAGE  (1ull << 33)

enum ret_pf {
	RET_PF_CONTINUE,
	RET_PF_RETRY,
	RET_PF_EMULATE,
	RET_PF_INVALID,
	RET_PF_FIXED,
	RET_PF_SPURIOUS
};

/* Of an entry of the nested tables, whether it maps a page or leads to a table. */
enum spte_grants { SPTE_NOT_PRESENT, SPTE_READ_ONLY, SPTE_WRITABLE };

struct kvm_trace_event {
	enum kvm_trace_id id;
	uint32_t vcpu; /* UINT32_MAX: none */
	uint32_t task; /* task_id() of whose thread it was in */
	cycles_t time;
	uint64_t rip; /* of the instruction that the vCPU fetched last */
	uint64_t
		addr; /* the guest address that it prints: virtual, or physical where it says gpa */
	uint64_t gfn, spte;
	uint64_t old_spte; /* spte_changed, fast_page_fault: what spte takes the place of */
	uint64_t code; /* exit reason, error code, enum ret_pf, userspace exit reason, cr number,
			* 0 of a split that was done */
	uint64_t error_code; /* fast_page_fault: of the fault, since code is how it ended */
	uint32_t len;	     /* kvm_mmio: bytes */
	uint32_t ring_dirty, ring_reset; /* of dirty rings: how far, after the event */
	uint32_t slot;			 /* dirty_ring_push: the page's slot and its place there */
	uint64_t offset;
	uint64_t used_pages; /* zap_all_fast: shadow pages there are */
	uint8_t level;	     /* where the event has one */
	uint16_t index;	     /* set_spte: of the entry in its table */
	/* of a shadow page: kvm_trace_page() */
	/* direct, of vcpu_match_mmio: found by the gpa */
	bool direct, invalid, unsync, efer_nx, ad_disabled;
	uint8_t gpte_bytes, quadrant;
	uint8_t access; /* ACC_*; also what an mmio spte allows */
	uint32_t gen;	/* the generation of page tables that it was made in; mark_mmio_spte: of
			 * memslots, as the spte holds it */
	uint32_t root_count;
	bool created;	  /* get_page: new */
	bool writable;	  /* set_spte: the W bit written */
	bool valid;	  /* check_mmio_spte: generations equal */
	uint8_t was, now; /* spte_changed: enum spte_grants */
};

struct kvm_observer {
	void (*event)(void *ctx, const struct kvm_trace_event *e);
	void *ctx;
};

#endif
