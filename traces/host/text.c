// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/text_priv.h"

#include <stdlib.h>

#include "traces/host/chars.h"

#define MIB (1u << 20)
/* A text without anything known in it, of which so much was read and a tenth is no text, is not
 * read to its end. */
#define ENOUGH_ODD MIB

static bool may_go_on(const struct look *l)
{
	return (l->match == TEXT_CUT && !l->table.bad) || l->match == TEXT_MORE;
}

/* Whether the next line begins with @words, behind quote marks. */
static bool next_begins(const struct text *t, const char *words)
{
	struct source_line next;
	const char *p, *end;

	if (!source_peek(t->source, &next))
		return false;
	p = next.at;
	end = p + next.len;
	while (p < end && (is(*p, CHAR_BLANK) || *p == '>'))
		p++;
	return begins(p, end, words);
}

static bool at_edge(const struct text *t, const struct source_line *raw)
{
	return raw->len >= TEXT_WRAP_LEAST && (raw->len == t->widest || raw->len == t->word_width);
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
		ret = text_flush(t, false);
		l = (struct look){0};
		return ret ? ret : text_tell(t, &l, c.at, c.len, 1, number, false);
	}
	if (c.soft && last && !c.len) { /* all of the line, and nothing follows */
		c.at = memrchr(raw->at, '=', raw->len);
		c.len = 1;
		c.soft = false;
	}
	ret = text_join(t, &c, raw, last);
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
	if (l.what == LOOK_SPECIAL && l.special.what == SPECIAL_ELISION && c.blank_end &&
	    c.at[c.len - 1] == '-')
		l = (struct look){0}; /* "-- ": a mail's signature follows */
	if (l.what == LOOK_SPECIAL && l.special.cut && at_edge(t, raw) && !next_begins(t, "#P:"))
		l.special.what = SPECIAL_HEADER; /* of a number */
	if (last || l.what == LOOK_SPECIAL)
		return text_tell(t, &l, c.at, c.len, 1, number, last);
	if (may_go_on(&l) || c.soft ||
	    (l.what == LOOK_RECORD && l.match == TEXT_WHOLE && t->r.any) ||
	    (l.match == TEXT_WHOLE && at_edge(t, raw))) {
		text_pend(t, &c, raw, number);
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

/* Whether the next line may be the rest of one that a terminal wrapped: not if it is indented, or
 * has a CPU's column. */
static bool next_is_rest(const struct text *t)
{
	struct source_line next;
	const char *p, *end;

	if (!source_peek(t->source, &next) || !next.len || is(*next.at, CHAR_BLANK))
		return false;
	end = next.at + (next.len < TEXT_COMM_MAX + 16 ? next.len : TEXT_COMM_MAX + 16);
	p = memchr(next.at, '[', end - next.at);
	return !p || end - p < 5 || !is(p[1], CHAR_DIGIT) || !is(p[3], CHAR_DIGIT) || p[4] != ']';
}

/* A comm that transport may have touched, or with something in front of it; one with a < tells of
 * a text that is not known yet to be HTML's. */
static bool odd_comm(const struct text *t, const struct host_event *e)
{
	bool tells = t->transport.html == HTML_UNTOLD && e->comm.len && *e->comm.at == '<';
	uint8_t all = 0;

	if (e->comm.len > 2 && (*e->comm.at == '=' || e->comm.at[1] == ' ' || e->comm.at[2] == ' '))
		return true;
	for (size_t i = 0; i < e->comm.len; i++) {
		all |= (uint8_t)e->comm.at[i];
		tells |= e->comm.at[i] == '&';
	}
	return tells || all & 0x80;
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
	    *line == '^' || line[len - 1] == '=' || (at_edge(t, raw) && next_is_rest(t)))
		return 0;
	record_read(&t->names, line, len, &t->r);
	if (t->r.how != RECORD_WHOLE || t->r.note || raw->cut || odd_comm(t, &t->r.e))
		return 0;
	if (t->r.any ? t->wrap_width || t->transport.quoted_printable || next_is_value(t)
		     : t->r.more[0] && next_goes_on(t))
		return 0;
	t->transport.open = false;
	t->transport.n_held = 0;
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
		if (line.len > t->widest)
			t->widest = line.len;
		ret = fast(t, &line, number);
		if (!ret)
			ret = slow(t, &line, number);
		if (ret < 0)
			return ret;
	}
	if (ret == 0 || ret == KVMSIM_EPARSE) {
		int end = text_flush(t, t->ends_in_line);

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
	if (t->nameless)
		return kvmsim_err(
			t->errors, KVMSIM_EPARSE,
			"%s: a trace with ftrace's option raw or hex on, which leaves out the "
			"names of events and all fields: record it again with both off",
			t->name);
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
