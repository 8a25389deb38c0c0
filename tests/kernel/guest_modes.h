/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_GUEST_MODES_H
#define KVMSIM_KERNEL_GUEST_MODES_H

#include "tests/kernel/guest.h"

/*
 * How the guest pages: its tables in each mode, its registers, and what it does to both. README.md
 * has the layout and the words; the model's guest has the same.
 */

/* The page tables of opts.kind, in slot 0; the code of this file's loops. */
void guest_build_tables(struct guest *g);
/* KVM_SET_SREGS: the registers of a new vCPU. */
void guest_init_sregs(struct guest *g, unsigned vcpu);
/* The pages' tables are another vCPU's too: these are for guests with one. */

/* Prepares a MOV to CR0 or CR4, or a WRMSR of EFER, that sets the bits of @text, as "wp=0" or
 * "smep=1,smap=1", all of one register; or of CR3, to root 0 or 1. */
void guest_load_mov(struct guest *g, const char *text);
void guest_load_cr3(struct guest *g, const char *text);
/* KVM_SET_SREGS with the bits of @text, of any register, and "cpl=N". */
void guest_set_sregs(struct guest *g, const char *text);
/* Prepares 4-byte stores to the lower halves of the entries for @pages: of the last level, or
 * (@directory) of the directory. @how: same, swap, clear, ro, rw, clean. */
void guest_load_stores(struct guest *g, bool directory, const char *how, const uint32_t *pages,
		       uint64_t n);
/* Prepares an INVLPG of each of @pages. */
void guest_load_invlpg(struct guest *g, const uint32_t *pages, uint64_t n);

#endif
