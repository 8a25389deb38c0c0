// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/text_seen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void say(struct text_seen *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text_seen *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(s->out + s->len, sizeof(s->out) - s->len, fmt, ap);
	va_end(ap);
	if (n > 0 && s->len + n < sizeof(s->out))
		s->len += n;
	else
		s->out[s->len] = 0;
}

static void number(struct text_seen *s, int64_t v)
{
	if (v < 0)
		say(s, "-|");
	else
		say(s, "%" PRId64 "|", v);
}

static int event(void *ctx, const struct host_event *e)
{
	struct text_seen *s = ctx;
	const char *blank = "";

	s->events++;
	s->last_context = e->context;
	say(s, "%.*s|", e->comm.len ? (int)e->comm.len : 1, e->comm.len ? e->comm.at : "-");
	number(s, e->tid);
	number(s, e->tgid);
	number(s, e->cpu);
	if (e->time_ns == HOST_NO_TIME)
		say(s, "-|");
	else
		say(s, "%" PRIu64 ".%d|", e->time_ns, e->time_decimals);
	say(s, "%d|%.*s|", e->flags_width, (int)e->name.len, e->name.at);
	say(s, "%.*s|", e->reason.len ? (int)e->reason.len : 1, e->reason.len ? e->reason.at : "-");
	for (int f = 0; f < HOST_N_FIELDS; f++)
		if (host_has(e, f)) {
			say(s, "%s%s=%" PRIx64, blank, host_field_name(f), e->v[f]);
			blank = " ";
		}
	say(s, "%s%s\n", e->damaged ? " damaged" : "", e->role_unreliable ? " stale" : "");
	return 0;
}

static int loss(void *ctx, const struct host_loss *l)
{
	say(ctx, "loss %" PRId64 " %" PRId64 " %" PRIu64 "%s\n", l->cpu, (int64_t)l->count,
	    l->chunks, l->header ? " header" : "");
	return 0;
}

static int elision(void *ctx)
{
	say(ctx, "elision\n");
	return 0;
}

static int cpus(void *ctx, uint64_t n, bool empty)
{
	say(ctx, "%s %" PRIu64 "\n", empty ? "empty" : "cpus", n);
	return 0;
}

static void emit(void *ctx, enum kvmsim_error err, const char *msg)
{
	struct text_seen *s = ctx;

	(void)err;
	snprintf(s->error, sizeof(s->error), "%s", msg);
}

void text_see(struct text_seen *s, const char *text, size_t len)
{
	struct host_sink sink = {s, event, loss, elision, cpus};
	struct kvmsim_errsink errors = {emit, s};
	char path[64];
	int fd = memfd_create("text", MFD_CLOEXEC);

	s->len = s->events = 0;
	s->out[0] = s->error[0] = 0;
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	s->ret = host_read(path, NULL, &sink, &errors, &s->result);
	close(fd);
}
