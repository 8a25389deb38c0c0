// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/dat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/host/dat_events.h"
#include "traces/host/dat_stream.h"

#define SPOOL	       65536
#define PROGRESS       (1u << 20)   /* bytes of events between two calls of progress */
#define MAX_PAGES_ROOM (1ull << 30) /* bytes for a page of every CPU's */

struct source {
	struct dat_stream stream;
	const struct dat_buffer *buffer;
	uint64_t time_ns; /* of its record */
};

struct reading {
	struct dat_file file;
	struct dat_events *events;
	const struct host_opts *opts;
	const struct host_sink *sink;
	struct host_result *result;
	struct source *source;
	size_t n_sources;
	/* The sources that have a record: a heap, the earliest first, of equal ones the first. */
	size_t *heap;
	size_t n_heap;
	uint64_t passed, told; /* bytes of records; those at the last progress */
};

/* ---- the file ---- */

/* What cannot be read at any offset: @head, which was read from it, and the rest, copied to an
 * unnamed temporary file. Its descriptor, or an error. */
static int spool(int fd, const char *name, const void *head, size_t len,
		 const struct host_opts *opts, const struct kvmsim_errsink *errors)
{
	FILE *tmp = tmpfile();
	uint8_t *buf = malloc(SPOOL);
	uint64_t size = len, told = 0;
	int out = -1, rc;

	if (!tmp || !buf) {
		rc = kvmsim_err(errors, tmp ? KVMSIM_ENOMEM : KVMSIM_EIO,
				"%s: no temporary file: %s", name, strerror(errno));
		goto out;
	}
	rc = len && fwrite(head, 1, len, tmp) != len ? KVMSIM_EIO : 0;
	while (!rc) {
		ssize_t n = read(fd, buf, SPOOL);

		if (opts && opts->interrupted && *opts->interrupted) {
			rc = KVMSIM_EINTR;
		} else if (n < 0 && errno != EINTR) {
			rc = kvmsim_err(errors, KVMSIM_EIO, "%s: reading failed: %s", name,
					strerror(errno));
		} else if (n > 0 && fwrite(buf, 1, n, tmp) != (size_t)n) {
			rc = kvmsim_err(errors, KVMSIM_EIO, "%s: copying failed: %s", name,
					strerror(errno));
		} else if (!n) {
			break;
		}
		size += n > 0 ? n : 0;
		if (opts && opts->progress && size - told >= PROGRESS) {
			opts->progress(opts->progress_ctx, size);
			told = size;
		}
	}
	if (!rc && (fflush(tmp) || (out = dup(fileno(tmp))) < 0))
		rc = kvmsim_err(errors, KVMSIM_EIO, "%s: copying failed: %s", name,
				strerror(errno));
out:
	if (tmp)
		fclose(tmp);
	free(buf);
	return rc ? rc : out;
}

/* What is missing of the data, told once. */
static void tell_of_the_file(struct dat_file *f)
{
	uint64_t missing = 0;

	for (unsigned i = 0; i < f->n_buffers; i++) {
		for (uint32_t c = 0; c < f->buffer[i].n_cpus; c++) {
			const struct dat_area *a = &f->buffer[i].cpu[c];
			uint64_t there = a->offset < f->size ? f->size - a->offset : 0;

			missing += a->size > there ? a->size - there : 0;
		}
	}
	f->cut = missing;
	if (missing)
		kvmsim_err(f->errors, KVMSIM_ETORN,
			   "%s: cut in its data: %llu bytes of them are missing; every whole page "
			   "is read",
			   f->name, (unsigned long long)missing);
	if (f->lost_tables && f->head.version >= 7)
		kvmsim_err(f->errors, KVMSIM_ETORN,
			   "%s: cut: its last tables are missing; every whole page is read, the "
			   "numbers of CPUs, names of buffers and clock are as far as they can be "
			   "told",
			   f->name);
	else if (f->lost_tables)
		kvmsim_err(f->errors, KVMSIM_ETORN,
			   "%s: cut: the data of at least one instance are missing", f->name);
	if (f->of_guest)
		kvmsim_err(f->errors, KVMSIM_EUNSUPPORTED,
			   "%s: recorded in a guest: times are by the guest's own clock", f->name);
	if (!f->mult && (!strcmp(f->clock, "x86-tsc") || !strcmp(f->clock, "counter") ||
			 !strcmp(f->clock, "ppc-tb")))
		kvmsim_err(f->errors, KVMSIM_EUNSUPPORTED,
			   "%s: the clock is %s: times are its ticks, not ns", f->name, f->clock);
}

/* Whether a buffer's times are by the same clock as the first's. */
static bool same_clock(const struct dat_file *f, const struct dat_buffer *b)
{
	const char *first = *f->clock ? f->clock : f->buffer[0].clock;

	return b == f->buffer || !b->clock || !first || !strcmp(b->clock, first);
}

/* A source for each CPU's part of each buffer. */
static int open_sources(struct reading *r, unsigned commit_bytes)
{
	struct dat_file *f = &r->file;
	uint64_t room = 0;
	size_t n = 0;

	for (unsigned i = 0; i < f->n_buffers; i++)
		n += f->buffer[i].n_cpus;
	r->source = calloc(n ? n : 1, sizeof(*r->source));
	r->heap = calloc(n ? n : 1, sizeof(*r->heap));
	if (!r->source || !r->heap)
		return kvmsim_err(f->errors, KVMSIM_ENOMEM, "%s: out of memory", f->name);
	for (unsigned i = 0; i < f->n_buffers; i++) {
		const struct dat_buffer *b = &f->buffer[i];

		if (!same_clock(f, b)) {
			kvmsim_err(
				f->errors, KVMSIM_EUNSUPPORTED,
				"%s: buffer '%s' has the clock %s, not %s: left out, since clocks "
				"are not mixed",
				f->name, b->name, b->clock, *f->clock ? f->clock : "the first's");
			continue;
		}
		if (b->page_size < 64 || b->page_size > DAT_MAX_PAGE)
			return kvmsim_err(f->errors, KVMSIM_EPARSE,
					  "%s: pages of %u bytes cannot be", f->name, b->page_size);
		for (uint32_t c = 0; c < b->n_cpus; c++) {
			if (!b->cpu[c].size || b->cpu[c].offset >= f->size)
				continue;
			room += b->page_size;
			dat_stream_init(&r->source[r->n_sources].stream, f, b, &b->cpu[c],
					commit_bytes);
			r->source[r->n_sources++].buffer = b;
		}
	}
	if (room > MAX_PAGES_ROOM)
		return kvmsim_err(f->errors, KVMSIM_EPARSE, "%s: data of %zu CPUs cannot be",
				  f->name, r->n_sources);
	return 0;
}

/* ---- events in order ---- */

static bool earlier(const struct reading *r, size_t a, size_t b)
{
	uint64_t ta = r->source[a].time_ns, tb = r->source[b].time_ns;

	return ta != tb ? ta < tb : a < b;
}

static void sift_down(struct reading *r, size_t at)
{
	for (;;) {
		size_t least = at, child = 2 * at + 1, swap;

		if (child < r->n_heap && earlier(r, r->heap[child], r->heap[least]))
			least = child;
		if (child + 1 < r->n_heap && earlier(r, r->heap[child + 1], r->heap[least]))
			least = child + 1;
		if (least == at)
			return;
		swap = r->heap[at];
		r->heap[at] = r->heap[least];
		r->heap[least] = swap;
		at = least;
	}
}

/* A time of the buffer's clock in ns. */
static uint64_t in_ns(const struct dat_file *f, uint64_t ts)
{
	if (f->mult)
		ts = (unsigned __int128)ts * f->mult >> f->shift;
	return ts + (uint64_t)f->offset_ns;
}

static int advance(struct reading *r, size_t source)
{
	struct source *s = &r->source[source];
	int rc = dat_stream_next(&s->stream);

	if (rc > 0)
		s->time_ns = in_ns(&r->file, s->stream.ts);
	return rc < 0 ? kvmsim_err(r->file.errors, rc, "%s: out of memory", r->file.name) : rc;
}

static int deliver(struct reading *r, const struct source *s, struct host_event *e)
{
	struct host_counts *c = &r->result->counts;
	const struct dat_stream *t = &s->stream;
	int rc = 0;

	if (t->lost) {
		struct host_loss loss = {.cpu = t->cpu, .count = t->lost};

		c->loss_markers++;
		if (r->sink->loss)
			rc = r->sink->loss(r->sink->ctx, &loss);
	}
	r->passed += t->len + 4;
	if (r->opts->progress && r->passed - r->told >= PROGRESS) {
		r->opts->progress(r->opts->progress_ctx, r->passed);
		r->told = r->passed;
	}
	if (rc < 0)
		return rc;
	if (!dat_event(r->events, t->data, t->len, e)) {
		c->damaged_lines++;
		c->dropped_lines++;
		return 0;
	}
	e->time_ns = s->time_ns;
	e->cpu = t->cpu;
	c->records++;
	return r->sink->event ? r->sink->event(r->sink->ctx, e) : 0;
}

static int read_events(struct reading *r)
{
	struct host_event e = {0};
	int rc;

	for (size_t i = 0; i < r->n_sources; i++) {
		rc = advance(r, i);
		if (rc < 0)
			return rc;
		if (rc)
			r->heap[r->n_heap++] = i;
	}
	for (size_t i = r->n_heap / 2; i--;)
		sift_down(r, i);
	while (r->n_heap) {
		size_t first = r->heap[0];

		rc = deliver(r, &r->source[first], &e);
		if (rc < 0)
			return rc;
		if (r->opts->interrupted && *r->opts->interrupted)
			return KVMSIM_EINTR;
		rc = advance(r, first);
		if (rc < 0)
			return rc;
		if (!rc)
			r->heap[0] = r->heap[--r->n_heap];
		sift_down(r, 0);
	}
	return 0;
}

static int read_file(struct reading *r, int fd, const char *name,
		     const struct kvmsim_errsink *errors)
{
	struct host_result *result = r->result;
	uint64_t damaged = 0;
	unsigned commit_bytes;
	int rc;

	rc = dat_open(&r->file, fd, name, errors, &result->refusal);
	result->dat = r->file.head;
	result->counts.bytes = r->file.size;
	if (rc)
		return rc;
	rc = dat_events_open(&r->file, &r->events, &commit_bytes);
	if (rc)
		return rc;
	tell_of_the_file(&r->file);
	rc = open_sources(r, commit_bytes);
	if (rc)
		return rc;
	result->has_cpu = result->has_tid = result->has_time = true;
	rc = read_events(r);
	for (size_t i = 0; i < r->n_sources; i++)
		damaged += r->source[i].stream.damaged;
	result->counts.damaged_lines += damaged;
	result->counts.dropped_lines += damaged;
	if (!rc && !result->counts.records && (r->file.cut || r->file.lost_tables)) {
		result->refusal = HOST_TRUNCATED_DAT;
		return kvmsim_err(errors, KVMSIM_EPARSE,
				  "%s: not one whole page of its data is there", name);
	}
	if (damaged && !rc)
		kvmsim_err(
			errors, KVMSIM_EPARSE,
			"%s: %llu pages cannot be what the kernel wrote and were left, in part or "
			"whole",
			name, (unsigned long long)damaged);
	return rc;
}

int host_read_dat_fd(int fd, const char *name, const void *head, size_t len,
		     const struct host_opts *opts, const struct host_sink *sink,
		     const struct kvmsim_errsink *errors, struct host_result *result)
{
	static const struct host_opts none;
	struct reading r = {.opts = opts ? opts : &none, .sink = sink, .result = result};
	int own = -1, rc;

	*result = (struct host_result){.sections = {HOST_KIND_TRACE_DAT}, .n_sections = 1};
	if (lseek(fd, 0, SEEK_SET) < 0) {
		own = spool(fd, name, head, len, opts, errors);
		if (own < 0)
			return own;
	}
	rc = read_file(&r, own >= 0 ? own : fd, name, errors);
	for (size_t i = 0; i < r.n_sources; i++)
		dat_stream_free(&r.source[i].stream);
	free(r.source);
	free(r.heap);
	dat_events_free(r.events);
	dat_close(&r.file);
	if (own >= 0)
		close(own);
	return rc;
}

int host_read_dat(const char *path, const struct host_opts *opts, const struct host_sink *sink,
		  const struct kvmsim_errsink *errors, struct host_result *result)
{
	bool in = !strcmp(path, "-");
	int fd = in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0) {
		*result = (struct host_result){0};
		return kvmsim_err(errors, KVMSIM_EIO, "%s: %s", path, strerror(errno));
	}
	rc = host_read_dat_fd(fd, in ? "stdin" : path, NULL, 0, opts, sink, errors, result);
	if (!in)
		close(fd);
	return rc;
}
