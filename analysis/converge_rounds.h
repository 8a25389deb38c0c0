/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_CONVERGE_ROUNDS_H
#define KVMSIM_ANALYSIS_CONVERGE_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tables; /* traces/tables/tables.h */

/*
 * Whether a migration converges, from what a VMM wrote down about it: the rounds of a pre-copy, or
 * QEMU's `info migrate`. Amounts are MiB, times seconds.
 *
 * The rounds: what round i + 1 sends was dirtied while round i was sent, so a round's dirty rate is
 * dirtied MiB of round i + 1 / transfer time of round i. Where long rounds dirty more than short
 * ones the guest is taken to dirty at that rate (`rate`, all of the log's dirtied MiB by all of its
 * transfer time), and at most its memory in a round. Where the amount does not follow the time it
 * is the guest's working set (`most`), which any round dirties again, as far as the log shows; the
 * rate is only known to be at least the highest one.
 *
 * Then rounds are sent one after the other, at a constant bandwidth, until what is left fits the
 * downtime. Neither the device state nor the collecting of the log is in the time.
 */
enum rounds_format { ROUNDS_TEXT, ROUNDS_JSON, ROUNDS_CSV };

struct rounds_fit {
	double memory; /* what the first round sends; 0: not known */
	double left;   /* now, or where the log ends */
	double bandwidth;
	double rate, most;
	bool has_rate;
	bool saturated;			 /* `most` whatever the time; `rate` is a least */
	double shortest, longest, least; /* rounds, and the least that one dirtied */
	size_t n;			 /* rounds whose dirtying is known */
};

struct rounds_way {
	bool converges;
	uint64_t rounds; /* sent before the guest is stopped, or as many as were tried */
	double sent_s;	 /* in which time */
	double left;	 /* then: sent while the guest stands still */
	double stop_s;
};

struct rounds_needs {
	double bandwidth;	/* that converges, whatever shorter rounds dirty */
	double least_bandwidth; /* that converges if the rate holds in shorter rounds */
	double limit;		/* of the dirty rate; 0: none does */
	unsigned throttle;	/* percent of the vCPUs' time; 0: none does, or it is not known */
	double downtime;	/* what the guest would stand still for as it is */
};

struct rounds_goal {
	double bandwidth; /* 0: the log's own */
	double downtime;
	uint64_t max_rounds;
};

struct rounds_result {
	bool migration; /* from info migrate, of `status` */
	const char *status;
	struct rounds_fit fit;
	struct rounds_goal goal;
	struct rounds_way way;
	struct rounds_needs needs; /* where it does not converge */
	bool unread;		   /* rounds behind the last one are damaged: not known for that */
	bool known;		   /* false: a rate or a bandwidth is missing */
	char **errors;		   /* impossible values, in words */
	size_t n_errors;
};

/* What @t tells: the rounds where it has any, else the last `info migrate`. KVMSIM_ENOENT
 * (neither), KVMSIM_ENOMEM. */
int rounds_judge(const struct tables *t, const struct rounds_goal *goal, struct rounds_result *r);
void rounds_result_free(struct rounds_result *r);

/* The dirty rate of round @i: false for the last. */
bool rounds_dirtied(const struct tables *t, size_t i, double *mib, double *rate);

/* Prints it; @input: the file's name. 0 or KVMSIM_ENOMEM. */
int rounds_report(const struct tables *t, const struct rounds_result *r, const char *input,
		  enum rounds_format format);

/* The file can be a log or a host's trace: it is no recorded guest, by its name or its head. */
bool rounds_log_name(const char *path);
/* The verb on a file: reads, judges, prints. An enum exit_code. */
int converge_rounds(const char *path, const struct rounds_goal *goal, enum rounds_format format,
		    bool strict);

#endif
