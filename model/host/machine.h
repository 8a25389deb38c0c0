/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_HOST_MACHINE_H
#define KVMSIM_HOST_MACHINE_H

#include <stdint.h>

#include "model/sim/profile.h"
#include "model/sim/sim.h"

/*
 * A machine's CPUs when a known number of tasks keeps them busy, as vCPU threads and a VMM that
 * spin: from the profile's params cores, smt_permille and memory_load_permille.
 *
 * The scheduler gives each task a core of its own while there are some; further ones become second
 * threads, of core 0 on. Work on a core with two busy threads takes smt_permille of the time that
 * it takes alone, but for the clearing of host pages, which is the memory's. A guest's TLB walk,
 * whose price holds the memory accesses behind it, is not slowed by the other thread but by all
 * busy CPUs, each of which adds memory_load_permille. More tasks than threads have fair shares of
 * them, in slices of no length.
 *
 * @cores: in place of the profile's; 0: the profile's.
 */
struct machine;

/* @busy is at least 1. KVMSIM_ENOMEM. */
int machine_create(const struct profile *profile, uint32_t cores, uint32_t busy,
		   struct machine **out);
/* After the sim. */
void machine_destroy(struct machine *m);

/* Prices of the CPU of the @i'th of the busy tasks, for struct task_opts. */
const price_t *machine_prices(const struct machine *m, uint32_t i);
/* Task @t, which has not run, is the @i'th: it shares the lines of locks with its core's other
 * thread. KVMSIM_ENOMEM. */
int machine_place(struct machine *m, struct task *t, uint32_t i);

#endif
