// SPDX-License-Identifier: GPL-3.0-or-later
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli.h"
#include "analysis/output.h"
#include "analysis/store.h"

enum action { ACTION_LIST, ACTION_SHOW, ACTION_METRICS, ACTION_CHECK, ACTION_SCHEMA, N_ACTIONS };
static const char *const action_name[] = {"list", "show", "metrics", "check", "sql-schema"};

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

static enum action find_action(const char *text)
{
	int a = 0;

	while (a < N_ACTIONS && strcmp(action_name[a], text))
		a++;
	return (enum action)a;
}

/* ---- rows ---- */

struct rows {
	struct csv_out csv;
	struct table *table;
	json_t *list;
	bool headed;
	const char *const *columns; /* of the table, NULL at the end; NULL: all */
};

static int csv_row(void *ctx, const struct store_cell *cell, size_t n)
{
	struct rows *r = ctx;

	for (size_t i = 0; !r->headed && i < n; i++)
		csv_text(&r->csv, cell[i].name);
	if (!r->headed)
		csv_end_row(&r->csv);
	r->headed = true;
	for (size_t i = 0; i < n; i++) {
		if (cell[i].type == CELL_INT)
			csv_field(&r->csv, "%" PRId64, cell[i].i);
		else if (cell[i].type == CELL_REAL)
			csv_field(&r->csv, "%.17g", cell[i].real);
		else
			csv_text(&r->csv, cell[i].type == CELL_TEXT ? cell[i].text : NULL);
	}
	csv_end_row(&r->csv);
	return 0;
}

static json_t *json_cell(const struct store_cell *c)
{
	/* The parameters are JSON already. */
	if (c->type == CELL_TEXT && !strcmp(c->name, "params")) {
		json_t *params = json_loads(c->text, 0, NULL);

		if (params)
			return params;
	}
	switch (c->type) {
	case CELL_INT:
		return json_integer(c->i);
	case CELL_REAL:
		return json_real(c->real);
	case CELL_TEXT:
		return json_string(c->text);
	default:
		return json_null();
	}
}

static int json_row(void *ctx, const struct store_cell *cell, size_t n)
{
	struct rows *r = ctx;
	json_t *o = json_object();

	for (size_t i = 0; i < n; i++)
		json_object_set_new(o, cell[i].name, json_cell(&cell[i]));
	return json_array_append_new(r->list, o) ? KVMSIM_ENOMEM : 0;
}

static bool wanted(const struct rows *r, const char *name)
{
	for (size_t i = 0; r->columns && r->columns[i]; i++)
		if (!strcmp(r->columns[i], name))
			return true;
	return !r->columns;
}

/* For people a column's unit belongs in its heading. */
static const char *heading(const char *column)
{
	static const char *const with_unit[][2] = {
		{"interval", "interval (guest insns)"},	 {"phase", "phase (epochs)"},
		{"elapsed", "elapsed (profile's unit)"}, {"cycles", "cycles (profile's unit)"},
		{"start", "start (profile's unit)"},
	};

	for (size_t i = 0; i < sizeof(with_unit) / sizeof(with_unit[0]); i++)
		if (!strcmp(with_unit[i][0], column))
			return with_unit[i][1];
	return column;
}

static int table_row(void *ctx, const struct store_cell *cell, size_t n)
{
	struct rows *r = ctx;
	char buf[OUT_TEXT], align[40] = "";

	if (!r->table) {
		for (size_t i = 0, k = 0; i < n && k + 1 < sizeof(align); i++)
			if (wanted(r, cell[i].name))
				align[k++] = cell[i].type == CELL_INT || cell[i].type == CELL_REAL
						     ? 'r'
						     : 'l';
		r->table = table_create(align);
		if (!r->table)
			return KVMSIM_ENOMEM;
		for (size_t i = 0; i < n; i++)
			if (wanted(r, cell[i].name))
				table_cell(r->table, "%s", heading(cell[i].name));
	}
	for (size_t i = 0; i < n; i++) {
		if (!wanted(r, cell[i].name))
			continue;
		if (cell[i].type == CELL_INT)
			table_cell(r->table, "%s", out_u64(buf, (uint64_t)cell[i].i));
		else if (cell[i].type == CELL_REAL)
			table_cell(r->table, "%s", out_u64(buf, (uint64_t)(cell[i].real + 0.5)));
		else
			table_cell(r->table, "%s", cell[i].type == CELL_TEXT ? cell[i].text : "-");
	}
	return 0;
}

/* ---- actions ---- */

static int print_csv(struct store *s, enum store_view view, int64_t run)
{
	struct rows r = {.csv = {.to = stdout}};
	long n = store_rows(s, view, run, csv_row, &r);

	return n < 0 ? (int)n : 0;
}

/* A JSON array of the rows; NULL on an error, which *err tells. */
static json_t *json_of(struct store *s, enum store_view view, int64_t run, int *err)
{
	struct rows r = {.list = json_array()};
	long n = *err ? *err : store_rows(s, view, run, json_row, &r);

	if (n >= 0)
		return r.list;
	*err = (int)n;
	json_decref(r.list);
	return NULL;
}

static int print_table(struct store *s, enum store_view view, int64_t run,
		       const char *const *columns)
{
	struct rows r = {.columns = columns};
	long n = store_rows(s, view, run, table_row, &r);
	int err = n < 0 ? (int)n : r.table ? table_print(r.table, stdout) : 0;

	table_free(r.table);
	return err;
}

static int show_table(struct store *s, int64_t run)
{
	static const char *const what[] = {"id",     "state",	  "trace", "scenario",
					   "preset", "cpu",	  "dirty", "profile",
					   "seed",   "replicate", NULL};
	static const char *const how[] = {"slot",    "interval",    "phase",   "shadow_pages",
					  "elapsed", "guest_insns", "version", NULL};
	static const char *const metric[] = {"metric", "value", "unit", NULL};
	int err = print_table(s, STORE_RUNS, run, what);

	putchar('\n');
	err = err ? err : print_table(s, STORE_RUNS, run, how);
	putchar('\n');
	err = err ? err : print_table(s, STORE_METRICS, run, metric);
	putchar('\n');
	err = err ? err : print_table(s, STORE_COUNTS, run, NULL);
	putchar('\n');
	return err ? err : print_table(s, STORE_COLLECTIONS, run, NULL);
}

static int show_json(struct store *s, int64_t run)
{
	int err = 0;
	json_t *runs = json_of(s, STORE_RUNS, run, &err);
	json_t *metrics = json_of(s, STORE_METRICS, run, &err);
	json_t *counts = json_of(s, STORE_COUNTS, run, &err);
	json_t *collections = json_of(s, STORE_COLLECTIONS, run, &err);
	json_t *o = json_object(), *short_metrics = json_array(), *m;
	size_t i;

	/* What tells runs apart is said once, above. */
	json_array_foreach(metrics, i, m)
	{
		json_array_append_new(short_metrics, json_pack("{s:O, s:O, s:O}", "metric",
							       json_object_get(m, "metric"),
							       "value", json_object_get(m, "value"),
							       "unit", json_object_get(m, "unit")));
	}
	if (!err) {
		json_object_set(o, "run", json_array_get(runs, 0));
		json_object_set(o, "metrics", short_metrics);
		json_object_set(o, "counts", counts);
		json_object_set(o, "collections", collections);
		err = json_print(json_incref(o), stdout);
	}
	json_decref(o);
	json_decref(short_metrics);
	json_decref(runs);
	json_decref(metrics);
	json_decref(counts);
	json_decref(collections);
	return err;
}

/* The rows of one view, in any format. */
static int print_view(struct store *s, enum store_view view, const char *name, enum format format,
		      const char *const *columns)
{
	if (format == FORMAT_CSV)
		return print_csv(s, view, 0);
	if (format == FORMAT_TABLE)
		return print_table(s, view, 0, columns);

	int err = 0;
	json_t *list = json_of(s, view, 0, &err), *o = json_object();

	if (!err) {
		json_object_set_new(o, name, list);
		return json_print(o, stdout);
	}
	json_decref(o);
	return err;
}

static int show(struct store *s, int64_t run, enum format format)
{
	struct rows none = {.list = json_array()};
	long n = store_rows(s, STORE_RUNS, run, json_row, &none);

	json_decref(none.list);
	if (n < 0)
		return (int)n;
	if (!n)
		return kvmsim_err(&cli_errors, KVMSIM_ENOENT, "no run %" PRId64 " in the store",
				  run);
	if (format == FORMAT_CSV)
		return print_csv(s, STORE_COLLECTIONS, run);
	return format == FORMAT_JSON ? show_json(s, run) : show_table(s, run);
}

static int check(struct store *s, const char *path, enum format format)
{
	long n = store_check(s);

	if (n < 0)
		return (int)n;
	if (format == FORMAT_JSON)
		return json_print(json_pack("{s:s, s:o, s:b}", "store", path, "runs",
					    json_u64((uint64_t)n), "whole", 1),
				  stdout);
	if (format == FORMAT_CSV)
		puts("runs,whole");
	if (format == FORMAT_CSV)
		printf("%ld,1\n", n);
	else
		printf(n == 1 ? "%ld run, whole\n" : "%ld runs, all whole\n", n);
	return 0;
}

static int act(enum action action, const char *path, int64_t run, enum format format)
{
	static const char *const columns[] = {
		"id",	     "state",	 "trace", "scenario",	  "dirty",   "profile", "seed",
		"replicate", "interval", "phase", "shadow_pages", "elapsed", NULL};
	static const char *const metrics[] = {"run",	"input", "dirty", "profile", "replicate",
					      "metric", "value", "unit",  NULL};
	struct store *s;
	int err = store_open(path, STORE_READ, &cli_errors, &s);

	/* Whatever is wrong with the store, one code. */
	if (err)
		return EXIT_IO;
	switch (action) {
	case ACTION_LIST:
		err = print_view(s, STORE_RUNS, "runs", format, columns);
		break;
	case ACTION_METRICS:
		err = print_view(s, STORE_METRICS, "metrics", format, metrics);
		break;
	case ACTION_SHOW:
		err = show(s, run, format);
		break;
	default:
		err = check(s, path, format);
	}
	store_close(s);
	return cli_exit_code(err);
}

static int run_store(const struct verb *verb, int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{"csv", no_argument, NULL, 'c'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	enum format format = FORMAT_TABLE;
	unsigned long long run = 0;
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h')
			return cli_help(verb);
		if (c == '?')
			return cli_usage(verb, "unknown option %s", argv[optind - 1]);
		if (format != FORMAT_TABLE && format != (c == 'j' ? FORMAT_JSON : FORMAT_CSV))
			return cli_usage(verb, "--json and --csv exclude each other");
		format = c == 'j' ? FORMAT_JSON : FORMAT_CSV;
	}
	argc -= optind;
	argv += optind;

	/* A store that is called like an action: ./list. */
	const char *path = getenv("KVMSIM_STORE");

	path = path && *path ? path : "./kvmsim.db";
	if (argc && find_action(argv[0]) == N_ACTIONS) {
		path = *argv++;
		argc--;
	}
	if (!argc)
		return cli_usage(verb, "expected list, show, metrics, check or sql-schema");

	enum action action = find_action(argv[0]);

	if (action == N_ACTIONS)
		return cli_usage(verb,
				 "unknown action '%s': expected list, show, metrics, check "
				 "or sql-schema",
				 argv[0]);
	if (action == ACTION_SHOW && argc < 2)
		return cli_usage(verb, "show: expected the number of a run");
	if (argc > 1 + (action == ACTION_SHOW))
		return cli_usage(verb, "unexpected argument '%s'", argv[argc - 1]);
	if (action == ACTION_SHOW && !cli_u64(verb, "show", argv[1], 1, INT64_MAX, &run))
		return EXIT_USAGE;
	if (action == ACTION_SCHEMA) {
		fputs(store_schema_sql, stdout);
		return EXIT_DONE;
	}
	return act(action, path, (int64_t)run, format);
}

const struct verb verb_store = {
	.name = "store",
	.summary = "look into a results store",
	.usage = "store [FILE] ACTION [--json|--csv]\n"
		 "Looks into a results store, an SQLite file that compare --store writes. FILE is\n"
		 "$KVMSIM_STORE or ./kvmsim.db when not given.\n"
		 "\n"
		 "  list        the runs\n"
		 "  show RUN    one run: what it was, metrics, counts, collections (--csv: these)\n"
		 "  metrics     the metrics of all runs, one per row\n"
		 "  check       is the file sound, and is every run whole\n"
		 "  sql-schema  the tables, for queries with sqlite3",
	.run = run_store,
};
