// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/jobs.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What one run said: lines with a newline each. */
struct said {
	char *text;
	size_t len;
	bool wrong; /* more than that the input is torn, which is no error of the run */
};

/* One finished run on its way from a worker: this, the result, its collections, its messages. */
struct frame {
	int err;
	size_t said_len;
};

struct worker {
	pid_t pid;
	int fd;
};

/* The first of what went wrong comes before what was only said of the input. */
static void keep(void *ctx, enum kvmsim_error err, const char *msg)
{
	struct said *s = ctx;
	size_t len = strlen(msg), at = err == KVMSIM_ETORN || s->wrong ? s->len : 0;
	char *grown = realloc(s->text, s->len + len + 2);

	if (!grown)
		return;
	memmove(grown + at + len + 1, grown + at, s->len - at);
	memcpy(grown + at, msg, len);
	grown[at + len] = '\n';
	s->len += len + 1;
	s->wrong |= err != KVMSIM_ETORN;
	grown[s->len] = '\0';
	s->text = grown;
}

static int run_one(const struct jobs *jobs, size_t i, struct said *said, struct run_result *r)
{
	struct run_opts opts = jobs->list[i];
	const struct kvmsim_errsink sink = {keep, said};

	opts.errors = &sink;
	return jobs->run(&opts, r);
}

/* Hands a finished run on; frees it. */
static int deliver(const struct jobs *jobs, const struct kvmsim_errsink *errors, size_t i, int err,
		   struct said *said, struct run_result *r)
{
	char *save = NULL;

	if (err) {
		/* The first message is the one from where it went wrong. */
		char *line = said->text ? strtok_r(said->text, "\n", &save) : NULL;

		if (line)
			kvmsim_err(errors, err, "%s", line);
		else if (err != KVMSIM_EINTR)
			kvmsim_err(errors, err, "run %zu: %s", i, kvmsim_strerror(err));
	} else {
		for (char *line = said->text ? strtok_r(said->text, "\n", &save) : NULL; line;
		     line = strtok_r(NULL, "\n", &save))
			if (jobs->warn)
				jobs->warn(jobs->ctx, line);
		err = jobs->done(jobs->ctx, i, r);
		run_result_free(r);
	}
	free(said->text);
	return err;
}

/* All of it, to the other end or (@in) from there. Reading ends when the program is interrupted. */
static bool transfer(int fd, void *data, size_t len, bool in)
{
	for (char *p = data; len;) {
		ssize_t n = in ? read(fd, p, len) : write(fd, p, len);

		if (n < 0 && errno == EINTR && !(in && run_interrupted))
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static bool write_all(int fd, void *data, size_t len)
{
	return transfer(fd, data, len, false);
}

static bool read_all(int fd, void *data, size_t len)
{
	return transfer(fd, data, len, true);
}

/* A worker does every workers-th run and blocks on its pipe until it is wanted. */
static _Noreturn void work(const struct jobs *jobs, size_t first, size_t step, int fd)
{
	signal(SIGPIPE, SIG_DFL);
	for (size_t i = first; i < jobs->n; i += step) {
		struct run_result r = {0};
		struct said said = {0};
		struct frame f = {.err = run_one(jobs, i, &said, &r)};

		/* The tasks stay here: nobody above asks for them. */
		free(r.tasks);
		r.tasks = NULL;
		r.n_tasks = 0;
		f.said_len = said.len;
		if (!write_all(fd, &f, sizeof(f)) || !write_all(fd, &r, sizeof(r)) ||
		    !write_all(fd, r.collections, r.n_collections * sizeof(*r.collections)) ||
		    !write_all(fd, said.text, said.len))
			_exit(1);
		run_result_free(&r);
		free(said.text);
		if (f.err)
			break;
	}
	_exit(0);
}

static int receive(int fd, struct said *said, struct run_result *r)
{
	struct frame f;
	size_t bytes;

	if (!read_all(fd, &f, sizeof(f)) || !read_all(fd, r, sizeof(*r)))
		goto lost;
	bytes = r->n_collections * sizeof(*r->collections);
	r->collections = malloc(bytes ? bytes : 1);
	said->text = malloc(f.said_len + 1);
	if (!r->collections || !said->text) {
		f.err = KVMSIM_ENOMEM;
		goto fail;
	}
	if (!read_all(fd, r->collections, bytes) || !read_all(fd, said->text, f.said_len))
		goto lost_part;
	said->text[f.said_len] = '\0';
	said->len = f.said_len;
	if (!f.err)
		return 0;
fail:
	free(r->collections);
	*r = (struct run_result){0};
	return f.err;
lost_part:
	free(r->collections);
lost:
	*r = (struct run_result){0};
	free(said->text);
	*said = (struct said){0};
	if (!run_interrupted)
		keep(said, KVMSIM_ECHILD,
		     "a worker process ended early (killed, or out of memory)");
	return run_interrupted ? KVMSIM_EINTR : KVMSIM_ECHILD;
}

static int start(const struct jobs *jobs, size_t k, size_t n, struct worker *w)
{
	int p[2];

	if (pipe(p))
		return -1;
	w[k].pid = fork();
	if (!w[k].pid) {
		/* Hold no other worker's pipe open: its reader's death must reach it. */
		for (size_t i = 0; i < k; i++)
			close(w[i].fd);
		close(p[0]);
		work(jobs, 1 + k, n, p[1]);
	}
	close(p[1]);
	w[k].fd = p[0];
	if (w[k].pid < 0) {
		close(p[0]);
		return -1;
	}
	return 0;
}

int jobs_run(const struct jobs *jobs, const struct kvmsim_errsink *errors)
{
	size_t n = jobs->workers < 2 || jobs->n < 3 ? 0 : jobs->workers, started = 0;
	struct worker *w = calloc(n + 1, sizeof(*w));
	int err = 0;

	if (!w)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "out of memory");
	if (n > jobs->n - 1)
		n = jobs->n - 1;
	for (size_t i = 0; !err && i < jobs->n; i++) {
		struct run_result r = {0};
		struct said said = {0};

		for (; i == 1 && started < n; started++) {
			if (start(jobs, started, n, w)) {
				err = kvmsim_err(errors, KVMSIM_EIO, "starting a process: %s",
						 strerror(errno));
				goto out;
			}
		}
		err = i && n ? receive(w[(i - 1) % n].fd, &said, &r) : run_one(jobs, i, &said, &r);
		err = deliver(jobs, errors, i, err, &said, &r);
		if (!err && run_interrupted && i + 1 < jobs->n)
			err = KVMSIM_EINTR;
	}
out:
	for (size_t k = 0; k < started; k++) {
		close(w[k].fd);
		kill(w[k].pid, SIGKILL);
		while (waitpid(w[k].pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(w);
	return err;
}
