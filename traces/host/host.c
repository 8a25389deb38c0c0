// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "traces/event_reader.h"
#include "traces/format.h"
#include "traces/host/dat.h"
#include "traces/host/text.h"

const char *host_refusal_name(enum host_refusal r)
{
	static const char *const of[] = {"fine", "binary", "empty", "no-kvm-content",
					 "truncated-trace-dat"};

	return of[r];
}

static int read_open(int fd, const char *name, const struct host_opts *opts,
		     const struct host_sink *sink, const struct kvmsim_errsink *errors,
		     struct host_result *result)
{
	struct source *source;
	const void *head;
	int ret = source_open(fd, name, errors, &source);

	if (ret)
		return ret;
	ret = source_head(source, &head);
	if (ret >= 0 && !source_packed(source) && host_is_dat(head, ret))
		ret = host_read_dat_fd(fd, name, head, ret, opts, sink, errors, result);
	else if (ret >= (int)strlen(TRACE_MAGIC) && !memcmp(head, TRACE_MAGIC, strlen(TRACE_MAGIC)))
		ret = host_read_native_fd(fd, name, head, ret, opts, sink, errors, result);
	else if (ret >= 0)
		ret = host_read_text(source, name, opts, sink, errors, result);
	source_close(source);
	return ret;
}

int host_read(const char *path, const struct host_opts *opts, const struct host_sink *sink,
	      const struct kvmsim_errsink *errors, struct host_result *result)
{
	static const struct host_opts none;
	int fd, ret;

	*result = (struct host_result){0};
	if (!opts)
		opts = &none;
	if (!strcmp(path, "-"))
		return read_open(STDIN_FILENO, "stdin", opts, sink, errors, result);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == EINTR) /* only a handler without SA_RESTART does that */
		return KVMSIM_EINTR;
	if (fd < 0)
		return kvmsim_err(errors, KVMSIM_EIO, "%s: %s", path, strerror(errno));
	ret = read_open(fd, path, opts, sink, errors, result);
	close(fd);
	return ret;
}
