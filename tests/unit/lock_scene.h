/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_LOCK_SCENE_H
#define KVMSIM_TESTS_LOCK_SCENE_H

#include "model/counts.h"
#include "model/host/sched.h"
#include "model/sim/profile.h"
#include "model/smp/thread.h"

/* A host, a VM on it and some locks, for tests of locks and pause-loop exits. A unit of time is a
 * nanosecond; an instruction, an iteration of a pause loop take one. */
#define LOCK_SCENE_LOCKS 8

struct lock_scene_opts {
	uint32_t cpus, vcpus; /* 0: as many as vcpus; 2 */
	const char *lock, *ple;
	const uint32_t *pin;
	bool pinned;			  /* vCPU i to CPU i % cpus, where pin is NULL */
	int lock_price, transfer;	  /* COUNT_lock; line_transfer */
	int exit, entry, hypercall, wake; /* prices */
	uint64_t host_hz;
	uint32_t guest_hz;
	bool reference, steal_time, kick_yields;
	uint64_t seed, halt_poll_ns;
};

struct lock_scene {
	struct profile *profile;
	struct sim *sim;
	struct sched *host;
	struct smp_vm *vm;
	struct smp_lock lock[LOCK_SCENE_LOCKS];
};

/* Aborts where it cannot be made. */
void lock_scene_open(struct lock_scene *s, const struct lock_scene_opts *o);
struct guest_thread *lock_scene_thread(struct lock_scene *s, guest_fn fn, void *arg, uint32_t vcpu);
/* sim_run() to its end, with the ledger's check. */
int lock_scene_run(struct lock_scene *s);
void lock_scene_close(struct lock_scene *s);
/* Of a guest thread: the time; works until then. */
cycles_t lock_scene_now(struct guest_thread *g);
int lock_scene_at(struct guest_thread *g, cycles_t when);

#endif
