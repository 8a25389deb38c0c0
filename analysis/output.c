// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model/sim/error.h"

/* ---- tables ---- */

struct table {
	char *align;
	size_t columns, n, room;
	char **cells;
	bool failed;
};

struct table *table_create(const char *align)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->align = strdup(align);
	t->columns = strlen(align);
	if (!t->align || !t->columns) {
		table_free(t);
		return NULL;
	}
	return t;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t->align);
	free(t);
}

static void append(struct table *t, char *text)
{
	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 64;
		char **grown = realloc(t->cells, room * sizeof(*grown));

		if (!grown) {
			t->failed = true;
			free(text);
			return;
		}
		t->cells = grown;
		t->room = room;
	}
	t->cells[t->n++] = text;
}

void table_cell(struct table *t, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		t->failed = true;
	else
		append(t, text);
	va_end(ap);
}

void table_end_row(struct table *t)
{
	while (!t->failed && t->n % t->columns)
		table_cell(t, "%s", "");
}

/* Columns that a terminal needs for UTF-8 text: one per character, none for continuation bytes. */
static size_t width(const char *text)
{
	size_t w = 0;

	for (; *text; text++)
		w += (*text & 0xc0) != 0x80;
	return w;
}

static void print_row(const struct table *t, size_t row, const size_t *widths, FILE *to)
{
	size_t pad = 0; /* spaces owed: none are printed at the end of a line */

	for (size_t c = 0; c < t->columns; c++) {
		const char *text = t->cells[row * t->columns + c];
		size_t fill = widths[c] - width(text);

		if (t->align[c] == 'r')
			pad += fill;
		if (*text) {
			fprintf(to, "%*s%s", (int)pad, "", text);
			pad = 0;
		}
		if (t->align[c] != 'r')
			pad += fill;
		pad += 2;
	}
	fputc('\n', to);
}

int table_print(const struct table *t, FILE *to)
{
	size_t *widths = calloc(t->columns, sizeof(*widths));

	if (!widths || t->failed || t->n % t->columns) {
		free(widths);
		return KVMSIM_ENOMEM;
	}
	for (size_t i = 0; i < t->n; i++) {
		size_t w = width(t->cells[i]);

		if (w > widths[i % t->columns])
			widths[i % t->columns] = w;
	}
	for (size_t row = 0; row < t->n / t->columns; row++)
		print_row(t, row, widths, to);
	free(widths);
	return 0;
}

/* How much of a line goes into @room columns: up to its last space there, else to its first. */
static size_t fitting(const char *line, size_t len, size_t room)
{
	size_t at = 0;

	for (size_t i = 1; i < len; i++) {
		if (at && i > room)
			return at;
		if (line[i] == ' ' && line[i - 1] != ' ')
			at = i;
	}
	return len > room && at ? at : len;
}

void out_wrapped(const char *text, int indent, FILE *to)
{
	while (*text) {
		size_t len = strcspn(text, "\n"), blank = strspn(text, " ");
		int by = 0;

		/* what a line begins with is no place to break it */
		do {
			size_t n =
				blank + fitting(text + blank, len - blank, OUT_WIDTH - by - blank);

			fprintf(to, "%*s%.*s\n", by, "", (int)n, text);
			n += text[n] == ' ';
			text += n;
			len -= n;
			by = indent;
			blank = 0;
		} while (len);
		text += *text == '\n';
	}
}

/* ---- CSV ---- */

void csv_text(struct csv_out *c, const char *text)
{
	if (c->column++)
		fputc(',', c->to);
	if (!text)
		return;
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, c->to);
		return;
	}
	fputc('"', c->to);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', c->to);
		fputc(*text, c->to);
	}
	fputc('"', c->to);
}

void csv_field(struct csv_out *c, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	csv_text(c, text);
}

void csv_end_row(struct csv_out *c)
{
	fputc('\n', c->to);
	c->column = 0;
}

/* ---- JSON ---- */

json_t *json_u64(uint64_t v)
{
	char text[OUT_TEXT];

	if (v <= INT64_MAX)
		return json_integer((json_int_t)v);
	snprintf(text, sizeof(text), "%" PRIu64, v);
	return json_string(text);
}

json_t *json_hex64(uint64_t v)
{
	char text[OUT_TEXT];

	snprintf(text, sizeof(text), "%016" PRIx64, v);
	return json_string(text);
}

void json_put(json_t *to, const char *key, json_t *value)
{
	json_object_set_new(to, key, value);
}

static int print_with(json_t *v, FILE *to, size_t flags)
{
	int err = v ? json_dumpf(v, to, JSON_INDENT(2) | JSON_ENSURE_ASCII | flags) : -1;

	json_decref(v);
	/* A write that failed is seen by whoever closes the stream. */
	if (err && !ferror(to))
		return KVMSIM_ENOMEM;
	fputc('\n', to);
	return 0;
}

int json_print(json_t *v, FILE *to)
{
	return print_with(v, to, 0);
}

int json_print_decimals(json_t *v, FILE *to)
{
	return print_with(v, to, JSON_REAL_PRECISION(15));
}

/* ---- numbers for people ---- */

const char *out_u64(char buf[OUT_TEXT], uint64_t v)
{
	char digits[OUT_TEXT];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, v);
	char *to = buf;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return buf;
}

const char *out_time(char buf[OUT_TEXT], double cycles, uint64_t hz)
{
	static const struct {
		double per_second;
		const char *unit;
	} units[] = {{1e9, "ns"}, {1e6, "us"}, {1e3, "ms"}, {1, "s"}};
	size_t u = 0;

	buf[0] = '\0';
	if (!hz)
		return buf;
	double seconds = cycles / (double)hz;

	/* 999.5 would print as 1000: three digits belong to the next unit then */
	while (u < 3 && seconds * units[u].per_second >= 999.5)
		u++;
	double value = seconds * units[u].per_second;
	int decimals = value >= 99.95 || value == 0 ? 0 : value >= 9.995 ? 1 : 2;

	snprintf(buf, OUT_TEXT, "%.*f %s", decimals, value, units[u].unit);
	return buf;
}

/* With the unit of @n that @value, of units[home], reads best in: home's up to 99,999. */
static const char *with_unit(char buf[OUT_TEXT], double value, int digits, double step,
			     const char *const *units, int n, int home, const char *per)
{
	int u = home;

	while (u > 0 && value < 1 && value > 0) {
		value *= step;
		u--;
	}
	while (u < n - 1 && value >= 99999) {
		value /= step;
		u++;
	}
	snprintf(buf, OUT_TEXT, "%.*g %s%s", digits, value, units[u], per);
	return buf;
}

const char *out_mib(char buf[OUT_TEXT], double mib, int digits, const char *per)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};

	return with_unit(buf, mib, digits, 1024, units, 6, 2, per);
}

const char *out_mega(char buf[OUT_TEXT], double mega, int digits, const char *unit)
{
	static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};

	return with_unit(buf, mega, digits, 1000, prefixes, 6, 2, unit);
}

const char *out_long_time(char buf[OUT_TEXT], double seconds)
{
	static const struct {
		double below, unit;
		const char *format;
	} of[] = {
		{1e-3, 1e-6, "%.3g us"},
		{10, 1e-3, "%.0f ms"},
		{600, 1, "%.2f s"},
		{7200, 60, "%.1f min"},
		{172800, 3600, "%.1f h"},
		{730 * 86400., 86400, "%.0f days"},
		{HUGE_VAL, 365.25 * 86400, "%.0f years"},
	};
	size_t i = 0;

	while (i + 1 < sizeof(of) / sizeof(*of) && seconds >= of[i].below)
		i++;
	if (seconds <= 0)
		i = 1;
	snprintf(buf, OUT_TEXT, of[i].format, seconds / of[i].unit);
	return buf;
}
