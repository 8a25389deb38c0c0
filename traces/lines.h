/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_LINES_H
#define KVMSIM_TRACES_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/sim/error.h"

/*
 * The lines of a text for importers, in constant memory: plain or gzip (told apart by its first two
 * bytes; members may follow one another). The stream need not be seekable.
 */
#define LINE_MAX_BYTES 1024

struct lines;

/* @in stays the caller's. KVMSIM_ENOMEM. */
int lines_open(FILE *in, const char *name, const struct kvmsim_errsink *errors, struct lines **out);
void lines_close(struct lines *l);

/* The next line, NUL-terminated and without its newline, valid until the next call. Returns 1, 0 at
 * the end, KVMSIM_EIO, KVMSIM_EPARSE (a directory), KVMSIM_EINTR (a signal) or
 * KVMSIM_ENOMEM. *@whole is false for a line
 * that is too long, holds a NUL or lacks its newline: it cannot be trusted. A gzip stream that is
 * damaged ends there, and the sink is told (KVMSIM_EPARSE). */
int lines_next(struct lines *l, const char **line, bool *whole);
/* A gzip stream was damaged or cut short. */
bool lines_damaged(const struct lines *l);

#endif
