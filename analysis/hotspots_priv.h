/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_HOTSPOTS_PRIV_H
#define KVMSIM_ANALYSIS_HOTSPOTS_PRIV_H

#include "analysis/hotspots.h"

/* Between the files hotspots*.c. */

struct hot_fault {
	const struct host_event *e;
	int64_t vcpu; /* -1: not known */
	uint64_t gva, gfn, rip, code;
	bool write, fetch, read;
};

/* What an event was about: a fault of the guest's, or an spte that changed. */
void hot_fault_of(const struct host_event *e, const struct host_thread *th, struct hot_fault *f);
bool hot_changes_spte(const struct host_event *e, uint64_t *gfn, unsigned *level);

/* The table of pages; hands faults on to what follows. */
struct loops;
struct gaps;
struct pages;
struct pages *pages_create(const struct hot_opts *opts, struct hotspots *out,
			   const struct host_threads *threads, struct loops *loops,
			   struct gaps *gaps);
void pages_free(struct pages *p);
/* Any event, which the threads have been told. 0, KVMSIM_ENOMEM. */
int pages_event(struct pages *p, const struct host_event *e);
void pages_end(struct pages *p);

/* Who made others stand still. */
struct culprits;
struct culprits *culprits_create(struct hotspots *out);
void culprits_free(struct culprits *c);
int culprits_stall(struct culprits *c, const struct host_stall *s);
void culprits_end(struct culprits *c);

struct loops *loops_create(struct top *found, uint64_t *n_found, uint64_t *n_elsewhere);
void loops_free(struct loops *l);
int loops_fault(struct loops *l, const struct host_threads *t, const struct hot_fault *f);
void loops_change(struct loops *l, uint64_t gfn, unsigned level);
/* The end: what has not been told yet. */
void loops_end(struct loops *l);

struct gaps *gaps_create(const struct hot_opts *opts, struct top *found);
void gaps_free(struct gaps *g);
int gaps_fault(struct gaps *g, const struct host_threads *t, const struct hot_fault *f);
void gaps_end(struct gaps *g);

#endif
