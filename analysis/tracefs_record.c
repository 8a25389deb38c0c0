// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/tracefs_record.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/child.h"
#include "analysis/run.h"

#define LOOK_US	      20000 /* between two rounds over the CPUs */
#define COMMAND_END_S 5	    /* that the command may take to end after SIGTERM */

/* ---- the command ---- */

struct command {
	pid_t pid; /* 0: none, or ended */
	int go;	   /* a byte lets it begin */
};

static int prepare(struct command *c, char *const *argv, const struct kvmsim_errsink *errors)
{
	char *program = child_find(argv[0]), byte;
	int fd[2];

	if (!program)
		return kvmsim_err(errors, KVMSIM_ENOENT, "%s: no such program", argv[0]);
	if (pipe2(fd, O_CLOEXEC)) {
		free(program);
		return kvmsim_err(errors, KVMSIM_EIO, "no pipe: %s", strerror(errno));
	}
	fflush(NULL);
	c->pid = fork();
	if (!c->pid) {
		close(fd[1]);
		if (read(fd[0], &byte, 1) != 1) /* it is not to begin */
			_exit(127);
		execv(program, argv);
		fprintf(stderr, "kvmsim: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	free(program);
	close(fd[0]);
	c->go = fd[1];
	if (c->pid < 0) {
		c->pid = 0;
		return kvmsim_err(errors, KVMSIM_EIO, "no process for the command: %s",
				  strerror(errno));
	}
	return 0;
}

static bool ended(struct command *c, int *status)
{
	if (c->pid && waitpid(c->pid, status, WNOHANG) == c->pid)
		c->pid = 0;
	return !c->pid;
}

/* A command that was interrupted with us, or that outlives --duration. */
static void end(struct command *c, int *status)
{
	double until = child_clock() + COMMAND_END_S;

	if (c->go >= 0)
		close(c->go); /* one that did not begin ends now */
	c->go = -1;
	if (ended(c, status))
		return;
	kill(c->pid, SIGTERM);
	while (!ended(c, status) && child_clock() < until)
		usleep(LOOK_US);
	if (c->pid) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, status, 0);
		c->pid = 0;
	}
}

/* ---- the CPUs' buffers ---- */

/* The bytes of a page of the buffer: the length and place of header_page's data. */
static uint32_t page_size(const struct tracefs *t)
{
	size_t len;
	char *text = tracefs_read(t, true, "events/header_page", &len), *at;
	unsigned offset = 0, size = 0;

	at = text ? strstr(text, "char data;") : NULL;
	if (!at || sscanf(at, "char data;%*[ \t]offset:%u;%*[ \t]size:%u;", &offset, &size) != 2)
		size = 0;
	free(text);
	return size ? offset + size : 4096;
}

/* An unnamed file beside @out. */
static int unnamed(const char *out)
{
	char *copy = strdup(out);
	int fd = copy ? open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

	free(copy);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) { /* no O_TMPFILE there */
		FILE *f = tmpfile();

		fd = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 0) : -1;
		if (f)
			fclose(f);
	}
	return fd;
}

static int open_cpus(struct tracefs_recording *r, const struct tracefs *t,
		     const struct kvmsim_errsink *errors)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	r->cpus = calloc(n > 0 ? n : 1, sizeof(*r->cpus));
	if (!r->cpus)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "out of memory");
	for (long i = 0; i < n; i++) {
		struct tracefs_cpu *c = &r->cpus[i];
		char file[64], *path;

		snprintf(file, sizeof(file), "per_cpu/cpu%ld/trace_pipe_raw", i);
		path = tracefs_path(t, false, file);
		*c = (struct tracefs_cpu){.cpu = i, .raw = -1, .pages = unnamed(r->out)};
		r->n_cpus++;
		if (path)
			c->raw = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		free(path);
		/* a CPU that is not there has no buffer, and no data */
		if (c->raw < 0 && errno != ENOENT && errno != ENODEV && errno != ENXIO)
			return kvmsim_err(errors, KVMSIM_EIO, "%s/%s: %s", t->instance, file,
					  strerror(errno));
		if (c->pages < 0)
			return kvmsim_err(errors, KVMSIM_EIO, "%s: no file can be made there: %s",
					  r->out, strerror(errno));
	}
	return 0;
}

/* Moves whole pages through a pipe: the kernel does not copy them. 0, or KVMSIM_EIO. */
static int move_pages(struct tracefs_cpu *c, const int pipe[2], uint32_t page)
{
	for (;;) {
		ssize_t n = splice(c->raw, NULL, pipe[1], NULL, 16ul * page,
				   SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

		if (n <= 0)
			return 0; /* nothing, or nothing whole; read() tells of errors at the end */
		while (n > 0) {
			ssize_t out = splice(pipe[0], NULL, c->pages, NULL, n, 0);

			if (out <= 0)
				return KVMSIM_EIO;
			n -= out;
			c->bytes += out;
		}
	}
}

/* What is left, also pages that are not full. */
static int read_rest(struct tracefs_cpu *c, uint32_t page)
{
	char *buf = calloc(1, page);
	ssize_t n = 0;
	int err = buf ? 0 : KVMSIM_ENOMEM;

	while (!err && (n = read(c->raw, buf, page)) > 0) {
		if (pwrite(c->pages, buf, page, c->bytes) != (ssize_t)page)
			err = KVMSIM_EIO;
		c->bytes += page;
		memset(buf, 0, page);
	}
	if (!err && n < 0 && errno != EAGAIN)
		err = KVMSIM_EIO;
	free(buf);
	return err;
}

static int each_cpu(struct tracefs_recording *r, const int pipe[2], bool rest,
		    const struct kvmsim_errsink *errors)
{
	for (unsigned i = 0; i < r->n_cpus; i++) {
		struct tracefs_cpu *c = &r->cpus[i];
		int err;

		if (c->raw < 0)
			continue;
		err = move_pages(c, pipe, r->page_size);
		if (!err && rest)
			err = read_rest(c, r->page_size);
		if (err)
			return kvmsim_err(errors, err, "the events of CPU %u cannot be kept: %s",
					  c->cpu, strerror(errno));
	}
	return 0;
}

/* ---- a recording ---- */

static int set_up(struct tracefs_recording *r, const struct tracefs *t,
		  const struct kvmsim_errsink *errors)
{
	char text[320];
	int err;

	err = tracefs_write(t, "trace_clock", r->clock);
	if (err)
		return kvmsim_err(errors, err == EINVAL ? KVMSIM_EINVAL : KVMSIM_EIO,
				  "clock '%s': %s", r->clock,
				  err == EINVAL ? "this kernel has none of that name"
						: strerror(err));
	snprintf(text, sizeof(text), "%llu", (unsigned long long)r->buffer_kib);
	err = tracefs_write(t, "buffer_size_kb", text);
	if (err)
		return kvmsim_err(errors, KVMSIM_EIO, "buffers of %s KiB per CPU: %s", text,
				  strerror(err));
	err = tracefs_events_find(t, r->purposes, r->events, &r->found, errors);
	for (size_t i = 0; !err && i < r->found.n; i++) {
		snprintf(text, sizeof(text), "events/%s/enable", r->found.name[i]);
		if (tracefs_write(t, text, "1"))
			err = kvmsim_err(errors, KVMSIM_EIO, "%s cannot be switched on: %s",
					 r->found.name[i], strerror(errno));
	}
	r->page_size = page_size(t);
	return err ? err : open_cpus(r, t, errors);
}

static int run(struct tracefs_recording *r, const struct tracefs *t, struct command *c,
	       const struct kvmsim_errsink *errors)
{
	double begin;
	int pipe[2], err = 0;

	if (pipe2(pipe, O_CLOEXEC))
		return kvmsim_err(errors, KVMSIM_EIO, "no pipe: %s", strerror(errno));
	if (tracefs_write(t, "tracing_on", "1"))
		err = kvmsim_err(errors, KVMSIM_EIO, "tracing cannot be switched on: %s",
				 strerror(errno));
	begin = child_clock();
	if (!err && r->command && write(c->go, "g", 1) != 1)
		err = kvmsim_err(errors, KVMSIM_EIO, "the command cannot begin: %s",
				 strerror(errno));
	while (!err && !run_interrupted && !(r->command && ended(c, &r->status)) &&
	       !(r->seconds > 0 && child_clock() - begin >= r->seconds)) {
		err = each_cpu(r, pipe, false, errors);
		usleep(LOOK_US);
	}
	r->took = child_clock() - begin;
	r->interrupted = run_interrupted;
	tracefs_write(t, "tracing_on", "0");
	if (!err)
		err = each_cpu(r, pipe, true, errors);
	close(pipe[0]);
	close(pipe[1]);
	return err;
}

static void read_statistics(struct tracefs_recording *r, const struct tracefs *t)
{
	for (unsigned i = 0; i < r->n_cpus; i++) {
		char file[64];
		size_t len;

		snprintf(file, sizeof(file), "per_cpu/cpu%u/stats", r->cpus[i].cpu);
		r->cpus[i].stats = tracefs_read(t, false, file, &len);
	}
}

static void close_raw(struct tracefs_recording *r)
{
	for (unsigned i = 0; i < r->n_cpus; i++) {
		if (r->cpus[i].raw >= 0)
			close(r->cpus[i].raw);
		r->cpus[i].raw = -1;
	}
}

int tracefs_record(struct tracefs_recording *r, const struct kvmsim_errsink *errors)
{
	struct command c = {.go = -1};
	struct tracefs t;
	int err = tracefs_open(&t, errors);

	if (!err)
		err = set_up(r, &t, errors);
	if (!err && r->command)
		err = prepare(&c, r->command, errors);
	if (!err) {
		tracefs_drop_privileges();
		err = run(r, &t, &c, errors);
	}
	end(&c, &r->status);
	if (!err) {
		read_statistics(r, &t);
		err = tracefs_dat_write(r->out, &t, r->found.name, r->found.n, r->cpus, r->n_cpus,
					r->page_size, errors);
	}
	close_raw(r); /* an instance that is read stays */
	tracefs_close(&t);
	return err;
}

void tracefs_recording_free(struct tracefs_recording *r)
{
	close_raw(r);
	for (unsigned i = 0; i < r->n_cpus; i++) {
		if (r->cpus[i].pages >= 0)
			close(r->cpus[i].pages);
		free(r->cpus[i].stats);
	}
	free(r->cpus);
	tracefs_events_free(&r->found);
	r->cpus = NULL;
	r->n_cpus = 0;
}

uint64_t tracefs_stat(const struct tracefs_cpu *c, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = c->stats; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, len) && line[len] == ':')
			return strtoull(line + len + 1, NULL, 10);
	}
	return 0;
}
