// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/text_priv.h"

#include <stdlib.h>

#include "traces/host/chars.h"

#define MIB (1u << 20)
/* A text without anything known in it, of which so much was read and a tenth is no text, is not
 * read to its end. */
#define ENOUGH_ODD MIB
#define WRAP_LEAST 40 /* columns of the narrowest terminal */

static bool may_go_on(const struct look *l)
{
	return l->match == TEXT_CUT || l->match == TEXT_MORE;
}

/* What is pending goes out as it is. */
static int flush(struct text *t, bool last)
{
	struct look l;
	size_t len = t->pending_len, lines = t->pending_lines;

	if (!t->pending)
		return 0;
	t->pending = false;
	if (t->pending_soft && lines == 1)
		t->joined[len++] = '='; /* it was no soft break */
	text_look(t, t->joined, len, last, &l);
	if (l.what == LOOK_RECORD && l.match == TEXT_CUT && !last)
		text_look_cut(t, t->joined, len, &l);
	if (lines > 1 && l.what == LOOK_RECORD && t->pending_soft)
		t->transport.quoted_printable = true;
	return text_tell(t, &l, t->joined, len, lines, t->pending_number, last);
}

static void pend(struct text *t, const struct clean_line *c, size_t width, uint64_t number)
{
	memcpy(t->joined, c->at, c->len);
	t->pending = true;
	t->pending_soft = c->soft;
	t->pending_lines = 1;
	t->pending_number = number;
	t->pending_len = c->len;
	t->pending_width = width;
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
		return with->what == LOOK_TABLE && with->match >= TEXT_CUT &&
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
	if (was->match == TEXT_CUT)
		return with->match == TEXT_CUT || !t->r.e.damaged || !t->r.note;
	return !t->r.note && with->damaged == was->damaged && (was->match != TEXT_WHOLE || soft);
}

/* The pending line with @next behind it, @between them; true: it has become the pending one. */
static bool try_join(struct text *t, const struct clean_line *next, const char *between, bool soft,
		     const struct look *was, const struct look *own, size_t width, bool last)
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
	t->transport.quoted_printable |= t->pending_soft && soft && with.what == LOOK_RECORD;
	memcpy(t->joined, t->trial, n + add + len);
	t->pending_len = n + add + len;
	t->pending_lines++;
	t->pending_soft = next->soft;
	t->pending_width = width;
	return true;
}

/* The pending line with @next behind it is a record without anything odd. */
static bool clean_with(struct text *t, const struct clean_line *next, const char *between,
		       bool last)
{
	size_t n = t->pending_len, add = strlen(between);
	struct look with;

	memcpy(t->trial, t->joined, n);
	memcpy(t->trial + n, between, add);
	memcpy(t->trial + n + add, next->at, next->len);
	text_look(t, t->trial, n + add + next->len, last && !next->soft, &with);
	return with.what == LOOK_RECORD && with.match != TEXT_NO && !with.damaged && !t->r.note;
}

/* Terminals wrap at their last column, also inside a word: whether the two make sense only so. */
static bool broken_word(struct text *t, const struct clean_line *next, bool last)
{
	size_t n = t->pending_len;

	if (t->pending_width < WRAP_LEAST || !n || !next->len ||
	    n + next->len + 3 > sizeof(t->trial) || is(t->joined[n - 1], CHAR_BLANK) ||
	    is(*next->at, CHAR_BLANK) || clean_with(t, next, " ", last) ||
	    !clean_with(t, next, "", last))
		return false;
	t->word_width = t->pending_width;
	return true;
}

/* 1: the line was joined to the pending one. */
static int join(struct text *t, const struct clean_line *c, size_t width, bool last)
{
	struct look was, own;
	bool blank;

	if (!t->pending)
		return 0;
	blank = skip_blanks(c->at, c->at + c->len) == c->at + c->len && !c->soft;
	if (!blank && (!text_starts(t, c->at, c->len, &own) ||
		       (t->pending_soft && own.what == LOOK_SPECIAL))) {
		text_look(t, t->joined, t->pending_len, false, &was);
		if (t->pending_soft && try_join(t, c, "", true, &was, &own, width, last))
			return 1;
		if (!t->pending_soft && broken_word(t, c, last) &&
		    try_join(t, c, "", true, &was, &own, width, last))
			return 1;
		if (try_join(t, c, t->pending_soft ? "= " : " ", false, &was, &own, width, last))
			return 1;
	}
	return flush(t, false);
}

static int slow(struct text *t, const struct source_line *raw, uint64_t number)
{
	struct clean_line c;
	struct look l;
	bool last = !raw->newline;
	int ret;

	if (!t->counts->records && !t->counts->rows)
		for (size_t i = 0; i < raw->len; i++)
			t->odd_bytes += (uint8_t)raw->at[i] < 0x20 && raw->at[i] != '\t' &&
					raw->at[i] != '\r' && raw->at[i] != 0x1b;
	transport_undo(&t->transport, raw->at, raw->len, &c);
	if (raw->cut) {
		ret = flush(t, false);
		l = (struct look){0};
		return ret ? ret : text_tell(t, &l, c.at, c.len, 1, number, false);
	}
	ret = join(t, &c, raw->len, last);
	if (ret)
		return ret < 0 ? ret : 0;
	if (c.soft && last) { /* nothing follows: a = like any other */
		memcpy(t->joined, c.at, c.len);
		t->joined[c.len] = '=';
		c.at = t->joined;
		c.len++;
		c.soft = false;
	}
	text_look(t, c.at, c.len, last, &l);
	if (last || l.what == LOOK_SPECIAL)
		return text_tell(t, &l, c.at, c.len, 1, number, last);
	if (may_go_on(&l) ||
	    (c.soft && (l.what != LOOK_UNKNOWN || t->transport.quoted_printable)) ||
	    (l.what == LOOK_RECORD && l.match == TEXT_WHOLE &&
	     (t->r.any || raw->len == t->word_width))) {
		pend(t, &c, raw->len, number);
		return 0;
	}
	if (c.soft) {
		memcpy(t->joined, c.at, c.len);
		t->joined[c.len] = '=';
		c.at = t->joined;
		c.len++;
	}
	return text_tell(t, &l, c.at, c.len, 1, number, false);
}

/* Whether the next line may go on with what a longer text of the record has. */
static bool next_goes_on(const struct text *t)
{
	struct source_line next;
	const char *p, *end;

	if (!source_peek(t->source, &next))
		return false;
	p = next.at;
	end = p + next.len;
	while (p < end && (is(*p, CHAR_BLANK) || *p == '>'))
		p++;
	return p < end && (*p == t->r.more[0] || *p == t->r.more[1] || *p == t->r.more[2] ||
			   *p == t->r.more[3]);
}

/* Whether the next line begins with "name=", behind quote marks. */
static bool next_is_value(const struct text *t)
{
	struct source_line next;
	const char *p, *q, *end;

	if (!source_peek(t->source, &next))
		return false;
	p = next.at;
	end = p + next.len;
	while (p < end && (is(*p, CHAR_BLANK) || *p == '>'))
		p++;
	q = skip(p, end, CHAR_NAME);
	return q > p && q < end && *q == '=';
}

/* A clean record. 1: it was told. */
static inline int fast(struct text *t, const struct source_line *raw, uint64_t number)
{
	const char *line = raw->at;
	size_t len = raw->len;
	int ret;

	if (len && line[len - 1] == '\r')
		len--;
	if (t->pending || !raw->newline || !len || *line == '>' || *line == '[' || *line == '#' ||
	    *line == '^' || line[len - 1] == '=' || raw->len == t->word_width)
		return 0;
	record_read(&t->names, line, len, &t->r);
	if (t->r.how != RECORD_WHOLE || t->r.note || raw->cut)
		return 0;
	if (t->r.any ? t->wrap_width || t->transport.quoted_printable || next_is_value(t)
		     : t->r.more[0] && next_goes_on(t))
		return 0;
	ret = text_tell_record(t, 1, number);
	return ret < 0 ? ret : 1;
}

static int read_all(struct text *t)
{
	struct source_line line;
	int ret;

	while ((ret = source_next(t->source, &line)) > 0) {
		uint64_t number = ++t->counts->lines;

		t->counts->bytes = source_bytes(t->source);
		if (t->counts->bytes >= t->progress_at) {
			t->progress_at = t->counts->bytes + MIB;
			if (t->opts->interrupted && *t->opts->interrupted)
				return KVMSIM_EINTR;
			if (t->opts->progress)
				t->opts->progress(t->opts->progress_ctx, t->counts->bytes);
			if (t->odd_bytes > ENOUGH_ODD / 10 && !t->counts->records &&
			    !t->counts->rows)
				return 0;
		}
		t->ends_in_line = !line.newline;
		ret = fast(t, &line, number);
		if (!ret)
			ret = slow(t, &line, number);
		if (ret < 0)
			return ret;
	}
	if (ret == 0 || ret == KVMSIM_EPARSE) {
		int end = flush(t, t->ends_in_line);

		ret = end < 0 ? end : ret;
	}
	return ret;
}

static int refuse(struct text *t)
{
	struct host_result *r = t->result;

	t->counts->blank = !t->counts->records && !t->counts->rows && !t->counts->unknown_lines &&
			   !t->counts->damaged_lines && !t->counts->elisions && !t->trace_seen;
	if (t->counts->records || t->counts->rows || t->trace_seen)
		return 0;
	if (t->odd_bytes) {
		r->refusal = HOST_BINARY;
		return kvmsim_err(
			t->errors, KVMSIM_EPARSE,
			"%s: binary, of no known form: expected a trace of KVM as text, a "
			"trace.dat or a .kvt",
			t->name);
	}
	if (t->counts->blank) {
		r->refusal = HOST_EMPTY;
		return kvmsim_err(t->errors, KVMSIM_EPARSE, "%s: empty", t->name);
	}
	r->refusal = HOST_NO_KVM_CONTENT;
	return kvmsim_err(
		t->errors, KVMSIM_EPARSE,
		"%s: none of its %llu lines is a record of a trace or a row of a known table",
		t->name, (unsigned long long)t->counts->lines);
}

int host_read_text(struct source *source, const char *name, const struct host_opts *opts,
		   const struct host_sink *sink, const struct kvmsim_errsink *errors,
		   struct host_result *result)
{
	struct text *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", name);
	t->source = source;
	t->name = name;
	t->opts = opts;
	t->sink = sink;
	t->errors = errors;
	t->result = result;
	t->counts = &result->counts;
	t->progress_at = MIB;
	t->tables = opts->tables;
	ret = 0;
	if (!t->tables) {
		ret = tables_init(&t->own);
		t->tables = &t->own;
	}
	if (!ret) {
		tables_use_csv(t->tables, opts->csv);
		ret = read_all(t);
	}
	if (!ret)
		ret = refuse(t);
	if (t->tables == &t->own)
		tables_free(&t->own);
	free(t);
	return ret;
}
