// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workloads/kvm/tally.h"

#define TEXT_MAX  65536u
#define BUFFER_KB "16384" /* per CPU: some 100,000 events of one part of a round */

static int failed(const struct trace_events *e, const char *what)
{
	return kvmsim_err(e->errors, KVMSIM_EIO, "tracefs: %s%s: %s", e->dir ? e->dir : "", what,
			  strerror(errno));
}

static int put_text(const struct trace_events *e, const char *file, const char *text)
{
	char path[512];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s%s", e->dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return failed(e, file);
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err = failed(e, file);
	close(fd);
	return err;
}

static int make_instance(struct trace_events *e)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[96];

		snprintf(path, sizeof(path), "%s/instances/kvmsim-%ld/", places[i], (long)getpid());
		if (!mkdir(path, 0700)) {
			e->dir = strdup(path);
			return e->dir ? 0 : KVMSIM_ENOMEM;
		}
	}
	return kvmsim_err(e->errors, KVMSIM_EUNSUPPORTED,
			  "tracepoints need a mounted tracefs and the right to make an instance in "
			  "it: %s: %s",
			  places[0], strerror(errno));
}

/* "GROUP:NAME" or "GROUP:*". */
static int switch_on(struct trace_events *e, const char *event, size_t len)
{
	const char *colon = memchr(event, ':', len);
	char file[256];
	struct stat st;

	if (!colon || colon == event || colon == event + len - 1 || len > 128 ||
	    memchr(event, '/', len) || event[0] == '.')
		return kvmsim_err(e->errors, KVMSIM_EINVAL,
				  "tracepoint '%.*s': expected GROUP:NAME or GROUP:*", (int)len,
				  event);
	int group = (int)(colon - event), name = (int)len - group - 1;

	if (name == 1 && colon[1] == '*')
		snprintf(file, sizeof(file), "%sevents/%.*s/enable", e->dir, group, event);
	else
		snprintf(file, sizeof(file), "%sevents/%.*s/%.*s/enable", e->dir, group, event,
			 name, colon + 1);
	if (stat(file, &st) < 0)
		return kvmsim_err(e->errors, KVMSIM_EUNSUPPORTED,
				  "this kernel has no tracepoint %.*s", (int)len, event);
	return put_text(e, file + strlen(e->dir), "1");
}

int trace_events_open(struct trace_events *e, const char *events,
		      const struct kvmsim_errsink *errors)
{
	char pid[32], path[512];
	int err;

	*e = (struct trace_events){.errors = errors, .pipe = -1};
	err = make_instance(e);
	if (err)
		return err;
	snprintf(pid, sizeof(pid), "%ld", (long)gettid());
	err = put_text(e, "buffer_size_kb", BUFFER_KB);
	err = err ? err : put_text(e, "options/overwrite", "0");
	err = err ? err : put_text(e, "options/event-fork", "1");
	err = err ? err : put_text(e, "set_event_pid", pid);
	for (const char *at = events; !err && *at;) {
		size_t len = strcspn(at, " ,");

		if (len)
			err = switch_on(e, at, len);
		at += len + !!at[len];
	}
	if (err)
		return err;
	e->text = malloc(TEXT_MAX);
	if (!e->text)
		return KVMSIM_ENOMEM;
	snprintf(path, sizeof(path), "%strace_pipe", e->dir);
	e->pipe = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return e->pipe < 0 ? failed(e, "trace_pipe") : 0;
}

void trace_events_close(struct trace_events *e)
{
	if (!e->dir)
		return;
	if (e->pipe >= 0)
		close(e->pipe);
	put_text(e, "events/enable", "0");
	if (rmdir(e->dir) < 0)
		failed(e, "");
	for (size_t i = 0; i < e->n; i++)
		free(e->name[i]);
	free(e->dir);
	free(e->text);
	memset(e, 0, sizeof(*e));
}

static int count_name(struct trace_events *e, const char *name, size_t len)
{
	size_t i = 0;

	while (i < e->n && (strncmp(e->name[i], name, len) || e->name[i][len]))
		i++;
	if (i == TALLY_MAX)
		return kvmsim_err(e->errors, KVMSIM_EUNSUPPORTED,
				  "more than %d kinds of tracepoints fired", TALLY_MAX);
	if (i == e->n) {
		e->name[i] = strndup(name, len);
		if (!e->name[i])
			return KVMSIM_ENOMEM;
		e->count[i] = 0;
		e->n++;
	}
	e->count[i]++;
	return 0;
}

/* "  kvmsim-123  [000] .....  12.345678: kvm_exit: reason ..." */
static int count_line(struct trace_events *e, const char *line)
{
	const char *time, *name, *end;

	if (strstr(line, "LOST") && strstr(line, "EVENTS"))
		return kvmsim_err(e->errors, KVMSIM_EIO,
				  "the trace buffer lost events: %s; fewer tracepoints or shorter "
				  "rounds are needed",
				  line);
	time = strchr(line, ']');
	name = time ? strstr(time, ": ") : NULL;
	end = name ? strchr(name + 2, ':') : NULL;
	return end ? count_name(e, name + 2, (size_t)(end - name - 2)) : 0;
}

static int count_lines(struct trace_events *e)
{
	char *line = e->text, *end;
	int err = 0;

	e->text[e->used] = '\0';
	while (!err && (end = strchr(line, '\n'))) {
		*end = '\0';
		err = count_line(e, line);
		line = end + 1;
	}
	e->used -= (size_t)(line - e->text);
	memmove(e->text, line, e->used);
	return err;
}

int trace_events_count(struct trace_events *e, struct kvm_tally *out)
{
	ssize_t n;
	int err = 0;

	memset(e->count, 0, sizeof(e->count));
	while (!err && (n = read(e->pipe, e->text + e->used, TEXT_MAX - 1 - e->used)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err = errno == EAGAIN ? 0 : failed(e, "trace_pipe");
			break;
		}
		e->used += (size_t)n;
		err = count_lines(e);
	}
	*out = (struct kvm_tally){
		.n = e->n, .name = (const char *const *)e->name, .value = e->count};
	return err;
}
