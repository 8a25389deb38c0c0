/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_OVERCOMMIT_H
#define KVMSIM_WORKLOADS_OVERCOMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/counts.h"
#include "model/policy/policy.h"
#include "model/smp/smp.h"
#include "model/smp/spin.h"
#include "workloads/lock_set.h"
#include "workloads/smp_workload.h"

/*
 * Virtual machines on one host: as many as wanted, all alike, with the same workload in each, or
 * the first with it and the others with another. They start together, warm up, and are measured for
 * a while; operations per second are the result, the rest says where the time went.
 */
struct profile;

#define OVERCOMMIT_MAX_VMS     64
#define OVERCOMMIT_MAX_CLASSES 128

struct overcommit_opts {
	uint32_t pcpus, vcpus, vms;		      /* 0: 1 */
	uint32_t pcpus_per_llc;			      /* 0: all */
	const struct smp_workload *workload, *beside; /* beside: of VMs 1 on; NULL: the same */
	uint64_t param[SMP_MAX_PARAMS], beside_param[SMP_MAX_PARAMS];
	const char *lock, *ple;	      /* "NAME,key=value"; ple NULL: off */
	const struct lock_set *locks; /* where a workload takes a recording's */
	bool pin;		      /* vCPU i of each VM on pCPU i, modulo their number */
	bool apicv, steal_time, pv_ipi, kick_yields; /* as in smp.h */
	uint64_t halt_poll_ns;
	uint32_t host_hz, guest_hz;	  /* 0: 1000; the guest's: none */
	uint64_t warm_up_ns, measured_ns; /* virtual; measured_ns 0: an error */
	const struct profile *profile;
	uint64_t seed;
	uint32_t replicate;
	bool reference, check;
	const volatile int *interrupted; /* stops it soon when not 0; may be NULL */
	const struct kvmsim_errsink *errors;
};

/* All locks of one name and caller, of all VMs. */
struct overcommit_class {
	char name[48], caller[48];
	uint64_t sleeps; /* a mutex; 0: a spinlock */
	struct smp_lock_stats stats;
};

struct overcommit_vm {
	uint64_t operations;
	struct smp_vcpu_stats sum; /* of its vCPUs */
};

/* All of the measured time alone; without pointers, so that it can be sent. Longest waits and holds
 * are of those that ended in it. */
struct overcommit_result {
	uint32_t n_vms, n_classes;
	uint64_t classes_left_out;
	cycles_t measured, idle; /* idle: of all pCPUs together */
	struct overcommit_vm vm[OVERCOMMIT_MAX_VMS];
	struct overcommit_class class[OVERCOMMIT_MAX_CLASSES]; /* by waiting, the most first */
	/* What all tasks charged and waited. */
	uint64_t counts[N_COUNTS];
	cycles_t count_cycles[N_COUNTS], waits[N_WAITS], activities[N_ACTIVITIES];
	uint64_t events, switches; /* the simulator's own, in all */
};

/* Errors: KVMSIM_EINVAL with a message (numbers out of range, a workload without its locks),
 * those of policy_parse(), KVMSIM_EINTR, KVMSIM_ENOMEM, what the run failed with. */
int overcommit_run(const struct overcommit_opts *opts, struct overcommit_result *out);

#endif
