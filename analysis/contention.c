// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/contention.h"

#include <stdlib.h>
#include <string.h>

#define UNKNOWN "?"

static struct contention_row *find(struct contention *c, const struct lock_spell *s)
{
	const char *caller = s->caller ? s->caller : UNKNOWN;
	struct contention_row *grown;

	for (size_t i = 0; i < c->n; i++) {
		struct contention_row *r = &c->rows[i];

		if (r->kind == s->class->kind && r->shared == s->shared &&
		    !strcmp(r->caller, caller) && !strcmp(r->lock, s->class->name))
			return r;
	}
	grown = realloc(c->rows, (c->n + 1) * sizeof(*grown));
	if (!grown) {
		c->failed = true;
		return NULL;
	}
	c->rows = grown;
	grown += c->n++;
	*grown = (struct contention_row){.lock = s->class->name,
					 .caller = caller,
					 .kind = s->class->kind,
					 .shared = s->shared};
	return grown;
}

static void on_spell(void *ctx, const struct lock_spell *s)
{
	struct contention_row *r = s->held ? NULL : find(ctx, s);

	if (!r)
		return;
	r->contended++;
	r->wait += s->cycles;
	if (s->cycles > r->longest)
		r->longest = s->cycles;
}

void contention_init(struct contention *c)
{
	*c = (struct contention){.watch = {.spell = on_spell, .ctx = c}};
}

void contention_free(struct contention *c)
{
	free(c->rows);
	c->rows = NULL;
	c->n = 0;
}

void contention_start(struct contention *c)
{
	c->n = 0;
}

static int by_wait(const void *a, const void *b)
{
	const struct contention_row *x = a, *y = b;
	int d = strcmp(x->lock, y->lock);

	if (x->wait != y->wait)
		return x->wait < y->wait ? 1 : -1;
	d = d ? d : strcmp(x->caller, y->caller);
	return d ? d : x->shared - y->shared;
}

void contention_sort(struct contention *c)
{
	if (c->n)
		qsort(c->rows, c->n, sizeof(*c->rows), by_wait);
}
