// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf lock contention (tools/perf/builtin-lock.c): by caller, by lock address (-l), by task (-t,
 * -o), with the columns that -F chose, and stacks (-v).
 */
#include <stdlib.h>
#include <string.h>

#include "traces/tables/scan.h"
#include "traces/tables/scratch.h"

enum lock_column { CONTENDED, TOTAL, MAX, MIN, AVG, N_COLUMNS };
enum tail { CALLER, ADDRESS, TASK, CGROUP };
enum what { NOTHING, HEADING, ROW, STACK };

static const char *const column_names[] = {"contended", "total wait", "max wait", "min wait",
					   "avg wait"};

struct parsed {
	struct text_look look;
	enum what what;
	uint8_t column[N_COLUMNS], n_columns, tail; /* of a heading */
	uint64_t v[N_COLUMNS];
	struct host_text type, name, offset, address;
};

static bool heading(struct parsed *p, struct host_text t)
{
	static const char *const tails[][2] = {
		{"type", "caller"}, {"address", "symbol"}, {"pid", "comm"}, {"pid", "owner"}};
	static const uint8_t tail_of[] = {CALLER, ADDRESS, TASK, TASK};
	static const char *const begun[] = {"type", "address", "pid", "total", "max", "min", "avg"};
	unsigned seen = 0;
	bool more = true;

	while (more) {
		more = false;
		eat_blanks(&t);
		for (unsigned i = 0; i < N_COLUMNS; i++) {
			if (!(seen & 1u << i) && eat(&t, column_names[i])) {
				seen |= 1u << i;
				p->column[p->n_columns++] = (uint8_t)i;
				more = true;
			}
		}
	}
	/* one column is a word of prose */
	if (!(seen & (seen - 1)))
		return false;
	p->what = HEADING;
	p->look = text_found(TEXT_CUT, TEXT_HEADING);
	for (size_t i = 0; i < sizeof(tail_of); i++) {
		struct host_text rest = t;

		if (!eat(&rest, tails[i][0]))
			continue;
		eat_blanks(&rest);
		if (!eat(&rest, tails[i][1]))
			continue;
		p->tail = tail_of[i];
		p->look.match = TEXT_WHOLE;
		return true;
	}
	if (eat(&t, "cgroup")) {
		p->tail = CGROUP;
		p->look.match = TEXT_WHOLE;
	} else {
		/* wrapped within a column's name, or before the last */
		bool known = !t.len;

		for (size_t i = 0; i < sizeof(begun) / sizeof(*begun) && !known; i++)
			known = text_is(t, begun[i]);
		if (!known)
			p->look = text_no();
	}
	return true;
}

static bool is_unit(struct host_text w, void *out)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ns", 1},		{"us", 1000},	    {"ms", 1000000},
		     {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000}};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (text_is(w, units[i].name)) {
			if (out)
				*(uint64_t *)out = units[i].ns;
			return true;
		}
	}
	return false;
}

/* "44.65us", when the blank was lost. */
static bool is_time(struct host_text w, void *out)
{
	struct decimal d;
	uint64_t unit;

	return eat_decimal(&w, &d) && is_unit(w, &unit) && decimal_scale(d, unit, out);
}

/* "44.65 us" */
static enum scan_got take_time(struct scan *s, uint64_t *ns)
{
	struct decimal d;
	uint64_t unit;
	enum scan_got got;

	if (s->at < s->n && is_time(s->w[s->at], ns)) {
		s->at++;
		return SCAN_GOT;
	}
	got = scan_take(s, is_decimal, &d);
	if (got == SCAN_GOT)
		got = scan_take(s, is_unit, &unit);
	if (got == SCAN_BAD && s->at + 1 == s->n && text_is(s->w[s->at], "u"))
		return SCAN_PARTIAL; /* of us */
	if (got == SCAN_GOT && !decimal_scale(d, unit, ns))
		return SCAN_BAD;
	return got;
}

static bool hex(struct host_text w)
{
	for (size_t i = 0; i < w.len; i++)
		if (!strchr("0123456789abcdefABCDEF", w.at[i]))
			return false;
	return w.len;
}

/* "spinlock", "rwsem:R", "pcpu-sem:W" */
static bool is_type(struct host_text w, void *out)
{
	if (*w.at < 'a' || *w.at > 'z' || w.len < 4)
		return false;
	for (size_t i = 0; i < w.len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz-_:RW", w.at[i]))
			return false;
	if (out)
		*(struct host_text *)out = w;
	return true;
}

static bool is_symbol(struct host_text w, void *out)
{
	if (scan_foreign(w) || w.len < 2)
		return false;
	if (out)
		*(struct host_text *)out = w;
	return true;
}

/* "kvm_mmu_zap_collapsible_sptes+0x5c": a return address has an offset always, so that a name
 * without one is cut; or an address that has no symbol. */
static enum text_match caller(struct parsed *p, struct host_text w)
{
	const char *plus = memchr(w.at, '+', w.len);
	struct host_text offset;

	p->name = w;
	if (!plus)
		return (text_begins(w, "0x") && w.len > 2) || text_is(w, "Unknown") ||
				       text_is(w, "(null)")
			       ? TEXT_WHOLE
			       : TEXT_CUT;
	p->name.len = (size_t)(plus - w.at);
	offset = (struct host_text){plus + 1, w.len - p->name.len - 1};
	p->offset = offset;
	if (!eat(&offset, "0x"))
		return TEXT_CUT;
	return hex(offset) ? TEXT_WHOLE : TEXT_CUT;
}

static void caller_tail(struct parsed *p, struct scan *s)
{
	struct host_text w;
	enum scan_got got = scan_take(s, is_type, &p->type);

	p->look = text_found(TEXT_CUT, TEXT_ROW);
	if (got == SCAN_GOT)
		got = scan_take(s, is_symbol, &w);
	if (got == SCAN_GOT) {
		p->look.match = caller(p, w);
		if (p->look.match == TEXT_WHOLE)
			scan_rest(s, &p->look);
		else if (s->at != s->n)
			p->look = text_no();
	} else if (got == SCAN_BAD && s->at + 1 != s->n) {
		p->look = text_no();
	}
}

/* "ffff8cda80f42a88   mmap_lock (rwsem)": versions to 6.3 have no type, a lock may have no name. */
static void address_tail(struct parsed *p, struct scan *s)
{
	struct host_text w;

	p->look = text_found(TEXT_CUT, TEXT_ROW);
	if (s->at < s->n && !hex(s->w[s->at]) && scan_foreign(s->w[s->at])) {
		s->foreign++;
		s->at++;
	}
	if (s->at == s->n)
		return;
	w = s->w[s->at++];
	if (eat(&w, "0x") && !w.len)
		return;
	if (!hex(w)) {
		p->look = text_no();
		return;
	}
	if (w.len < 16 && s->at == s->n)
		return;
	p->address = w;
	p->look.match = TEXT_WHOLE;
	if (s->at < s->n && *s->w[s->at].at != '(') {
		if (scan_foreign(s->w[s->at]) && s->at + 1 < s->n) {
			s->foreign++;
			s->at++;
		}
		if (*s->w[s->at].at != '(')
			p->name = s->w[s->at++];
	}
	if (s->at < s->n && *s->w[s->at].at == '(') {
		w = s->w[s->at];
		eat(&w, "(");
		if (w.len && w.at[w.len - 1] == ')')
			w.len--;
		else
			p->look.damaged = true;
		if (w.len) {
			p->type = w;
			s->at++;
		}
	} else if (s->at == s->n) {
		p->look.match = TEXT_MORE;
	}
	scan_rest(s, &p->look);
}

static void task_tail(struct parsed *p, struct scan *s, bool pid)
{
	enum scan_got got = SCAN_GOT;
	struct decimal d;

	p->look = text_found(TEXT_CUT, TEXT_ROW);
	if (pid)
		got = scan_take(s, is_decimal, &d);
	if (got == SCAN_BAD)
		p->look = text_no();
	if (got != SCAN_GOT || s->at == s->n)
		return;
	p->name = scan_remaining(s);
	p->look = text_found(TEXT_WHOLE, TEXT_ROW);
	p->look.damaged = s->foreign;
}

static void row(const struct tables_scratch *t, struct parsed *p, struct scan *s)
{
	static const uint8_t usual[] = {CONTENDED, TOTAL, MAX, AVG};
	bool headed = t->lock.headed;
	const uint8_t *column = headed ? t->lock.column : usual;
	size_t n = headed ? t->lock.n_columns : sizeof(usual);
	enum tail tail = headed ? t->lock.tail : CALLER;
	enum scan_got got = SCAN_GOT;
	size_t i;

	p->what = ROW;
	for (i = 0; i < N_COLUMNS; i++)
		p->v[i] = UINT64_MAX;
	for (i = 0; i < n && got == SCAN_GOT; i++)
		got = column[i] == CONTENDED ? scan_take(s, is_u64, &p->v[CONTENDED])
					     : take_time(s, &p->v[column[i]]);
	if (got != SCAN_GOT) {
		/* known from the first cell with a unit on, or by its place */
		if (got != SCAN_BAD && (i > 2 || (i > 1 && t->lock.near)))
			p->look = text_found(TEXT_CUT, TEXT_ROW);
		return;
	}
	if (!headed && s->at < s->n && s->w[s->at].len == 16 && hex(s->w[s->at]))
		tail = ADDRESS;
	if (tail == CALLER)
		caller_tail(p, s);
	else if (tail == ADDRESS)
		address_tail(p, s);
	else
		task_tail(p, s, tail == TASK);
	if (p->look.match != TEXT_NO && p->look.match != TEXT_CUT)
		p->look.damaged |= s->foreign;
}

static struct parsed parse(const struct tables *tables, const char *line, size_t len)
{
	const struct tables_scratch *t = tables->scratch;
	struct host_text text = text_trim((struct host_text){line, len});
	struct parsed p = {.look = text_no()};
	struct scan s;

	if (!text.len || heading(&p, text))
		return p;
	scan_line(&s, text.at, text.len);
	if (t->lock.row && text_begins(s.w[0], "0x") && s.w[0].len > 6 &&
	    hex((struct host_text){s.w[0].at + 2, s.w[0].len - 2})) {
		p.what = STACK;
		p.look = text_found(s.n == 1 ? TEXT_MORE : TEXT_WHOLE, TEXT_STACK);
		/* not prose that a wrapped line is tried with */
		if (s.n > 3 || (s.n > 1 && !memchr(s.w[1].at, '+', s.w[1].len) &&
				!memchr(s.w[1].at, '_', s.w[1].len) && *s.w[1].at != '['))
			p.look = text_no();
		return p;
	}
	row(t, &p, &s);
	return p;
}

static struct text_look look(const void *state, const char *line, size_t len)
{
	return parse(state, line, len).look;
}

/* "0x" and @w in lower case, without leading zeros. */
static char *address(struct host_text w)
{
	char *out;
	size_t n = 2;

	while (w.len > 1 && *w.at == '0') {
		w.at++;
		w.len--;
	}
	out = malloc(w.len + 3);
	if (!out)
		return NULL;
	memcpy(out, "0x", 2);
	for (size_t i = 0; i < w.len; i++)
		out[n++] = w.at[i] >= 'A' && w.at[i] <= 'F' ? (char)(w.at[i] + 32) : w.at[i];
	out[n] = '\0';
	return out;
}

static bool copy(char **to, struct host_text from)
{
	if (!from.at || !from.len)
		return true;
	*to = tables_copy(from);
	return *to;
}

static int take_row(struct tables *t, const struct parsed *p)
{
	struct host_text offset = p->offset;
	struct contended_lock *l;

	if (tables_grow(&t->lock, t->n_locks, sizeof(*t->lock)))
		return KVMSIM_ENOMEM;
	l = &t->lock[t->n_locks++];
	l->contended = p->v[CONTENDED];
	l->total_ns = p->v[TOTAL];
	l->max_ns = p->v[MAX];
	l->avg_ns = p->v[AVG];
	t->scratch->lock.row = true;
	if (p->address.at) {
		l->address = address(p->address);
		if (!l->address)
			return KVMSIM_ENOMEM;
	}
	if (offset.at) {
		eat(&offset, "0x");
		l->offset = address(offset);
		if (!l->offset)
			return KVMSIM_ENOMEM;
	}
	return copy(&l->type, p->type) && copy(&l->name, p->name) ? 0 : KVMSIM_ENOMEM;
}

static int take(void *state, const char *line, size_t len, const struct text_look *l,
		uint64_t number)
{
	struct tables *t = state;
	struct tables_scratch *s = t->scratch;
	struct parsed p = parse(t, line, len);

	(void)l;
	(void)number;
	s->lock.near = true;
	switch (p.what) {
	case HEADING:
		s->lock.headed = true;
		s->lock.row = false;
		memcpy(s->lock.column, p.column, sizeof(p.column));
		s->lock.n_columns = p.n_columns;
		s->lock.tail = p.tail;
		return 0;
	case ROW:
		return take_row(t, &p);
	case STACK:
		t->lock[t->n_locks - 1].stack_lines++;
		return 0;
	default:
		return 0;
	}
}

static void gap(void *state, bool blank)
{
	struct tables *t = state;

	if (!blank)
		t->scratch->lock.near = false;
}

const struct text_format lock_format = {
	.kind = HOST_KIND_LOCK_CONTENTION, .look = look, .take = take, .gap = gap};
