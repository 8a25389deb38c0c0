/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RECORD_KVM_H
#define KVMSIM_ANALYSIS_RECORD_KVM_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "analysis/run.h"
#include "workloads/kvm/player.h"

/* What `record kvm` keeps of what it played, and how it prints it. */

enum record_format { RECORD_TABLE, RECORD_CSV, RECORD_JSON };

/* A round of one logged slot; of the ring, of all together. */
#define RECORD_ALL_SLOTS UINT32_MAX /* a ring's entries are of every slot */
struct record_sample {
	uint32_t slot;
	uint64_t nr_dirty;
	double get, clear, clear_longest, collect, reset, per_access; /* TSC cycles */
	uint64_t clear_calls;
};

struct record_kvm {
	/* Given: */
	const struct kvm_player_opts *player;
	const struct run_slot *slots;
	enum record_format format;
	const char *series, *source; /* words for the CSV */
	/* Collected: */
	struct record_sample *samples;
	size_t n, room;
	json_t *rounds; /* of RECORD_JSON */
	uint64_t n_rounds, must, missing, maybe, beside, ring_full;
};

/* Takes one round. 0 or KVMSIM_ENOMEM. */
int record_kvm_round(struct record_kvm *k, const struct kvm_round *r);
/* Prints all on @to. 0 or KVMSIM_ENOMEM. */
int record_kvm_print(struct record_kvm *k, const struct kvm_player_result *result, FILE *to);
void record_kvm_free(struct record_kvm *k);

/* Of the parts: all as one JSON object; the machine and the options in words, with the slot's size
 * when @s is not NULL (malloc'd; NULL: no memory). */
int record_kvm_json(struct record_kvm *k, const struct kvm_player_result *result, FILE *to);
char *record_kvm_setup(const struct record_kvm *k, const struct record_sample *s);

/* Of this machine: kvm_pvm, kvm_amd, kvm_intel, or kvm when none of them is there. */
const char *record_kvm_module(void);

#endif
