/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_FACTS_H
#define KVMSIM_ANALYSIS_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "traces/host/host.h"
#include "traces/tables/tables.h"

/*
 * What a trace of a host says, gathered in one pass: the sink of host_read(). The facts are plain
 * countings by stated rules (docs/host-facts.md); what the trace cannot tell has no value.
 *
 * Memory is bounded whatever the trace: lists of single records (page faults, latencies, ...) hold
 * their first FACTS_MAX_LIST, threads beyond FACTS_MAX_THREADS are counted in the totals only,
 * and so on for every set of names or numbers. What did not fit is told.
 */
#define FACTS_MAX_LIST	  10000
#define FACTS_MAX_THREADS 100000
#define FACTS_MAX_NAMES	  10000
#define FACTS_MAX_CPUS	  65536
#define FACTS_MAX_LOOPS	  200000 /* different (gfn, rip, code) of faults */

struct facts;

/* NULL: no memory. */
struct facts *facts_create(void);
void facts_free(struct facts *f);
/* For host_read(); its calls return 0 or KVMSIM_ENOMEM. Valid as long as @f. */
const struct host_sink *facts_sink(const struct facts *f);
/* After the last event: what is still open is counted as such. */
void facts_finish(struct facts *f);

/* What a reader is told of the file beside it. */
struct facts_given {
	bool has_downtime;
	uint64_t downtime_ms; /* how long the guest may stand still */
};

/* A file as a whole. */
struct host_facts {
	const char *path;
	const struct facts *facts;
	const struct tables *tables;
	const struct host_result *result;
	struct facts_given given;
};

/* One word of what is wrong, or how it ends, or NULL: none of the rules holds. */
const char *facts_verdict(const struct host_facts *h);

/* Every key, those without an answer null. NULL: no memory. */
json_t *facts_json(const struct host_facts *h);
/* A refused file: why, and what can be told of it. */
json_t *facts_refusal_json(const char *path, const struct host_result *r);
/* A page for people. 0 or KVMSIM_ENOMEM. */
int facts_print(const struct host_facts *h);

#endif
