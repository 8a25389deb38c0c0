/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_MATRIX_SCENE_H
#define KVMSIM_WORKLOADS_MATRIX_SCENE_H

#include "model/guest/vcpu.h"
#include "model/guest/vm.h"
#include "model/mmu/trace.h"
#include "workloads/matrix.h"
#include "workloads/matrix_layout.h"

/*
 * What the cases are written with: a fresh VM, phases in it, the guest's loops, the ioctls.
 * Private to the matrix. A function returns 0 or a negative error; cases pass it on.
 */

/* ---- counting (matrix_events.c) ---- */

struct mx_counter {
	enum kvm_trace_id id;
	uint64_t sub; /* which of the event's kinds */
	uint64_t n;
};
#define MX_MAX_COUNTERS 64
struct mx_counters {
	struct mx_counter c[MX_MAX_COUNTERS];
	size_t n;
	bool on;			  /* inside a phase */
	const struct kvm_observer *trace; /* sees what is counted; may be NULL */
	bool overflow; /* more kinds of events than MX_MAX_COUNTERS in one phase */
};
/* A kvm_observer's event function; the context is a struct mx_counters. */
void mx_count_event(void *counters, const struct kvm_trace_event *e);
/* Appends the totals and the splits by kind under the reference's names; @room is the length of
 * @out. Returns how many there are, or KVMSIM_ENOMEM when they do not fit. */
long mx_event_quantities(const struct mx_counters *c, struct matrix_quantity *out, size_t room);

/* ---- scene ---- */

#define MX_MAX_QUANTITIES 192

struct mx_seen {
	char name[40];
	struct matrix_round key;
	unsigned times;
};

struct mx_result {
	const char *name;
	const int64_t *value;
};

/* Since the phase began: exits of vCPUs whose ring was full, entries collected, entries reset. */
struct mx_ring {
	int64_t full, collected, returned;
};

/* The op list that is being made or run: see matrix_interp.h. */
struct mx_interp {
	struct kvm_vcpu *vcpu;
	uint64_t end, at; /* the next op that is appended; that is run */
	int64_t mmio_exits;
};

struct matrix {
	const struct matrix_opts *o;
	/* what the next phase's key says */
	enum matrix_pattern pattern;
	int64_t nr_dirty, round;
	uint64_t first_page; /* is added to each page of its list */
	/* the VM */
	const char *dirty; /* the case's own policy; NULL: the options' */
	const char *spte;  /* NULL: the preset's */
	struct { /* leaves of slot 0 or all are the supervisor's; slot 1's are read-only... */
		bool kernel, kernel_all, ro, nx, clean;
	} ptes;
	bool two_roots;
	bool readonly; /* slot 1 is: stores to it are exits that nothing is done about */
	const struct mx_mode_step *steps; /* of cases M: what is to be done yet */
	uint32_t slot_flags;
	bool clear_ad;	     /* the guest's tables begin without A and D */
	unsigned host_level; /* of slot 1's pages */
	bool host_anonymous, host_absent;
	enum kvm_eager_page_split eager_page_split;
	uint32_t n_vcpus;		  /* 0: one */
	bool had_threads;		  /* the VMM has made threads before */
	int (*prepare)(struct matrix *m); /* before `setup`; may be NULL */
	int turn;			  /* of a case that makes the same VM several times */
	int64_t device_pages;		  /* case E's */
	struct mx_unrolled *unrolled;	  /* an op program\'s statements that are yet to be done */
	int (*body)(struct matrix *m);
	struct sim *sim;
	struct task *t;
	struct kvm *kvm;
	struct kvm_vcpu *vcpu, *vcpus[MX_VCPUS]; /* the first, and all */
	/* the phase that is going on */
	const char *phase;
	struct mx_counters counters;
	uint64_t stats[N_KVM_STATS];
	uint64_t counts[N_COUNTS];
	cycles_t began;
	struct mx_result results[3]; /* what it has besides mx_end()'s */
	size_t n_results;
	struct mx_ring ring;
	struct mx_interp interp;
	struct matrix_quantity quantities[MX_MAX_QUANTITIES];
	/* kept over the VMs */
	struct mx_seen *seen;
	size_t n_seen;
	uint32_t *pages;
	uint64_t *bitmap;
};

/* ---- the guest's page tables (matrix_tables.c) ---- */

enum guest_paging_mode mx_guest(const struct matrix *m);
void mx_page_tables(struct matrix *m);
/* What CR3 is for the first or the second of two equal roots. */
uint64_t mx_root(const struct matrix *m, unsigned root);
/* Where the entry is that maps test page @page, or the one of the directory on the way there; its
 * length; what an entry of the directory maps. */
uint64_t mx_pte_gpa(const struct matrix *m, uint64_t page);
uint64_t mx_pde_gpa(const struct matrix *m, uint64_t page);
unsigned mx_entry_bytes(const struct matrix *m);
uint64_t mx_large_bytes(const struct matrix *m);

/* A fresh VM: slot 0 (code, tables, lists), slot 1 (the test pages) with @slot_flags, the vCPUs;
 * then the phase `setup`, which reads every list page once; then @body, in the VMM's task. */
int mx_vm(struct matrix *m, uint32_t slot_flags, int (*body)(struct matrix *m));

/* From mx_begin() to mx_end() everything counts. @result ("ndirty") may be NULL. */
void mx_begin(struct matrix *m, const char *phase);
int mx_end(struct matrix *m, const char *result, int64_t value);

/* A phase of which only the results are compared; @q has @n of them. */
int mx_results(struct matrix *m, const char *phase, const struct matrix_quantity *q, size_t n);

/* Sets the key of the phases that follow. */
void mx_key(struct matrix *m, enum matrix_pattern pattern, int64_t nr_dirty, int64_t round);

/* The phase `setup`: the guest reads its list pages. */
int mx_setup(struct matrix *m);
/* The first vCPU's list: the addresses of test pages. */
void mx_put_list(struct matrix *m, const uint32_t *pages, uint64_t n);
/* One phase: a loop at @code over the first @n pages of the key's pattern (none: in order); KVM_RUN
 * until OUT. */
int mx_loop(struct matrix *m, const char *phase, uint64_t code, uint64_t n);
/* The same over the @n pages of slot 1 in @pages. */
int mx_loop_list(struct matrix *m, const char *phase, uint64_t code, const uint32_t *pages,
		 uint64_t n);
/* Both vCPUs' loops at @code, @n turns over their lists each, in threads of their own that have
 * begun when this returns; and until they have ended. @threads has MX_VCPUS elements. */
struct mx_thread {
	struct matrix *m;
	struct kvm_vcpu *vcpu;
	uint64_t code, n;
	bool ended;
};
int mx_threads_start(struct matrix *m, struct mx_thread *threads, uint64_t code, uint64_t n);
int mx_threads_join(struct matrix *m, const struct mx_thread *threads);
/* One phase: each of the two vCPUs runs the loop at @code over its half of the slot; one after the
 * other, or each in a thread of its own, which comes and goes in the phase. */
int mx_halves(struct matrix *m, const char *phase, uint64_t code, bool threads);
/* One phase: the dirty logging flag of slot 1 set or taken away. */
int mx_log(struct matrix *m, const char *phase, bool on);
/* The same without a phase. */
int mx_set_log(struct matrix *m, bool on);
/* One phase: GET_DIRTY_LOG of slot @slot, which has so many pages, not more than slot 0 or 1. */
int mx_get_slot(struct matrix *m, const char *phase, uint32_t slot, uint64_t pages);
/* The same of slot 1. */
int mx_get(struct matrix *m, const char *phase);
/* One phase: slot 0, which has the guest's tables, begins to be logged; and GET_DIRTY_LOG of it,
 * the phase is called @base_k@k, its round is @k. */
int mx_log_slot0(struct matrix *m, const char *phase);
int mx_get_slot0_k(struct matrix *m, const char *base, int k);
/* One phase: CLEAR_DIRTY_LOG of slot 1, all of it, for what the last mx_get() got, in chunks of
 * @chunk pages. */
int mx_clear(struct matrix *m, const char *phase, uint64_t chunk);

/* One phase: every ring is collected, reset, or both. (matrix_d.c) */
enum { MX_COLLECT = 1, MX_RESET = 2 };
int mx_rings(struct matrix *m, const char *phase, unsigned what);

/* One instruction, restarted until it retires. */
int mx_insn_read(struct matrix *m, struct kvm_vcpu *v, uint64_t rip, uint64_t gva, unsigned len,
		 uint64_t *value);
int mx_insn_out(struct matrix *m, struct kvm_vcpu *v, uint64_t rip);

/* A script is phases in a row, ended by a NULL phase; its loops run over n pages, its CLEARs in
 * chunks of n (0: the slot). */
enum mx_what { MX_LOOP, MX_LOG_ON, MX_LOG_OFF, MX_GET, MX_CLEAR };
struct mx_step {
	const char *phase;
	enum mx_what what;
	uint64_t code;		     /* MX_LOOP */
	enum matrix_pattern pattern; /* MX_LOOP: sets the key; others keep it */
	uint64_t n;
};
int mx_script(struct matrix *m, const struct mx_step *steps);

/* ---- cases ---- */
int mx_case_a(struct matrix *m);
int mx_case_b(struct matrix *m);
int mx_case_c_cap1(struct matrix *m);
int mx_case_c_cap3(struct matrix *m);
int mx_case_c_store1(struct matrix *m);
int mx_case_c_store3(struct matrix *m);
int mx_case_d(struct matrix *m);
int mx_case_d_256(struct matrix *m);
int mx_case_d_4096(struct matrix *m);
int mx_case_d_mix(struct matrix *m);
int mx_case_d_2vcpu(struct matrix *m);
int mx_case_e_caching0(struct matrix *m);
int mx_case_e_caching1(struct matrix *m);
int mx_case_f_2vcpu(struct matrix *m);
int mx_case_f_ad_2m(struct matrix *m);
int mx_case_f_ad_4k(struct matrix *m);
int mx_case_f_cr3(struct matrix *m);
int mx_case_f_flood(struct matrix *m);
int mx_case_f_pde(struct matrix *m);
int mx_case_f_pde1(struct matrix *m);
int mx_case_f_pde_inv_read(struct matrix *m);
int mx_case_f_pde_read(struct matrix *m);
int mx_case_f_pml4(struct matrix *m);
int mx_case_f_ptebytes(struct matrix *m);
int mx_case_f_recycle(struct matrix *m);
int mx_case_f_remap(struct matrix *m);
int mx_case_f_remap8(struct matrix *m);
int mx_case_f_remap8_inv(struct matrix *m);
int mx_case_f_remap_inv(struct matrix *m);
int mx_case_f_rorw(struct matrix *m);
int mx_case_f_sync_2vcpu(struct matrix *m);
int mx_case_f_sync_above(struct matrix *m);
int mx_case_f_sync_alias(struct matrix *m);
int mx_case_f_sync_batch(struct matrix *m);
int mx_case_f_sync_directory(struct matrix *m);
int mx_case_f_sync_inc(struct matrix *m);
int mx_case_f_sync_kinds(struct matrix *m);
int mx_case_f_sync_logged(struct matrix *m);
int mx_case_f_sync_mmio(struct matrix *m);
int mx_case_f_sync_notifier(struct matrix *m);
int mx_case_f_sync_recycle(struct matrix *m);
int mx_case_f_sync_relink(struct matrix *m);
int mx_case_f_sync_roots(struct matrix *m);
int mx_case_f_sync_roots_mid(struct matrix *m);
int mx_case_f_sync_selfmap(struct matrix *m);
int mx_case_f_sync_slots(struct matrix *m);
int mx_case_f_wpt(struct matrix *m);
int mx_case_g_eager_y(struct matrix *m);
int mx_case_g_eager_n(struct matrix *m);
int mx_case_g_mix_y(struct matrix *m);
int mx_case_g_mix_n(struct matrix *m);
int mx_case_h(struct matrix *m);
int mx_case_i(struct matrix *m);
int mx_case_p_quiet(struct matrix *m);
int mx_case_p_get(struct matrix *m);
int mx_case_p_clear(struct matrix *m);
int mx_case_j(struct matrix *m);
int mx_case_j_mid(struct matrix *m);
int mx_case_j_absent(struct matrix *m);
int mx_case_j_huge(struct matrix *m);
int mx_case_modes(struct matrix *m);
int mx_case_program(struct matrix *m);
int mx_case_n(struct matrix *m);

#endif
