/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_RECORD_OPS_H
#define KVMSIM_KERNEL_RECORD_OPS_H

#include "tests/kernel/phase.h"

/* ---- record.c ---- */

uint64_t read_tsc(void);
/* A new VM as statement `vm` says. */
void recorder_new_vm(struct recorder *r, const struct statement *s);
/* One phase: the vCPU runs what was loaded. */
void recorder_run(struct recorder *r, unsigned vcpu, const char *phase);

/* ---- record_ops.c ---- */

/* The op program opts.ops, once. */
void record_ops(struct recorder *r);

#endif
