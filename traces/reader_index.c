// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "traces/reader.h"

/* ---- the index, from the file's end or from its blocks ---- */

static int add_entry(struct trace_reader *r, struct index_entry e)
{
	if (r->n_index == r->cap_index) {
		uint32_t cap = r->cap_index ? r->cap_index * 2 : 64;
		struct index_entry *p;

		p = cap > r->cap_index ? realloc(r->index, cap * sizeof(*p)) : NULL;
		if (!p)
			return reader_no_memory(r);
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
	       e->vcpu < (e->events ? 1 : r->meta.n_vcpus) && e->n_ops >= 1 &&
	       e->n_ops <= TRACE_BLOCK_OPS;
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
		return reader_bad(r, limit, "the trailer points outside the file");
	ret = reader_get(r, start, h, sizeof(h));
	if (ret)
		return ret;
	n = get32(h + 4);
	if (memcmp(h, INDEX_MAGIC, 4) ||
	    (limit - start - INDEX_HEADER_BYTES) != (uint64_t)n * INDEX_ENTRY_BYTES)
		return reader_bad(r, start, "no index where the trailer points");
	crc = trace_crc32(0, h, sizeof(h));
	for (pos += sizeof(h); pos < limit;) {
		size_t part = sizeof(r->stored) / INDEX_ENTRY_BYTES * INDEX_ENTRY_BYTES;

		if (part > limit - pos)
			part = limit - pos;
		ret = reader_get(r, pos, r->stored, part);
		if (ret)
			return ret;
		crc = trace_crc32(crc, r->stored, part);
		for (size_t i = 0; i < part; i += INDEX_ENTRY_BYTES, pos += INDEX_ENTRY_BYTES) {
			struct index_entry e = {.offset = get64(r->stored + i),
						.n_ops = get32(r->stored + i + 8),
						.vcpu = get16(r->stored + i + 12),
						.events = get16(r->stored + i + 14)};

			/* entries tile the file: each begins where one before it can end */
			if (!check_entry(r, &e, expect, start) ||
			    (r->n_index == 0 && e.offset != first) ||
			    get16(r->stored + i + 14) >= r->meta.version)
				return reader_bad(r, pos, "an entry of the index is impossible");
			expect = e.offset + BLOCK_HEADER_BYTES + 1;
			ret = add_entry(r, e);
			if (ret)
				return ret;
		}
	}
	if (get32(trailer + 8) != trace_crc32(crc, trailer, 8))
		return reader_bad(r, start, "checksum of the index differs");
	if (!n && start != first)
		return reader_bad(r, first, "bytes before the index that it does not know");
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
	ret = reader_get(r, pos, h, sizeof(h));
	if (ret)
		return ret;
	end = pos + INDEX_HEADER_BYTES + (uint64_t)get32(h + 4) * INDEX_ENTRY_BYTES + TRAILER_BYTES;
	if (r->size < end)
		return 0;
	*torn = false;
	return r->size == end ? reader_bad(r, end - 8, "the mark of the file's end differs")
			      : reader_bad(r, end, "bytes after the end of the trace");
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

		ret = reader_get(r, r->end, buf, left < sizeof(buf) ? left : sizeof(buf));
		if (ret)
			return ret;
		if (!memcmp(buf, INDEX_MAGIC, 4)) {
			ret = after_index(r, r->end, &torn);
			if (ret)
				return ret;
			break;
		}
		if (left < sizeof(buf) &&
		    (!memcmp(buf, BLOCK_MAGIC, 4) || !memcmp(buf, EVENT_MAGIC, 4)))
			break;
		wrong = block_header_decode(buf, &h);
		if (!wrong && h.events && r->meta.version < TRACE_VERSION)
			wrong = "a block of events in a file of version 1";
		if (!wrong && h.vcpu >= r->meta.n_vcpus)
			wrong = "a block of a vCPU that the header does not have";
		if (wrong)
			return reader_bad(r, r->end, wrong);
		if (left - sizeof(buf) < h.stored_len)
			break;
		ret = add_entry(r, (struct index_entry){.offset = r->end,
							.n_ops = h.n_ops,
							.vcpu = h.vcpu,
							.events = h.events});
		if (ret)
			return ret;
		r->end += sizeof(buf) + h.stored_len;
	}
	r->stats.torn = true;
	kvmsim_err(r->errors, KVMSIM_ETORN,
		   "%s: offset %llu: torn: the file ends without its index; %u whole block%s read",
		   r->name, (unsigned long long)r->end, r->n_index,
		   r->n_index == 1 ? " is" : "s are");
	return 0;
}

int reader_find_blocks(struct trace_reader *r)
{
	uint8_t trailer[TRAILER_BYTES];
	uint32_t last[TRACE_MAX_VCPUS], last_events = NO_BLOCK;
	int ret;

	if (r->size - r->end >= INDEX_HEADER_BYTES + TRAILER_BYTES) {
		ret = reader_get(r, r->size - TRAILER_BYTES, trailer, TRAILER_BYTES);
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
		return reader_no_memory(r);
	for (uint32_t v = 0; v < r->meta.n_vcpus; v++) {
		r->vcpu[v] = (struct cursor){.r = r, .first = NO_BLOCK, .pos = NO_BLOCK};
		last[v] = NO_BLOCK;
	}
	r->first_events = NO_BLOCK;
	for (uint32_t i = 0; i < r->n_index; i++) {
		uint32_t v = r->index[i].vcpu;

		r->next[i] = NO_BLOCK;
		if (r->index[i].events) {
			if (last_events == NO_BLOCK)
				r->first_events = i;
			else
				r->next[last_events] = i;
			last_events = i;
			continue;
		}
		if (last[v] == NO_BLOCK)
			r->vcpu[v].first = r->vcpu[v].pos = i;
		else
			r->next[last[v]] = i;
		last[v] = i;
	}
	return 0;
}
