/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_RECORD_H
#define KVMSIM_TRACES_HOST_RECORD_H

#include "traces/host/grammar.h"

/*
 * One line as a record of ftrace, trace-cmd report or perf script: the columns in front (whose form
 * is told for each line), the event's name, its fields. Not for damage of the transport, which is
 * undone before, and not for wraps, which text.c joins.
 */
struct record_name {	      /* of one event, in the cache */
	uint64_t first, last; /* its first and last 8 bytes */
	uint32_t len;
	uint8_t id, layout; /* layout: the one that matched last */
	const struct grammar *grammar;
	char name[64];
};

#define RECORD_NAMES 512
struct record_names {
	struct record_name of[RECORD_NAMES];
};

enum record_how {
	RECORD_NO,
	RECORD_TASK,  /* nothing but what may be a task column, or ends before an event's name */
	RECORD_CUT,   /* ends inside: at the earliest behind the CPU or time column */
	RECORD_BAD,   /* columns and name are there, the fields are not what they should be */
	RECORD_STACK, /* the pseudo-record <stack trace>, kernel_stack and the like */
	RECORD_WHOLE,
};

struct record {
	struct host_event e; /* its texts are in the line */
	enum record_how how;
	bool note;    /* free text behind the last field */
	bool failed;  /* [FAILED TO PARSE], and otherwise fine */
	bool any;     /* an event whose fields are not known here: any text is whole */
	bool brief;   /* whole, but its last number has fewer digits than are printed */
	char more[4]; /* as struct matched */
};

/* Clean lines only. The fields of @r->e are those of @how WHOLE. */
void record_read(struct record_names *names, const char *line, size_t len, struct record *r);
/* The same of a line with something foreign in it, e.damaged is then set. @scratch has room for
 * @len + 16 bytes, and e's texts may be in it. */
void record_read_damaged(struct record_names *names, const char *line, size_t len, char *scratch,
			 struct record *r);

/* The name's entry, of any event. */
struct record_name *record_name_find(struct record_names *names, const char *name, size_t len);

#endif
