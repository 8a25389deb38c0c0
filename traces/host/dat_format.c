// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/dat_format.h"

#include <string.h>

/* Takes a line off @t; false at the end. */
static bool line_of(struct host_text *t, struct host_text *line)
{
	const char *end;

	if (!t->len)
		return false;
	end = memchr(t->at, '\n', t->len);
	line->at = t->at;
	line->len = end ? (size_t)(end - t->at) : t->len;
	t->at += line->len + !!end;
	t->len -= line->len + !!end;
	return true;
}

/* What stands behind @word at the line's beginning, blanks taken off; false: another line. */
static bool behind(struct host_text line, const char *word, struct host_text *rest)
{
	size_t len = strlen(word);

	while (line.len && (*line.at == ' ' || *line.at == '\t')) {
		line.at++;
		line.len--;
	}
	if (line.len < len || memcmp(line.at, word, len))
		return false;
	line.at += len;
	line.len -= len;
	while (line.len && *line.at == ' ') {
		line.at++;
		line.len--;
	}
	*rest = line;
	return true;
}

static int64_t number(struct host_text t)
{
	int64_t v = -1;

	for (size_t i = 0; i < t.len && i < 10 && t.at[i] >= '0' && t.at[i] <= '9'; i++)
		v = (v < 0 ? 0 : v) * 10 + t.at[i] - '0';
	return v;
}

struct dat_format dat_format(const char *text, size_t len)
{
	struct dat_format f = {.id = -1, .text = {text, len}};
	struct host_text t = f.text, line, rest;

	while (line_of(&t, &line)) {
		if (behind(line, "name:", &rest))
			f.name = rest;
		else if (behind(line, "ID:", &rest))
			f.id = number(rest);
		else if (behind(line, "print fmt:", &rest))
			f.print = rest;
	}
	return f;
}

static bool of_name(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

/* The number behind "; WORD:" in a field's line. */
static int64_t attribute(struct host_text line, const char *word)
{
	const char *at = memmem(line.at, line.len, word, strlen(word));

	if (!at)
		return -1;
	at += strlen(word);
	return number((struct host_text){at, line.at + line.len - at});
}

/* Kernels before 2.6.37 do not say which numbers are signed. */
static bool signed_type(struct host_text type)
{
	static const char *const types[] = {"int", "long", "short", "pid_t",
					    "s8",  "s16",  "s32",   "s64"};
	struct host_text rest;

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (behind(type, types[i], &rest))
			return true;
	return false;
}

struct dat_place dat_field(const struct dat_format *f, const char *name)
{
	struct host_text t = f->text, line, rest;
	size_t want = strlen(name);

	while (line_of(&t, &line)) {
		const char *end;
		int64_t offset, size, is_signed;
		size_t len;

		if (!behind(line, "field:", &rest))
			continue;
		end = memchr(rest.at, ';', rest.len);
		len = end ? (size_t)(end - rest.at) : 0;
		if (len <= want || memcmp(end - want, name, want) || of_name(end[-(long)want - 1]))
			continue;
		offset = attribute(rest, "offset:");
		size = attribute(rest, "size:");
		is_signed = attribute(rest, "signed:");
		if (offset < 0 || offset > UINT16_MAX ||
		    (size != 1 && size != 2 && size != 4 && size != 8))
			break;
		return (struct dat_place){offset, size,
					  is_signed < 0 ? signed_type(rest) : is_signed == 1};
	}
	return (struct dat_place){0};
}
