// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "tests/unit/tables_util.h"

enum { MOST_JOINED = 4 };

struct line {
	const char *at;
	size_t len;
};

static struct line next(const char **at, const char *end)
{
	const char *nl = memchr(*at, '\n', (size_t)(end - *at));
	struct line l = {*at, (size_t)((nl ? nl : end) - *at)};

	*at = nl ? nl + 1 : end;
	return l;
}

/* How much of it is there. */
static int rank(struct text_look look)
{
	if (look.match == TEXT_CUT)
		return look.damaged;
	if (look.damaged || look.note)
		return 2;
	return look.match == TEXT_MORE ? 3 : 4;
}

static bool blank(struct line l)
{
	for (size_t i = 0; i < l.len; i++)
		if (l.at[i] != ' ' && l.at[i] != '\t')
			return false;
	return true;
}

static const struct text_format *ask(const struct tables *t, struct line l, struct text_look *look)
{
	for (size_t i = 0; i < n_table_formats; i++) {
		*look = table_formats[i]->look(t, l.at, l.len);
		if (look->match != TEXT_NO)
			return table_formats[i];
	}
	return NULL;
}

static int count_and_take(struct tables *t, const struct text_format *f, struct line l,
			  struct text_look look, uint64_t number, bool joined, struct tally *n)
{
	bool dropped = look.match == TEXT_CUT && !look.damaged;

	n->damaged += dropped || look.damaged;
	n->dropped += dropped;
	n->rejoined += joined && !dropped && look.class == TEXT_ROW;
	if (dropped)
		return 0;
	n->notes += look.note;
	n->headings += look.class == TEXT_HEADING;
	n->rows += look.class == TEXT_ROW;
	n->stack += look.class == TEXT_STACK;
	n->messages += look.class == TEXT_MESSAGE;
	return f->take(t, l.at, l.len, &look, number);
}

/* The line, with as many of those behind it as make it whole. */
static int logical(struct tables *t, const struct text_format *f, struct line first,
		   struct text_look look, const char **at, const char *end, uint64_t *number,
		   struct tally *n)
{
	char *text = malloc((size_t)(end - first.at) + MOST_JOINED);
	const char *ahead = *at;
	struct line l = {text, first.len};
	uint64_t lines = 1, begun = *number;
	size_t best = first.len;
	int err;

	if (!text)
		return KVMSIM_ENOMEM;
	memcpy(text, first.at, first.len);
	for (unsigned i = 0;
	     i < MOST_JOINED && ahead < end && (look.match == TEXT_CUT || look.match == TEXT_MORE);
	     i++) {
		struct line more = next(&ahead, end);
		struct text_look other, whole;
		bool own;

		if (blank(more))
			break;
		own = ask(t, more, &other);
		text[l.len] = ' ';
		memcpy(text + l.len + 1, more.at, more.len);
		l.len += 1 + more.len;
		lines++;
		whole = f->look(t, l.at, l.len);
		/* what stands for itself is taken only for what lacks nothing then */
		if (whole.match == TEXT_NO || (own && rank(whole) < 4))
			break;
		if (rank(whole) <= rank(look))
			continue;
		look = whole;
		*at = ahead;
		*number = begun + lines - 1;
		best = l.len;
	}
	l.len = best;
	err = count_and_take(t, f, l, look, begun, best > first.len, n);
	free(text);
	return err;
}

int tables_feed(struct tables *t, const char *text, size_t len, struct tally *n)
{
	const char *at = text, *end = text + len;
	uint64_t number = 0;
	int err = 0;

	*n = (struct tally){0};
	while (!err && at < end) {
		struct line l = next(&at, end);
		const struct text_format *f;
		struct text_look look;
		bool nothing = blank(l);

		number++;
		f = nothing ? NULL : ask(t, l, &look);
		if (f) {
			err = logical(t, f, l, look, &at, end, &number, n);
			continue;
		}
		n->unknown += !nothing;
		for (size_t i = 0; i < n_table_formats; i++) {
			table_formats[i]->gap(t, nothing);
			if (!nothing && l.at[l.len - 1] == ':' && table_formats[i]->label)
				table_formats[i]->label(t, l.at, l.len);
		}
	}
	return err;
}
