/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_BLOCK_H
#define KVMSIM_TRACES_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "model/guest/op.h"

/*
 * The columns of a block (FORMAT.md, "Columns"): ops to bytes and back, without compression. Pure
 * functions. Measured by tests/bench/bench_trace.c.
 */

#define TRACE_BLOCK_OPS 16384u
#define BLOCK_GROUP	256u
#define BLOCK_SHAPES	256u
/* Shapes, their column, and groups at their full width: 8 bytes of delta, 4 of gap. */
#define BLOCK_RAW_MAX                                                                              \
	(6 + BLOCK_SHAPES * 6 + TRACE_BLOCK_OPS + TRACE_BLOCK_OPS / BLOCK_GROUP * 6 +              \
	 TRACE_BLOCK_OPS * 12)

/* Encodes the first ops of @ops, as many as fit one block (up to TRACE_BLOCK_OPS, up to 256
 * shapes), into @raw of BLOCK_RAW_MAX bytes. Returns the bytes used; *@taken is the number of ops,
 * at least 1 when @n is. */
size_t block_encode(const struct guest_op *ops, size_t n, uint8_t *raw, size_t *taken);

/* Decodes @len bytes into @n ops, n <= TRACE_BLOCK_OPS. NULL, or what is wrong (constant text);
 * reads nothing beyond @len whatever the bytes are. @kinds: a bit (1 << kind) for every kind of op
 * that may be in the block. */
const char *block_decode(const uint8_t *raw, size_t len, struct guest_op *ops, size_t n,
			 uint32_t *kinds);

#endif
