/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_EVIDENCE_RUN_H
#define KVMSIM_ANALYSIS_EVIDENCE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/counts.h"
#include "model/sim/error.h"

/*
 * What the model says of one GET_DIRTY_LOG row: a VM with one slot, whose guest has written every
 * page once, with large mappings once more after logging was switched on; then rounds in which it
 * writes the row's number of pages, leaves to userspace, and the log is got. One thread does it
 * all, as the VMMs of the evidence do.
 */
struct profile;

struct evidence_scene {
	uint64_t slot_pages, nr_dirty;
	uint64_t run;	     /* pages are written in aligned runs of this many; 0: one run */
	bool huge;	     /* guest PTEs and host pages of 2 MiB, not of 4 KiB */
	const char *preset;  /* kernel */
	const char *dirty;   /* policy */
	uint64_t background; /* further active shadow pages */
	uint64_t harvests;   /* rounds that count */
	const struct profile *profile;
	const struct kvmsim_errsink *errors;
};

struct evidence_prediction {
	double count[N_COUNTS]; /* per GET_DIRTY_LOG, mean over the rounds */
	double cycles, waited;	/* the same, in the profile's unit; waited is part of cycles */
	uint64_t shadow_pages;	/* active at the end */
};

/* Errors: those of the model; KVMSIM_EINVAL (more dirty pages than the slot has, no round),
 * KVMSIM_ECHECK (a harvest did not report the pages written), KVMSIM_EINTR when run_interrupted was
 * set (looked at before each round). */
int evidence_run(const struct evidence_scene *scene, struct evidence_prediction *out);

#endif
