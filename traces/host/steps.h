/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_STEPS_H
#define KVMSIM_TRACES_HOST_STEPS_H

#include "traces/host/chars.h"
#include "traces/host/grammar.h"

/* Where the matching of a layout (grammar.c) is. */
struct cursor {
	const char *p, *end;
	struct host_event *e;
	char more[4];
	uint8_t n_more;
	unsigned foreign;
	bool tolerant, comma, cut_number;
};

enum got {
	OK,
	CUT, /* the text ends inside of it */
	BAD,
};

/* One step at c->p, which is no blank and not the end; fields of c->e are set. BAD leaves c->p. */
enum got step_take(struct cursor *c, const struct step *s);

static inline void step_put(struct cursor *c, const struct step *s, uint64_t v)
{
	if (s->field != STEP_NO_FIELD)
		host_set(c->e, s->field, v);
}

/* Behind a number or word: no letter or digit. */
static inline bool step_ends(const struct cursor *c, const char *p)
{
	return p == c->end || !is(*p, CHAR_NAME);
}

#endif
