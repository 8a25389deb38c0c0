// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define BUFFER (4 * (size_t)SOURCE_MAX_LINE) /* holds two lines of any length */
#define PACKED 65536

enum packing { PLAIN, GZIP, ZSTD };

struct source {
	int fd;
	const char *name;
	const struct kvmsim_errsink *errors;
	enum packing packing;
	bool started, ended;
	bool between; /* at the end of a member or frame: the file may end here */
	z_stream z;
	ZSTD_DStream *zstd;
	size_t packed_at, packed_len;
	size_t from, pos, len; /* of the line that was given, of the next one, of all in @text */
	const char *nl;	       /* of the next line; NULL: not in @text */
	size_t sought;	       /* no newline between pos and here */
	uint64_t given;
	int err; /* told when the lines before it were given */
	char head[SOURCE_HEAD];
	size_t head_len;
	uint8_t packed[PACKED];
	char text[BUFFER];
};

int source_open(int fd, const char *name, const struct kvmsim_errsink *errors, struct source **out)
{
	struct source *s = malloc(sizeof(*s));

	*out = s;
	if (!s)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", name);
	memset(s, 0, offsetof(struct source, packed));
	s->fd = fd;
	s->name = name;
	s->errors = errors;
	return 0;
}

void source_close(struct source *s)
{
	if (!s)
		return;
	if (s->packing == GZIP)
		inflateEnd(&s->z);
	ZSTD_freeDStream(s->zstd);
	free(s);
}

uint64_t source_bytes(const struct source *s)
{
	return s->given;
}

/* Bytes read, 0 at the end, or an error. */
static long get(struct source *s, void *buf, size_t size)
{
	ssize_t n = read(s->fd, buf, size);

	if (n >= 0)
		return n;
	if (errno == EINTR) /* only a handler without SA_RESTART does that */
		return KVMSIM_EINTR;
	if (errno == EISDIR)
		return kvmsim_err(s->errors, KVMSIM_EPARSE, "%s: a directory, not a trace",
				  s->name);
	return kvmsim_err(s->errors, KVMSIM_EIO, "%s: reading failed: %s", s->name,
			  strerror(errno));
}

int source_head(struct source *s, const void **head)
{
	const uint8_t *p = s->packed;

	while (!s->started && s->packed_len < SOURCE_HEAD) {
		long n = get(s, s->packed + s->packed_len, SOURCE_HEAD - s->packed_len);

		if (n < 0)
			return n;
		if (!n)
			break;
		s->packed_len += n;
	}
	if (!s->started) {
		s->started = true;
		s->head_len = s->packed_len < SOURCE_HEAD ? s->packed_len : SOURCE_HEAD;
		memcpy(s->head, p, s->head_len);
		if (s->packed_len >= 2 && p[0] == 0x1f && p[1] == 0x8b)
			s->packing = GZIP;
		else if (s->packed_len >= 4 && p[0] == 0x28 && p[1] == 0xb5 && p[2] == 0x2f &&
			 p[3] == 0xfd)
			s->packing = ZSTD;
		if (s->packing == GZIP && inflateInit2(&s->z, 16 + MAX_WBITS) != Z_OK) {
			s->packing = PLAIN;
			return kvmsim_err(s->errors, KVMSIM_ENOMEM, "%s: out of memory", s->name);
		}
		if (s->packing == ZSTD) {
			s->zstd = ZSTD_createDStream();
			if (!s->zstd)
				return kvmsim_err(s->errors, KVMSIM_ENOMEM, "%s: out of memory",
						  s->name);
		}
	}
	*head = s->head;
	return s->head_len;
}

bool source_packed(const struct source *s)
{
	return s->packing != PLAIN;
}

static long spoiled(struct source *s, const char *what)
{
	return kvmsim_err(s->errors, KVMSIM_EPARSE, "%s: the packed stream is %s after %llu bytes",
			  s->name, what, (unsigned long long)s->given);
}

/* One step of unpacking into @out: bytes that came out, or an error. */
static long step(struct source *s, char *out, size_t size)
{
	if (s->packing == GZIP) {
		int ret;

		s->z.next_in = s->packed + s->packed_at;
		s->z.avail_in = s->packed_len - s->packed_at;
		s->z.next_out = (uint8_t *)out;
		s->z.avail_out = size;
		ret = inflate(&s->z, Z_NO_FLUSH);
		s->packed_at = s->packed_len - s->z.avail_in;
		s->between = ret == Z_STREAM_END;
		if (s->between)
			inflateReset(&s->z);
		else if (ret != Z_OK && ret != Z_BUF_ERROR)
			return spoiled(s, "damaged");
		return size - s->z.avail_out;
	}
	ZSTD_inBuffer in = {s->packed, s->packed_len, s->packed_at};
	ZSTD_outBuffer to = {out, size, 0};
	size_t ret = ZSTD_decompressStream(s->zstd, &to, &in);

	s->packed_at = in.pos;
	if (ZSTD_isError(ret))
		return spoiled(s, "damaged");
	s->between = ret == 0;
	return to.pos;
}

static long unpack(struct source *s, char *out, size_t size)
{
	for (;;) {
		long n;

		if (s->packed_at == s->packed_len) {
			n = get(s, s->packed, PACKED);
			if (n < 0)
				return n;
			if (!n)
				return s->between ? 0 : spoiled(s, "cut short");
			s->packed_at = 0;
			s->packed_len = n;
		}
		n = step(s, out, size);
		if (n)
			return n;
	}
}

/* More text behind what there is; 0 also at the end. */
static int more(struct source *s)
{
	size_t room = BUFFER - s->len;
	long n;

	if (s->packing != PLAIN) {
		n = unpack(s, s->text + s->len, room);
	} else if (s->packed_at < s->packed_len) { /* what source_head() read */
		n = s->packed_len - s->packed_at;
		n = n < (long)room ? n : (long)room;
		memcpy(s->text + s->len, s->packed + s->packed_at, n);
		s->packed_at += n;
	} else {
		n = get(s, s->text + s->len, room);
	}
	if (n < 0)
		return n;
	s->ended = n == 0;
	s->len += n;
	return 0;
}

/* Finds the end of the line at pos, as far as @text goes or can be filled. */
static int seek_end(struct source *s)
{
	s->nl = NULL;
	s->sought = s->pos;
	for (;;) {
		if (s->len > s->sought)
			s->nl = memchr(s->text + s->sought, '\n', s->len - s->sought);
		s->sought = s->len;
		if (s->nl || s->ended || s->len - s->pos > SOURCE_MAX_LINE)
			return 0;
		if (s->from) { /* the line that was given stays, at another place */
			memmove(s->text, s->text + s->from, s->len - s->from);
			s->len -= s->from;
			s->pos -= s->from;
			s->sought -= s->from;
			s->from = 0;
		}
		int ret = more(s);

		if (ret) {
			s->ended = true;
			s->err = ret;
			return 0;
		}
	}
}

bool source_peek(const struct source *s, struct source_line *line)
{
	size_t len = s->nl ? (size_t)(s->nl - s->text) - s->pos : s->len - s->pos;

	if (!s->nl && s->pos == s->len)
		return false;
	line->at = s->text + s->pos;
	line->newline = s->nl != NULL;
	line->cut = len > SOURCE_MAX_LINE || (!s->nl && !s->ended);
	line->len = len > SOURCE_MAX_LINE ? SOURCE_MAX_LINE : len;
	return true;
}

static int endless(const struct source *s)
{
	return kvmsim_err(s->errors, KVMSIM_EPARSE,
			  "%s: a line that is longer than %u GiB: not text; its rest is not read",
			  s->name, SOURCE_ENDLESS >> 30);
}

int source_next(struct source *s, struct source_line *line)
{
	size_t start, passed = 0;

	if (!s->started) {
		const void *head;
		int ret = source_head(s, &head);

		if (ret < 0)
			return ret;
	}
	if (!s->given && !s->len) {
		int ret = seek_end(s);

		if (ret)
			return ret;
	}
	if (!source_peek(s, line))
		return s->err;
	start = s->pos;
	while (line->cut && !s->nl && !s->ended) { /* pass over the rest, keep the beginning */
		size_t keep = start + SOURCE_MAX_LINE;

		s->given += s->len - keep;
		passed += s->len - keep;
		s->len = keep;
		s->sought = keep;
		int ret = passed < SOURCE_ENDLESS ? more(s) : endless(s);

		if (ret) {
			s->ended = true;
			s->err = ret;
		}
		if (s->len > keep)
			s->nl = memchr(s->text + keep, '\n', s->len - keep);
		line->newline = s->nl != NULL;
	}
	s->from = start;
	s->pos = s->nl ? (size_t)(s->nl - s->text) + 1 : s->len;
	s->given += s->pos - start;
	int ret = seek_end(s);

	line->at = s->text + s->from; /* moved, perhaps */
	return ret ? ret : 1;
}
