/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_SIMPLE_H
#define KVMSIM_TESTS_SIMPLE_H

#include <stdbool.h>

#include "model/sim/sim.h"

/*
 * A small simulator for tests of model/sim and model/host: a vocabulary and a profile of its own.
 *
 *	SIMPLE_ONE	costs 1
 *	SIMPLE_THIRD	costs 0.333333
 *	SIMPLE_FREE	costs nothing
 *
 * It aborts when it cannot be set up, so that benches can use it without a test suite.
 */
enum { SIMPLE_ONE, SIMPLE_THIRD, SIMPLE_FREE, N_SIMPLE_COUNTS };
enum { SIMPLE_ACT_A, SIMPLE_ACT_B, N_SIMPLE_ACTIVITIES };
enum { SIMPLE_CPU, SIMPLE_IDLE, N_SIMPLE_WAITS };

extern const struct sim_vocabulary simple_vocabulary;

/* What the sink was last told, and how often. */
extern char simple_message[1024];
extern int simple_messages;
extern const struct kvmsim_errsink simple_errors;

/* Fields of @opts that are zero are filled in; NULL: all of them. */
struct sim *simple_sim(const struct sim_opts *opts);
struct task *simple_task(struct sim *s, const char *name, task_fn fn, void *arg, cycles_t start);
/* Destroys it and its profile. */
void simple_end(struct sim *s);

#endif
