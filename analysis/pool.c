// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/run.h"

#define MESSAGE 1024

/* How a piece ended, on its way from a worker; the result follows. */
struct end {
	int err;
	char message[MESSAGE]; /* the first */
};

struct worker {
	pid_t pid;
	int fd;
};

static void keep_first(void *ctx, enum kvmsim_error err, const char *msg)
{
	struct end *e = ctx;

	(void)err;
	if (!*e->message)
		snprintf(e->message, sizeof(e->message), "%s", msg);
}

static void one(const struct pool *p, size_t i, struct end *e, void *result)
{
	const struct kvmsim_errsink sink = {keep_first, e};

	memset(e, 0, sizeof(*e));
	memset(result, 0, p->bytes);
	e->err = p->work(p->ctx, i, &sink, result);
}

static bool transfer(int fd, void *data, size_t len, bool in)
{
	for (char *at = data; len;) {
		ssize_t n = in ? read(fd, at, len) : write(fd, at, len);

		if (n < 0 && errno == EINTR && !(in && run_interrupted))
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

/* Does every step-th piece and waits at its pipe until the result is wanted. */
static _Noreturn void serve(const struct pool *p, size_t first, size_t step, int fd)
{
	void *result = malloc(p->bytes);

	signal(SIGPIPE, SIG_DFL);
	for (size_t i = first; result && i < p->n; i += step) {
		struct end e;

		one(p, i, &e, result);
		if (!transfer(fd, &e, sizeof(e), false) || !transfer(fd, result, p->bytes, false) ||
		    e.err)
			break;
	}
	_exit(0);
}

static bool start(const struct pool *p, struct worker *w, size_t k, size_t workers)
{
	int ends[2];

	if (pipe(ends))
		return false;
	w[k].pid = fork();
	if (!w[k].pid) {
		for (size_t i = 0; i < k; i++)
			close(w[i].fd);
		close(ends[0]);
		serve(p, k, workers, ends[1]);
	}
	close(ends[1]);
	w[k].fd = ends[0];
	if (w[k].pid < 0)
		close(ends[0]);
	return w[k].pid > 0;
}

static void receive(const struct pool *p, int fd, struct end *e, void *result)
{
	if (transfer(fd, e, sizeof(*e), true) && transfer(fd, result, p->bytes, true))
		return;
	*e = (struct end){.err = run_interrupted ? KVMSIM_EINTR : KVMSIM_ECHILD};
	snprintf(e->message, sizeof(e->message),
		 "a worker process ended early (killed, or out of memory)");
}

static int deliver(const struct pool *p, const struct kvmsim_errsink *errors, size_t i,
		   const struct end *e, const void *result)
{
	if (e->err == KVMSIM_EINTR)
		return e->err;
	if (e->err)
		return kvmsim_err(errors, e->err, "%s",
				  *e->message ? e->message : kvmsim_strerror(e->err));
	return p->done(p->ctx, i, result);
}

int pool_run(const struct pool *p, const struct kvmsim_errsink *errors)
{
	size_t workers = p->workers < 2 ? 0 : p->workers < p->n ? p->workers : p->n, started = 0;
	struct worker *w = calloc(workers + 1, sizeof(*w));
	void *result = malloc(p->bytes);
	struct end e;
	int err = 0;

	if (!w || !result) {
		free(w);
		free(result);
		return kvmsim_err(errors, KVMSIM_ENOMEM, "out of memory");
	}
	while (!err && started < workers) {
		if (start(p, w, started, workers))
			started++;
		else
			err = kvmsim_err(errors, KVMSIM_EIO, "starting a process: %s",
					 strerror(errno));
	}
	for (size_t i = 0; !err && i < p->n; i++) {
		if (started)
			receive(p, w[i % started].fd, &e, result);
		else
			one(p, i, &e, result);
		err = deliver(p, errors, i, &e, result);
		if (!err && run_interrupted)
			err = KVMSIM_EINTR;
	}
	for (size_t k = 0; k < started; k++) {
		close(w[k].fd);
		kill(w[k].pid, SIGKILL);
		while (waitpid(w[k].pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(w);
	free(result);
	return err;
}
