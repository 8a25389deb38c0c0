// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "tests/bench/bench.h"
#include "traces/block.h"
#include "traces/format.h"
#include "traces/trace.h"

/* How fast ops come out of memory and out of a .kvt, and what each step takes of it. */

#define OPS   (1u << 23)
#define BLOCK 4096u

static uint64_t state = 88172645463325252u;
static volatile uint64_t sink; /* what was read, so that it is read */

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Every load and store of a guest: runs over pages, some of them popular, a fetch now and then. */
static void dense(struct guest_op *ops)
{
	uint64_t page = 0;

	for (uint32_t i = 0; i < OPS; i++) {
		if (rnd() % 8 == 0)
			page = rnd() % 4 ? rnd() % 4096 : rnd() % (1 << 20);
		ops[i] = (struct guest_op){.kind = rnd() % 10 < 3 ? OP_WRITE : OP_READ,
					   .len = rnd() % 4 ? 8 : 4,
					   .gap = 1 + rnd() % 5,
					   .arg = page << 12 | (rnd() & 0xff8)};
	}
}

/* First stores only: pages without order, thousands of instructions apart, one shape of op. */
static void sparse(struct guest_op *ops)
{
	for (uint32_t i = 0; i < OPS; i++)
		ops[i] = (struct guest_op){
			.kind = OP_WRITE, .gap = rnd() % 20000, .arg = (rnd() % (1 << 18)) << 12};
}

/* Hits of a guest in its working set: the arguments compress well. */
static void hits(struct guest_op *ops)
{
	for (uint32_t i = 0; i < OPS; i++)
		ops[i] = (struct guest_op){.kind = OP_READ, .gap = 1, .arg = (rnd() & 2047) << 12};
}

static uint64_t consume(void *arg)
{
	struct op_source src = *(struct op_source *)arg;
	const struct guest_op *ops;
	uint64_t sum = 0;
	long n;

	src.rewind(src.ctx);
	while ((n = src.next(src.ctx, &ops)) > 0)
		for (long i = 0; i < n; i++)
			sum += ops[i].arg + ops[i].gap + ops[i].kind;
	if (n < 0)
		abort();
	sink = sum;
	return OPS;
}

/* First stores of a guest that does the same over and over, as recorded ones do. */
static void repeated(struct guest_op *ops)
{
	struct guest_op once[5000];

	for (int i = 0; i < 5000; i++)
		once[i] = (struct guest_op){
			.kind = OP_WRITE, .gap = rnd() % 20000, .arg = (rnd() % (1 << 18)) << 12};
	for (uint32_t i = 0; i < OPS; i++)
		ops[i] = once[i % 5000];
}

struct memory {
	const struct guest_op *ops;
	size_t pos;
};

static long memory_next(void *ctx, const struct guest_op **ops)
{
	struct memory *m = ctx;
	size_t n = OPS - m->pos < BLOCK ? OPS - m->pos : BLOCK;

	*ops = m->ops + m->pos;
	m->pos += n;
	return n;
}

static int memory_rewind(void *ctx)
{
	((struct memory *)ctx)->pos = 0;
	return 0;
}

/* The parts of reading, each over all blocks of a file in memory. */
struct parts {
	const uint8_t *file;
	const size_t *at;
	size_t n;
	ZSTD_DCtx *zstd;
	uint8_t *raw; /* one block's columns */
	struct guest_op *ops;
};

static uint64_t checksum_part(void *ctx)
{
	struct parts *p = ctx;
	struct block_header h;

	for (size_t i = 0; i < p->n; i++) {
		block_header_decode(p->file + p->at[i], &h);
		sink = trace_crc32(0, p->file + p->at[i] + BLOCK_HEADER_BYTES, h.stored_len);
	}
	return OPS;
}

static uint64_t unpack_part(void *ctx)
{
	struct parts *p = ctx;
	struct block_header h;

	for (size_t i = 0; i < p->n; i++) {
		const uint8_t *payload = p->file + p->at[i] + BLOCK_HEADER_BYTES;

		block_header_decode(p->file + p->at[i], &h);
		if (h.codec == CODEC_ZSTD)
			ZSTD_decompressDCtx(p->zstd, p->raw, h.raw_len, payload, h.stored_len);
		sink = p->raw[0];
	}
	return OPS;
}

/* Decodes one block's columns as often as there are blocks: warm, as after unpacking. */
static uint64_t columns_part(void *ctx)
{
	struct parts *p = ctx;
	const uint8_t *payload = p->file + p->at[0] + BLOCK_HEADER_BYTES, *raw = payload;
	struct block_header h;
	uint32_t kinds;

	block_header_decode(p->file + p->at[0], &h);
	if (h.codec == CODEC_ZSTD) {
		ZSTD_decompressDCtx(p->zstd, p->raw, h.raw_len, payload, h.stored_len);
		raw = p->raw;
	}
	for (size_t i = 0; i < p->n; i++) {
		if (block_decode(raw, h.raw_len, p->ops, h.n_ops, &kinds))
			abort();
		sink = p->ops[h.n_ops - 1].arg;
	}
	return OPS;
}

static void line(const char *what, const char *step, bench_fn fn, void *arg, const char *bound)
{
	char name[64];

	snprintf(name, sizeof(name), "%s: %s", what, step);
	bench_run(name, "ops", fn, arg, bound);
}

static void measure(const char *what, void (*fill)(struct guest_op *))
{
	struct guest_op *ops = malloc(OPS * sizeof(*ops));
	struct trace_meta meta = {.n_vcpus = 1};
	char path[] = "/tmp/kvmsim-bench-XXXXXX";
	struct memory m = {.ops = ops};
	struct op_source from_memory = {memory_next, memory_rewind, &m}, from_file;
	struct parts p = {.raw = malloc(BLOCK_RAW_MAX),
			  .ops = malloc(TRACE_BLOCK_OPS * sizeof(*p.ops)),
			  .zstd = ZSTD_createDCtx()};
	struct trace_writer *w;
	struct trace_reader *r;
	struct trace_stats st;
	uint64_t packed = 0;
	size_t *at, end;
	uint8_t *file;
	int fd = mkstemp(path);
	FILE *f;

	if (!ops || !p.raw || !p.ops || !p.zstd || fd < 0)
		abort();
	close(fd);
	fill(ops);
	if (trace_create(path, &meta, NULL, &w) || trace_write(w, 0, ops, OPS) ||
	    trace_finish(w, &st) || trace_open(path, NULL, &r) || trace_source(r, 0, &from_file))
		abort();
	p.file = file = malloc(st.bytes);
	p.at = at = malloc(st.blocks * sizeof(*at));
	f = fopen(path, "rb");
	if (!file || !at || !f || fread(file, 1, st.bytes, f) != st.bytes)
		abort();
	fclose(f);
	for (end = HEADER_BYTES + get32(file + 12); p.n < st.blocks; p.n++) {
		at[p.n] = end;
		packed += file[end + 6] == CODEC_ZSTD;
		end += BLOCK_HEADER_BYTES + get32(file + end + 16);
	}
	printf("%s: %.2f bytes per op, %.0f%% of the blocks by zstd\n", what,
	       (double)st.bytes / OPS, 100.0 * packed / st.blocks);
	line(what, "from memory", consume, &from_memory, "16 bytes per op from memory");
	line(what, "from .kvt", consume, &from_file,
	     "the sum of the steps below and the line above");
	line(what, "checksums", checksum_part, &p, "zlib's CRC-32");
	if (packed)
		line(what, "zstd", unpack_part, &p, "zstd");
	line(what, "columns", columns_part, &p, "unpacking and storing 16 bytes per op");
	trace_close(r);
	unlink(path);
	ZSTD_freeDCtx(p.zstd);
	free(file);
	free(p.raw);
	free(p.ops);
	free(at);
	free(ops);
}

int main(void)
{
	measure("loads and stores", dense);
	measure("first stores", sparse);
	measure("repeated stores", repeated);
	measure("hits", hits);
	return 0;
}
