/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_VM_SCENE_H
#define KVMSIM_TESTS_VM_SCENE_H

#include "model/counts.h"
#include "model/guest/vcpu.h"
#include "model/guest/vm.h"
#include "model/mmu/trace.h"
#include "model/sim/profile.h"

/*
 * A small VM for tests: the layout of the reference matrix. Slot 0 is 512 pages at 0 with code,
 * page tables and lists; slot 1 is the test pages at TEST.
 */
#define SCENE_TEST	0x10000000ull
#define SCENE_LIST	0x100000ull
#define SCENE_CODE	0x1000ull
#define SCENE_PML4	0x10000ull
#define SCENE_MAX_VCPUS 8

enum scene_pte { SCENE_FLAT, SCENE_2M, SCENE_4K };

struct scene_opts {
	enum kvm_paging paging;
	enum scene_pte pte;
	uint64_t slot_pages;
	uint32_t slot_flags;
	unsigned n_vcpus; /* 0: 1 */
	const char *preset, *dirty, *spte, *personality;
	const struct kvm_watch *watch;
	const char *params; /* lines of [param], NULL: none */
	uint64_t background_sps, seed, invalidations;
	uint32_t restarts;
	enum kvm_eager_page_split eager_page_split;
	bool check, reference;
	bool host_absent, host_anonymous; /* slot 1's memory */
	unsigned host_level;
};

struct scene {
	struct profile *profile;
	struct sim *sim;
	struct kvm *kvm;
	struct kvm_vcpu *vcpu[SCENE_MAX_VCPUS];
	struct kvm_observer observer;
	uint64_t events[N_KVM_TRACE];
	struct kvm_trace_event last[N_KVM_TRACE];
	uint64_t set_spte_ro;
	/* what all that was at the last scene_mark() */
	uint64_t base_event[N_KVM_TRACE], base_stat[N_KVM_STATS], base_count[N_COUNTS], base_ro;
	int (*body)(struct scene *s, struct task *t);
	const struct scene_opts *o;
	void *arg;
	int result;
};

/* A sim in which every count costs one cycle, and a VM in it. 0 or what kvm_create_vm() said. */
int scene_open(struct scene *s, const struct scene_opts *o);
void scene_close(struct scene *s);
/* Runs @body on a task that is the VMM's and the first vCPU's, after slots and vCPUs were made.
 * Returns what it returned, or sim_run()'s error. */
int scene_run(struct scene *s, int (*body)(struct scene *s, struct task *t));
/* The task itself, for who makes it himself; @arg is the scene, s->body is set. */
int scene_task(struct task *t, void *arg);
/* Both, and scene_close(). */
int scene(const struct scene_opts *o, int (*body)(struct scene *s, struct task *t));

/* One instruction of vCPU 0, restarted until it retires. */
int scene_read(struct scene *s, uint64_t gva);
int scene_write(struct scene *s, uint64_t gva, unsigned len, uint64_t value);
int scene_out(struct scene *s);
/* The guest's loop over pages @first to @last - 1 of the test slot, fetches and list reads
 * included, then OUT. */
int scene_loop(struct scene *s, bool write, uint64_t first, uint64_t last);
/* The reference's first phase: reads the 16 list pages. */
int scene_setup(struct scene *s);
int scene_log(struct scene *s, struct task *t, bool on);

/* From here on the three below count. */
void scene_mark(struct scene *s);
/* Statistics, tracepoints and counts since the last scene_mark(), or since the VM was made. */
uint64_t scene_stat(const struct scene *s, enum kvm_stat_id id);
uint64_t scene_event(const struct scene *s, enum kvm_trace_id id);
uint64_t scene_count(const struct scene *s, uint16_t count);

/* The errors' text, the last one. */
extern char scene_message[256];

#endif
