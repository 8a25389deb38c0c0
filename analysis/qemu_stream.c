// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/qemu_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/child.h"
#include "analysis/run.h"

#define POLL_MS 200

static int failed(struct qemu_stream *s, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int failed(struct qemu_stream *s, int err, const char *fmt, ...)
{
	va_list ap;

	if (s->err)
		return s->err;
	s->err = err;
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	return err;
}

void qemu_stream_init(struct qemu_stream *s, int fd, FILE *text, double deadline)
{
	memset(s, 0, sizeof(*s));
	s->fd = fd;
	s->text = text;
	s->deadline = deadline;
}

void qemu_stream_free(struct qemu_stream *s)
{
	for (unsigned i = 0; i < QEMU_MAX_PHASES; i++) {
		free(s->phases[i].ram);
		free(s->phases[i].vram);
	}
}

/* ---- lines ---- */

/* Bytes into @buf, 0 at the end, or an error. */
static int refill(struct qemu_stream *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};
	ssize_t n;

	for (;;) {
		if (run_interrupted)
			return failed(s, KVMSIM_EINTR, "interrupted");
		if (child_clock() > s->deadline)
			return failed(s, KVMSIM_ECHILD, "not done in time");
		if (poll(&p, 1, POLL_MS) <= 0)
			continue;
		n = read(s->fd, s->buf, sizeof(s->buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(s, KVMSIM_EPARSE, "reading the recorder failed: %s",
				      strerror(errno));
		s->pos = 0;
		s->len = n;
		return n;
	}
}

/* The next line with its newline, in @line. 1, 0 at the end, or an error. */
static int next_line(struct qemu_stream *s)
{
	s->line_len = 0;
	s->line_pos = 0;
	for (;;) {
		char *end;
		size_t n;

		if (s->pos == s->len) {
			int ret = refill(s);

			if (ret < 0)
				return ret;
			if (ret == 0)
				return s->line_len ? failed(s, KVMSIM_EPARSE,
							    "the recorder's line %" PRIu64
							    " is cut short",
							    s->n_lines + 1)
						   : 0;
		}
		end = memchr(s->buf + s->pos, '\n', s->len - s->pos);
		n = end ? (size_t)(end - (s->buf + s->pos)) + 1 : s->len - s->pos;
		if (s->line_len + n >= sizeof(s->line))
			return failed(s, KVMSIM_EPARSE,
				      "the recorder's line %" PRIu64 " is too long",
				      s->n_lines + 1);
		memcpy(s->line + s->line_len, s->buf + s->pos, n);
		s->pos += n;
		s->line_len += n;
		if (end)
			break;
	}
	s->line[s->line_len] = 0;
	s->n_lines++;
	if (s->text && fwrite(s->line, 1, s->line_len, s->text) != s->line_len)
		return failed(s, KVMSIM_EIO, "writing the text failed: %s", strerror(errno));
	return 1;
}

/* ---- what the lines say ---- */

static int strange(struct qemu_stream *s)
{
	return failed(s, KVMSIM_EPARSE, "the recorder's line %" PRIu64 " is strange: %.*s",
		      s->n_lines, (int)s->line_len - 1, s->line);
}

static int take_epoch(struct qemu_stream *s, const char *line)
{
	unsigned phase;
	uint64_t ram, vram;
	char how[8];
	struct qemu_phase *p;

	if (sscanf(line, "# epoch %u %" SCNu64 " %" SCNu64 " %7s", &phase, &ram, &vram, how) != 4 ||
	    phase != s->phase || !phase)
		return strange(s);
	if (ram != s->epoch_ram || vram != s->epoch_vram)
		return failed(
			s, KVMSIM_EPARSE,
			"line %" PRIu64 ": the plugin counted %" PRIu64 " pages of RAM and %" PRIu64
			" of video RAM in this epoch, but %" PRIu64 " and %" PRIu64 " lines came",
			s->n_lines, ram, vram, s->epoch_ram, s->epoch_vram);
	s->epoch_ram = 0;
	s->epoch_vram = 0;
	p = &s->phases[phase];
	p->epochs++;
	if (strcmp(how, "full") != 0)
		return 0;
	if (!(p->whole & (p->whole - 1))) { /* grows at powers of two */
		size_t bytes = (p->whole ? 2 * p->whole : 1) * sizeof(uint32_t);
		uint32_t *r = realloc(p->ram, bytes), *v;

		if (r)
			p->ram = r;
		v = r ? realloc(p->vram, bytes) : NULL;
		if (!v)
			return failed(s, KVMSIM_ENOMEM, "out of memory");
		p->vram = v;
	}
	p->ram[p->whole] = ram;
	p->vram[p->whole++] = vram;
	return 0;
}

/* The rest of the line into @to. */
static void keep(char *to, size_t size, const char *words)
{
	snprintf(to, size, "%.*s", (int)strcspn(words, "\n"), words);
}

/* What qemu_locks.c says of a line. */
static int take_lock(struct qemu_stream *s, int err)
{
	if (err == KVMSIM_ENOMEM)
		return failed(s, err, "out of memory, or more locks taken than can be kept (%u)",
			      QEMU_LOCKS_MAX);
	return err ? strange(s) : 0;
}

static int take_guest(struct qemu_stream *s, const char *words)
{
	unsigned k;
	int n = 0;

	if (s->locks && !strncmp(words, "symbol ", 7))
		return take_lock(s, qemu_locks_symbol(s->locks, words + 7));
	if (!strncmp(words, "kernel ", 7)) {
		keep(s->kernel, sizeof(s->kernel), words + 7);
	} else if (!strncmp(words, "screen ", 7)) {
		keep(s->screen, sizeof(s->screen), words + 7);
	} else if (!strncmp(words, "inodes ", 7)) {
		keep(s->inodes, sizeof(s->inodes), words + 7);
	} else if (!strncmp(words, "fail ", 5)) {
		return failed(s, KVMSIM_EPARSE, "the guest gave up: %.*s",
			      (int)strcspn(words + 5, "\n"), words + 5);
	} else if (!strcmp(words, "done\n")) {
		s->done = true;
	} else if (sscanf(words, "phase %u %n", &k, &n) == 1) {
		if (k == 0 || k >= QEMU_MAX_PHASES)
			return failed(s, KVMSIM_EPARSE,
				      "the guest began phase %u; at most %u can be", k,
				      QEMU_MAX_PHASES - 1);
		keep(s->phases[k].name, sizeof(s->phases[k].name), words + n);
	}
	return 0;
}

static int take_end(struct qemu_stream *s, const char *line)
{
	uint64_t stores;

	if (sscanf(line, "# end %" SCNu64 " %" SCNu64, &stores, &s->outside) != 2)
		return strange(s);
	if (stores != s->stores)
		return failed(s, KVMSIM_EPARSE,
			      "the plugin wrote %" PRIu64 " stores, but %" PRIu64 " lines came",
			      stores, s->stores);
	if (s->phase)
		return failed(s, KVMSIM_EPARSE, "phase %u was not over at the end", s->phase);
	s->ended = true;
	return 0;
}

static int take_accesses(struct qemu_stream *s, const char *line)
{
	uint64_t n;

	if (sscanf(line, "# accesses %" SCNu64 " %" SCNu64, &n, &s->apic) != 2)
		return strange(s);
	if (n != s->accesses)
		return failed(s, KVMSIM_EPARSE,
			      "the plugin wrote %" PRIu64 " accesses of devices, but %" PRIu64
			      " lines came",
			      n, s->accesses);
	return 0;
}

static int take_note(struct qemu_stream *s)
{
	const char *l = s->line;
	uint64_t page, gfn;

	if (!strncmp(l, "# epoch ", 8))
		return take_epoch(s, l);
	if (!strncmp(l, "# guest ", 8))
		return take_guest(s, l + 8);
	if (!strncmp(l, "# error ", 8))
		return failed(s, KVMSIM_EPARSE, "%.*s", (int)strcspn(l + 8, "\n"), l + 8);
	if (!strncmp(l, "# accesses ", 11))
		return take_accesses(s, l);
	if (s->locks && !strncmp(l, "# vcpu ", 7))
		return take_lock(s, qemu_locks_vcpu(s->locks, l));
	if (s->locks && !strncmp(l, "# locks ", 8))
		return take_lock(s, qemu_locks_end(s->locks, l));
	if (!strncmp(l, "# end ", 6))
		return take_end(s, l);
	if (sscanf(l, "# probe epoch %" SCNu64 " ram %" SCNu64, &s->epoch_len, &s->ram_pages) == 2)
		return 0;
	if (sscanf(l, "# ram %" SCNx64 " %" SCNx64, &page, &gfn) == 2) {
		s->ram_told = true;
		return 0;
	}
	if (sscanf(l, "# vram %" SCNx64 " %" SCNx64 " %" SCNu64, &page, &s->vram_gfn,
		   &s->vram_pages) == 3)
		return 0;
	return strange(s);
}

/* What is accessed, one by one until there is no room: the sum is checked anyway. */
static int take_access(struct qemu_stream *s, char kind, const char *what)
{
	size_t len = strcspn(what, "\n");
	unsigned i = 0;

	if (!len || len >= sizeof(s->registers[0].name))
		return strange(s);
	s->accesses++;
	while (i < s->n_registers &&
	       (s->registers[i].kind != kind || strlen(s->registers[i].name) != len ||
		strncmp(s->registers[i].name, what, len)))
		i++;
	if (i == QEMU_MAX_REGISTERS)
		return 0;
	if (i == s->n_registers) {
		s->registers[i].kind = kind;
		keep(s->registers[i].name, sizeof(s->registers[i].name), what);
		s->n_registers++;
	}
	s->registers[i].n++;
	return 0;
}

/* A line for the importer, which looks at all of it; here only what is counted. */
static int take_event(struct qemu_stream *s)
{
	uint64_t time;
	unsigned vcpu, k;
	char kind;
	int at = 0;

	if (sscanf(s->line, "%" SCNu64 " %u %c %n%u", &time, &vcpu, &kind, &at, &k) < 3 || !at)
		return strange(s);
	if (kind == 'r' || kind == 'w' || kind == 'p')
		return take_access(s, kind, s->line + at);
	if (kind == 'L' && s->locks)
		return take_lock(s, qemu_locks_line(s->locks, s->phase, s->line));
	if (kind == 'M') {
		if (k >= QEMU_MAX_PHASES)
			return strange(s);
		if (s->phase)
			s->phases[s->phase].insns += time - s->phase_began;
		s->phase = k;
		s->phase_began = time;
		if (k >= s->n_phases)
			s->n_phases = k + 1;
		return 0;
	}
	s->stores++;
	s->epoch_ram += kind == 'S';
	s->epoch_vram += kind == 'V';
	return kind == 'S' || kind == 'V' ? 0 : strange(s);
}

/* The next line for the importer is in @line. 1, 0 at a right end, or an error. */
static int next_event(struct qemu_stream *s)
{
	for (;;) {
		int ret = s->err ? s->err : next_line(s);

		if (ret < 0)
			return ret;
		if (ret == 0 && !s->ended)
			return failed(
				s, KVMSIM_EPARSE,
				"QEMU ended in the middle of the recording, after line %" PRIu64,
				s->n_lines);
		if (ret == 0 && !s->done)
			return failed(s, KVMSIM_EPARSE, "the guest stopped before it was done");
		if (ret == 0 && s->locks && !s->locks->ended)
			return failed(s, KVMSIM_EPARSE, "the plugin did not count the locks");
		if (ret == 0 && s->text && fflush(s->text)) /* before the trace appears */
			return failed(s, KVMSIM_EIO, "writing the text failed: %s",
				      strerror(errno));
		if (ret == 0)
			return 0;
		if (s->ended)
			return strange(s); /* nothing comes after the end */
		if (s->line[0] != '#') {
			ret = take_event(s);
			return ret ? ret : 1;
		}
		ret = take_note(s);
		if (ret)
			return ret;
	}
}

int qemu_stream_next(struct qemu_stream *s)
{
	return next_event(s);
}

int qemu_stream_begin(struct qemu_stream *s)
{
	int ret = next_event(s);

	if (ret == 0)
		return failed(s, KVMSIM_EPARSE, "the guest began no phase");
	if (ret > 0 && (!s->ram_told || !s->epoch_len))
		return failed(s, KVMSIM_EPARSE, "the recorder's first lines are missing");
	return ret < 0 ? ret : 0;
}

static ssize_t read_events(void *cookie, char *to, size_t size)
{
	struct qemu_stream *s = cookie;
	size_t n;

	if (s->line_pos == s->line_len && !s->eof) {
		int ret = next_event(s);

		if (ret < 0) {
			errno = ret == KVMSIM_EINTR ? EINTR : EIO;
			return -1;
		}
		s->eof = ret == 0;
	}
	if (s->eof)
		return 0;
	n = s->line_len - s->line_pos;
	if (n > size)
		n = size;
	memcpy(to, s->line + s->line_pos, n);
	s->line_pos += n;
	return n;
}

FILE *qemu_stream_file(struct qemu_stream *s)
{
	return fopencookie(s, "r", (cookie_io_functions_t){.read = read_events});
}
