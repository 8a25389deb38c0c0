/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RUN_H
#define KVMSIM_ANALYSIS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/counts.h"
#include "model/guest/vm.h"
#include "model/sim/error.h"

/*
 * One run of the model: a trace or a scenario, under one set of policies, priced by one profile.
 * Everything that replay, compare, sweep and the store know of a run is here.
 */

struct profile;

struct run_opts {
	const char *trace;    /* path of a native trace, or NULL */
	const char *scenario; /* path of a scenario INI, or NULL; one of the two */
	const char *preset;   /* NULL: 6.1-shadow */
	const char *dirty;    /* policy with parameters */
	const char *slot;     /* name of the slot to log; NULL or "all": every slot */
	const struct profile *profile;
	uint64_t interval;     /* collection interval in guest instructions; 0: one epoch */
	uint64_t phase;	       /* epochs before the first collection counts; < interval/epoch */
	uint64_t shadow_pages; /* background active shadow pages for this run */
	uint64_t seed;
	uint32_t replicate;
	bool reference; /* slow mode, no run-ahead */
	bool check;	/* keep the checkers on */
	const struct kvmsim_errsink *errors;
};

/* One GET_DIRTY_LOG of one slot. */
struct run_collection {
	uint32_t slot;
	uint64_t nr_dirty;
	cycles_t start, cycles;
};

struct run_result {
	cycles_t elapsed; /* virtual time of the vCPUs' end */
	uint64_t guest_insns;
	uint64_t counts[N_COUNTS];
	cycles_t count_cycles[N_COUNTS];
	cycles_t activity_cycles[N_ACTIVITIES];
	cycles_t wait_cycles[N_WAITS];
	uint64_t stats[N_KVM_STATS];
	uint64_t active_shadow_pages;
	struct run_collection *collections; /* owned: run_result_free() */
	size_t n_collections;
	uint64_t false_dirties, lost_stores;
	bool torn; /* the trace ended early; the result covers what was there */
};

/* Errors: those of the trace reader, of kvm_create_vm(), KVMSIM_EINVAL with a message (interval
 * not a multiple of the epoch), KVMSIM_EINTR. @out is zeroed on an error. */
int run_model(const struct run_opts *opts, struct run_result *out);
void run_result_free(struct run_result *r);

/* Set by the program's signal handler; run_model() looks at it between collections. */
extern volatile int run_interrupted;

#endif
