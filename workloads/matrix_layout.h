/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_MATRIX_LAYOUT_H
#define KVMSIM_WORKLOADS_MATRIX_LAYOUT_H

/* The matrix's guest, as far as the model and who records a real kernel must agree on it. */

/* Where things are in the guest (guest-physical; the long-mode guest maps them at the same
 * virtual addresses). */
#define MX_CODE_WRITE	  0x1000ull
#define MX_CODE_READ	  0x1040ull
#define MX_CODE_INC	  0x1080ull
#define MX_CODE_MIXED	  0x10c0ull
#define MX_CODE_INTERP	  0x1100ull
#define MX_CODE_OPS	  0x1300ull		 /* the interpreter of op programs */
#define MX_LEFT(vcpu)	  (0x9000ull + (vcpu)*8) /* turns of MX_CODE_MIXED left */
#define MX_LIST		  0x100000ull
#define MX_LIST_PAGES	  16ull
#define MX_LIST_ENTRIES	  (MX_LIST_PAGES * 4096 / 4)
#define MX_VCPUS	  2ull /* at most; of two each has half of the lists' room */
#define MX_VCPU_ENTRIES	  (MX_LIST_ENTRIES / MX_VCPUS)
#define MX_SLOT0_PAGES	  512ull
#define MX_SLOT		  1 /* the test pages */
#define MX_TEST		  0x10000000ull
#define MX_TEST_PAGE(i)	  (MX_TEST + (i)*4096ull)
#define MX_MAX_CHUNKS	  63ull /* 4K tables for the test pages end where the device's begins */
#define MX_MAX_SLOT_PAGES (1ull << 17) /* up to 0x30000000 */

/* The guest's page tables. 4K tables of the test pages end where the device's table begins. */
#define MX_PML4		  0x10000ull
#define MX_PDPT		  0x11000ull
#define MX_PD(g)	  (0x12000ull + (g)*0x1000ull)
#define MX_PT_LOW	  0x20000ull
#define MX_PT_TEST(i)	  (0x21000ull + (i)*0x1000ull)
#define MX_PT_MMIO	  0x60000ull
#define MX_ROOT1	  0x16000ull	/* a second root; of PAE its directories follow */
#define MX_MMIO		  0xe0000000ull /* no slot is here, but for a while in case E */
#define MX_TABLE_ENTRY	  0x27ull	/* P RW US A */
#define MX_LEAF_4K	  0x67ull	/* P RW US A D */
#define MX_LEAF_2M	  0xe7ull	/* the same, and PS */
#define MX_ACCESSED_DIRTY 0x60ull
#define MX_PRESENT	  1ull
#define MX_WRITABLE	  2ull
#define MX_USER		  4ull
#define MX_PAGE_SIZE	  0x80ull
#define MX_NX		  (1ull << 63)

/*
 * The guest's interpreter at MX_CODE_INTERP: it reads 16-byte ops {u32 what, u32 address, u64
 * value} from its vCPU's list pages and does them one after the other. The numbers are what stands
 * in guest memory.
 */
enum mx_op {
	MX_OP_OUT, /* leaves KVM_RUN: the end of a list */
	MX_OP_READ4,
	MX_OP_WRITE4,
	MX_OP_WRITE8,
	MX_OP_INVLPG,
	MX_OP_MOV_CR3, /* the value */
	MX_OP_WRITE1,
	MX_OP_XCHG8,
	MX_OP_HLT,
	MX_OP_INC4,
	MX_OP_WRITE2, /* not of the reference's guest */
	N_MX_OPS
};

#endif
