/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_HOTSPOTS_H
#define KVMSIM_ANALYSIS_HOTSPOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "analysis/host_threads.h"
#include "analysis/top.h"

/*
 * Where a host's trace has its faults, what does not get on, and who held whom up. One pass,
 * constant memory: counts are exact while there are no more than `keys` pairs of a vCPU and a page;
 * then the half with the fewest faults is let go of, again and again, and each row says how many of
 * its faults may be missing.
 */
#define HOT_MAX_RANGES 32
#define HOT_VCPUS      16

struct hot_range {
	char name[32];
	uint64_t first, last; /* gfns */
};

struct hot_opts {
	size_t top, keys;
	const struct hot_range *ranges; /* whose pages alone are told, and whose gaps; 0: all */
	size_t n_ranges;
};

struct hot_key {
	int64_t vcpu; /* -1: not known */
	uint64_t gfn; /* or virtual page */
	uint64_t gva; /* 1: a virtual page: shadow paging */
};

struct hot_spot {
	struct hot_key key;
	uint64_t faults, reads, writes,
		fetches; /* of which kind is not known: the rest of faults */
	uint64_t spurious, spte_changes, mmio;
	uint64_t missed;	     /* so many faults at most are not counted */
	uint64_t period_ns, periods; /* median time between faults, of how many */
	bool exact;		     /* the median is */
	uint64_t first, last;	     /* fault; HOST_NO_TIME */
};

/* One instruction faulting for one page again and again, while no spte of it changed. */
struct hot_loop {
	uint64_t gva, gfn, rip, code;
	uint64_t faults;
	int64_t vcpu[HOT_VCPUS]; /* the first that took part */
	uint64_t times[HOT_VCPUS];
	unsigned n_vcpus;
	bool more_vcpus;
	uint64_t begin, end; /* of the first and the last; HOST_NO_TIME */
	uint64_t line;	     /* of the first; 0 */
	/* So often one of its vCPUs had faulted for another page in between: where no event tells
	 * of sptes, those may have changed, as under dirty logging. */
	uint64_t elsewhere;
	bool unsure; /* a loss may hide a change */
};

struct hot_gap {
	struct host_gap gap;
	char name[32];	      /* of a given range; "": a run of neighbouring pages */
	uint64_t first, last; /* gfns that the thread faulted for, in all */
	uint64_t gva;
	uint64_t faults;
};

struct hot_stalls {
	uint64_t n, ns, longest; /* without those that are unsure or open */
	uint64_t unsure, open;
};
struct hot_culprit {
	enum host_stall_kind kind;
	struct host_who by; /* HOST_NOBODY: nobody is known */
	enum host_blame blame;
	uint64_t n, ns, longest;
};

struct hot_userspace {
	uint64_t exits;
	uint64_t begin, end;	/* of the time that they are counted over */
	uint64_t per_second;	/* 0: no time */
	uint64_t by_reason[41]; /* KVM_EXIT_...; the last: others, errors and signals */
};
#define HOT_STORM	   100000 /* exits to user space per second */
#define HOT_STORM_LEAST	   3	  /* exits in all; fewer are no rate */
#define HOT_WINDOW_NS	   10000000ull
#define HOT_PROGRESS_STALL 1000000000ull /* a longer hole among the faults of a range */

/* Whether it is a loop for certain: no loss and no change that nobody recorded can explain it. */
struct hotspots;
bool hotspots_loop_is_sure(const struct hotspots *h, const struct hot_loop *l);

struct hotspots {
	struct host_counts counts;
	uint64_t events, kvm_events, losses, lost; /* lost: as far as it was said */
	bool lost_unknown;			   /* some loss has no count */
	uint64_t lost_chunks;			   /* perf's, which are no events */
	bool header_loss; /* the header says how many are lost in all, which is @lost */
	uint64_t lost_in_all;
	struct host_threads_totals totals;
	struct top spots, loops, stalls, range_gaps, thread_gaps, culprits;
	struct hot_stalls by_kind[HOST_N_STALLS];
	struct hot_userspace userspace, worst; /* worst window; exits 0: none */
	uint64_t faults, outside;	       /* outside of the ranges */
	uint64_t spte_events;
	uint64_t keys, dropped_keys, dropped_at_most; /* there; let go; faults of one, at most */
	uint64_t n_loops, n_elsewhere;		      /* of them with faults elsewhere in between */
	bool scheduled, woken, contended;	      /* such events are in the trace */
	bool storm, storm_window;
};

/* Makes @sink one that finds them, for whoever reads events: NULL without memory. hotspots_end()
 * fills
 * @out, which hotspots_free() frees in any case; hotspots_abort() frees the rest. 0, KVMSIM_ENOMEM.
 */
struct hot_reading;
struct hot_reading *hotspots_begin(const struct hot_opts *opts, struct hotspots *out,
				   struct host_sink *sink);
int hotspots_end(struct hot_reading *r);
void hotspots_abort(struct hot_reading *r);

/* Reads @path to its end. Errors: host_read()'s, KVMSIM_ENOMEM. hotspots_free() also after one. */
int hotspots_read(const char *path, const struct hot_opts *opts,
		  const struct kvmsim_errsink *errors, struct hotspots *out,
		  struct host_result *result);
void hotspots_free(struct hotspots *h);

/* 0 or KVMSIM_ENOMEM. */
int hotspots_print(const char *path, const struct hotspots *h, FILE *to);
json_t *hotspots_json(const char *path, const struct hotspots *h);
/* A row per page. */
void hotspots_csv(const struct hotspots *h, FILE *to);

#endif
