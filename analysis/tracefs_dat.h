/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_TRACEFS_DAT_H
#define KVMSIM_ANALYSIS_TRACEFS_DAT_H

#include <stdint.h>

#include "analysis/tracefs.h"

/* What a recording of an instance has of one CPU. */
struct tracefs_cpu {
	unsigned cpu;
	int raw;	/* trace_pipe_raw, not blocking */
	int pages;	/* an unnamed file with what came */
	uint64_t bytes; /* in it */
	char *stats;	/* per_cpu/cpuN/stats at the end; owned by whoever records */
};

/*
 * Writes a trace.dat of version 6, which every trace-cmd reads: the formats of @events
 * ("kvm/kvm_exit", sorted), the names of tasks, the clock, the CPUs' statistics, their pages. It is
 * there whole or not at all. CPUs are numbered from 0 without a gap. KVMSIM_EIO, KVMSIM_ENOMEM,
 * told to @errors.
 */
int tracefs_dat_write(const char *path, const struct tracefs *t, char *const *events,
		      size_t n_events, const struct tracefs_cpu *cpus, unsigned n_cpus,
		      uint32_t page_size, const struct kvmsim_errsink *errors);

#endif
