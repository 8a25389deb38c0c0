// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/block.h"

#include <stdbool.h>
#include <string.h>

#include "traces/format.h"

#define COLUMNS_HEADER 6
#define GROUP_HEADER   6
#define SHAPE_BYTES    6
#define HASH_BITS      10 /* four times the shapes */

static uint64_t zigzag(int64_t d)
{
	return ((uint64_t)d << 1) ^ (uint64_t)(d >> 63);
}

static uint64_t unzigzag(uint64_t z)
{
	return (z >> 1) ^ -(z & 1);
}

/* Half-bytes that @v needs. */
static unsigned width(uint64_t v)
{
	return v ? (67 - __builtin_clzll(v)) / 4 : 0;
}

/* Bits of a shape's number in the column. */
static unsigned shape_bits(unsigned n_shapes)
{
	return n_shapes <= 1 ? 0 : n_shapes <= 2 ? 1 : n_shapes <= 4 ? 2 : n_shapes <= 16 ? 4 : 8;
}

/* Bytes of @m numbers of @w half-bytes each. */
static size_t packed_bytes(size_t m, unsigned w)
{
	return w / 2 * m + (w & 1) * ((m + 1) / 2);
}

struct shapes {
	struct guest_op op[BLOCK_SHAPES]; /* kind, flags, len; arg: all arguments or-ed */
	uint8_t base[BLOCK_SHAPES];	  /* see base_of() */
	uint16_t hash[1 << HASH_BITS];	  /* number + 1; 0: free */
	unsigned n;
};

/* Loads and stores of one guest go to the same pages by turns, whatever their length: their
 * arguments are deltas of each other. Returns the first shape that @op shares a line of arguments
 * with, its own number if there is none. */
static unsigned base_of(const struct shapes *s, const struct guest_op *op)
{
	unsigned k = 0;

	if (op->kind != OP_READ && op->kind != OP_WRITE && op->kind != OP_RMW)
		return s->n;
	while (k < s->n &&
	       (s->op[k].flags != op->flags ||
		(s->op[k].kind != OP_READ && s->op[k].kind != OP_WRITE && s->op[k].kind != OP_RMW)))
		k++;
	return k;
}

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
	s->base[s->n] = base_of(s, op);
	s->hash[h] = ++s->n;
	return s->n - 1;
}

static uint8_t *put_shapes(uint8_t *p, const uint8_t *shape, size_t n, unsigned bits)
{
	size_t bytes = (n * bits + 7) / 8;

	memset(p, 0, bytes);
	for (size_t i = 0; bits && i < n; i++)
		p[i * bits / 8] |= shape[i] << i * bits % 8;
	return p + bytes;
}

/* How a group's numbers are packed: @w half-bytes each; those that need more, the exceptions, have
 * their rest in @rest bytes each. */
struct packing {
	unsigned w, n_exceptions, rest;
};

/* The packing of fewest bytes, an exception counted as two more for the time it takes. */
static struct packing choose(const uint64_t *v, size_t m)
{
	unsigned need[17] = {0}, above = 0, most = 0;
	struct packing best = {0};
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < m; i++)
		need[width(v[i])]++;
	for (unsigned w = 16; w <= 16; above += need[w--]) {
		struct packing p = {w, above, (most - (above ? w : most) + 1) / 2};
		size_t cost = packed_bytes(m, w) + above * (3 + p.rest);

		if (above < 256 && cost < least) {
			least = cost;
			best = p;
		}
		if (!most && need[w])
			most = w;
	}
	return best;
}

static uint8_t *put_numbers(uint8_t *p, const uint64_t *v, size_t m, struct packing k)
{
	size_t half = (m + 1) / 2;

	for (unsigned plane = 0; plane < k.w / 2; plane++)
		for (size_t i = 0; i < m; i++)
			*p++ = v[i] >> 8 * plane;
	if (k.w & 1) {
		memset(p, 0, half);
		for (size_t i = 0; i < m; i++)
			p[i % half] |= (v[i] >> 4 * (k.w - 1) & 15) << i / half * 4;
		p += half;
	}
	if (!k.n_exceptions)
		return p;
	for (size_t i = 0; i < m; i++)
		if (width(v[i]) > k.w)
			*p++ = i;
	for (size_t i = 0; i < m; i++)
		for (unsigned b = 0; width(v[i]) > k.w && b < k.rest; b++)
			*p++ = v[i] >> 4 * k.w >> 8 * b;
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
		s.op[s.base[k]].arg |= ops[i].arg;
		if (ops[i].gap < least_gap)
			least_gap = ops[i].gap;
	}
	*taken = n = i;

	put16(raw, s.n);
	put32(raw + 2, least_gap);
	for (unsigned k = 0; k < s.n; k++, p += SHAPE_BYTES) {
		uint64_t all = s.op[s.base[k]].arg;

		shift[k] = all ? __builtin_ctzll(all) : 0;
		p[0] = s.op[k].kind;
		p[1] = s.op[k].flags;
		put16(p + 2, s.op[k].len);
		p[4] = shift[k];
		p[5] = s.base[k];
	}
	p = put_shapes(p, shape, n, shape_bits(s.n));
	for (size_t g = 0; g < n; g += BLOCK_GROUP) {
		size_t m = n - g < BLOCK_GROUP ? n - g : BLOCK_GROUP;
		struct packing a, b;

		for (i = 0; i < m; i++) {
			const struct guest_op *op = &ops[g + i];
			unsigned k = shape[g + i];

			delta[i] = zigzag((int64_t)(op->arg - last[s.base[k]]) >> shift[k]);
			last[s.base[k]] = op->arg;
			gap[i] = op->gap - least_gap;
		}
		a = choose(delta, m);
		b = choose(gap, m);
		*p++ = a.w;
		*p++ = a.n_exceptions;
		*p++ = a.rest;
		*p++ = b.w;
		*p++ = b.n_exceptions;
		*p++ = b.rest;
		p = put_numbers(p, delta, m, a);
		p = put_numbers(p, gap, m, b);
	}
	return p - raw;
}

/* ---- decoding ---- */

/* Numbers of at most 32 bits, @w half-bytes each. A constant @m and a case per number of planes let
 * the compiler unroll and vectorise. */
static inline __attribute__((always_inline)) void
unpack32(uint32_t *restrict v, const uint8_t *restrict p, size_t m, unsigned w)
{
	size_t half = (m + 1) / 2;
	unsigned shift = w / 2 * 8;

	switch (w / 2) {
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
	if (!(w & 1))
		return;
	p += w / 2 * m;
	for (size_t i = 0; i < half; i++)
		v[i] |= (uint32_t)(p[i] & 15) << shift;
	for (size_t i = 0; i < m - half; i++)
		v[half + i] |= (uint32_t)(p[i] >> 4) << shift;
}

static void get32_numbers(uint32_t *v, const uint8_t *p, size_t m, unsigned w)
{
	if (m == BLOCK_GROUP)
		unpack32(v, p, BLOCK_GROUP, w);
	else
		unpack32(v, p, m, w);
}

static void get64_numbers(uint64_t *v, const uint8_t *p, size_t m, unsigned w)
{
	size_t half = (m + 1) / 2;

	memset(v, 0, m * sizeof(*v));
	for (unsigned k = 0; k < w / 2; k++, p += m)
		for (size_t i = 0; i < m; i++)
			v[i] |= (uint64_t)p[i] << 8 * k;
	for (size_t i = 0; (w & 1) && i < m; i++)
		v[i] |= (uint64_t)(p[i % half] >> i / half * 4 & 15) << 4 * (w - 1);
}

struct decoder {
	uint64_t last[BLOCK_SHAPES];
	struct guest_op shape[BLOCK_SHAPES]; /* gap: the block's least */
	uint8_t shift[BLOCK_SHAPES], base[BLOCK_SHAPES];
	bool one_line;			 /* every shape's base is shape 0; so with one shape */
	uint8_t column[TRACE_BLOCK_OPS]; /* the shape of each op */
	uint32_t gap[BLOCK_GROUP], delta32[BLOCK_GROUP];
	uint64_t delta[BLOCK_GROUP];
};

/* All arguments are one line of deltas: its state stays in registers. @shape may be NULL. */
static inline __attribute__((always_inline)) void one_line(struct decoder *restrict d,
							   const uint8_t *restrict shape,
							   struct guest_op *restrict ops, size_t m,
							   bool narrow)
{
	uint64_t last = d->last[0];
	unsigned shift = d->shift[0];

	for (size_t i = 0; i < m; i++) {
		struct guest_op op = d->shape[shape ? shape[i] : 0];

		last += unzigzag(narrow ? d->delta32[i] : d->delta[i]) << shift;
		op.arg = last;
		op.gap += d->gap[i];
		ops[i] = op;
	}
	d->last[0] = last;
}

static void many_lines(struct decoder *restrict d, const uint8_t *restrict shape,
		       struct guest_op *restrict ops, size_t m, bool narrow)
{
	for (size_t i = 0; i < m; i++) {
		unsigned k = shape[i];
		uint64_t z = narrow ? d->delta32[i] : d->delta[i];
		struct guest_op op = d->shape[k];

		op.arg = d->last[d->base[k]] + (unzigzag(z) << d->shift[k]);
		op.gap += d->gap[i];
		d->last[d->base[k]] = op.arg;
		ops[i] = op;
	}
}

static void get_shapes(uint8_t *shape, const uint8_t *p, size_t n, unsigned bits)
{
	size_t per = 8 / bits, bytes = n / per;
	uint8_t mask = (1u << bits) - 1;

	switch (bits) {
	case 1:
		for (size_t i = 0; i < bytes; i++)
			for (size_t k = 0; k < 8; k++)
				shape[8 * i + k] = p[i] >> k & 1;
		break;
	case 2:
		for (size_t i = 0; i < bytes; i++)
			for (size_t k = 0; k < 4; k++)
				shape[4 * i + k] = p[i] >> 2 * k & 3;
		break;
	case 4:
		for (size_t i = 0; i < bytes; i++)
			for (size_t k = 0; k < 2; k++)
				shape[2 * i + k] = p[i] >> 4 * k & 15;
		break;
	default:
		memcpy(shape, p, n);
	}
	for (size_t i = bytes * per; i < n; i++)
		shape[i] = p[bytes] >> (i - bytes * per) * bits & mask;
}

/* What a group's header says of one of its columns. */
struct column {
	struct packing k;
	const uint8_t *numbers, *exceptions, *rest;
};

/* Takes a column at *@p, moving it behind; false if it cannot be. */
static bool take_column(struct column *c, const uint8_t **p, const uint8_t *end, size_t m,
			unsigned max_width)
{
	size_t bytes = packed_bytes(m, c->k.w);

	if (c->k.w > max_width || c->k.rest > 8 || (c->k.n_exceptions && c->k.w >= max_width) ||
	    (size_t)(end - *p) < bytes + c->k.n_exceptions * (1 + c->k.rest))
		return false;
	c->numbers = *p;
	c->exceptions = *p + bytes;
	c->rest = c->exceptions + c->k.n_exceptions;
	*p = c->rest + c->k.n_exceptions * c->k.rest;
	for (unsigned i = 0; i < c->k.n_exceptions; i++)
		if (c->exceptions[i] >= m)
			return false;
	return true;
}

/* What the @i-th exception has above its number in the planes. */
static uint64_t exception(const struct column *c, unsigned i)
{
	const uint8_t *p = c->rest + i * c->k.rest;
	uint64_t v = 0;

	for (unsigned b = 0; b < c->k.rest; b++)
		v |= (uint64_t)p[b] << 8 * b;
	return v << 4 * c->k.w;
}

static const char *decode_group(struct decoder *d, const uint8_t **p, const uint8_t *end,
				const uint8_t *shape, struct guest_op *ops, size_t m)
{
	struct column a, b;
	bool narrow;

	if (end - *p < GROUP_HEADER)
		return "the block ends before its last group";
	a.k = (struct packing){(*p)[0], (*p)[1], (*p)[2]};
	b.k = (struct packing){(*p)[3], (*p)[4], (*p)[5]};
	*p += GROUP_HEADER;
	if (!take_column(&a, p, end, m, 16) || !take_column(&b, p, end, m, 8))
		return "the block has a group that cannot be";

	get32_numbers(d->gap, b.numbers, m, b.k.w);
	for (unsigned i = 0; i < b.k.n_exceptions; i++)
		d->gap[b.exceptions[i]] |= exception(&b, i);
	narrow = a.k.w <= 8 && 4 * a.k.w + (a.k.n_exceptions ? 8 * a.k.rest : 0) <= 32;
	if (a.k.w > 8) {
		get64_numbers(d->delta, a.numbers, m, a.k.w);
	} else {
		get32_numbers(d->delta32, a.numbers, m, a.k.w);
		for (size_t i = 0; !narrow && i < m; i++)
			d->delta[i] = d->delta32[i];
	}
	for (unsigned i = 0; i < a.k.n_exceptions; i++) {
		if (narrow)
			d->delta32[a.exceptions[i]] |= exception(&a, i);
		else
			d->delta[a.exceptions[i]] |= exception(&a, i);
	}
	if (shape && !d->one_line)
		many_lines(d, shape, ops, m, narrow);
	else if (!shape)
		narrow ? one_line(d, NULL, ops, m, true) : one_line(d, NULL, ops, m, false);
	else
		narrow ? one_line(d, shape, ops, m, true) : one_line(d, shape, ops, m, false);
	return NULL;
}

const char *block_decode(const uint8_t *raw, size_t len, struct guest_op *ops, size_t n,
			 uint32_t *kinds)
{
	const uint8_t *p = raw, *end = raw + len, *shape = NULL;
	struct decoder d;
	unsigned n_shapes, bits;
	uint32_t least_gap;

	if (len < COLUMNS_HEADER)
		return "the block is too short";
	n_shapes = get16(p);
	least_gap = get32(p + 2);
	p += COLUMNS_HEADER;
	*kinds = 0;
	d.one_line = true;
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
		if (p[5] > k || (p[5] < k && (d.base[p[5]] != p[5] || d.shift[p[5]] != p[4])))
			return "the block has a shape whose base cannot be";
		d.shift[k] = p[4];
		d.base[k] = p[5];
		d.one_line &= p[5] == 0;
		*kinds |= 1u << p[0];
		d.last[k] = 0;
	}
	bits = shape_bits(n_shapes);
	if (bits) {
		size_t bytes = (n * bits + 7) / 8;
		uint8_t most = 0;

		if ((size_t)(end - p) < bytes)
			return "the block ends inside its column of shapes";
		get_shapes(d.column, p, n, bits);
		p += bytes;
		shape = d.column;
		for (size_t i = 0; i < n; i++)
			most = shape[i] > most ? shape[i] : most;
		if (most >= n_shapes)
			return "the block names a shape that it does not have";
	}
	for (size_t g = 0; g < n; g += BLOCK_GROUP) {
		size_t m = n - g < BLOCK_GROUP ? n - g : BLOCK_GROUP;
		const char *wrong = decode_group(&d, &p, end, shape ? shape + g : NULL, ops + g, m);

		if (wrong)
			return wrong;
	}
	return p == end ? NULL : "the block has bytes left over";
}
