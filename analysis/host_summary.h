/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_HOST_SUMMARY_H
#define KVMSIM_ANALYSIS_HOST_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "traces/host/host.h"

/*
 * What a text or a host's trace was like, in the one line that `import` and `info` say on standard
 * error:
 *
 *	FILE: N lines, N events, N unknown, N damaged, N lost, N out of order
 *
 * and behind that, where there are any, how many rows of tables, and the first damaged line.
 *
 * Unknown and damaged are lines. A record is out of order when its time is lower than that of the
 * record before it on the same CPU. Where the header of a buffer says how many were written and how
 * many are there, the difference is what was lost, and marks in the text add nothing.
 */
struct summary {
	uint64_t rows; /* of tables */
	uint64_t lines, events, unknown, damaged, out_of_order;
	uint64_t lost;		/* of losses that say how many */
	bool lost_more;		/* and some that do not */
	bool no_order;		/* no record says its CPU */
	uint64_t first_damaged; /* line; 0: not known */
};

/* Gathers one from a host's trace; zero at first. host_summary_free() in the end. */
struct host_summary {
	uint64_t marked, marks; /* lost by marks in the text; marks without a count */
	uint64_t header;
	bool has_header;
	uint64_t out_of_order;
	uint64_t *last; /* time by CPU; UINT64_MAX: none yet */
	size_t n_cpus;
};

/* KVMSIM_ENOMEM. CPUs above 2^20 are not looked at. */
int host_summary_event(struct host_summary *s, const struct host_event *e);
void host_summary_loss(struct host_summary *s, const struct host_loss *l);
/* The whole of it, when @r has been read to its end. */
struct summary host_summary(const struct host_summary *s, const struct host_result *r);
void host_summary_free(struct host_summary *s);

/* "kvmsim: FILE: ...", control characters of @file as cli_errors has them. */
void summary_print(const char *file, const struct summary *s);
/* --strict: EXIT_GATE if a line was unknown or damaged, anything lost or out of order. */
int summary_exit_code(const struct summary *s, bool strict);

#endif
