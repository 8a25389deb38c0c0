/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_KVM_PLAYER_H
#define KVMSIM_WORKLOADS_KVM_PLAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/guest/op.h"
#include "model/sim/error.h"

/*
 * Plays streams of ops on the real KVM of the running kernel and tells what it said: the pages that
 * its dirty log reported, what each ioctl took, what its statistics counted.
 */
#define KVM_PLAYER_MAX_SLOTS 32
#define KVM_PLAYER_MAX_VCPUS 64

/* How dirty pages are asked for: the kernel's ways (Documentation/virt/kvm/api.rst). */
enum kvm_protocol {
	KVM_PROTOCOL_GET,	     /* KVM_GET_DIRTY_LOG, which clears and protects */
	KVM_PROTOCOL_MANUAL,	     /* KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2: GET, then CLEAR */
	KVM_PROTOCOL_MANUAL_ALL_SET, /* the same with KVM_DIRTY_LOG_INITIALLY_SET */
	KVM_PROTOCOL_RING,	     /* KVM_CAP_DIRTY_LOG_RING, KVM_RESET_DIRTY_RINGS */
	N_KVM_PROTOCOLS
};
const char *kvm_protocol_name(enum kvm_protocol p); /* get, manual, manual-all-set, ring */

struct kvm_player_slot {
	uint64_t base_gfn, npages; /* below 4 GiB */
	bool logged;
};

/* What KVM counts, by name: its statistics, or the tracepoints that fired. */
struct kvm_tally {
	size_t n;
	const char *const *name; /* valid until the player ends */
	const uint64_t *value;
};

/* One collection of one logged slot. Bitmaps have (npages + 63) / 64 words. */
struct kvm_slot_report {
	uint32_t slot;
	const uint64_t *reported;
	uint64_t nr_dirty;
	/* Against what the guest did. A page must be reported when a store to it began after the
	 * collection before had ended and was done before this one began; it may be when an access
	 * to it was begun before this one ended and not done before the one before began. */
	uint64_t must;	  /* pages that must be reported */
	uint64_t missing; /* of them, those that were not */
	uint64_t maybe;	  /* reported pages that may be and need not: read only, where vCPUs stop */
	uint64_t beside;  /* reported pages without an access that may be it */
	uint64_t get_cycles;
	uint64_t clear_cycles, clear_longest, clear_calls; /* of the manual protocols */
};

struct kvm_round {
	uint64_t number;     /* from 1; 0: the collection that ends the set-up */
	uint64_t run_cycles; /* of the vCPU that ran longest; 0 while guests run on */
	uint64_t accesses;   /* that were done, of all vCPUs */
	uint32_t n_slots;
	const struct kvm_slot_report *slots; /* those that are logged */
	/* Of the ring, all slots together, those collected while the guest ran included. */
	uint64_t ring_entries, ring_full, ring_resets, ring_collect_cycles, ring_reset_cycles;
	/* Of the guest's run and of the collection; of what runs beside each other all is in
	 * `collect`. */
	struct kvm_tally stats_run, stats_collect, events_run, events_collect;
};

struct kvm_player_opts {
	const struct kvm_player_slot *slots;
	uint32_t n_slots, n_vcpus;
	const struct op_source *sources; /* one per vCPU */
	enum kvm_protocol protocol;
	uint32_t ring_entries; /* per vCPU, a power of two; of the ring */
	uint64_t clear_chunk;  /* pages per KVM_CLEAR_DIRTY_LOG, a multiple of 64; 0: all */
	bool thp;	       /* the slots' memory asks for huge pages, else for none */
	bool guest_2m;	       /* the guest maps the slots with 2 MiB pages, else with 4 KiB */
	bool absent;	       /* the host has touched no page of the slots before the guest does */
	bool warm;	       /* the guest stores to every page before logging is switched on */
	bool stats;	       /* read the statistics around each part of a round */
	const char *events;    /* tracepoints, "GROUP:NAME GROUP:*"; NULL: none */
	/* 0: the vCPUs stop at each epoch, and a round is an epoch. Else they run through, and the
	 * log is collected so many microseconds after the collection before. */
	uint32_t every_us;
	uint32_t timeout_s;		 /* of a round; 0: 60 */
	const volatile int *interrupted; /* non-zero: stop, KVMSIM_EINTR; may be NULL */
	const struct kvmsim_errsink *errors;
	/* Told what is played, in each vCPU's order, and what came of it. May be NULL; a negative
	 * error ends the player. */
	int (*played)(void *ctx, uint32_t vcpu, const struct guest_op *ops, size_t n);
	int (*round)(void *ctx, const struct kvm_round *r);
	void *ctx;
};

struct kvm_player_result {
	uint64_t rounds;
	uint64_t accesses; /* that the guest did */
	uint64_t skipped;  /* ops that are no access to memory of a slot: not played */
	uint64_t enable_cycles[KVM_PLAYER_MAX_SLOTS]; /* of switching logging on */
};

/*
 * Makes a VM, switches logging on, collects once, and plays the streams. With vCPUs that stop, one
 * vCPU runs and collects in one thread; more have a thread each.
 *
 * Needs SIGALRM, with which it takes a guest out of KVM_RUN: its action is as before at the end.
 * Nothing is left behind on an error, an interrupt or a round that takes too long. Errors, each
 * with a message: KVMSIM_EUNSUPPORTED (no /dev/kvm, a protocol or tracepoint that it does not
 * have), KVMSIM_EINVAL (options), KVMSIM_EIO (an ioctl failed, a round took too long),
 * KVMSIM_EPARSE (a stream without epochs), KVMSIM_EINTR, KVMSIM_ENOMEM, and those of the streams
 * and the callbacks.
 */
int kvm_play(const struct kvm_player_opts *opts, struct kvm_player_result *out);

/* What the running kernel's KVM offers. */
struct kvm_offer {
	int api;	       /* KVM_GET_API_VERSION */
	bool manual, all_set;  /* KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2 and its second flag */
	uint32_t ring_entries; /* most per vCPU; 0: no ring */
	bool stats;	       /* KVM_GET_STATS_FD */
	bool runs;	       /* a guest of the player's kind ran */
	uint64_t ioctl_cycles; /* of the shortest KVM_GET_API_VERSION of 101 */
	uint64_t tsc_khz;      /* of a vCPU; 0: not told */
};
/* Asks it, and runs an empty guest. Errors: KVMSIM_EUNSUPPORTED (no /dev/kvm), KVMSIM_EIO,
 * KVMSIM_ENOMEM. */
int kvm_player_offer(const struct kvmsim_errsink *errors, struct kvm_offer *out);

#endif
