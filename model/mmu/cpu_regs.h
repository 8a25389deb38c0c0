/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_CPU_REGS_H
#define KVMSIM_MMU_CPU_REGS_H

#include <stdint.h>

/* The registers that say how a vCPU pages, with the bits where the CPU has them. */
#define CR0_PE	 (1ull << 0)
#define CR0_WP	 (1ull << 16)
#define CR0_PG	 (1ull << 31)
#define CR4_PSE	 (1ull << 4)
#define CR4_PAE	 (1ull << 5)
#define CR4_PGE	 (1ull << 7)
#define CR4_SMEP (1ull << 20)
#define CR4_SMAP (1ull << 21)
#define EFER_LME (1ull << 8)
#define EFER_LMA (1ull << 10)
#define EFER_NXE (1ull << 11)

struct cpu_regs {
	uint64_t cr0, cr4, efer;
	unsigned cpl; /* 0 to 3 */
};

#endif
