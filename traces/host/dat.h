/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_DAT_H
#define KVMSIM_TRACES_HOST_DAT_H

#include "traces/host/host.h"

/*
 * trace.dat, the binary file of trace-cmd, versions 6 and 7, of either byte order, packed with zstd
 * or zlib or not, by trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). Not through libtracecmd and
 * libtraceevent (3.1.6, 1.7.1), with which tests/unit/test_dat.c compares every record: they refuse
 * a file that is cut, crash on one that is damaged, believe the sizes in it, print, and leave
 * unpacked data in /tmp.
 *
 * Events come by time over all CPUs and buffers, one of equal times from the first buffer and the
 * lowest CPU first, as `trace-cmd report` has them. Fields are the record's, nothing is printed and
 * read again. Losses come before the event that they were noted at.
 */

/* Whether a file that begins with @head is a trace.dat, of whatever version. */
bool host_is_dat(const void *head, size_t len);

/*
 * Reads @path ("-": stdin; what is no regular file is copied to an unnamed temporary one). Tells
 * @errors, and goes on, where the file is cut (KVMSIM_ETORN: every whole page in it is read), where
 * a page is damaged, where a buffer has another clock than the first (it is left out: clocks are
 * not mixed), where times are no ns, and where the file is a guest's. Counts: bytes, records, loss
 * markers, damaged_lines (records and pages that cannot be read). Refused as HOST_TRUNCATED_DAT
 * (result->dat has what the head tells): no event's format, or no table of the CPUs' data. Errors:
 * host_read()'s; KVMSIM_EVERSION.
 */
int host_read_dat(const char *path, const struct host_opts *opts, const struct host_sink *sink,
		  const struct kvmsim_errsink *errors, struct host_result *result);

/* The same from an open file, read from its beginning if it can be, else @head (of @len bytes) was
 * read from it before. @name is for messages. Does not close @fd. */
int host_read_dat_fd(int fd, const char *name, const void *head, size_t len,
		     const struct host_opts *opts, const struct host_sink *sink,
		     const struct kvmsim_errsink *errors, struct host_result *result);

#endif
