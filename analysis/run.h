/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RUN_H
#define KVMSIM_ANALYSIS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/counts.h"
#include "model/guest/vm.h"
#include "model/guest/watch.h"
#include "model/policy/policy.h"
#include "model/sim/error.h"

/*
 * One run of the model: a trace or a scenario, under one set of policies, priced by one profile.
 * Everything that replay, compare and the store know of a run is here.
 */

struct profile;
struct run_export_opts;
struct contention;

/* What the host has of the slots' memory before the guest comes. */
enum run_host_memory {
	RUN_HOST_DEFAULT,  /* as RUN_HOST_PRESENT */
	RUN_HOST_PRESENT,  /* all of it, writable */
	RUN_HOST_SHARED,   /* nothing; the first access makes a page present and writable */
	RUN_HOST_ANONYMOUS /* nothing; reads find the zero page, the first store copies it */
};

struct run_opts {
	const char *trace;	 /* path of a native trace, or NULL */
	const char *scenario;	 /* path of a scenario INI, or NULL; one of the two */
	const char *preset;	 /* NULL: 6.1-shadow */
	const char *personality; /* of the CPU, "tcg" (NULL), "amd", "intel", ... */
	const char *dirty;	 /* policy with parameters */
	uint64_t invalidations;	 /* of MMU notifiers, that the VM has had before */
	const char *spte;	 /* the same; NULL: the preset's */
	const char *mmulock;	 /* policy; NULL: the preset's */
	const char *slot;	 /* name of the slot to log; NULL or "all": every slot */
	const struct profile *profile;
	uint64_t interval;     /* collection interval in guest instructions; 0: one epoch */
	uint64_t phase;	       /* epochs before the first collection counts; < interval/epoch */
	uint64_t shadow_pages; /* background active shadow pages for this run */
	uint64_t seed;
	uint32_t replicate;
	bool long_mode;		/* the guest pages: 64 bits, 2M PTEs, one to one */
	bool nested;		/* nested paging over shadow pages and rmaps; see run_mmu() */
	bool running;		/* the vCPUs run on while the VMM collects; see below */
	uint64_t disable_after; /* running: logging goes off after so many collections; 0: never */
	unsigned host_level;	/* of every slot's host pages; 0: as the input says, else 4 KiB */
	enum run_host_memory host_memory;
	enum kvm_eager_page_split eager_page_split;
	bool reference; /* slow mode, no run-ahead */
	bool check; /* keep the checkers on; a policy that is broken on purpose always has them */
	const struct run_export_opts *export; /* run_export.h; NULL: nothing is exported */
	struct contention
		*contention; /* who waited for locks, from the guest's start, sorted; NULL */
	const struct kvmsim_errsink *errors;
};

/*
 * Order of a run. The VMM's task makes the slots, turns logging on and collects once; that is the
 * set-up, and nothing of it is in the result. Then the guest starts. At the end of `phase` epochs,
 * if any, and then of each `interval`, the vCPUs stop between two instructions (as with QEMU's
 * pause_all_vcpus(): each leaves KVM_RUN) until the VMM has collected every logged slot. So a
 * collection reports exactly the pages stored to since the one before, and the elapsed time holds
 * what it cost. The collection at the end of the phase is not in the result.
 *
 * With `running` the vCPUs never stop, and logging is turned on beside the running guest: at the
 * end of the phase or, without one, of the first interval; then come the collections, each when the
 * last vCPU has ended an interval, or at once when one has passed meanwhile (several are one). A
 * collection reports every store that was completed before it began and since the one before, and
 * may report those that had begun when it returned. After `disable_after` collections logging is
 * turned off.
 */

/* run_model() replays every input as a guest that does not page, or in @long_mode: under shadow
 * paging (npt=0), or under nested paging where the preset's is the TDP MMU, or with @nested. */
enum mmu_kind run_mmu(const char *preset, bool long_mode, bool nested);

/* One GET_DIRTY_LOG of one slot, and the CLEARs that a policy asks for. */
struct run_collection {
	uint64_t epoch; /* epochs that had ended */
	uint32_t slot;	/* index in run_result.slots */
	uint64_t nr_dirty;
	cycles_t start, cycles; /* since the guest's start */
};

/* One task of the simulation. */
struct run_task {
	char name[16];
	cycles_t elapsed; /* of the task, whole life */
	cycles_t ledger;  /* sum of its ledger: the same number, or the run fails */
};

struct run_slot {
	uint64_t base_gfn, npages;
	unsigned host_level; /* of the host's pages: 1: 4 KiB, 2: 2 MiB, 3: 1 GiB */
	char name[16];
	bool logged;
};
#define RUN_MAX_SLOTS 32

struct run_count {
	uint64_t n;
	cycles_t cycles;
};

struct run_lock {
	uint64_t acquired, contended;
	cycles_t wait, longest_wait, longest_hold;
};

/*
 * What the VMM's ioctls held and whom they held up (model/guest/watch.h): the operations, then what
 * else makes a guest stand still.
 */
enum run_cause {
	RUN_OP_vcpus = N_KVM_OPERATIONS, /* another vCPU, or a thread of the VMM in no ioctl */
	RUN_OP_own,			 /* what its own access needed */
	RUN_OPERATIONS
};
#define RUN_NO_WAIT UINT16_MAX

struct run_stall {
	cycles_t start;	 /* since the guest's start */
	cycles_t cycles; /* from the exit to the next entry; 0: there was none */
	cycles_t waited; /* of that, for locks and IPIs */
	uint32_t vcpu;
	unsigned exit;	/* reason, EXIT_* */
	unsigned cause; /* index of run_result.operations */
	uint16_t wait;	/* WAIT_*, the longest; RUN_NO_WAIT: none, @by interrupted it by an IPI */
	uint16_t activity; /* what @by was doing */
	char by[16];	   /* task; "" for none */
};

struct run_operation {
	uint64_t calls;
	cycles_t total, longest;    /* of the calls */
	cycles_t hold, hold_shared; /* of mmu_lock, the longest in a call, exclusive and shared */
	/* Stalls of vCPUs whose longest wait was for this, or that it interrupted: how many; their
	 * waits, or all of it where there was none; the longest. */
	uint64_t stalls;
	cycles_t stalled;
	struct run_stall longest_stall;
};

struct run_result {
	cycles_t setup;	  /* before the guest's start */
	cycles_t elapsed; /* from the guest's start to the end of its last vCPU */
	uint64_t guest_insns, epochs;
	uint64_t epoch_len, interval; /* guest instructions */
	char preset[32];
	uint32_t n_vcpus, n_slots;
	struct run_slot slots[RUN_MAX_SLOTS];
	uint64_t input_checksum; /* FNV-1a of the trace's or the scenario's bytes */
	/* Of all tasks, from the guest's start. */
	struct run_count by_activity[N_ACTIVITIES][N_COUNTS];
	uint64_t counts[N_COUNTS]; /* over all activities */
	cycles_t count_cycles[N_COUNTS];
	cycles_t activity_cycles[N_ACTIVITIES];
	cycles_t wait_cycles[N_WAITS];
	cycles_t ledger_cycles; /* the sum of the three */
	uint64_t stats[N_KVM_STATS];
	struct run_lock mmu_lock, mmu_lock_read;	 /* exclusive; for reading */
	struct run_operation operations[RUN_OPERATIONS]; /* from the guest's start */
	struct run_stall longest_stall;
	uint64_t active_shadow_pages;
	struct run_collection *collections; /* owned: run_result_free() */
	size_t n_collections;
	struct run_task *tasks; /* owned */
	size_t n_tasks;
	uint64_t false_dirties, lost_stores;
	bool checked; /* the checkers were on */
	bool torn;    /* the trace ended early; the result covers what was there */
};

/* Errors: those of the trace reader, the scenario and kvm_create_vm() (KVMSIM_EUNSUPPORTED: a pair
 * that cannot work); KVMSIM_EINVAL with a message (interval not a multiple of the epoch, no such
 * slot); KVMSIM_EPARSE with the reason (what was recorded cannot answer: no stores, no op, no
 * collection in it; epochs' numbers jump; guest-virtual addresses; no instruction clock);
 * KVMSIM_ECHECK (the checkers); KVMSIM_EINTR. @out is zeroed on an error. */
int run_model(const struct run_opts *opts, struct run_result *out);
void run_result_free(struct run_result *r);

/* Set by the program's signal handler; run_model() looks at it between collections. */
extern volatile int run_interrupted;

#endif
