/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_FACTS_PRIV_H
#define KVMSIM_ANALYSIS_FACTS_PRIV_H

#include "analysis/facts_util.h"

#include "analysis/facts.h"
#include "analysis/output.h"

/* Between the files of the facts: facts.c has what all records have, facts_exits.c exits and
 * faults, facts_mmu.c shadow pages, MMIO and rings. */

#define FACTS_RECENT  64
#define FACTS_PENDING 16 /* reads of a thread that wait for their data */

enum facts_ring_state { RING_RUNS, RING_FULL, RING_OUT };

struct facts_thread {
	int64_t tid;	      /* -1: of the records that have none */
	int64_t vcpu, tgid;   /* -1: none seen */
	int64_t counted_vcpu; /* the last that was added to the file's */
	bool kvm;	      /* has an event of KVM */
	uint64_t last_time;   /* the latest; HOST_NO_TIME: none */
	struct vec cpus;      /* int64_t, in order of first use */
	int64_t last_cpu;
	char comm[32]; /* last comm that was counted, if that short */
	size_t comm_len;

	/* the last kvm_exit; open until kvm_entry */
	bool exited, open, shadow_fault, npf, halted, misconfig, reserved, accessed;
	uint64_t exit_number, exit_time, exit_mark, exit_rip, exit_info1;
	int64_t exit_cpu;
	struct exit_reason *reason;

	/* the last fault, and whether more than a second without records came behind it */
	bool faulted, hole;
	uint64_t fault_gfn;

	struct {
		uint64_t gpa, len;
	} pending[FACTS_PENDING];
	unsigned n_pending;

	enum facts_ring_state ring_state;
	struct facts_ring *ring;
	uint64_t ring_time, ring_mark;
	int64_t ring_cpu;

	/* spte changes of one level, slot by slot */
	bool run, run_interrupted;
	uint64_t run_as, run_level, run_first, run_last, run_elisions;

	UT_hash_handle hh;
};

struct exit_reason {
	char *name;
	size_t len;
	uint64_t n, pairs, ns;
	struct hist *hist; /* of the pairs' times */
	UT_hash_handle hh;
};

struct facts_pair {
	uint64_t number; /* of the exit */
	int64_t ns;	 /* negative: cannot be told */
};

struct facts_fault {
	int64_t vcpu; /* -1: not known */
	uint64_t address, code;
	bool gva;
};

struct facts_loop_key {
	uint64_t page, rip, code;
	uint64_t gva; /* the page is of a guest virtual address */
};
struct facts_who {
	int64_t vcpu; /* of a thread of none: -2 - tid */
	uint64_t n;
};
struct facts_loop {
	struct facts_loop_key key;
	uint64_t faults, most; /* most: of one vCPU */
	struct vec by;	       /* struct facts_who */
	UT_hash_handle hh;
};

struct facts_sp {
	uint64_t gfn, level, root_count, access, direct, quadrant, gpte_bytes;
	bool created, unsync, reliable;
	uint64_t have;
};

struct facts_walker {
	uint64_t pferr;
};

struct facts_ple {
	int64_t vcpu;
	uint64_t old, new;
	bool grow, has_old, has_new;
};

struct facts_ring {
	uint64_t vcpu, pushes, max_used, soft_full, exits, resets, stalls, stall_ns;
	struct tally reset_tids;
	bool used_seen, ret_seen, tids_seen;
	UT_hash_handle hh;
};

struct facts_cpu {
	uint64_t last_time; /* HOST_NO_TIME: none yet */
	uint64_t loss_mark;
	uint64_t lost;
	bool marked, uncounted;
};

struct facts {
	struct host_sink sink;

	/* every record */
	uint64_t records, records_of[HOST_N_EVENTS], timed_records;
	struct names rest, unknown, other;
	uint64_t first_time, last_time; /* HOST_NO_TIME: none */
	uint64_t out_of_order, largest_gap;
	bool has_gap, has_flags, has_cpu, has_tid, has_tgid, has_comm, has_vcpu;
	unsigned flags_width, time_decimals;
	struct names comms;
	struct tally vcpus;
	struct facts_thread *threads, *recent[FACTS_RECENT]; /* recent: by tid */
	bool threads_truncated;
	struct facts_cpu *cpu; /* n_cpus of them, by number */
	size_t n_cpus;

	/* losses */
	uint64_t mark;		    /* grows with every loss in the body */
	uint64_t mark_anywhere;	    /* of the last one of no known CPU */
	uint64_t header_lost, lost; /* lost: those with a count, by markers */
	uint64_t lost_chunks;
	bool has_header_loss, uncounted;
	uint64_t elisions;
	struct tally empty_cpus;
	bool has_header_cpus;
	uint64_t header_cpus;

	/* exits and faults */
	struct exit_reason *reasons, *reason; /* reason: the last one */
	bool reasons_truncated;
	uint64_t exits, pairs, spanning, unpaired_exits, unpaired_entries;
	struct hist pair_hist;
	struct vec pair; /* struct facts_pair */
	struct tally nested_rips, userspace;
	struct vec fault; /* struct facts_fault */
	uint64_t truncated_codes, spurious;
	struct facts_loop *loops;
	bool loops_truncated, spte_changed, stalled;

	/* MMU */
	struct vec sp;	   /* struct facts_sp */
	struct vec walker; /* struct facts_walker */
	struct vec ple;	   /* struct facts_ple */
	uint64_t torn_down, implied;
	uint64_t mmio[3]; /* by type */
	uint64_t round_trips, open_reads;
	struct tally gpas;
	uint64_t misconfig_not_mmio;
	struct facts_ring *rings;
	bool rings_truncated;
};

static inline bool facts_timed(const struct host_event *e)
{
	return e->time_ns != HOST_NO_TIME;
}

/* 0 where the record has no such field. */
static inline uint64_t facts_get(const struct host_event *e, enum host_field field)
{
	return host_has(e, field) ? e->v[field] : 0;
}

/* Whether events that @cpu (-1: any) may have had are missing since @mark. */
bool facts_lost_since(const struct facts *f, uint64_t mark, int64_t cpu);
/* The vCPU that the record prints, else its thread's; -1: none. */
int64_t facts_vcpu(const struct facts_thread *t, const struct host_event *e);
/* Whether events that something is made of were there; else only their number is known. */
bool facts_usable(const struct facts *f);
uint64_t facts_kvm_records(const struct facts *f);
/* A loop in the sense of the verdict: three faults, two of one vCPU. */
bool facts_is_loop(const struct facts_loop *l);
/* The first of the loops, or the next; NULL: no more. None when an spte changed. */
const struct facts_loop *facts_loop_next(const struct facts *f, const struct facts_loop *after);

/* facts_exits.c: each 0 or KVMSIM_ENOMEM. @t is NULL where threads are no longer followed. */
int facts_exit_event(struct facts *f, struct facts_thread *t, const struct host_event *e);
void facts_exit_close(struct facts *f, struct facts_thread *t);
void facts_exits_free(struct facts *f);

/* facts_mmu.c */
int facts_mmu_event(struct facts *f, struct facts_thread *t, const struct host_event *e);
/* Before whatever record of a thread: it may end a stall. */
void facts_ring_end(struct facts *f, struct facts_thread *t, const struct host_event *e);
void facts_mmu_close(struct facts *f, struct facts_thread *t);
void facts_mmu_free(struct facts *f);

/* Of the events with fields those of other subsystems: locks, the scheduler. */
bool facts_other_system(enum host_event_id id);

/* facts_json.c, facts_mmu_json.c, tables_json.c */
json_t *facts_text_json(const char *text, size_t len); /* bytes that are no UTF-8 are replaced */
json_t *facts_hex_json(uint64_t v);
json_t *facts_dat_json(const struct host_dat *d);
/* A list, and KEY_truncated where it is not whole. */
void facts_put_list(json_t *to, const char *key, json_t *list, bool truncated);
void facts_mmu_json(json_t *to, const struct facts *f);
void facts_tables_json(json_t *to, const struct host_facts *h);

/* tables_print.c */
int tables_print(const struct host_facts *h);
/* Bytes of a file for a terminal; NULL: "-". */
void facts_text_cell(struct table *t, const char *text);

bool facts_has(const struct host_facts *h, enum host_kind kind);
bool facts_has_trace(const struct host_facts *h);
/* More is lost than is there: no statistics of latencies. */
bool facts_too_lossy(const struct facts *f);

#endif
