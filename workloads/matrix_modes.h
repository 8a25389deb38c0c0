/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_MATRIX_MODES_H
#define KVMSIM_WORKLOADS_MATRIX_MODES_H

#include "workloads/matrix_scene.h"

/*
 * Cases M: what changes when the guest changes how it pages. Each is a list of steps, one phase
 * each, as tests/kernel/cases/M_*.case has them; a step that says VM begins anew.
 */
enum mx_mode_what { VM, PAGES, WRITE, READ, MOV, SREGS, CR3, STORE_PTES, STORE_PDES, INVLPG, GET };
/* @text: VM: of what kind its PTEs are; MOV, SREGS: bits; STORE_*: how the entries change. */
struct mx_mode_step {
	enum mx_mode_what what;
	const char *phase, *text;
	enum matrix_pattern pattern; /* PAGES */
	uint64_t n;		     /* PAGES; CR3: the root */
};

/* Of the case, its first VM; the list ends with a VM without a text. NULL: no such case. */
const struct mx_mode_step *mx_mode_steps(const char *test_case);

#endif
