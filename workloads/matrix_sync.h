/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_MATRIX_SYNC_H
#define KVMSIM_WORKLOADS_MATRIX_SYNC_H

#include "workloads/matrix_interp.h"

/* What the files of cases F_sync share. */

#define T(i)	   MX_TEST_PAGE(i)
#define PTE(i)	   (MX_PT_TEST(0) + (i)*8ull) /* maps T(i) */
#define PDE(i)	   (MX_PD(0) + (i)*8ull)
#define PT_OTHER   0x68000ull	 /* a table of level 1 besides */
#define OTHER_ROOT 0x70000ull	 /* and its tables */
#define SECOND_GIB 0x40000000ull /* by a directory that is on the walk of none of its writes */

/* The guest's op lists; after an error nothing runs any more. A list is made up, run as a phase,
 * and the first vCPU's next one begins. */
struct mx_guest {
	struct matrix *m;
	int err;
};
struct mx_guest mx_guest_begin(struct matrix *m);
/* After the phase `warm_read8`. */
struct mx_guest mx_guest_warm(struct matrix *m);
/* The list that begins is vCPU @v's. */
void mx_guest_ops(struct mx_guest *g, uint32_t v);
void mx_rd(struct mx_guest *g, uint64_t address);
void mx_w8(struct mx_guest *g, uint64_t address, uint64_t value);
void mx_inv(struct mx_guest *g, uint64_t address);
void mx_cr3(struct mx_guest *g, uint64_t root);
void mx_go(struct mx_guest *g, const char *phase);
/* The phase is called @base_k@k, its round is @k. */
void mx_go_k(struct mx_guest *g, const char *base, int k);

/* A VM with 4K PTEs whose slot 1 has at least @slot_pages; @prepare may be NULL. */
int mx_sync_vm(struct matrix *m, uint64_t slot_pages, int (*prepare)(struct matrix *m),
	       int (*body)(struct matrix *m));
/* Prepares PT_OTHER, which maps the test pages at SECOND_GIB; and after that the phases
 * `warm_read8` and `warm_read_G0`. */
int mx_second_gib(struct matrix *m);
struct mx_guest mx_warm_second_gib(struct matrix *m);
/* Prepares OTHER_ROOT, which has a PDPT and a directory of its own. */
int mx_other_directories(struct matrix *m);

#endif
