// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "traces/reader.h"

#define LOOK_BYTES 4096u /* to say what a file is that is none of ours */

int reader_bad(const struct trace_reader *r, uint64_t offset, const char *what)
{
	return kvmsim_err(r->errors, KVMSIM_EPARSE, "%s: offset %llu: %s", r->name,
			  (unsigned long long)offset, what);
}

int reader_no_memory(const struct trace_reader *r)
{
	return kvmsim_err(r->errors, KVMSIM_ENOMEM, "%s: out of memory", r->name);
}

int reader_get(const struct trace_reader *r, uint64_t offset, void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len) {
		ssize_t n = pread(r->fd, p, len, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return kvmsim_err(r->errors, KVMSIM_EIO,
					  "%s: offset %llu: reading failed: %s", r->name,
					  (unsigned long long)offset,
					  n ? strerror(errno) : "the file became shorter");
		p += n;
		offset += n;
		len -= n;
	}
	return 0;
}

/* ---- opening ---- */

static bool is_text(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((p[i] < ' ' && (p[i] < '\t' || p[i] > '\r') && p[i] != 0x1b) || p[i] == 0x7f)
			return false;
	return len;
}

/* What @len bytes at its beginning, which are not a trace's, look like, and what is made of such.
 */
static int not_a_trace(const struct trace_reader *r, const uint8_t *p, size_t len)
{
#define NOT "not a kvmsim trace"
	const char *what = NOT ": the magic differs";

	if (len >= 10 && !memcmp(p, "\x17\x08\x44tracing", 10))
		what = NOT " but a trace.dat: kvmsim import makes one of it; info, hotspots and "
			   "export read it as it is";
	else if (len >= 8 && !memcmp(p, "PERFILE2", 8))
		what = NOT " but perf's data: perf script makes text of it, kvmsim import a trace "
			   "of that";
	else if (len >= 2 && !memcmp(p, "\x1f\x8b", 2))
		what = NOT " but packed by gzip: if it is a host's text, kvmsim import reads it, "
			   "else unpack it first";
	else if (is_text(p, len) && memmem(p, len, "[scenario]", 10))
		what = NOT " but a scenario: --scenario FILE takes it";
	else if (is_text(p, len))
		what = NOT " but text: kvmsim import makes one of a host's events (ftrace, "
			   "trace-cmd, perf) or a guest probe's; info, hotspots and export read "
			   "a host's as it is";
#undef NOT
	return reader_bad(r, 0, what);
}

/* Copies what cannot be read at any offset to an unnamed temporary file, which takes the place of
 * r->fd. Stops at bytes that cannot be a trace: /dev/zero has no end. */
static int spool(struct trace_reader *r, const void *head, size_t len)
{
	FILE *tmp = tmpfile();
	uint64_t size = 0;
	ssize_t n = len;
	int fd;

	if (!tmp)
		return kvmsim_err(r->errors, KVMSIM_EIO, "%s: no temporary file: %s", r->name,
				  strerror(errno));
	if (len)
		memcpy(r->stored, head, len);
	while (n || (n = read(r->fd, r->stored, sizeof(r->stored))) > 0) {
		size_t have = size + n < 8 ? size + n : 8;

		if (size < 8) {
			memcpy(r->raw + size, r->stored, have - size);
			if (memcmp(r->raw, TRACE_MAGIC, have)) {
				fclose(tmp);
				return size ? not_a_trace(r, r->raw, have)
					    : not_a_trace(r, r->stored, n);
			}
		}
		if (fwrite(r->stored, 1, n, tmp) != (size_t)n)
			break;
		size += n;
		n = 0;
	}
	if (n < 0 && errno == EINTR) { /* only a handler without SA_RESTART does that */
		fclose(tmp);
		return KVMSIM_EINTR;
	}
	if (n || fflush(tmp)) {
		kvmsim_err(r->errors, KVMSIM_EIO, "%s: offset %llu: %s: %s", r->name,
			   (unsigned long long)size,
			   n < 0 ? "reading failed" : "writing the temporary copy failed",
			   strerror(errno));
		fclose(tmp);
		return KVMSIM_EIO;
	}
	fd = fcntl(fileno(tmp), F_DUPFD_CLOEXEC, 0);
	fclose(tmp);
	if (fd < 0)
		return kvmsim_err(r->errors, KVMSIM_EIO, "%s: %s", r->name, strerror(errno));
	close(r->fd);
	r->fd = fd;
	r->size = size;
	return 0;
}

/* r->fd is open; its first @len bytes, @head, may have been read from it. */
static int take_input(struct trace_reader *r, const void *head, size_t len)
{
	struct stat st;

	if (fstat(r->fd, &st))
		return kvmsim_err(r->errors, KVMSIM_EIO, "%s: %s", r->name, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return kvmsim_err(r->errors, KVMSIM_EPARSE, "%s: a directory, not a kvmsim trace",
				  r->name);
	r->size = st.st_size;
	return S_ISREG(st.st_mode) ? 0 : spool(r, head, len);
}

static int read_header(struct trace_reader *r)
{
	uint8_t *h = r->raw, *meta = h + HEADER_BYTES;
	uint64_t have = r->size < HEADER_BYTES ? r->size : HEADER_BYTES;
	const char *wrong;
	uint32_t len, at;
	int ret;

	if (!r->size)
		return reader_bad(r, 0, "not a kvmsim trace: the file is empty");
	ret = reader_get(r, 0, h, have);
	if (ret)
		return ret;
	if (memcmp(h, TRACE_MAGIC, have < 8 ? have : 8)) {
		have = r->size < LOOK_BYTES ? r->size : LOOK_BYTES;
		ret = reader_get(r, 0, h, have);
		return ret ? ret : not_a_trace(r, h, have);
	}
	if (have < HEADER_BYTES)
		return reader_bad(r, have, "the file ends inside its header");
	if (get32(h + 8) > TRACE_VERSION)
		return kvmsim_err(r->errors, KVMSIM_EVERSION,
				  "%s: offset 8: format version %u; this program reads up to %u",
				  r->name, get32(h + 8), TRACE_VERSION);
	if (get32(h + 8) < 1)
		return reader_bad(r, 8, "there is no format version 0");
	len = get32(h + 12);
	if (len > META_MAX)
		return reader_bad(r, 12, "the metadata is longer than 16384 bytes");
	if (r->size - HEADER_BYTES < len)
		return reader_bad(r, r->size, "the file ends inside its metadata");
	ret = reader_get(r, HEADER_BYTES, meta, len);
	if (ret)
		return ret;
	if (get32(h + 16) != trace_crc32(trace_crc32(0, h, 16), meta, len))
		return reader_bad(r, 16, "checksum of the header differs");
	wrong = meta_decode(meta, len, &r->meta, &at);
	if (wrong)
		return reader_bad(r, HEADER_BYTES + at, wrong);
	r->meta.version = get32(h + 8);
	r->end = HEADER_BYTES + len;
	return 0;
}

static int open_reader(int fd, const char *name, const void *head, size_t len,
		       const struct kvmsim_errsink *errors, struct trace_reader **out)
{
	struct trace_reader *r = calloc(1, sizeof(*r));
	int ret;

	*out = NULL;
	if (!r) {
		close(fd);
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", name);
	}
	r->fd = fd;
	r->errors = errors;
	r->name = strdup(name);
	r->zstd = ZSTD_createDCtx();
	if (!r->name || !r->zstd)
		ret = kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", name);
	else
		ret = take_input(r, head, len);
	if (!ret)
		ret = read_header(r);
	if (!ret)
		ret = reader_find_blocks(r);
	if (ret) {
		trace_close(r);
		return ret;
	}
	*out = r;
	return 0;
}

int trace_open(const char *path, const struct kvmsim_errsink *errors, struct trace_reader **out)
{
	bool is_stdin = !strcmp(path, "-");
	const char *name = is_stdin ? "standard input" : path;
	int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
			  : open(path, O_RDONLY | O_CLOEXEC);

	*out = NULL;
	if (fd < 0)
		return errno == EINTR ? KVMSIM_EINTR
				      : kvmsim_err(errors, KVMSIM_EIO, "%s: cannot open: %s", name,
						   strerror(errno));
	return open_reader(fd, name, NULL, 0, errors, out);
}

int reader_open_fd(int fd, const char *name, const void *head, size_t len,
		   const struct kvmsim_errsink *errors, struct trace_reader **out)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	*out = NULL;
	if (own < 0)
		return kvmsim_err(errors, KVMSIM_EIO, "%s: %s", name, strerror(errno));
	return open_reader(own, name, head, len, errors, out);
}

void trace_close(struct trace_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	for (uint32_t v = 0; r->vcpu && v < r->meta.n_vcpus; v++)
		free(r->vcpu[v].ops);
	free(r->vcpu);
	free(r->next);
	free(r->index);
	ZSTD_freeDCtx(r->zstd);
	meta_free(&r->meta);
	free(r->name);
	free(r);
}

const struct trace_meta *trace_meta(const struct trace_reader *r)
{
	return &r->meta;
}

struct trace_stats trace_stats(const struct trace_reader *r)
{
	return r->stats;
}

uint64_t trace_ops(const struct trace_reader *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->n_index; i++)
		n += r->index[i].events ? 0 : r->index[i].n_ops;
	return n;
}

uint64_t trace_event_rows(const struct trace_reader *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->n_index; i++)
		n += r->index[i].events ? r->index[i].n_ops : 0;
	return n;
}

/* ---- blocks ---- */

int reader_payload(struct trace_reader *r, uint32_t i, struct block_buffer *buf,
		   struct block_header *h, const uint8_t **raw)
{
	const struct index_entry *e = &r->index[i];
	uint64_t end = i + 1 < r->n_index ? r->index[i + 1].offset : r->end;
	const uint8_t *payload = buf->stored + BLOCK_HEADER_BYTES;
	const char *wrong;
	int ret;

	if (end - e->offset > BLOCK_HEADER_BYTES + buf->raw_max)
		return reader_bad(r, e->offset, "a block longer than any can be");
	ret = reader_get(r, e->offset, buf->stored, end - e->offset);
	if (ret)
		return ret;
	*raw = payload;
	wrong = block_header_decode(buf->stored, h);
	if (!wrong && (h->vcpu != e->vcpu || h->n_ops != e->n_ops || h->events != e->events ||
		       h->stored_len != end - e->offset - BLOCK_HEADER_BYTES))
		wrong = "the block is not the one that the index names";
	if (!wrong && h->crc != trace_crc32(0, payload, h->stored_len))
		wrong = "checksum of the block differs";
	if (!wrong && h->codec == CODEC_ZSTD) {
		if (ZSTD_decompressDCtx(r->zstd, buf->raw, h->raw_len, payload, h->stored_len) !=
		    h->raw_len)
			wrong = "the block does not decompress to its length";
		*raw = buf->raw;
	}
	if (wrong)
		return reader_bad(r, e->offset, wrong);
	r->stats.blocks++;
	r->stats.bytes += end - e->offset;
	return 0;
}

static int read_block(struct trace_reader *r, uint32_t i, struct guest_op *ops)
{
	struct block_buffer buf = {r->stored, r->raw, BLOCK_RAW_MAX};
	struct block_header h = {.n_ops = 0};
	const uint8_t *raw = NULL;
	uint32_t kinds = 0;
	const char *wrong;
	int ret = reader_payload(r, i, &buf, &h, &raw);

	if (ret)
		return ret;
	wrong = block_decode(raw, h.raw_len, ops, h.n_ops, &kinds);
	if (wrong)
		return reader_bad(r, r->index[i].offset, wrong);
	r->stats.ops += h.n_ops;
	for (uint32_t k = 0; k < h.n_ops && (kinds & (1u << OP_EPOCH | 1u << OP_MARK)); k++) {
		r->stats.epochs += ops[k].kind == OP_EPOCH;
		r->stats.marks += ops[k].kind == OP_MARK;
	}
	return 0;
}

static long source_next(void *ctx, const struct guest_op **ops)
{
	struct cursor *c = ctx;
	uint32_t i = c->pos;

	if (c->error)
		return c->error;
	if (i == NO_BLOCK)
		return 0;
	if (!c->ops) {
		c->ops = malloc(TRACE_BLOCK_OPS * sizeof(*c->ops));
		if (!c->ops)
			return c->error = reader_no_memory(c->r);
	}
	c->error = read_block(c->r, i, c->ops);
	if (c->error)
		return c->error;
	c->pos = c->r->next[i];
	*ops = c->ops;
	return c->r->index[i].n_ops;
}

static int source_rewind(void *ctx)
{
	struct cursor *c = ctx;

	c->pos = c->first;
	c->error = 0;
	return 0;
}

int trace_source(struct trace_reader *r, uint32_t vcpu, struct op_source *out)
{
	if (vcpu >= r->meta.n_vcpus)
		return kvmsim_err(r->errors, KVMSIM_EINVAL, "%s: no vCPU %u in this trace", r->name,
				  vcpu);
	*out = (struct op_source){
		.next = source_next, .rewind = source_rewind, .ctx = &r->vcpu[vcpu]};
	return 0;
}

static ssize_t read_some(int fd, void *buf, size_t len)
{
	ssize_t n;

	do
		n = read(fd, buf, len);
	while (n < 0 && errno == EINTR);
	return n;
}

int trace_checksum(const char *path, uint64_t *out)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, 64 bits: offset basis, then prime */
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t buf[65536];
	ssize_t n;

	if (fd < 0)
		return KVMSIM_EIO;
	while ((n = read_some(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			h = (h ^ buf[i]) * 0x100000001b3u;
	close(fd);
	if (n < 0)
		return KVMSIM_EIO;
	*out = h;
	return 0;
}
