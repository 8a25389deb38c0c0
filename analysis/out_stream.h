/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_OUT_STREAM_H
#define KVMSIM_ANALYSIS_OUT_STREAM_H

#include <stdbool.h>
#include <stdio.h>

#include "model/sim/error.h"
#include "traces/outfile.h"

/* A file to print to that is there whole or not at all (traces/outfile.h), or standard output. */
struct out_stream {
	FILE *to;
	bool standard;
	const char *path;
	struct outfile file;
};

/* @path "-": standard output. 0, KVMSIM_EIO or KVMSIM_ENOMEM with a message. */
int out_stream_open(struct out_stream *s, const char *path, const struct kvmsim_errsink *errors);
/* All is written and in its place: 0, or KVMSIM_EIO with a message. Standard output is left to
 * cli_finish(). */
int out_stream_finish(struct out_stream *s, const struct kvmsim_errsink *errors);
/* Always, at the end: a file that is not finished is removed. */
void out_stream_abort(struct out_stream *s);

#endif
