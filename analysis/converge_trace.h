/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_CONVERGE_TRACE_H
#define KVMSIM_ANALYSIS_CONVERGE_TRACE_H

#include "analysis/converge_rounds.h"
#include "traces/host/host.h"

/*
 * What a host's trace tells of whether a migration converges. Only stores that left the guest are
 * in it: what KVM pushed to dirty rings; else write faults for pages that were mapped without W, as
 * dirty logging leaves them; else, where logging was off, the first stores to pages (devices' pages
 * and the local APIC's aside). So the different pages stored to in a stretch of time are a lower
 * bound of what was dirtied in it, whatever was lost, and whatever went to pages that were
 * writable.
 *
 * With that rounds are reckoned from below: the first sends at least the pages that were seen; a
 * round as long as T dirties at least what the emptiest of the stretches of that length had, one
 * after the other from the first store seen to the last (all, where T is longer); no round is taken
 * to dirty more than the one before. Where even this does not fit the downtime, a migration of the
 * guest as recorded does not converge. Where it does nobody can tell; nor of first stores, which
 * don't come again.
 */
#define TRACE_STORES	(1u << 20) /* the first so many are kept */
#define TRACE_STRETCHES 5

struct trace_stretches {
	uint64_t ns, n;		   /* length of one, how many fit in */
	uint64_t least, most, all; /* pages, in one, in the sum of all */
};

struct trace_dirty_result {
	enum trace_stores_of { TRACE_PUSHES, TRACE_PROTECTED, TRACE_FIRST } of_what;
	uint64_t stores;   /* that are counted */
	uint64_t left_out; /* write faults at guest-virtual addresses */
	uint64_t pages;	   /* in all */
	uint64_t span_ns;  /* from the first to the last */
	bool cut;	   /* there are more than TRACE_STORES: the rest is not looked at */
	struct trace_stretches of[TRACE_STRETCHES]; /* all in one; 10 s, 1 s, 100 ms, 10 ms */
	unsigned n_of;

	struct rounds_goal goal;
	bool known; /* it does not converge */
	/* at least, also where it may converge; without a bandwidth 0 */
	uint64_t rounds, left;	  /* left: pages, for the stop or in each further round */
	double stop_s, bandwidth; /* bandwidth, MiB/s: less does not do; 0: not known */
};

/* Makes @sink one that looks for stores. NULL: no memory. */
struct trace_dirty;
struct trace_dirty *trace_dirty_begin(struct host_sink *sink);
/* KVMSIM_ENOENT: no store is in the trace, or none has a time. KVMSIM_ENOMEM, KVMSIM_EINTR. */
int trace_dirty_judge(struct trace_dirty *d, const struct rounds_goal *goal,
		      struct trace_dirty_result *out);
void trace_dirty_free(struct trace_dirty *d);

/* Prints it; @input: the file's name. 0 or KVMSIM_ENOMEM. */
int trace_dirty_report(const struct trace_dirty_result *r, const char *input,
		       enum rounds_format format);

#endif
