// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rounds of a pre-copy as cloud-hypervisor logs them (vm-migration): `iter=0 total=8192MiB ...`
 * behind the prefix of whatever logger; the two sizes come in either order.
 */
#include <stdlib.h>
#include <string.h>

#include "traces/tables/scan.h"
#include "traces/tables/scratch.h"

enum key { ITER, TOTAL, CURR, BW, TRANSFER, OVERHEAD, EST_DOWNTIME, ELAPSED, AVG_BW, N_KEYS };

static const struct {
	const char *name, *unit;
	uint8_t decimals; /* that are printed; 0: a whole number */
} keys[] = {
	{"iter=", "", 0},	    {"total=", "MiB", 0},  {"curr=", "MiB", 0},
	{"bw=", "MiB/s", 2},	    {"transfer=", "s", 2}, {"overhead=", "ms", 0},
	{"est_downtime=", "ms", 0}, {"elapsed=", "s", 2},  {"avg_bw=", "MiB/s", 2},
};

struct parsed {
	struct text_look look;
	struct decimal v[N_KEYS];
};

/* "bw=1988.20MiB/s". What is not one of ours ends the round, or is a key that we do not know. */
enum got { GOT, GOT_DAMAGED, PARTIAL, TWICE, OTHER };

static enum got field(struct parsed *p, struct host_text w, bool last)
{
	while (w.len && (w.at[w.len - 1] == ',' || w.at[w.len - 1] == ';'))
		w.len--;
	for (size_t i = 0; i < N_KEYS; i++) {
		struct host_text rest = w;
		struct decimal d;

		if (!eat(&rest, keys[i].name))
			continue;
		if (p->v[i].there)
			return TWICE; /* another round's */
		if (!eat_decimal(&rest, &d) || d.value < 0 || (d.digits && !keys[i].decimals))
			return last ? PARTIAL : OTHER;
		if (!text_is(rest, keys[i].unit)) {
			if (!last || rest.len >= strlen(keys[i].unit) ||
			    memcmp(rest.at, keys[i].unit, rest.len))
				return OTHER;
			/* all of the number, or cut inside of it */
			if (!keys[i].decimals || d.digits < keys[i].decimals)
				return PARTIAL;
			p->v[i] = d;
			return GOT_DAMAGED;
		}
		p->v[i] = d;
		return GOT;
	}
	return OTHER;
}

/* "9.118204s:", "<vmm>", "DEBUG:vmm/src/lib.rs:1288", "--", "Precopy:", "iter="; of the last two
 * the beginning, where a terminal wrapped it. */
static bool prefix_word(struct host_text w, size_t i)
{
	static const char *const words[] = {"Precopy:", "iter="};
	struct decimal d;

	switch (i) {
	case 0:
		return eat_decimal(&w, &d) && text_is(w, "s:");
	case 1:
		return *w.at == '<' && w.at[w.len - 1] == '>';
	case 2:
		return memmem(w.at, w.len, ".rs:", 4);
	case 3:
		return text_is(w, "--");
	default:
		return i < 6 && w.len <= strlen(words[i - 4]) && !memcmp(w.at, words[i - 4], w.len);
	}
}

/* cloud-hypervisor's own prefix, wrapped in front of the round. */
static bool prefix(struct host_text t)
{
	struct scan s;

	if (!text_begins(t, "cloud-hypervisor:"))
		return false;
	scan_line(&s, t.at, t.len);
	for (size_t i = 1; i < s.n; i++)
		if (!prefix_word(s.w[i], i - 1))
			return false;
	return s.n > 2 && text_is(s.w[0], "cloud-hypervisor:");
}

static struct parsed parse(const struct tables *tables, const char *line, size_t len)
{
	struct parsed p = {.look = text_no()};
	const struct tables_scratch *t = tables->scratch;
	bool damaged = false, partial = false, marked = false, unit = false;
	unsigned have = 0;
	struct scan s;

	if (len < 5 || !memmem(line, len, "iter=", 5)) {
		if (prefix(text_trim((struct host_text){line, len})))
			p.look = text_found(TEXT_CUT, TEXT_ROW);
		return p;
	}
	scan_line(&s, line, len);
	while (s.at < s.n && !text_begins(s.w[s.at], "iter="))
		marked |= text_begins(s.w[s.at++], "Precopy");
	for (; s.at < s.n && !partial; s.at++) {
		enum got got = field(&p, s.w[s.at], s.at + 1 == s.n);

		if (got == TWICE)
			return p;
		if (got == OTHER && s.at + 1 < s.n && scan_foreign(s.w[s.at]))
			damaged = true;
		else if (got == OTHER && have && p.v[AVG_BW].there)
			break;
		else if (got == OTHER && !(s.at + 1 < s.n) &&
			 !memchr(s.w[s.at].at, '=', s.w[s.at].len))
			partial = true; /* "est_dow" */
		else if (got == OTHER && !memchr(s.w[s.at].at, '=', s.w[s.at].len))
			return p;
		unit |= got == GOT_DAMAGED;
		partial |= got == PARTIAL;
		have++;
	}
	if (!p.v[ITER].there || (!marked && !p.v[TOTAL].there && !p.v[CURR].there))
		return p;
	p.look = text_found(TEXT_CUT, TEXT_ROW);
	for (size_t i = 0; i < AVG_BW; i++)
		if (!p.v[i].there)
			return p;
	if (!p.v[AVG_BW].there) {
		/* a version that does not print it, as far as can be seen */
		if (!partial && !unit && !t->precopy.avg)
			p.look = (struct text_look){TEXT_MORE, TEXT_ROW, damaged, false};
		return p;
	}
	p.look.match = unit ? TEXT_CUT : TEXT_WHOLE;
	p.look.damaged = damaged || unit;
	if (s.at < s.n)
		scan_rest(&s, &p.look);
	return p;
}

static struct text_look look(const void *state, const char *line, size_t len)
{
	return parse(state, line, len).look;
}

static int take(void *state, const char *line, size_t len, const struct text_look *l,
		uint64_t number)
{
	struct tables *t = state;
	struct parsed p = parse(t, line, len);
	struct precopy_round *r;

	(void)l;
	(void)number;
	if (tables_grow(&t->round, t->n_rounds, sizeof(*t->round)))
		return KVMSIM_ENOMEM;
	r = &t->round[t->n_rounds++];
	r->iter = (uint64_t)p.v[ITER].value;
	r->total_mib = (uint64_t)p.v[TOTAL].value;
	r->curr_mib = (uint64_t)p.v[CURR].value;
	r->overhead_ms = (uint64_t)p.v[OVERHEAD].value;
	r->est_downtime_ms = (uint64_t)p.v[EST_DOWNTIME].value;
	r->bw_mib_s = p.v[BW];
	r->transfer_s = p.v[TRANSFER];
	r->elapsed_s = p.v[ELAPSED];
	t->scratch->precopy.avg |= p.v[AVG_BW].there;
	return 0;
}

static void gap(void *state, bool blank)
{
	(void)state;
	(void)blank;
}

const struct text_format precopy_format = {
	.kind = HOST_KIND_PRECOPY, .look = look, .take = take, .gap = gap};
