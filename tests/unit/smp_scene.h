/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_SMP_SCENE_H
#define KVMSIM_TESTS_SMP_SCENE_H

#include "model/counts.h"
#include "model/host/sched.h"
#include "model/sim/profile.h"
#include "model/smp/thread.h"

/*
 * A host and one VM on it, for tests of model/smp. A unit of time is a nanosecond. What the prices
 * are is in the names; what has none costs nothing.
 */
enum {
	EXIT = 10,
	ENTRY = 20,
	IPI = 5,
	INJECT = 3,
	IRQ = 7,
	TICK = 11,
	SWITCH = 13,
	WAKE = 17,
	HYPERCALL = 19,
	HOST_WAKE = 23,
	LATENCY = 100 /* of an IPI */
};

struct smp_scene {
	struct profile *profile;
	struct sim *sim;
	struct sched *host;
	struct smp_vm *vm;
};

/* Aborts where it cannot be made. @o: zeroes are filled in, 2 vCPUs. */
void smp_scene_open(struct smp_scene *s, uint32_t cpus, const struct smp_opts *o, bool reference);
/* A guest thread. */
struct guest_thread *smp_scene_thread(struct smp_scene *s, guest_fn fn, void *arg, uint32_t vcpu);
/* sim_run(), with the ledger's check. */
int smp_scene_run(struct smp_scene *s, cycles_t until);
void smp_scene_close(struct smp_scene *s);

#endif
