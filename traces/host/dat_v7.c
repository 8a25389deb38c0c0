// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "traces/host/dat_file.h"

/*
 * Version 7: sections, each with a head that says how long it is; options sections, one of which
 * leads to the next, say where the others are. In a file that is cut the last options are gone, and
 * with them the CPUs' parts of the data; the sections are then found one behind the other, and the
 * CPUs' parts by how they begin.
 */

struct section {
	unsigned id;
	bool packed;
	uint64_t data, size; /* where its content is, as stored */
};

static bool section_at(const struct dat_file *f, uint64_t at, struct section *s)
{
	uint8_t raw[16];

	if (!dat_get(f, at, raw, 16))
		return false;
	s->id = dat_number(f, raw, 2);
	s->packed = dat_number(f, raw + 2, 2) & 1;
	s->size = dat_number(f, raw + 8, 8);
	s->data = at + 16;
	return true;
}

/* Its content, unpacked. @out stays empty where the section is cut or damaged. */
static int content(struct dat_file *f, const struct section *s, struct dat_blob *out)
{
	uint64_t at = s->data, stored = s->size, size = s->size;
	uint8_t *raw, sizes[8];

	if (s->packed) {
		if (!dat_get(f, at, sizes, 8))
			return 0;
		stored = dat_number(f, sizes, 4);
		size = dat_number(f, sizes + 4, 4);
		at += 8;
	}
	if (at > f->size || stored > f->size - at || size > DAT_META_MAX)
		return 0;
	f->met_packed |= s->packed;
	raw = malloc(stored + 1);
	if (!raw)
		return KVMSIM_ENOMEM;
	raw[stored] = 0;
	if (!dat_get(f, at, raw, stored)) {
		free(raw);
		return 0;
	}
	if (!s->packed) {
		*out = (struct dat_blob){raw, stored};
		return 0;
	}
	out->at = malloc(size + 1);
	if (out->at && dat_unpack(f->packing, raw, stored, out->at, size)) {
		out->len = size;
		out->at[size] = 0;
		free(raw);
		return 0;
	}
	free(raw);
	if (!out->at)
		return KVMSIM_ENOMEM;
	free(out->at);
	out->at = NULL;
	return 0;
}

/* Keeps a section that events are read with; a second one of a kind is passed over. */
static int keep(struct dat_file *f, const struct section *s)
{
	struct dat_blob *out = s->id == DAT_HEADER_INFO	    ? &f->headers
			       : s->id == DAT_FTRACE_EVENTS ? &f->ftrace
			       : s->id == DAT_EVENT_FORMATS ? &f->formats
			       : s->id == DAT_CMDLINES	    ? &f->cmdlines
							    : NULL;

	return out && !out->at ? content(f, s, out) : 0;
}

/* One options section. @next: of the next one, 0: none; @ok: it ended as it should. */
static int options(struct dat_file *f, const struct section *s, uint64_t *next, bool *ok)
{
	struct dat_blob o = {0};
	size_t at = 0;
	int rc = content(f, s, &o);

	*next = 0;
	*ok = false;
	while (!rc && o.at && o.len - at >= 6) {
		unsigned id = dat_number(f, o.at + at, 2);
		uint64_t len = dat_number(f, o.at + at + 2, 4);
		const uint8_t *data = o.at + at + 6;
		struct section other;

		if (len > o.len - at - 6)
			break;
		at += 6 + len;
		if (id == DAT_DONE) {
			*ok = true;
			*next = len >= 8 ? dat_number(f, data, 8) : 0;
			break;
		}
		if (id >= DAT_HEADER_INFO && id <= DAT_CMDLINES && len >= 8) {
			if (section_at(f, dat_number(f, data, 8), &other) && other.id == id)
				rc = keep(f, &other);
		} else {
			rc = dat_option(f, id, data, len);
		}
	}
	free(o.at);
	return rc;
}

/* The end of a CPU's packed data that begin at @at, 0: there are none. A last chunk that is cut is
 * counted in. */
static uint64_t packed_end(const struct dat_file *f, uint64_t at)
{
	uint8_t raw[8];
	uint64_t chunks;

	if (!dat_get(f, at, raw, 4))
		return 0;
	chunks = dat_number(f, raw, 4);
	if (!chunks)
		return 0;
	for (at += 4; chunks; chunks--) {
		if (!dat_get(f, at, raw, 8))
			return f->size;
		at += 8 + dat_number(f, raw, 4);
		if (!dat_number(f, raw + 4, 4) || at < 8)
			return 0;
	}
	return at;
}

/* The end of a CPU's pages from @at on: where a page is earlier than the one before it. */
static uint64_t plain_end(const struct dat_file *f, uint64_t at, uint64_t end)
{
	uint64_t before = 0, page = f->head.page_size;
	uint8_t raw[8];

	for (bool first = true; at < end && dat_get(f, at, raw, 8); at += page, first = false) {
		uint64_t ts = dat_number(f, raw, 8);

		if (!first && ts < before)
			return at;
		before = ts;
	}
	return end;
}

/* A buffer whose table is lost: the CPUs' parts are looked for in its section. A CPU without
 * events has no part, so their numbers hold only when there are as many as CPUs. */
static int find_parts(struct dat_file *f, const struct section *s)
{
	uint64_t page = f->head.page_size, end = s->data + s->size, at = s->data, to;
	struct dat_area *parts;
	struct dat_buffer *b;
	uint32_t n = 0, max = f->n_cpus ? f->n_cpus : DAT_MAX_CPUS;

	if (end < s->data || end > f->size || !s->size)
		end = f->size; /* written when the section was complete, which it never was */
	if (f->n_buffers == DAT_MAX_BUFFERS)
		return 0;
	b = dat_add_buffer(f, f->n_buffers ? "?" : "", NULL, max);
	if (!b)
		return KVMSIM_ENOMEM;
	b->packed = s->packed;
	while (n < max) {
		if (at > UINT64_MAX - page)
			break;
		at = (at + page - 1) / page * page;
		if (at >= end)
			break;
		to = s->packed ? packed_end(f, at) : plain_end(f, at, end);
		if (!to)
			break;
		b->cpu[n] = (struct dat_area){n, at, to - at};
		n++;
		at = to;
	}
	b->n_cpus = n;
	parts = realloc(b->cpu, (n ? n : 1) * sizeof(*parts));
	b->cpu = parts ? parts : b->cpu;
	return 0;
}

/* All sections one behind the other. */
static int look_through(struct dat_file *f, uint64_t at)
{
	struct section s;
	uint64_t next;
	bool ok;
	int rc = 0;

	while (!rc && section_at(f, at, &s)) {
		if (s.id == DAT_BUFFER)
			rc = find_parts(f, &s);
		else if (s.id != DAT_DONE)
			rc = keep(f, &s);
		else if (!f->n_cpus && !*f->clock) /* else they were read before */
			rc = options(f, &s, &next, &ok);
		if (s.size > f->size - s.data)
			break;
		at = s.data + s.size;
	}
	return rc;
}

int dat_read_v7(struct dat_file *f)
{
	uint8_t raw[8];
	struct section s;
	uint64_t at;
	bool whole = false;
	unsigned n = 0;
	int rc = 0;

	if (!dat_get(f, f->body, raw, 8))
		return 0;
	/* A file that leads in circles ends at the thousandth section. */
	for (at = dat_number(f, raw, 8); !rc && n < 1000 && section_at(f, at, &s); n++) {
		if (s.id != DAT_DONE)
			break;
		rc = options(f, &s, &at, &whole);
		if (rc || !whole || !at)
			break;
		whole = false;
	}
	if (rc || (whole && !at && f->n_buffers))
		goto flags;
	/* What instances there were is as lost as the main buffer's table. */
	f->lost_tables = true;
	rc = look_through(f, f->body + 8);
flags:
	for (unsigned i = 0; !rc && i < f->n_buffers; i++) {
		struct dat_buffer *b = &f->buffer[i];

		if (b->offset && section_at(f, b->offset, &s) && s.id == DAT_BUFFER)
			b->packed = s.packed;
		if (!*b->name && b->clock && !*f->clock && strlen(b->clock) < sizeof(f->clock))
			strcpy(f->clock, b->clock);
	}
	return rc;
}
