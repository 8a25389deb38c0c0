// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/sim/rng.h"
#include "tests/unit/harness.h"
#include "tests/unit/lock_scene.h"
#include "tests/unit/simple.h"

/*
 * A lock as a queue: arrivals by a Poisson process, whose customers are handed round to many vCPUs,
 * each with a CPU of its own; nothing but the hold costs time. The mean wait of all is, by the
 * formula of Pollaczek and Khinchine, lambda E[S^2] / (2 (1 - rho)): rho / (1 - rho) holds with
 * exponential ones (M/M/1), half of that with constant ones (M/D/1).
 */
#define VCPUS	  64
#define CUSTOMERS 150000u
#define MEAN	  1000.0 /* of a hold */

struct customers {
	struct lock_scene s;
	cycles_t *arrival, *hold;
	uint32_t late;
};
struct vcpu_part {
	struct customers *c;
	uint32_t first;
};

static int serve(struct guest_thread *g, void *arg)
{
	struct vcpu_part *p = arg;
	struct customers *c = p->c;
	int r = 0;

	for (uint32_t i = p->first; !r && i < CUSTOMERS; i += VCPUS) {
		c->late += lock_scene_now(g) > c->arrival[i];
		r = lock_scene_at(g, c->arrival[i]);
		if (!r)
			r = smp_spin_lock(guest_vcpu(g), &c->s.lock[0]);
		if (!r)
			r = smp_work(guest_vcpu(g), c->hold[i]);
		if (!r)
			r = smp_spin_unlock(guest_vcpu(g), &c->s.lock[0]);
	}
	return r;
}

static double uniform(struct rng *r)
{
	return ((double)(rng_u64(r) >> 11) + 0.5) / 9007199254740992.0;
}

/* The mean wait in mean holds. */
static double mean_wait(const char *lock, double rho, bool constant)
{
	struct vcpu_part part[VCPUS];
	struct customers c = {.late = 0};
	struct rng draws;
	double at = 0, wait;

	c.arrival = malloc(CUSTOMERS * sizeof(*c.arrival));
	c.hold = malloc(CUSTOMERS * sizeof(*c.hold));
	rng_init(&draws, 7, 0, "customers");
	for (uint32_t i = 0; i < CUSTOMERS; i++) {
		at += -log(uniform(&draws)) * MEAN / rho;
		c.arrival[i] = (cycles_t)llround(at);
		c.hold[i] =
			constant ? (cycles_t)MEAN : (cycles_t)llround(-log(uniform(&draws)) * MEAN);
	}
	lock_scene_open(&c.s,
			&(struct lock_scene_opts){.vcpus = VCPUS, .lock = lock, .pinned = true});
	for (uint32_t i = 0; i < VCPUS; i++) {
		part[i] = (struct vcpu_part){&c, i};
		lock_scene_thread(&c.s, serve, &part[i], i);
	}
	CU_ASSERT_EQUAL(lock_scene_run(&c.s), 0);
	CU_ASSERT_EQUAL(c.s.lock[0].stats.acquired, CUSTOMERS);
	CU_ASSERT(c.late < CUSTOMERS / 1000);
	wait = (double)c.s.lock[0].stats.wait / CUSTOMERS / MEAN;
	lock_scene_close(&c.s);
	free(c.arrival);
	free(c.hold);
	return wait;
}

static void is_near(const char *lock, double rho, bool constant)
{
	double theory = rho / (1 - rho) / (constant ? 2 : 1);
	double found = mean_wait(lock, rho, constant);

	if (fabs(found / theory - 1) > 0.03)
		printf("%s at %g: %g holds, theory %g\n", lock, rho, found, theory);
	CU_ASSERT(fabs(found / theory - 1) <= 0.03);
}

static void ticket_exponential(void)
{
	is_near("ticket", 0.3, false);
	is_near("ticket", 0.6, false);
}

static void ticket_constant(void)
{
	is_near("ticket", 0.3, true);
	is_near("ticket", 0.6, true);
}

static void qspin_exponential(void)
{
	is_near("qspin", 0.6, false);
	is_near("qspin", 0.6, true);
}

/* The mean does not depend on who is served first, as long as that does not look at the holds. */
static void tas_exponential(void)
{
	is_near("tas", 0.6, false);
}

static CU_TestInfo tests[] = {
	{"ticket is M/M/1", ticket_exponential},
	{"ticket is M/D/1", ticket_constant},
	{"qspin is both", qspin_exponential},
	{"tas is M/M/1 but for the order", tas_exponential},
	CU_TEST_INFO_NULL,
};

TEST_MAIN("lock_queue", tests)
