// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "traces/block.h"
#include "traces/format.h"
#include "traces/trace.h"

#define NO_BLOCK UINT32_MAX

struct cursor {
	struct trace_reader *r;
	struct guest_op *ops; /* TRACE_BLOCK_OPS; NULL until the first block */
	uint32_t first, pos;  /* entries of the index, NO_BLOCK: none */
	int error;
};

struct trace_reader {
	const struct kvmsim_errsink *errors;
	char *name;
	int fd;
	uint64_t size;
	struct trace_meta meta;
	struct trace_stats stats;
	struct index_entry *index; /* in the order of the file */
	uint32_t *next;		   /* the same vCPU's next entry */
	uint32_t n_index, cap_index;
	uint64_t end; /* of the last block */
	ZSTD_DCtx *zstd;
	struct cursor *vcpu;
	uint8_t stored[BLOCK_HEADER_BYTES + BLOCK_RAW_MAX], raw[BLOCK_RAW_MAX];
};

static int bad(const struct trace_reader *r, uint64_t offset, const char *what)
{
	return kvmsim_err(r->errors, KVMSIM_EPARSE, "%s: offset %llu: %s", r->name,
			  (unsigned long long)offset, what);
}

static int no_memory(const struct trace_reader *r)
{
	return kvmsim_err(r->errors, KVMSIM_ENOMEM, "%s: out of memory", r->name);
}

/* Exactly @len bytes at @offset, which the caller knows to be inside the file. */
static int get_bytes(const struct trace_reader *r, uint64_t offset, void *buf, size_t len)
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

static ssize_t read_some(int fd, void *buf, size_t len)
{
	ssize_t n;

	do
		n = read(fd, buf, len);
	while (n < 0 && errno == EINTR);
	return n;
}

/* Copies what cannot be read at any offset to an unnamed temporary file, which takes the place of
 * r->fd. Stops at bytes that cannot be a trace: /dev/zero has no end. */
static int spool(struct trace_reader *r)
{
	FILE *tmp = tmpfile();
	uint64_t size = 0;
	ssize_t n;
	int fd;

	if (!tmp)
		return kvmsim_err(r->errors, KVMSIM_EIO, "%s: no temporary file: %s", r->name,
				  strerror(errno));
	while ((n = read_some(r->fd, r->stored, sizeof(r->stored))) > 0) {
		size_t have = size + n < 8 ? size + n : 8;

		if (size < 8) {
			memcpy(r->raw + size, r->stored, have - size);
			if (memcmp(r->raw, TRACE_MAGIC, have)) {
				fclose(tmp);
				return bad(r, 0, "not a kvmsim trace: the magic differs");
			}
		}
		if (fwrite(r->stored, 1, n, tmp) != (size_t)n)
			break;
		size += n;
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

static int open_input(struct trace_reader *r, const char *path)
{
	struct stat st;

	r->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC)
				  : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	if (r->fd < 0)
		return kvmsim_err(r->errors, KVMSIM_EIO, "%s: cannot open: %s", r->name,
				  strerror(errno));
	if (fstat(r->fd, &st))
		return kvmsim_err(r->errors, KVMSIM_EIO, "%s: %s", r->name, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return kvmsim_err(r->errors, KVMSIM_EPARSE, "%s: a directory, not a kvmsim trace",
				  r->name);
	r->size = st.st_size;
	return S_ISREG(st.st_mode) ? 0 : spool(r);
}

static int read_header(struct trace_reader *r)
{
	uint8_t *h = r->raw, *meta = h + HEADER_BYTES;
	uint64_t have = r->size < HEADER_BYTES ? r->size : HEADER_BYTES;
	const char *wrong;
	uint32_t len, at;
	int ret;

	if (!r->size)
		return bad(r, 0, "not a kvmsim trace: the file is empty");
	ret = get_bytes(r, 0, h, have);
	if (ret)
		return ret;
	if (memcmp(h, TRACE_MAGIC, have < 8 ? have : 8))
		return bad(r, 0, "not a kvmsim trace: the magic differs");
	if (have < HEADER_BYTES)
		return bad(r, have, "the file ends inside its header");
	if (get32(h + 8) > TRACE_VERSION)
		return kvmsim_err(r->errors, KVMSIM_EVERSION,
				  "%s: offset 8: format version %u; this program reads up to %u",
				  r->name, get32(h + 8), TRACE_VERSION);
	if (get32(h + 8) < 1)
		return bad(r, 8, "there is no format version 0");
	len = get32(h + 12);
	if (len > META_MAX)
		return bad(r, 12, "the metadata is longer than 16384 bytes");
	if (r->size - HEADER_BYTES < len)
		return bad(r, r->size, "the file ends inside its metadata");
	ret = get_bytes(r, HEADER_BYTES, meta, len);
	if (ret)
		return ret;
	if (get32(h + 16) != trace_crc32(trace_crc32(0, h, 16), meta, len))
		return bad(r, 16, "checksum of the header differs");
	wrong = meta_decode(meta, len, &r->meta, &at);
	if (wrong)
		return bad(r, HEADER_BYTES + at, wrong);
	r->end = HEADER_BYTES + len;
	return 0;
}

/* ---- the index, from the file's end or from its blocks ---- */

static int add_entry(struct trace_reader *r, struct index_entry e)
{
	if (r->n_index == r->cap_index) {
		uint32_t cap = r->cap_index ? r->cap_index * 2 : 64;
		struct index_entry *p;

		p = cap > r->cap_index ? realloc(r->index, cap * sizeof(*p)) : NULL;
		if (!p)
			return no_memory(r);
		r->index = p;
		r->cap_index = cap;
	}
	r->index[r->n_index++] = e;
	return 0;
}

static int check_entry(const struct trace_reader *r, const struct index_entry *e, uint64_t start,
		       uint64_t limit)
{
	return e->offset >= start && e->offset <= limit && limit - e->offset > BLOCK_HEADER_BYTES &&
	       e->vcpu < r->meta.n_vcpus && e->n_ops >= 1 && e->n_ops <= TRACE_BLOCK_OPS;
}

/* Reads the index at @start, which the trailer (@trailer, read already) points to. */
static int read_index(struct trace_reader *r, const uint8_t *trailer)
{
	uint64_t start = get64(trailer), pos = start, limit = r->size - TRAILER_BYTES;
	uint64_t first = r->end, expect = first;
	uint32_t n, crc;
	uint8_t h[INDEX_HEADER_BYTES];
	int ret;

	if (start < first || start > limit || limit - start < INDEX_HEADER_BYTES)
		return bad(r, limit, "the trailer points outside the file");
	ret = get_bytes(r, start, h, sizeof(h));
	if (ret)
		return ret;
	n = get32(h + 4);
	if (memcmp(h, INDEX_MAGIC, 4) ||
	    (limit - start - INDEX_HEADER_BYTES) != (uint64_t)n * INDEX_ENTRY_BYTES)
		return bad(r, start, "no index where the trailer points");
	crc = trace_crc32(0, h, sizeof(h));
	for (pos += sizeof(h); pos < limit;) {
		size_t part = sizeof(r->stored) / INDEX_ENTRY_BYTES * INDEX_ENTRY_BYTES;

		if (part > limit - pos)
			part = limit - pos;
		ret = get_bytes(r, pos, r->stored, part);
		if (ret)
			return ret;
		crc = trace_crc32(crc, r->stored, part);
		for (size_t i = 0; i < part; i += INDEX_ENTRY_BYTES, pos += INDEX_ENTRY_BYTES) {
			struct index_entry e = {.offset = get64(r->stored + i),
						.n_ops = get32(r->stored + i + 8),
						.vcpu = get16(r->stored + i + 12)};

			/* entries tile the file: each begins where one before it can end */
			if (!check_entry(r, &e, expect, start) ||
			    (r->n_index == 0 && e.offset != first) || get16(r->stored + i + 14))
				return bad(r, pos, "an entry of the index is impossible");
			expect = e.offset + BLOCK_HEADER_BYTES + 1;
			ret = add_entry(r, e);
			if (ret)
				return ret;
		}
	}
	if (get32(trailer + 8) != trace_crc32(crc, trailer, 8))
		return bad(r, start, "checksum of the index differs");
	if (!n && start != first)
		return bad(r, first, "bytes before the index that it does not know");
	r->end = start;
	return 0;
}

/* A whole index stands at @pos, but the file does not end with its trailer. Cut short, or more
 * than that? */
static int after_index(struct trace_reader *r, uint64_t pos, bool *torn)
{
	uint8_t h[INDEX_HEADER_BYTES];
	uint64_t end;
	int ret;

	*torn = true;
	if (r->size - pos < INDEX_HEADER_BYTES)
		return 0;
	ret = get_bytes(r, pos, h, sizeof(h));
	if (ret)
		return ret;
	end = pos + INDEX_HEADER_BYTES + (uint64_t)get32(h + 4) * INDEX_ENTRY_BYTES + TRAILER_BYTES;
	if (r->size < end)
		return 0;
	*torn = false;
	return r->size == end ? bad(r, end - 8, "the mark of the file's end differs")
			      : bad(r, end, "bytes after the end of the trace");
}

/* No trailer: hops over the blocks' headers to the last whole block. */
static int scan_blocks(struct trace_reader *r)
{
	uint8_t buf[BLOCK_HEADER_BYTES];
	uint64_t left;
	bool torn = true;
	int ret;

	for (; (left = r->size - r->end) >= 4;) {
		struct block_header h;
		const char *wrong;

		ret = get_bytes(r, r->end, buf, left < sizeof(buf) ? left : sizeof(buf));
		if (ret)
			return ret;
		if (!memcmp(buf, INDEX_MAGIC, 4)) {
			ret = after_index(r, r->end, &torn);
			if (ret)
				return ret;
			break;
		}
		if (left < sizeof(buf) && !memcmp(buf, BLOCK_MAGIC, 4))
			break;
		wrong = block_header_decode(buf, &h);
		if (!wrong && h.vcpu >= r->meta.n_vcpus)
			wrong = "a block of a vCPU that the header does not have";
		if (wrong)
			return bad(r, r->end, wrong);
		if (left - sizeof(buf) < h.stored_len)
			break;
		ret = add_entry(r, (struct index_entry){
					   .offset = r->end, .n_ops = h.n_ops, .vcpu = h.vcpu});
		if (ret)
			return ret;
		r->end += sizeof(buf) + h.stored_len;
	}
	r->stats.torn = true;
	kvmsim_err(
		r->errors, KVMSIM_ETORN,
		"%s: offset %llu: torn: the file ends without its index; %u whole blocks are read",
		r->name, (unsigned long long)r->end, r->n_index);
	return 0;
}

static int find_blocks(struct trace_reader *r)
{
	uint8_t trailer[TRAILER_BYTES];
	uint32_t last[TRACE_MAX_VCPUS];
	int ret;

	if (r->size - r->end >= INDEX_HEADER_BYTES + TRAILER_BYTES) {
		ret = get_bytes(r, r->size - TRAILER_BYTES, trailer, TRAILER_BYTES);
		if (ret)
			return ret;
		ret = memcmp(trailer + 12, TRACE_END_MAGIC, 8) ? scan_blocks(r)
							       : read_index(r, trailer);
	} else {
		ret = scan_blocks(r);
	}
	if (ret)
		return ret;
	r->next = malloc((r->n_index + 1) * sizeof(*r->next));
	r->vcpu = calloc(r->meta.n_vcpus, sizeof(*r->vcpu));
	if (!r->next || !r->vcpu)
		return no_memory(r);
	for (uint32_t v = 0; v < r->meta.n_vcpus; v++) {
		r->vcpu[v] = (struct cursor){.r = r, .first = NO_BLOCK, .pos = NO_BLOCK};
		last[v] = NO_BLOCK;
	}
	for (uint32_t i = 0; i < r->n_index; i++) {
		uint32_t v = r->index[i].vcpu;

		r->next[i] = NO_BLOCK;
		if (last[v] == NO_BLOCK)
			r->vcpu[v].first = r->vcpu[v].pos = i;
		else
			r->next[last[v]] = i;
		last[v] = i;
	}
	return 0;
}

int trace_open(const char *path, const struct kvmsim_errsink *errors, struct trace_reader **out)
{
	struct trace_reader *r = calloc(1, sizeof(*r));
	int ret;

	*out = NULL;
	if (!r)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", path);
	r->fd = -1;
	r->errors = errors;
	r->name = strdup(strcmp(path, "-") ? path : "standard input");
	r->zstd = ZSTD_createDCtx();
	if (!r->name || !r->zstd)
		ret = kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", path);
	else
		ret = open_input(r, path);
	if (!ret)
		ret = read_header(r);
	if (!ret)
		ret = find_blocks(r);
	if (ret) {
		trace_close(r);
		return ret;
	}
	*out = r;
	return 0;
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

/* ---- blocks ---- */

static int read_block(struct trace_reader *r, uint32_t i, struct guest_op *ops)
{
	const struct index_entry *e = &r->index[i];
	uint64_t end = i + 1 < r->n_index ? r->index[i + 1].offset : r->end;
	const uint8_t *payload = r->stored + BLOCK_HEADER_BYTES, *raw = payload;
	struct block_header h;
	uint32_t kinds = 0;
	const char *wrong;
	int ret;

	if (end - e->offset > sizeof(r->stored))
		return bad(r, e->offset, "a block longer than any can be");
	ret = get_bytes(r, e->offset, r->stored, end - e->offset);
	if (ret)
		return ret;
	wrong = block_header_decode(r->stored, &h);
	if (!wrong && (h.vcpu != e->vcpu || h.n_ops != e->n_ops ||
		       h.stored_len != end - e->offset - BLOCK_HEADER_BYTES))
		wrong = "the block is not the one that the index names";
	if (!wrong && h.crc != trace_crc32(0, payload, h.stored_len))
		wrong = "checksum of the block differs";
	if (!wrong && h.codec == CODEC_ZSTD) {
		if (ZSTD_decompressDCtx(r->zstd, r->raw, h.raw_len, payload, h.stored_len) !=
		    h.raw_len)
			wrong = "the block does not decompress to its length";
		raw = r->raw;
	}
	if (!wrong)
		wrong = block_decode(raw, h.raw_len, ops, h.n_ops, &kinds);
	if (wrong)
		return bad(r, e->offset, wrong);
	r->stats.blocks++;
	r->stats.ops += h.n_ops;
	r->stats.bytes += end - e->offset;
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
			return c->error = no_memory(c->r);
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
