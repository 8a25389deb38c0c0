// SPDX-License-Identifier: GPL-3.0-or-later
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/csv.h"
#include "analysis/evidence.h"
#include "analysis/memstress_args.h"
#include "analysis/run.h"
#include "analysis/timing_priv.h"
#include "model/params.h"
#include "model/sim/profile.h"

/* ---- the table of runs ---- */

static const char *const run_columns[] = {"series", "metric", "policy", "row",	"options",
					  "fit",    "sets",   "judge",	"note", NULL};
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

static int parse_sets(const struct csv_row *in, struct timing_run *run)
{
	const char *text = in->field[RUN_SETS];
	size_t len = strcspn(text, " ");

	if (!*text)
		return 0;
	while (model_params[run->param].name && (strlen(model_params[run->param].name) != len ||
						 strncmp(model_params[run->param].name, text, len)))
		run->param++;
	if (!model_params[run->param].name || !text[len])
		return csv_complain(in, "sets is a param and numbers of vCPUs, not %s", text);
	return parse_numbers(in, text + len + 1, run->sets, &run->n_sets);
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
	return err ? err : parse_judge(in, run);
}

bool timing_untold(const struct timing_run *run)
{
	return !strcmp(run->row, "-");
}

/* The params of a machine that only rows with contention show: whoever gives one says which rows
 * set it. */
static const char *const contended[] = {"smt_permille", "memory_load_permille", "line_transfer"};

static bool sets(const struct timing *t, size_t param)
{
	for (size_t i = 0; i < t->n_runs; i++)
		if (t->runs[i].n_sets && t->runs[i].param == param)
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
	if (!err && !(row.measured > 0))
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

/* ---- runs ---- */

#define MAX_WORDS 48

/* The options of a run, as of the command. */
static int parse_options(const struct timing *t, const struct timing_row *row,
			 struct timing_cached *c)
{
	char *argv[MAX_WORDS + 1] = {"memstress"}, *save;
	struct memstress_args a;
	char vcpus[32] = "";
	int argc = 1;

	if (row->x)
		snprintf(vcpus, sizeof(vcpus), " -v %" PRIu64, row->x);
	if (asprintf(&c->text, "%s%s", row->run->options, vcpus) < 0) {
		c->text = NULL;
		return KVMSIM_ENOMEM;
	}
	for (char *w = strtok_r(c->text, " ", &save); w && argc < MAX_WORDS;
	     w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	if (memstress_args_parse(&a, &verb_memstress, argc, argv) || a.help || a.profile)
		return kvmsim_err(&cli_errors, KVMSIM_EPARSE,
				  "%s:%lu: these are no options of a "
				  "run: %s",
				  t->recipe->runs, row->run->line, row->run->options);
	c->o = a.o;
	if (!strstr(row->run->options, "-b "))
		c->o.bytes = t->recipe->bytes;
	c->scale = (double)t->recipe->published_bytes / (double)c->o.bytes;
	return 0;
}

int timing_run_row(struct timing *t, const struct timing_row *row, const struct profile *profile,
		   const struct kvmsim_errsink *errors, const struct timing_cached **out)
{
	struct timing_cache *cache = t->cache;
	struct timing_cached *grown, *c;
	int err;

	if (cache->profile != profile)
		timing_cache_clear(cache);
	cache->profile = profile;
	for (size_t i = 0; i < cache->n_runs; i++) {
		c = &cache->runs[i];
		if (c->x != row->x || strcmp(c->options, row->run->options))
			continue;
		*out = c;
		return 0;
	}
	grown = realloc(cache->runs, (cache->n_runs + 1) * sizeof(*grown));
	if (!grown)
		return KVMSIM_ENOMEM;
	cache->runs = grown;
	c = &cache->runs[cache->n_runs++];
	*c = (struct timing_cached){.options = row->run->options, .x = row->x};
	err = parse_options(t, row, c);
	if (err)
		return err;
	c->o.profile = profile;
	c->o.interrupted = &run_interrupted;
	c->o.errors = errors;
	*out = c;
	return memstress_collect(&c->o, &c->result);
}

/* "A/B": how many A there are for each B. */
static int count_ratio(const struct memstress_result *r, const char *a, const char *slash,
		       double *out)
{
	double n[2] = {0};

	for (uint16_t c = 0; c < N_COUNTS; c++) {
		const char *name = model_vocabulary.counts[c];
		bool above = strlen(name) == (size_t)(slash - a) &&
			     !strncmp(name, a, (size_t)(slash - a));

		for (size_t i = 0; i < r->n_rows; i++) {
			n[0] += above ? (double)r->rows[i].sums.counts[c] : 0;
			n[1] += strcmp(name, slash + 1) ? 0 : (double)r->rows[i].sums.counts[c];
		}
	}
	*out = n[1] > 0 ? n[0] / n[1] : 0;
	return 0;
}

static int predict(struct timing *t, struct timing_row *row, const struct profile *profile,
		   const struct kvmsim_errsink *errors)
{
	const char *slash = strchr(row->run->row, '/');
	const struct timing_cached *c;
	const struct memstress_row *of;
	int err = timing_run_row(t, row, profile, errors, &c);

	if (err)
		return err;
	if (slash)
		return count_ratio(&c->result, row->run->row, slash, &row->predicted);
	of = memstress_find(&c->result, row->run->row);
	if (!of)
		return kvmsim_err(errors, KVMSIM_EPARSE, "%s:%lu: such a run has no \"%s\"",
				  t->recipe->runs, row->run->line, row->run->row);
	row->predicted = (double)of->cycles * c->scale / (double)profile_hz(profile);
	return 0;
}

int timing_predict(struct timing *t, const struct profile *profile, uint64_t quick,
		   const struct kvmsim_errsink *errors)
{
	int err = 0;

	for (size_t i = 0; i < t->n_rows && !err; i++) {
		struct timing_row *row = &t->rows[i];

		row->predicted = 0;
		if (!timing_untold(row->run) && !(quick && row->x > quick))
			err = predict(t, row, profile, errors);
	}
	return err;
}
