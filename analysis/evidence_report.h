/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_EVIDENCE_REPORT_H
#define KVMSIM_ANALYSIS_EVIDENCE_REPORT_H

#include <jansson.h>

#include "analysis/evidence.h"

/* What `kvmsim validate` prints of the rows of calls (evidence.h). 0 or KVMSIM_ENOMEM. */
int evidence_print(const struct evidence *e, const struct evidence_judgement *j,
		   const struct profile *p);
/* The columns' names, once, and the rows of a file. */
void evidence_csv_heading(void);
void evidence_csv(const struct evidence *e);
/* NULL: no memory. */
json_t *evidence_json(const struct evidence *e, const struct evidence_judgement *j,
		      const struct profile *p);

#endif
