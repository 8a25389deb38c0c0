/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_DAT_FORMAT_H
#define KVMSIM_TRACES_HOST_DAT_FORMAT_H

#include "traces/host/dat_file.h"

/*
 * The text by which a kernel describes an event (events/SYSTEM/EVENT/format), and the page of its
 *ring buffer (events/header_page): lines name: sched_switch ID: 314 field:pid_t prev_pid;
 *offset:24;	size:4;	signed:1; print fmt: ... A line that is not so says nothing; no line is
 *believed more than that a record is long enough.
 */

/* Where a number is in a record. */
struct dat_place {
	uint16_t offset;
	uint8_t bytes; /* 1, 2, 4 or 8; 0: there is no such field */
	bool is_signed;
};
struct dat_format {
	struct host_text name, print; /* print: what stands behind "print fmt:" */
	int64_t id;		      /* -1: not said */
	struct host_text text;
};

/* The first lines of @text. Texts point into it. */
struct dat_format dat_format(const char *text, size_t len);
/* The field of that name; bytes 0 where there is none, or it is no number. */
struct dat_place dat_field(const struct dat_format *f, const char *name);

#endif
