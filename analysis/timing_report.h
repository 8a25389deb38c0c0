/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_TIMING_REPORT_H
#define KVMSIM_ANALYSIS_TIMING_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "analysis/timing.h"

/* Rows with their predictions and what each series says, for `kvmsim validate`. */
int timing_print(const struct timing *t, const struct timing_judgement *j, size_t n,
		 const struct profile *profile);
void timing_csv(const struct timing *t);
/* "pass", ... */
const char *timing_verdict_name(enum timing_verdict v);
/* NULL: no memory. */
json_t *timing_json(const struct timing *t, const struct timing_judgement *j, size_t n,
		    const struct profile *profile);

#endif
