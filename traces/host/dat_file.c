// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/dat_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "traces/host/dat.h"

static const uint8_t magic[10] = {0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g'};

bool host_is_dat(const void *head, size_t len)
{
	return len >= sizeof(magic) && !memcmp(head, magic, sizeof(magic));
}

static uint64_t number(bool big, const uint8_t *at, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)at[i] << 8 * (big ? bytes - 1 - i : i);
	return v;
}

uint64_t dat_number(const struct dat_file *f, const void *at, unsigned bytes)
{
	return number(f->head.big_endian, at, bytes);
}

/* A string of at most @max bytes with its NUL; its length, or SIZE_MAX. */
static size_t string_at(const uint8_t *at, size_t len, size_t max)
{
	size_t n = strnlen((const char *)at, len < max ? len : max);

	return n < len && n < max ? n : SIZE_MAX;
}

bool dat_head(const uint8_t *head, size_t len, struct host_dat *out, uint64_t *body)
{
	size_t pos = sizeof(magic), n;

	*out = (struct host_dat){0};
	*body = 0;
	if (!host_is_dat(head, len))
		return false;
	out->is_dat = true;
	n = string_at(head + pos, len - pos, 12);
	if (n == SIZE_MAX)
		return true;
	for (size_t i = 0; i < n && head[pos + i] >= '0' && head[pos + i] <= '9'; i++)
		out->version = out->version * 10 + head[pos + i] - '0';
	pos += n + 1;
	if (len - pos < 6)
		return true;
	out->big_endian = head[pos] == 1;
	out->long_size = head[pos + 1];
	out->page_size = number(out->big_endian, head + pos + 2, 4);
	pos += 6;
	if (out->version >= 7) {
		n = string_at(head + pos, len - pos, sizeof(out->compression));
		if (n == SIZE_MAX)
			return true;
		memcpy(out->compression, head + pos, n);
		pos += n + 1;
		n = string_at(head + pos, len - pos, 256);
		if (n == SIZE_MAX)
			return true;
		pos += n + 1;
	}
	*body = pos;
	return true;
}

bool dat_get(const struct dat_file *f, uint64_t offset, void *buf, size_t len)
{
	uint8_t *p = buf;

	if (offset > f->size || len > f->size - offset)
		return false;
	while (len) {
		ssize_t n = pread(f->fd, p, len, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		offset += n;
		len -= n;
	}
	return true;
}

bool dat_unpack(enum dat_packing packing, const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	uLongf got = size;

	switch (packing) {
	case DAT_ZSTD:
		return ZSTD_decompress(out, size, in, len) == size;
	case DAT_ZLIB:
		return uncompress(out, &got, in, len) == Z_OK && got == size;
	default:
		return false;
	}
}

void dat_clock(struct dat_file *f, const char *text, size_t len)
{
	const char *from = memchr(text, '[', len), *to;

	if (!from++)
		return;
	to = memchr(from, ']', text + len - from);
	if (!to || to == from || (size_t)(to - from) >= sizeof(f->clock))
		return;
	memcpy(f->clock, from, to - from);
	f->clock[to - from] = 0;
}

struct dat_buffer *dat_add_buffer(struct dat_file *f, const char *name, const char *clock,
				  uint32_t n_cpus)
{
	struct dat_buffer *grown = realloc(f->buffer, (f->n_buffers + 1) * sizeof(*grown)), *b;

	if (!grown)
		return NULL;
	f->buffer = grown;
	b = &grown[f->n_buffers];
	*b = (struct dat_buffer){.name = strdup(name),
				 .clock = clock ? strdup(clock) : NULL,
				 .page_size = f->head.page_size,
				 .cpu = calloc(n_cpus ? n_cpus : 1, sizeof(*b->cpu)),
				 .n_cpus = n_cpus};
	f->n_buffers++;
	return b->name && b->cpu && (b->clock || !clock) ? b : NULL;
}

/* A decimal or 0x number with a sign, of a text that may have no NUL. */
static int64_t signed_text(const uint8_t *data, size_t len)
{
	char text[32] = "";

	memcpy(text, data, len < sizeof(text) - 1 ? len : sizeof(text) - 1);
	return strtoll(text, NULL, 0);
}

static int buffer_option(struct dat_file *f, const uint8_t *data, size_t len)
{
	bool sections = f->head.version >= 7;
	size_t name = len > 8 ? string_at(data + 8, len - 8, 4096) : SIZE_MAX, clock, at;
	struct dat_buffer *b;
	uint64_t n = 0;

	if (name == SIZE_MAX || f->n_buffers >= DAT_MAX_BUFFERS)
		return 0;
	at = 8 + name + 1;
	if (sections) {
		clock = string_at(data + at, len - at, 256);
		if (clock == SIZE_MAX || len - at - clock - 1 < 8)
			return 0;
		at += clock + 1;
		n = dat_number(f, data + at + 4, 4);
		if (n > DAT_MAX_CPUS || n > (len - at - 8) / 20)
			return 0;
	}
	b = dat_add_buffer(f, (const char *)data + 8,
			   sections ? (const char *)data + 8 + name + 1 : NULL, n);
	if (!b)
		return KVMSIM_ENOMEM;
	b->offset = dat_number(f, data, 8);
	if (!sections)
		return 0;
	b->page_size = dat_number(f, data + at, 4);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *p = data + at + 8 + 20ul * i;

		b->cpu[i] = (struct dat_area){dat_number(f, p, 4), dat_number(f, p + 4, 8),
					      dat_number(f, p + 12, 8)};
	}
	return 0;
}

int dat_option(struct dat_file *f, unsigned id, const uint8_t *data, size_t len)
{
	switch (id) {
	case DAT_DATE: /* us */
		f->offset_ns += (int64_t)((uint64_t)signed_text(data, len) * 1000);
		break;
	case DAT_OFFSET:
		f->offset_ns += signed_text(data, len);
		break;
	case DAT_BUFFER:
		return buffer_option(f, data, len);
	case DAT_BUFFER_TEXT:
		f->latency = true;
		break;
	case DAT_TRACECLOCK:
		f->clock_behind = f->head.version < 7;
		dat_clock(f, (const char *)data, len);
		break;
	case DAT_CPUCOUNT:
		if (len >= 4 && len <= 8 && dat_number(f, data, 4) <= DAT_MAX_CPUS)
			f->n_cpus = dat_number(f, data, 4);
		break;
	case DAT_TIME_SHIFT:
		f->of_guest = true;
		break;
	case DAT_TSC2NSEC:
		if (len < 16 || dat_number(f, data + 4, 4) > 63)
			break;
		f->mult = dat_number(f, data, 4);
		f->shift = dat_number(f, data + 4, 4);
		break;
	}
	return 0;
}

static int refuse(const struct dat_file *f, enum host_refusal *refusal, const char *why)
{
	const struct host_dat *h = &f->head;

	*refusal = HOST_TRUNCATED_DAT;
	if (!h->page_size)
		return kvmsim_err(f->errors, KVMSIM_EPARSE,
				  "%s: a trace.dat of %llu bytes, cut in its head", f->name,
				  (unsigned long long)f->size);
	return kvmsim_err(f->errors, KVMSIM_EPARSE,
			  "%s: a trace.dat (version %u, %s endian, long of %u bytes, pages of %u"
			  "%s%s), but %s",
			  f->name, h->version, h->big_endian ? "big" : "little", h->long_size,
			  h->page_size, *h->compression ? ", compression " : "", h->compression,
			  why);
}

static enum dat_packing packing(const char *name)
{
	if (!*name || !strcmp(name, "none"))
		return DAT_PLAIN;
	if (!strcmp(name, "zstd"))
		return DAT_ZSTD;
	return !strcmp(name, "zlib") ? DAT_ZLIB : DAT_UNKNOWN;
}

int dat_open(struct dat_file *f, int fd, const char *name, const struct kvmsim_errsink *errors,
	     enum host_refusal *refusal)
{
	uint8_t head[512] = {0};
	off_t size = lseek(fd, 0, SEEK_END);
	int rc;

	*f = (struct dat_file){.fd = fd, .name = name, .errors = errors};
	*refusal = HOST_FINE;
	if (size < 0)
		return kvmsim_err(errors, KVMSIM_EIO, "%s: %s", name, strerror(errno));
	f->size = size;
	size = size < (off_t)sizeof(head) ? size : (off_t)sizeof(head);
	if (!dat_get(f, 0, head, size))
		return kvmsim_err(errors, KVMSIM_EIO, "%s: reading failed", name);
	if (!dat_head(head, size, &f->head, &f->body))
		return kvmsim_err(errors, KVMSIM_EPARSE, "%s: no trace.dat", name);
	if (!f->head.page_size)
		return refuse(f, refusal, "");
	if (f->head.version < 6 || f->head.version > 7)
		return kvmsim_err(errors, KVMSIM_EVERSION,
				  "%s: a trace.dat of version %u; versions 6 and 7 are read", name,
				  f->head.version);
	if (!f->body)
		return refuse(f, refusal, "it is cut in its head");
	f->packing = packing(f->head.compression);
	rc = f->head.version >= 7 ? dat_read_v7(f) : dat_read_v6(f);
	if (rc)
		return kvmsim_err(errors, rc, "%s: out of memory", name);
	if (f->packing == DAT_UNKNOWN && f->met_packed)
		return kvmsim_err(errors, KVMSIM_EVERSION,
				  "%s: compression '%.15s' is unknown; zstd, zlib and none are",
				  name, f->head.compression);
	if (f->latency && !f->n_buffers)
		return kvmsim_err(errors, KVMSIM_EPARSE,
				  "%s: holds a latency tracer's text, not events", name);
	if (!f->headers.at || !f->formats.at)
		return refuse(f, refusal, "it is cut before the formats of its events end");
	if (!f->n_buffers)
		return refuse(f, refusal, "it is cut before the table of its data");
	return 0;
}

void dat_close(struct dat_file *f)
{
	for (unsigned i = 0; i < f->n_buffers; i++) {
		free(f->buffer[i].name);
		free(f->buffer[i].clock);
		free(f->buffer[i].cpu);
	}
	free(f->buffer);
	free(f->headers.at);
	free(f->ftrace.at);
	free(f->formats.at);
	free(f->cmdlines.at);
}
