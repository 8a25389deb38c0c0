// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/text_priv.h"

#include "traces/host/chars.h"

static void section(struct text *t, enum host_kind kind)
{
	struct host_result *r = t->result;

	for (unsigned i = 0; i < r->n_sections; i++)
		if (r->sections[i] == kind)
			return;
	r->sections[r->n_sections++] = kind;
}

static void damaged(struct text *t, uint64_t number, bool dropped)
{
	t->counts->damaged_lines++;
	t->counts->dropped_lines += dropped;
	if (!t->counts->first_damaged)
		t->counts->first_damaged = number;
}

void text_gap(struct text *t, bool blank)
{
	for (size_t i = 0; i < n_table_formats; i++)
		table_formats[i]->gap(t->tables, blank);
}

/* "812 2 4471830912000 type: 345": what the option raw prints of an event (hex: the same in hex;
 * bin: in bytes), for which the kernel has no text. */
static bool nameless(const char *line, size_t len)
{
	static const char type[] = "type: ";
	const char *end = line + len, *p = memmem(line, len, type, sizeof(type) - 1);

	return p && p > line && p + strlen(type) < end &&
	       skip(p + strlen(type), end, CHAR_DIGIT) == end &&
	       skip(line, p, CHAR_HEX | CHAR_BLANK) == p;
}

static int unknown(struct text *t, const char *line, size_t len, size_t lines)
{
	t->nameless |= nameless(line, len);
	t->counts->unknown_lines += lines;
	t->chain = CHAIN_NONE;
	text_gap(t, false);
	while (len && is(line[len - 1], CHAR_BLANK))
		len--;
	if (len && line[len - 1] == ':')
		for (size_t i = 0; i < n_table_formats; i++)
			if (table_formats[i]->label)
				table_formats[i]->label(t->tables, line, len);
	return 0;
}

static int loss(struct text *t, const struct special_line *s, uint64_t number)
{
	section(t, HOST_KIND_TRACE_TEXT);
	t->counts->loss_markers += !s->loss.header;
	if (s->damaged)
		damaged(t, number, false);
	return t->sink->loss ? t->sink->loss(t->sink->ctx, &s->loss) : 0;
}

static int special(struct text *t, const struct special_line *s, const char *line, size_t len,
		   size_t lines, uint64_t number)
{
	t->trace_seen |= s->trace;
	if (s->what != SPECIAL_CHAIN)
		t->chain = CHAIN_NONE;
	switch (s->what) {
	case SPECIAL_BLANK:
		text_gap(t, true);
		return 0;
	case SPECIAL_RATIO:
	case SPECIAL_LOSS:
		return loss(t, s, number);
	case SPECIAL_CPUS:
	case SPECIAL_EMPTY_CPU:
		return t->sink->cpus
			       ? t->sink->cpus(t->sink->ctx, s->n, s->what == SPECIAL_EMPTY_CPU)
			       : 0;
	case SPECIAL_LOSS_WORDS:
	case SPECIAL_HEADER:
		return 0;
	case SPECIAL_ELISION:
		t->counts->elisions++;
		return t->sink->elision ? t->sink->elision(t->sink->ctx) : 0;
	case SPECIAL_FRAME:
		t->counts->stack_lines++;
		return 0;
	case SPECIAL_CHAIN:
		if (t->chain == CHAIN_NONE)
			break;
		t->counts->stack_traces += t->chain == CHAIN_RECORD;
		t->counts->stack_lines++;
		t->chain = CHAIN_FRAMES;
		return 0;
	case SPECIAL_NO:
		break;
	}
	return unknown(t, line, len, lines);
}

/* The names of tasks, to know the beginning of one when the file is cut. */
static inline void remember(struct text *t, const struct host_event *e)
{
	unsigned i = e->tid & (TEXT_COMMS - 1);

	t->have[e->id] |= e->have;
	if (t->comm[i].tid == e->tid && t->comm[i].len)
		return;
	t->comm[i].tid = e->tid;
	t->comm[i].len = e->comm.len < TEXT_COMM_MAX ? e->comm.len : TEXT_COMM_MAX;
	memcpy(t->comm[i].comm, e->comm.at, t->comm[i].len);
}

int text_tell_record(struct text *t, size_t lines, uint64_t number)
{
	struct host_event *e = &t->r.e;

	e->line = number;
	if (!t->counts->records++)
		section(t, HOST_KIND_TRACE_TEXT);
	t->chain = CHAIN_RECORD;
	t->counts->rejoined_records += lines > 1;
	t->counts->trailing_notes += t->r.note;
	if (e->damaged)
		damaged(t, number, false);
	t->result->has_cpu |= e->cpu >= 0;
	t->result->has_tid |= e->tid >= 0;
	t->result->has_time |= e->time_ns != HOST_NO_TIME;
	remember(t, e);
	return t->sink->event ? t->sink->event(t->sink->ctx, e) : 0;
}

static int table(struct text *t, const struct look *l, const char *line, size_t len, size_t lines,
		 uint64_t number)
{
	const struct text_look *look = &l->table;
	bool row = look->class == TEXT_ROW;

	t->chain = CHAIN_NONE;
	if (l->match == TEXT_CUT && !look->damaged) {
		if (!row)
			return unknown(t, line, len, lines);
		damaged(t, number, true);
		if (l->format->drop)
			l->format->drop(t->tables, look);
		return 0;
	}
	t->last_format = l->format;
	if (row) {
		section(t, l->format->kind);
		t->counts->rows++;
		t->counts->rejoined_records += lines > 1;
		t->counts->trailing_notes += look->note;
		if (look->damaged)
			damaged(t, number, false);
	}
	return l->format->take(t->tables, line, len, look, number);
}

int text_tell(struct text *t, const struct look *l, const char *line, size_t len, size_t lines,
	      uint64_t number, bool last)
{
	switch (l->what) {
	case LOOK_SPECIAL:
		return special(t, &l->special, line, len, lines, number);
	case LOOK_TABLE:
		return table(t, l, line, len, lines, number);
	case LOOK_TASK:
		if (!last || !t->counts->records)
			break;
		damaged(t, number, true);
		return 0;
	case LOOK_RECORD:
		if (t->r.how == RECORD_STACK) {
			t->trace_seen = true;
			t->counts->stack_traces++;
			return 0;
		}
		t->trace_seen = true;
		if (l->match < TEXT_MORE) {
			damaged(t, number, true);
			return 0;
		}
		return text_tell_record(t, lines, number);
	case LOOK_UNKNOWN:
		break;
	}
	return unknown(t, line, len, lines);
}
