// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/block.h"

#include <string.h>

#include "traces/format.h"

#define COLUMNS_HEADER 6
#define SHAPE_BYTES    5
#define HASH_BITS      10 /* four times the shapes */

static uint64_t zigzag(int64_t d)
{
	return ((uint64_t)d << 1) ^ (uint64_t)(d >> 63);
}

static uint64_t unzigzag(uint64_t z)
{
	return (z >> 1) ^ -(z & 1);
}

static unsigned width(uint64_t all)
{
	return all ? (71 - __builtin_clzll(all)) / 8 : 0;
}

struct shapes {
	struct guest_op op[BLOCK_SHAPES]; /* kind, flags, len; arg: all arguments or-ed */
	uint16_t hash[1 << HASH_BITS];	  /* number + 1; 0: free */
	unsigned n;
};

/* The number of @op's shape, a new one if need be; BLOCK_SHAPES when there is no room. */
static unsigned shape_of(struct shapes *s, const struct guest_op *op)
{
	uint32_t key = op->kind | (uint32_t)op->flags << 8 | (uint32_t)op->len << 16;
	uint32_t h = (key * 0x9e3779b1u) >> (32 - HASH_BITS);

	for (; s->hash[h]; h = (h + 1) & ((1 << HASH_BITS) - 1)) {
		const struct guest_op *o = &s->op[s->hash[h] - 1];

		if (o->kind == op->kind && o->flags == op->flags && o->len == op->len)
			return s->hash[h] - 1;
	}
	if (s->n == BLOCK_SHAPES)
		return BLOCK_SHAPES;
	s->op[s->n] = (struct guest_op){.kind = op->kind, .flags = op->flags, .len = op->len};
	s->hash[h] = ++s->n;
	return s->n - 1;
}

static uint8_t *put_planes(uint8_t *p, const uint64_t *v, size_t m, unsigned w)
{
	for (unsigned k = 0; k < w; k++)
		for (size_t i = 0; i < m; i++)
			*p++ = v[i] >> (8 * k);
	return p;
}

size_t block_encode(const struct guest_op *ops, size_t n, uint8_t *raw, size_t *taken)
{
	uint64_t last[BLOCK_SHAPES] = {0}, delta[BLOCK_GROUP], gap[BLOCK_GROUP];
	uint8_t shape[TRACE_BLOCK_OPS], shift[BLOCK_SHAPES];
	struct shapes s = {.n = 0};
	uint32_t least_gap = UINT32_MAX;
	uint8_t *p = raw + COLUMNS_HEADER;
	size_t i;

	if (n > TRACE_BLOCK_OPS)
		n = TRACE_BLOCK_OPS;
	for (i = 0; i < n; i++) {
		unsigned k = shape_of(&s, &ops[i]);

		if (k == BLOCK_SHAPES)
			break;
		shape[i] = k;
		s.op[k].arg |= ops[i].arg;
		if (ops[i].gap < least_gap)
			least_gap = ops[i].gap;
	}
	*taken = n = i;

	put16(raw, s.n);
	put32(raw + 2, least_gap);
	for (unsigned k = 0; k < s.n; k++, p += SHAPE_BYTES) {
		shift[k] = s.op[k].arg ? __builtin_ctzll(s.op[k].arg) : 0;
		p[0] = s.op[k].kind;
		p[1] = s.op[k].flags;
		put16(p + 2, s.op[k].len);
		p[4] = shift[k];
	}
	if (s.n > 1) {
		memcpy(p, shape, n);
		p += n;
	}
	for (size_t g = 0; g < n; g += BLOCK_GROUP) {
		size_t m = n - g < BLOCK_GROUP ? n - g : BLOCK_GROUP;
		uint64_t all_deltas = 0, all_gaps = 0;
		unsigned a, b;

		for (i = 0; i < m; i++) {
			const struct guest_op *op = &ops[g + i];
			unsigned k = shape[g + i];

			delta[i] = zigzag((int64_t)(op->arg - last[k]) >> shift[k]);
			last[k] = op->arg;
			gap[i] = op->gap - least_gap;
			all_deltas |= delta[i];
			all_gaps |= gap[i];
		}
		a = width(all_deltas);
		b = width(all_gaps);
		*p++ = a | b << 4;
		p = put_planes(p, delta, m, a);
		p = put_planes(p, gap, m, b);
	}
	return p - raw;
}

/* @w planes of @m bytes each, put together. A constant @m and a case per width let the compiler
 * unroll and vectorise. */
static inline __attribute__((always_inline)) void
planes32(uint32_t *restrict v, const uint8_t *restrict p, size_t m, unsigned w)
{
	switch (w) {
	case 0:
		memset(v, 0, m * sizeof(*v));
		break;
	case 1:
		for (size_t i = 0; i < m; i++)
			v[i] = p[i];
		break;
	case 2:
		for (size_t i = 0; i < m; i++)
			v[i] = p[i] | (uint32_t)p[m + i] << 8;
		break;
	case 3:
		for (size_t i = 0; i < m; i++)
			v[i] = p[i] | (uint32_t)p[m + i] << 8 | (uint32_t)p[2 * m + i] << 16;
		break;
	default:
		for (size_t i = 0; i < m; i++)
			v[i] = p[i] | (uint32_t)p[m + i] << 8 | (uint32_t)p[2 * m + i] << 16 |
			       (uint32_t)p[3 * m + i] << 24;
	}
}

static void get_planes32(uint32_t *v, const uint8_t *p, size_t m, unsigned w)
{
	if (m == BLOCK_GROUP)
		planes32(v, p, BLOCK_GROUP, w);
	else
		planes32(v, p, m, w);
}

static void get_planes64(uint64_t *v, const uint8_t *p, size_t m, unsigned w)
{
	memset(v, 0, m * sizeof(*v));
	for (unsigned k = 0; k < w; k++)
		for (size_t i = 0; i < m; i++)
			v[i] |= (uint64_t)p[k * m + i] << (8 * k);
}

struct decoder {
	uint64_t last[BLOCK_SHAPES];
	struct guest_op shape[BLOCK_SHAPES]; /* gap: the block's least */
	uint8_t shift[BLOCK_SHAPES];
	uint32_t gap[BLOCK_GROUP], delta32[BLOCK_GROUP];
	uint64_t delta[BLOCK_GROUP];
};

/* The whole group is of one shape: its state stays in registers. */
static void one_shape(struct decoder *d, struct guest_op *ops, size_t m, unsigned w)
{
	const struct guest_op s = d->shape[0];
	uint64_t last = d->last[0];
	unsigned shift = d->shift[0];

	for (size_t i = 0; i < m; i++) {
		last += unzigzag(w <= 4 ? d->delta32[i] : d->delta[i]) << shift;
		ops[i] = s;
		ops[i].arg = last;
		ops[i].gap += d->gap[i];
	}
	d->last[0] = last;
}

static void many_shapes(struct decoder *d, const uint8_t *shape, struct guest_op *ops, size_t m,
			unsigned w)
{
	for (size_t i = 0; i < m; i++) {
		unsigned k = shape[i];
		uint64_t z = w <= 4 ? d->delta32[i] : d->delta[i];

		d->last[k] += unzigzag(z) << d->shift[k];
		ops[i] = d->shape[k];
		ops[i].arg = d->last[k];
		ops[i].gap += d->gap[i];
	}
}

const char *block_decode(const uint8_t *raw, size_t len, struct guest_op *ops, size_t n,
			 uint32_t *kinds)
{
	const uint8_t *p = raw, *end = raw + len, *shape = NULL;
	struct decoder d;
	unsigned n_shapes;
	uint32_t least_gap;

	if (len < COLUMNS_HEADER)
		return "the block is too short";
	n_shapes = get16(p);
	least_gap = get32(p + 2);
	p += COLUMNS_HEADER;
	*kinds = 0;
	if (n_shapes < 1 || n_shapes > BLOCK_SHAPES)
		return "the block has no shapes or more than 256";
	if ((size_t)(end - p) < n_shapes * SHAPE_BYTES)
		return "the block ends inside its shapes";
	for (unsigned k = 0; k < n_shapes; k++, p += SHAPE_BYTES) {
		if (p[0] >= OP_LAST)
			return "the block has an op of unknown kind";
		if (p[4] > 63)
			return "the block has a shift above 63";
		d.shape[k] = (struct guest_op){
			.kind = p[0], .flags = p[1], .len = get16(p + 2), .gap = least_gap};
		d.shift[k] = p[4];
		*kinds |= 1u << p[0];
		d.last[k] = 0;
	}
	if (n_shapes > 1) {
		uint8_t most = 0;

		if ((size_t)(end - p) < n)
			return "the block ends inside its column of shapes";
		shape = p;
		for (size_t i = 0; i < n; i++)
			most = shape[i] > most ? shape[i] : most;
		if (most >= n_shapes)
			return "the block names a shape that it does not have";
		p += n;
	}
	for (size_t g = 0; g < n; g += BLOCK_GROUP) {
		size_t m = n - g < BLOCK_GROUP ? n - g : BLOCK_GROUP;
		unsigned a, b;

		if (p == end)
			return "the block ends before its last group";
		a = *p & 15;
		b = *p++ >> 4;
		if (a > 8 || b > 4)
			return "the block has a group of unknown width";
		if ((size_t)(end - p) < (a + b) * m)
			return "the block ends inside a group";
		if (a <= 4)
			get_planes32(d.delta32, p, m, a);
		else
			get_planes64(d.delta, p, m, a);
		get_planes32(d.gap, p + a * m, m, b);
		p += (a + b) * m;
		if (shape)
			many_shapes(&d, shape + g, ops + g, m, a);
		else
			one_shape(&d, ops + g, m, a);
	}
	return p == end ? NULL : "the block has bytes left over";
}
