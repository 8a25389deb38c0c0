/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RUN_WATCH_H
#define KVMSIM_ANALYSIS_RUN_WATCH_H

#include "analysis/run.h"
#include "model/guest/watch.h"

/* What the VMM's operations held and whom they held up, from a watch on the VM: run.h has the
 * words. */
struct run_watch {
	struct kvm_watch watch; /* for kvm_vm_opts */
	struct run_operation operations[RUN_OPERATIONS];
	struct run_stall longest;
	cycles_t start; /* the guest's: times count from here */
};

/* Makes @w ready, for the VM's life: &w->watch goes into kvm_vm_opts, and points to @w, which must
 * stay where it is. What is told before run_watch_start() counts from time 0. */
void run_watch_init(struct run_watch *w);
/* Forgets what was: the guest starts at @start. */
void run_watch_start(struct run_watch *w, cycles_t start);

#endif
