// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/record.h"

#include "traces/host/chars.h"
#include "traces/host/columns.h"

static uint64_t load(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

struct record_name *record_name_find(struct record_names *names, const char *name, size_t len)
{
	uint64_t first = 0, last = 0, h;
	struct record_name *n;

	if (len >= 8) {
		first = load(name);
		last = load(name + len - 8);
	} else {
		memcpy(&first, name, len);
	}
	h = (first ^ last * 0x9e3779b97f4a7c15ull ^ len) * 0xff51afd7ed558ccdull;
	n = &names->of[h >> 32 & (RECORD_NAMES - 1)];
	if (n->len == len && n->first == first && n->last == last &&
	    (len <= 16 || (len <= sizeof(n->name) && !memcmp(n->name, name, len))))
		return n;
	n->first = first;
	n->last = last;
	n->len = len;
	memcpy(n->name, name, len < sizeof(n->name) ? len : sizeof(n->name));
	n->id = host_event_find(name, len);
	n->grammar = host_grammar_find(name, len);
	n->layout = 0;
	return n;
}

static void start(struct record *r)
{
	struct host_event *e = &r->e;

	e->time_ns = HOST_NO_TIME;
	e->tid = e->tgid = e->cpu = -1;
	e->comm = (struct host_text){"", 0};
	e->name.len = e->reason.len = 0;
	e->have = 0;
	e->damaged = e->role_unreliable = false;
	e->time_decimals = e->flags_width = 0;
	e->context = HOST_CONTEXT_UNKNOWN;
	r->note = r->any = r->brief = r->failed = false;
	memset(r->more, 0, sizeof(r->more));
}

/* "vcpu 3", "vcpu_id 3", "vcpu=3", "vcpu_id=3" of an event that has no grammar here. */
static void find_vcpu(struct host_event *e, const char *p, const char *end)
{
	while ((p = memmem(p, end - p, "vcpu", 4))) {
		const char *q;
		uint64_t v;
		bool fits;

		p += 4;
		if (begins(p, end, "_id"))
			p += 3;
		if (p == end || (*p != ' ' && *p != '='))
			continue;
		q = read_dec(p + 1, end, &v, &fits);
		if (q > p + 1 && fits && (q == end || !is(*q, CHAR_NAME))) {
			host_set(e, HOST_F_vcpu, v);
			return;
		}
	}
}

static bool stack_name(const char *p, size_t len)
{
	return equals(p, p + len, "kernel_stack") || equals(p, p + len, "user_stack");
}

/* A few characters alone behind the last field are no note; tables count them the same way. */
static bool stray(const char *p, const char *end)
{
	if (p == end || end - p > 3)
		return false;
	for (; p < end; p++)
		if (is(*p, CHAR_DIGIT | CHAR_BLANK))
			return false;
	return true;
}

/* Their texts are beyond libtraceevent, which prints all of their fields as decimals. */
static bool page_role(enum host_event_id id)
{
	return id == HOST_kvm_mmu_get_page || id == HOST_kvm_mmu_sync_page ||
	       id == HOST_kvm_mmu_unsync_page || id == HOST_kvm_mmu_prepare_zap_page;
}

static void fields(struct record_name *n, const char *p, const char *end, bool tolerant,
		   struct record *r)
{
	static const char failed[] = "[FAILED TO PARSE]";
	struct host_event *e = &r->e;
	struct matched m;

	e->id = n->id;
	p = skip_blanks(p, end);
	if (p < end && *p == '[' && begins(p, end, failed)) {
		e->damaged = r->failed = true;
		(void)grammar_raw(p + strlen(failed), end, true, e);
		r->any = true;
		r->how = RECORD_WHOLE;
		return;
	}
	if (p < end && *p == '[' && (size_t)(end - p) < strlen(failed) &&
	    !memcmp(p, failed, end - p)) {
		r->how = RECORD_CUT;
		return;
	}
	if (!n->grammar) {
		if (e->id == HOST_KVM_REST || e->id == HOST_UNKNOWN_KVM)
			find_vcpu(e, p, end);
		r->any = true;
		r->how = RECORD_WHOLE;
		return;
	}
	m = grammar_match(n->grammar, p, end, tolerant, &n->layout, e);
	if (m.how != MATCH_WHOLE) {
		struct matched raw;

		if (m.how == MATCH_CUT) {
			e->damaged |= m.foreign != 0;
			r->how = RECORD_CUT;
			return;
		}
		e->have = 0;
		e->reason.len = 0;
		raw = grammar_raw(p, end, page_role(e->id), e);
		r->any = true;
		r->how = raw.how == MATCH_WHOLE ? RECORD_WHOLE : RECORD_BAD;
		return;
	}
	r->how = RECORD_WHOLE;
	if (stray(m.rest, end))
		e->damaged = true;
	else
		r->note = m.rest < end;
	r->brief = m.needs_next;
	memcpy(r->more, m.more, sizeof(r->more));
	e->damaged |= m.foreign != 0;
	/* the kernel's own text has the generation, or the size of an entry */
	e->role_unreliable = host_has(e, HOST_F_root_count) && !host_has(e, HOST_F_gen) &&
			     !host_has(e, HOST_F_gpte_bytes);
}

/* From the event's name on. @sure: an event of any name. */
static void from_name(struct record_names *names, const char *p, const char *end, bool sure,
		      bool tolerant, struct record *r)
{
	const char *q = skip(p, end, CHAR_NAME), *system = NULL;
	struct record_name *n;

	if (q < end && is(*q, CHAR_BLANK) && skip(p, q, CHAR_DIGIT) == q && q > p) { /* a period */
		p = skip_blanks(q, end);
		q = skip(p, end, CHAR_NAME);
	}
	if (p < end && is(*p, CHAR_DIGIT)) {
		r->how = RECORD_NO;
		return;
	}
	if (q == p) {
		static const char stack[] = "<stack trace>", user[] = "<user stack trace>";

		r->how = begins(p, end, stack) || begins(p, end, user) ? RECORD_STACK : RECORD_NO;
		if (r->how == RECORD_NO && *p == '<' &&
		    (begins(stack, stack + strlen(stack), "<") &&
		     (size_t)(end - p) < strlen(stack) && !memcmp(stack, p, end - p)))
			r->how = RECORD_CUT;
		return;
	}
	if (q + 1 < end && *q == ':' && is(q[1], CHAR_NAME)) {
		system = p;
		p = q + 1;
		q = skip(p, end, CHAR_NAME);
	}
	if (q == end) {
		r->how = RECORD_CUT;
		return;
	}
	if (*q != ':') {
		static const char function[] = "function";

		if (sure && begins(skip_blanks(q, end), end, "<-")) {
			r->e.name = (struct host_text){function, sizeof(function) - 1};
			r->e.id = HOST_OTHER;
			r->any = true;
			r->how = RECORD_WHOLE;
			return;
		}
		if (!tolerant || host_event_find(p, q - p) < HOST_KVM_REST) {
			r->how = RECORD_NO;
			return;
		}
		r->e.damaged = true;
		q = skip_blanks(q, end);
		if (q < end && *q == ':')
			q++;
		while (is(q[-1], CHAR_BLANK))
			q--;
		n = record_name_find(names, p, skip(p, q, CHAR_NAME) - p);
		r->e.name = (struct host_text){p, n->len};
		fields(n, q, end, tolerant, r);
		return;
	}
	n = record_name_find(names, p, q - p);
	r->e.name = (struct host_text){p, q - p};
	if (stack_name(p, q - p)) {
		r->how = RECORD_STACK;
		return;
	}
	if (!sure && !system && n->id == HOST_OTHER) {
		r->how = RECORD_NO;
		return;
	}
	fields(n, q + 1, end, tolerant, r);
	if (r->how == RECORD_WHOLE && skip_blanks(q + 1, end) == end && !n->grammar && !system &&
	    !sure)
		r->how = RECORD_NO;
}

static void read_line(struct record_names *names, const char *line, size_t len, bool tolerant,
		      struct record *r)
{
	const char *end = line + len, *name = NULL;
	bool sure = true;
	enum columns c;

	start(r);
	c = columns_bracket(&r->e, line, end, &name);
	if (c == COLUMNS_NO) {
		start(r);
		c = columns_other(&r->e, line, end, &name, &sure);
	}
	switch (c) {
	case COLUMNS_NO:
		r->how = RECORD_NO;
		return;
	case COLUMNS_TASK:
		r->how = RECORD_TASK;
		return;
	case COLUMNS_CUT:
		r->how = RECORD_CUT;
		return;
	case COLUMNS_ALL:
		from_name(names, name, end, sure, tolerant, r);
	}
}

void record_read(struct record_names *names, const char *line, size_t len, struct record *r)
{
	read_line(names, line, len, false, r);
}

/* ---- columns with something foreign between them ---- */

struct mended {
	char *to;
	unsigned foreign;
};

static void copy(struct mended *m, const char *p, const char *end)
{
	memcpy(m->to, p, end - p);
	m->to += end - p;
}

/* The CPU's column without one of its brackets, or with a character at its end. */
static bool mend_cpu(struct mended *m, const char *p, const char *q)
{
	const char *d = p + (*p == '['), *e = skip(d, q, CHAR_DIGIT);

	if (e == d || e - d > 5 || (*p != '[' && (e == q || *e != ']')))
		return false;
	if (e < q && *e == ']')
		e++;
	if (q - e > 1)
		return false;
	m->foreign += *p != '[' || e[-1] != ']' || e < q;
	*m->to++ = '[';
	copy(m, d, skip(d, q, CHAR_DIGIT));
	*m->to++ = ']';
	return true;
}

/* Copies a line's columns up to its event's name without what does not belong there. NULL: not a
 * record. Returns where the name begins in @line. */
static const char *mend(const char *line, const char *end, struct mended *m)
{
	const char *p = skip_blanks(line, end), *w, *next;
	bool task = false, cpu = false, time = false;

	for (w = p; w < end; w = skip_blanks(next, end)) {
		struct host_event e;
		const char *t;

		next = to_blank(w, end);
		if (w > p)
			*m->to++ = ' ';
		if (!task) {
			const char *d = next;

			while (d > w && is(d[-1], CHAR_DIGIT))
				d--;
			task = d < next && d > w && d[-1] == '-';
			copy(m, w, next);
			if (next - p > 64)
				return NULL;
			continue;
		}
		if (time && skip(w, next, CHAR_NAME) > w && next - w > 2)
			return w;
		if (!cpu && (*w == '[' || next[-1] == ']') && mend_cpu(m, w, next)) {
			cpu = true;
			continue;
		}
		t = !time && is(*w, CHAR_DIGIT) ? columns_time(&e, w, end) : NULL;
		if (t && t <= next && t < end) {
			time = true;
			copy(m, w, t);
			next = t;
			continue;
		}
		if (!time && is(*w, CHAR_DIGIT) && memchr(w, '.', next - w) &&
		    skip(w, next, CHAR_DIGIT | CHAR_FLAG) == next) { /* its colon is missing */
			time = true;
			m->foreign++;
			copy(m, w, next);
			*m->to++ = ':';
			continue;
		}
		if ((columns_flags(w, next) && !time) || *w == '(' || next[-1] == ')') {
			copy(m, w, next);
			continue;
		}
		if (next - w > 2)
			return NULL;
		m->foreign++;
		m->to--;
	}
	return NULL;
}

/* Whether a known event's name with its colon stands behind what may be columns. */
static bool names_event(const char *p, const char *end)
{
	bool columns = false;
	const char *next;

	for (p = skip_blanks(p, end); p < end; p = skip_blanks(next, end)) {
		next = to_blank(p, end);
		if (columns && next[-1] == ':' && host_event_find(p, next - 1 - p) >= HOST_KVM_REST)
			return true;
		columns |= *p == '[' || (is(*p, CHAR_DIGIT) && memchr(p, '.', next - p));
	}
	return false;
}

void record_read_damaged(struct record_names *names, const char *line, size_t len, char *scratch,
			 struct record *r)
{
	const char *end = line + len, *name;
	struct mended m = {.to = scratch};

	read_line(names, line, len, true, r);
	if (r->how != RECORD_NO)
		return;
	name = mend(line, end, &m);
	if (!name || !m.foreign) {
		if (names_event(line, end))
			r->how = RECORD_BAD;
		return;
	}
	if (m.to[-1] != ' ')
		*m.to++ = ' ';
	copy(&m, name, end);
	read_line(names, scratch, m.to - scratch, true, r);
	r->e.damaged = r->how != RECORD_NO;
	r->failed = false;
	if (r->how == RECORD_NO && names_event(line, end))
		r->how = RECORD_BAD;
}
