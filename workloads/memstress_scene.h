/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_MEMSTRESS_SCENE_H
#define KVMSIM_WORKLOADS_MEMSTRESS_SCENE_H

#include "model/guest/vcpu.h"
#include "model/guest/watch.h"
#include "model/host/machine.h"
#include "workloads/memstress.h"

/* What memstress's two files share: the host's side (memstress.c) and the guest's. */
#define MEMSTRESS_GVA  0xc0000000ull
#define MEMSTRESS_SLOT 1
#define MEMSTRESS_CR3  0x100000ull
#define MEMSTRESS_QUIT INT32_MIN

struct memstress;

struct memstress_vcpu {
	struct memstress *m;
	struct kvm_vcpu *vcpu;
	struct task *task;
	uint32_t id, random; /* state of its generator */
	uint64_t gva, pages;
};

struct memstress {
	const struct memstress_opts *o;
	memstress_row_fn row;
	void *ctx;
	uint64_t pages, slot_pages, gpa, low_pages;
	struct machine *machine;
	struct sim *sim;
	struct kvm *kvm;
	struct kvm_watch watch;
	struct task *main;
	struct memstress_vcpu *vcpus;
	uint64_t *bitmap;
	/* What the threads share: the iteration that is asked for, 0 being the populating one, -1
	 * the one that goes on while logging is switched off; and how many threads have done it. */
	int32_t iteration;
	uint32_t done;
	/* the phase that is going on */
	cycles_t began;
	struct memstress_sums before;
};

/* Pages of slot 0: code and tables. */
uint64_t memstress_low_pages(uint64_t pages);
/* Writes the guest's page tables: the code page, and all of the test memory. */
void memstress_tables(struct memstress *m);
/* A vCPU's thread: @arg is its struct memstress_vcpu. */
int memstress_vcpu_thread(struct task *t, void *arg);

#endif
