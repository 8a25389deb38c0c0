// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/special.h"

#include "traces/host/chars.h"

static bool take(const char **p, const char *end, const char *s)
{
	if (!begins(*p, end, s))
		return false;
	*p += strlen(s);
	return true;
}

static bool take_number(const char **p, const char *end, uint64_t *out)
{
	uint64_t v;
	bool fits;
	const char *q = read_dec(*p, end, &v, &fits);

	if (q == *p || !fits)
		return false;
	*out = v;
	*p = q;
	return true;
}

/* Behind "entries-in-buffer/entries-written:", or of the latency format behind
 * "latency: 0 us, #". */
static const char *ratio(const char *p, const char *end)
{
	static const char entries[] = "entries-in-buffer/entries-written:", latency[] = "latency: ";
	const char *q = memmem(p, end - p, entries, strlen(entries));

	if (q)
		return skip_blanks(q + strlen(entries), end);
	q = memmem(p, end - p, latency, strlen(latency));
	q = q ? memmem(q, end - q, ", #", 3) : NULL;
	return q ? q + 3 : NULL;
}

static void header(const char *p, const char *end, struct special_line *s)
{
	const char *q = ratio(p, end);
	uint64_t in, written;

	s->what = SPECIAL_HEADER;
	s->trace = memmem(p, end - p, "tracer:", 7) != NULL;
	if (!q)
		return;
	if (!take_number(&q, end, &in) || !take(&q, end, "/") || !take_number(&q, end, &written))
		return;
	s->what = SPECIAL_RATIO;
	s->cut = q == end;
	s->trace = true;
	s->loss = (struct host_loss){
		.cpu = -1, .count = written > in ? written - in : 0, .header = true};
}

/* "CPU:2 [LOST 90417 EVENTS]", "CPU:2 [90417 EVENTS DROPPED]", both without the number. */
static bool lost(const char *p, const char *end, struct special_line *s)
{
	uint64_t cpu, n = UINT64_MAX;

	if (!take(&p, end, "CPU:"))
		return false;
	p = skip_blanks(p, end);
	if (!take_number(&p, end, &cpu))
		return false;
	p = skip_blanks(p, end);
	if (!take(&p, end, "["))
		return false;
	if (take(&p, end, "LOST ")) {
		if (take_number(&p, end, &n))
			p = skip_blanks(p, end);
		if (!take(&p, end, "EVENTS"))
			return false;
	} else {
		if (take_number(&p, end, &n))
			p = skip_blanks(p, end);
		if (!take(&p, end, "EVENTS DROPPED"))
			return false;
	}
	s->damaged = !take(&p, end, "]");
	s->what = SPECIAL_LOSS;
	s->trace = true;
	s->loss = (struct host_loss){.cpu = (int64_t)cpu, .count = n};
	return true;
}

/* perf script --show-lost-events: "vmm 8 [002] 1.000001: PERF_RECORD_LOST lost 5", with the columns
 * that records have, and "PERF_RECORD_LOST_SAMPLES"; -D: "... PERF_RECORD_LOST: id:12: lost:5". */
static bool perf_record_lost(const char *line, const char *end, struct special_line *s)
{
	static const char name[] = "PERF_RECORD_LOST";
	const char *at = memmem(line, end - line, name, strlen(name)), *q;
	uint64_t n = UINT64_MAX, cpu;

	for (q = at; q && q > line && is(q[-1], CHAR_BLANK); q--)
		;
	if (!at || (at > line && (q == at || q == line || q[-1] != ':')))
		return false;
	s->loss.cpu = -1;
	for (q = line; q < at; q++)
		if (*q == '[' && skip(q + 1, at, CHAR_DIGIT) < at &&
		    *skip(q + 1, at, CHAR_DIGIT) == ']' && is(q[1], CHAR_DIGIT)) {
			q++;
			if (take_number(&q, at, &cpu))
				s->loss.cpu = (int64_t)cpu;
		}
	at += strlen(name);
	(void)take(&at, end, "_SAMPLES");
	q = memmem(at, end - at, "lost", 4);
	if (q) {
		q = skip_blanks(q + 4, end);
		(void)take(&q, end, "samples");
		q = skip_blanks(q, end);
		(void)take(&q, end, ":");
		if (!take_number(&q, end, &n))
			n = UINT64_MAX;
	}
	s->what = SPECIAL_LOSS;
	s->trace = true;
	s->loss.count = n;
	return true;
}

/*
 * "ffffffff81a0b2c4 kvm_exit+0x1a ([kernel.kallsyms])": an address, a symbol, where it is.
 * Addresses within a file are short ("fdd6b", "0"): those need an offset, or "[unknown]".
 */
static bool chain(const char *p, const char *end, struct special_line *s)
{
	const char *q = skip(p, end, CHAR_HEX), *symbol;
	size_t digits = q - p;

	if (digits > 16 || end - q < 4 || *q != ' ' || end[-1] != ')' ||
	    (!is(q[1], CHAR_NAME) && q[1] != '[') || is(q[1], CHAR_DIGIT))
		return false;
	symbol = q + 1;
	q = to_blank(symbol, end);
	/* C++ has blanks in its symbols, behind a bracket */
	if (!begins(q, end, " (") && !memchr(symbol, '(', q - symbol) &&
	    !memchr(symbol, '<', q - symbol))
		return false;
	if (!memmem(q, end - q, " (", 2))
		return false;
	if (digits < 6 && !memmem(symbol, end - symbol, "+0x", 3) &&
	    !equals(symbol, q, "[unknown]"))
		return false;
	s->what = SPECIAL_CHAIN;
	return true;
}

static bool perf_lost(const char *p, const char *end, struct special_line *s)
{
	uint64_t events, chunks, percent;

	if (equals(p, end, "Warning:") || equals(p, end, "Check IO/CPU overload!")) {
		s->what = SPECIAL_LOSS_WORDS;
		return true;
	}
	(void)take(&p, end, "Warning: ");
	if (!take(&p, end, "Processed ") || !take_number(&p, end, &events))
		return false;
	if (take(&p, end, " samples and lost ")) {
		if (!take_number(&p, end, &percent) || !take(&p, end, ".") ||
		    !take_number(&p, end, &percent) || !take(&p, end, "%"))
			return false;
		s->what = SPECIAL_LOSS;
		s->trace = true;
		s->loss = (struct host_loss){.cpu = -1, .count = UINT64_MAX};
		return true;
	}
	if (!take(&p, end, " events and lost ") || !take_number(&p, end, &chunks) ||
	    !take(&p, end, " chunks"))
		return false;
	s->what = SPECIAL_LOSS;
	s->trace = true;
	s->loss = (struct host_loss){.cpu = -1, .count = UINT64_MAX, .chunks = chunks};
	return true;
}

static bool cpus(const char *p, const char *end, struct special_line *s)
{
	uint64_t n;

	if (take(&p, end, "cpus=")) {
		if (!take_number(&p, end, &s->n) || p < end)
			return false;
		s->what = SPECIAL_CPUS;
	} else if (take(&p, end, "CPU ")) {
		if (!take_number(&p, end, &s->n) || !equals(p, end, " is empty"))
			return false;
		s->what = SPECIAL_EMPTY_CPU;
	} else if (take(&p, end, "version = ")) {
		if (!take_number(&p, end, &n))
			return false;
		s->what = SPECIAL_HEADER;
	} else if (equals(p, end, "Dumping ftrace buffer:") ||
		   equals(p, end, "(ftrace buffer empty)")) {
		s->what = SPECIAL_HEADER;
	} else {
		return false;
	}
	s->trace = true;
	return true;
}

static bool all(const char *p, const char *end, char c)
{
	while (p < end && *p == c)
		p++;
	return p == end;
}

void special_read(const char *line, size_t len, struct special_line *s)
{
	const char *end = line + len, *p = skip_blanks(line, end);

	*s = (struct special_line){0};
	while (end > p && is(end[-1], CHAR_BLANK))
		end--;
	if (p == end) {
		s->what = SPECIAL_BLANK;
		return;
	}
	if (perf_record_lost(p, end, s) || (is(*p, CHAR_HEX) && chain(p, end, s)))
		return;
	switch (*p) {
	case '#':
		header(p, end, s);
		return;
	case '-':
		if (all(p, end, '-') && end - p >= 2)
			s->what = end - p == 2 ? SPECIAL_ELISION : SPECIAL_HEADER;
		return;
	case '.':
		if (all(p, end, '.'))
			s->what = SPECIAL_ELISION;
		return;
	case '[':
		if (equals(p, end, "[...]"))
			s->what = SPECIAL_ELISION;
		return;
	case '<':
		if (equals(p, end, "<snip>"))
			s->what = SPECIAL_ELISION;
		return;
	case '=':
		if (begins(p, end, "=> ") || equals(p, end, "=>"))
			s->what = SPECIAL_FRAME;
		return;
	case 'C':
		if (lost(p, end, s) || cpus(p, end, s) || perf_lost(p, end, s))
			return;
		return;
	default:
		if (!cpus(p, end, s))
			(void)perf_lost(p, end, s);
	}
}
