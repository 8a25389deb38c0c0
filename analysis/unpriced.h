/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_UNPRICED_H
#define KVMSIM_ANALYSIS_UNPRICED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/counts.h"
#include "model/sim/sim.h"

/* What a run counted and its profile has no price for: its times are too small by that. */
struct profile;

struct unpriced {
	const struct profile *profile;
	bool collecting[N_COUNTS]; /* while the log was being got, cleared, reset, switched */
	bool elsewhere[N_COUNTS];
};

/* Enters @n of @count that took @cycles. What has cycles, or is 0 on purpose (profile_has_price()),
 * is passed over. */
void unpriced_add(struct unpriced *u, bool collecting, uint16_t count, uint64_t n, cycles_t cycles);

/* A sentence with all of them, if any; KVMSIM_ENOMEM. A warning on stderr (at the program's end)
 * when the times of the log's operations, which is what one reads, lack something. */
int unpriced_print(const struct unpriced *u, FILE *to);
void unpriced_warn(const struct unpriced *u);

/* Puts not_priced, all of them, and not_priced_collecting, those of the log's operations. */
struct json_t;
void unpriced_json(const struct unpriced *u, struct json_t *o);

#endif
