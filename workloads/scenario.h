/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_SCENARIO_H
#define KVMSIM_WORKLOADS_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/guest/op.h"
#include "model/sim/error.h"

/*
 * A scenario is a guest that is described rather than recorded: a text file (INI) names a workload
 * and its parameters, and the workload generates one stream of ops per vCPU, round by round. A
 * round is an epoch of `interval` guest instructions; the last one ends with an OP_MARK 0.
 * Addresses are guest-physical. Every draw comes from a stream named after the vCPU, so that two
 * policies see the same guest.
 *
 *	[scenario]
 *	workload = framebuffer | migration | pagelist | tcp_rr | writer
 *	preset   = 2.6.36              ; optional: the run's preset unless --kernel is given
 *	vcpus    = 1
 *	slots    = ram:0:261888 vram:0xfd000:4096     ; name:base gfn:pages[:4k|2m|1g]
 *	target   = vram                ; slot that the workload writes; the first when not given
 *	log      = vram                ; slot to log unless --slot is given; all, the default
 *	rounds   = 20
 *	interval = 30000000
 *	PARAMETER = ...                ; the workload's own, see `kvmsim list`
 *
 * pagelist takes its rounds from `round = 1 5 7-9` lines in a section [rounds] (a line that begins
 * with a blank continues the round above it), or from a file beside the INI, named by `file`, with
 * one round per line. An unknown key, a repeated key and a value out of range are errors with file
 * and line.
 */

#define SCENARIO_MAX_SLOTS  32
#define SCENARIO_MAX_PARAMS 8

struct scenario_slot {
	uint64_t base_gfn, npages;
	unsigned host_level; /* size of the host's pages: 1: 4 KiB, 2: 2 MiB, 3: 1 GiB */
	char name[16];
};

struct workload_param {
	const char *name;
	uint64_t def, min, max;
	const char *help;
};

struct scenario;
struct rng;
struct round_ops;

/* One workload: a file, a const struct, a line in the table in scenario.c. */
struct workload {
	const char *name;
	const char *summary;
	const struct workload_param *params; /* ended by a NULL name */
	const char *const *words; /* of the first one's values from 0 on, ended by NULL; NULL: it
				   * is a number */
	bool explicit_rounds;	  /* takes its pages from the scenario's rounds */
	/* Looks at the parameters together. 0 or KVMSIM_EINVAL with a message that begins with
	 * the scenario's name. May be NULL. */
	int (*check)(const struct scenario *s, const struct kvmsim_errsink *errors);
	/* Appends the accesses of one vCPU in one round. @rng is that vCPU's stream, @common one
	 * that restarts the same for every vCPU and round. */
	void (*round)(const struct scenario *s, uint32_t vcpu, uint64_t round, struct rng *rng,
		      struct rng *common, struct round_ops *out);
};
size_t workload_count(void);
const struct workload *workload_at(size_t i);

struct page_run {
	uint64_t first, last; /* offsets in the target slot, inclusive */
	unsigned line;	      /* where it stands */
	bool beside;	      /* in the rounds' file, not in the scenario's */
};

struct scenario {
	char *name;	   /* of the file, for messages */
	char *rounds_name; /* of the rounds' file beside it; NULL: none */
	const struct workload *workload;
	char preset[32]; /* empty: not given */
	uint32_t n_vcpus, n_slots, target;
	int32_t log; /* index of a slot, or -1: all */
	uint64_t n_rounds, interval;
	uint64_t param[SCENARIO_MAX_PARAMS]; /* in the order of the workload's declaration */
	struct scenario_slot slots[SCENARIO_MAX_SLOTS];
	struct page_run *runs; /* explicit rounds: run_end[r - 1] .. run_end[r] - 1 are round r's */
	size_t *run_end;
	uint64_t checksum; /* FNV-1a of the text, and of the rounds' file after it */
};

/* Reads and checks @path. Errors: KVMSIM_EIO, KVMSIM_EPARSE, KVMSIM_EINVAL, KVMSIM_ENOENT (no such
 * workload), KVMSIM_ENOMEM. */
int scenario_open(const char *path, const struct kvmsim_errsink *errors, struct scenario **out);
/* The same from a text of @len bytes; @path is for messages and to find a file beside it. */
int scenario_parse(const char *text, size_t len, const char *path,
		   const struct kvmsim_errsink *errors, struct scenario **out);
void scenario_free(struct scenario *s);

/* One vCPU's ops. Streams can be rewound. Free with scenario_source_free(), before the scenario.
 * Errors: KVMSIM_EINVAL (no such vCPU), KVMSIM_ENOMEM. */
int scenario_source(const struct scenario *s, uint32_t vcpu, uint64_t seed, uint32_t replicate,
		    struct op_source *out);
void scenario_source_free(struct op_source *src);

/* ---- for the workloads ---- */

/* Refuses rounds of more than SCENARIO_MAX_ACCESSES, which are made in memory: 0, or KVMSIM_EINVAL
 * with a message. */
#define SCENARIO_MAX_ACCESSES (1ull << 24)
int scenario_check_round(const struct scenario *s, uint64_t accesses,
			 const struct kvmsim_errsink *errors);

/* Appends one access of @len bytes at byte @offset of the target slot. */
void round_access(struct round_ops *out, enum guest_op_kind kind, uint64_t offset, uint16_t len);

/* Appends one of a device: OP_MMIO_READ and OP_MMIO_WRITE at gpa @at, OP_PIO of port @at. */
void round_device(struct round_ops *out, enum guest_op_kind kind, uint64_t at, uint16_t len);
/* Appends a wait of @insns guest instructions' time, of the round's interval. */
void round_wait(struct round_ops *out, uint32_t insns);

extern const struct workload workload_framebuffer, workload_migration, workload_pagelist,
	workload_tcp_rr, workload_writer;

#endif
