/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_OPERATIONS_REPORT_H
#define KVMSIM_ANALYSIS_OPERATIONS_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "analysis/run.h"

/* What the VMM's operations held and whom they held up, as a table and as JSON. 0 or KVMSIM_ENOMEM;
 * what there was none of is left out. */
int operations_print(const struct run_opts *o, const struct run_result *r, FILE *to);
/* An array of one object per operation; NULL: no memory. */
json_t *operations_json(const struct run_result *r);
/* One stall; null where it is empty. */
json_t *stall_json(const struct run_stall *s);

#endif
