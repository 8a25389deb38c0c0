// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/info_host.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "analysis/cli.h"
#include "analysis/host_progress.h"
#include "analysis/host_summary.h"
#include "analysis/output.h"
#include "analysis/run.h"

#define NATIVE_MAGIC "\x89KVT\r\n\x1a\n"
#define MAGIC_BYTES  8

/* The first bytes, left where they are: of a file by offset, of a pipe by a copy, of a socket by
 * peeking. What else there is (a terminal) is no trace in a binary form. */
static ssize_t peek(int fd, char *buf, size_t size)
{
	ssize_t n = pread(fd, buf, size, lseek(fd, 0, SEEK_CUR));
	int copy[2];

	if (n >= 0)
		return n;
	if (!pipe2(copy, O_CLOEXEC)) {
		n = tee(fd, copy[1], size, 0);
		if (n > 0)
			n = read(copy[0], buf, (size_t)n);
		close(copy[0]);
		close(copy[1]);
	}
	return n >= 0 ? n : recv(fd, buf, size, MSG_PEEK);
}

bool info_is_native(const char *path)
{
	char buf[MAGIC_BYTES];
	ssize_t n;
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;

	if (fd < 0)
		return false;
	n = peek(fd, buf, sizeof(buf));
	if (fd != STDIN_FILENO)
		close(fd);
	/* a pipe may hand out less at first; no other form begins with even the first byte */
	return n > 0 && !memcmp(buf, NATIVE_MAGIC, (size_t)n);
}

/* What host_read() tells goes to the facts and into the summary. */
struct both {
	const struct host_sink *facts;
	struct host_summary summary;
};

static int both_event(void *ctx, const struct host_event *e)
{
	struct both *b = ctx;
	int err = host_summary_event(&b->summary, e);

	return err ? err : b->facts->event(b->facts->ctx, e);
}
static int both_loss(void *ctx, const struct host_loss *l)
{
	struct both *b = ctx;

	host_summary_loss(&b->summary, l);
	return b->facts->loss(b->facts->ctx, l);
}
static int both_elision(void *ctx)
{
	struct both *b = ctx;

	return b->facts->elision(b->facts->ctx);
}
static int both_cpus(void *ctx, uint64_t n, bool empty)
{
	struct both *b = ctx;

	return b->facts->cpus(b->facts->ctx, n, empty);
}

static int print(struct host_facts *h, struct facts *f, const struct info_host_args *a)
{
	json_t *o = NULL;
	int err;

	facts_finish(f);
	if (a->json) {
		o = facts_json(h);
		if (o && a->native)
			json_object_set(o, "native", a->native);
	}
	err = a->json ? json_print_decimals(o, stdout) : facts_print(h);
	if (err)
		kvmsim_err(&cli_errors, err, "%s", kvmsim_strerror(err));
	return err;
}

static int read_all(const char *path, const struct info_host_args *a, const struct csv_map *map,
		    struct facts *f, struct tables *t)
{
	struct host_progress progress;
	struct host_opts opts = {.tables = t,
				 .csv = map,
				 .interrupted = &run_interrupted,
				 .progress = host_progress_begin(&progress),
				 .progress_ctx = &progress};
	struct host_result result = {.refusal = HOST_FINE};
	struct host_facts h = {path, f, t, &result, a->given};
	struct both b = {.facts = facts_sink(f)};
	const struct host_sink sink = {&b, both_event, both_loss, both_elision, both_cpus};
	struct summary s;
	int err = host_read(path, &opts, &sink, &cli_errors, &result);

	host_progress_end(&progress);
	s = host_summary(&b.summary, &result);
	host_summary_free(&b.summary);
	if (result.refusal != HOST_FINE) {
		if (a->json)
			json_print(facts_refusal_json(path, &result), stdout);
		return EXIT_INPUT;
	}
	if (err == KVMSIM_EINTR)
		kvmsim_err(&cli_errors, err, "interrupted");
	if (err)
		return cli_input_exit_code(err);
	err = print(&h, f, a);
	summary_print(strcmp(path, "-") ? path : "standard input", &s);
	return err ? cli_exit_code(err) : summary_exit_code(&s, a->strict);
}

int info_host(const char *path, const struct info_host_args *a)
{
	struct facts *f = facts_create();
	struct csv_map *map = NULL;
	struct tables tables;
	int err = tables_init(&tables), code;

	if (!err && a->csv) {
		err = csv_map_parse(a->csv, &cli_errors, &map);
		if (err) {
			code = cli_exit_code(err);
			goto out;
		}
	}
	if (err || !f)
		code = cli_exit_code(kvmsim_err(&cli_errors, KVMSIM_ENOMEM, "out of memory"));
	else
		code = read_all(path, a, map, f, &tables);
out:
	csv_map_free(map);
	tables_free(&tables);
	facts_free(f);
	return code;
}
