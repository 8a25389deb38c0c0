/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_COLUMNS_H
#define KVMSIM_TRACES_HOST_COLUMNS_H

#include "traces/host/event.h"

/* The columns of a record in front of its event's name, as far as a tool prints them. */
enum columns {
	COLUMNS_NO,
	COLUMNS_TASK, /* the line may end inside a task column */
	COLUMNS_CUT,  /* the line ends behind the CPU or inside the time */
	COLUMNS_ALL,  /* *@name is where the event's name should begin */
};

/* Task (perf script may leave it out), CPU in brackets, flags, time: ftrace, trace-cmd report, perf
 * script. */
enum columns columns_bracket(struct host_event *e, const char *line, const char *end,
			     const char **name);
/* Without the CPU, or glued to the flags, or without a time, or nothing but the name of an event
 * with its system. *@sure: the name need not be known. */
enum columns columns_other(struct host_event *e, const char *line, const char *end,
			   const char **name, bool *sure);
/* "6220.118040:", "8122907125us :", "8122907125:" at @p: behind its colon, NULL if it is none, @end
 * if it ends there inside of it. */
const char *columns_time(struct host_event *e, const char *p, const char *end);
/* Latency flags: their number, 4 or 5; 0: it is none. */
unsigned columns_flags(const char *p, const char *end);

#endif
