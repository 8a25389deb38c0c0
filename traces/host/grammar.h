/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_GRAMMAR_H
#define KVMSIM_TRACES_HOST_GRAMMAR_H

#include "traces/host/event.h"

/*
 * What the text behind an event's name looks like: per event a few layouts (of the kernel's eras,
 * of libtraceevent's plugins), each a row of steps. Blanks before a step do not count. Not for
 * anything outside of the text engine.
 */
enum step_kind {
	STEP_END,
	STEP_LIT,    /* these bytes; a blank in them is one or more, or the end of the line */
	STEP_HEX,    /* with or without 0x; @len: at least so many digits are printed */
	STEP_DEC,    /* perhaps negative */
	STEP_WORD,   /* up to a blank or closing bracket; passed over */
	STEP_FIRST,  /* the first character of a word */
	STEP_REASON, /* of an exit: a name or number, then what is printed behind it, to "rip" */
	STEP_ERRNO_WORD, /* the reason of kvm_userspace_exit */
	STEP_PFERR,	 /* names of error code bits with | between; none before the text of @lit */
	STEP_LOCKFLAGS,	 /* the same, of lock contention */
	STEP_ONE,	 /* one of the words of @lit with commas between; value: its place % @len */
	STEP_ACCESS,	 /* "wu-" */
	STEP_ROLE,	 /* words of a role, up to the text of @lit */
	STEP_BYTES,	 /* two digits each, any number */
	STEP_BYTES1,	 /* the same, at least one */
	STEP_UPTO,	 /* anything up to the text of @lit, which is passed over */
	STEP_COMM_PID,	 /* "comm:123", a plugin's: @field takes the number */
	STEP_COMMA,	 /* may be there */
	STEP_OPT,	 /* the next @len steps may be missing, all or none */
	STEP_PUT,	 /* @field becomes @len */
	STEP_REST,	 /* anything, at least a character */
};

struct step {
	uint8_t kind, field, len;
	const char *lit;
};

#define STEP_NO_FIELD HOST_N_FIELDS

#define GRAMMAR_LAYOUTS 8
struct grammar {
	const char *name;
	const struct step *layout[GRAMMAR_LAYOUTS];
};

extern const struct grammar host_grammars_exits[], host_grammars_mmu[], host_grammars_rest[];
extern const size_t host_n_grammars_exits, host_n_grammars_mmu, host_n_grammars_rest;

/* NULL: any text will do. */
const struct grammar *host_grammar_find(const char *name, size_t len);

struct matched {
	enum { MATCH_BAD, MATCH_CUT, MATCH_WHOLE } how;
	const char *rest; /* WHOLE: behind the last field, at something else than a blank, or at
			     the end. Else where it failed. */
	char more[4];	  /* WHOLE, rest is the end: what longer texts would go on with begins
				with one of these; 0: no more of them */
	unsigned foreign; /* things that were passed over, brackets that were missing */
	bool needs_next;  /* the last number has fewer digits than are printed */
};

/* Matches [@p, @end) and fills the fields of @e. @first: the layout to try first, replaced by the
 * one that matched. @tolerant: a foreign character between two columns and a missing closing
 * bracket are let pass. */
struct matched grammar_match(const struct grammar *g, const char *p, const char *end, bool tolerant,
			     uint8_t *first, struct host_event *e);

/* The fields of "name=value name=value" by the kernel's names (raw.c); WHOLE or BAD. @decimal: all
 * numbers without 0x are, else those are hex that the event's usual text has as bare hex. */
struct matched grammar_raw(const char *p, const char *end, bool decimal, struct host_event *e);

/* The macros that grammars are written in. */
#define L(s)                                                                                       \
	{                                                                                          \
		STEP_LIT, STEP_NO_FIELD, sizeof(s) - 1, s                                          \
	}
#define X(f)                                                                                       \
	{                                                                                          \
		STEP_HEX, HOST_F_##f, 0, NULL                                                      \
	}
#define XW(f, w)                                                                                   \
	{                                                                                          \
		STEP_HEX, HOST_F_##f, w, NULL                                                      \
	}
#define X_                                                                                         \
	{                                                                                          \
		STEP_HEX, STEP_NO_FIELD, 0, NULL                                                   \
	}
#define XW_(w)                                                                                     \
	{                                                                                          \
		STEP_HEX, STEP_NO_FIELD, w, NULL                                                   \
	}
#define D(f)                                                                                       \
	{                                                                                          \
		STEP_DEC, HOST_F_##f, 0, NULL                                                      \
	}
#define D_                                                                                         \
	{                                                                                          \
		STEP_DEC, STEP_NO_FIELD, 0, NULL                                                   \
	}
#define WORD                                                                                       \
	{                                                                                          \
		STEP_WORD, STEP_NO_FIELD, 0, NULL                                                  \
	}
#define FIRST(f)                                                                                   \
	{                                                                                          \
		STEP_FIRST, HOST_F_##f, 0, NULL                                                    \
	}
#define REASON                                                                                     \
	{                                                                                          \
		STEP_REASON, HOST_F_reason, 0, NULL                                                \
	}
#define ONE(f, n, s)                                                                               \
	{                                                                                          \
		STEP_ONE, HOST_F_##f, n, s                                                         \
	}
#define ONE_(s)                                                                                    \
	{                                                                                          \
		STEP_ONE, STEP_NO_FIELD, 1, s                                                      \
	}
#define OPT(n)                                                                                     \
	{                                                                                          \
		STEP_OPT, STEP_NO_FIELD, n, NULL                                                   \
	}
#define COMMA                                                                                      \
	{                                                                                          \
		STEP_COMMA, STEP_NO_FIELD, 0, NULL                                                 \
	}
#define REST                                                                                       \
	{                                                                                          \
		STEP_REST, STEP_NO_FIELD, 0, NULL                                                  \
	}
#define PUT(f, v)                                                                                  \
	{                                                                                          \
		STEP_PUT, HOST_F_##f, v, NULL                                                      \
	}
#define UPTO(s)                                                                                    \
	{                                                                                          \
		STEP_UPTO, STEP_NO_FIELD, sizeof(s) - 1, s                                         \
	}
#define LAYOUT(...)                                                                                \
	(const struct step[])                                                                      \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			STEP_END, STEP_NO_FIELD, 0, NULL                                           \
		}                                                                                  \
	}

#endif
