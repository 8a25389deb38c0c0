/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_RECORD_QEMU_H
#define KVMSIM_ANALYSIS_RECORD_QEMU_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/qemu_stream.h"
#include "model/sim/error.h"

/* What `record qemu` can record. */
struct qemu_scenario {
	const char *name, *what; /* @what: for a person, of the note */
	const char *script;	 /* file of workloads/qemu */
	const char *tests;	 /* what is run by default, a phase each */
	const char *modules;	 /* of the kernel, loaded before */
	int shift; /* -icount: an instruction takes 2^shift ns; -1: not, the host's time */
	unsigned vcpus, seconds; /* of each test, where that is asked for; 0: one */
	bool disk, screen, net;
	bool devices; /* accesses of devices are recorded */
	bool locks;   /* a table of locks is written, no trace */
};
/* A network device of the guest. */
struct qemu_nic {
	const char *name, *device; /* for a user; QEMU's words */
	const char *modules;	   /* of the guest's kernel */
};
/* NULL: none of that name. */
const struct qemu_nic *qemu_nic_find(const char *name);
/* Ends with a NULL name. */
extern const struct qemu_scenario qemu_scenarios[];
/* What @scenario accepts as --tests: "" or what is wrong with it. */
const char *qemu_scenario_refuses(const struct qemu_scenario *scenario, const char *tests);

/* One recording. */
struct qemu_recording {
	const struct qemu_scenario *scenario;
	const char *tests, *out, *text, *image, *qemu;
	uint64_t epoch_len, memory_mib, depth, seconds, timeout;
	const struct qemu_nic *nic;
	bool rebuild, build_only;
	/* found out */
	unsigned api;
	char version[64], about[256], command[512];
};

/* Asks QEMU for its version, and knows which of the plugin's interfaces it takes: @r->version, api.
 * @run: the recording's own folder. KVMSIM_ENOENT (no such program), KVMSIM_EPARSE (not QEMU, or
 * one that cannot), KVMSIM_EINTR, KVMSIM_EIO. These but KVMSIM_EINTR speak for themselves to
 * cli_errors. */
int qemu_ask_version(struct qemu_recording *r, const char *run);
/* Records: @r->out and its note appear when all went well, and only then. @run has the plugin and
 * the initrd; where it goes wrong, the guest's console is left in @cache. KVMSIM_EPARSE: the guest,
 * QEMU or the plugin failed; KVMSIM_EINTR (no message), KVMSIM_EIO, KVMSIM_ENOMEM. */
int qemu_run(struct qemu_recording *r, const char *run, const char *cache, double deadline);

/* The note of a table of locks. */
void qemu_locks_note(FILE *f, const struct qemu_recording *r, const struct qemu_stream *s);

/* Writes the note beside a finished trace or table: the name of @r->out with .md. KVMSIM_EIO,
 * KVMSIM_ENOMEM. */
int qemu_note(const struct qemu_recording *r, const struct qemu_stream *s,
	      const struct kvmsim_errsink *errors);

#endif
