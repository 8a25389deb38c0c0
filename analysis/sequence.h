/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_SEQUENCE_H
#define KVMSIM_ANALYSIS_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "analysis/other_kernel.h"
#include "analysis/trace_text.h"
#include "model/sim/profile.h"

/*
 * Holds the model's sequence of events against a kernel's trace of the same matrix case: phase by
 * phase, event by event, field by field, in order. A VM of the trace is compared with the first VM
 * of the model's case that begins with the same phases (name, nr, round) and comes after the one
 * compared before: a trace may leave out VMs, and end a VM early.
 */

struct sequence_phase {
	const struct trace_phase *kernel, *model; /* NULL: the model's case has no such VM */
	size_t equal; /* events from the phase's start; all of both when it does not diverge */
	bool diverges;
};

struct sequence_result {
	const char *path;
	struct ops_program *program; /* the case; NULL: one that is built in */
	bool looked_for;	     /* among programs */
	struct trace_recording *recording;
	struct trace_phases model; /* all phases of the case */
	struct sequence_phase *phases;
	size_t n_phases;
	uint64_t equal, events;	      /* of the trace's phases */
	struct sequence_phase *first; /* the first that diverges; NULL: none */
};

struct sequence_opts {
	const char *programs; /* a case that is not built in is the op program of this folder,
			       * CASE.ops; NULL: there is none */
	const char *kernel;   /* another's release: its nearest presets; NULL: 6.1's */
	const struct kernel_names *has; /* NULL: all tracepoints; what it lacks is left out */
	const struct profile *profile;
	const struct kvmsim_errsink *errors;
};

/*
 * Errors: those of trace_recording_load() and matrix_run(); KVMSIM_ENOENT with a message (no such
 * case, or not on that MMU), KVMSIM_ENOMEM, KVMSIM_EINTR when run_interrupted was set. */
int sequence_compare(const char *path, const struct sequence_opts *o, struct sequence_result *out);
void sequence_free(struct sequence_result *r);

/* One line of what is equal or, where it first is not, that event with @context more before and
 * after it of both; then what was not compared. */
int sequence_print(const struct sequence_result *r, uint64_t context, FILE *to);
/* The same for programs. NULL: no memory. */
json_t *sequence_json(const struct sequence_result *r, uint64_t context);

#endif
