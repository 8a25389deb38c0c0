/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_TRACEFS_RECORD_H
#define KVMSIM_ANALYSIS_TRACEFS_RECORD_H

#include "analysis/tracefs_dat.h"
#include "analysis/tracefs_events.h"

/* A recording: what is to be done, and what came of it. */
struct tracefs_recording {
	const char *out, *clock;
	const char *purposes, *events; /* tracefs_events_find()'s */
	uint64_t buffer_kib;	       /* per CPU */
	double seconds;		       /* 0: until interrupted, or the command's end */
	char *const *command;	       /* ended by NULL; NULL: none */

	struct tracefs_events found;
	struct tracefs_cpu *cpus;
	unsigned n_cpus;
	uint32_t page_size;
	double took;	  /* seconds with tracing on */
	int status;	  /* of the command, as waitpid() says */
	bool interrupted; /* by SIGINT or SIGTERM */
};

/* Records and writes r->out. Whatever ends it, tracing is off and the instance gone. Errors are
 * told to @errors: KVMSIM_EUNSUPPORTED (no tracefs), KVMSIM_EINVAL, KVMSIM_ENOENT (events, clock,
 * command), KVMSIM_EIO, KVMSIM_ENOMEM. tracefs_recording_free() in every case. */
int tracefs_record(struct tracefs_recording *r, const struct kvmsim_errsink *errors);
void tracefs_recording_free(struct tracefs_recording *r);
/* Of a CPU's statistics: "overrun", "read events"; 0 where they lack it. */
uint64_t tracefs_stat(const struct tracefs_cpu *c, const char *name);

#endif
