/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_SCHED_UTIL_H
#define KVMSIM_TESTS_SCHED_UTIL_H

#include "model/counts.h"
#include "model/host/sched.h"

/*
 * A host for tests of its scheduler: units are ns, an instruction takes one, an interrupt between
 * CPUs 1000, a context switch and a wake-up nothing unless the profile's text says more. It aborts
 * when it cannot be set up.
 */
#define US	1000ull
#define MS	(1000 * US)
#define IPI	1000ull
#define FOREVER (1ull << 60)

struct host {
	struct profile *profile;
	struct sim *sim;
	struct sched *sched;
};

/* Prices (lines of a [price] section) beside the instruction's; may be "". */
void host_open(struct host *h, const struct sched_opts *opts, const char *prices, bool reference);
void host_close(struct host *h);

struct worker {
	struct host *host;
	struct sched_thread *th;
	struct task *task;
	uint64_t work;		     /* instructions to do; FOREVER */
	uint64_t burst;		     /* of which one sleep apart; 0: all */
	cycles_t pause;		     /* of a sleep */
	uint64_t done;		     /* instructions so far */
	cycles_t latest;	     /* wake-up's longest latency */
	int (*fn)(struct worker *w); /* instead of all this */
};
/* It starts at @start. */
void worker_add(struct host *h, struct worker *w, const struct sched_thread_opts *opts,
		cycles_t start);
/* Works for @n instructions, giving way as it should. 0 or negative. */
int worker_work(struct worker *w, uint64_t n);
/* Runs the host until @until, exactly: an observer stops it. */
void host_run(struct host *h, cycles_t until);
/* Of the time since @from, when the observer stopped it, permille. */
unsigned worker_share(const struct worker *w, cycles_t from);

#endif
