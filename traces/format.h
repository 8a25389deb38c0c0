/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_FORMAT_H
#define KVMSIM_TRACES_FORMAT_H

#include <stdint.h>

#include "traces/trace.h"

/*
 * What reader and writer share of FORMAT.md: the sizes, the magics, the metadata. Not for others.
 */

#define TRACE_MAGIC	"\x89KVT\r\n\x1a\n"
#define TRACE_END_MAGIC "\nKVTEND\n"
#define BLOCK_MAGIC	"KVTB"
#define EVENT_MAGIC	"KVTE"
#define INDEX_MAGIC	"KVTI"

#define HEADER_BYTES	   20u /* up to the metadata */
#define META_MAX	   16384u
#define BLOCK_HEADER_BYTES 28u
#define INDEX_HEADER_BYTES 8u
#define INDEX_ENTRY_BYTES  16u
#define TRAILER_BYTES	   20u

enum { CODEC_RAW, CODEC_ZSTD };

struct block_header {
	uint32_t n_ops, raw_len, stored_len, crc;
	uint16_t vcpu;
	uint8_t codec;
	bool events; /* n_ops are rows */
};

struct index_entry {
	uint64_t offset;
	uint32_t n_ops;
	uint16_t vcpu;
	bool events; /* n_ops are rows */
};

static inline void put16(uint8_t *p, uint16_t v)
{
	p[0] = v & 0xff;
	p[1] = v >> 8;
}

static inline void put32(uint8_t *p, uint32_t v)
{
	put16(p, v & 0xffff);
	put16(p + 2, v >> 16);
}

static inline void put64(uint8_t *p, uint64_t v)
{
	put32(p, v & 0xffffffff);
	put32(p + 4, v >> 32);
}

static inline uint16_t get16(const uint8_t *p)
{
	return p[0] | p[1] << 8;
}

static inline uint32_t get32(const uint8_t *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static inline uint64_t get64(const uint8_t *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

/* crc32 of FORMAT.md over @len bytes, going on from @crc (0 at the start). */
uint32_t trace_crc32(uint32_t crc, const void *data, size_t len);

/* NULL when @meta follows FORMAT.md, else what is wrong with it. A NULL string is an empty one. */
const char *meta_check(const struct trace_meta *meta);
/* Writes @meta to @out (META_MAX bytes) and returns its length; @meta must have been checked. */
uint32_t meta_encode(const struct trace_meta *meta, uint8_t *out);
/* Reads what meta_encode() wrote. NULL, or what is wrong; *@at is the offset in @in where.
 * The strings of @meta are malloc'd, also on an error: meta_free(). */
const char *meta_decode(const uint8_t *in, uint32_t len, struct trace_meta *meta, uint32_t *at);
void meta_free(struct trace_meta *meta);

void block_header_encode(const struct block_header *h, uint8_t out[BLOCK_HEADER_BYTES]);
/* NULL, or what is wrong: magic, checksum, a length that no block can have. */
const char *block_header_decode(const uint8_t in[BLOCK_HEADER_BYTES], struct block_header *h);

#endif
