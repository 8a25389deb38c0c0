/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_PHASE_H
#define KVMSIM_KERNEL_PHASE_H

#include <stdbool.h>

#include "tests/kernel/record.h"
#include "tests/kernel/stats.h"
#include "tests/kernel/work.h"

/* A recorder at work, and the rows of its phases. */

#define PHASES_MAX   1024
#define SAMPLES_MAX  256
#define BITMAP_WORDS (GUEST_MAX_SLOT_PAGES / 64)

/* What tells one phase's rows from another's, and what was measured under that key. */
struct phase_key {
	char text[96]; /* pattern,nr_dirty,round,phase */
	unsigned occurrences;
	uint64_t samples[SAMPLES_MAX];
	unsigned n_samples;
};

struct recorder {
	struct record_opts opts;
	bool tracing;
	bool text; /* not counted but printed */
	struct guest guest;
	bool has_guest;
	struct stats stats;
	uint32_t pages[GUEST_MAX_SLOT_PAGES];
	uint64_t n_pages;
	uint64_t bitmap[BITMAP_WORDS]; /* of the last GET_DIRTY_LOG */
	/* columns */
	enum pattern pattern;
	int64_t nr_dirty; /* negative: empty */
	int round;	  /* negative: empty */
	bool pooled;	  /* the rounds repeat one steady state: their instructions are pooled */
	/* the phase under way */
	struct phase_key *key;
	uint64_t stats_before[STATS_MAX];
	struct work work_before;
	bool work_named; /* in the rows of this run */
	struct phase_key keys[PHASES_MAX];
	size_t n_keys;
};

/* Around the phases of a program whose events are printed. */
void phase_text_begin(const struct recorder *r);
void phase_text_end(const struct recorder *r);
/* From begin to end everything counts; @ticks is how long that took. */
void phase_begin(struct recorder *r, const char *phase);
void phase_end(struct recorder *r, uint64_t ticks);
/* A result of the phase that ended last. */
void phase_result(const struct recorder *r, const char *name, uint64_t value);
/* The instructions of every phase so far: least, median and most. */
void phase_insns(struct recorder *r);

#endif
