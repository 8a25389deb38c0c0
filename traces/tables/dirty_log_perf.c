// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dirty_log_perf_test (tools/testing/selftests/kvm), of every kernel since 5.11: the memory as an
 * offset, later as a range; with and without the manual mode's lines; what -v of older ones adds.
 */
#include <stdlib.h>
#include <string.h>

#include "traces/tables/scan.h"
#include "traces/tables/scratch.h"

enum what {
	NOTHING,
	ITERATIONS,
	MODE,
	OFFSET,
	RANGE,
	POPULATE,
	ENABLE,
	DISABLE,
	DIRTY,
	GET,
	CLEAR,
	GET_TOTAL,
	CLEAR_TOTAL,
	KNOWN, /* nothing is taken from it */
};

/* The words of each line. %u a number, %t seconds with nine decimals and an s, %T the same and a
 * full stop, %a as in "0.5s/iteration)", %x a number in hex, %[ and %) the ends of a range, %v
 * whatever comes before `pages`. */
static const struct {
	const char *words;
	enum what what;
	unsigned enough; /* words after which a line that is cut is known */
} patterns[] = {
	{"Test iterations: %u", ITERATIONS, 2},
	{"Testing guest mode: %v", MODE, 3},
	{"guest physical test memory offset: %x", OFFSET, 4},
	{"guest physical test memory: %[ %)", RANGE, 4},
	{"Populate memory time: %t", POPULATE, 3},
	{"Setting dirty log mode took : %t", KNOWN, 4},
	{"Enabling dirty logging time: %t", ENABLE, 3},
	{"Disabling dirty logging time: %t", DISABLE, 3},
	{"Iteration %u dirty memory time: %t", DIRTY, 3},
	{"Iteration %u get dirty log time: %t", GET, 3},
	{"Iteration %u clear dirty log time: %t", CLEAR, 3},
	{"Get dirty log over %u iterations took %T (Avg %a", GET_TOTAL, 4},
	{"Clear dirty log over %u iterations took %T (Avg %a", CLEAR_TOTAL, 4},
	{"Random seed: %u", KNOWN, 3},
	{"Starting iteration %u", KNOWN, 3},
	{"Starting iteration %u - Populating", KNOWN, 4},
	{"Started all vCPUs", KNOWN, 3},
	{"All vCPU threads joined", KNOWN, 4},
	{"Got sync event from vCPU %u", KNOWN, 5},
	{"vCPU %u updated last completed iteration to %u", KNOWN, 4},
	{"vCPU %u iteration %u dirty memory time: %t", KNOWN, 4},
	{"vCPU %u iteration %u populate memory time: %t", KNOWN, 4},
	{"vCPU %u dirtied %x pages over %u iterations in %T (Avg %a", KNOWN, 4},
	{"Configuring vCPUs to run in L2 (nested).", KNOWN, 4},
};

struct parsed {
	struct text_look look;
	enum what what;
	uint64_t u, ns; /* first %u; first %t or %T */
};

/* Seconds as "%ld.%.9lds", which tells a number that is cut. */
static bool eat_seconds(struct host_text *t, uint64_t *ns)
{
	struct host_text rest = *t;
	struct decimal d;

	if (!eat_decimal(&rest, &d) || d.digits != 9 || d.value < 0)
		return false;
	*ns = (uint64_t)d.value;
	*t = rest;
	return true;
}

static bool eat_hex(struct host_text *t)
{
	struct host_text rest = *t;
	size_t n = 0;

	if (!eat(&rest, "0x"))
		return false;
	while (n < rest.len && strchr("0123456789abcdefABCDEF", rest.at[n]))
		n++;
	*t = (struct host_text){rest.at + n, rest.len - n};
	return n;
}

enum fit { FITS, FITS_DAMAGED, CUT, FAILS };

static enum fit ends(struct host_text w, const char *with)
{
	if (text_is(w, with))
		return FITS;
	return w.len < strlen(with) && !memcmp(w.at, with, w.len) ? FITS_DAMAGED : FAILS;
}

/* One word against one of the pattern; @last of the line: only the last can be cut. */
static enum fit fit(struct parsed *p, struct host_text want, struct host_text w, bool last,
		    bool *have_u)
{
	enum fit f;
	uint64_t v;

	if (*want.at != '%') {
		if (want.len == w.len && !memcmp(want.at, w.at, w.len))
			return FITS;
		return last && w.len < want.len && !memcmp(want.at, w.at, w.len) ? CUT : FAILS;
	}
	switch (want.at[1]) {
	case 'u':
		if (!is_u64(w, &v))
			return FAILS;
		if (!*have_u)
			p->u = v;
		*have_u = true;
		return FITS;
	case 'x':
		return eat_hex(&w) && !w.len			       ? FITS
		       : last && (text_is(w, "0") || text_is(w, "0x")) ? CUT
								       : FAILS;
	case '[':
		return eat(&w, "[") && eat_hex(&w) && text_is(w, ",") ? FITS : last ? CUT : FAILS;
	case ')':
		if (!eat_hex(&w))
			return last && (text_is(w, "0") || text_is(w, "0x")) ? CUT : FAILS;
		return ends(w, ")");
	default:
		if (!eat_seconds(&w, &v))
			return last && w.len && *w.at >= '0' && *w.at <= '9' ? CUT : FAILS;
		if (want.at[1] != 'a')
			p->ns = v;
		f = ends(w, want.at[1] == 't' ? "s" : want.at[1] == 'T' ? "s." : "s/iteration)");
		return f == FITS_DAMAGED && !last ? FITS_DAMAGED : f;
	}
}

/* Whether the words are those of the pattern; a foreign word between two is stepped over. */
static bool match(struct parsed *p, size_t pattern, const struct scan *s)
{
	const char *at = patterns[pattern].words;
	struct parsed q = {.what = patterns[pattern].what};
	bool have_u = false, damaged = false;
	unsigned foreign = 0, words = 0;
	size_t i = 0;

	while (*at) {
		size_t n = strcspn(at, " ");
		struct host_text want = {at, n};
		enum fit f;

		if (i == s->n)
			break;
		if (n == 2 && !memcmp(at, "%v", 2)) {
			i = s->n;
			at += text_is(s->w[i - 1], "pages") ? n : 0;
			break;
		}
		f = fit(&q, want, s->w[i], i + 1 == s->n, &have_u);
		if (f == FAILS && i && !foreign && i + 1 < s->n && scan_foreign(s->w[i])) {
			f = fit(&q, want, s->w[i + 1], i + 2 == s->n, &have_u);
			if (f == FITS || f == FITS_DAMAGED) {
				foreign++;
				i++;
			}
		}
		if (f == FAILS)
			return false;
		if (f == CUT)
			break;
		damaged |= f == FITS_DAMAGED;
		i++;
		words++;
		at += n + (at[n] == ' ');
	}
	q.look = text_found(TEXT_WHOLE, TEXT_ROW);
	if (*at) { /* the line was shorter */
		if (words < patterns[pattern].enough)
			return false;
		q.look.match = TEXT_CUT;
	} else {
		struct scan rest = *s;

		rest.at = i;
		rest.foreign = foreign;
		scan_rest(&rest, &q.look);
		q.look.damaged |= damaged;
		if (damaged && i == s->n) /* what is missing may come with the next line */
			q.look.match = TEXT_CUT;
		else if (damaged && q.look.note)
			return false;
	}
	*p = q;
	return true;
}

static struct parsed parse(const char *line, size_t len)
{
	struct parsed p = {.look = text_no()}, best = p;
	struct scan s;

	scan_line(&s, line, len);
	if (!s.n)
		return p;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		if (!match(&p, i, &s))
			continue;
		if (p.look.match == TEXT_WHOLE && !p.look.note)
			return p;
		if (best.look.match == TEXT_NO || p.look.match == TEXT_WHOLE)
			best = p;
	}
	return best;
}

static struct text_look look(const void *state, const char *line, size_t len)
{
	(void)state;
	return parse(line, len).look;
}

static struct dirty_log_run *new_run(struct tables *t)
{
	struct tables_scratch *s = t->scratch;
	struct dirty_log_run *r;

	if (tables_grow(&t->run, t->n_runs, sizeof(*t->run)))
		return NULL;
	r = &t->run[t->n_runs++];
	r->label = s->dirty_log.label;
	s->dirty_log.label = NULL;
	s->dirty_log.open = true;
	s->dirty_log.populated = false;
	return r;
}

static int append(uint64_t **array, size_t *n, uint64_t v)
{
	if (tables_grow(array, *n, sizeof(**array)))
		return KVMSIM_ENOMEM;
	(*array)[(*n)++] = v;
	return 0;
}

/* Where a time that a run has once is put. */
static struct number *once(struct dirty_log_run *r, enum what what)
{
	switch (what) {
	case POPULATE:
		return &r->populate_ns;
	case ENABLE:
		return &r->enable_ns;
	case DISABLE:
		return &r->disable_ns;
	case GET_TOTAL:
		return &r->get_total_ns;
	case CLEAR_TOTAL:
		return &r->clear_total_ns;
	default:
		return NULL;
	}
}

static int put(struct dirty_log_run *r, const struct parsed *p)
{
	struct number *n = once(r, p->what);

	if (n)
		*n = (struct number){p->ns, true};
	switch (p->what) {
	case OFFSET:
	case RANGE:
		r->range = p->what == RANGE;
		return 0;
	case DIRTY:
		return append(&r->dirty_ns, &r->n_dirty, p->ns);
	case GET:
		return append(&r->get_ns, &r->n_get, p->ns);
	case CLEAR:
		return append(&r->clear_ns, &r->n_clear, p->ns);
	default:
		return 0;
	}
}

static int take(void *state, const char *line, size_t len, const struct text_look *l,
		uint64_t number)
{
	struct tables *t = state;
	struct tables_scratch *s = t->scratch;
	struct parsed p = parse(line, len);
	struct dirty_log_run *r = s->dirty_log.open ? &t->run[t->n_runs - 1] : NULL;
	struct number iterations = {p.u, true};

	(void)l;
	(void)number;
	if (p.what == KNOWN || p.what == NOTHING)
		return 0;
	/* one announcement holds for all guest modes that follow */
	if (p.what != ITERATIONS)
		iterations = r && p.what == MODE ? r->iterations : (struct number){0};
	if (!r || p.what == ITERATIONS ||
	    (s->dirty_log.populated && (p.what == MODE || p.what == POPULATE))) {
		r = new_run(t);
		if (!r)
			return KVMSIM_ENOMEM;
		r->iterations = iterations;
	}
	s->dirty_log.populated |= p.what >= POPULATE;
	return put(r, &p);
}

static void gap(void *state, bool blank)
{
	(void)state;
	(void)blank;
}

static void label(void *state, const char *line, size_t len)
{
	struct tables *t = state;
	struct host_text text = text_trim((struct host_text){line, len});
	char *copy;

	while (text.len && text.at[text.len - 1] == ':')
		text.len--;
	copy = tables_copy(text_trim(text));
	if (!copy)
		return; /* a run without its label */
	free(t->scratch->dirty_log.label);
	t->scratch->dirty_log.label = copy;
}

const struct text_format dirty_log_format = {
	.kind = HOST_KIND_DIRTY_LOG_PERF, .look = look, .take = take, .gap = gap, .label = label};
