/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_TEXT_PRIV_H
#define KVMSIM_TRACES_HOST_TEXT_PRIV_H

#include "traces/host/record.h"
#include "traces/host/special.h"
#include "traces/host/text.h"
#include "traces/host/transport.h"
#include "traces/tables/tables.h"

/* What the files of the text engine share: text.c reads, look.c says what a line is, join.c undoes
 * wraps, tell.c counts it and hands it on. */

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
	bool bare;	   /* of a record: in front of its name is no task */
	struct special_line special;
	struct text_look table;
	const struct text_format *format;
};

#define TEXT_WRAP_LEAST 40 /* columns of the narrowest terminal */
#define TEXT_COMMS	16 /* of tasks seen last, by tid */
#define TEXT_COMM_MAX	24

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
	bool pending_blank;   /* that ended in a blank */
	bool pending_vague;   /* it goes on, but two ways of joining give two results */
	char joined[2 * SOURCE_MAX_LINE + 64], trial[2 * SOURCE_MAX_LINE + 64];

	const struct text_format *last_format;
	size_t wrap_width;	      /* the widest line that was wrapped; 0: none was */
	size_t word_width;	      /* of lines that a terminal wrapped inside a word; 0: none */
	size_t widest;		      /* of all lines so far: a terminal wraps there */
	bool words_kept;	      /* lines were wrapped where a word did not fit */
	uint64_t have[HOST_N_EVENTS]; /* fields that records of the event had */
	bool ends_in_line;	      /* the last line read has no newline */
	enum { CHAIN_NONE, CHAIN_RECORD, CHAIN_FRAMES } chain; /* what the line before was */
	bool trace_seen;				       /* a line that only a trace has */
	bool nameless;	    /* lines of ftrace's options raw or hex, which print no names */
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

/* The line may go on: it waits for the next, as the pending one. */
void text_pend(struct text *t, const struct clean_line *c, const struct source_line *raw,
	       uint64_t number);
/* 1: the line was joined to the pending one; 0: it stands alone, and what was pending is told. */
int text_join(struct text *t, const struct clean_line *c, const struct source_line *raw, bool last);
/* What is pending goes out as it is. */
int text_flush(struct text *t, bool last);

/* Counts and hands on the line, which took @lines physical lines from @number on. */
int text_tell(struct text *t, const struct look *l, const char *line, size_t len, size_t lines,
	      uint64_t number, bool last);
/* The record in t->r, which is whole. */
int text_tell_record(struct text *t, size_t lines, uint64_t number);
/* The formats' states are told of a blank line or one of no format. */
void text_gap(struct text *t, bool blank);

#endif
