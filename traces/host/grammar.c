// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/grammar.h"

#include <string.h>

#include "traces/host/steps.h"

const struct grammar *host_grammar_find(const char *name, size_t len)
{
	const struct {
		const struct grammar *g;
		size_t n;
	} all[] = {{host_grammars_exits, host_n_grammars_exits},
		   {host_grammars_mmu, host_n_grammars_mmu},
		   {host_grammars_rest, host_n_grammars_rest}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		for (size_t j = 0; j < all[i].n; j++)
			if (strlen(all[i].g[j].name) == len && !memcmp(all[i].g[j].name, name, len))
				return &all[i].g[j];
	return NULL;
}

static bool closing(const struct step *s)
{
	return s->kind == STEP_LIT && s->len == 1 && (*s->lit == ')' || *s->lit == ']');
}

/* An opening one that is missing, but for which the text has the other. */
static bool opening(const struct step *s, const char *p, const char *end)
{
	return s->kind == STEP_LIT && s->len == 1 &&
	       ((*s->lit == '(' && memchr(p, ')', end - p)) ||
		(*s->lit == '[' && memchr(p, ']', end - p)));
}

/* A second try past something foreign: one or two characters between columns, or no bracket. */
static enum got step_over(struct cursor *c, const struct step *s)
{
	const char *p = c->p, *q = to_blank(p, c->end), *next;

	if ((closing(s) || opening(s, p, c->end)) && c->foreign < 2) {
		c->foreign++;
		return OK;
	}
	next = skip_blanks(q, c->end);
	if (q - p > 2 || next == c->end || c->foreign >= 2 || is(*p, CHAR_DIGIT))
		return BAD;
	c->p = next;
	if (step_take(c, s) == OK) {
		c->foreign++;
		return OK;
	}
	c->p = p;
	return BAD;
}

/* A lone letter that is a digit of hex, too, in front of a number with 0x. */
static bool stray_digit(const struct cursor *c)
{
	const char *p = c->p, *next = skip_blanks(p + 1, c->end);

	return next > p + 1 && !is(*p, CHAR_DIGIT) && begins(next, c->end, "0x");
}

static void may_go_on(struct cursor *c, const char *words)
{
	while (c->n_more < sizeof(c->more)) {
		c->more[c->n_more++] = *words;
		words = strchr(words, ',');
		if (!words || !words[1])
			break;
		words++;
	}
}

static enum got layout(struct cursor *c, const struct step *s)
{
	bool must = true; /* the text may not end here */

	for (; s->kind != STEP_END; s++) {
		const struct step *opt = NULL;
		enum got got;

		if (s->kind == STEP_PUT) {
			step_put(c, s, s->len);
			continue;
		}
		c->p = skip_blanks(c->p, c->end);
		if (s->kind == STEP_COMMA) {
			must = c->p < c->end && *c->p == ',';
			c->p += must;
			continue;
		}
		if (s->kind == STEP_OPT) {
			opt = s + s->len;
			s++;
			if (c->p == c->end && !must) {
				may_go_on(c, s->lit);
				s = opt;
				continue;
			}
		}
		if (c->p == c->end) {
			if (s->kind == STEP_PFERR && !s->lit && !c->e->v[HOST_F_error_code]) {
				step_put(c, s, 0);
				continue;
			}
			if (!(closing(s) && c->tolerant))
				return CUT;
		}
		if (c->tolerant && s->kind == STEP_HEX && stray_digit(c)) {
			c->foreign++;
			c->p = skip_blanks(c->p + 1, c->end);
		}
		const char *before = c->p;

		got = step_take(c, s);
		if (got != OK && opt) {
			if (got == CUT && before < c->end)
				return CUT;
			if (must && got == BAD && c->tolerant)
				got = step_over(c, s);
			if (must && got == OK) {
				must = false;
				continue;
			}
			if (must)
				return got;
			c->p = before;
			s = opt;
			continue;
		}
		if (c->tolerant && (got == BAD || (got == CUT && closing(s))))
			got = step_over(c, s);
		if (got != OK)
			return got;
		must = false;
	}
	return OK;
}

struct matched grammar_match(const struct grammar *g, const char *p, const char *end, bool tolerant,
			     uint8_t *first, struct host_event *e)
{
	struct matched best = {.how = MATCH_BAD, .rest = p};
	uint64_t have = e->have;
	unsigned best_i = GRAMMAR_LAYOUTS, last = GRAMMAR_LAYOUTS;

	for (unsigned n = 0; n <= GRAMMAR_LAYOUTS; n++) {
		/* The one that matched last, the others in their order, the best once more when
		 * another has filled the fields since. */
		unsigned i = n ? n - 1 : *first;
		struct cursor c = {.p = p, .end = end, .e = e, .tolerant = tolerant};
		struct matched m;
		enum got got;

		if (i >= GRAMMAR_LAYOUTS || !g->layout[i] || (n && i == *first))
			continue;
		e->have = have;
		e->reason.len = 0;
		got = layout(&c, g->layout[i]);
		last = i;
		m = (struct matched){.how = got == OK	 ? MATCH_WHOLE
					    : got == CUT ? MATCH_CUT
							 : MATCH_BAD,
				     .rest = skip_blanks(c.p, end),
				     .foreign = c.foreign,
				     .needs_next = c.cut_number};
		memcpy(m.more, c.more, sizeof(m.more));
		if (got == OK && m.rest < end &&
		    (!is(m.rest[-1], CHAR_BLANK) || begins(m.rest, end, "0x")))
			m.how = MATCH_BAD; /* glued to the last field; no note begins so */
		if (m.how == MATCH_WHOLE && m.rest == end && !m.foreign) {
			*first = i;
			return m;
		}
		/* What takes more of the text is nearer: a layout that it ends in before one that
		 * leaves the rest. */
		if (m.how > best.how || (m.how == best.how && m.rest > best.rest)) {
			if (m.how == MATCH_WHOLE && best.how == MATCH_CUT && m.rest < end)
				continue;
			best = m;
			best_i = i;
		} else if (m.how == MATCH_CUT && best.how == MATCH_WHOLE && best.rest < end) {
			best = m;
			best_i = i;
		}
	}
	if (best_i < GRAMMAR_LAYOUTS && best_i != last) {
		struct cursor c = {.p = p, .end = end, .e = e, .tolerant = tolerant};

		e->have = have;
		e->reason.len = 0;
		(void)layout(&c, g->layout[best_i]);
	}
	if (best.how == MATCH_WHOLE)
		*first = best_i;
	return best;
}
