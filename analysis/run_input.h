/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RUN_INPUT_H
#define KVMSIM_ANALYSIS_RUN_INPUT_H

#include "analysis/run.h"
#include "model/guest/op.h"

/* What a run replays, whichever way it was given: a trace's or a scenario's streams and slots. */
struct trace_reader;
struct scenario;

#define RUN_LONG_MODE_GFNS (1ull << 27) /* what the page tables of run_opts.long_mode reach */

struct run_input {
	const char *name; /* path, for messages */
	const char *preset;
	uint32_t n_vcpus, n_slots;
	struct run_slot slots[RUN_MAX_SLOTS]; /* `logged` as the options say */
	uint64_t epoch_len;
	uint64_t checksum;
	uint64_t n_ops;		   /* of a trace, all vCPUs */
	struct op_source *sources; /* one per vCPU */
	struct trace_reader *trace;
	struct scenario *scenario;
};

/* Errors as run_model()'s. On an error nothing is left open. */
int run_input_open(const struct run_opts *opts, struct run_input *in);
/* A generated scenario's streams have no end from now on; other streams keep theirs. */
void run_input_endless(struct run_input *in);
/* Whether the trace ended early. */
bool run_input_torn(const struct run_input *in);
void run_input_close(struct run_input *in);

#endif
