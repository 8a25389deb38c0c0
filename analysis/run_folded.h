/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RUN_FOLDED_H
#define KVMSIM_ANALYSIS_RUN_FOLDED_H

#include <stdio.h>

#include "model/counts.h"
#include "model/sim/ledger.h"
#include "model/sim/sim.h"

/*
 * A ledger as folded stacks: a line "TASK;ACTIVITY;COUNT CYCLES" per entry, "wait: NAME" for the
 * waits, of what was entered since the start: their sum is what the ledger's sum grew by.
 */
struct folded_ledger {
	uint32_t tasks; /* that there were at the start */
	cycles_t *before;
};

/* 0 or KVMSIM_ENOMEM. */
int folded_ledger_start(struct folded_ledger *f, const struct sim *sim);
void folded_ledger_free(struct folded_ledger *f);
void folded_ledger_write(const struct folded_ledger *f, const struct sim *sim, FILE *to);

#endif
