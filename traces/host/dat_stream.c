// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/dat_stream.h"

#include <stdlib.h>
#include <string.h>

/* Of a page's word with the length of its data: events before it were overwritten, and their
 * number is stored behind the data. */
#define MISSED_EVENTS (1u << 31)
#define MISSED_STORED (1u << 30)
#define COMMIT_MASK   ((1u << 27) - 1)

/* A record's word has 5 bits of length or type and 27 of time since the record before. */
enum { TYPE_LONG = 0, TYPE_PADDING = 29, TYPE_TIME_EXTEND = 30, TYPE_TIME_STAMP = 31 };
#define DELTA_BITS 27
#define STAMP_BITS (32 + DELTA_BITS) /* of an absolute time; the rest is the time's before */

void dat_stream_init(struct dat_stream *s, const struct dat_file *f, const struct dat_buffer *b,
		     const struct dat_area *a, unsigned commit_bytes)
{
	*s = (struct dat_stream){.f = f,
				 .cpu = a->cpu,
				 .packed = b->packed,
				 .page_size = b->page_size,
				 .commit_bytes = commit_bytes,
				 .offset = a->offset,
				 .left = a->size};
	/* trace-cmd does not count the number of chunks in */
	if (b->packed && s->left <= UINT64_MAX - 4)
		s->left += 4;
	if (a->offset >= f->size)
		s->left = 0;
	else if (s->left > f->size - a->offset)
		s->left = f->size - a->offset;
}

void dat_stream_free(struct dat_stream *s)
{
	free(s->pages);
	free(s->raw);
	s->pages = s->raw = NULL;
}

static bool make_room(uint8_t **buf, size_t *room, size_t need)
{
	uint8_t *grown;

	if (need <= *room)
		return true;
	grown = realloc(*buf, need);
	if (!grown)
		return false;
	*buf = grown;
	*room = need;
	return true;
}

static int damaged(struct dat_stream *s)
{
	s->damaged++;
	s->left = 0;
	return 0;
}

/* The next chunk of pages: 1, 0 at the end, or KVMSIM_ENOMEM. */
static int unpack(struct dat_stream *s)
{
	uint64_t stored, size;
	uint8_t sizes[8];

	if (!s->opened) {
		s->opened = true;
		if (s->left < 4 || !dat_get(s->f, s->offset, sizes, 4))
			return s->left ? damaged(s) : 0;
		s->chunks = dat_number(s->f, sizes, 4);
		s->offset += 4;
		s->left -= 4;
	}
	if (!s->chunks)
		return 0;
	s->chunks--;
	if (s->left < 8 || !dat_get(s->f, s->offset, sizes, 8)) {
		s->left = 0; /* cut: that was told where the file was opened */
		s->chunks = 0;
		return 0;
	}
	stored = dat_number(s->f, sizes, 4);
	size = dat_number(s->f, sizes + 4, 4);
	s->offset += 8;
	s->left -= 8;
	if (stored > s->left) {
		s->left = s->chunks = 0;
		return 0;
	}
	if (!size || size > DAT_META_MAX || size % s->page_size) {
		s->chunks = 0;
		return damaged(s);
	}
	if (!make_room(&s->raw, &s->raw_room, stored + 1) || !make_room(&s->pages, &s->room, size))
		return KVMSIM_ENOMEM;
	if (!dat_get(s->f, s->offset, s->raw, stored) ||
	    !dat_unpack(s->f->packing, s->raw, stored, s->pages, size)) {
		s->chunks = 0;
		return damaged(s);
	}
	s->offset += stored;
	s->left -= stored;
	s->size = size;
	s->next = 0;
	return 1;
}

static int load(struct dat_stream *s)
{
	if (s->packed)
		return unpack(s);
	if (s->left < s->page_size) /* a page that is cut */
		return 0;
	if (!make_room(&s->pages, &s->room, s->page_size))
		return KVMSIM_ENOMEM;
	if (!dat_get(s->f, s->offset, s->pages, s->page_size))
		return damaged(s);
	s->offset += s->page_size;
	s->left -= s->page_size;
	s->size = s->page_size;
	s->next = 0;
	return 1;
}

/* Begins the next page that can be one: 1, 0 at the end, or KVMSIM_ENOMEM. */
static int page(struct dat_stream *s)
{
	size_t head = 8 + s->commit_bytes;

	for (;;) {
		const uint8_t *p;
		uint64_t commit, len;

		if (s->next == s->size) {
			int rc = load(s);

			if (rc <= 0)
				return rc;
		}
		p = s->pages + s->next;
		s->next += s->page_size;
		s->ts = dat_number(s->f, p, 8);
		commit = dat_number(s->f, p + 8, s->commit_bytes);
		len = commit & COMMIT_MASK;
		if (len > s->page_size - head) {
			s->damaged++;
			continue;
		}
		if (commit & MISSED_EVENTS) {
			uint64_t lost = UINT64_MAX;

			if (commit & MISSED_STORED && len + s->commit_bytes <= s->page_size - head)
				lost = dat_number(s->f, p + head + len, s->commit_bytes);
			/* of a page without a record, too */
			s->lost = lost == UINT64_MAX || s->lost == UINT64_MAX ? UINT64_MAX
									      : s->lost + lost;
		}
		s->at = p + head;
		s->end = s->at + len;
		return 1;
	}
}

/* The next record of the page: 1; 0: there is no more in it. */
static int record(struct dat_stream *s)
{
	bool big = s->f->head.big_endian;

	while (s->end - s->at >= 4) {
		uint32_t word = dat_number(s->f, s->at, 4), array = 0;
		uint32_t type = big ? word >> DELTA_BITS : word & 31;
		uint64_t delta = big ? word & ((1u << DELTA_BITS) - 1) : word >> 5;
		size_t left = s->end - s->at - 4;
		uint64_t abs;

		if (type == TYPE_PADDING && !delta)
			break; /* the rest is empty */
		if (type == TYPE_LONG || type >= TYPE_PADDING) {
			if (left < 4)
				goto bad;
			array = dat_number(s->f, s->at + 4, 4);
		}
		switch (type) {
		case TYPE_PADDING: /* a record that was taken back */
			s->ts += delta;
			if (array < 4 || array > left)
				goto bad;
			s->at += 4 + (size_t)array;
			continue;
		case TYPE_TIME_EXTEND:
			s->ts += delta + ((uint64_t)array << DELTA_BITS);
			s->at += 8;
			continue;
		case TYPE_TIME_STAMP:
			abs = delta + ((uint64_t)array << DELTA_BITS);
			abs |= s->ts >> STAMP_BITS << STAMP_BITS;
			if (abs < s->ts)
				abs += 1ull << STAMP_BITS;
			s->ts = abs;
			s->at += 8;
			continue;
		case TYPE_LONG:
			if (array < 4 || array > left)
				goto bad;
			s->data = s->at + 8;
			s->len = array - 4;
			s->at += 4 + ((size_t)array + 3) / 4 * 4;
			if (s->at > s->end)
				s->at = s->end;
			break;
		default:
			if (4 * type > left)
				goto bad;
			s->data = s->at + 4;
			s->len = 4 * type;
			s->at += 4 + s->len;
		}
		s->ts += delta;
		return 1;
	bad:
		s->damaged++;
		break;
	}
	s->at = s->end;
	return 0;
}

int dat_stream_next(struct dat_stream *s)
{
	s->lost = 0;
	for (;;) {
		int rc;

		if (s->at != s->end && record(s))
			return 1;
		rc = page(s);
		if (rc <= 0)
			return rc;
	}
}
