/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RECORD_KVM_OPS_H
#define KVMSIM_ANALYSIS_RECORD_KVM_OPS_H

#include <stdio.h>

#include "workloads/kvm/ops_play.h"

/* `record kvm --program`: an op program on this machine's KVM, as rows of a reference matrix. */

/* Plays the program in the file @path; @opts says how, its program and callback are filled in here.
 * Rows of the statistics that changed, of gauges that stand at something, and of results, in the
 * columns of analysis/matrix_file.h. Errors: those of kvm_ops_play(); KVMSIM_EPARSE, KVMSIM_ENOENT
 * or KVMSIM_EIO of the file. */
int record_kvm_ops(const char *path, const struct kvm_ops_opts *opts, FILE *to);

#endif
