/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_MEMSTRESS_H
#define KVMSIM_WORKLOADS_MEMSTRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/counts.h"
#include "model/guest/vm.h"
#include "model/policy/policy.h"
#include "model/sim/sim.h"

/*
 * What the kernel's selftest dirty_log_perf_test does (tools/testing/selftests/kvm, 6.1), in
 * virtual time: vCPU threads that go over their memory again and again, a 4 KiB page after the
 * other, and a main thread that measures what switching logging on, each pass, getting and clearing
 * the log, and switching it off take.
 *
 * The guest is in long mode with 4K or 2M PTEs for the test memory at gva 0xc0000000, one set of
 * page tables for all vCPUs, in slot 0. The test memory is the highest that the guest's physical
 * addresses reach, in equal slots from 1 on. One pass is the populating one, in which every page is
 * written; then iterations with the write percentage. A thread that has nothing to do spins, so
 * that all CPUs are busy all the time (see model/host/machine.h).
 */
struct lock_watch;
struct profile;

struct memstress_opts {
	uint32_t vcpus;		 /* -v; 1 or more */
	uint64_t bytes;		 /* -b: per vCPU, a multiple of 4 KiB; 1 TiB of all at most */
	uint32_t write_percent;	 /* -w */
	uint32_t write_fraction; /* -f: every n'th page is written; 0: by percent */
	bool random_access;	 /* -a */
	bool overlap;		 /* -o: every vCPU goes over all of the memory */
	uint32_t slots;		 /* -x; must divide the pages */
	uint32_t iterations;	 /* -i; 1 or more */
	bool evil;		 /* -e: vCPUs run while logging is being switched off */
	uint64_t gpa;		 /* -p: of the test memory; 0: at the top */
	unsigned guest_level;	 /* of the guest's PTEs for it: 0, 1: 4 KiB; 2: 2 MiB */
	unsigned host_level;	 /* -s: of the pages behind it */
	bool early;		 /* vCPUs run as soon as their thread is there, as until
				  * November 2021: the
				  * stack of the next one's waits for the pages that they populate */
	bool populated;		 /* no host page has to be made by the populating pass */
	enum mmu_kind mmu;	 /* not MMU_SHADOW_FLAT32 */
	const char *preset, *personality, *dirty;
	const char *mmulock; /* NULL: the preset's */
	bool clears;	     /* the dirty policy leaves clearing to KVM_CLEAR_DIRTY_LOG */
	enum kvm_eager_page_split eager_page_split;
	const struct profile *profile;
	uint64_t seed;
	uint32_t cores;	 /* of the machine; 0: the profile's */
	bool no_irqchip; /* kvm_vm_opts' */
	bool check;
	const struct lock_watch *locks;	 /* told of the VM's locks; may be NULL */
	const volatile int *interrupted; /* stops it soon when not 0; may be NULL */
	const struct kvmsim_errsink *errors;
};

/* The phases that the main thread measures. */
enum memstress_phase {
	MEMSTRESS_POPULATE,
	MEMSTRESS_ENABLE,
	MEMSTRESS_DIRTY, /* these three per iteration */
	MEMSTRESS_GET,
	MEMSTRESS_CLEAR, /* none where GET clears */
	MEMSTRESS_DISABLE,
};

struct memstress_sums {
	uint64_t counts[N_COUNTS];
	cycles_t cycles[N_COUNTS], waits[N_WAITS];
};

struct memstress_row {
	enum memstress_phase phase;
	uint32_t iteration; /* from 1; 0 where there is none */
	cycles_t cycles;    /* by the main thread's clock */
	/* What all tasks charged and waited meanwhile. */
	struct memstress_sums sums;
};

/* Each row in the order of time. 0 to go on; a negative error ends the run. */
typedef int (*memstress_row_fn)(void *ctx, const struct memstress_row *row);

/* Errors: those of kvm_create_vm(); KVMSIM_EINVAL with a message (options that do not go together,
 * more than 1 TiB), KVMSIM_EINTR, KVMSIM_ENOMEM, what @row returned. */
int memstress_run(const struct memstress_opts *opts, memstress_row_fn row, void *ctx);

#endif
