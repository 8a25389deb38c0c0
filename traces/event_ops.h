/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_EVENT_OPS_H
#define KVMSIM_TRACES_EVENT_OPS_H

#include "traces/host/event.h"
#include "traces/trace.h"

/*
 * What of a host's events can be replayed, as ops per vCPU: the accesses that left the guest. Page
 * faults (a read, write or fetch at the guest-physical address), accesses of devices, port I/O,
 * HLT. Accesses without a fault are in no host's trace: TRACE_ONLY_FAULTS.
 *
 * The vCPU is the one that the record prints, else the last one that a record of the same tid
 * printed. Gaps are ns of the host's clock since the op before, the host's own work included; a
 * vCPU's first is since the trace's first record.
 *
 * A fault is known once the next record of its tid has come: one on a page that an access of a
 * device follows is that access. Under shadow paging it holds a guest-virtual address; the page is
 * that of the spte that the fault installs (kvm_mmu_set_spte).
 */
struct event_ops_stats {
	uint64_t ops;
	uint64_t reads, writes, fetches; /* of them page faults */
	/* page faults that are no op */
	uint64_t no_vcpu; /* the vCPU is not known, or above 511 */
	uint64_t virtual; /* guest-virtual address, and no spte told the page */
	uint64_t device;  /* of a page that an access of a device followed, of the local APIC */
	uint64_t outside; /* of the slots that were given */
	uint64_t others_no_vcpu;    /* accesses of devices, ports, HLTs */
	uint64_t low_gfn, high_gfn; /* of page faults that are ops; low above high: none */
	bool no_time;		    /* some record has none: all gaps are 0 */
};

struct event_ops;

/* @slots: the guest's, or @n 0 when they are not known. KVMSIM_ENOMEM. */
int event_ops_new(struct trace_writer *w, const struct trace_slot *slots, uint32_t n,
		  const struct kvmsim_errsink *errors, struct event_ops **out);
/* Errors: trace_write()'s, KVMSIM_ENOMEM. */
int event_ops_add(struct event_ops *o, const struct host_event *e);
/* Behind the last event. */
int event_ops_end(struct event_ops *o, struct event_ops_stats *stats);
void event_ops_free(struct event_ops *o);

#endif
