/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_SMP_WORKLOAD_H
#define KVMSIM_WORKLOADS_SMP_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "model/sim/rng.h"
#include "model/smp/thread.h"
#include "workloads/lock_set.h"
#include "workloads/scenario.h"

/*
 * What runs in a virtual machine whose scheduling and locks are simulated (model/smp): guest
 * threads that work, take locks, sleep and wake each other, for ever; and how many operations they
 * got done. Rates are what counts: an operation's size is the workload's own, and stated where it
 * is made.
 */
#define SMP_MAX_PARAMS 8

struct smp_load;

struct smp_workload {
	const char *name;
	const char *summary;
	const char *operation;		     /* what is counted: "compilations" */
	const struct workload_param *params; /* ended by a NULL name; NULL: none */
	bool needs_locks;		     /* takes the locks of a recording */
	/* Makes locks and guest threads. 0, or a negative error; a message where it is EINVAL. */
	int (*start)(struct smp_load *l);
};
size_t smp_workload_count(void);
const struct smp_workload *smp_workload_at(size_t i);
/* "dbench,clients=8": *w and its parameters. KVMSIM_ENOENT, KVMSIM_EPARSE, with a message. */
int smp_workload_parse(const char *text, const struct kvmsim_errsink *errors,
		       const struct smp_workload **w, uint64_t param[SMP_MAX_PARAMS]);

/* One VM's load, with its locks, whose statistics are summed by their classes' names. */
struct smp_load {
	const struct smp_workload *workload;
	struct smp_vm *vm;
	uint64_t param[SMP_MAX_PARAMS]; /* 0 where the declaration says that it depends */
	const struct lock_set *locks;
	uint32_t index; /* of its VM: with the thread's number it names the random streams */
	const struct kvmsim_errsink *errors;

	uint64_t operations; /* so far */

	/* Of smp_load_*(): */
	void **owned;
	size_t n_owned, owned_room;
	struct smp_lock **lock;
	size_t n_locks, locks_room;
	struct smp_load_mutex {
		const char *name;
		struct guest_mutex *m;
	} * mutex;
	size_t n_mutexes;
	uint32_t threads;
};

/* ---- for the runner ---- */

/* Starts @l, of which workload to errors are set and the rest is 0. */
int smp_load_start(struct smp_load *l);
/* After the sim, before the VM. */
void smp_load_free(struct smp_load *l);

/* ---- for the workloads ---- */

uint32_t smp_load_vcpus(const struct smp_load *l);
/* Zeroed memory that lives as long as the load. NULL: there is none. */
void *smp_load_alloc(struct smp_load *l, size_t n, size_t bytes);
/* @lock is initialised, counted in reports, and freed with the load. 0 or a negative error. */
int smp_load_lock(struct smp_load *l, struct smp_lock *lock, const struct smp_lock_class *class);
/* @name stays the caller's. */
int smp_load_mutex(struct smp_load *l, const char *name, bool spin, struct guest_mutex **out);
/* A guest thread with random numbers of its own; @vcpu as in thread.h. */
int smp_load_thread(struct smp_load *l, guest_fn fn, void *arg, uint32_t vcpu, struct rng *rng);
/* [running] One more operation is done. */
int smp_load_done(struct smp_load *l, struct guest_thread *g);

/* [running] Takes @lock, works @insns with it, and gives it back; with irqs off where @irq. */
int smp_load_hold(struct guest_thread *g, struct smp_lock *lock, uint64_t insns, bool irq);

extern const struct smp_workload smp_workload_dbench, smp_workload_kernbench, smp_workload_ebizzy,
	smp_workload_hackbench, smp_workload_spin_micro, smp_workload_pipe, smp_workload_exec,
	smp_workload_mutex_micro, smp_workload_busy, smp_workload_idle;

#endif
