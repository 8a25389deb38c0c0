/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_SOURCE_H
#define KVMSIM_TRACES_HOST_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sim/error.h"

/*
 * The physical lines of a text in constant memory, without copying: plain, gzip or zstd (told apart
 * by the first bytes; members and frames may follow one another), of a file or a pipe. Not for
 * lines that must be NUL-terminated (traces/lines.h).
 */
struct source;

#define SOURCE_HEAD 64 /* bytes that source_head() can look at */

/* A line that is longer than this is cut there; its rest is passed over. */
#define SOURCE_MAX_LINE (1u << 16)
/* One that is longer than this ends the reading: /dev/zero has no other end. Holes of crashed
 * machines are shorter. */
#define SOURCE_ENDLESS (1u << 30)

struct source_line {
	const char *at;
	size_t len;   /* without its newline */
	bool newline; /* it has one */
	bool cut;     /* longer than SOURCE_MAX_LINE */
};

/* Reads from @fd, which stays the caller's. KVMSIM_ENOMEM. */
int source_open(int fd, const char *name, const struct kvmsim_errsink *errors, struct source **out);
void source_close(struct source *s);

/* The first bytes as they are in the file, up to SOURCE_HEAD, to tell what it is: call before the
 * first line. Their number, KVMSIM_EIO, KVMSIM_EPARSE (a directory) or KVMSIM_EINTR. */
int source_head(struct source *s, const void **head);
/* Whether it is packed, which source_head() found out. */
bool source_packed(const struct source *s);

/* The next line, valid until the next call. 1, 0 at the end, KVMSIM_EIO, KVMSIM_EPARSE (a
 * directory, a line longer than SOURCE_ENDLESS, a packed stream that is damaged or cut short, after
 * what can be unpacked),
 * KVMSIM_EINTR, KVMSIM_ENOMEM. */
int source_next(struct source *s, struct source_line *line);
/* The line after the one that source_next() gave, without going on to it; false: there is none. */
bool source_peek(const struct source *s, struct source_line *line);
/* Bytes of unpacked text given so far. */
uint64_t source_bytes(const struct source *s);

#endif
