/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_MOPS_MACHINE_H
#define KVMSIM_TESTS_MOPS_MACHINE_H

#include "model/counts.h"
#include "model/guest/vcpu.h"
#include "model/host/cache.h"
#include "model/sim/rng.h"
#include "tests/property/mops_oracle.h"

/* A machine that runs; inside mops_run.c and mops_vmm.c. */
struct machine {
	const struct mops *m;
	struct mops_result *r;
	struct oracle oracle;
	struct sim *sim;
	struct kvm *kvm;
	struct cache *cache;
	struct profile *profile;
	struct task *vmm;
	char message[224]; /* the last one of the model */
	bool ended;	   /* what comes now is of no interest */
	bool stop;	   /* vCPUs leave the guest, and wait */
	unsigned n_ended, n_stopped;
	struct machine_vcpu {
		struct machine *machine;
		unsigned id;
		struct kvm_vcpu *vcpu;
		struct task *task;
		bool stopped;
		struct rng host; /* when it interrupts, and for how long */
		cycles_t interrupt_at;
	} vcpu[MOPS_MAX_VCPUS];
	uint64_t bitmap[(MOPS_DATA_PAGES + 63) / 64];
};

/* Ends the run: @why is what is wrong with @op. */
int mops_wrong(struct machine *x, const struct mop *op, const char *why);

/* ---- mops_vmm.c ---- */
/* All of them, at the begin. */
int mops_set_slots(struct task *t, struct machine *x);
/* Collects the slot's log, where it has one; @clear: GET alone is not enough. */
int mops_report(struct task *t, struct machine *x, unsigned slot, bool clear);
int mops_vmm_op(struct task *t, struct machine *x, const struct mop *op);

#endif
