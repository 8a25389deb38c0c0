// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/format.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "traces/block.h"
#include "traces/event_block.h"

#define META_FIXED_BYTES 32u
#define META_SLOT_BYTES	 32u
#define MAX_GFN		 (1ull << 40) /* of 52-bit physical addresses */

_Static_assert(META_FIXED_BYTES + TRACE_MAX_SLOTS * META_SLOT_BYTES + 3 * (4 + TRACE_STRING_MAX) <=
		       META_MAX,
	       "every valid metadata fits");

uint32_t trace_crc32(uint32_t crc, const void *data, size_t len)
{
	return crc32_z(crc, data, len);
}

/* Well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates), no control characters but newline
 * and tab: what a terminal or a JSON reader can be given. */
static bool text_ok(const char *s)
{
	const uint8_t *p = (const uint8_t *)s;

	while (*p) {
		uint32_t c = *p++, low;
		int more;

		if (c < 0x80) {
			if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
				return false;
			continue;
		}
		if (c >= 0xc2 && c <= 0xdf)
			more = 1, c &= 0x1f, low = 0x80;
		else if (c >= 0xe0 && c <= 0xef)
			more = 2, c &= 0x0f, low = 0x800;
		else if (c >= 0xf0 && c <= 0xf4)
			more = 3, c &= 0x07, low = 0x10000;
		else
			return false;
		for (; more; more--, p++) {
			if ((*p & 0xc0) != 0x80)
				return false;
			c = c << 6 | (*p & 0x3f);
		}
		/* C1 controls, overlong forms, surrogates, beyond Unicode */
		if (c < 0xa0 || c < low || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
			return false;
	}
	return true;
}

static bool name_ok(const char name[16])
{
	size_t n = strnlen(name, 16);

	if (n == 0 || n == 16)
		return false;
	for (size_t i = 0; i < 16; i++)
		if (i < n ? name[i] <= 0x20 || name[i] >= 0x7f : name[i] != 0)
			return false;
	return true;
}

const char *meta_check(const struct trace_meta *meta)
{
	const char *const text[] = {meta->source, meta->kernel, meta->workload};

	if (meta->n_vcpus < 1 || meta->n_vcpus > TRACE_MAX_VCPUS)
		return "the number of vCPUs is not in 1 to 512";
	if (meta->n_slots > TRACE_MAX_SLOTS)
		return "more than 32 slots";
	if (meta->clock != TRACE_CLOCK_INSN && meta->clock != TRACE_CLOCK_NS &&
	    meta->clock != TRACE_CLOCK_TSC)
		return "unknown clock";
	for (uint32_t i = 0; i < meta->n_slots; i++) {
		const struct trace_slot *s = &meta->slots[i];

		if (!name_ok(s->name))
			return "a slot's name is not 1 to 15 printable characters";
		if (s->npages < 1 || s->npages > MAX_GFN || s->base_gfn > MAX_GFN - s->npages)
			return "a slot is empty or ends above gfn 2^40";
		for (uint32_t j = 0; j < i; j++) {
			const struct trace_slot *t = &meta->slots[j];

			if (s->base_gfn < t->base_gfn + t->npages &&
			    t->base_gfn < s->base_gfn + s->npages)
				return "two slots overlap";
		}
	}
	for (int i = 0; i < 3; i++) {
		if (!text[i])
			continue;
		if (strnlen(text[i], TRACE_STRING_MAX) == TRACE_STRING_MAX)
			return "a string is longer than 4095 bytes";
		if (!text_ok(text[i]))
			return "a string is not plain UTF-8 text";
	}
	return NULL;
}

uint32_t meta_encode(const struct trace_meta *meta, uint8_t *out)
{
	const char *const text[] = {meta->source, meta->kernel, meta->workload};
	uint8_t *p = out;

	put32(p, meta->n_vcpus);
	put32(p + 4, meta->n_slots);
	put32(p + 8, meta->clock);
	put32(p + 12, meta->unseen);
	put64(p + 16, meta->clock_hz);
	put64(p + 24, meta->epoch_len);
	p += META_FIXED_BYTES;
	for (uint32_t i = 0; i < meta->n_slots; i++, p += META_SLOT_BYTES) {
		put64(p, meta->slots[i].base_gfn);
		put64(p + 8, meta->slots[i].npages);
		memcpy(p + 16, meta->slots[i].name, 16);
	}
	for (int i = 0; i < 3; i++) {
		uint32_t n = text[i] ? strlen(text[i]) : 0;

		put32(p, n);
		if (n)
			memcpy(p + 4, text[i], n);
		p += 4 + n;
	}
	return p - out;
}

const char *meta_decode(const uint8_t *in, uint32_t len, struct trace_meta *meta, uint32_t *at)
{
	char **const text[] = {&meta->source, &meta->kernel, &meta->workload};
	uint32_t pos = META_FIXED_BYTES;

	memset(meta, 0, sizeof(*meta));
	*at = 0;
	if (len < META_FIXED_BYTES)
		return "the metadata is too short";
	meta->n_vcpus = get32(in);
	meta->n_slots = get32(in + 4);
	meta->clock = get32(in + 8);
	meta->unseen = get32(in + 12);
	meta->clock_hz = get64(in + 16);
	meta->epoch_len = get64(in + 24);
	*at = 4;
	if (meta->n_slots > TRACE_MAX_SLOTS)
		return "more than 32 slots";
	*at = pos;
	if (len - pos < meta->n_slots * META_SLOT_BYTES)
		return "the metadata ends inside a slot";
	for (uint32_t i = 0; i < meta->n_slots; i++, pos += META_SLOT_BYTES) {
		meta->slots[i].base_gfn = get64(in + pos);
		meta->slots[i].npages = get64(in + pos + 8);
		memcpy(meta->slots[i].name, in + pos + 16, 16);
	}
	for (int i = 0; i < 3; i++) {
		uint32_t n;

		*at = pos;
		if (len - pos < 4)
			return "the metadata ends inside a string";
		n = get32(in + pos);
		pos += 4;
		if (n >= TRACE_STRING_MAX)
			return "a string is longer than 4095 bytes";
		if (len - pos < n)
			return "the metadata ends inside a string";
		if (memchr(in + pos, 0, n))
			return "a string is not plain UTF-8 text";
		*text[i] = malloc(n + 1);
		if (!*text[i])
			return "out of memory";
		memcpy(*text[i], in + pos, n);
		(*text[i])[n] = 0;
		pos += n;
	}
	*at = pos;
	if (pos != len)
		return "the metadata has bytes left over";
	*at = 0;
	return meta_check(meta);
}

void meta_free(struct trace_meta *meta)
{
	free(meta->source);
	free(meta->kernel);
	free(meta->workload);
	memset(meta, 0, sizeof(*meta));
}

void block_header_encode(const struct block_header *h, uint8_t out[BLOCK_HEADER_BYTES])
{
	memcpy(out, h->events ? EVENT_MAGIC : BLOCK_MAGIC, 4);
	put16(out + 4, h->vcpu);
	out[6] = h->codec;
	out[7] = 0;
	put32(out + 8, h->n_ops);
	put32(out + 12, h->raw_len);
	put32(out + 16, h->stored_len);
	put32(out + 20, h->crc);
	put32(out + 24, trace_crc32(0, out, 24));
}

const char *block_header_decode(const uint8_t in[BLOCK_HEADER_BYTES], struct block_header *h)
{
	h->events = !memcmp(in, EVENT_MAGIC, 4);
	if (!h->events && memcmp(in, BLOCK_MAGIC, 4))
		return "neither a block nor the index begins here";
	if (get32(in + 24) != trace_crc32(0, in, 24))
		return "checksum of the block's header differs";
	h->vcpu = get16(in + 4);
	h->codec = in[6];
	h->n_ops = get32(in + 8);
	h->raw_len = get32(in + 12);
	h->stored_len = get32(in + 16);
	h->crc = get32(in + 20);
	if (h->n_ops < 1 || h->n_ops > TRACE_BLOCK_OPS)
		return "a block of no ops or of more than 16384";
	if (h->raw_len > (h->events ? EVENT_RAW_MAX : BLOCK_RAW_MAX))
		return "a block longer than any can be";
	if (h->events && h->vcpu)
		return "a block of events that has a vCPU";
	if (in[7] || h->codec > CODEC_ZSTD)
		return "unknown codec";
	if (h->codec == CODEC_RAW ? h->stored_len != h->raw_len : h->stored_len >= h->raw_len)
		return "the block's lengths contradict each other";
	return NULL;
}
