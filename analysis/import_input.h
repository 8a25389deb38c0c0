/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_IMPORT_INPUT_H
#define KVMSIM_ANALYSIS_IMPORT_INPUT_H

#include <stdbool.h>

/*
 * What `import` is given: opened, and looked at without taking anything from it. A file is read at
 * its beginning, of a pipe the first bytes are copied aside; other things (a terminal) can't be
 * looked at.
 */
struct import_input {
	const char *name; /* for messages */
	int fd;
	bool probe; /* a line of its beginning is the guest probe's: "NUMBER VCPU S ..." */
};

/* Opens @path ("-": standard input). 0, KVMSIM_EIO told to cli_errors, KVMSIM_EINTR. */
int import_input_open(const char *path, struct import_input *in);
/* The path by which it can be opened again, and what has been looked at is still there: @path, or
 * "-" where that is standard input or a pipe, which takes its place. KVMSIM_EIO. */
int import_input_again(struct import_input *in, const char *path, const char **again);
/* Whether @path is the same regular file, also by another name. */
bool import_input_is(const struct import_input *in, const char *path);
/* Whether both are the same regular file, or have the same bytes, of regular files that are not
 * empty. */
enum import_same { IMPORT_DIFFER, IMPORT_SAME_FILE, IMPORT_SAME_BYTES };
enum import_same import_input_same(const struct import_input *a, const struct import_input *b);
void import_input_close(struct import_input *in);

#endif
