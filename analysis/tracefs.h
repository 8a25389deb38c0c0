/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_TRACEFS_H
#define KVMSIM_ANALYSIS_TRACEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "model/sim/error.h"

/*
 * A private instance of this machine's event tracing: buffers, events and clock of its own, beside
 * whatever else is traced. It goes when tracefs_close() is called, and when this program ends
 * without that, killed or crashed: a watchdog process sees the end of a pipe, switches tracing off
 * and removes it. What even that left behind (it was killed, too) the next tracefs_open() removes:
 * instances are locked by who uses them.
 */
struct tracefs {
	char *root;	/* "/sys/kernel/tracing" */
	char *instance; /* its folder */
	int lock, pipe;
	pid_t watchdog;
};

/* KVMSIM_EUNSUPPORTED: no tracefs, or not this user's to write to, with what to do; KVMSIM_EIO,
 * KVMSIM_ENOMEM. tracefs_close() in every case. */
int tracefs_open(struct tracefs *t, const struct kvmsim_errsink *errors);
void tracefs_close(struct tracefs *t);

/* Once all files are open, what is left to do needs the files' owner and no power over the machine:
 * drops the capabilities but those to write where the output and the instance are and to end a
 * command. */
void tracefs_drop_privileges(void);

/* Writes @text to the instance's @file: 0 or an errno. */
int tracefs_write(const struct tracefs *t, const char *file, const char *text);
/* All of @file, of the instance or, with @top, of tracefs; malloc'd, a NUL behind it. NULL: errno.
 */
char *tracefs_read(const struct tracefs *t, bool top, const char *file, size_t *len);
/* The path of @file, the same; malloc'd. NULL: no memory. */
char *tracefs_path(const struct tracefs *t, bool top, const char *file);
/* Whether the instance has it. */
bool tracefs_has(const struct tracefs *t, const char *file);

#endif
