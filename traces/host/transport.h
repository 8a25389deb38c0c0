/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_TRANSPORT_H
#define KVMSIM_TRACES_HOST_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "traces/host/source.h"

#define TRANSPORT_HELD 5 /* bytes of the longest blank, less one */

/* What mail, terminals and logs did to a line, undone. */
struct transport {
	bool quoted_printable;			      /* the text was seen to be */
	enum { HTML_UNTOLD, HTML_NO, HTML_YES } html; /* it has entities for < and > */
	bool open; /* the line before ended in a = and had nothing in front */
	size_t n_held;
	char held[3 * TRANSPORT_HELD]; /* "=C3=AF" of a character that a soft break has split */
	char line[SOURCE_MAX_LINE + 3 * TRANSPORT_HELD + 1];
};

struct clean_line {
	const char *at; /* in the line as it was, or in struct transport */
	size_t len;
	bool soft;	/* ended in a =, which is not in it any more: a soft break, perhaps */
	bool blank_end; /* blanks were behind */
};

/*
 * Takes off: CR at the end, quote marks at the start (any mix of > and blanks), the prefix of a
 * kernel log or of syslog, ^C and ^D glued to the front. Blanks: no-break spaces, replacement
 * characters, what either becomes when UTF-8 is taken for Latin-1, control characters. Decodes
 * =3D, and in a text of quoted-printable the rest; the entities of a text whose first < or > is
 * one. Valid until the next call.
 */
void transport_undo(struct transport *t, const char *line, size_t len, struct clean_line *out);

#endif
