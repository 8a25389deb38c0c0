/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_KERNEL_EVENTS_H
#define KVMSIM_KERNEL_EVENTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Counts the tracepoints of the groups kvm and kvmmmu, exactly: every record of the ring buffer is
 * read, and a record that the kernel had to drop is a failure. For one CPU.
 *
 * A tracepoint with fields worth telling apart is counted under its name and, besides, under
 * NAME[FIELDS], by the rules of events_fields.c.
 */
struct event_count {
	char name[96];
	uint64_t n;
};
#define EVENTS_MAX 256

/* Finds the tracepoints and enables them with tracing off; call it with kvm's modules loaded. */
void events_open(void);
void events_close(void);

void events_start(void); /* drops what is in the buffer, tracing on */
void events_stop(void);	 /* tracing off */
/* What happened between the last start and stop, sorted by first occurrence, each name once;
 * returns how many. */
size_t events_count(struct event_count counts[EVENTS_MAX]);

/* A line "HAS ev:NAME" for each tracepoint there is, and [] behind it where its fields are told
 * apart: where the kernel has all of them. */
void events_names(FILE *to);

/* As text, instead of being counted: a line of our own among the events, and what the last start
 * and stop saw, as the kernel prints it. */
void events_mark(const char *text);
void events_text(FILE *to);

/* ---- events_fields.c ---- */

#define EVENT_FIELDS 3
/* One tracepoint whose fields are told apart: up to three fields, the bits that matter, and how
 * their values are written between the brackets. */
struct event_detail {
	const char *event;
	struct {
		const char *name; /* NULL: no more */
		uint64_t mask;
	} field[EVENT_FIELDS];
	void (*format)(char *buf, size_t size, const uint64_t value[EVENT_FIELDS]);
};
/* What the tracepoint's file format says of the numbers of its fields: "print fmt: ..., REC->ret ==
 * 5" has the kernel's number of RET_PF_SPURIOUS. */
void event_detail_learn(const char *event, const char *format);
/* NULL: the tracepoint is only counted. */
const struct event_detail *event_detail(const char *event);

#endif
