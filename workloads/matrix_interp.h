/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_MATRIX_INTERP_H
#define KVMSIM_WORKLOADS_MATRIX_INTERP_H

#include "workloads/matrix_scene.h"

/* The list of vCPU @v begins anew; ops are appended to it; a phase runs it to its end, where OUT is
 * appended. What the guest did with devices is the phase's result `user_mmio_exits`. */
void mx_ops(struct matrix *m, struct kvm_vcpu *v);
void mx_op(struct matrix *m, enum mx_op what, uint64_t address, uint64_t value);
int mx_ops_run(struct matrix *m, const char *phase);
/* The same, the phase is called @base_k@k, and its round is @k. */
int mx_ops_run_k(struct matrix *m, const char *base, int k);
/* The same, but KVM_RUN until OUT @times times: for lists that have OUTs inside. */
int mx_ops_run_outs(struct matrix *m, const char *phase, unsigned times);

/* ---- what the files of cases F share ---- */

/* A new VM for @body, whose guest has PTEs of this size; others are refused. */
int mx_f_vm(struct matrix *m, enum matrix_pte pte, int (*body)(struct matrix *m));
/* The phase `warm_read8`: the first eight test pages are read. */
int mx_f_warm(struct matrix *m);

struct mx_width {
	enum mx_op op;
	enum matrix_pattern pattern;
};
extern const struct mx_width mx_widths[4];

#endif
