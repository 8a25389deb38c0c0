/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_OVERCOMMIT_REPORT_H
#define KVMSIM_ANALYSIS_OVERCOMMIT_REPORT_H

#include "analysis/overcommit_args.h"
#include "analysis/stats.h"
#include "workloads/overcommit.h"

/* A point: so many VMs, measured once per replicate. */
struct overcommit_point {
	struct overcommit_opts opts; /* of its first replicate */
	uint32_t factor;	     /* of --overcommit; 0: VMs were given */
	struct overcommit_result *r; /* [replicates] */
};

/* Operations per second of one of the VMs that have the workload. */
double overcommit_rate(const struct overcommit_point *p, uint32_t replicate);
/* The mean over replicates, with an interval where there are two or more. */
struct stats_estimate overcommit_mean(const struct overcommit_point *p, uint32_t replicates);
/* The same relative to @to, replicate by replicate. */
struct stats_estimate overcommit_relative(const struct overcommit_point *p,
					  const struct overcommit_point *to, uint32_t replicates);

/* Runs @n points, all replicates of the first, then of the next; those of a number have the same
 * random numbers. r is allocated; free with overcommit_points_free() in any case. */
int overcommit_points_run(struct overcommit_point *p, size_t n, uint32_t replicates,
			  unsigned workers);
void overcommit_points_free(struct overcommit_point *p, size_t n);

/* What was asked for. 0 or KVMSIM_ENOMEM. */
int overcommit_report(const struct overcommit_args *a, const struct overcommit_point *p, size_t n);

#endif
