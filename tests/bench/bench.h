/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_BENCH_H
#define KVMSIM_BENCH_H

#include <stdint.h>

/*
 * One line of a bench: does the work BENCH_ROUNDS times after a warm-up and prints the median rate
 * in CPU time with the least and greatest, then what bounds it.
 */
#define BENCH_ROUNDS 5

/* Does one round and returns how much it did, in @unit. */
typedef uint64_t (*bench_fn)(void *arg);

/* From within a round: does what has to be done but is not measured. Returns what @fn does. */
uint64_t bench_aside(bench_fn fn, void *arg);

void bench_run(const char *name, const char *unit, bench_fn fn, void *arg, const char *bound);

#endif
