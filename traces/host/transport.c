// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/transport.h"

#include "traces/host/chars.h"

#define N_BLANKS (sizeof(blanks_of) / sizeof(*blanks_of))

/* Bytes that count as one blank. */
static const struct {
	uint8_t len;
	uint8_t byte[6];
} blanks_of[] = {
	{6, {0xc3, 0xaf, 0xc2, 0xbf, 0xc2, 0xbd}}, /* U+FFFD twice encoded */
	{4, {0xc3, 0x82, 0xc2, 0xa0}},		   /* U+00A0 twice encoded */
	{3, {0xef, 0xbf, 0xbd}},		   /* U+FFFD */
	{3, {0xe2, 0x80, 0xaf}},		   /* U+202F */
	{3, {0xe2, 0x80, 0x87}},		   /* U+2007 */
	{3, {0xef, 0xbb, 0xbf}},		   /* byte order mark */
	{2, {0xc2, 0xa0}},			   /* U+00A0 */
	{1, {0xa0}},				   /* the same in Latin-1 */
};

/* Those at @p: their number, or 0. */
static unsigned blank_bytes(const uint8_t *p, const uint8_t *end)
{
	if (*p < 0x20 || *p == 0x7f)
		return 1;
	if (*p < 0x80)
		return 0;
	for (size_t i = 0; i < N_BLANKS; i++)
		if (end - p >= blanks_of[i].len && !memcmp(p, blanks_of[i].byte, blanks_of[i].len))
			return blanks_of[i].len;
	return 0;
}

static bool plain(const char *p, const char *end)
{
	for (; p < end; p++)
		if (((uint8_t)*p < 0x20 && *p != '\t') || (uint8_t)*p >= 0x7f)
			return false;
	return true;
}

/* Bytes of a character in UTF-8 that begins with @lead; 1: it is none. */
static unsigned utf8_bytes(int lead)
{
	return lead >= 0xc2 && lead < 0xe0   ? 2
	       : lead >= 0xe0 && lead < 0xf0 ? 3
	       : lead >= 0xf0 && lead < 0xf5 ? 4
					     : 1;
}

static size_t blanks(char *p, size_t len)
{
	const uint8_t *from = (const uint8_t *)p, *end = from + len;
	char *to = p;

	while (from < end) {
		unsigned n = *from == '\t' ? 0 : blank_bytes(from, end), more = 1;

		if (n) {
			*to++ = ' ';
			from += n;
			continue;
		}
		/* a byte inside of a character is no blank, whatever it is in Latin-1 */
		n = utf8_bytes(*from);
		while (more < n && more < (size_t)(end - from) && from[more] >> 6 == 2)
			more++;
		n = more == n ? n : 1;
		memmove(to, from, n);
		to += n;
		from += n;
	}
	return to - p;
}

static int upper_hex(char c)
{
	return c >= 'a' ? 255 : hex_value[(uint8_t)c];
}

/* The byte that "=XX" at @p stands for, or -1. */
static int coded(const char *p, const char *end)
{
	int high, low;

	if (end - p < 3 || *p != '=')
		return -1;
	high = upper_hex(p[1]);
	low = upper_hex(p[2]);
	return high < 16 && low < 16 ? high << 4 | low : -1;
}

/* The bytes of a character beyond ASCII that "=C2=A0" at @p stands for; 0: it is none. */
static unsigned coded_utf8(const char *p, const char *end)
{
	unsigned n = utf8_bytes(coded(p, end)), i = 1;

	while (i < n && coded(p + 3 * i, end) >> 6 == 2)
		i++;
	return n > 1 && i == n ? n : 0;
}

/* Whether something shows that a line is coded: =3D, a character beyond ASCII, or a blank at its
 * end behind what is no field's name ("6=20", but not "pid=20"). */
static bool shows_code(const char *line, const char *end)
{
	const char *p = line, *w = end - 3;

	while ((p = memchr(p, '=', end - p))) {
		if (coded(p, end) == '=' || coded_utf8(p, end))
			return true;
		p++;
	}
	if (end - line < 4 || (coded(w, end) != ' ' && coded(w, end) != '\t'))
		return false;
	for (p = w; p > line && is(p[-1], CHAR_NAME); p--)
		;
	return p == w || is(*p, CHAR_DIGIT) || (p > line && !is(p[-1], CHAR_BLANK));
}

/*
 * Decodes =3D, blanks and characters beyond ASCII. @all: every =XX, in a text whose every = should
 * be one.
 */
static size_t decode(char *p, size_t len, bool all)
{
	const char *from = p, *end = p + len;
	char *to = p;

	while (from < end) {
		int c = coded(from, end);
		unsigned n = coded_utf8(from, end);

		if (n) {
			for (; n; n--, from += 3)
				*to++ = (char)coded(from, end);
		} else if (c >= 0 && (all || c == '=' || c == ' ' || c == '\t')) {
			*to++ = (char)c;
			from += 3;
		} else {
			*to++ = *from++;
		}
	}
	return to - p;
}

/* Whether more bytes must follow the @n at @b, so that they are a character, or one blank. */
static bool begins_character(const uint8_t *b, unsigned n)
{
	unsigned i = 1;

	while (i < n && b[i] >> 6 == 2)
		i++;
	if (i == n && utf8_bytes(b[0]) > n)
		return true;
	for (i = 0; i < N_BLANKS; i++)
		if (blanks_of[i].len > n && !memcmp(b, blanks_of[i].byte, n))
			return true;
	return false;
}

/* What a soft break has split, at the end of a coded line: the length of "=C3=AF", or 0. */
static size_t split_character(const char *line, const char *end)
{
	uint8_t b[TRANSPORT_HELD];

	for (unsigned n = sizeof(b); n; n--) {
		const char *p = end - 3 * n;
		unsigned i = 0;

		if (end - line < 3 * (ptrdiff_t)n)
			continue;
		while (i < n && coded(p + 3 * i, end) >= 0) {
			b[i] = (uint8_t)coded(p + 3 * i, end);
			i++;
		}
		if (i == n && begins_character(b, n))
			return 3 * n;
	}
	return 0;
}

/* Whether a line ends in the = of a soft break: on its way it may have got blanks behind
 * (RFC 2045, 6.7). Returns the =, or @end. */
static const char *soft_break(const struct transport *t, const char *line, const char *end)
{
	const char *e = end;

	while (e > line && is(e[-1], CHAR_BLANK))
		e--;
	if (e == line || e[-1] != '=')
		return end;
	e--;
	if (end - e > 1 && (e == line || is(e[-1], CHAR_BLANK)) && !t->quoted_printable &&
	    !shows_code(line, e))
		return end; /* "msr_write 174 = " */
	return e;
}

/* "[ 8123.440112] ", perhaps with a caller "[  T812]"; returns behind it, or @p. */
static const char *log_prefix(const char *p, const char *end)
{
	const char *q = skip_blanks(p, end), *d;

	if (q == end || *q != '[')
		return p;
	q = skip_blanks(q + 1, end);
	d = skip(q, end, CHAR_DIGIT);
	if (d == q || d == end || *d != '.')
		return p;
	q = skip(d + 1, end, CHAR_DIGIT);
	if (q == d + 1 || q == end || *q != ']')
		return p;
	p = ++q;
	q = skip_blanks(q, end);
	if (end - q > 3 && *q == '[') {
		q = skip_blanks(q + 1, end);
		if (q < end && (*q == 'T' || *q == 'C')) {
			d = skip(q + 1, end, CHAR_DIGIT);
			if (d > q + 1 && d < end && *d == ']')
				p = d + 1;
		}
	}
	return p;
}

static const char *front(const char *p, const char *end)
{
	const char *q = p, *marks = p, *syslog;

	for (; q < end && (*q == '>' || is(*q, CHAR_BLANK)); q++)
		if (*q == '>')
			marks = q + 1;
	p = marks + (marks > p && marks < end && *marks == ' '); /* the mark's own blank */
	syslog = memmem(p, end - p > 100 ? 100 : end - p, " kernel: ", 9);
	if (syslog && log_prefix(syslog + 9, end) != syslog + 9)
		p = syslog + 9;
	p = log_prefix(p, end);
	q = skip_blanks(p, end);
	while (end - q > 2 && *q == '^' && (q[1] == 'C' || q[1] == 'D') &&
	       skip_blanks(q + 2, end) < end)
		p = q = q + 2;
	return p;
}

static const struct {
	const char *name;
	char is;
} entities[] = {
	{"&lt;", '<'},	  {"&gt;", '>'},   {"&amp;", '&'},  {"&quot;", '"'},
	{"&apos;", '\''}, {"&nbsp;", ' '}, {"&#39;", '\''}, {"&#34;", '"'},
	{"&#38;", '&'},	  {"&#60;", '<'},  {"&#62;", '>'},
};

#define N_ENTITIES (sizeof(entities) / sizeof(*entities))

/* The index of the one at @p, or that of none. */
static size_t entity(const char *p, const char *end)
{
	size_t i = 0;

	while (i < N_ENTITIES && !begins(p, end, entities[i].name))
		i++;
	return i;
}

/* Whether the text is HTML's, as the first of its lines shows that has a <, a > or an entity for
 * one of them: all are entities then. Quote marks say nothing, mail may be what quotes. */
static bool html_text(struct transport *t, const char *line, const char *end)
{
	const char *p = line;
	bool seen = false;

	while (p < end && (*p == '>' || is(*p, CHAR_BLANK)))
		p++;
	for (; t->html == HTML_UNTOLD && p < end; p++) {
		size_t i = *p == '&' ? entity(p, end) : N_ENTITIES;

		if (*p == '<' || *p == '>')
			t->html = HTML_NO;
		else if (i < N_ENTITIES)
			seen |= entities[i].is == '<' || entities[i].is == '>';
	}
	if (t->html == HTML_UNTOLD && seen)
		t->html = HTML_YES;
	return t->html == HTML_YES;
}

static size_t html(char *p, size_t len)
{
	const char *from = p, *end = from + len;
	char *to = p;

	while (from < end) {
		size_t i = *from == '&' ? entity(from, end) : N_ENTITIES;

		if (i < N_ENTITIES) {
			*to++ = entities[i].is;
			from += strlen(entities[i].name);
		} else {
			*to++ = *from++;
		}
	}
	return to - p;
}

/* Puts what the line before held of a character in front of this one. */
static const char *put_held(struct transport *t, const char *line, const char **end)
{
	size_t len = *end - line;

	memmove(t->line + t->n_held, line, len);
	memcpy(t->line, t->held, t->n_held);
	*end = t->line + t->n_held + len;
	return t->line;
}

void transport_undo(struct transport *t, const char *line, size_t len, struct clean_line *out)
{
	const char *end = line + len, *stop;
	const char *from;
	bool equals, held = t->n_held;

	while (end > line && end[-1] == '\r')
		end--;
	if (html_text(t, line, end) && memchr(line, '&', end - line)) {
		len = end - line;
		memcpy(t->line, line, len);
		line = t->line;
		end = line + html(t->line, len);
	}
	if (!plain(line, end)) {
		len = end - line;
		if (line != t->line)
			memcpy(t->line, line, len);
		line = t->line;
		end = line + blanks(t->line, len);
	}
	if (held)
		line = put_held(t, t->open ? line : front(line, end), &end);
	t->n_held = 0;
	stop = soft_break(t, line, end);
	out->soft = stop != end;
	end = stop;
	equals = shows_code(line, end);
	if (equals || (t->quoted_printable && memchr(line, '=', end - line))) {
		if (out->soft) {
			t->n_held = split_character(line, end);
			end -= t->n_held;
			memcpy(t->held, end, t->n_held);
		}
		len = end - line;
		if (line != t->line)
			memcpy(t->line, line, len);
		line = t->line;
		len = decode(t->line, len, equals && t->quoted_printable);
		end = line + blanks(t->line, len);
		t->quoted_printable = true;
	}
	/* a soft break splits what is one line, so that what follows has nothing in front */
	from = line;
	if (!t->open && !held)
		line = front(line, end);
	t->open = out->soft && (held ? t->open : line == from);
	out->blank_end = end > line && is(end[-1], CHAR_BLANK) && !out->soft;
	while (end > line && is(end[-1], CHAR_BLANK) && !out->soft)
		end--;
	out->at = line;
	out->len = end - line;
}
