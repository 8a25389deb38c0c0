/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_SIM_LEDGER_H
#define KVMSIM_SIM_LEDGER_H

#include "model/sim/sim.h"

/*
 * The ledger: (task, activity, count or wait) -> n, cycles. Every cycle that passes in a task is
 * here exactly once, so its sum is the elapsed time. Reports and attributions are views of it.
 */

/* struct ledger_entry { uint64_t n; cycles_t cycles; } is in sim.h: charge() writes it inline. */

/* A count or a wait of one task and activity, or of all of them; zeros when nothing was charged, or
 * when there is no such task, activity, count or wait. */
#define LEDGER_ALL_TASKS      UINT32_MAX
#define LEDGER_ALL_ACTIVITIES UINT16_MAX
struct ledger_entry ledger_sum_count(const struct ledger *l, uint32_t task, uint16_t activity,
				     uint16_t count);
struct ledger_entry ledger_sum_wait(const struct ledger *l, uint32_t task, uint16_t activity,
				    uint16_t wait);
cycles_t ledger_task_total(const struct ledger *l, uint32_t task);

/* Calls @fn for every non-zero entry, ordered by task, activity, counts then waits. */
typedef void (*ledger_fn)(void *ctx, uint32_t task, uint16_t activity, bool is_wait, uint16_t id,
			  struct ledger_entry e);
void ledger_for_each(const struct ledger *l, ledger_fn fn, void *ctx);

/* 0 when every task's sum equals its elapsed time, else KVMSIM_ECHECK with the task named. */
int sim_check_ledger(const struct sim *sim);

#endif
