/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RUN_GUEST_H
#define KVMSIM_ANALYSIS_RUN_GUEST_H

#include "analysis/run_export.h"
#include "analysis/run_input.h"
#include "analysis/run_watch.h"
#include "model/guest/interp.h"
#include "model/guest/vm.h"
#include "model/sim/ledger.h"
#include "model/sim/sim.h"

/*
 * The tasks of a run: one per vCPU, which replays its stream, and the VMM's, which sets the VM up
 * and collects the dirty log. They meet at the boundaries of epochs: there each vCPU stops until
 * the VMM's task has collected, or, in a run that says so, tells it and goes on.
 */
struct run_vcpu {
	struct guest_run *run;
	struct kvm_vcpu *vcpu;
	struct task *task;
	struct op_source source; /* the input's, looking at run_interrupted */
	uint32_t id;
	uint64_t ended; /* epochs that have ended */
	bool open;	/* inside an epoch */
	bool marked;	/* no epoch has begun since a mark */
	bool finished, waiting;
	cycles_t end; /* task_now() when finished */
	struct interp_stats stats;
};

struct guest_run {
	const struct run_opts *opts;
	struct run_input *in;
	bool check; /* the checkers are on */
	struct sim *sim;
	struct kvm *kvm;
	struct task *vmm;
	struct run_watch watch;
	struct run_export *export; /* NULL: none */
	struct run_vcpu *vcpus;	   /* in->n_vcpus */
	uint64_t *bitmap;	   /* of the largest slot */
	uint64_t every;		   /* epochs per collection */
	uint64_t target;	   /* epochs that have ended at the next collection */
	cycles_t start;		   /* the guest's */
	uint64_t cr3;		   /* in long mode: gpa of the guest's page tables */
	/* What was there at the guest's start, to be taken from what is at the end. */
	struct run_result *before;
	struct run_collection *collections;
	size_t n_collections, room;
};

/* The VMM's task; @arg is the guest_run. Creates the vCPUs' tasks when the set-up is done. */
int run_vmm(struct task *t, void *arg);

/* Fills the counts, cycles, statistics and lock figures of @r with what they are now. */
void run_snapshot(const struct guest_run *run, struct run_result *r);

#endif
