// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define CHUNK 65536

struct lines {
	FILE *in;
	const char *name;
	const struct kvmsim_errsink *errors;
	z_stream z;
	bool gzip, started, ended, damaged;
	bool between; /* at the end of a gzip member: the file may end here */
	uint8_t packed[CHUNK];
	uint8_t text[CHUNK];
	size_t pos, len; /* in @text */
	uint64_t n_line;
	char line[LINE_MAX_BYTES];
};

int lines_open(FILE *in, const char *name, const struct kvmsim_errsink *errors, struct lines **out)
{
	struct lines *l = calloc(1, sizeof(*l));

	*out = l;
	if (!l)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", name);
	l->in = in;
	l->name = name;
	l->errors = errors;
	return 0;
}

void lines_close(struct lines *l)
{
	if (l && l->gzip)
		inflateEnd(&l->z);
	free(l);
}

bool lines_damaged(const struct lines *l)
{
	return l->damaged;
}

/* Bytes read into @buf, 0 at the end, or an error. */
static long get(struct lines *l, uint8_t *buf)
{
	size_t n = fread(buf, 1, CHUNK, l->in);

	if (!n && ferror(l->in) && errno == EINTR) /* only a handler without SA_RESTART does that */
		return KVMSIM_EINTR;
	if (!n && ferror(l->in) && errno == EISDIR)
		return kvmsim_err(l->errors, KVMSIM_EPARSE, "%s: a directory, not a text trace",
				  l->name);
	if (!n && ferror(l->in))
		return kvmsim_err(l->errors, KVMSIM_EIO, "%s: reading failed: %s", l->name,
				  strerror(errno));
	return n;
}

static int start(struct lines *l)
{
	long n = get(l, l->packed);

	if (n < 0)
		return n;
	l->started = true;
	if (n >= 2 && l->packed[0] == 0x1f && l->packed[1] == 0x8b) {
		if (inflateInit2(&l->z, 16 + MAX_WBITS) != Z_OK)
			return kvmsim_err(l->errors, KVMSIM_ENOMEM, "%s: out of memory", l->name);
		l->gzip = true;
		l->z.next_in = l->packed;
		l->z.avail_in = n;
		return 0;
	}
	memcpy(l->text, l->packed, n);
	l->len = n;
	l->ended = n == 0;
	return 0;
}

static int spoiled(struct lines *l, const char *what)
{
	l->ended = l->damaged = true;
	kvmsim_err(l->errors, KVMSIM_EPARSE, "%s:%llu: %s", l->name, (unsigned long long)l->n_line,
		   what);
	return 0;
}

static int unpack(struct lines *l)
{
	l->z.next_out = l->text;
	l->z.avail_out = CHUNK;
	while (l->z.avail_out == CHUNK) {
		int ret;

		if (!l->z.avail_in) {
			long n = get(l, l->packed);

			if (n < 0)
				return n;
			if (!n && l->between) {
				l->ended = true;
				return 0;
			}
			if (!n)
				return spoiled(l, "the gzip stream is cut short");
			l->z.next_in = l->packed;
			l->z.avail_in = n;
		}
		ret = inflate(&l->z, Z_NO_FLUSH);
		if (ret == Z_MEM_ERROR)
			return kvmsim_err(l->errors, KVMSIM_ENOMEM, "%s: out of memory", l->name);
		l->len = CHUNK - l->z.avail_out;
		l->between = ret == Z_STREAM_END;
		if (l->between)
			inflateReset(&l->z);
		else if (ret != Z_OK && ret != Z_BUF_ERROR)
			return spoiled(l, "the gzip stream is damaged");
	}
	return 0;
}

static int refill(struct lines *l)
{
	l->pos = l->len = 0;
	if (!l->started)
		return start(l);
	if (l->gzip)
		return unpack(l);
	long n = get(l, l->text);

	if (n < 0)
		return n;
	l->len = n;
	l->ended = n == 0;
	return 0;
}

int lines_next(struct lines *l, const char **line, bool *whole)
{
	size_t used = 0;
	bool some = false;

	*whole = true;
	*line = l->line;
	l->n_line++;
	for (;;) {
		const uint8_t *from, *nl;
		size_t n;

		while (l->pos == l->len) {
			int ret = l->ended ? 0 : refill(l);

			if (ret)
				return ret;
			if (l->pos == l->len && l->ended) {
				l->line[used] = 0;
				*whole = false;
				return some;
			}
		}
		from = l->text + l->pos;
		nl = memchr(from, '\n', l->len - l->pos);
		n = nl ? (size_t)(nl - from) : l->len - l->pos;
		some = true;
		if (memchr(from, 0, n))
			*whole = false;
		if (n > LINE_MAX_BYTES - 1 - used) {
			n = LINE_MAX_BYTES - 1 - used;
			*whole = false;
		}
		memcpy(l->line + used, from, n);
		used += n;
		l->pos = nl ? (size_t)(nl - l->text) + 1 : l->len;
		if (nl) {
			used -= used && l->line[used - 1] == '\r';
			l->line[used] = 0;
			return 1;
		}
	}
}
