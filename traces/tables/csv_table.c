// SPDX-License-Identifier: GPL-2.0-or-later
/* CSV with named columns: the names that are wanted, and what the file calls them. */
#include <csv.h>
#include <stdlib.h>
#include <string.h>

#include "traces/tables/scan.h"
#include "traces/tables/scratch.h"

enum { MOST_COLUMNS = 256 };

struct csv_map {
	struct csv_pair {
		char *name, *column;
	} * pair;
	size_t n;
};

static int add_pair(struct csv_map *m, struct host_text t)
{
	const char *equals = memchr(t.at, '=', t.len);
	struct host_text name = t, column = t;
	struct csv_pair *p;

	if (equals) {
		name.len = (size_t)(equals - t.at);
		column = (struct host_text){equals + 1, t.len - name.len - 1};
	}
	if (!name.len || !column.len)
		return KVMSIM_EINVAL;
	if (tables_grow(&m->pair, m->n, sizeof(*m->pair)))
		return KVMSIM_ENOMEM;
	p = &m->pair[m->n++];
	p->name = tables_copy(name);
	p->column = tables_copy(column);
	if (!p->name || !p->column)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i + 1 < m->n; i++)
		if (!strcmp(m->pair[i].name, p->name))
			return KVMSIM_EINVAL;
	return m->n > MOST_COLUMNS ? KVMSIM_EINVAL : 0;
}

int csv_map_parse(const char *text, const struct kvmsim_errsink *errors, struct csv_map **out)
{
	struct csv_map *m = calloc(1, sizeof(*m));
	int err = m ? 0 : KVMSIM_ENOMEM;

	*out = NULL;
	for (const char *at = text; !err; at++) {
		size_t n = strcspn(at, ",");

		err = add_pair(m, (struct host_text){at, n});
		at += n;
		if (!*at)
			break;
	}
	if (!err) {
		*out = m;
		return 0;
	}
	csv_map_free(m);
	if (err == KVMSIM_ENOMEM)
		return kvmsim_err(errors, err, "out of memory");
	return kvmsim_err(errors, err,
			  "'%s': expected NAME=COLUMN[,NAME=COLUMN]..., each name once", text);
}

void csv_map_free(struct csv_map *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++) {
		free(m->pair[i].name);
		free(m->pair[i].column);
	}
	free(m->pair);
	free(m);
}

/* The cells of one line. libcsv hands them on from a buffer of its own, which they are copied out
 * of, one behind the other. */
struct cells {
	char *text;
	size_t used, room;
	size_t n, start[MOST_COLUMNS + 1];
	bool over;
};

static void on_cell(void *data, size_t len, void *ctx)
{
	struct cells *c = ctx;

	if (c->n == MOST_COLUMNS || len > c->room - c->used) {
		c->over = true;
		return;
	}
	memcpy(c->text + c->used, data, len);
	c->start[c->n++] = c->used;
	c->used += len;
	c->start[c->n] = c->used;
}

static void on_row(int c, void *ctx)
{
	(void)c;
	(void)ctx;
}

static struct host_text cell(const struct cells *c, size_t i)
{
	return (struct host_text){c->text + c->start[i], c->start[i + 1] - c->start[i]};
}

static bool split(struct cells *c, const char *line, size_t len)
{
	struct csv_parser p;
	bool done;

	*c = (struct cells){.text = malloc(len + 1), .room = len};
	if (!c->text || csv_init(&p, CSV_STRICT))
		return false;
	done = csv_parse(&p, line, len, on_cell, on_row, c) == len;
	done &= !csv_fini(&p, on_cell, on_row, c);
	csv_free(&p);
	return done && !c->over && c->n;
}

/* The line names all columns of the map: where each is. */
static bool heading(const struct csv_map *m, const struct cells *c, size_t *column)
{
	for (size_t i = 0; i < m->n; i++) {
		size_t j = 0;

		while (j < c->n && !text_is(text_trim(cell(c, j)), m->pair[i].column))
			j++;
		if (j == c->n)
			return false;
		if (column)
			column[i] = j;
	}
	return true;
}

static struct text_look look(const void *state, const char *line, size_t len)
{
	const struct tables *t = state;
	const struct tables_scratch *s = t->scratch;
	struct text_look l = text_no();
	struct cells c;

	if (!s->csv.map)
		return l;
	/* a name that is wanted alone is found without a comma, too */
	if (split(&c, line, len)) {
		if (heading(s->csv.map, &c, NULL))
			l = text_found(TEXT_WHOLE, TEXT_HEADING);
		else if (s->csv.open && c.n >= s->csv.n_file)
			l = text_found(TEXT_WHOLE, TEXT_ROW);
		else if (s->csv.open && c.n > 1)
			l = text_found(TEXT_CUT, TEXT_ROW);
		l.damaged = l.class == TEXT_ROW && c.n > s->csv.n_file;
	} else if (s->csv.open && c.text && c.n) {
		l = text_found(TEXT_CUT, TEXT_ROW); /* inside quotes */
	}
	free(c.text);
	return l;
}

/* The first CSV says what the columns are; another with the same heading goes on with its rows. */
static int take_heading(struct tables *t, const struct cells *c)
{
	struct tables_scratch *s = t->scratch;
	const struct csv_map *m = s->csv.map;

	free(s->csv.column);
	s->csv.column = calloc(m->n, sizeof(*s->csv.column));
	if (!s->csv.column)
		return KVMSIM_ENOMEM;
	heading(m, c, s->csv.column);
	s->csv.n_file = c->n;
	s->csv.open = true;
	if (t->csv.name)
		return 0;
	t->csv.name = calloc(m->n, sizeof(*t->csv.name));
	if (!t->csv.name)
		return KVMSIM_ENOMEM;
	t->csv.n_columns = m->n;
	for (size_t i = 0; i < m->n; i++) {
		t->csv.name[i] = tables_copy(text_of(m->pair[i].name));
		if (!t->csv.name[i])
			return KVMSIM_ENOMEM;
	}
	return 0;
}

static int take_row(struct tables *t, const struct cells *c)
{
	size_t n = t->csv.n_columns;
	char **row;

	if (tables_grow(&t->csv.cell, t->csv.n_rows, n * sizeof(*t->csv.cell)))
		return KVMSIM_ENOMEM;
	row = &t->csv.cell[t->csv.n_rows++ * n];
	for (size_t i = 0; i < n; i++) {
		row[i] = tables_copy(text_trim(cell(c, t->scratch->csv.column[i])));
		if (!row[i])
			return KVMSIM_ENOMEM;
	}
	return 0;
}

static int take(void *state, const char *line, size_t len, const struct text_look *l,
		uint64_t number)
{
	struct tables *t = state;
	struct cells c;
	int err = KVMSIM_ENOMEM;

	(void)number;
	if (split(&c, line, len))
		err = l->class == TEXT_HEADING ? take_heading(t, &c) : take_row(t, &c);
	free(c.text);
	return err;
}

static void gap(void *state, bool blank)
{
	struct tables *t = state;

	if (!blank)
		t->scratch->csv.open = false;
}

const struct text_format csv_format = {
	.kind = HOST_KIND_CSV, .look = look, .take = take, .gap = gap};
