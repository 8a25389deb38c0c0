// SPDX-License-Identifier: GPL-3.0-or-later
#include <ini.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cells.h"
#include "analysis/cli.h"
#include "analysis/csv.h"
#include "analysis/evidence.h"
#include "analysis/recipe_parse.h"

bool cells_is(const char *path)
{
	return recipe_begins(path, "[cells]\n");
}

/* ---- the recipe ---- */

struct cells_parse {
	struct recipe_parse ps;
	struct cells *c;
};

static int keep(struct recipe_parse *ps, const char *value, char **to)
{
	*to = strdup(value);
	return *to ? 1 : recipe_fail(ps, "no memory");
}

static int percent(struct recipe_parse *ps, const char *key, const char *value, double *to)
{
	if (!recipe_decimal_value(ps, key, value, to))
		return 0;
	return *to > 0 && *to <= 100 ? 1 : recipe_fail(ps, "%s is above 0, at most 100", key);
}

static int cells_key(struct cells_parse *p, const char *key, const char *value)
{
	struct recipe_parse *ps = &p->ps;
	struct cells *c = p->c;

	if (!strcmp(key, "file"))
		return keep(ps, value, &c->file);
	if (!strcmp(key, "runs"))
		return keep(ps, value, &c->runs_file);
	if (!strcmp(key, "profile"))
		return keep(ps, value, &c->profile);
	if (!strcmp(key, "options"))
		return keep(ps, value, &c->options);
	if (!strcmp(key, "topic"))
		return keep(ps, value, &c->topic);
	if (!strcmp(key, "median"))
		return percent(ps, key, value, &c->median);
	if (!strcmp(key, "signs"))
		return percent(ps, key, value, &c->signs);
	if (!strcmp(key, "sd"))
		return percent(ps, key, value, &c->sd);
	if (!strcmp(key, "fitted"))
		return recipe_u64_value(ps, key, value, 100, &c->fitted);
	if (!strcmp(key, "replicates"))
		return recipe_u64_value(ps, key, value, 1000, &c->replicates);
	return recipe_fail(ps, "unknown key '%s' in [cells]", key);
}

static int miss_key(struct cells_parse *p, const char *key, const char *value)
{
	struct cells *c = p->c;
	struct cell_miss *grown = realloc(c->miss, (c->n_miss + 1) * sizeof(*grown));

	if (!grown)
		return recipe_fail(&p->ps, "no memory");
	c->miss = grown;
	grown[c->n_miss] = (struct cell_miss){0};
	return keep(&p->ps, key, &grown[c->n_miss].series) &&
	       keep(&p->ps, value, &grown[c->n_miss++].why);
}

static int take(void *user, const char *section, const char *key, const char *text)
{
	struct cells_parse *p = user;

	if (p->ps.err || !recipe_once(&p->ps, section, key))
		return 0;
	if (!strcmp(section, "cells"))
		return cells_key(p, key, text);
	if (!strcmp(section, "miss"))
		return miss_key(p, key, text);
	return recipe_fail(&p->ps, "unknown section [%s]", section);
}

static int read_recipe(struct cells *c, const struct kvmsim_errsink *errors)
{
	struct recipe names = {.name = c->name}; /* for messages */
	struct cells_parse p = {.ps = {.r = &names, .errors = errors}, .c = c};
	char *text = NULL;
	size_t len;
	int err = cli_read_file(c->name, &text, &len);

	if (err)
		return err;
	p.ps.at = text;
	if (ini_parse_stream(recipe_next_line, &p.ps, take, &p) && !p.ps.err)
		recipe_fail(&p.ps, "expected [section] or KEY = VALUE");
	if (!p.ps.err && (!c->file || !c->runs_file || !c->profile || !c->median || !c->signs ||
			  !c->sd || !c->replicates))
		recipe_fail(&p.ps, "[cells] needs file, runs, profile, median, signs, sd and "
				   "replicates");
	for (size_t i = 0; i < p.ps.n_seen; i++)
		free(p.ps.seen[i]);
	free(p.ps.seen);
	free(text);
	return p.ps.err;
}

/* ---- the table of runs ---- */

static const char *const run_columns[] = {"series", "metric",	"policy", "x",	  "kind", "options",
					  "base",   "quantity", "fit",	  "note", NULL};
enum {
	RUN_SERIES,
	RUN_METRIC,
	RUN_POLICY,
	RUN_X,
	RUN_KIND,
	RUN_OPTIONS,
	RUN_BASE,
	RUN_QUANTITY,
	RUN_FIT,
	RUN_NOTE,
};

static int word(const struct csv_row *in, int field, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(in->field[field], words[i]))
			return i;
	return csv_complain(in, "%s is no %s", in->field[field], run_columns[field]);
}

static int parse_quantity(const struct csv_row *in, struct cell_run *r)
{
	const char *q = in->field[RUN_QUANTITY];
	bool derived = r->kind == CELL_DERIVED;

	if (!strcmp(q, "rate"))
		r->what = CELL_RATE;
	else if (!strcmp(q, "time") || !strcmp(q, "task-time"))
		r->what = CELL_TIME;
	else if (!strcmp(q, "mean") && derived)
		r->what = CELL_MEAN;
	else if (derived ? sscanf(q, "gain %63s %63s", r->a, r->b) == 2 : !strcmp(q, "gain"))
		r->what = CELL_GAIN;
	else if (derived && !strcmp(q, "hold"))
		r->what = CELL_HOLD;
	else
		return csv_complain(in, "%s is no quantity of such a row", q);
	r->per_task = !strcmp(q, "task-time");
	if (derived != (r->what == CELL_MEAN || r->what == CELL_HOLD || *r->a))
		return csv_complain(in, "%s is no quantity of such a row", q);
	if (!derived && !*r->options)
		return csv_complain(in, "a modelled row has options");
	if (!derived && (r->what == CELL_GAIN) != (*r->base != 0))
		return csv_complain(in, "a gain, and nothing else, has a base");
	return 0;
}

static int add_run(void *ctx, const struct csv_row *in)
{
	static const char *const kinds[] = {"modelled", "derived", "out", NULL};
	static const char *const yes[] = {"no", "yes", NULL};
	struct cells *c = ctx;
	struct cell_run *grown = realloc(c->runs, (c->n_runs + 1) * sizeof(*grown)), *r;
	int kind = word(in, RUN_KIND, kinds), fit = word(in, RUN_FIT, yes);

	if (!grown)
		return KVMSIM_ENOMEM;
	c->runs = grown;
	if (kind < 0 || fit < 0)
		return KVMSIM_EPARSE;
	r = &grown[c->n_runs++];
	*r = (struct cell_run){.kind = (enum cell_kind)kind, .fit = fit, .line = in->line};

	char **to[] = {&r->series,  &r->metric, &r->policy,   &r->x,
		       &r->options, &r->base,	&r->quantity, &r->note};
	const int from[] = {RUN_SERIES,	 RUN_METRIC, RUN_POLICY,   RUN_X,
			    RUN_OPTIONS, RUN_BASE,   RUN_QUANTITY, RUN_NOTE};

	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++) {
		*to[i] = strdup(in->field[from[i]]);
		if (!*to[i])
			return KVMSIM_ENOMEM;
	}
	if (r->kind == CELL_OUT)
		return *r->note ? 0 : csv_complain(in, "what is out of scope has a note");
	return parse_quantity(in, r);
}

/* ---- rows ---- */

static const char *const columns[] = {"series", "metric", "unit",  "x", "policy",
				      "value",	"stdev",  "topic", NULL};
enum { COL_SERIES, COL_METRIC, COL_UNIT, COL_X, COL_POLICY, COL_VALUE, COL_STDEV, COL_TOPIC };

static bool fits(const char *pattern, const char *text)
{
	return !strcmp(pattern, "*") || !strcmp(pattern, text);
}

static const struct cell_run *find_run(const struct cells *c, const struct csv_row *in)
{
	for (size_t i = 0; i < c->n_runs; i++) {
		const struct cell_run *r = &c->runs[i];

		if (fits(r->series, in->field[COL_SERIES]) &&
		    fits(r->metric, in->field[COL_METRIC]) &&
		    fits(r->policy, in->field[COL_POLICY]) && fits(r->x, in->field[COL_X]))
			return r;
	}
	return NULL;
}

/* "2.2%", or in the value's unit. A gain's is that of two values. */
static int parse_sd(const struct cells *c, const struct csv_row *in, double value, bool gain,
		    struct cell_row *row)
{
	const char *text = in->field[COL_STDEV];
	char *end;

	row->has_sd = *text;
	row->sd = (gain ? M_SQRT2 : 1) * c->sd / 100;
	if (!*text)
		return 0;
	row->sd = strtod(text, &end);
	if (end == text || row->sd < 0 || (*end && strcmp(end, "%")))
		return csv_complain(in, "%s is no standard deviation", text);
	row->sd /= *end ? 100 : gain ? 100 : value;
	return 0;
}

static int add_row(void *ctx, const struct csv_row *in)
{
	struct cells *c = ctx;
	struct cell_row row = {.line = in->line, .run = find_run(c, in)}, *grown;
	double value;
	bool gain;
	int err;

	if (c->topic && strcmp(c->topic, in->field[COL_TOPIC]))
		return 0;
	if (!row.run)
		return csv_complain(in, "%s says nothing of this row", c->runs_file);
	err = csv_double(in, COL_VALUE, &value);
	if (err)
		return err;
	gain = row.run->kind != CELL_OUT && row.run->what == CELL_GAIN;
	row.measured = gain ? 1 + value / 100 : value;
	if (!(row.measured > 0) && row.run->kind != CELL_OUT)
		return csv_complain(in, "a value is more than 0");
	err = row.run->kind == CELL_OUT ? 0 : parse_sd(c, in, value, gain, &row);
	if (err)
		return err;
	row.x_number = strtod(in->field[COL_X], NULL);
	grown = realloc(c->rows, (c->n_rows + 1) * sizeof(*grown));
	if (!grown)
		return KVMSIM_ENOMEM;
	c->rows = grown;
	grown = &c->rows[c->n_rows++];
	*grown = row;

	char **to[] = {&grown->series, &grown->metric, &grown->policy, &grown->unit, &grown->x};
	const int from[] = {COL_SERIES, COL_METRIC, COL_POLICY, COL_UNIT, COL_X};

	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++) {
		*to[i] = strdup(in->field[from[i]]);
		if (!*to[i])
			return KVMSIM_ENOMEM;
	}
	return 0;
}

int cells_load(const char *path, const char *csv, const struct kvmsim_errsink *errors,
	       struct cells **out)
{
	struct cells *c = calloc(1, sizeof(*c));
	char *runs = NULL, *rows = NULL;
	int err = c && (c->name = strdup(path)) ? 0 : KVMSIM_ENOMEM;

	*out = NULL;
	err = err ? err : read_recipe(c, errors);
	if (!err) {
		runs = evidence_beside(path, c->runs_file);
		rows = csv ? strdup(csv) : evidence_beside(path, c->file);
		err = runs && rows ? csv_read(runs, run_columns, errors, add_run, c)
				   : KVMSIM_ENOMEM;
	}
	err = err ? err : csv_read(rows, columns, errors, add_row, c);
	if (!err && !c->n_rows)
		err = kvmsim_err(errors, KVMSIM_EPARSE, "%s: no rows", rows);
	free(runs);
	free(rows);
	if (err)
		cells_free(c);
	else
		*out = c;
	return err;
}

void cells_free(struct cells *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_runs; i++) {
		struct cell_run *r = &c->runs[i];
		char *all[] = {r->series,  r->metric, r->policy,   r->x,
			       r->options, r->base,   r->quantity, r->note};

		for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
			free(all[k]);
	}
	for (size_t i = 0; i < c->n_rows; i++) {
		struct cell_row *r = &c->rows[i];
		char *all[] = {r->series, r->metric, r->policy, r->unit, r->x};

		for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
			free(all[k]);
	}
	for (size_t i = 0; i < c->n_miss; i++) {
		free(c->miss[i].series);
		free(c->miss[i].why);
	}
	free(c->miss);
	free(c->runs);
	free(c->rows);
	free(c->name);
	free(c->file);
	free(c->runs_file);
	free(c->profile);
	free(c->options);
	free(c->topic);
	free(c);
}
