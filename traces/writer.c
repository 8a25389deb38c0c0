// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Level 9 is where recorded traces stop to shrink much. Columns have many short chance matches: to
 * leave out those under 7 bytes costs 1% of the file and takes a third off the time to read it. */
#define ZSTD_LEVEL     9
#define ZSTD_MIN_MATCH 7

int writer_fail(struct trace_writer *w, enum kvmsim_error err, const char *what)
{
	if (!w->error)
		w->error = kvmsim_err(w->errors, err, "%s: %s at offset %llu: %s", w->out.path,
				      what, (unsigned long long)w->offset,
				      err == KVMSIM_ENOMEM ? "out of memory" : strerror(errno));
	return w->error;
}

int writer_put(struct trace_writer *w, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len && !w->error) {
		ssize_t n = write(w->out.fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return writer_fail(w, KVMSIM_EIO, "writing failed");
		p += n;
		len -= n;
		w->offset += n;
	}
	return w->error;
}

static void seal_header(struct trace_writer *w)
{
	uint32_t len = w->header_len - HEADER_BYTES;

	memcpy(w->header, TRACE_MAGIC, 8);
	put32(w->header + 8, w->meta.version);
	put32(w->header + 12, len);
	put32(w->header + 16,
	      trace_crc32(trace_crc32(0, w->header, 16), w->header + HEADER_BYTES, len));
}

static int open_output(struct trace_writer *w, const char *path)
{
	const char *what;
	int ret = outfile_open(&w->out, path, &what);

	return ret == KVMSIM_EIO ? kvmsim_err(w->errors, ret, "%s: %s: %s", w->out.path, what,
					      strerror(errno))
				 : ret;
}

int trace_create(const char *path, const struct trace_meta *meta,
		 const struct kvmsim_errsink *errors, struct trace_writer **out)
{
	struct trace_writer *w = calloc(1, sizeof(*w));
	const char *wrong;
	int ret;

	*out = NULL;
	if (!w)
		return kvmsim_err(errors, KVMSIM_ENOMEM, "%s: out of memory", path);
	w->out.fd = -1;
	w->errors = errors;
	w->meta = *meta;
	w->meta.version = meta->version == TRACE_VERSION ? TRACE_VERSION : TRACE_VERSION_OPS;
	w->count_vcpus = !meta->n_vcpus;
	if (w->count_vcpus)
		w->meta.n_vcpus = 1;
	wrong = meta_check(&w->meta);
	if (wrong) {
		free(w);
		return kvmsim_err(errors, KVMSIM_EINVAL, "%s: %s", path, wrong);
	}
	w->header_len = HEADER_BYTES + meta_encode(&w->meta, w->header + HEADER_BYTES);
	w->meta.source = w->meta.kernel = w->meta.workload = NULL;
	seal_header(w);
	w->zstd = ZSTD_createCCtx();
	ret = w->zstd ? 0 : KVMSIM_ENOMEM;
	if (!ret &&
	    (ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
	     ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_minMatch, ZSTD_MIN_MATCH))))
		ret = KVMSIM_EINVAL;
	if (!ret)
		ret = open_output(w, path);
	if (ret == KVMSIM_ENOMEM)
		kvmsim_err(errors, ret, "%s: out of memory", path);
	if (!ret)
		ret = writer_put(w, w->header, w->header_len);
	if (ret) {
		trace_abort(w);
		return ret;
	}
	*out = w;
	return 0;
}

int writer_index(struct trace_writer *w, struct index_entry entry)
{
	if (w->n_index == w->cap_index) {
		uint32_t cap = w->cap_index ? w->cap_index * 2 : 64;
		struct index_entry *e;

		e = cap > w->cap_index ? realloc(w->index, cap * sizeof(*e)) : NULL;
		if (!e)
			return writer_fail(w, KVMSIM_ENOMEM, "no room for the index");
		w->index = e;
		w->cap_index = cap;
	}
	entry.offset = w->offset;
	w->index[w->n_index++] = entry;
	return 0;
}

/* Writes the first block's worth of @ops; returns how many, or an error. */
static long put_block(struct trace_writer *w, uint32_t vcpu, const struct guest_op *ops, size_t n)
{
	struct block_header h = {.vcpu = vcpu, .codec = CODEC_RAW};
	uint8_t *payload = w->stored + BLOCK_HEADER_BYTES;
	size_t taken, len;
	int ret;

	h.raw_len = h.stored_len = block_encode(ops, n, w->raw, &taken);
	h.n_ops = taken;
	/* A destination of three quarters: zstd gives up where it would save less. */
	len = ZSTD_compress2(w->zstd, payload, h.raw_len * 3 / 4, w->raw, h.raw_len);
	if (!ZSTD_isError(len)) {
		h.codec = CODEC_ZSTD;
		h.stored_len = len;
	} else {
		memcpy(payload, w->raw, h.raw_len);
	}
	h.crc = trace_crc32(0, payload, h.stored_len);
	block_header_encode(&h, w->stored);
	ret = writer_index(w, (struct index_entry){.n_ops = h.n_ops, .vcpu = vcpu});
	if (!ret)
		ret = writer_put(w, w->stored, BLOCK_HEADER_BYTES + h.stored_len);
	if (ret)
		return ret;
	w->stats.blocks++;
	return taken;
}

/* Writes what @b holds: all of it when @all, else until half a block is free again. */
static int flush(struct trace_writer *w, uint32_t vcpu, bool all)
{
	struct vcpu_buffer *b = &w->vcpu[vcpu];
	size_t done = 0;

	while (b->n - done > (all ? 0 : TRACE_BLOCK_OPS / 2)) {
		long ret = put_block(w, vcpu, b->ops + done, b->n - done);

		if (ret < 0)
			return ret;
		done += ret;
	}
	memmove(b->ops, b->ops + done, (b->n - done) * sizeof(*b->ops));
	b->n -= done;
	return 0;
}

int trace_write(struct trace_writer *w, uint32_t vcpu, const struct guest_op *ops, size_t n)
{
	struct vcpu_buffer *b;

	if (w->error)
		return w->error;
	if (vcpu >= (w->count_vcpus ? TRACE_MAX_VCPUS : w->meta.n_vcpus))
		return kvmsim_err(w->errors, KVMSIM_EINVAL, "%s: no vCPU %u in this trace",
				  w->out.path, vcpu);
	for (size_t i = 0; i < n; i++)
		if (ops[i].kind >= OP_LAST)
			return kvmsim_err(w->errors, KVMSIM_EINVAL, "%s: no op of kind %u",
					  w->out.path, ops[i].kind);
	b = &w->vcpu[vcpu];
	if (!b->ops && n) {
		b->ops = malloc(TRACE_BLOCK_OPS * sizeof(*b->ops));
		if (!b->ops)
			return writer_fail(w, KVMSIM_ENOMEM, "no room for a block");
	}
	for (size_t i = 0; i < n; i++) {
		w->stats.epochs += ops[i].kind == OP_EPOCH;
		w->stats.marks += ops[i].kind == OP_MARK;
	}
	w->stats.ops += n;
	if (w->count_vcpus && n && vcpu >= w->meta.n_vcpus) {
		w->meta.n_vcpus = vcpu + 1;
		w->rewrite_header = true;
	}
	while (n) {
		size_t part = TRACE_BLOCK_OPS - b->n < n ? TRACE_BLOCK_OPS - b->n : n;

		memcpy(b->ops + b->n, ops, part * sizeof(*ops));
		b->n += part;
		ops += part;
		n -= part;
		if (b->n == TRACE_BLOCK_OPS && flush(w, vcpu, false))
			return w->error;
	}
	return 0;
}

void trace_unseen(struct trace_writer *w, uint32_t unseen)
{
	w->rewrite_header |= (w->meta.unseen | unseen) != w->meta.unseen;
	w->meta.unseen |= unseen;
}

int trace_amend(struct trace_writer *w, enum trace_clock clock, uint64_t clock_hz,
		const struct trace_slot *slots, uint32_t n_slots)
{
	struct trace_meta m = w->meta; /* without its strings */
	uint8_t fixed[META_MAX];
	const char *wrong;

	m.clock = clock;
	m.clock_hz = clock_hz;
	memcpy(m.slots, slots, n_slots * sizeof(*slots));
	wrong = n_slots == m.n_slots ? meta_check(&m) : "the number of slots is written already";
	if (wrong)
		return kvmsim_err(w->errors, KVMSIM_EINVAL, "%s: %s", w->out.path, wrong);
	w->meta = m;
	/* the strings, of which there are three empty ones here, stay */
	uint32_t len = meta_encode(&m, fixed) - 3 * 4;

	memcpy(w->header + HEADER_BYTES, fixed, len);
	w->rewrite_header = true;
	return 0;
}

static int put_index(struct trace_writer *w)
{
	uint8_t *const buf = w->stored;
	uint64_t start = w->offset;
	size_t n = INDEX_HEADER_BYTES;
	uint32_t crc = 0;

	memcpy(buf, INDEX_MAGIC, 4);
	put32(buf + 4, w->n_index);
	for (uint32_t i = 0; i < w->n_index && !w->error; i++) {
		put64(buf + n, w->index[i].offset);
		put32(buf + n + 8, w->index[i].n_ops);
		put16(buf + n + 12, w->index[i].vcpu);
		put16(buf + n + 14, w->index[i].events);
		n += INDEX_ENTRY_BYTES;
		if (n + INDEX_ENTRY_BYTES + TRAILER_BYTES > sizeof(w->stored)) {
			crc = trace_crc32(crc, buf, n);
			writer_put(w, buf, n);
			n = 0;
		}
	}
	put64(buf + n, start);
	crc = trace_crc32(crc, buf, n + 8);
	put32(buf + n + 8, crc);
	memcpy(buf + n + 12, TRACE_END_MAGIC, 8);
	return writer_put(w, buf, n + TRAILER_BYTES);
}

/* What changes after the start: the number of vCPUs, the unseen bits, what trace_amend() put. */
static int put_header_again(struct trace_writer *w)
{
	put32(w->header + HEADER_BYTES, w->meta.n_vcpus);
	put32(w->header + HEADER_BYTES + 12, w->meta.unseen);
	seal_header(w);
	for (uint32_t done = 0; done < w->header_len;) {
		ssize_t n = pwrite(w->out.fd, w->header + done, w->header_len - done, done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return writer_fail(w, KVMSIM_EIO, "completing the header failed");
		done += n;
	}
	return 0;
}

static void writer_free(struct trace_writer *w)
{
	outfile_abort(&w->out);
	for (uint32_t v = 0; v < TRACE_MAX_VCPUS; v++)
		free(w->vcpu[v].ops);
	event_writer_free(w);
	ZSTD_freeCCtx(w->zstd);
	free(w->index);
	free(w);
}

int trace_finish(struct trace_writer *w, struct trace_stats *stats)
{
	static const char *const failed[] = {
		[OUTFILE_SYNC] = "fsync failed",
		[OUTFILE_CLOSE] = "closing failed",
		[OUTFILE_RENAME] = "renaming the finished file failed",
	};
	int ret;

	for (uint32_t v = 0; v < TRACE_MAX_VCPUS && !w->error; v++)
		if (w->vcpu[v].n)
			flush(w, v, true);
	if (!w->error)
		event_writer_flush(w);
	if (!w->error)
		put_index(w);
	if (!w->error && w->rewrite_header)
		put_header_again(w);
	enum outfile_step step = w->error ? OUTFILE_DONE : outfile_finish(&w->out);

	if (step != OUTFILE_DONE)
		writer_fail(w, KVMSIM_EIO, failed[step]);
	w->stats.bytes = w->offset;
	if (stats)
		*stats = w->stats;
	ret = w->error;
	writer_free(w);
	return ret;
}

void trace_abort(struct trace_writer *w)
{
	if (w)
		writer_free(w);
}
