// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

struct store {
	sqlite3 *db;
	char *path;
	const struct kvmsim_errsink *errors;
};

/* One number of the database; -1 when it cannot be read. */
static int64_t scalar(struct store *s, const char *sql)
{
	sqlite3_stmt *st = NULL;
	int64_t v = -1;

	if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		v = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return v;
}

/* The message for SQLite's last failure. */
static int failed(struct store *s, const char *doing)
{
	switch (sqlite3_errcode(s->db)) {
	case SQLITE_NOMEM:
		return kvmsim_err(s->errors, KVMSIM_ENOMEM, "%s: out of memory", s->path);
	case SQLITE_NOTADB:
		return kvmsim_err(s->errors, KVMSIM_EIO,
				  "%s: not a kvmsim store (not an SQLite file)", s->path);
	case SQLITE_CORRUPT:
		return kvmsim_err(s->errors, KVMSIM_EIO, "%s: damaged (%s)", s->path,
				  sqlite3_errmsg(s->db));
	case SQLITE_BUSY:
		return kvmsim_err(s->errors, KVMSIM_EIO,
				  "%s: %s: another program kept it locked for %d s", s->path, doing,
				  STORE_BUSY_MS / 1000);
	default:
		return kvmsim_err(s->errors, KVMSIM_EIO, "%s: %s: %s", s->path, doing,
				  sqlite3_errmsg(s->db));
	}
}

static int execute(struct store *s, const char *sql, const char *doing)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(s, doing);
}

/* WAL lives in the file, is set outside a transaction, and needs no undoing. Of two programs that
 * set it at the same moment SQLite refuses one at once, without its busy timeout. */
static int enter_wal(struct store *s)
{
	const int pause_ms = 10;
	int rc, waited = 0;

	do {
		rc = sqlite3_exec(s->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
	} while (rc == SQLITE_BUSY && (waited += sqlite3_sleep(pause_ms)) < STORE_BUSY_MS);
	return rc == SQLITE_OK ? 0 : failed(s, "creating the store");
}

static int create_schema(struct store *s)
{
	char ids[128];
	int err = enter_wal(s);

	err = err ? err : execute(s, "BEGIN IMMEDIATE", "creating the store");
	if (err)
		return err;
	/* Another program may have made it while this one waited. */
	if (scalar(s, "SELECT count(*) FROM sqlite_schema") > 0)
		return execute(s, "ROLLBACK", "creating the store");
	snprintf(ids, sizeof(ids), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 STORE_APP_ID, STORE_SCHEMA);
	err = execute(s, ids, "creating the store");
	err = err ? err : execute(s, store_schema_sql, "creating the store");
	err = err ? err : execute(s, "COMMIT", "creating the store");
	if (err)
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return err;
}

/* An SQLite file is ours when it says so and is not newer than this program. */
static int recognise(struct store *s, enum store_mode mode)
{
	int64_t objects = scalar(s, "SELECT count(*) FROM sqlite_schema"), version;
	int err = 0;

	if (objects < 0)
		return failed(s, "reading");
	if (objects == 0 && mode == STORE_WRITE)
		err = create_schema(s);
	if (err)
		return err;
	version = scalar(s, "PRAGMA user_version");
	if (scalar(s, "PRAGMA application_id") != STORE_APP_ID)
		return kvmsim_err(s->errors, KVMSIM_EIO, "%s: not a kvmsim store (%s)", s->path,
				  objects ? "an SQLite file of another program" : "empty");
	if (version > STORE_SCHEMA)
		return kvmsim_err(s->errors, KVMSIM_EVERSION,
				  "%s: schema version %" PRId64
				  ", this program reads %d: it was written by a newer kvmsim",
				  s->path, version, STORE_SCHEMA);
	if (version < STORE_SCHEMA)
		return kvmsim_err(s->errors, KVMSIM_EVERSION,
				  "%s: schema version %" PRId64
				  ", this program reads %d: it was written before the first "
				  "release",
				  s->path, version, STORE_SCHEMA);
	return 0;
}

/* "file:PATH?immutable=1" with the characters that mean something in a URI escaped;
 * sqlite3_free(). */
static char *uri_of(const char *path)
{
	sqlite3_str *u = sqlite3_str_new(NULL);

	sqlite3_str_appendall(u, "file:");
	for (; *path; path++)
		sqlite3_str_appendf(u, strchr("%?#", *path) ? "%%%02X" : "%c",
				    (unsigned char)*path);
	sqlite3_str_appendall(u, "?immutable=1");
	return sqlite3_str_finish(u);
}

/* Opens the file; SQLite's code. For reading it need not be writable. SQLite reads a WAL file that
 * nobody holds open only where it can make the file beside it that its readers share; where it
 * cannot, in a folder that is read-only, no other program can write either: the file is read as it
 * is. With a WAL file beside it that holds more, that would be a lie. */
static int open_file(struct store *s, enum store_mode mode)
{
	int flags = mode == STORE_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
					: SQLITE_OPEN_READONLY;
	int rc = sqlite3_open_v2(s->path, &s->db, flags, NULL);
	char *wal, *uri;
	struct stat st;

	if (rc != SQLITE_OK || mode == STORE_WRITE)
		return rc;
	sqlite3_busy_timeout(s->db, STORE_BUSY_MS);
	rc = sqlite3_exec(s->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
	if (rc != SQLITE_CANTOPEN && rc != SQLITE_READONLY)
		return SQLITE_OK; /* what else is wrong is said by who reads on */
	wal = sqlite3_mprintf("%s-wal", s->path);
	uri = uri_of(s->path);
	if (!wal || !uri)
		rc = SQLITE_NOMEM;
	else if (stat(wal, &st) || !st.st_size) {
		sqlite3_close(s->db);
		rc = sqlite3_open_v2(uri, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
	}
	sqlite3_free(wal);
	sqlite3_free(uri);
	return rc;
}

int store_open(const char *path, enum store_mode mode, const struct kvmsim_errsink *errors,
	       struct store **out)
{
	struct store *s = calloc(1, sizeof(*s));
	int err;

	if (!s || !(s->path = strdup(path))) {
		free(s);
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", path);
	}
	s->errors = errors;
	/* SQLite's words do not tell these apart. */
	if (mode == STORE_READ && access(path, R_OK)) {
		err = errno == ENOENT
			      ? kvmsim_err(errors, KVMSIM_ENOENT, "%s: no such store", path)
			      : kvmsim_err(errors, KVMSIM_EIO, "%s: %s", path, strerror(errno));
		goto fail;
	}
	if (open_file(s, mode) != SQLITE_OK) {
		err = failed(s, "opening");
		goto fail;
	}
	sqlite3_busy_timeout(s->db, STORE_BUSY_MS);
	/* FULL: a commit is on the disk when it returns, also after a power cut. */
	err = execute(s, "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON", "opening");
	err = err ? err : recognise(s, mode);
	if (err)
		goto fail;
	*out = s;
	return 0;
fail:
	store_close(s);
	return err;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	sqlite3_close(s->db);
	free(s->path);
	free(s);
}

/* ---- writing ---- */

/* Binds the values that @kinds lists ('i' int64_t, 't' text, 'r' double, 'x' checksum), steps,
 * resets. SQLite's code. */
static int insert(sqlite3_stmt *st, const char *kinds, ...)
{
	va_list ap;
	char hex[17];
	int rc = SQLITE_OK;

	va_start(ap, kinds);
	for (int i = 1; kinds[i - 1] && rc == SQLITE_OK; i++) {
		switch (kinds[i - 1]) {
		case 'i':
			rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
			break;
		case 'r':
			rc = sqlite3_bind_double(st, i, va_arg(ap, double));
			break;
		case 'x':
			snprintf(hex, sizeof(hex), "%016" PRIx64, va_arg(ap, uint64_t));
			rc = sqlite3_bind_text(st, i, hex, -1, SQLITE_TRANSIENT);
			break;
		default: /* NULL binds NULL */
			rc = sqlite3_bind_text(st, i, va_arg(ap, const char *), -1, SQLITE_STATIC);
		}
	}
	va_end(ap);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	sqlite3_reset(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int insert_run(struct store *s, const struct store_run *run, int64_t n_counts)
{
	static const char sql[] =
		"INSERT INTO run (state, trace, trace_checksum, scenario, preset, cpu, dirty, "
		"params, slot, profile, profile_checksum, seed, replicate, interval, phase, "
		"shadow_pages, "
		"version, elapsed, guest_insns, n_counts, n_metrics, n_collections) "
		"VALUES (?1,?2,iif(?2 IS NULL, NULL, ?3),?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,"
		"?16,?17,?18,?19,?20,?21,?22)";
	const struct run_result *r = run->result;
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);

	if (rc == SQLITE_OK)
		rc = insert(st, "ttxtttttttxiiiiitiiiii", r->torn ? "torn" : "done", run->trace,
			    run->trace_checksum, run->scenario, run->preset, run->cpu, run->dirty,
			    run->params, run->slot, run->profile, run->profile_checksum,
			    (int64_t)run->seed, (int64_t)run->replicate, (int64_t)run->interval,
			    (int64_t)run->phase, (int64_t)run->shadow_pages, run->version,
			    (int64_t)r->elapsed, (int64_t)r->guest_insns, n_counts,
			    (int64_t)run->n_metrics, (int64_t)r->n_collections);
	sqlite3_finalize(st);
	return rc;
}

static int insert_rows(struct store *s, const struct store_run *run, int64_t id)
{
	const struct run_result *r = run->result;
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, "INSERT INTO counts VALUES (?,?,?,?,?)", -1, &st, NULL);

	for (int i = 0; rc == SQLITE_OK && i < N_COUNTS; i++)
		if (r->counts[i] || r->count_cycles[i])
			rc = insert(st, "iitii", id, (int64_t)i, model_vocabulary.counts[i],
				    (int64_t)r->counts[i], (int64_t)r->count_cycles[i]);
	sqlite3_finalize(st);
	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_prepare_v2(s->db, "INSERT INTO metrics VALUES (?,?,?,?,?)", -1, &st, NULL);
	for (size_t i = 0; rc == SQLITE_OK && i < run->n_metrics; i++)
		rc = insert(st, "iittr", id, (int64_t)i, run->metrics[i].name, run->metrics[i].unit,
			    run->metrics[i].value);
	sqlite3_finalize(st);
	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_prepare_v2(s->db, "INSERT INTO collections VALUES (?,?,?,?,?,?)", -1, &st,
				NULL);
	for (size_t i = 0; rc == SQLITE_OK && i < r->n_collections; i++) {
		const struct run_collection *c = &r->collections[i];

		rc = insert(st, "iiiiii", id, (int64_t)i, (int64_t)c->slot, (int64_t)c->nr_dirty,
			    (int64_t)c->start, (int64_t)c->cycles);
	}
	sqlite3_finalize(st);
	return rc;
}

int store_add(struct store *s, const struct store_run *run, int64_t *id)
{
	int64_t n_counts = 0, new_id, safe;
	int rc, err;

	for (int i = 0; i < N_COUNTS; i++)
		n_counts += run->result->counts[i] || run->result->count_cycles[i];
	rc = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = insert_run(s, run, n_counts);
	new_id = sqlite3_last_insert_rowid(s->db);
	if (rc == SQLITE_OK)
		rc = insert_rows(s, run, new_id);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
	if (rc == SQLITE_OK) {
		if (id)
			*id = new_id;
		return 0;
	}

	char why[256];

	snprintf(why, sizeof(why), "%s", sqlite3_errmsg(s->db));
	if (rc == SQLITE_BUSY) {
		err = failed(s, "storing a run");
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
		return err;
	}
	sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	safe = scalar(s, "SELECT count(*) FROM run");
	if (safe < 0)
		return kvmsim_err(s->errors, KVMSIM_EIO, "%s: storing a run: %s", s->path, why);
	return kvmsim_err(s->errors, KVMSIM_EIO,
			  "%s: storing a run: %s; the %" PRId64 " run%s whole", s->path, why, safe,
			  safe == 1 ? " stored before is" : "s stored before are");
}

/* ---- reading ---- */

static const char metrics_sql[] =
	"SELECT m.run AS run, coalesce(trace, scenario) AS input, preset, cpu, dirty, profile, "
	"seed, "
	"replicate, interval, phase, shadow_pages, m.name AS metric, m.value AS value, "
	"m.unit AS unit FROM metrics m JOIN run ON run.id = m.run "
	"WHERE ?1 = 0 OR m.run = ?1 ORDER BY m.run, m.seq";
static const char collections_sql[] = "SELECT seq, slot, nr_dirty, start, cycles "
				      "FROM collections WHERE run = ?1 ORDER BY seq";
static const char *const view_sql[] = {
	[STORE_RUNS] = "SELECT * FROM run WHERE ?1 = 0 OR id = ?1 ORDER BY id",
	[STORE_COUNTS] = "SELECT name, n, cycles FROM counts WHERE run = ?1 ORDER BY seq",
	[STORE_METRICS] = metrics_sql,
	[STORE_COLLECTIONS] = collections_sql,
};

static struct store_cell cell_of(sqlite3_stmt *st, int i)
{
	struct store_cell c = {.name = sqlite3_column_name(st, i)};

	switch (sqlite3_column_type(st, i)) {
	case SQLITE_NULL:
		c.type = CELL_NULL;
		break;
	case SQLITE_INTEGER:
		c.type = CELL_INT;
		c.i = sqlite3_column_int64(st, i);
		break;
	case SQLITE_FLOAT:
		c.type = CELL_REAL;
		c.real = sqlite3_column_double(st, i);
		break;
	default:
		c.type = CELL_TEXT;
		c.text = (const char *)sqlite3_column_text(st, i);
	}
	return c;
}

long store_rows(struct store *s, enum store_view view, int64_t run, store_row_fn fn, void *ctx)
{
	struct store_cell cells[32];
	sqlite3_stmt *st = NULL;
	long rows = 0;
	int rc = sqlite3_prepare_v2(s->db, view_sql[view], -1, &st, NULL), err = 0;

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(st, 1, run);
	while (rc == SQLITE_OK && !err && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		int n = sqlite3_column_count(st);

		for (int i = 0; i < n; i++)
			cells[i] = cell_of(st, i);
		err = fn(ctx, cells, (size_t)n);
		rows++;
		rc = SQLITE_OK;
	}
	if (!err && rc != SQLITE_DONE)
		err = failed(s, "reading");
	sqlite3_finalize(st);
	return err ? err : rows;
}

/* The words of an integrity check's text, which may have a title line before it, in one line. */
static int damaged(struct store *s, const char *text)
{
	const char *title = strncmp(text, "*** ", 4) ? NULL : strchr(text, '\n');
	const char *words = title ? title + 1 : text;

	return kvmsim_err(s->errors, KVMSIM_EIO, "%s: damaged (%.*s)", s->path,
			  (int)strcspn(words, "\n"), words);
}

/* The first text of an integrity check that is not "ok". */
static int integrity(struct store *s)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, "PRAGMA integrity_check(1)", -1, &st, NULL), err = 0;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc != SQLITE_ROW)
		err = failed(s, "checking");
	else if (strcmp((const char *)sqlite3_column_text(st, 0), "ok"))
		err = damaged(s, (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return err;
}

long store_check(struct store *s)
{
	int err = integrity(s);
	int64_t stray, partial, runs;

	if (err)
		return err;
	stray = scalar(s, "SELECT count(*) FROM pragma_foreign_key_check");
	partial = scalar(s, "SELECT count(*) FROM run WHERE "
			    "n_counts != (SELECT count(*) FROM counts WHERE run = id) OR "
			    "n_metrics != (SELECT count(*) FROM metrics WHERE run = id) OR "
			    "n_collections != (SELECT count(*) FROM collections WHERE run = id)");
	runs = scalar(s, "SELECT count(*) FROM run");
	if (stray < 0 || partial < 0 || runs < 0)
		return failed(s, "checking");
	if (stray || partial)
		return kvmsim_err(s->errors, KVMSIM_EIO,
				  "%s: damaged (%" PRId64 " run%s rows, %" PRId64
				  " row%s to no run)",
				  s->path, partial, partial == 1 ? " lacks" : "s lack", stray,
				  stray == 1 ? " belongs" : "s belong");
	return (long)runs;
}
