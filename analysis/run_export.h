/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RUN_EXPORT_H
#define KVMSIM_ANALYSIS_RUN_EXPORT_H

#include <stdio.h>

#include "model/guest/watch.h"
#include "model/host/lock.h"
#include "model/mmu/trace.h"

/*
 * A simulated run in forms that other programs read: a time line of what every vCPU did, of the
 * VMM's ioctls, of waits for locks and holds of them, of the collections (Chrome's trace events);
 * and folded stacks from the ledger. Written while it runs, in constant memory. Whoever looks on
 * changes nothing: a run's result is the same with and without. Whether all was written, the
 * streams tell.
 */
struct guest_run;
struct run_export;

struct run_export_opts {
	FILE *perfetto, *folded; /* NULL: not wanted */
};

/* For run_model(); the functions below take NULL and do nothing. NULL: no memory. */
struct run_export *run_export_create(const struct run_export_opts *opts, struct guest_run *run);
void run_export_free(struct run_export *x);
/* For kvm_vm_opts; NULL: none. */
const struct kvm_observer *run_export_observer(const struct run_export *x);
/* @watch is told what @x is told of ioctls and stalls; for kvm_vm_opts. */
const struct kvm_watch *run_export_watch(struct run_export *x, const struct kvm_watch *watch);
/* The guest starts: what is in the ledger until now is the set-up. 0 or KVMSIM_ENOMEM. */
int run_export_start(struct run_export *x);
/* The run is over, its objects still there. */
void run_export_finish(struct run_export *x);

#endif
