// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf kvm stat report and live (tools/perf/builtin-kvm.c): of exits on any architecture, of MMIO,
 * port and MSR accesses; versions to 3.13 have no columns Min Time and Max Time.
 */
#include <stdlib.h>
#include <string.h>

#include "traces/tables/scan.h"
#include "traces/tables/scratch.h"

enum what { NOTHING, TITLE, CLOCK, HEADING, MESSAGE, ROW, TOTAL, LOST };

struct parsed {
	struct text_look look;
	enum what what;
	struct host_text name; /* of a row; scope of a title; the clock */
	struct number vcpu, lost;
	uint64_t code;
	struct perf_kvm_row row;
	uint64_t total_samples;
	struct decimal total_time;
};

static void found(struct parsed *p, enum what what, enum text_match match, enum text_class class)
{
	p->what = what;
	p->look = text_found(match, class);
}

/* "all VMs, all VCPUs:", "pid(s) 1234, VCPU 3:" */
static void title(struct parsed *p, struct host_text t)
{
	struct host_text pid;

	found(p, TITLE, TEXT_CUT, TEXT_HEADING);
	p->name = text_of("all");
	eat_blanks(&t);
	if (eat(&t, "pid(s) ")) {
		const char *comma = NULL;

		/* "1234,1240, all VCPUs:" */
		for (size_t i = 0; i + 1 < t.len && !comma; i++)
			if (t.at[i] == ',' && t.at[i + 1] == ' ')
				comma = t.at + i;
		if (!comma)
			return;
		pid = (struct host_text){t.at, (size_t)(comma - t.at)};
		p->name = pid;
		t = (struct host_text){comma + 1, t.len - pid.len - 1};
	} else if (!eat(&t, "all VMs,") && !eat(&t, "dazed and confused on what is monitored,") &&
		   /* versions to 3.13 name the vCPUs only */
		   !text_begins(t, "all VCPUs") && !text_begins(t, "VCPU ")) {
		if (t.len && (t.len > 7 || memcmp("all VMs", t.at, t.len)))
			p->look = text_no();
		return;
	}
	eat_blanks(&t);
	if (eat(&t, "VCPU ")) {
		eat_blanks(&t);
		if (!eat_u64(&t, &p->vcpu.value))
			return;
		p->vcpu.there = true;
	} else if (!eat(&t, "all VCPUs")) {
		return;
	}
	if (eat(&t, ":"))
		p->look.match = TEXT_WHOLE;
}

/* "19:22:01.123456", what live prints above each table. */
static bool clock_line(struct host_text t)
{
	static const char like[] = "00:00:00.000000";

	if (t.len != sizeof(like) - 1)
		return false;
	for (size_t i = 0; i < t.len; i++)
		if (like[i] == '0' ? t.at[i] < '0' || t.at[i] > '9' : t.at[i] != like[i])
			return false;
	return true;
}

static bool heading(struct parsed *p, struct host_text t)
{
	static const char *const names[] = {"VM-EXIT",	      "HCALL-EVENT", "MMIO Access",
					    "IO Port Access", "MSR Access",  "Event name"};
	static const char *const columns[] = {"Samples",  "Samples%", "Time%",
					      "Min Time", "Max Time", "Avg time"};
	size_t got = 0;
	bool known = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !known; i++)
		known = eat(&t, names[i]);
	if (!known)
		return false;
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		struct host_text rest = t;

		eat_blanks(&rest);
		if (eat(&rest, columns[i]) && (!rest.len || *rest.at == ' ' || *rest.at == '\t')) {
			t = rest;
			got = i + 1;
		}
	}
	if (!got)
		return false;
	t = text_trim(t);
	known = got == 6 || !t.len;
	for (size_t i = got; i < sizeof(columns) / sizeof(*columns); i++)
		known |= t.len < strlen(columns[i]) && !memcmp(t.at, columns[i], t.len);
	if (!known)
		return false;
	found(p, HEADING, got == 6 ? TEXT_WHOLE : TEXT_CUT, TEXT_HEADING);
	return true;
}

/* "unknown kvm exit code:458752 on VMX" */
static bool message(struct parsed *p, struct host_text t)
{
	if (!eat(&t, "unknown kvm exit code:"))
		return false;
	found(p, MESSAGE, TEXT_CUT, TEXT_MESSAGE);
	if (!eat_u64(&t, &p->code))
		return true;
	eat_blanks(&t);
	if (!eat(&t, "on"))
		return true;
	t = text_trim(t);
	if (t.len)
		p->look.match = TEXT_WHOLE;
	return true;
}

/* "Total Samples:8589, Total events handled time:4070101.29us." */
static bool footer(struct parsed *p, struct host_text t, bool near)
{
	if (eat(&t, "Lost events:")) {
		eat_blanks(&t);
		p->lost.there = eat_u64(&t, &p->lost.value);
		found(p, LOST, p->lost.there ? TEXT_WHOLE : TEXT_CUT, TEXT_ROW);
		return true;
	}
	if (near && t.len > 5 && text_cut_of(t, "Total Samples:")) {
		found(p, TOTAL, TEXT_CUT, TEXT_ROW);
		return true;
	}
	if (!eat(&t, "Total Samples:"))
		return false;
	found(p, TOTAL, TEXT_CUT, TEXT_ROW);
	eat_blanks(&t);
	if (!eat_u64(&t, &p->total_samples))
		return true;
	if (!eat(&t, ","))
		return true;
	eat_blanks(&t);
	if (!eat(&t, "Total events handled"))
		return true;
	eat_blanks(&t);
	if (!eat(&t, "time:"))
		return true;
	eat_blanks(&t);
	if (!eat_decimal(&t, &p->total_time)) {
		p->look.match = t.len && *t.at != '-' && strncmp(t.at, "nan", t.len < 3 ? t.len : 3)
					? TEXT_NO
					: TEXT_CUT;
		return true;
	}
	if (!eat(&t, "us"))
		return true;
	p->look.match = TEXT_WHOLE;
	p->look.damaged = !eat(&t, ".");
	p->look.note = text_trim(t).len;
	return true;
}

/* "1.03us": two decimals, so that a number that is cut is told. */
static bool is_us(struct host_text w, void *out)
{
	struct decimal d;

	if (!eat_decimal(&w, &d) || !text_is(w, "us"))
		return false;
	if (out)
		*(struct decimal *)out = d;
	return true;
}

/* What stands behind the average: "( +-   4.12% )". */
static void deviation(struct parsed *p, const struct scan *s)
{
	struct host_text t = scan_remaining(s);

	p->look = text_found(TEXT_CUT, TEXT_ROW);
	if (!t.len)
		return;
	if (!eat(&t, "(") && !text_begins(t, "+-")) {
		p->look = text_no();
		return;
	}
	eat_blanks(&t);
	if (!t.len || text_is(t, "+"))
		return;
	if (!eat(&t, "+-")) {
		p->look = text_no();
		return;
	}
	eat_blanks(&t);
	if (!t.len || text_is(t, "-"))
		return;
	if (!eat(&t, "nan%") && !eat(&t, "-nan%")) {
		if (!eat_decimal(&t, &p->row.dev_pct)) {
			p->look = text_no();
			return;
		}
		if ((!t.len && p->row.dev_pct.digits < 2) || text_is(t, "."))
			return; /* "14.3", "14.": cut inside of it */
		if (!eat(&t, "%"))
			p->look.damaged = true;
	}
	eat_blanks(&t);
	if (!t.len) { /* only the bracket is missing */
		p->look.damaged = true;
		return;
	}
	if (!eat(&t, ")")) {
		p->look = text_no();
		return;
	}
	p->look.match = TEXT_WHOLE;
	t = text_trim(t);
	if (scan_foreign(t))
		p->look.damaged = true;
	else
		p->look.note = t.len;
}

/* The words before the number of samples: a name, which may hold single blanks. */
static bool row_name(struct parsed *p, struct scan *s, size_t samples)
{
	size_t n = 1;

	if (*s->w[0].at >= '0' && *s->w[0].at <= '9' && !text_begins(s->w[0], "0x"))
		return false;
	while (n < samples && s->w[n].at == s->w[n - 1].at + s->w[n - 1].len + 1)
		n++;
	p->name = (struct host_text){s->w[0].at,
				     (size_t)(s->w[n - 1].at + s->w[n - 1].len - s->w[0].at)};
	for (; n < samples; n++) {
		if (!scan_foreign(s->w[n]) || s->foreign == 2)
			return false;
		s->foreign++;
	}
	return true;
}

static bool upper(struct host_text w)
{
	for (size_t i = 0; i < w.len; i++)
		if (!(w.at[i] >= 'A' && w.at[i] <= 'Z') && !(w.at[i] >= '0' && w.at[i] <= '9') &&
		    w.at[i] != '_')
			return false;
	return w.len > 1 && w.at[0] >= 'A';
}

static void row(const struct tables_scratch *t, struct parsed *p, struct scan *s)
{
	struct decimal *const column[] = {&p->row.samples_pct, &p->row.time_pct, &p->row.min_us,
					  &p->row.max_us, &p->row.avg_us};
	enum scan_got got = SCAN_GOT;
	bool damaged;
	size_t i = 1;

	p->what = ROW;
	while (i < s->n &&
	       !(is_u64(s->w[i], NULL) && (i + 1 == s->n || is_percent(s->w[i + 1], NULL) ||
					   i + 2 == s->n || is_percent(s->w[i + 2], NULL))))
		i++;
	if (i == s->n) { /* a name, and nothing else */
		if (t->perf_kvm.near && s->n == 1 && upper(s->w[0]))
			p->look = text_found(TEXT_CUT, TEXT_ROW);
		return;
	}
	if (!row_name(p, s, i))
		return;
	s->at = i;
	scan_take(s, is_u64, &p->row.samples.value);
	p->row.samples.there = true;
	for (i = 0; i < 5 && got == SCAN_GOT; i++) {
		if (i == 3 && s->at < s->n && *s->w[s->at].at == '(') { /* no min and max */
			p->row.avg_us = p->row.min_us;
			p->row.min_us = (struct decimal){0};
			break;
		}
		got = scan_take(s, i < 2 ? is_percent : is_us, column[i]);
	}
	if (got != SCAN_GOT) {
		if (got != SCAN_BAD &&
		    (i > 1 || (t->perf_kvm.near && !memchr(p->name.at, ' ', p->name.len))))
			p->look = text_found(TEXT_CUT, TEXT_ROW);
		return;
	}
	deviation(p, s);
	damaged = s->foreign;
	if (p->look.match != TEXT_NO && (p->look.match == TEXT_WHOLE || p->look.damaged))
		p->look.damaged |= damaged;
}

static struct parsed parse(const struct tables *tables, const char *line, size_t len)
{
	struct host_text t = {line, len};
	struct parsed p = {.look = text_no()};
	struct scan s;

	while (eat(&t, "\033[H") || eat(&t, "\033[2J")) /* live clears the screen */
		;
	t = text_trim(t);
	if (!t.len)
		return p;
	if (eat(&t, "Analyze events for")) {
		title(&p, t);
		return p;
	}
	if (clock_line(t)) {
		found(&p, CLOCK, TEXT_WHOLE, TEXT_HEADING);
		p.name = t;
		return p;
	}
	if (heading(&p, t) || message(&p, t) || footer(&p, t, tables->scratch->perf_kvm.near))
		return p;
	scan_line(&s, t.at, t.len);
	row(tables->scratch, &p, &s);
	return p;
}

static struct text_look look(const void *state, const char *line, size_t len)
{
	return parse(state, line, len).look;
}

static int new_table(struct tables *t, const struct parsed *p)
{
	struct tables_scratch *s = t->scratch;
	struct perf_kvm_table *k;

	if (tables_grow(&t->perf_kvm, t->n_perf_kvm, sizeof(*t->perf_kvm)))
		return KVMSIM_ENOMEM;
	k = &t->perf_kvm[t->n_perf_kvm++];
	k->vcpu = p->vcpu;
	k->wall_clock = s->perf_kvm.clock;
	s->perf_kvm.clock = NULL;
	s->perf_kvm.open = true;
	s->perf_kvm.headed = false;
	if (p->what == TITLE && !text_is(p->name, "all")) {
		k->scope = malloc(p->name.len + sizeof("pid "));
		if (!k->scope)
			return KVMSIM_ENOMEM;
		strcpy(k->scope, "pid ");
		memcpy(k->scope + 4, p->name.at, p->name.len);
		k->scope[4 + p->name.len] = '\0';
		return 0;
	}
	k->scope = tables_copy(text_of("all"));
	return k->scope ? 0 : KVMSIM_ENOMEM;
}

static int take_row(struct tables *t, const struct parsed *p)
{
	struct perf_kvm_table *k = &t->perf_kvm[t->n_perf_kvm - 1];
	struct perf_kvm_row *r;

	if (tables_grow(&k->row, k->n_rows, sizeof(*k->row)))
		return KVMSIM_ENOMEM;
	r = &k->row[k->n_rows++];
	*r = p->row;
	r->code = t->scratch->perf_kvm.code;
	t->scratch->perf_kvm.code.there = false;
	t->scratch->perf_kvm.headed = true;
	r->name = tables_copy(p->name);
	return r->name ? 0 : KVMSIM_ENOMEM;
}

static int take(void *state, const char *line, size_t len, const struct text_look *l,
		uint64_t number)
{
	struct tables *t = state;
	struct tables_scratch *s = t->scratch;
	struct parsed p = parse(t, line, len);
	struct perf_kvm_table *k;
	int err = 0;

	(void)l;
	(void)number;
	s->perf_kvm.near = p.what != CLOCK;
	switch (p.what) {
	case TITLE:
		return new_table(t, &p);
	case CLOCK:
		free(s->perf_kvm.clock);
		s->perf_kvm.open = false;
		s->perf_kvm.clock = tables_copy(p.name);
		return s->perf_kvm.clock ? 0 : KVMSIM_ENOMEM;
	case MESSAGE:
		s->perf_kvm.code = (struct number){p.code, true};
		return 0;
	case HEADING:
		if (!s->perf_kvm.open || s->perf_kvm.headed)
			err = new_table(t, &p);
		s->perf_kvm.headed = true;
		return err;
	case ROW:
	case TOTAL:
	case LOST:
		if (!s->perf_kvm.open && !(p.what == LOST && t->n_perf_kvm))
			err = new_table(t, &p);
		if (err)
			return err;
		if (p.what == ROW)
			return take_row(t, &p);
		k = &t->perf_kvm[t->n_perf_kvm - 1];
		if (p.what == LOST) {
			k->lost = p.lost;
			return 0;
		}
		k->total_samples = (struct number){p.total_samples, true};
		k->total_time_us = p.total_time;
		s->perf_kvm.open = s->perf_kvm.near = false;
		s->perf_kvm.code.there = false;
		return 0;
	default:
		return 0;
	}
}

static void gap(void *state, bool blank)
{
	struct tables *t = state;

	if (!blank)
		t->scratch->perf_kvm.near = false;
}

const struct text_format perf_kvm_format = {
	.kind = HOST_KIND_PERF_KVM_STAT, .look = look, .take = take, .gap = gap};
