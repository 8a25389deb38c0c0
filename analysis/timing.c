// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/csv.h"
#include "analysis/evidence.h"
#include "analysis/timing_priv.h"
#include "model/params.h"

/* ---- the table of runs ---- */

static const char *const run_columns[] = {"series", "metric", "policy", "row",	"options",
					  "fit",    "sets",   "judge",	"note", "published_bytes",
					  NULL};
enum {
	RUN_SERIES,
	RUN_METRIC,
	RUN_POLICY,
	RUN_ROW,
	RUN_OPTIONS,
	RUN_FIT,
	RUN_SETS,
	RUN_JUDGE,
	RUN_NOTE,
	RUN_BYTES,
};

static int parse_numbers(const struct csv_row *in, const char *p, uint64_t *to, size_t *n)
{
	char *end;

	for (; *p; p = end + strspn(end, " ")) {
		unsigned long long value = strtoull(p, &end, 10);

		if (*p < '0' || *p > '9' || (*end && *end != ' ') || *n == RECIPE_MAX_VALUES)
			return csv_complain(in, "here are whole numbers with spaces between: %s",
					    p);
		to[(*n)++] = value;
	}
	return 0;
}

/* What @len characters name: an index in model_params[], TIMING_PRICE + a count, or SIZE_MAX. */
static size_t find_set(const char *text, size_t len)
{
	for (size_t i = 0; model_params[i].name; i++)
		if (strlen(model_params[i].name) == len &&
		    !strncmp(model_params[i].name, text, len))
			return i;
	for (uint16_t c = 0; c < N_COUNTS; c++)
		if (strlen(model_vocabulary.counts[c]) == len &&
		    !strncmp(model_vocabulary.counts[c], text, len))
			return TIMING_PRICE + c;
	return SIZE_MAX;
}

/* "NAME X X NAME X" */
static int parse_sets(const struct csv_row *in, struct timing_run *run)
{
	size_t what = SIZE_MAX, len;
	bool used = true;

	for (const char *p = in->field[RUN_SETS]; *p; p += len + strspn(p + len, " ")) {
		char *end;

		len = strcspn(p, " ");
		if (*p < '0' || *p > '9') {
			what = used ? find_set(p, len) : SIZE_MAX;
			used = false;
		} else if (run->n_sets < RECIPE_MAX_VALUES) {
			run->param[run->n_sets] = what;
			run->sets[run->n_sets++] = strtoull(p, &end, 10);
			used = end == p + len;
		}
		if (what == SIZE_MAX)
			break;
	}
	return used ? 0
		    : csv_complain(in, "sets is a param and numbers of vCPUs, not %s",
				   in->field[RUN_SETS]);
}

static int parse_judge(const struct csv_row *in, struct timing_run *run)
{
	static const char *const words[] = {"time", "ratio", "no"};

	for (int i = 0; i < 3; i++) {
		if (strcmp(in->field[RUN_JUDGE], words[i]))
			continue;
		run->judge = i;
		return 0;
	}
	return csv_complain(in, "judge is time, ratio or no, not %s", in->field[RUN_JUDGE]);
}

static int add_run(void *ctx, const struct csv_row *in)
{
	struct timing *t = ctx;
	struct timing_run *grown = realloc(t->runs, (t->n_runs + 1) * sizeof(*grown)), *run;
	char **text[] = {NULL, NULL, NULL, NULL, NULL, NULL};
	const int field[] = {RUN_SERIES, RUN_METRIC, RUN_POLICY, RUN_ROW, RUN_OPTIONS, RUN_NOTE};
	int err;

	if (!grown)
		return KVMSIM_ENOMEM;
	t->runs = grown;
	run = &t->runs[t->n_runs++];
	*run = (struct timing_run){.line = in->line};
	text[0] = &run->series;
	text[1] = &run->metric;
	text[2] = &run->policy;
	text[3] = &run->row;
	text[4] = &run->options;
	text[5] = &run->note;
	for (int i = 0; i < 6; i++) {
		*text[i] = strdup(in->field[field[i]]);
		if (!*text[i])
			return KVMSIM_ENOMEM;
	}
	err = parse_numbers(in, in->field[RUN_FIT], run->fit, &run->n_fit);
	err = err ? err : parse_sets(in, run);
	if (!err && *in->field[RUN_BYTES])
		err = csv_u64(in, RUN_BYTES, &run->published_bytes);
	return err ? err : parse_judge(in, run);
}

bool timing_untold(const struct timing_run *run)
{
	return !strcmp(run->row, "-");
}

/* The params of a machine that only rows with contention show: whoever gives one says which rows
 * set it. */
static const char *const contended[] = {"smt_permille", "memory_load_permille", "line_transfer",
					"queue_transfers", "tlbi_broadcast"};

static bool sets(const struct timing *t, size_t param)
{
	for (size_t i = 0; i < t->n_runs; i++)
		for (size_t k = 0; k < t->runs[i].n_sets; k++)
			if (t->runs[i].param[k] == param)
				return true;
	return false;
}

/* What the recipe says of its params is what its runs say. */
static int check_sets(const struct timing *t, const struct kvmsim_errsink *errors)
{
	const struct recipe *r = t->recipe;
	size_t n = 0;

	for (size_t i = 0; model_params[i].name; i++) {
		const char *name = model_params[i].name;
		bool set = sets(t, i);

		n += set;
		if (set && !r->param_given[i])
			return kvmsim_err(errors, KVMSIM_EPARSE, "%s: %s sets %s, [param] does not",
					  r->name, r->runs, name);
		for (size_t c = 0; c < sizeof(contended) / sizeof(*contended); c++)
			if (!set && r->param_given[i] && !strcmp(name, contended[c]))
				return kvmsim_err(errors, KVMSIM_EPARSE,
						  "%s: [param] gives %s, which no row of %s sets",
						  r->name, name, r->runs);
	}
	for (uint16_t c = 0; c < N_COUNTS; c++) {
		bool set = sets(t, TIMING_PRICE + c);

		n += set;
		if (set && !r->is_fixed[c])
			return kvmsim_err(errors, KVMSIM_EPARSE, "%s: %s sets %s, [fixed] does not",
					  r->name, r->runs, model_vocabulary.counts[c]);
	}
	if (n != r->contended)
		return kvmsim_err(
			errors, KVMSIM_EPARSE,
			"%s: rows with contention set %zu params, [bounds] contended says "
			"%llu",
			r->name, n, (unsigned long long)r->contended);
	return 0;
}

/* ---- rows ---- */

static const char *const columns[] = {"series", "metric", "unit",  "x_name",
				      "x",	"policy", "value", NULL};
enum { COL_SERIES, COL_METRIC, COL_UNIT, COL_X_NAME, COL_X, COL_POLICY, COL_VALUE };

static const struct timing_run *find_run(const struct timing *t, const struct csv_row *in)
{
	for (size_t i = 0; i < t->n_runs; i++)
		if (!strcmp(t->runs[i].series, in->field[COL_SERIES]) &&
		    !strcmp(t->runs[i].metric, in->field[COL_METRIC]) &&
		    !strcmp(t->runs[i].policy, in->field[COL_POLICY]))
			return &t->runs[i];
	return NULL;
}

static double unit_seconds(const char *unit)
{
	return !strcmp(unit, "ms")   ? 1e-3
	       : !strcmp(unit, "us") ? 1e-6
	       : !strcmp(unit, "ns") ? 1e-9
				     : 1;
}

static int add_row(void *ctx, const struct csv_row *in)
{
	struct timing *t = ctx;
	struct timing_row row = {.line = in->line, .run = find_run(t, in)}, *grown;
	int err = 0;

	if (!row.run) {
		t->other++;
		return 0;
	}
	if (*in->field[COL_X]) {
		err = csv_u64(in, COL_X, &row.x);
		if (!err && (strcmp(in->field[COL_X_NAME], "vcpus") || !row.x))
			err = csv_complain(in, "x is a number of vcpus, 1 or more");
	}
	err = err ? err : csv_double(in, COL_VALUE, &row.measured);
	if (!err && !(row.measured > 0) && !(timing_untold(row.run) && !row.measured))
		err = csv_complain(in, "a value is more than 0");
	if (err)
		return err;
	row.measured *= unit_seconds(in->field[COL_UNIT]);
	for (size_t i = 0; i < row.run->n_fit; i++)
		row.calibrates |= row.run->fit[i] == row.x;
	row.fitted = row.calibrates;
	for (size_t i = 0; i < row.run->n_sets; i++)
		row.fitted |= row.run->sets[i] == row.x;
	grown = realloc(t->rows, (t->n_rows + 1) * sizeof(*grown));
	if (!grown)
		return KVMSIM_ENOMEM;
	t->rows = grown;
	t->rows[t->n_rows++] = row;
	return 0;
}

int timing_load(const char *path, const struct recipe *recipe, const struct kvmsim_errsink *errors,
		struct timing **out)
{
	struct timing *t = calloc(1, sizeof(*t));
	char *runs = evidence_beside(recipe->name, recipe->runs);
	int err = t && runs ? 0 : KVMSIM_ENOMEM;

	*out = NULL;
	if (!err) {
		t->recipe = recipe;
		t->cache = calloc(1, sizeof(*t->cache));
		t->path = path ? strdup(path) : evidence_beside(recipe->name, recipe->file);
		err = t->path && t->cache ? csv_read(runs, run_columns, errors, add_run, t)
					  : KVMSIM_ENOMEM;
	}
	err = err ? err : check_sets(t, errors);
	err = err ? err : csv_read(t->path, columns, errors, add_row, t);
	if (!err && !t->n_rows)
		err = kvmsim_err(errors, KVMSIM_EPARSE, "%s: no row that %s predicts", t->path,
				 recipe->runs);
	free(runs);
	if (err) {
		timing_free(t);
		return err;
	}
	*out = t;
	return 0;
}

void timing_cache_clear(struct timing_cache *c)
{
	for (size_t i = 0; i < c->n_runs; i++) {
		free(c->runs[i].text);
		memstress_result_free(&c->runs[i].result);
	}
	free(c->runs);
	c->runs = NULL;
	c->n_runs = 0;
	c->profile = NULL;
}

void timing_free(struct timing *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_runs; i++) {
		struct timing_run *r = &t->runs[i];
		char *text[] = {r->series, r->metric, r->policy, r->row, r->options, r->note};

		for (size_t k = 0; k < sizeof(text) / sizeof(*text); k++)
			free(text[k]);
	}
	if (t->cache)
		timing_cache_clear(t->cache);
	free(t->cache);
	free(t->runs);
	free(t->rows);
	free(t->path);
	free(t);
}
