/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_CHROME_H
#define KVMSIM_ANALYSIS_CHROME_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes a time line in the JSON of Chrome's trace events ("Trace Event Format"), which Perfetto
 * and chrome://tracing open, event by event, in no memory of its own. Times are ns; the format's
 * are us. Viewers take them for doubles, subtract the first, and add a span's length to its begin:
 * were they decimal fractions, one span's end would miss the next one's begin by some 1e-11 us, and
 * a viewer like speedscope, which nests what overlaps, would show nonsense. So they are multiples
 * of 2^-11 us, which doubles have exactly to 2^42 us (50 days), and round to the same ns. Spans are
 * complete ones (ph X), so that they need not come in the order of time; those of one track must
 * not overlap unless one lies within the other. Strings may be anything: what is no UTF-8 is
 * replaced.
 *
 * An event is begun, may be given arguments, and is ended. Whether all was written, the stream
 * tells.
 */
struct chrome {
	FILE *to;
	bool any, args;
};

void chrome_open(struct chrome *c, FILE *to);
/* Ends the list; @key and @value (text) say what the file is, pairs of them, ended by NULL. */
void chrome_close(struct chrome *c, const char *const *about);

/* Metadata: names of a process and of a track of it, and where it stands among the others. */
void chrome_process(struct chrome *c, int64_t pid, const char *name);
void chrome_track(struct chrome *c, int64_t pid, int64_t tid, const char *name);

void chrome_span(struct chrome *c, int64_t pid, int64_t tid, const char *name, uint64_t begin_ns,
		 uint64_t ns);
void chrome_instant(struct chrome *c, int64_t pid, int64_t tid, const char *name, uint64_t ns);
void chrome_text(struct chrome *c, const char *key, const char *value);
void chrome_u64(struct chrome *c, const char *key, uint64_t value);
void chrome_hex(struct chrome *c, const char *key, uint64_t value);
void chrome_true(struct chrome *c, const char *key);
void chrome_end(struct chrome *c);

#endif
