// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "traces/tables/scan.h"

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

void scan_line(struct scan *s, const char *line, size_t len)
{
	size_t i = 0;

	s->n = s->at = 0;
	s->foreign = 0;
	s->end = line + len;
	while (i < len && s->n < SCAN_MAX_WORDS) {
		size_t from;

		while (i < len && blank(line[i]))
			i++;
		from = i;
		while (i < len && !blank(line[i]))
			i++;
		if (i > from)
			s->w[s->n++] = (struct host_text){line + from, i - from};
	}
}

/* Of UTF-8. */
static size_t characters(struct host_text w)
{
	size_t n = 0;

	for (size_t i = 0; i < w.len; i++)
		n += ((unsigned char)w.at[i] & 0xc0) != 0x80;
	return n;
}

bool scan_foreign(struct host_text w)
{
	for (size_t i = 0; i < w.len; i++)
		if (digit(w.at[i]))
			return false;
	return w.len && characters(w) <= 3;
}

/* The field, with one character too many at an end. */
static bool stuck(struct host_text w, scan_fn is, void *out)
{
	static const char own[] = "+-(";
	size_t cut = 1;

	if (w.len < 2)
		return false;
	while (cut < w.len && ((unsigned char)w.at[cut] & 0xc0) == 0x80)
		cut++;
	if (!digit(w.at[0]) && !strchr(own, w.at[0]) && cut < w.len &&
	    is((struct host_text){w.at + cut, w.len - cut}, out))
		return true;
	cut = w.len - 1;
	while (cut && ((unsigned char)w.at[cut] & 0xc0) == 0x80)
		cut--;
	return !digit(w.at[w.len - 1]) && w.at[w.len - 1] != '.' && cut &&
	       is((struct host_text){w.at, cut}, out);
}

enum scan_got scan_take(struct scan *s, scan_fn is, void *out)
{
	if (s->at == s->n)
		return SCAN_END;
	if (is(s->w[s->at], out)) {
		s->at++;
		return SCAN_GOT;
	}
	if (s->foreign < 2 && s->at + 1 < s->n && scan_foreign(s->w[s->at]) &&
	    is(s->w[s->at + 1], out)) {
		s->foreign++;
		s->at += 2;
		return SCAN_GOT;
	}
	if (s->foreign < 2 && stuck(s->w[s->at], is, out)) {
		s->foreign++;
		s->at++;
		return SCAN_GOT;
	}
	if (s->at + 1 < s->n)
		return SCAN_BAD;
	/* a stray character before the end is not what is missing */
	if (digit(*s->w[s->at].at) || strchr("(+-", *s->w[s->at].at) ||
	    (s->foreign < 2 && characters(s->w[s->at]) == 1))
		return SCAN_PARTIAL;
	return SCAN_BAD;
}

void scan_rest(const struct scan *s, struct text_look *look)
{
	if (s->foreign)
		look->damaged = true;
	if (s->at == s->n)
		return;
	if (s->at + 1 == s->n && scan_foreign(s->w[s->at]))
		look->damaged = true;
	else
		look->note = true;
}

struct host_text scan_remaining(const struct scan *s)
{
	if (s->at == s->n)
		return (struct host_text){s->end, 0};
	return text_trim((struct host_text){s->w[s->at].at, (size_t)(s->end - s->w[s->at].at)});
}

bool text_is(struct host_text t, const char *s)
{
	return strlen(s) == t.len && !memcmp(t.at, s, t.len);
}

bool text_begins(struct host_text t, const char *s)
{
	size_t n = strlen(s);

	return n <= t.len && !memcmp(t.at, s, n);
}

bool text_cut_of(struct host_text t, const char *s)
{
	return t.len >= 4 && t.len < strlen(s) && !memcmp(t.at, s, t.len);
}

struct host_text text_trim(struct host_text t)
{
	eat_blanks(&t);
	while (t.len && blank(t.at[t.len - 1]))
		t.len--;
	return t;
}

struct host_text text_of(const char *s)
{
	return (struct host_text){s, strlen(s)};
}

bool eat(struct host_text *t, const char *literal)
{
	size_t n = strlen(literal);

	if (!text_begins(*t, literal))
		return false;
	t->at += n;
	t->len -= n;
	return true;
}

void eat_blanks(struct host_text *t)
{
	while (t->len && blank(*t->at)) {
		t->at++;
		t->len--;
	}
}

bool eat_u64(struct host_text *t, uint64_t *out)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; i < t->len && digit(t->at[i]); i++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(t->at[i] - '0'), &v))
			return false;
	if (!i)
		return false;
	t->at += i;
	t->len -= i;
	*out = v;
	return true;
}

bool eat_decimal(struct host_text *t, struct decimal *out)
{
	struct host_text rest = *t;
	struct decimal d = {.there = true};
	bool minus = eat(&rest, "-");
	uint64_t whole;

	if (!eat_u64(&rest, &whole) || whole > INT64_MAX)
		return false;
	d.value = (int64_t)whole;
	if (rest.len > 1 && *rest.at == '.' && digit(rest.at[1])) {
		size_t i = 1;

		for (; i < rest.len && digit(rest.at[i]); i++) {
			if (i > 9)
				continue; /* finer than anything that is printed */
			if (__builtin_mul_overflow(d.value, 10, &d.value) ||
			    __builtin_add_overflow(d.value, rest.at[i] - '0', &d.value))
				return false;
			d.digits++;
		}
		rest.at += i;
		rest.len -= i;
	}
	if (minus)
		d.value = -d.value;
	*out = d;
	*t = rest;
	return true;
}

bool is_u64(struct host_text w, void *out)
{
	uint64_t v;

	if (!eat_u64(&w, &v) || w.len)
		return false;
	if (out)
		*(uint64_t *)out = v;
	return true;
}

bool is_decimal(struct host_text w, void *out)
{
	struct decimal d;

	if (!eat_decimal(&w, &d) || w.len)
		return false;
	if (out)
		*(struct decimal *)out = d;
	return true;
}

bool is_percent(struct host_text w, void *out)
{
	struct decimal d = {0};

	if (!text_is(w, "nan%") && !text_is(w, "-nan%") &&
	    (!eat_decimal(&w, &d) || !text_is(w, "%")))
		return false;
	if (out)
		*(struct decimal *)out = d;
	return true;
}

bool decimal_scale(struct decimal d, uint64_t scale, uint64_t *out)
{
	unsigned __int128 v;

	if (d.value < 0)
		return false;
	v = (unsigned __int128)d.value * scale;
	for (unsigned i = 0; i < d.digits; i++)
		v /= 10;
	if (v > UINT64_MAX)
		return false;
	*out = (uint64_t)v;
	return true;
}
