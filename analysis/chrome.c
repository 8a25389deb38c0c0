// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/chrome.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/utf8.h"

static void string(FILE *to, const char *text)
{
	size_t len = strlen(text);

	fputc('"', to);
	while (len) {
		const unsigned char *c = (const unsigned char *)text;
		size_t n = utf8_char(c, len);

		if (!n)
			fputs("\\ufffd", to);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(to, "\\u%04x", *c);
		else if (*c == '"' || *c == '\\')
			fprintf(to, "\\%c", *c);
		else
			fwrite(text, 1, n, to);
		n = n ? n : 1;
		text += n;
		len -= n;
	}
	fputc('"', to);
}

void chrome_open(struct chrome *c, FILE *to)
{
	*c = (struct chrome){.to = to};
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", to);
}

void chrome_close(struct chrome *c, const char *const *about)
{
	fputs("\n],\"otherData\":{", c->to);
	for (bool first = true; *about; about += 2, first = false) {
		fputs(first ? "" : ",", c->to);
		string(c->to, about[0]);
		fputc(':', c->to);
		string(c->to, about[1]);
	}
	fputs("}}\n", c->to);
}

static void begin(struct chrome *c, const char *ph, int64_t pid, int64_t tid, const char *name)
{
	fprintf(c->to, "%s\n{\"ph\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRId64 ",\"name\":",
		c->any ? "," : "", ph, pid, tid);
	string(c->to, name);
	c->any = true;
	c->args = false;
}

/* Parts of a us: a power of two, so that sums and differences of times are exact in doubles. */
#define PARTS 2048

/* Up: who cuts fractions off gets the right ns. Of less than a us. */
static uint64_t parts(uint64_t ns)
{
	return (ns % 1000 * PARTS + 999) / 1000;
}

static void micros(FILE *to, const char *key, uint64_t us, uint64_t of_it)
{
	/* n / 2^11 is n * 5^11 / 10^11 */
	fprintf(to, ",\"%s\":%" PRIu64 ".%011" PRIu64, key, us, of_it * 48828125);
}

void chrome_process(struct chrome *c, int64_t pid, const char *name)
{
	begin(c, "M", pid, 0, "process_name");
	chrome_text(c, "name", name);
	chrome_end(c);
	begin(c, "M", pid, 0, "process_sort_index");
	chrome_u64(c, "sort_index", (uint64_t)pid);
	chrome_end(c);
}

void chrome_track(struct chrome *c, int64_t pid, int64_t tid, const char *name)
{
	begin(c, "M", pid, tid, "thread_name");
	chrome_text(c, "name", name);
	chrome_end(c);
}

void chrome_span(struct chrome *c, int64_t pid, int64_t tid, const char *name, uint64_t begin_ns,
		 uint64_t ns)
{
	uint64_t end_ns = begin_ns + ns, us = end_ns / 1000 - begin_ns / 1000;
	uint64_t from = parts(begin_ns), to = parts(end_ns);

	begin(c, "X", pid, tid, name);
	micros(c->to, "ts", begin_ns / 1000, from);
	if (to < from) {
		us--;
		to += PARTS;
	}
	micros(c->to, "dur", us, to - from);
}

void chrome_instant(struct chrome *c, int64_t pid, int64_t tid, const char *name, uint64_t ns)
{
	begin(c, "i", pid, tid, name);
	fputs(",\"s\":\"t\"", c->to);
	micros(c->to, "ts", ns / 1000, parts(ns));
}

static void key_of(struct chrome *c, const char *key)
{
	fputs(c->args ? "," : ",\"args\":{", c->to);
	c->args = true;
	string(c->to, key);
	fputc(':', c->to);
}

void chrome_text(struct chrome *c, const char *key, const char *value)
{
	key_of(c, key);
	string(c->to, value);
}

void chrome_u64(struct chrome *c, const char *key, uint64_t value)
{
	key_of(c, key);
	fprintf(c->to, "%" PRIu64, value);
}

void chrome_hex(struct chrome *c, const char *key, uint64_t value)
{
	key_of(c, key);
	fprintf(c->to, "\"0x%" PRIx64 "\"", value);
}

void chrome_true(struct chrome *c, const char *key)
{
	key_of(c, key);
	fputs("true", c->to);
}

void chrome_end(struct chrome *c)
{
	fputs(c->args ? "}}" : "}", c->to);
}
