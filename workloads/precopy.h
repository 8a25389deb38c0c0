/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_PRECOPY_H
#define KVMSIM_WORKLOADS_PRECOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/counts.h"
#include "model/guest/op.h"
#include "model/guest/vm.h"
#include "model/sim/sim.h"

/*
 * Live migration as the VMM sees it: its migration thread logs dirty pages, sends the guest's
 * memory over a link while the vCPUs run on, and collects the log again and again, until what is
 * left fits the downtime; then the vCPUs stop and the rest goes. The rules are QEMU's
 * (migration/migration.c, migration/ram.c, system/cpu-throttle.c, system/dirtylimit.c, 7.1 to 9.1):
 *
 * - All pages are to be sent at first. A collection adds what was stored to since.
 * - The log is collected when what is left would go within the downtime at the bandwidth that was
 *   measured, and with an interval also when that has passed. If it still would, this is the end.
 * - Where GET does not clear, a chunk is cleared just before the first of its pages is sent.
 * - More than a second after the last such look, a collection compares the bytes found dirty with
 *   the bytes sent: above the threshold for the second time, the guest is throttled. Auto-converge
 *   has each vCPU sleep a share of its time, between runs of 10 ms. A dirty limit has it sleep when
 *   its ring is full, so long that it keeps to its rate, which is looked at once a second.
 *
 * A vCPU's stream begins anew at its end; a source that cannot leaves it computing. Signals reach a
 * vCPU's thread within 50 us of its own instructions.
 */
#define PRECOPY_PAGE_BYTES 4104 /* of a page on the wire: with flags and address */
#define PRECOPY_ZERO_BYTES 9	/* of one that is all zero */

struct profile;

struct precopy_slot {
	uint64_t base_gfn, npages;
	unsigned host_level; /* as in kvm_memory_region */
	bool logged;	     /* is migrated; the others are there, and nothing more */
};

enum precopy_throttle { PRECOPY_NO_THROTTLE, PRECOPY_AUTO_CONVERGE, PRECOPY_DIRTY_LIMIT };

struct precopy_opts {
	const struct precopy_slot *slots;
	uint32_t n_slots, n_vcpus;
	struct op_source *sources; /* one per vCPU */
	enum kvm_paging paging;
	const char *preset, *personality, *dirty;
	enum kvm_eager_page_split eager_page_split;
	uint64_t clear_chunk;	       /* pages per CLEAR; 0: the dirty policy has no CLEAR */
	const struct profile *profile; /* with a clock rate and a price of an instruction */
	uint64_t bandwidth;	       /* bytes per second, 1 or more */
	uint64_t downtime_us;	       /* goal */
	uint64_t page_ns;	       /* the thread's work per page; 0: the profile's price */
	uint64_t interval_us;	       /* between collections at most; 0: as pre-copy needs them */
	uint64_t warmup_us;	       /* the guest runs before the migration begins */
	unsigned zero_percent;	       /* of the pages are zero when they are sent first */
	uint64_t max_collections;      /* gives up after so many, 1 or more */
	enum precopy_throttle throttle;
	/* Auto-converge: percent at first, more at each step, at most (1 to 99). */
	unsigned throttle_initial, throttle_increment, throttle_max;
	unsigned trigger_percent; /* throttle-trigger-threshold */
	uint64_t dirty_limit;	  /* bytes per second of each vCPU; its policy has rings */
	uint64_t seed;
	bool check;
	const volatile int *interrupted; /* stops it soon when not 0; may be NULL */
	const struct kvmsim_errsink *errors;
};

/* Sums over the vCPUs, of the time of their threads. */
struct precopy_guest {
	cycles_t elapsed;
	cycles_t insns;	    /* instructions of the guest */
	cycles_t throttled; /* asleep by the VMM's order */
	cycles_t stopped;   /* the VM is stopped */
	cycles_t waited;    /* for locks, IPIs and memslots */
			    /* What is left are faults and exits. */
};

/* From the end of a collection to the end of the next one; the last one with the vCPUs stopped. */
struct precopy_round {
	uint64_t collections; /* so far: dirty-sync-count */
	bool stopped;
	uint64_t pending;	    /* pages to be sent at its start */
	uint64_t pages, zero_pages; /* sent */
	uint64_t bytes;
	uint64_t dirtied; /* pages that the collection at its end added; 0 in the last one */
	cycles_t start;	  /* since the migration's */
	cycles_t cycles, collecting;
	unsigned throttle; /* percent */
	cycles_t sleep;	   /* dirty limit: longest per full ring, of any vCPU */
	struct precopy_guest guest;
};

/* Of a vCPU in KVM_RUN (model/guest/watch.h), but for what a dirty limit has it sleep. */
struct precopy_stall {
	cycles_t start, cycles;
	uint32_t vcpu;
	unsigned operation; /* KVM_OP_*: of whom it waited for longest */
	char by[16];	    /* that task; "" when it waited for none */
};

struct precopy_result {
	bool converged;
	cycles_t setup;	   /* logging turned on, and the first collection */
	cycles_t expected; /* downtime, when it was decided to stop: what was left, at the bandwidth
			    */
	cycles_t total, downtime;
	uint64_t left;	    /* pages not sent; 0 when converged */
	uint64_t bandwidth; /* bytes per second while sending, measured; 0: nothing was sent */
	struct precopy_guest guest;
	struct precopy_stall longest_stall;
	uint64_t counts[N_COUNTS];    /* that all tasks charged since the migration's start */
	struct precopy_round *rounds; /* owned: precopy_result_free() */
	size_t n_rounds;
};

/* @out is zeroed on an error. Errors: those of the sources and of kvm_create_vm(); KVMSIM_EINVAL
 * with a message (options that do not go together), KVMSIM_EINTR, KVMSIM_ENOMEM, KVMSIM_ECHECK. */
int precopy_run(const struct precopy_opts *opts, struct precopy_result *out);
void precopy_result_free(struct precopy_result *r);

#endif
