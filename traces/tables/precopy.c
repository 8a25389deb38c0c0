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
enum got { GOT, GOT_DAMAGED, PARTIAL, TWICE, MALFORMED, OTHER };

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
			return last ? PARTIAL : MALFORMED;
		if (last && !d.digits && keys[i].decimals && text_is(rest, "."))
			return PARTIAL;
		if (!text_is(rest, keys[i].unit)) {
			if (!last || rest.len >= strlen(keys[i].unit) ||
			    memcmp(rest.at, keys[i].unit, rest.len))
				return MALFORMED;
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

/* The beginning of @s, or all of it. */
static bool begins_as(struct host_text w, const char *s)
{
	return w.len <= strlen(s) && !memcmp(w.at, s, w.len);
}

/* "DEBUG:vmm/src/lib.rs:1288", or where it is broken as far as it goes. */
static bool source_word(struct host_text w, bool last)
{
	static const char *const levels[] = {"ERROR:", "WARN:", "INFO:", "DEBUG:", "TRACE:"};

	if (memmem(w.at, w.len, ".rs:", 4))
		return true;
	for (size_t i = 0; last && i < sizeof(levels) / sizeof(*levels); i++)
		if (begins_as(w, levels[i]) || text_begins(w, levels[i]))
			return true;
	return false;
}

/* Word @i behind "cloud-hypervisor:": "9.118204s:", "<vmm>", "DEBUG:vmm/src/lib.rs:1288", "--",
 * "Precopy:", "iter="; of the @last the beginning, where a terminal broke it. */
static bool prefix_word(struct host_text w, size_t i, bool last)
{
	static const char *const words[] = {"--", "Precopy:", "iter="};
	struct decimal d;

	switch (i) {
	case 0:
		return eat_decimal(&w, &d) && (text_is(w, "s:") || (last && begins_as(w, "s:")));
	case 1:
		return *w.at == '<' && (last || w.at[w.len - 1] == '>');
	case 2:
		return source_word(w, last);
	default:
		return i < 6 && (last ? begins_as(w, words[i - 3]) : text_is(w, words[i - 3]));
	}
}

/* What a logger puts in front of a round, wrapped before the round: cloud-hypervisor's own, or any
 * that ends in "Precopy:". */
static bool prefix(struct host_text t)
{
	struct scan s;

	scan_line(&s, t.at, t.len);
	if (s.n && text_is(s.w[s.n - 1], "Precopy:"))
		return true;
	if (s.n > 1 && text_is(s.w[s.n - 2], "Precopy:") && begins_as(s.w[s.n - 1], "iter="))
		return true;
	if (s.n < 3 || !text_is(s.w[0], "cloud-hypervisor:"))
		return false;
	for (size_t i = 1; i < s.n; i++)
		if (!prefix_word(s.w[i], i - 1, i + 1 == s.n))
			return false;
	return true;
}

/* Fields of a round whose beginning is not there. */
static bool rest_of_round(struct host_text t)
{
	struct parsed p = {0};
	size_t fields = 0;
	struct scan s;

	scan_line(&s, t.at, t.len);
	for (size_t i = 0; i < s.n; i++)
		fields += field(&p, s.w[i], false) == GOT;
	return fields > 1 || (fields && s.n == 1);
}

/* "pages=812": a value of a name that is not the rest of one of ours ("otal=8192MiB"). */
static bool other_value(struct host_text w)
{
	const char *eq = memchr(w.at, '=', w.len);
	size_t n = eq ? eq - w.at + 1 : 0;

	if (n < 2)
		return false;
	for (size_t i = 0; i < N_KEYS; i++) {
		size_t have = strlen(keys[i].name);

		if (n < have && !memcmp(keys[i].name + have - n, w.at, n))
			return false;
	}
	return true;
}

/* "est_dow" */
static bool name_begins(struct host_text w)
{
	size_t i = 0;

	while (i < w.len && ((w.at[i] >= 'a' && w.at[i] <= 'z') || w.at[i] == '_'))
		i++;
	return i == w.len;
}

/* The fields from "iter=" on. False: they make no sense, whatever follows. */
static bool fields(struct parsed *p, struct scan *s, bool *partial, bool *unit)
{
	bool any = false;

	for (; s->at < s->n && !*partial; s->at++) {
		bool last = s->at + 1 == s->n;
		enum got got = field(p, s->w[s->at], last);

		if (got == OTHER && !last && scan_foreign(s->w[s->at]))
			p->look.damaged = true;
		else if (got == OTHER && any && p->v[AVG_BW].there)
			break;
		else if (got == OTHER && last && name_begins(s->w[s->at]))
			*partial = true;
		else if (got == TWICE || got == MALFORMED ||
			 (got == OTHER && !other_value(s->w[s->at])))
			return false; /* another round's; "total=8 192MiB"; a number alone */
		*unit |= got == GOT_DAMAGED;
		*partial |= got == PARTIAL;
		any = true;
	}
	return true;
}

static struct parsed parse(const struct tables *tables, const char *line, size_t len)
{
	struct parsed p = {.look = text_no()};
	const struct tables_scratch *t = tables->scratch;
	bool partial = false, marked = false, unit = false, sense, damaged;
	struct scan s;

	if (len < 5 || !memmem(line, len, "iter=", 5)) {
		bool front = prefix((struct host_text){line, len});

		if (front || rest_of_round((struct host_text){line, len}))
			p.look = (struct text_look){TEXT_CUT, TEXT_ROW, .bad = !front,
						    .front = front};
		return p;
	}
	scan_line(&s, line, len);
	while (s.at < s.n && !text_begins(s.w[s.at], "iter="))
		marked |= text_begins(s.w[s.at++], "Precopy");
	if (s.at + 1 == s.n && marked && text_is(s.w[s.at], "iter=")) {
		p.look = (struct text_look){TEXT_CUT, TEXT_ROW, .front = true};
		return p;
	}
	sense = fields(&p, &s, &partial, &unit);
	damaged = p.look.damaged;
	p.look.damaged = false;
	if (!p.v[ITER].there || (!marked && !p.v[TOTAL].there && !p.v[CURR].there))
		return p;
	p.look = text_found(TEXT_CUT, TEXT_ROW);
	p.look.bad = !sense;
	if (!sense)
		return p;
	for (size_t i = 0; i < AVG_BW; i++)
		if (!p.v[i].there)
			return p;
	if (!p.v[AVG_BW].there) {
		/* a version that does not print it, as far as can be seen */
		if (!partial && !unit && !t->precopy.avg)
			p.look = (struct text_look){TEXT_MORE, TEXT_ROW, .damaged = damaged};
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

static void drop(void *state, const struct text_look *l)
{
	struct tables *t = state;

	if (!t->n_rounds)
		return;
	if (l->bad)
		t->round[t->n_rounds - 1].unread++;
	else
		t->round[t->n_rounds - 1].cut++;
}

static void gap(void *state, bool blank)
{
	(void)state;
	(void)blank;
}

const struct text_format precopy_format = {
	.kind = HOST_KIND_PRECOPY, .look = look, .take = take, .drop = drop, .gap = gap};
