// SPDX-License-Identifier: GPL-2.0-or-later
/* Lines that mail and terminals wrapped: which belong together, and whether a blank was between. */
#include "traces/host/text_priv.h"

#include "traces/host/chars.h"

int text_flush(struct text *t, bool last)
{
	struct look l;
	size_t len = t->pending_len, lines = t->pending_lines;

	if (!t->pending)
		return 0;
	t->pending = false;
	if (t->pending_soft && lines == 1)
		t->joined[len++] = '='; /* it was no soft break */
	text_look(t, t->joined, len, last, &l);
	if (t->pending_vague) {
		l.match = TEXT_CUT;
		l.table.damaged = false;
	} else if (l.what == LOOK_RECORD && l.match == TEXT_CUT && !last) {
		text_look_cut(t, t->joined, len, &l);
	}
	if (lines > 1 && l.what == LOOK_RECORD && t->pending_soft)
		t->transport.quoted_printable = true;
	return text_tell(t, &l, t->joined, len, lines, t->pending_number, last);
}

static bool blank_end(const struct source_line *raw)
{
	size_t n = raw->len;

	n -= n && raw->at[n - 1] == '\r';
	return n && is(raw->at[n - 1], CHAR_BLANK);
}

void text_pend(struct text *t, const struct clean_line *c, const struct source_line *raw,
	       uint64_t number)
{
	memcpy(t->joined, c->at, c->len);
	t->pending = true;
	t->pending_soft = c->soft;
	t->pending_lines = 1;
	t->pending_number = number;
	t->pending_len = c->len;
	t->pending_width = raw->len;
	t->pending_blank = blank_end(raw);
	t->pending_vague = false;
}

/* Whether @next goes on with a record of any text: it has a value with its name in front, or the
 * line before had no room for its first word. */
static bool wrapped_here(const struct text *t, const struct clean_line *next)
{
	const char *end = next->at + next->len, *p = skip_blanks(next->at, end),
		   *word = skip(p, end, CHAR_NAME);

	if (p > next->at)
		return false;
	return (word > p && word < end && *word == '=') ||
	       (t->wrap_width && t->pending_width + 1 + (to_blank(p, end) - p) > t->wrap_width);
}

/* Whether @with, which is the pending line and another, is better than the pending one alone. */
static bool joins(struct text *t, const struct look *was, const struct look *with,
		  const struct look *own, const struct clean_line *next, bool soft, bool last)
{
	if (with->what == LOOK_SPECIAL || with->what == LOOK_UNKNOWN)
		return soft && t->transport.quoted_printable && with->what == LOOK_UNKNOWN && !last;
	if (was->what == LOOK_TABLE)
		return with->what == LOOK_TABLE && with->match >= TEXT_CUT && !with->table.bad &&
		       with->table.class == was->table.class &&
		       (was->match == TEXT_CUT || soft ||
			(was->match == TEXT_MORE && !with->table.note));
	if (was->what == LOOK_UNKNOWN)
		return soft;
	if (with->what == LOOK_TABLE)
		return false;
	if (with->match == TEXT_NO)
		return false;
	if (with->what == LOOK_TASK)
		return soft;
	if (was->any)
		return soft || (own->what != LOOK_TASK && wrapped_here(t, next));
	if (soft)
		return t->transport.quoted_printable || !t->r.note ||
		       (!t->pending_soft && !with->damaged); /* glue() has looked */
	if (was->match == TEXT_CUT)
		return with->match == TEXT_CUT || !t->r.e.damaged || !t->r.note;
	return !t->r.note && with->damaged == was->damaged && was->match != TEXT_WHOLE;
}

/* The pending line with @next behind it, @between them; true: it has become the pending one. */
static bool try_join(struct text *t, const struct clean_line *next, const char *between, bool soft,
		     const struct look *was, const struct look *own, const struct source_line *raw,
		     bool last)
{
	size_t n = t->pending_len, room = sizeof(t->trial), add = strlen(between);
	const char *at = next->at;
	size_t len = next->len;
	struct look with;

	if (!soft)
		for (; len && is(*at, CHAR_BLANK); len--)
			at++;
	if (n + add + len + 2 > room)
		return false;
	memcpy(t->trial, t->joined, n);
	memcpy(t->trial + n, between, add);
	memcpy(t->trial + n + add, at, len);
	text_look(t, t->trial, n + add + len, last && !next->soft, &with);
	if (!joins(t, was, &with, own, next, soft, last))
		return false;
	if (!soft && with.what == LOOK_RECORD && t->pending_width > t->wrap_width)
		t->wrap_width = t->pending_width;
	t->words_kept |= !soft && !t->pending_blank && t->pending_width < t->widest &&
			 t->pending_width + 1 + (to_blank(at, at + len) - at) > t->widest;
	t->transport.quoted_printable |= t->pending_soft && soft && with.what == LOOK_RECORD;
	memcpy(t->joined, t->trial, n + add + len);
	t->pending_len = n + add + len;
	t->pending_lines++;
	t->pending_soft = next->soft;
	t->pending_width = raw->len;
	t->pending_blank = blank_end(raw);
	return true;
}

/* What the pending line with @next behind it is: TEXT_NO also if there is anything odd in it. A
 * record is in t->r then. @note: a record may have one. */
static enum text_match clean_with(struct text *t, const struct clean_line *next,
				  const char *between, const struct look *was, bool note, bool last)
{
	size_t n = t->pending_len, add = strlen(between);
	struct look with;

	memcpy(t->trial, t->joined, n);
	memcpy(t->trial + n, between, add);
	memcpy(t->trial + n + add, next->at, next->len);
	text_look(t, t->trial, n + add + next->len, last && !next->soft, &with);
	if (with.what == LOOK_TABLE && was->what == LOOK_TABLE &&
	    with.table.class == was->table.class && !with.table.note && !with.table.bad &&
	    (!with.table.damaged || (!add && with.match == TEXT_CUT))) /* it may be cut in a unit */
		return with.match;
	return with.what == LOOK_RECORD && (!with.damaged || with.any) && (note || !t->r.note)
		       ? with.match
		       : TEXT_NO;
}

enum glue {
	APART, /* a blank belongs between them, if anything */
	GLUED,
	VAGUE, /* either way is a record or row, and nothing tells which */
};

/* Both ways are equally good; of records @glued is the one, the other is in t->r. What has more
 * fields is right, and if they have the same it is all one. */
static enum glue decide(const struct text *t, const struct record *glued, const struct look *was,
			char next)
{
	const struct host_event *e = &t->r.e, *g = &glued->e;
	int more = __builtin_popcountll(g->have) - __builtin_popcountll(e->have);
	char before = t->joined[t->pending_len - 1];
	bool same = g->have == e->have;

	if (was->what == LOOK_TABLE) {
		if (was->table.class != TEXT_ROW || was->table.front || !is(next, CHAR_HEX) ||
		    !is(before, CHAR_HEX))
			return APART;
	} else {
		if (glued->any != t->r.any)
			return glued->any ? APART : GLUED;
		for (int f = 0; same && f < HOST_N_FIELDS; f++)
			same = !host_has(e, f) || e->v[f] == g->v[f];
		if (more || same || !is(next, CHAR_NAME) || !is(before, CHAR_NAME))
			return more > 0 ? GLUED : APART;
	}
	return t->word_width == t->pending_width ? GLUED : t->words_kept ? APART : VAGUE;
}

/* Terminals wrap at their last column, also inside a word: whether the pending line, whose look is
 * @was, and the next make sense only so. */
static enum glue glue(struct text *t, const struct clean_line *next, const struct look *was,
		      bool last)
{
	size_t n = t->pending_len;
	bool edge = t->pending_width == t->widest || t->pending_width == t->word_width;
	bool word_inside =
		n && next->len && is(t->joined[n - 1], CHAR_NAME) && is(*next->at, CHAR_NAME);
	enum text_match with, apart;
	struct record glued;
	bool known;
	struct look own;

	if (t->pending_soft || t->pending_blank || t->pending_width < TEXT_WRAP_LEAST || !n ||
	    !next->len || n + next->len + 3 > sizeof(t->trial) || is(*next->at, CHAR_BLANK) ||
	    (!edge && was->match != TEXT_CUT) || was->what == LOOK_UNKNOWN)
		return APART;
	with = clean_with(t, next, "", was, false, last);
	glued = t->r;
	known = !glued.any && glued.e.name.len && glued.e.id != HOST_OTHER;
	apart = clean_with(t, next, " ", was, false, last);
	if (with == TEXT_NO && apart == TEXT_NO && word_inside && was->what == LOOK_RECORD &&
	    clean_with(t, next, " ", was, true, last) == TEXT_NO)
		with = clean_with(t, next, "", was, true, last); /* with a note behind */
	/* a terminal would have a blank there */
	t->words_kept |= with == TEXT_NO && apart != TEXT_NO && edge && word_inside;
	if (with == TEXT_NO || (apart != TEXT_NO && !edge) ||
	    (apart >= TEXT_MORE && with == TEXT_CUT && !(t->r.any && known)))
		return APART;
	if (apart != TEXT_NO && (apart >= TEXT_MORE || with == TEXT_CUT || glued.any))
		return decide(t, &glued, was, *next->at);
	/* what is whole goes on with what is nothing by itself */
	text_look(t, next->at, next->len, false, &own);
	if (was->match != TEXT_CUT &&
	    (own.what == LOOK_RECORD || (own.what == LOOK_TABLE && own.match != TEXT_CUT)))
		return APART;
	t->word_width = t->pending_width;
	return GLUED;
}

/* The line in front of its event's name was wrapped, so that the rest looks like a record without a
 * task. */
static bool wrapped_columns(struct text *t, const struct look *own)
{
	struct look was;

	if (own->what != LOOK_RECORD || !own->bare)
		return false;
	text_look(t, t->joined, t->pending_len, false, &was);
	return was.what == LOOK_TASK ||
	       (was.what == LOOK_RECORD && was.match == TEXT_CUT && !t->r.e.name.len);
}

int text_join(struct text *t, const struct clean_line *c, const struct source_line *raw, bool last)
{
	struct look was, own;
	bool blank;

	if (!t->pending)
		return 0;
	blank = skip_blanks(c->at, c->at + c->len) == c->at + c->len && !c->soft;
	if (!blank && (!text_starts(t, c->at, c->len, &own) || wrapped_columns(t, &own) ||
		       (t->pending_soft && own.what == LOOK_SPECIAL))) {
		enum glue how;

		text_look(t, t->joined, t->pending_len, false, &was);
		if (t->pending_soft && try_join(t, c, "", true, &was, &own, raw, last))
			return 1;
		how = glue(t, c, &was, last);
		if (how == GLUED && try_join(t, c, "", true, &was, &own, raw, last))
			return 1;
		if (try_join(t, c, t->pending_soft ? "= " : " ", false, &was, &own, raw, last)) {
			t->pending_vague |= how == VAGUE;
			return 1;
		}
		if (t->pending_soft && try_join(t, c, "=", false, &was, &own, raw, last))
			return 1;
	}
	return text_flush(t, false);
}
