// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "traces/block.h"
#include "traces/format.h"
#include "traces/trace.h"

/*
 * How fast ops come out of memory and out of a .kvt, and what each takes: median of five runs.
 * Bench programs print "NAME VALUE UNIT bound by ...", one line per figure.
 */

#define OPS   (1u << 23)
#define BLOCK 4096u
#define RUNS  5

static uint64_t state = 88172645463325252u;
static volatile uint64_t sink; /* what was read, so that it is read */

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
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

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

typedef void (*run_fn)(void *ctx);

static double median(run_fn fn, void *ctx)
{
	double t[RUNS];

	for (int i = 0; i < RUNS; i++) {
		double start = now();

		fn(ctx);
		t[i] = now() - start;
	}
	qsort(t, RUNS, sizeof(t[0]), compare);
	return t[RUNS / 2];
}

static void consume(struct op_source src)
{
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
}

static void consume_fn(void *ctx)
{
	consume(*(struct op_source *)ctx);
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

static void checksum_part(void *ctx)
{
	struct parts *p = ctx;
	struct block_header h;

	for (size_t i = 0; i < p->n; i++) {
		block_header_decode(p->file + p->at[i], &h);
		sink = trace_crc32(0, p->file + p->at[i] + BLOCK_HEADER_BYTES, h.stored_len);
	}
}

static void unpack_part(void *ctx)
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
}

/* Decodes one block's columns as often as there are blocks: warm, as after unpacking. */
static void columns_part(void *ctx)
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
}

static void measure(const char *what, void (*fill)(struct guest_op *))
{
	struct guest_op *ops = malloc(OPS * sizeof(*ops));
	struct trace_meta meta = {.n_vcpus = 1};
	char path[] = "/tmp/kvmsim-bench-XXXXXX";
	struct memory m = {.ops = ops};
	struct op_source from_memory = {memory_next, memory_rewind, &m}, from_file;
	struct trace_writer *w;
	struct trace_reader *r;
	struct trace_stats st;
	struct parts p = {0};
	double memory, file, encode, crc, zstd, columns;
	size_t *at, end;
	FILE *f;

	if (!ops || close(mkstemp(path)))
		abort();
	fill(ops);
	memory = median(consume_fn, &from_memory);

	encode = now();
	if (trace_create(path, &meta, NULL, &w) || trace_write(w, 0, ops, OPS) ||
	    trace_finish(w, &st))
		abort();
	encode = now() - encode;
	if (trace_open(path, NULL, &r) || trace_source(r, 0, &from_file))
		abort();
	file = median(consume_fn, &from_file);

	p.file = malloc(st.bytes);
	p.raw = malloc(BLOCK_RAW_MAX);
	p.ops = malloc(TRACE_BLOCK_OPS * sizeof(*p.ops));
	p.zstd = ZSTD_createDCtx();
	p.at = at = malloc((st.blocks + 1) * sizeof(*at));
	f = fopen(path, "rb");
	if (!p.file || !p.raw || !p.ops || !p.zstd || !at || !f ||
	    fread((uint8_t *)p.file, 1, st.bytes, f) != st.bytes)
		abort();
	fclose(f);
	for (end = HEADER_BYTES + get32(p.file + 12); p.n < st.blocks; p.n++) {
		at[p.n] = end;
		end += BLOCK_HEADER_BYTES + get32(p.file + end + 16);
	}
	crc = median(checksum_part, &p);
	zstd = median(unpack_part, &p);
	columns = median(columns_part, &p);

	printf("trace %s: %.2f bytes/op in the file, written at %.1f M ops/s\n", what,
	       (double)st.bytes / OPS, OPS / encode / 1e6);
	printf("trace %s from memory: %.0f M ops/s, bound by reading 16 bytes/op\n", what,
	       OPS / memory / 1e6);
	printf("trace %s from .kvt: %.0f M ops/s, bound by %s (ns/op: zstd %.2f, columns %.2f, "
	       "checksum %.2f, the reader of the ops %.2f)\n",
	       what, OPS / file / 1e6, zstd > columns ? "zstd" : "columns", zstd / OPS * 1e9,
	       columns / OPS * 1e9, crc / OPS * 1e9, memory / OPS * 1e9);
	trace_close(r);
	unlink(path);
	ZSTD_freeDCtx(p.zstd);
	free((uint8_t *)p.file);
	free(p.raw);
	free(p.ops);
	free(at);
	free(ops);
}

int main(void)
{
	measure("loads and stores", dense);
	measure("first stores", sparse);
	measure("hits", hits);
	return 0;
}
