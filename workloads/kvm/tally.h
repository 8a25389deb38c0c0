/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_WORKLOADS_KVM_TALLY_H
#define KVMSIM_WORKLOADS_KVM_TALLY_H

#include "workloads/kvm/machine.h"

/*
 * What KVM counts while a part of a round goes on: its statistics (KVM_GET_STATS_FD, of the VM and
 * its vCPUs together; those that only grow, unless gauges are asked for) and its tracepoints (a
 * tracefs instance of our own).
 */
#define TALLY_MAX 256

struct vm_stats {
	const struct machine *m;
	bool gauges; /* and peaks are read, too; said before the opening */
	size_t n;
	const char *name[TALLY_MAX];
	bool gauge[TALLY_MAX];
	uint64_t last[TALLY_MAX], change[TALLY_MAX];
	struct stats_file *files; /* the VM's, then each vCPU's */
};

/* KVMSIM_EUNSUPPORTED (no such statistics), KVMSIM_EIO, KVMSIM_ENOMEM. In each case
 * vm_stats_close() is due; zeroed is closed. */
int vm_stats_open(struct vm_stats *s, const struct machine *m);
void vm_stats_close(struct vm_stats *s);
/* What changed since the call before, or the opening; valid until the next. */
int vm_stats_change(struct vm_stats *s, struct kvm_tally *out);

struct trace_events {
	const struct kvmsim_errsink *errors;
	char *dir; /* of the instance, with '/'; NULL: none */
	int pipe;
	size_t n;
	char *name[TALLY_MAX];
	uint64_t count[TALLY_MAX];
	char *text; /* what was read and not counted yet */
	size_t used;
};

/* Makes the instance, and switches @events on ("GROUP:NAME GROUP:*") for the calling thread and
 * those that it starts. KVMSIM_EUNSUPPORTED (no tracefs, no such tracepoint), KVMSIM_EIO,
 * KVMSIM_ENOMEM. In each case trace_events_close() is due; zeroed is closed. */
int trace_events_open(struct trace_events *e, const char *events,
		      const struct kvmsim_errsink *errors);
/* Takes the instance away. */
void trace_events_close(struct trace_events *e);
/* What fired since the call before; valid until the next. KVMSIM_EIO (events were lost). */
int trace_events_count(struct trace_events *e, struct kvm_tally *out);

#endif
