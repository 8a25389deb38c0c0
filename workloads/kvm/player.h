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

struct kvm_player_opts {
	const struct kvm_player_slot *slots;
	uint32_t n_slots, n_vcpus;
	enum kvm_protocol protocol;
	uint32_t ring_entries; /* per vCPU, a power of two; of the ring */
	bool thp;	       /* the slots' memory asks for huge pages, else for none */
	bool guest_2m;	       /* the guest maps the slots with 2 MiB pages, else with 4 KiB */
	bool absent;	       /* the host has touched no page of the slots before the guest does */
	const struct kvmsim_errsink *errors;
};

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
