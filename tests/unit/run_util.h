/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_RUN_UTIL_H
#define KVMSIM_TESTS_RUN_UTIL_H

#include <stdbool.h>

#include "analysis/run.h"
#include "model/sim/profile.h"

/* What the tests of analysis/run.h share. */

/* A sink that keeps the last message. */
extern const struct kvmsim_errsink run_errors;
extern char run_message[1024];

/* In which every count costs 1, insn too; false: it could not be made. */
extern struct profile *run_profile;
bool run_make_profile(void);

/* The sums of the ledger by count, by activity, by task are the same. */
void run_check_sums(const struct run_result *r);
/* Collections, counts, cycles, waits, statistics. */
bool run_same_results(const struct run_result *a, const struct run_result *b);

#endif
