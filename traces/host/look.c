// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/text_priv.h"

#include "traces/host/chars.h"

/* Events of which every record of a file has the same layout. */
static bool one_layout(enum host_event_id id)
{
	return id == HOST_kvm_entry || id == HOST_kvm_exit || id == HOST_kvm_nested_vmexit;
}

/* Whether the text's end, which is the file's, is the record's: less than others of its event have,
 * a kernel's address or a padded number with too few digits tell that it is not. */
static bool ends_early(const struct text *t, const struct record *r)
{
	const struct host_event *e = &r->e;
	uint64_t rip = e->v[HOST_F_rip];
	int digits;

	if (r->brief)
		return true;
	if (one_layout(e->id) && t->have[e->id] & ~e->have & ~(1ull << HOST_F_reason))
		return true;
	if (e->id != HOST_kvm_entry || !host_has(e, HOST_F_rip) || rip <= 0xffff)
		return false;
	digits = (67 - __builtin_clzll(rip)) / 4;
	return digits < 16 && rip >> 4 * (digits - 4) == 0xffff;
}

/* "K vmm" of a task that was called vmm before: a stray character in front. */
static void stray_front(const struct text *t, struct host_event *e)
{
	unsigned i = e->tid & (TEXT_COMMS - 1), n = 1;

	if (e->tid < 0 || e->comm.len < 3 || is(*e->comm.at, CHAR_DIGIT))
		return;
	n += e->comm.at[1] != ' ';
	while (n < e->comm.len && e->comm.at[n] == ' ')
		n++;
	if (n < 2 || e->comm.at[n - 1] != ' ' || t->comm[i].tid != e->tid ||
	    t->comm[i].len != e->comm.len - n ||
	    memcmp(t->comm[i].comm, e->comm.at + n, e->comm.len - n))
		return;
	e->comm = (struct host_text){e->comm.at + n, e->comm.len - n};
	e->damaged = true;
}

static void from_record(struct text *t, bool last, struct look *l)
{
	struct record *r = &t->r;

	l->bare = r->e.tid < 0 && (!r->e.comm.len || r->e.cpu < 0);
	if (r->how == RECORD_WHOLE)
		stray_front(t, &r->e);
	switch (r->how) {
	case RECORD_NO:
	case RECORD_BAD:
		return;
	case RECORD_TASK:
		l->what = LOOK_TASK;
		l->match = TEXT_CUT;
		return;
	case RECORD_CUT:
		l->what = LOOK_RECORD;
		l->match = TEXT_CUT;
		l->damaged = r->e.damaged;
		return;
	case RECORD_STACK:
		l->what = LOOK_RECORD;
		l->match = TEXT_WHOLE;
		return;
	case RECORD_WHOLE:
		l->what = LOOK_RECORD;
		l->any = r->any;
		l->damaged = r->e.damaged;
		l->match = r->more[0] ? TEXT_MORE : TEXT_WHOLE;
		if (last && !r->any && ends_early(t, r))
			l->match = TEXT_CUT;
	}
}

static bool from_format(struct text *t, const struct text_format *f, const char *line, size_t len,
			struct look *l)
{
	struct text_look look = f->look(t->tables, line, len);

	if (look.match == TEXT_NO)
		return false;
	/* one that is in the middle of its table goes first, the others by how much they see */
	if (l->what == LOOK_TABLE && look.match <= l->match)
		return false;
	l->what = LOOK_TABLE;
	l->match = look.match;
	l->table = look;
	l->format = f;
	return true;
}

static void from_tables(struct text *t, const char *line, size_t len, struct look *l)
{
	if (t->last_format && from_format(t, t->last_format, line, len, l) && l->match != TEXT_CUT)
		return;
	for (size_t i = 0; i < n_table_formats; i++)
		if (table_formats[i] != t->last_format)
			(void)from_format(t, table_formats[i], line, len, l);
}

/* The beginning of a task column of one that was seen: "emu-60" of "emu-60241". */
static bool task_begins(const struct text *t, const char *p, size_t len)
{
	const char *end = p + len, *q = p;

	p = skip_blanks(p, end);
	if (p == end)
		return false;
	for (int i = 0; i < TEXT_COMMS; i++) {
		size_t n = t->comm[i].len, have = end - p;

		if (!n)
			continue;
		if (have <= n) {
			if (!memcmp(p, t->comm[i].comm, have))
				return true;
			continue;
		}
		if (memcmp(p, t->comm[i].comm, n))
			continue;
		q = p + n;
		if (*q != '-' && !is(*q, CHAR_BLANK))
			continue;
		q = skip(skip_blanks(q + 1, end), end, CHAR_DIGIT);
		q = skip_blanks(q, end);
		if (q == end || *q == '[' || *q == '(')
			return true;
	}
	return false;
}

static bool special(const char *line, size_t len, struct look *l)
{
	special_read(line, len, &l->special);
	if (l->special.what == SPECIAL_NO)
		return false;
	l->what = LOOK_SPECIAL;
	l->match = TEXT_WHOLE;
	return true;
}

void text_look(struct text *t, const char *line, size_t len, bool last, struct look *l)
{
	bool bad;

	*l = (struct look){0};
	if (special(line, len, l))
		return;
	record_read(&t->names, line, len, &t->r);
	from_record(t, last, l);
	bad = t->r.how == RECORD_BAD;
	if (l->what == LOOK_RECORD)
		return;
	if (!bad) {
		struct look task = *l;

		*l = (struct look){0};
		from_tables(t, line, len, l);
		if (l->what == LOOK_TABLE)
			return;
		*l = task;
	}
	if (l->what == LOOK_UNKNOWN) {
		record_read_damaged(&t->names, line, len, t->scratch, &t->r);
		from_record(t, last, l);
		if (t->r.how == RECORD_BAD || bad) {
			/* its columns and its name are there: a record, but not to be read */
			if (l->what != LOOK_RECORD)
				l->match = TEXT_NO;
			l->what = LOOK_RECORD;
		}
	}
	if (last && l->what != LOOK_RECORD && task_begins(t, line, len)) {
		l->what = LOOK_RECORD;
		l->match = TEXT_CUT;
	}
}

void text_look_cut(struct text *t, const char *line, size_t len, struct look *l)
{
	record_read_damaged(&t->names, line, len, t->scratch, &t->r);
	if (t->r.how == RECORD_WHOLE)
		from_record(t, false, l);
}

bool text_starts(struct text *t, const char *line, size_t len, struct look *l)
{
	*l = (struct look){0};
	if (special(line, len, l))
		return true;
	record_read(&t->names, line, len, &t->r);
	from_record(t, false, l);
	return l->what == LOOK_RECORD;
}
