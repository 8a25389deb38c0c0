// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "analysis/store.h"
#include "model/sim/rng.h"
#include "tests/unit/harness.h"

static char dir[] = "/tmp/kvmsim-test-store-XXXXXX";
static char path[64];
static char said[512];
static int n_said;

static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	(void)ctx;
	(void)err;
	snprintf(said, sizeof(said), "%s", msg);
	n_said++;
}
static const struct kvmsim_errsink sink = {keep, NULL};

static const char *fresh(const char *name)
{
	char extra[80];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
	snprintf(extra, sizeof(extra), "%s-wal", path);
	unlink(extra);
	snprintf(extra, sizeof(extra), "%s-shm", path);
	unlink(extra);
	said[0] = '\0';
	n_said = 0;
	return path;
}

/* A run with @n collections that @tag marks. */
static int add(struct store *s, uint64_t tag, size_t n, int64_t *id)
{
	struct run_result r = {.elapsed = 1000 + tag, .guest_insns = 900, .n_collections = n};
	struct store_metric m[] = {{"get_dirty_log_mean", "cycles", 0.1 + (double)tag},
				   {"dirty_pages", "pages", 12}};
	struct store_run run = {.trace = "a'b.kvt",
				.trace_checksum = 0xfedcba9876543210,
				.preset = "6.1-shadow",
				.cpu = "tcg",
				.dirty = "hybrid,threshold=3",
				.params = "{\"threshold\": 3}",
				.profile = "tcg-icount",
				.profile_checksum = 7,
				.seed = tag,
				.replicate = 4,
				.interval = 30000000,
				.phase = 2,
				.shadow_pages = 100,
				.version = "0.0",
				.result = &r,
				.metrics = m,
				.n_metrics = 2};
	int err;

	r.collections = calloc(n ? n : 1, sizeof(*r.collections));
	if (!r.collections)
		return KVMSIM_ENOMEM;
	for (size_t i = 0; i < n; i++)
		r.collections[i] = (struct run_collection){.slot = 1, .nr_dirty = i, .cycles = tag};
	r.counts[COUNT_insn] = 900;
	r.count_cycles[COUNT_insn] = 900;
	r.count_cycles[COUNT_llc_miss] = 100;
	err = store_add(s, &run, id);
	free(r.collections);
	return err;
}

static char rows[4096];

static int print_row(void *ctx, const struct store_cell *c, size_t n)
{
	size_t at = strlen(rows);

	(void)ctx;
	for (size_t i = 0; i < n && at < sizeof(rows); i++) {
		const char *end = i + 1 < n ? " " : "\n";

		if (c[i].type == CELL_INT)
			at += snprintf(rows + at, sizeof(rows) - at, "%lld%s", (long long)c[i].i,
				       end);
		else if (c[i].type == CELL_REAL)
			at += snprintf(rows + at, sizeof(rows) - at, "%g%s", c[i].real, end);
		else
			at += snprintf(rows + at, sizeof(rows) - at, "%s%s",
				       c[i].type == CELL_TEXT ? c[i].text : "-", end);
	}
	return 0;
}

static const char *view(struct store *s, enum store_view v, int64_t run, long expect)
{
	rows[0] = '\0';
	CU_ASSERT_EQUAL(store_rows(s, v, run, print_row, NULL), expect);
	return rows;
}

static void round_trip(void)
{
	struct store *s = NULL;
	int64_t id = 0;

	CU_ASSERT_EQUAL_FATAL(store_open(fresh("round.db"), STORE_WRITE, &sink, &s), 0);
	CU_ASSERT_EQUAL(store_check(s), 0);
	CU_ASSERT_EQUAL(add(s, 5, 2, &id), 0);
	CU_ASSERT_EQUAL(id, 1);
	CU_ASSERT_EQUAL(add(s, 6, 0, &id), 0);
	CU_ASSERT_EQUAL(id, 2);
	store_close(s);

	CU_ASSERT_EQUAL_FATAL(store_open(path, STORE_READ, &sink, &s), 0);
	CU_ASSERT_EQUAL(store_check(s), 2);
	CU_ASSERT_STRING_EQUAL(
		view(s, STORE_RUNS, 1, 1),
		"1 done a'b.kvt fedcba9876543210 - 6.1-shadow tcg hybrid,threshold=3 "
		"{\"threshold\": 3} - tcg-icount 0000000000000007 5 4 30000000 2 "
		"100 0.0 1005 900 2 2 2\n");
	CU_ASSERT_STRING_EQUAL(view(s, STORE_COUNTS, 1, 2), "insn 900 900\nllc_miss 0 100\n");
	CU_ASSERT_STRING_EQUAL(
		view(s, STORE_METRICS, 2, 2),
		"2 a'b.kvt 6.1-shadow tcg hybrid,threshold=3 tcg-icount 6 4 30000000 2 "
		"100 get_dirty_log_mean 6.1 cycles\n"
		"2 a'b.kvt 6.1-shadow tcg hybrid,threshold=3 tcg-icount 6 4 30000000 2 "
		"100 dirty_pages 12 pages\n");
	CU_ASSERT_STRING_EQUAL(view(s, STORE_COLLECTIONS, 1, 2), "0 1 0 0 5\n1 1 1 0 5\n");
	view(s, STORE_RUNS, 0, 2);
	view(s, STORE_METRICS, 0, 4);
	view(s, STORE_RUNS, 3, 0);
	store_close(s);
	CU_ASSERT_EQUAL(n_said, 0);
}

static void write_file(const void *data, size_t len)
{
	FILE *f = fopen(path, "wb");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(data, 1, len, f), len);
	fclose(f);
}

/* Opening fails with @err and exactly one message that holds @words. */
static void refused(enum store_mode mode, int err, const char *words)
{
	struct store *s = NULL;

	n_said = 0;
	CU_ASSERT_EQUAL(store_open(path, mode, &sink, &s), err);
	CU_ASSERT_EQUAL(n_said, 1);
	if (!strstr(said, words))
		printf("expected '%s' in: %s\n", words, said);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, words));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, path));
	CU_ASSERT_PTR_NULL(s);
}

static void sql(const char *text)
{
	sqlite3 *db = NULL;

	CU_ASSERT_EQUAL(sqlite3_open(path, &db), SQLITE_OK);
	CU_ASSERT_EQUAL(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void refuses_what_is_no_store(void)
{
	char noise[4096];

	fresh("none.db");
	refused(STORE_READ, KVMSIM_ENOENT, "no such store");
	CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);

	write_file("", 0);
	refused(STORE_READ, KVMSIM_EIO, "empty");

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * 37 + 11);
	write_file(noise, sizeof(noise));
	refused(STORE_READ, KVMSIM_EIO, "not a kvmsim store");
	refused(STORE_WRITE, KVMSIM_EIO, "not a kvmsim store");
	write_file(noise, 64);
	refused(STORE_WRITE, KVMSIM_EIO, "not a kvmsim store");

	fresh("other.db");
	sql("CREATE TABLE theirs (x)");
	refused(STORE_WRITE, KVMSIM_EIO, "another program");

	snprintf(path, sizeof(path), "%s/no/such/dir.db", dir);
	refused(STORE_WRITE, KVMSIM_EIO, "opening");
}

static void refuses_a_newer_schema(void)
{
	struct store *s = NULL;

	CU_ASSERT_EQUAL_FATAL(store_open(fresh("newer.db"), STORE_WRITE, &sink, &s), 0);
	store_close(s);
	sql("PRAGMA user_version = 3");
	refused(STORE_READ, KVMSIM_EVERSION, "newer kvmsim");
	refused(STORE_WRITE, KVMSIM_EVERSION, "newer kvmsim");
	sql("PRAGMA user_version = 1");
	refused(STORE_READ, KVMSIM_EVERSION, "before the first release");
}

static void finds_damage(void)
{
	struct store *s = NULL;
	struct stat st;

	CU_ASSERT_EQUAL_FATAL(store_open(fresh("hurt.db"), STORE_WRITE, &sink, &s), 0);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(add(s, 1, 50, NULL), 0);
	store_close(s);

	/* a row that is gone */
	sql("DELETE FROM collections WHERE run = 3 AND seq = 7");
	CU_ASSERT_EQUAL_FATAL(store_open(path, STORE_READ, &sink, &s), 0);
	CU_ASSERT_EQUAL(store_check(s), KVMSIM_EIO);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "1 run lacks rows"));
	store_close(s);

	/* a table's first page is no page: SQLite's words for it have two lines */
	CU_ASSERT_EQUAL_FATAL(store_open(fresh("page.db"), STORE_WRITE, &sink, &s), 0);
	CU_ASSERT_EQUAL(add(s, 1, 50, NULL), 0);
	store_close(s);
	FILE *f = fopen(path, "r+");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fseek(f, 4096, SEEK_SET), 0);
	for (int i = 0; i < 100; i++)
		putc(0xee, f);
	fclose(f);
	CU_ASSERT_EQUAL_FATAL(store_open(path, STORE_READ, &sink, &s), 0);
	CU_ASSERT_EQUAL(store_check(s), KVMSIM_EIO);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "damaged (Page 2: "));
	CU_ASSERT_PTR_NULL(strchr(said, '\n'));
	store_close(s);

	/* a file cut short */
	CU_ASSERT_EQUAL(stat(path, &st), 0);
	CU_ASSERT_EQUAL(truncate(path, st.st_size / 2), 0);
	n_said = 0;
	if (store_open(path, STORE_READ, &sink, &s) == 0) {
		CU_ASSERT_EQUAL(store_check(s), KVMSIM_EIO);
		store_close(s);
	}
	CU_ASSERT_EQUAL(n_said, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "damaged"));
}

/* Writes runs until something stops it; says each stored run's number on @fd. */
static _Noreturn void writer(int fd, int64_t runs)
{
	struct store *s = NULL;
	int err = store_open(path, STORE_WRITE, &sink, &s);

	for (int64_t i = 0, id; !err && i < runs; i++) {
		err = add(s, 1, 60, &id);
		if (!err && write(fd, &id, sizeof(id)) != sizeof(id))
			break;
	}
	store_close(s);
	_exit(err ? 1 : 0);
}

/* The last run that a writer said it had stored; 0 for none. */
static int64_t last_said(int fd)
{
	int64_t id, last = 0;

	while (read(fd, &id, sizeof(id)) == sizeof(id))
		last = id;
	close(fd);
	return last;
}

static pid_t start_writer(int *fd, int64_t runs)
{
	int p[2];
	pid_t pid;

	CU_ASSERT_EQUAL_FATAL(pipe(p), 0);
	pid = fork();
	if (!pid) {
		close(p[0]);
		writer(p[1], runs);
	}
	close(p[1]);
	*fd = p[0];
	return pid;
}

static void survives_kill(void)
{
	struct rng r;
	int64_t before = 0, most = 0;

	fresh("killed.db");
	rng_init(&r, 1, 0, "kill");
	for (int round = 0; round < 25; round++) {
		int fd, status;
		pid_t pid = start_writer(&fd, INT64_MAX);
		struct timespec pause = {0, (long)rng_below(&r, 20000000)};
		struct store *s = NULL;
		int64_t known, stored;

		CU_ASSERT_FATAL(pid > 0);
		nanosleep(&pause, NULL);
		kill(pid, SIGKILL);
		CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
		CU_ASSERT(WIFSIGNALED(status));
		known = last_said(fd);
		/* Killed before it had made the file: nothing to check yet. */
		if (access(path, F_OK) && !known)
			continue;
		CU_ASSERT_EQUAL_FATAL(store_open(path, STORE_WRITE, &sink, &s), 0);
		stored = store_check(s);
		known = known ? known : before;
		/* what was said is there, and at most one more, committed but not yet said */
		CU_ASSERT(stored == known || stored == known + 1);
		before = stored;
		most = stored > most ? stored : most;
		store_close(s);
	}
	CU_ASSERT(most > 0);
}

static void survives_a_full_disk(void)
{
	int fd, status;
	int64_t known;
	struct store *s = NULL;
	pid_t pid;

	/* A limit on file size fails writes as a full disk does. */
	CU_ASSERT_EQUAL_FATAL(store_open(fresh("full.db"), STORE_WRITE, &sink, &s), 0);
	store_close(s);
	int p[2];

	CU_ASSERT_EQUAL_FATAL(pipe(p), 0);
	pid = fork();
	if (!pid) {
		struct rlimit limit = {300000, 300000};
		int err = 0;
		int64_t id;

		close(p[0]);
		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) || store_open(path, STORE_WRITE, &sink, &s))
			_exit(2);
		for (int i = 0; i < 10000 && !err; i++) {
			err = add(s, 1, 60, &id);
			if (!err && write(p[1], &id, sizeof(id)) != sizeof(id))
				_exit(3);
		}
		/* one line, the right error, and the store goes on serving */
		if (err != KVMSIM_EIO || n_said != 1 || !strstr(said, "stored before are whole"))
			_exit(4);
		if (store_check(s) != id)
			_exit(5);
		_exit(0);
	}
	close(p[1]);
	fd = p[0];
	known = last_said(fd);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT(known > 0);
	CU_ASSERT_EQUAL_FATAL(store_open(path, STORE_WRITE, &sink, &s), 0);
	CU_ASSERT_EQUAL(store_check(s), known);
	CU_ASSERT_EQUAL(add(s, 1, 60, NULL), 0);
	CU_ASSERT_EQUAL(store_check(s), known + 1);
	store_close(s);
}

/* The second of a run's three collections is refused: nothing of the run stays, and the next one
 * can be stored. */
static void a_run_is_stored_whole_or_not(void)
{
	struct store *s = NULL;
	int64_t id = 0;

	CU_ASSERT_EQUAL_FATAL(store_open(fresh("half.db"), STORE_WRITE, &sink, &s), 0);
	CU_ASSERT_EQUAL(add(s, 5, 2, &id), 0);
	sql("CREATE TRIGGER refuse BEFORE INSERT ON collections "
	    "WHEN NEW.cycles = 7 AND NEW.seq = 1 BEGIN SELECT RAISE(ABORT, 'refused'); END");
	CU_ASSERT_EQUAL(add(s, 7, 3, &id), KVMSIM_EIO);
	CU_ASSERT_EQUAL(n_said, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "half.db: storing a run: refused; the 1 run stored"));
	CU_ASSERT_EQUAL(id, 1);
	view(s, STORE_RUNS, 0, 1);
	view(s, STORE_COUNTS, 2, 0);
	view(s, STORE_COLLECTIONS, 2, 0);
	CU_ASSERT_EQUAL(add(s, 8, 3, &id), 0);
	CU_ASSERT_EQUAL(id, 2);
	CU_ASSERT_EQUAL(store_check(s), 2);
	store_close(s);
	CU_ASSERT_EQUAL(n_said, 1);
}

static void writers_take_turns(void)
{
	enum { WRITERS = 3, RUNS = 15 };
	pid_t pid[WRITERS];
	int fd[WRITERS], status;
	struct store *s = NULL;

	fresh("shared.db");
	for (int i = 0; i < WRITERS; i++)
		pid[i] = start_writer(&fd[i], RUNS);
	for (int i = 0; i < WRITERS; i++) {
		CU_ASSERT(last_said(fd[i]) >= RUNS);
		CU_ASSERT_EQUAL(waitpid(pid[i], &status, 0), pid[i]);
		CU_ASSERT_EQUAL(status, 0);
	}
	CU_ASSERT_EQUAL_FATAL(store_open(path, STORE_READ, &sink, &s), 0);
	CU_ASSERT_EQUAL(store_check(s), WRITERS * RUNS);
	store_close(s);
}

static CU_TestInfo tests[] = {{"round_trip", round_trip},
			      {"refuses_what_is_no_store", refuses_what_is_no_store},
			      {"refuses_a_newer_schema", refuses_a_newer_schema},
			      {"finds_damage", finds_damage},
			      {"survives_kill", survives_kill},
			      {"survives_a_full_disk", survives_a_full_disk},
			      {"a_run_is_stored_whole_or_not", a_run_is_stored_whole_or_not},
			      {"writers_take_turns", writers_take_turns},
			      CU_TEST_INFO_NULL};

int main(void)
{
	char command[64];
	int rc;

	if (!mkdtemp(dir))
		return 1;
	rc = test_main("store", tests);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command) ? 1 : rc;
}
