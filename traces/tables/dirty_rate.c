// SPDX-License-Identifier: GPL-2.0-or-later
/* QEMU's `info dirty_rate` (migration/dirtyrate.c); versions before 6.2 have no mode. */
#include <stdlib.h>
#include <string.h>

#include "traces/tables/scan.h"
#include "traces/tables/scratch.h"

enum what { NOTHING, STATUS, START, SAMPLE, PERIOD, MODE, RATE, VCPU };

struct parsed {
	struct text_look look;
	enum what what;
	struct host_text word;
	struct number v;
	uint64_t vcpu;
};

/* "(ms)" behind a value: its beginning alone is cut, but for the bracket. */
static void unit(struct parsed *p, struct host_text t, const char *name)
{
	size_t n = strlen(name); /* with both brackets */

	t = text_trim(t);
	p->look = text_found(TEXT_CUT, TEXT_ROW);
	if (t.len && *t.at != '(') {
		struct host_text w = {t.at, 0};

		while (w.len < t.len && t.at[w.len] != ' ' && t.at[w.len] != '\t')
			w.len++;
		if (w.len == t.len || !scan_foreign(w)) {
			p->look = text_no();
			return;
		}
		p->look.damaged = true;
		t = text_trim((struct host_text){t.at + w.len, t.len - w.len});
	}
	if (t.len < n) {
		bool bracket = t.len == n - 1 && !memcmp(t.at, name, t.len);

		if (memcmp(t.at, name, t.len))
			p->look = text_no();
		else
			p->look.damaged = bracket;
		return;
	}
	if (!eat(&t, name)) {
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

static void value(struct parsed *p, struct host_text t, const char *name)
{
	t = text_trim(t);
	if (!t.len) {
		p->look = text_found(TEXT_CUT, TEXT_ROW);
		return;
	}
	p->v.there = eat_u64(&t, &p->v.value);
	if (p->v.there)
		unit(p, t, name);
}

static void status(struct parsed *p, struct host_text t)
{
	static const char *const words[] = {"unstarted", "measuring", "measured"};

	t = text_trim(t);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct host_text rest = t;

		if (!eat(&rest, words[i]) || (rest.len && *rest.at != ' '))
			continue;
		p->word = text_of(words[i]);
		p->look = text_found(TEXT_WHOLE, TEXT_ROW);
		rest = text_trim(rest);
		p->look.damaged = scan_foreign(rest);
		p->look.note = rest.len && !p->look.damaged;
	}
}

static void mode(struct parsed *p, struct host_text t)
{
	static const char *const words[] = {"page-sampling", "dirty-ring", "dirty-bitmap"};

	t = text_trim(t);
	p->look = text_found(TEXT_CUT, TEXT_ROW);
	if (!t.len)
		return;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct host_text rest = t;

		if (t.len < strlen(words[i]) && !memcmp(t.at, words[i], t.len))
			return; /* cut inside the word */
		if (!eat(&rest, words[i]) || (rest.len && *rest.at != ' '))
			continue;
		p->word = text_of(words[i]);
		p->look.match = TEXT_WHOLE;
		rest = text_trim(rest);
		p->look.damaged = scan_foreign(rest);
		p->look.note = rest.len && !p->look.damaged;
		return;
	}
	p->look = text_no();
}

static void rate(struct parsed *p, struct host_text t)
{
	static const char none[] = "(not ready)";

	t = text_trim(t);
	if (!t.len || (t.len < sizeof(none) - 1 && !memcmp(t.at, none, t.len))) {
		p->look = text_found(TEXT_CUT, TEXT_ROW);
		p->look.damaged = t.len == sizeof(none) - 2;
	} else if (eat(&t, none)) {
		p->look = text_found(TEXT_WHOLE, TEXT_ROW);
		p->look.note = text_trim(t).len;
	} else {
		value(p, t, "(MB/s)");
	}
}

/* "vcpu[0], Dirty rate: 37 (MB/s)" */
static void vcpu(struct parsed *p, struct host_text t)
{
	if (!eat_u64(&t, &p->vcpu) || !eat(&t, "],"))
		return;
	eat_blanks(&t);
	if (eat(&t, "Dirty rate:"))
		value(p, t, "(MB/s)");
	else if (!t.len || text_is(t, "Dirty"))
		p->look = text_found(TEXT_CUT, TEXT_ROW);
}

static struct parsed parse(const struct tables *tables, const char *line, size_t len)
{
	struct host_text t = text_trim((struct host_text){line, len});
	struct parsed p = {.look = text_no()};

	if (eat(&t, "Status:")) {
		p.what = STATUS;
		status(&p, t);
	} else if (eat(&t, "Start Time:")) {
		p.what = START;
		value(&p, t, "(ms)");
	} else if (eat(&t, "Sample Pages:")) {
		p.what = SAMPLE;
		value(&p, t, "(per GB)");
	} else if (eat(&t, "Period:")) {
		p.what = PERIOD;
		value(&p, t, "(sec)");
	} else if (eat(&t, "Mode:")) {
		p.what = MODE;
		mode(&p, t);
	} else if (eat(&t, "Dirty rate:")) {
		p.what = RATE;
		rate(&p, t);
	} else if (eat(&t, "vcpu[")) {
		p.what = VCPU;
		vcpu(&p, t);
	} else if (text_cut_of(t, "Start Time:") || text_cut_of(t, "Sample Pages:") ||
		   text_cut_of(t, "Period:") || text_cut_of(t, "Dirty rate:")) {
		p.look = text_found(TEXT_CUT, TEXT_ROW);
	}
	/* one word and a colon are prose, but for where they are expected */
	if (p.look.match == TEXT_CUT && !tables->scratch->dirty_rate.open)
		p.look = text_no();
	return p;
}

static struct text_look look(const void *state, const char *line, size_t len)
{
	return parse(state, line, len).look;
}

/* A record begins with its status, or with a field that the one before has already. */
static struct dirty_rate *record(struct tables *t, enum what what)
{
	struct tables_scratch *s = t->scratch;

	if (!s->dirty_rate.open || (what != VCPU && s->dirty_rate.seen & 1u << what)) {
		if (tables_grow(&t->dirty_rate, t->n_dirty_rates, sizeof(*t->dirty_rate)))
			return NULL;
		t->n_dirty_rates++;
		s->dirty_rate.open = true;
		s->dirty_rate.seen = 0;
	}
	s->dirty_rate.seen |= 1u << what;
	return &t->dirty_rate[t->n_dirty_rates - 1];
}

static int add_vcpu(struct dirty_rate *r, const struct parsed *p)
{
	if (tables_grow(&r->vcpu, r->n_vcpus, sizeof(*r->vcpu)))
		return KVMSIM_ENOMEM;
	r->vcpu[r->n_vcpus++] = (struct vcpu_rate){p->vcpu, p->v.value};
	return 0;
}

static int take(void *state, const char *line, size_t len, const struct text_look *l,
		uint64_t number)
{
	struct tables *t = state;
	struct parsed p = parse(t, line, len);
	struct dirty_rate *r;

	(void)l;
	(void)number;
	if (p.what == NOTHING)
		return 0;
	r = record(t, p.what);
	if (!r)
		return KVMSIM_ENOMEM;
	switch (p.what) {
	case STATUS:
		r->status = tables_copy(p.word);
		return r->status ? 0 : KVMSIM_ENOMEM;
	case START:
		r->start_ms = p.v;
		break;
	case SAMPLE:
		/* of another mode the number means nothing; the mode comes behind */
		r->sample_pages = p.v;
		if (r->mode && strcmp(r->mode, "page-sampling"))
			r->sample_pages.there = false;
		break;
	case PERIOD:
		r->period_s = p.v;
		break;
	case MODE:
		r->mode = tables_copy(p.word);
		if (!r->mode)
			return KVMSIM_ENOMEM;
		if (strcmp(r->mode, "page-sampling"))
			r->sample_pages.there = false;
		break;
	case RATE:
		r->rate_mb_s = p.v;
		break;
	case VCPU:
		return p.v.there ? add_vcpu(r, &p) : 0;
	default:
		break;
	}
	return 0;
}

static void gap(void *state, bool blank)
{
	(void)state;
	(void)blank;
}

const struct text_format dirty_rate_format = {
	.kind = HOST_KIND_QEMU_MONITOR, .look = look, .take = take, .gap = gap};
