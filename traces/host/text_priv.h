/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_TEXT_PRIV_H
#define KVMSIM_TRACES_HOST_TEXT_PRIV_H

#include "traces/host/record.h"
#include "traces/host/special.h"
#include "traces/host/text.h"
#include "traces/host/transport.h"
#include "traces/tables/tables.h"

/* What the files of the text engine share: text.c reads, look.c says what a line is, tell.c counts
 * it and hands it on. */

enum look_what {
	LOOK_UNKNOWN,
	LOOK_SPECIAL,
	LOOK_RECORD,
	LOOK_TASK, /* a record's task column alone, perhaps */
	LOOK_TABLE,
};

struct look {
	enum look_what what;
	enum text_match match;
	bool any, damaged; /* of a record, as struct record has them */
	struct special_line special;
	struct text_look table;
	const struct text_format *format;
};

#define TEXT_COMMS    16 /* of tasks seen last, by tid */
#define TEXT_COMM_MAX 24

struct text {
	struct source *source;
	const char *name;
	const struct host_opts *opts;
	const struct host_sink *sink;
	const struct kvmsim_errsink *errors;
	struct host_result *result;
	struct host_counts *counts;
	struct tables *tables, own; /* own: when nobody takes them */

	struct record r; /* as the last look left it; its texts are in the line or in scratch */
	struct record_names names;
	struct transport transport;
	char scratch[2 * SOURCE_MAX_LINE + 64];

	/* A logical line that may go on. */
	bool pending;
	bool pending_soft; /* its end was a = */
	size_t pending_lines;
	uint64_t pending_number; /* of its first physical line */
	size_t pending_len;
	size_t pending_width; /* bytes of its last physical line */
	char joined[2 * SOURCE_MAX_LINE + 64], trial[2 * SOURCE_MAX_LINE + 64];

	const struct text_format *last_format;
	size_t wrap_width;	      /* the widest line that was wrapped; 0: none was */
	size_t word_width;	      /* of lines that a terminal wrapped inside a word; 0: none */
	uint64_t have[HOST_N_EVENTS]; /* fields that records of the event had */
	bool ends_in_line;	      /* the last line read has no newline */
	bool in_stack;
	bool trace_seen;    /* a line that only a trace has */
	uint64_t odd_bytes; /* of no text */
	uint64_t progress_at;
	struct {
		int64_t tid;
		uint8_t len;
		char comm[TEXT_COMM_MAX];
	} comm[TEXT_COMMS];
};

/* What the line is. Fills t->r for records. @last: the file ends behind it, without a newline. */
void text_look(struct text *t, const char *line, size_t len, bool last, struct look *l);
/* A record that ends too early, and that nothing goes on with: it may only lack a bracket. */
void text_look_cut(struct text *t, const char *line, size_t len, struct look *l);
/* Whether the line begins something itself, whatever it might go on with. */
bool text_starts(struct text *t, const char *line, size_t len, struct look *l);

/* Counts and hands on the line, which took @lines physical lines from @number on. */
int text_tell(struct text *t, const struct look *l, const char *line, size_t len, size_t lines,
	      uint64_t number, bool last);
/* The record in t->r, which is whole. */
int text_tell_record(struct text *t, size_t lines, uint64_t number);
/* The formats' states are told of a blank line or one of no format. */
void text_gap(struct text *t, bool blank);

#endif
